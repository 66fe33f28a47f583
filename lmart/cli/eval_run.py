"""The stages of `lmart eval` after its inputs are read: measures of the model, scores, evaluation, output."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from lmart.array_types import Float64Array
from lmart.cli.eval_request import EvalOutput
from lmart.cli.signals import flush_output
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.eval_report import per_query_lines, print_report
from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, ModelError, SettingsError, input_name
from lmart.formats.metadata_files import Weights, read_weights
from lmart.formats.results.scores import read_scores
from lmart.gains import Gain, refuse_labels_above
from lmart.measures import Evaluator, Measure
from lmart.measures.evaluation import EvaluationReport
from lmart.scoring.ensemble import Ensemble
from lmart.streams import AtomicOutputs
from lmart.threads import WorkerPool


def with_gain_of(
    ensemble: Ensemble, path: str, measures: tuple[Measure, ...], given: bool, console: Console
) -> tuple[Measure, ...]:
    """Return the measures with the model's gain, or as they are, with a notice, when another gain was given.

    ensemble : the model
    path     : its file
    measures : to be computed
    given    : --gain is given
    console  : where the notice goes
    """
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
    ensemble: Ensemble, measures: tuple[Measure, ...], dataset: RankingDataset, console: Console
) -> int | None:
    """Return the largest label of err that the model was trained with.

    None when it names none, or the data goes beyond it, which is warned of.

    ensemble : the model
    measures : to be computed
    dataset  : what is measured
    console  : where the warning goes
    """
    scale = ensemble.settings.get("largest_label")
    naming_none = [one for one in measures if one.kind.uses_label_scale and one.largest_label is None]
    if type(scale) is not int or scale < 1 or not naming_none:
        return None
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
        raise _at(fault, dataset.source) from None


def evaluate(evaluator: Evaluator, scores: Float64Array, dataset: RankingDataset) -> EvaluationReport:
    """Return the measures of the scores; DataError names the data.

    evaluator : of the data
    scores    : float64[n_documents]
    dataset   : what is measured
    """
    try:
        return evaluator.evaluate(scores)
    except DataError as fault:
        raise _at(fault, dataset.source) from None


def _at(fault: DataError, path: str) -> DataError:
    return fault if fault.path is not None else DataError(fault.message, path, fault.line, fault.more)


def score(
    ensemble: Ensemble, dataset: RankingDataset, pool: WorkerPool, console: Console, strict: bool
) -> Float64Array:
    """Return the scores of the model, with warnings of features that only one of data and model has.

    ensemble : the model
    dataset  : what is scored
    pool     : the workers
    console  : where warnings go
    strict   : refuse data whose features are not those of the model
    """
    from lmart.scoring.feature_matching import match_dataset
    from lmart.scoring.scorer import Scorer

    matcher = match_dataset(ensemble, dataset)
    matcher.refuse(dataset.source, strict)
    for text in matcher.warnings(dataset.source):
        console.warning(text)
    return Scorer(ensemble).score(dataset.features, matcher.known_columns, pool)


def scores_of_file(path: str, dataset: RankingDataset) -> Float64Array:
    """Read one score a row, and return them in the order of the data set.

    path    : the file
    dataset : what is measured
    """
    scores = read_scores(path, dataset.n_documents, input_name(dataset.source))
    return scores if dataset.input_rows is None else scores[dataset.input_rows]


def weights_of_file(path: str, dataset: RankingDataset) -> Weights:
    """Read one weight a query, or one a row.

    path    : the file
    dataset : what is measured
    """
    return read_weights(path, dataset.query_offsets, dataset.input_rows)


def write(report: EvaluationReport, dataset: RankingDataset, weights: Weights | None, output: EvalOutput) -> None:
    """Write the measures of each query to their file, and the report to standard output.

    report  : the measures
    dataset : what was measured
    weights : of the means; None: all 1
    output  : where they go
    """
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
