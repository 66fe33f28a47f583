"""What `lmart eval` does after its options are checked: measuring, in `eval_systems` and `eval_runs`, and output."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from lmart.cli.eval_request import EvalOutput, StatisticsOptions
from lmart.cli.eval_runs import evaluate_runs
from lmart.cli.eval_systems import EvalJob, evaluate_data
from lmart.cli.options.shared import ClusterOptions
from lmart.cli.signals import flush_output
from lmart.cli.terminal.eval import print_comparisons, print_result
from lmart.formats.results.query_measures import per_query_lines
from lmart.measures.comparing import SystemStatistics, statistics_of
from lmart.measures.results import EvaluationResult
from lmart.streams import AtomicOutputs
from lmart.threads import WorkerPool


def evaluate(job: EvalJob, cluster: ClusterOptions, outputs: Sequence[str]) -> EvaluationResult:
    """Read all inputs and return the measures of each system."""
    if cluster.dask is not None:
        from lmart.cli.eval_cluster import evaluate_parts
        from lmart.distributed.cluster import connected

        with connected(cluster.address, cluster.dask_security, job.pool.threads) as workers:
            return evaluate_parts(job, workers, outputs)
    return evaluate_runs(job) if "run" in job.inputs.kinds else evaluate_data(job)


def draw_statistics(result: EvaluationResult, options: StatisticsOptions, pool: WorkerPool) -> SystemStatistics:
    """Return intervals and comparisons of the measures."""
    return statistics_of(result, options.resampling, pool, options.compare, options.all_pairs)


def write(
    result: EvaluationResult, statistics: SystemStatistics | None, output: EvalOutput, html: str | None = None
) -> None:
    """Write the measures of each query and the page to their files, and the report to standard output.

    result     : the measures
    statistics : their intervals and comparisons; None when there is no report
    output     : where they go
    html       : the page; None: none is asked for
    """
    with AtomicOutputs() as files:
        if output.per_query is not None:
            out = files.open(output.per_query)
            for line in per_query_lines(result, output.per_query):
                out.write(line)
        if output.html is not None and html is not None:
            files.open(output.html).write(html)
        if output.as_json:
            content = result.to_json()
            if statistics is not None:
                statistics.add_to(content, result)
            click.echo(json.dumps(content, allow_nan=False))
        elif "-" not in (output.per_query, output.html):
            print_result(result, statistics)
            if statistics is not None and statistics.comparisons:
                print_comparisons(result, statistics)
        flush_output()  # an older file of measures stays when the report is lost
