"""lmart predict: score rows with a model, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lmart.cli.command import HelpfulCommand
from lmart.cli.compile import compile_ahead
from lmart.cli.options.declare import group
from lmart.cli.options.shared import (
    ClusterOptions,
    Running,
    check_inputs,
    cluster_options,
    data_options,
    running_options,
)
from lmart.cli.predict_request import PredictInputs, PredictOutput
from lmart.cli.terminal.console import Console
from lmart.errors import OutputError
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import RESULT_FORMATS
from lmart.memory import keep_memory_constant

if TYPE_CHECKING:
    from lmart.array_types import Float64Array
    from lmart.formats.documents.blocks import RowBlock
    from lmart.formats.results.predictions import RowExplanations

HELP = """Score each row of --data with a model, in the order of the rows.

Scores are unbounded numbers, and comparable only within a query: higher ranks first, and rows of equal score keep
their order. Labels and query ids may be missing."""

EPILOG = """\b
Examples:
  lmart predict -m model.json --data test.svm -o scores.txt
  lmart predict -m model.json --data test.svm --format tsv --top 3
  lmart predict -m model.json --data test.svm --format trec -o run.txt
  lmart predict -m model.json --data - --format jsonl --explain < test.svm
  lmart predict -m model.json --data test.svm --why 161 1 2
  lmart predict -m model.json --data 't*.svm' -o '*.scores' --dask local:2
"""


@click.command("predict", cls=HelpfulCommand, short_help="Score rows with a model.", help=HELP, epilog=EPILOG)
@group("inputs", PredictInputs)
@group("output", PredictOutput)
@cluster_options(
    "Score on the workers of a Dask cluster.",
    "They read the files of --data, and write one file for each, with the same bytes.",
)
@data_options
@running_options
def command(
    inputs: PredictInputs, output: PredictOutput, cluster: ClusterOptions, read_options: ReadOptions, running: Running
) -> None:
    """Score rows; the help text is HELP."""
    output.check_usage()
    paths = inputs.paths(read_options)
    check_inputs(paths, read_options)
    cluster.check_usage(output.of_one_process(read_options), paths)
    if cluster.dask is not None:
        output.check_parts()

    keep_memory_constant()
    console = Console(running.quiet)
    read_options = output.reading(read_options, inputs.strict)
    count = running.thread_count(console)
    if cluster.dask is None:
        _predict(inputs, output, read_options, count, console)
        return
    from lmart.cli.predict_cluster import predict_parts
    from lmart.distributed.cluster import connected

    if cluster.on_this_machine:
        compile_ahead("predict", count)
    with connected(cluster.address, cluster.dask_security, count) as workers:
        predict_parts(inputs, output, read_options, workers, console)


def _predict(
    inputs: PredictInputs, output: PredictOutput, read_options: ReadOptions, threads: int, console: Console
) -> None:
    """Score rows in this process."""
    # Only now, as these load numpy and numba.
    from lmart.formats.documents.reading import for_models, open_rows
    from lmart.formats.models.model_files import read_model
    from lmart.formats.results.predictions import RowExplanations
    from lmart.model import score_stream
    from lmart.scoring.explain import Explainer
    from lmart.scoring.feature_matching import FeatureMatcher
    from lmart.scoring.scorer import Scorer
    from lmart.streams import check_output
    from lmart.threads import WorkerPool

    check_output(output.path, inputs.paths(read_options))
    ensemble = read_model(inputs.model, tell=console.notice)
    explainer = Explainer(ensemble, inputs.model) if output.explain or output.why is not None else None
    scorer, matcher = Scorer(ensemble), FeatureMatcher(ensemble)
    read_options = for_models(read_options, [ensemble]).telling(
        console.notice, console.warning, console.reading("scoring", prints=output.path == "-")
    )
    warnings: list[str] = []
    compile_ahead("predict", threads)
    with WorkerPool(threads) as pool, open_rows(inputs.data, read_options, pool) as reader:
        if output.why is not None and explainer is not None:
            from lmart.cli.terminal.explain import print_why

            print_why(output.why, scorer, explainer, matcher, reader, pool, read_options.group_by_qid, inputs.strict)
        else:
            explanations = None if explainer is None else RowExplanations(explainer, matcher, pool)
            scored_blocks = score_stream(scorer, matcher, reader, pool, inputs.strict)
            warnings = _write(scored_blocks, output, inputs.data, read_options, explanations)
            console.done(output.written(console.rows_read), output.path)
    for text in (*matcher.warnings(inputs.data), *warnings):
        console.warning(text)


def _write(
    scored_blocks: Iterator[tuple[RowBlock, Float64Array]],
    output: PredictOutput,
    source: str,
    read_options: ReadOptions,
    explanations: RowExplanations | None,
) -> list[str]:
    """Write the scores of each block as soon as it is scored; return warnings."""
    from lmart.formats.results.predictions import PredictionLayout, write_scored
    from lmart.streams import AtomicOutput

    scattered = read_options.group_by_qid
    layout = PredictionLayout(source, output.top, scattered, output.tag, explanations, read_options.warning)
    with AtomicOutput(output.out) as result:
        writer = RESULT_FORMATS[output.form].load_writer(output.out, OutputError)(result, layout)
        write_scored(scored_blocks, writer, result)
        return [] if writer.repetition is None else [writer.repetition.warning(source)]
