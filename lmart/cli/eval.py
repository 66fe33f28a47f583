"""lmart eval: how well scores, or a model, rank judged queries."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import click

from lmart.cli.options.common import definitions, quiet_option, thread_count, threads_option
from lmart.cli.options.data import data_options, refuse_two_standard_inputs
from lmart.cli.options.multi_file import ManyFilesCommand
from lmart.cli.options.packed import given_on_command_line, packed
from lmart.cli.options.types import GainType
from lmart.cli.signals import flush_output
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.eval_report import per_query_lines, print_report
from lmart.errors import DataError, ModelError, SettingsError
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.measures import (
    EMPTY_CHOICES,
    MEANINGS,
    NEED_CUTOFF,
    TIES_CHOICES,
    Conventions,
    Measure,
    parse_measures,
)
from lmart.threads import WorkerPool

if TYPE_CHECKING:
    from lmart.array_types import Float64Array
    from lmart.data.dataset import RankingDataset
    from lmart.formats.metadata_files import Weights
    from lmart.measures.evaluation import EvaluationReport, Evaluator
    from lmart.scoring.ensemble import Ensemble

WITH_GAIN = {"ndcg", "dcg"}
DEFAULT_METRICS = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr"

HELP = """Measure how well a model, or scores from elsewhere, rank judged queries.

The report goes to standard output: the mean of each measure over the queries, with the conventions it depends on.
Higher scores rank first; a document is relevant when its label is above 0; ranks count from 1. The measures, in which k
is any number from 1; without [@k] the whole list counts:

\b
{measures}

Queries without a relevant document count as --empty says in every measure but dcg."""

EPILOG = """\b
Examples:
  lmart eval --data data/sample/test.svm --model model.json
  lmart eval --data data/sample/test.svm --model model.json --metric ndcg@10,err@20 --empty skip --per-query queries.tsv
  lmart predict --data data/sample/test.svm --model model.json --out scores.txt
  lmart eval --data data/sample/test.svm --scores scores.txt --ties average --json
"""


def _measures_help() -> str:
    """Return one paragraph of lines, a measure each."""
    spelled = ((f"{name}@k" if name in NEED_CUTOFF else f"{name}[@k]", meaning) for name, meaning in MEANINGS.items())
    return definitions(dict(spelled))


def _once(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Refuse an option that is given twice, where Click would silently take the last."""
    if len(values) > 1:
        raise click.BadParameter("give it once; one ranking is measured at a time")
    return values[0] if values else None


@dataclass(frozen=True)
class EvalInputs:
    """What is measured, one field an option: `data` ranked by a model, or by a file of scores."""

    data: tuple[str, ...]
    model: str | None
    scores: str | None
    weights: str | None
    strict: bool


@dataclass(frozen=True)
class MeasureOptions:
    """How it is measured, one field an option; gain None: that of the model, else exp2."""

    metric: tuple[str, ...]
    gain: Gain | None
    empty: str
    ties: str

    def measures(self) -> tuple[Measure, ...]:
        """Return the measures; SettingsError when there is no such measure, a usage error when an option is idle."""
        measures = parse_measures(",".join(self.metric), Conventions(self.gain or Gain(), self.empty, self.ties))
        _refuse_idle(measures)
        return measures


@dataclass(frozen=True)
class EvalOutput:
    """What is written, one field an option."""

    per_query: str | None
    as_json: bool


def _names(kind: type[EvalInputs | MeasureOptions | EvalOutput]) -> list[str]:
    return [one.name for one in fields(kind)]


@click.command(
    "eval",
    cls=ManyFilesCommand,
    many=("--data",),
    help=HELP.format(measures=_measures_help()),
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
    help="Gain of a label in ndcg and dcg: 2^label - 1, the label, or a table from label 0 up.  "
    "[default: the model's, else exp2]",
)
@click.option(
    "--empty",
    type=click.Choice(EMPTY_CHOICES),
    default=EMPTY_CHOICES[0],
    show_default=True,
    help="What a query without a relevant document counts, in all measures but dcg; skip leaves it out of the mean.",
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
    """Measure a ranking; the help text is HELP."""
    paths = _check_usage(inputs, output, read_options)
    measures = measure_options.measures()

    from lmart.formats.registry import for_models, read_dataset, read_model
    from lmart.streams import check_output

    for path in dict.fromkeys((output.per_query or "-", "-")):
        check_output(path, paths)
    console = Console(quiet)
    with WorkerPool(thread_count(threads, console.notice)) as pool:
        ensemble = None if inputs.model is None else read_model(inputs.model)
        if ensemble is not None and inputs.model is not None:
            measures = _with_gain_of(ensemble, inputs.model, measures, measure_options.gain is not None, console)
        if any(measure.name in WITH_GAIN for measure in measures):
            read_options = replace(read_options, gain=measures[0].conventions.gain)
        # Scores need no features, so no column of a table is parsed for them.
        read_options = for_models(read_options, [] if ensemble is None else [ensemble])
        dataset = read_dataset(inputs.data, read_options.telling(console.notice, console.warning), pool)
        _warn_of_single_documents(dataset, console)
        weights = None if inputs.weights is None else _read_weights(inputs.weights, dataset)
        scale = None if ensemble is None else _label_scale(ensemble, measures, dataset, console)
        evaluator = _prepare(dataset, measures, pool, weights, scale)
        if ensemble is not None:
            scores = _score(ensemble, dataset, pool, console, inputs.strict)
        else:
            scores = _read_scores(inputs.scores or "", dataset)
        report = _evaluate(evaluator, scores, dataset)
    _write(report, dataset, weights, output)


def _check_usage(inputs: EvalInputs, output: EvalOutput, read_options: ReadOptions) -> list[str]:
    """Return all files that are read; a usage error when options do not go together."""
    model, scores = inputs.model, inputs.scores
    if (model is None) == (scores is None):
        raise click.UsageError("give one of --model and --scores" + ("" if model is None else ", not both"))
    if inputs.strict and model is None:
        raise click.UsageError("--strict needs --model: scores are measured without looking at features")
    if output.as_json and output.per_query == "-":
        raise click.UsageError("--json and --per-query - both write to standard output; give --per-query a file")
    paths = [
        path for path in (*inputs.data, model, scores, inputs.weights, read_options.query_sizes) if path is not None
    ]
    refuse_two_standard_inputs(paths)
    return paths


def _write(report: EvaluationReport, dataset: RankingDataset, weights: Weights | None, output: EvalOutput) -> None:
    """Write the measures of each query to their file, and the report to standard output."""
    from lmart.streams import AtomicOutputs

    given_per = None if weights is None else weights.given_per
    with AtomicOutputs() as files:
        if output.per_query is not None:
            out = files.open(output.per_query)
            for line in per_query_lines(report, dataset.query_ids):
                out.write(line)
        if output.as_json:
            content = report.to_json()
            if given_per is not None:
                content["conventions"]["weights"] = given_per
            click.echo(json.dumps(content, allow_nan=False))
        elif output.per_query != "-":
            print_report(report, given_per)
        flush_output()  # an older file of measures stays when the report is lost


def _refuse_idle(measures: tuple[Measure, ...]) -> None:
    """Refuse conventions that are given on the command line but that no measure depends on."""
    names = {measure.name for measure in measures}
    if given_on_command_line("gain") and not names & WITH_GAIN:
        raise click.UsageError("--gain counts in ndcg and dcg only, and --metric has neither; leave it out")
    if given_on_command_line("empty") and names == {"dcg"}:
        raise click.UsageError("--empty counts in all measures but dcg, and --metric has no other; leave it out")


def _with_gain_of(
    ensemble: Ensemble, path: str, measures: tuple[Measure, ...], given: bool, console: Console
) -> tuple[Measure, ...]:
    """Return the measures with the model's gain, or as they are, with a notice, when another gain was given."""
    try:
        gain = Gain.parse(ensemble.gain)
    except SettingsError as fault:
        raise ModelError(f"{fault.message}; give --gain", path) from None
    if not given:
        return tuple(replace(one, conventions=replace(one.conventions, gain=gain)) for one in measures)
    used = measures[0].conventions.gain
    if used != gain:
        console.notice(f"measuring with the gain {used}, as --gain says; the model was trained with {gain}")
    return measures


def _warn_of_single_documents(dataset: RankingDataset, console: Console) -> None:
    if dataset.n_queries == dataset.n_documents > 1:
        console.warning(
            "every query has one document, so no ranking can be better than another; is the query id right?"
        )


def _label_scale(
    ensemble: Ensemble, measures: tuple[Measure, ...], dataset: RankingDataset, console: Console
) -> int | None:
    """Return the largest label of err that the model was trained with, None when it names none or the data goes
    beyond it, with a warning.
    """
    scale = ensemble.settings.get("largest_label")
    if type(scale) is not int or scale < 1 or all(one.name != "err" or one.largest_label for one in measures):
        return None
    if dataset.labels.max(initial=0.0) > scale:
        console.warning(
            f"the data has labels above {scale}, the largest of err in training; err goes by those of the data"
        )
        return None
    return scale


def _prepare(
    dataset: RankingDataset,
    measures: tuple[Measure, ...],
    pool: WorkerPool,
    weights: Weights | None,
    scale: int | None,
) -> Evaluator:
    from lmart.gains import refuse_labels_above
    from lmart.measures import Evaluator

    try:
        for one in measures:
            if one.largest_label is not None:
                refuse_labels_above(dataset.labels, one.largest_label, dataset.input_rows)
        per_query = None if weights is None else weights.per_query
        return Evaluator(dataset.labels, dataset.query_offsets, measures, pool, per_query, scale)
    except DataError as fault:
        raise _at(fault, dataset.source) from None


def _evaluate(evaluator: Evaluator, scores: Float64Array, dataset: RankingDataset) -> EvaluationReport:
    try:
        return evaluator.evaluate(scores)
    except DataError as fault:
        raise _at(fault, dataset.source) from None


def _at(fault: DataError, path: str) -> DataError:
    return fault if fault.path is not None else DataError(fault.message, path, fault.line, fault.more)


def _score(
    ensemble: Ensemble, dataset: RankingDataset, pool: WorkerPool, console: Console, strict: bool
) -> Float64Array:
    from lmart.scoring.feature_matching import match_dataset
    from lmart.scoring.scorer import Scorer

    matcher = match_dataset(ensemble, dataset)
    matcher.refuse(dataset.source, strict)
    for text in matcher.warnings(dataset.source):
        console.warning(text)
    return Scorer(ensemble).score(dataset.features, matcher.known_columns, pool)


def _read_scores(path: str, dataset: RankingDataset) -> Float64Array:
    from lmart.formats.results.scores import read_scores

    scores = read_scores(path, dataset.n_documents, _called(dataset.source))
    return scores if dataset.input_rows is None else scores[dataset.input_rows]


def _called(source: str) -> str:
    return "standard input" if source == "-" else source


def _read_weights(path: str, dataset: RankingDataset) -> Weights:
    from lmart.formats.metadata_files import read_weights

    return read_weights(path, dataset.query_offsets, dataset.input_rows)
