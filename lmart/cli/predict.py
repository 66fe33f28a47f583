"""lmart predict: score rows with a model, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from lmart.cli.compiling import compile_ahead
from lmart.cli.help.command import HelpfulCommand
from lmart.cli.options.choice import Choice
from lmart.cli.options.cluster import ClusterOptions, cluster_options
from lmart.cli.options.common import quiet_option, strict_option, thread_count, threads_option
from lmart.cli.options.data import data_options, refuse_two_standard_inputs
from lmart.cli.options.packed import packed
from lmart.cli.options.parsed_line import Once
from lmart.cli.options.types import Whole
from lmart.cli.predict_output import PredictOutput
from lmart.cli.terminal.console import Console
from lmart.errors import OutputError
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import RESULT_FORMATS
from lmart.memory import keep_memory_constant

if TYPE_CHECKING:
    from lmart.array_types import Float64Array
    from lmart.formats.documents.row_blocks import RowBlock
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


def _tag(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.split() != [value] or not value.isprintable():
        raise click.BadParameter("a run's tag is one word without blanks or control characters")
    return value


@click.command(
    "predict",
    cls=HelpfulCommand,
    short_help="Score rows with a model.",
    help=HELP,
    epilog=EPILOG,
)
@click.option(
    "-m",
    "--model",
    cls=Once,
    instead="give one model, and run the command for each",
    metavar="MODEL",
    required=True,
    help="Model file; '-': standard input.",
)
@click.option(
    "--data",
    cls=Once,
    instead="join the files first, or run the command for each",
    metavar="FILE",
    required=True,
    help="Rows to score; '-': standard input.\f With --dask also a pattern, such as 'parts/*.svm.gz'.",
)
@click.option(
    "-o",
    "--out",
    cls=Once,
    metavar="FILE",
    default="-",
    show_default=True,
    help="File for the result; '-': standard output.\f With --dask one file for each file of --data, "
    "such as 'scores/*.txt', in an existing folder.",
)
@click.option(
    "--format",
    "form",
    type=Choice(list(RESULT_FORMATS)),
    default="scores",
    show_default=True,
    help="Format of the scores.\f "
    + " ".join(f"{one.name}: {one.summary}" for one in RESULT_FORMATS.values())
    + " Documents have their ids from the data, or else their number in the query, from 1. A document that occurs "
    "twice in a query is an error in trec, and a warning in tsv and jsonl.",
)
@click.option(
    "--top",
    type=Whole(min=1),
    metavar="K",
    default=None,
    show_default="all",
    help="Write only the best K rows of each query.\f Not with --format scores.",
)
@click.option(
    "--tag", metavar="NAME", default="lmart", show_default=True, callback=_tag, help="Name of the run in --format trec."
)
@click.option(
    "--explain",
    is_flag=True,
    help="Add feature contributions; with --format jsonl.\f Each row gets a base, the same for all "
    "rows, and the contributions of features that are not 0; their sum is the score.",
)
@click.option(
    "--why",
    nargs=3,
    metavar="QID A B",
    default=None,
    help="Print why A ranks above or below B in query QID.\f Instead of scores, lmart prints a table "
    "of the features that decide it. A and B are ids of documents from the data, or their "
    "numbers in the query, from 1.",
)
@strict_option
@cluster_options(
    "Score on the workers of a Dask cluster.\f They read the files of --data, and write one file for each, with "
    "the same bytes."
)
@data_options
@threads_option
@quiet_option
@packed("output", PredictOutput, [one.name for one in fields(PredictOutput)])
def command(
    model: str,
    data: str,
    output: PredictOutput,
    strict: bool,
    cluster: ClusterOptions,
    read_options: ReadOptions,
    threads: int | None,
    quiet: int,
) -> None:
    """Score rows; the help text is HELP.

    model        : the model file
    data         : the file of rows
    output       : what is written, and where
    strict       : refuse data whose features are not those of the model
    cluster      : the workers of a cluster, if they are to score
    read_options : how files are read
    threads      : to use; None: all of this process
    quiet        : how often --quiet is given
    """
    output.check_usage()
    inputs = [model, data, *([read_options.query_sizes] if read_options.query_sizes else [])]
    refuse_two_standard_inputs(inputs)
    cluster.check_usage(output.of_one_process(read_options), inputs)
    if cluster.dask is not None:
        output.check_parts()

    keep_memory_constant()
    console = Console(quiet)
    read_options = output.reading(read_options, strict)
    if cluster.dask is None:
        _predict(model, data, output, strict, read_options, threads, console)
        return
    from lmart.cli.predict_cluster import PartsRequest, predict_parts
    from lmart.distributed.cluster import connected

    count = thread_count(threads, console.notice)
    if cluster.on_this_machine:
        compile_ahead("predict", count)
    with connected(cluster.address, cluster.dask_security, count) as workers:
        predict_parts(PartsRequest(model, data, output, strict, read_options), workers, console)


def _predict(
    model: str,
    data: str,
    output: PredictOutput,
    strict: bool,
    read_options: ReadOptions,
    threads: int | None,
    console: Console,
) -> None:
    """Score rows in this process.

    model        : the model file
    data         : the file of rows
    output       : what is written, and where
    strict       : refuse data whose features are not those of the model
    read_options : how the rows are read
    threads      : to use; None: all of this process
    console      : where messages go
    """
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

    inputs = [model, data, *([read_options.query_sizes] if read_options.query_sizes else [])]
    check_output(output.path, inputs)
    ensemble = read_model(model, tell=console.notice)
    explainer = Explainer(ensemble, model) if output.explain or output.why is not None else None
    scorer, matcher = Scorer(ensemble), FeatureMatcher(ensemble)
    read_options = for_models(read_options, [ensemble]).telling(
        console.notice, console.warning, console.reading("scoring", prints=output.path == "-")
    )
    warnings: list[str] = []
    count = thread_count(threads, console.notice)
    compile_ahead("predict", count)
    with WorkerPool(count) as pool, open_rows(data, read_options, pool) as reader:
        if output.why is not None and explainer is not None:
            from lmart.cli.terminal.explain import print_why

            print_why(output.why, scorer, explainer, matcher, reader, pool, read_options.group_by_qid, strict)
        else:
            explanations = None if explainer is None else RowExplanations(explainer, matcher, pool)
            scored_blocks = score_stream(scorer, matcher, reader, pool, strict)
            warnings = _write(scored_blocks, output, data, read_options, explanations)
            console.done(output.written(console.rows_read), output.path)
    for text in (*matcher.warnings(data), *warnings):
        console.warning(text)


def _write(
    scored_blocks: Iterator[tuple[RowBlock, Float64Array]],
    output: PredictOutput,
    source: str,
    read_options: ReadOptions,
    explanations: RowExplanations | None,
) -> list[str]:
    """Write the scores of each block as soon as it is scored; return warnings.

    scored_blocks : each block of rows with its scores, float64[n]
    output        : what is written, and where
    source        : the input, for messages
    read_options  : how the rows are read
    explanations  : gives the contributions of features; None: they are not asked for
    """
    from lmart.formats.results.predictions import PredictionLayout, write_scored
    from lmart.streams import AtomicOutput

    scattered = read_options.group_by_qid
    layout = PredictionLayout(source, output.top, scattered, output.tag, explanations, read_options.warning)
    with AtomicOutput(output.out) as result:
        writer = RESULT_FORMATS[output.form].load_writer(output.out, OutputError)(result, layout)
        write_scored(scored_blocks, writer, result)
        return [] if writer.repetition is None else [writer.repetition.warning(source)]
