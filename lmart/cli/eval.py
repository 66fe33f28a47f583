"""lmart eval: how well scores, or a model, rank judged queries."""

from __future__ import annotations

from dataclasses import fields, replace

import click

from lmart.cli.compiling import compile_ahead
from lmart.cli.eval_request import WITH_GAIN, WITHOUT_EMPTY, EvalInputs, EvalOutput, MeasureOptions, check_usage
from lmart.cli.options.common import definitions, quiet_option, thread_count, threads_option
from lmart.cli.options.data import data_options
from lmart.cli.options.multi_file import ManyFilesCommand
from lmart.cli.options.packed import packed
from lmart.cli.options.types import GainType
from lmart.cli.terminal.console import Console
from lmart.formats.read_options import ReadOptions
from lmart.measures import EMPTY_CHOICES, KINDS, TIES_CHOICES
from lmart.threads import WorkerPool

DEFAULT_METRICS = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr"

HELP = """Measure how well a model, or scores from elsewhere, rank judged queries.

The report goes to standard output: the mean of each measure over the queries, with the conventions it depends on.
Higher scores rank first; a document is relevant when its label is above 0; ranks count from 1. The measures, in which k
is any number from 1; without [@k] the whole list counts:

\b
{measures}

Queries without a relevant document count as --empty says in every measure but {without_empty}."""

EPILOG = """\b
Examples:
  lmart eval --data data/sample/test.svm --model model.json
  lmart eval --data data/sample/test.svm --model model.json --metric ndcg@10,err@20 --empty skip --per-query queries.tsv
  lmart predict --data data/sample/test.svm --model model.json --out scores.txt
  lmart eval --data data/sample/test.svm --scores scores.txt --ties average --json
"""


def _measures_help() -> str:
    """Return one paragraph of lines, a measure each."""
    return definitions({kind.syntax[0]: kind.meaning for kind in KINDS.values()})


def _once(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Refuse an option that is given twice, where Click would silently take the last."""
    if len(values) > 1:
        raise click.BadParameter("give it once; one ranking is measured at a time")
    return values[0] if values else None


def _names(kind: type[EvalInputs | MeasureOptions | EvalOutput]) -> list[str]:
    return [one.name for one in fields(kind)]


@click.command(
    "eval",
    cls=ManyFilesCommand,
    many=("--data",),
    help=HELP.format(measures=_measures_help(), without_empty=WITHOUT_EMPTY),
    epilog=EPILOG,
    short_help="Measure a ranking.",
)
@click.option(
    "--data",
    metavar="FILE...",
    required=True,
    multiple=True,
    help="Judged documents: LETOR, CSV, TSV or Parquet; several files are one data set.",
)
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    multiple=True,
    callback=_once,
    help="Model whose scores are measured; give this or --scores.",
)
@click.option(
    "--scores",
    metavar="FILE",
    multiple=True,
    callback=_once,
    help="Scores to measure, one number a line, in the order of the rows; give this or --model.",
)
@click.option(
    "--metric",
    metavar="LIST",
    default=[DEFAULT_METRICS],
    multiple=True,
    show_default=DEFAULT_METRICS,
    help="Measures, with commas between them; several lists are one.",
)
@click.option(
    "--gain",
    type=GainType(),
    metavar="exp2|linear|G0,G1,...",
    help=f"Gain of a label in {WITH_GAIN}: 2^label - 1, the label, or a table from label 0 up.  "
    "[default: the model's, else exp2]",
)
@click.option(
    "--empty",
    type=click.Choice(EMPTY_CHOICES),
    default=EMPTY_CHOICES[0],
    show_default=True,
    help=f"What a query without a relevant document counts, in all measures but {WITHOUT_EMPTY}; skip leaves it out of "
    "the mean.",
)
@click.option(
    "--ties",
    type=click.Choice(TIES_CHOICES),
    default=TIES_CHOICES[0],
    show_default=True,
    help="Documents of equal score: in the order of the data, or the mean over all their orders, computed exactly.",
)
@click.option(
    "--weights",
    metavar="FILE",
    default=None,
    help="Weights for the mean: one number a query, or one a row (a query takes its rows' mean).",
)
@click.option(
    "--per-query",
    metavar="FILE",
    default=None,
    help="Write the measures of each query to FILE, tab-separated: a header, then a line a query with its id and each "
    "value, n/a where the query is left out. With - they go to standard output in place of the report.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse data with features that the model does not have, and tables that lack a column of the model.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table; every digit counts.")
@data_options
@threads_option
@quiet_option
@packed("inputs", EvalInputs, _names(EvalInputs))
@packed("measure_options", MeasureOptions, _names(MeasureOptions))
@packed("output", EvalOutput, _names(EvalOutput))
def command(
    inputs: EvalInputs,
    measure_options: MeasureOptions,
    output: EvalOutput,
    read_options: ReadOptions,
    threads: int | None,
    quiet: int,
) -> None:
    """Measure a ranking; the help text is HELP.

    inputs          : what is measured
    measure_options : how it is measured
    output          : what is written
    read_options    : how files are read
    threads         : to use; None: all of this process
    quiet           : how often --quiet is given
    """
    paths = check_usage(inputs, output, read_options)
    measures = measure_options.measures()

    # Only now, as these load numpy and numba.
    from lmart.cli import eval_run
    from lmart.formats.documents.reading import for_models, read_dataset
    from lmart.formats.models.model_files import read_model
    from lmart.streams import check_output

    for path in dict.fromkeys((output.per_query or "-", "-")):
        check_output(path, paths)
    console = Console(quiet)
    count = thread_count(threads, console.notice)
    compile_ahead("eval", count)
    with WorkerPool(count) as pool:
        ensemble = None if inputs.model is None else read_model(inputs.model)
        if ensemble is not None and inputs.model is not None:
            measures = eval_run.with_gain_of(
                ensemble, inputs.model, measures, measure_options.gain is not None, console
            )
        if any(measure.kind.uses_gain for measure in measures):
            read_options = replace(read_options, gain=measures[0].conventions.gain)
        # Scores need no features, so no column of a table is parsed for them.
        read_options = for_models(read_options, [] if ensemble is None else [ensemble])
        read_options = read_options.telling(console.notice, console.warning, console.reading())
        dataset = read_dataset(inputs.data, read_options, pool)
        eval_run.warn_of_single_documents(dataset, console)
        weights = None if inputs.weights is None else eval_run.weights_of_file(inputs.weights, dataset)
        scale = None if ensemble is None else eval_run.label_scale(ensemble, measures, dataset, console)
        evaluator = eval_run.prepare(dataset, measures, pool, weights, scale)
        if ensemble is not None:
            scores = eval_run.score(ensemble, dataset, pool, console, inputs.strict)
        else:
            scores = eval_run.scores_of_file(inputs.scores or "", dataset)
        report = eval_run.evaluate(evaluator, scores, dataset)
    eval_run.write(report, dataset, weights, output)
