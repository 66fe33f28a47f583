"""lmart eval: how well scores, or a model, rank judged queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lmart.cli.command import HelpfulCommand
from lmart.cli.compile import compile_ahead
from lmart.cli.eval_request import EvalInputs, EvalOutput, MeasureOptions, StatisticsOptions, check_usage
from lmart.cli.help import definitions
from lmart.cli.options.declare import group
from lmart.cli.options.shared import ClusterOptions, Running, cluster_options, data_options, running_options
from lmart.cli.terminal.console import Console
from lmart.formats.read_options import ReadOptions
from lmart.measures import KINDS
from lmart.threads import WorkerPool

if TYPE_CHECKING:
    from lmart.cli.eval_systems import EvalJob
    from lmart.measures.results import EvaluationResult

HELP = """Measure how well models, scores from elsewhere or TREC runs rank judged queries.

The report goes to standard output: the mean of each measure over the queries, and the conventions that it depends on.
Higher scores rank first; a document is relevant if its label is above 0; ranks count from 1. In these measures k is a
number from 1; without [@k] the whole list counts:

\b
{measures}"""

EPILOG = """\b
Examples:
  lmart eval --data test.svm -m model.json
  lmart predict --data test.svm -m model.json --out scores.txt
  lmart eval --data test.svm -m new=model.json --scores old=scores.txt
  lmart eval --data test.svm --scores scores.txt --ties average --json
  lmart eval --data test.svm -m model.json --empty skip --per-query q.tsv
  lmart eval --data test.svm --scores scores.txt --like trec_eval
  lmart eval --data test.svm -m model.json --metric "map(rel=2),bpref"
  lmart predict --data test.svm -m model.json --format trec --out test.run
  lmart convert test.svm test.qrels
  lmart eval --qrels test.qrels --run test.run --like trec_eval
  lmart eval --data test.svm -m model.json --html page.html
  lmart eval --data 'te*.svm' -m model.json --dask local:2
"""


@click.command(
    "eval",
    cls=HelpfulCommand,
    help=HELP.format(measures=definitions({kind.syntax[0]: kind.meaning for kind in KINDS.values()})),
    epilog=EPILOG,
    short_help="Measure rankings.",
)
@group("inputs", EvalInputs)
@group("measure_options", MeasureOptions)
@group("output", EvalOutput)
@group("statistics_options", StatisticsOptions)
@cluster_options(
    "Measure on the workers of a Dask cluster.",
    "The output has the same bytes. The workers read the files; a name may be a pattern in quotes, such as "
    "'part-*.svm'.",
)
@data_options
@running_options
def command(
    inputs: EvalInputs,
    measure_options: MeasureOptions,
    output: EvalOutput,
    statistics_options: StatisticsOptions,
    cluster: ClusterOptions,
    read_options: ReadOptions,
    running: Running,
) -> None:
    """Measure a ranking; the help text is HELP."""
    paths = check_usage(inputs, output, read_options, cluster)
    statistics_options.check_usage(len(inputs.systems), output.is_reported)
    measures = inputs.with_run_conventions(measure_options.measures(output.html is not None))

    # Only now, as these load numpy and numba.
    from lmart.cli.eval_output import PageRequest, write
    from lmart.cli.eval_systems import EvalJob
    from lmart.measures.comparing import statistics_of
    from lmart.streams import check_output

    for path in output.paths:
        check_output(path, paths)
    console = Console(running.quiet)
    page = None if output.html is None else PageRequest.of(output.html, output, measures)
    count = running.thread_count(console)
    if cluster.on_this_machine:
        compile_ahead("eval", count)
    with WorkerPool(count) as pool:
        computed = measures if page is None else page.computed
        job = EvalJob(inputs, computed, measure_options.gain_given_by, read_options, pool, console)
        result = measured = _evaluated(job, cluster, output.paths)
        if page is not None:
            result = page.without_cutoffs(measured)
        statistics = html = None
        if output.is_reported:
            drawn = statistics_options
            statistics = statistics_of(result, drawn.resampling, pool, drawn.compare, drawn.all_pairs)
            html = None if page is None else page.render(measured, result, statistics, pool)
    write(result, statistics, output, html)


def _evaluated(job: EvalJob, cluster: ClusterOptions, outputs: Sequence[str]) -> EvaluationResult:
    """Read all inputs and return the measures of each system."""
    from lmart.cli.eval_systems import evaluate_data, evaluate_runs

    if cluster.dask is not None:
        from lmart.cli.eval_cluster import evaluate_parts
        from lmart.distributed.cluster import connected

        with connected(cluster.address, cluster.dask_security, job.pool.threads) as workers:
            return evaluate_parts(job, workers, outputs)
    return evaluate_runs(job) if "run" in job.inputs.kinds else evaluate_data(job)
