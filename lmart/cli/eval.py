"""lmart eval: how well scores, or a model, rank judged queries."""

from __future__ import annotations

from dataclasses import fields

import click

from lmart.cli.compiling import compile_ahead
from lmart.cli.eval_request import EvalInputs, EvalOutput, MeasureOptions, check_usage
from lmart.cli.options.choice import Choice
from lmart.cli.options.cluster import ClusterOptions, cluster_options
from lmart.cli.options.common import definitions, quiet_option, strict_option, thread_count, threads_option
from lmart.cli.options.conventions import convention_options
from lmart.cli.options.data import data_options
from lmart.cli.options.packed import packed
from lmart.cli.options.statistics import StatisticsOptions, statistics_options
from lmart.cli.options.systems import SystemsCommand
from lmart.cli.options.types import MeasureType
from lmart.cli.terminal.console import Console
from lmart.formats.read_options import ReadOptions
from lmart.measures import KINDS
from lmart.threads import WorkerPool

DEFAULT_METRICS = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr"

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
  lmart eval --data test.svm -m model.json --scores scores.txt
  lmart eval --data test.svm --scores scores.txt --ties average --json
  lmart eval --data test.svm -m model.json --metric ndcg@10,err@20
  lmart eval --data test.svm -m model.json --empty skip --per-query q.tsv
  lmart eval --data test.svm --scores scores.txt --like trec_eval
  lmart eval --data test.svm -m model.json --metric "map(rel=2),bpref"
  lmart eval --data test.svm -m model.json --level 0.99 --seed 7
  lmart predict --data test.svm -m model.json --format trec --out test.run
  lmart convert test.svm test.qrels
  lmart eval --qrels test.qrels --run test.run --like trec_eval
  lmart eval --data test.svm -m model.json --html page.html
  lmart eval --data 'te*.svm' -m model.json --dask local:2
"""


def _measures_help() -> str:
    """Return one paragraph of lines, a measure each."""
    return definitions({kind.syntax[0]: kind.meaning for kind in KINDS.values()})


def _names(kind: type[EvalInputs | MeasureOptions | EvalOutput]) -> list[str]:
    return [one.name for one in fields(kind)]


@click.command(
    "eval",
    cls=SystemsCommand,
    many=("--data", "--model", "-m", "--scores", "--run"),
    help=HELP.format(measures=_measures_help()),
    epilog=EPILOG,
    short_help="Measure rankings.",
)
@click.option(
    "--data",
    metavar="FILE...",
    multiple=True,
    help="Judged documents.\f LETOR, CSV, TSV or Parquet; several files are one data set.",
)
@click.option(
    "-m",
    "--model",
    metavar="MODEL...",
    multiple=True,
    expose_value=False,
    help="Model to measure; each of several is a system.",
)
@click.option(
    "--scores",
    metavar="FILE...",
    multiple=True,
    expose_value=False,
    help="Scores to measure, one per line.\f In the order of the rows; each of several files is a system.",
)
@click.option(
    "--qrels",
    metavar="FILE",
    default=None,
    help="Judged documents as TREC qrels, in place of --data.\f 'qid iter docno label' on each line; "
    "documents with a label below 0 are unjudged.",
)
@click.option(
    "--run",
    metavar="FILE...",
    multiple=True,
    expose_value=False,
    help="TREC run to measure.\f 'qid Q0 docno rank score tag' on each line, with --qrels, or with "
    "--data that has document ids. The scores decide the order, not the ranks.",
)
@click.option(
    "--missing",
    type=Choice(["zero", "skip"]),
    default=None,
    show_default="zero",
    help="How to score judged queries missing from the run.\f zero: as if the run had found no "
    "document; skip: leave them out of the mean.",
)
@click.option(
    "--metric",
    type=MeasureType(),
    metavar="LIST",
    default=[DEFAULT_METRICS],
    multiple=True,
    show_default=DEFAULT_METRICS,
    help="Measures, separated by commas.\f Several lists add up.",
)
@convention_options
@click.option(
    "--weights",
    metavar="FILE",
    default=None,
    help="Weights for the mean.\f One number per query, or one per row (a query gets the mean of its rows).",
)
@click.option(
    "--per-query",
    metavar="FILE",
    default=None,
    help="Write the measures of each query to FILE.\f FILE is tab-separated: a header, then a line per "
    "query with its id and each value, n/a if the query is left out; with several systems, the "
    "name of the system comes first. If the name ends in .jsonl or .ndjson, each line is a JSON "
    "object. With - the lines go to standard output in place of the report.",
)
@click.option(
    "--by",
    "groups",
    metavar="FILE",
    default=None,
    help="Also measure groups of queries.\f 'qid TAB group' on each line of FILE.",
)
@strict_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every digit, not the table.")
@click.option(
    "--html",
    metavar="FILE",
    default=None,
    help="Also write a page for a browser.\f It shows the measures with their intervals, NDCG@k by k, "
    "queries by value, comparisons, groups and conventions, and holds all numbers as JSON; it "
    "needs no other file and no network. Writing it needs matplotlib (pip install matplotlib). "
    "With - it goes to standard output in place of the report.",
)
@click.option(
    "--train-report",
    metavar="FILE",
    default=None,
    help="Show a training run on the page.\f FILE is a report of lmart train --report; the page shows "
    "its learning curves and importance of features.",
)
@statistics_options
@cluster_options(
    "Measure on the workers of a Dask cluster.\f The output has the same bytes. The workers read the files; a "
    "name may be a pattern in quotes, such as 'part-*.svm'."
)
@data_options
@threads_option
@quiet_option
@packed("inputs", EvalInputs, _names(EvalInputs))
@packed("measure_options", MeasureOptions, _names(MeasureOptions))
@packed("output", EvalOutput, _names(EvalOutput))
def command(
    inputs: EvalInputs,
    measure_options: MeasureOptions,
    statistics_options: StatisticsOptions,
    output: EvalOutput,
    cluster: ClusterOptions,
    read_options: ReadOptions,
    threads: int | None,
    quiet: int,
) -> None:
    """Measure a ranking; the help text is HELP.

    inputs          : what is measured
    measure_options : how it is measured
    statistics_options : how intervals and comparisons are drawn
    output          : what is written
    cluster         : the workers of a cluster, if it is measured on some
    read_options    : how files are read
    threads         : to use; None: all of this process
    quiet           : how often --quiet is given
    """
    paths = check_usage(inputs, output, read_options, cluster)
    statistics_options.check_usage(len(inputs.systems), output.is_reported)
    measures = inputs.with_run_conventions(measure_options.measures(output.html is not None))

    # Only now, as these load numpy and numba.
    from lmart.cli import eval_run
    from lmart.cli.eval_page import PageRequest
    from lmart.cli.eval_systems import EvalJob
    from lmart.streams import check_output

    for path in output.paths:
        check_output(path, paths)
    console = Console(quiet)
    page = None if output.html is None else PageRequest.of(output.html, output.train_report, measures)
    count = thread_count(threads, console.notice)
    if cluster.on_this_machine:
        compile_ahead("eval", count)
    with WorkerPool(count) as pool:
        computed = measures if page is None else page.computed
        job = EvalJob(inputs, computed, measure_options.gain_given_by, read_options, pool, console)
        result = whole = eval_run.evaluate(job, cluster, output.paths)
        if page is not None:
            result = page.without_cutoffs(whole)
        statistics = eval_run.draw_statistics(result, statistics_options, pool) if output.is_reported else None
        html = None if page is None or statistics is None else page.render(whole, result, statistics, pool)
    eval_run.write(result, statistics, output, html)
