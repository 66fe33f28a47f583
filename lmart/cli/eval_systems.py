"""Measuring models and files of scores over one set of judged documents, which is read once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from lmart.array_types import Float64Array
from lmart.cli.eval_request import EvalInputs
from lmart.cli.terminal.console import Console
from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, ModelError, SettingsError, input_name
from lmart.formats.documents.reading import for_models, read_dataset
from lmart.formats.metadata_files import Weights, read_weights
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.results.scores import read_scores
from lmart.gains import Gain, refuse_labels_above
from lmart.measures import Evaluator, Measure
from lmart.measures.evaluation import EvaluationReport
from lmart.measures.system_evaluation import EvaluationResult, SystemEvaluation, SystemKind, distinct_names
from lmart.scoring.ensemble import Ensemble
from lmart.threads import WorkerPool


@dataclass(frozen=True)
class EvalJob:
    """What one run of eval has to do.

    inputs        : what is measured
    measures      : to be computed
    is_gain_given : whether the gain of the measures was asked for, so that no model's takes its place
    read_options  : how files are read
    pool          : the workers
    console       : where notices and warnings go
    """

    inputs: EvalInputs
    measures: tuple[Measure, ...]
    is_gain_given: bool
    read_options: ReadOptions
    pool: WorkerPool
    console: Console


def evaluate_data(job: EvalJob) -> EvaluationResult:
    """Read the data, and return the measures of each model and file of scores.

    job : what is measured, and how
    """
    inputs, console = job.inputs, job.console
    models = {one.path: read_model(one.path) for one in inputs.systems if one.kind == "model"}
    measures = with_gain_of(models, job.measures, job.is_gain_given, console)
    read_options = job.read_options
    if any(measure.kind.uses_gain for measure in measures):
        read_options = replace(read_options, gain=measures[0].conventions.gain)
    # Scores need no features, so no column of a table is parsed for them.
    read_options = for_models(read_options, list(models.values()))
    dataset = read_dataset(inputs.data, read_options.telling(console.notice, console.warning), job.pool)
    warn_of_single_documents(dataset, console)
    weights = (
        None if inputs.weights is None else read_weights(inputs.weights, dataset.query_offsets, dataset.input_rows)
    )
    scale = label_scale(models, measures, dataset, console)
    evaluator = prepare(dataset, measures, job.pool, weights, scale)
    systems = []
    names = distinct_names([one.path for one in inputs.systems])
    for name, given in zip(names, inputs.systems, strict=True):
        if given.kind == "model":
            several = len(models) > 1
            scores = score(models[given.path], dataset, job, given.path if several else "")
        else:
            scores = scores_of_file(given.path, dataset)
        report = measure_scores(evaluator, scores, dataset)
        systems.append(SystemEvaluation(name, cast(SystemKind, given.kind), given.path, report))
    return EvaluationResult(
        dataset.query_ids,
        tuple(systems),
        inputs.data,
        "data",
        None if weights is None else weights.per_query,
        None if weights is None else weights.given_per,
    )


def with_gain_of(
    models: dict[str, Ensemble], measures: tuple[Measure, ...], given: bool, console: Console
) -> tuple[Measure, ...]:
    """Return the measures with the gain of the models, or as they are, with a notice, when another gain was given.

    models   : by file
    measures : to be computed
    given    : a gain was asked for
    console  : where the notice goes
    ModelError when models of different gains leave open which one counts.
    """
    gains: dict[str, Gain] = {}
    for path, ensemble in models.items():
        try:
            gains[path] = Gain.parse(ensemble.gain)
        except SettingsError as fault:
            raise ModelError(f"{fault.message}; give --gain", path) from None
    used = measures[0].conventions.gain
    if given:
        for path, gain in gains.items():
            if used != gain:
                which = "the model" if len(models) == 1 else path
                console.notice(f"measuring with the gain {used}, as --gain says; {which} was trained with {gain}")
        return measures
    if not gains:
        return measures
    first, gain = next(iter(gains.items()))
    for path, other in gains.items():
        if other != gain and any(one.kind.uses_gain for one in measures):
            what = f"was trained with the gain {other}, and {input_name(first)} with {gain}"
            raise ModelError(f"{what}; say with --gain which one to measure with", path)
    return tuple(replace(one, conventions=replace(one.conventions, gain=gain)) for one in measures)


def warn_of_single_documents(dataset: RankingDataset, console: Console) -> None:
    """Warn when every query has a single document.

    dataset : what is measured
    console : where the warning goes
    """
    if dataset.n_queries == dataset.n_documents > 1:
        console.warning(
            "every query has one document, so no ranking can be better than another; is the query id right?"
        )


def label_scale(
    models: dict[str, Ensemble], measures: tuple[Measure, ...], dataset: RankingDataset, console: Console
) -> int | None:
    """Return the largest label of err that the models were trained with.

    None when they name none, or the data goes beyond it, which is warned of.

    models   : by file
    measures : to be computed
    dataset  : what is measured
    console  : where the warning goes
    ModelError when the models name different ones.
    """
    naming_none = [one for one in measures if one.kind.uses_label_scale and one.largest_label is None]
    named = {path: model.settings.get("largest_label") for path, model in models.items()}
    scales = {path: scale for path, scale in named.items() if type(scale) is int and scale >= 1}
    if not scales or not naming_none:
        return None
    first, scale = next(iter(scales.items()))
    for path, other in scales.items():
        if other != scale:
            what = f"was trained with labels up to {other}, and {input_name(first)} with labels up to {scale}"
            raise ModelError(f"{what}; say which in the measure, as in err@10(max={max(scale, other)})", path)
    if dataset.labels.max(initial=0.0) > scale:
        console.warning(
            f"the data has labels above {scale}, the largest of err in training; err goes by those of the data"
        )
        return None
    return scale


def prepare(
    dataset: RankingDataset,
    measures: tuple[Measure, ...],
    pool: WorkerPool,
    weights: Weights | None,
    scale: int | None,
) -> Evaluator:
    """Return the evaluator of the data; DataError when labels do not fit the measures.

    dataset  : what is measured
    measures : to be computed
    pool     : the workers
    weights  : for the means; None: all 1
    scale : the largest label of err; None: that of the data
    """
    try:
        for one in measures:
            if one.largest_label is not None:
                refuse_labels_above(dataset.labels, one.largest_label, dataset.input_rows)
        per_query = None if weights is None else weights.per_query
        return Evaluator(dataset.labels, dataset.query_offsets, measures, pool, per_query, scale)
    except DataError as fault:
        raise at(fault, dataset.source) from None


def measure_scores(evaluator: Evaluator, scores: Float64Array, dataset: RankingDataset) -> EvaluationReport:
    """Return the measures of the scores; DataError names the data.

    evaluator : of the data
    scores    : float64[n_documents]
    dataset   : what is measured
    """
    try:
        return evaluator.evaluate(scores)
    except DataError as fault:
        raise at(fault, dataset.source) from None


def at(fault: DataError, path: str) -> DataError:
    """Return the fault as one of a file, unless it names one."""
    return fault if fault.path is not None else DataError(fault.message, path, fault.line, fault.more)


def score(ensemble: Ensemble, dataset: RankingDataset, job: EvalJob, called: str) -> Float64Array:
    """Return the scores of the model, with warnings of features that only one of data and model has.

    ensemble : the model
    dataset  : what is scored
    job      : says whether features must be the same, and where warnings go
    called   : what warnings call the model, when there are several; '': there is one
    """
    from lmart.scoring.feature_matching import match_dataset
    from lmart.scoring.scorer import Scorer

    matcher = match_dataset(ensemble, dataset)
    matcher.refuse(dataset.source, job.inputs.strict)
    for text in matcher.warnings(dataset.source):
        job.console.warning(f"{text} (model {called})" if called else text)
    return Scorer(ensemble).score(dataset.features, matcher.known_columns, job.pool)


def scores_of_file(path: str, dataset: RankingDataset) -> Float64Array:
    """Read one score a row, and return them in the order of the data set.

    path    : the file
    dataset : what is measured
    """
    scores = read_scores(path, dataset.n_documents, input_name(dataset.source))
    return scores if dataset.input_rows is None else scores[dataset.input_rows]
