"""The stages of `lmart eval` after its options are checked: measuring, in `eval_systems`, and output."""

from __future__ import annotations

import json

import click

from lmart.cli.eval_request import EvalOutput
from lmart.cli.eval_systems import EvalJob, evaluate_data
from lmart.cli.signals import flush_output
from lmart.cli.terminal.eval_report import per_query_lines, print_result
from lmart.measures.system_evaluation import EvaluationResult
from lmart.streams import AtomicOutputs


def evaluate(job: EvalJob) -> EvaluationResult:
    """Read all inputs and return the measures of each system.

    job : what is measured, and how
    """
    return evaluate_data(job)


def write(result: EvaluationResult, output: EvalOutput) -> None:
    """Write the measures of each query to their file, and the report to standard output.

    result : the measures
    output : where they go
    """
    with AtomicOutputs() as files:
        if output.per_query is not None:
            out = files.open(output.per_query)
            for line in per_query_lines(result):
                out.write(line)
        # Further reports of `result` come here: files before this line, keys of the JSON and parts of the table below.
        if output.as_json:
            click.echo(json.dumps(result.to_json(), allow_nan=False))
        elif output.per_query != "-":
            print_result(result)
        flush_output()  # an older file of measures stays when the report is lost
