"""How well scores rank judged queries: measures of one ranking, and of several over the same queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import DataSize
from lmart.errors import DataError, ModelError, SettingsError, input_name
from lmart.gains import Gain, grade_scale, refuse_labels_above
from lmart.measures.judgments import Judgments
from lmart.measures.measure import Measure
from lmart.measures.query_kernels import JudgedQueries, RankedQueries
from lmart.measures.results import (
    DataKind,
    EvaluationReport,
    EvaluationResult,
    MeasuredQueries,
    QueryGroup,
    ScaledWeights,
    SystemEvaluation,
    SystemKind,
    label_scales,
    logarithms,
    scaled_weights,
)
from lmart.threads import WorkerPool


class Evaluator:
    """Computes measures of judged queries; `evaluate` may be called many times, but not by two threads at once.

    measures : all with the same conventions
    weights  : one number >= 0 a query, or one a document, whose mean in a query is the query's weight; None: all 1
    scale    : L of a measure of err that names none itself; None: 4, or the largest label when that is more

    DataError when a gain table has no entry for a label, a label is above the L of err, or the weights do not fit.

    >>> labels, offsets = np.array([0.0, 1.0]), np.array([0, 2])
    >>> Evaluator(Judgments(labels, offsets), parse_measures("ndcg@10,mrr")).evaluate(np.array([2.0, 1.0])).values
    {'ndcg@10': 0.6309297535714574, 'mrr': 0.5}
    """

    def __init__(
        self,
        judgments: Judgments,
        measures: Sequence[Measure],
        pool: WorkerPool | None = None,
        weights: Float64Array | None = None,
        scale: int | None = None,
    ) -> None:
        conventions = {measure.conventions for measure in measures}
        if len(conventions) != 1:
            raise ValueError("give at least one measure, and measures of the same conventions")
        self.measures = tuple(measures)
        self.conventions = measures[0].conventions
        if self.conventions.ties == "docid" and judgments.tie_order is None:
            raise ValueError("ties by document id need a tie_order")
        documents = judgments.reversed() if self.conventions.ties == "reverse" else judgments
        self._is_missing = documents.n_ranked == 0
        self._documents = documents.without_unjudged() if self.conventions.unjudged == "remove" else documents
        self.labels, self.query_offsets = documents.labels, documents.query_offsets
        self._scaled = None if weights is None else scaled_weights(weights, self.query_offsets)
        self._own_scale = scale or grade_scale(self.labels)
        scales = label_scales(measures, self._own_scale)
        for largest in set(scales.values()):
            refuse_labels_above(self.labels, largest)
        weights = None if self._scaled is None else self._scaled.per_query / self._scaled.unit
        self._queries = JudgedQueries(self._documents, self.conventions, scales, pool or WorkerPool(1), weights)
        self.empty = self._queries.n_relevant(self.conventions.relevant) == 0
        for measure in measures:
            self._queries.relevance(measure)

    def evaluate(self, scores: Float64Array) -> EvaluationReport:
        """Rank each query's documents by `scores` (float64[n_documents], higher first, no nan) and measure.

        Scores of documents that are not retrieved do not matter. DataError when a score is nan, or a DCG too large for
        a number.
        """
        return self.measure(scores).report(self.measures, self._scaled, self._own_scale)

    def measure(self, scores: Float64Array) -> MeasuredQueries:
        """Rank each query's documents by scores, float64[n_documents], and measure each; DataError for nan."""
        self._queries.rank(self._ranked_scores(scores))
        of_empty = {"zero": 0.0, "one": 1.0, "skip": np.nan}[self.conventions.empty]
        values, unweighted, too_large = {}, {}, {}
        for measure in self.measures:
            with np.errstate(divide="ignore", invalid="ignore"):  # of queries that are empty
                own = measure.kind.compute(RankedQueries(self._queries, measure))
            if measure.kind.relevance == "gain" and not np.isfinite(own).all():
                too_large[str(measure)] = self._largest_label(int(np.argmin(np.isfinite(own))))
            is_empty = np.isnan(own) if measure.kind.counts_empty else np.zeros(len(own), np.bool_)
            own[is_empty] = of_empty
            if self.conventions.missing == "skip":
                own[self._is_missing] = np.nan
            values[str(measure)] = logarithms(own) if measure.kind.is_geometric else own
            if "empty_weight" in measure.kind.conventions and self.conventions.empty_weight == "one":
                unweighted[str(measure)] = is_empty
        return MeasuredQueries(values, unweighted, np.diff(self.query_offsets), self.empty, too_large)

    @property
    def weights(self) -> Float64Array | None:
        """float64[n_queries], weights of the queries, scaled by a power of two to at most 1; None: all 1."""
        return None if self._scaled is None else self._scaled.per_query

    def _ranked_scores(self, scores: Float64Array) -> Float64Array:
        """Return the scores of the ranked documents, in the order of equal scores, as they are compared."""
        if len(scores) != len(self.labels):
            raise ValueError(f"{len(scores)} scores for {len(self.labels)} documents")
        ranked = np.ascontiguousarray(self._documents.ranked(scores), np.float64)
        bad = np.flatnonzero(np.isnan(ranked))
        if len(bad):
            first = int(bad[0] if self._documents.rows is None else self._documents.rows[bad].min())
            raise DataError(f"the score of document {first + 1} is nan; every document needs a score")
        if self.conventions.precision == "single":
            with np.errstate(over="ignore"):
                ranked = ranked.astype(np.float32).astype(np.float64)
        return ranked

    def _largest_label(self, query: int) -> float:
        """Return the largest label of a query, by its place."""
        return float(self.labels[self.query_offsets[query] : self.query_offsets[query + 1]].max())


@dataclass(frozen=True, eq=False)
class Measurement:
    """How documents are measured: over all queries, and over each of some groups of queries.

    weights : float64[n_queries], for the means; None: all 1
    scale   : L of a measure of err that names none itself
    groups  : int64 places of the queries of each group, by its name
    """

    measures: tuple[Measure, ...]
    pool: WorkerPool
    weights: Float64Array | None
    scale: int
    groups: Mapping[str, Int64Array] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        measures: tuple[Measure, ...],
        labels: Float64Array,
        rows: Int64Array | None,
        models: Mapping[str, Trained],
        pool: WorkerPool,
        weights: Float64Array | None,
        warn: Callable[[str], None],
        groups: Mapping[str, Int64Array] | None = None,
    ) -> Measurement:
        """Return how documents with these labels are measured, with one largest label of err for all systems.

        labels   : float64, of all documents, or only those that are above all labels before them
        rows     : int64, their rows of the input; None: as they stand
        models   : that are measured, by what messages call them
        pool     : the workers
        weights  : float64[n_queries], for the means; None: all 1
        warn     : called with a warning
        groups   : int64 places of the queries of each group, by its name
        DataError when a label is above the largest that a measure names or has no gain, ModelError when models
        disagree.
        """
        scale = label_scale(models, measures)
        largest = labels.max(initial=0.0)
        if scale is not None and largest > scale:
            warn(f"the data has labels above {scale}, the largest of err in training; err goes by those of the data")
            scale = None
        for measure in measures:
            if measure.largest_label is not None:
                refuse_labels_above(labels, measure.largest_label, rows)
        if any(measure.kind.uses_gain for measure in measures):
            measures[0].conventions.gain.check_labels(labels)
        return cls(measures, pool, weights, scale or grade_scale(labels), groups or {})

    def evaluator(self, judgments: Judgments) -> Evaluator:
        """Return what measures each query; DataError as `Evaluator`."""
        return Evaluator(judgments, self.measures, self.pool, self.weights, self.scale)

    def result(
        self,
        systems: Iterable[RankedSystem],
        query_ids: Sequence[str],
        data: tuple[str, ...],
        weights_per: str | None = None,
        data_kind: DataKind = "data",
    ) -> EvaluationResult:
        """Return the means of each system over all queries and over each group; DataError when one is too large."""
        evaluated, by_group = [], []
        for name, kind, path, queries, counts in systems:
            evaluated.append(SystemEvaluation(name, kind, path, self.report(queries), counts))
            by_group.append(self.by_group(queries))
        groups = zip(self.groups.items(), zip(*by_group, strict=True), strict=True) if self.groups else ()
        return EvaluationResult(
            query_ids,
            tuple(evaluated),
            data,
            data_kind,
            self.weights,
            weights_per,
            tuple(QueryGroup(name, places, reports) for (name, places), reports in groups),
        )

    def report(self, queries: MeasuredQueries) -> EvaluationReport:
        """Return the means over all queries; DataError when a DCG is too large for a number."""
        return queries.report(self.measures, self._scaled(queries, self.weights), self.scale)

    def by_group(self, queries: MeasuredQueries) -> tuple[EvaluationReport, ...]:
        """Return the means over each group of queries alone; DataError when a DCG is too large for a number."""
        found = []
        for places in self.groups.values():
            own = queries.taken(places)
            weights = None if self.weights is None else self.weights[places]
            found.append(own.report(self.measures, self._scaled(own, weights), self.scale))
        return tuple(found)

    def _scaled(self, queries: MeasuredQueries, weights: Float64Array | None) -> ScaledWeights | None:
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(queries.sizes)])
        return None if weights is None else scaled_weights(weights, offsets)


class RankedSystem(NamedTuple):
    """A system whose queries are measured; the fields are those of SystemEvaluation, but for its means."""

    name: str
    kind: SystemKind
    path: str
    queries: MeasuredQueries
    counts: dict[str, int]


class Trained(Protocol):
    """A model, as far as measures depend on its training."""

    @property
    def gain(self) -> str | None:
        """The gain, as text; None when the model does not say."""

    @property
    def largest_label(self) -> int | None:
        """The largest label of err; None when the model does not say."""


def with_gain_of(
    models: Mapping[str, Trained], measures: tuple[Measure, ...], given_by: str | None, notice: Callable[[str], None]
) -> tuple[Measure, ...]:
    """Return the measures with the gain of the models, or as they are when the user gave a gain.

    A notice says which models do not know their gain, or were trained with another gain than the user's.

    given_by : the option that gives a gain; None: there is none
    ModelError when models of different gains leave open which one counts.
    """
    gains: dict[str, Gain] = {}
    for name, model in models.items():
        try:
            if model.gain is not None:
                gains[name] = Gain.parse(model.gain)
        except SettingsError as fault:
            raise ModelError(f"{fault.message}; give --gain", name) from None
    used = measures[0].conventions.gain
    if given_by is not None:
        for name, gain in gains.items():
            if used.simplest() != gain.simplest():
                which = "the model" if len(models) == 1 else name
                notice(f"measuring with the gain {used}, as {given_by} says; {which} was trained with {gain}")
        return measures
    uses_gain = any(measure.kind.uses_gain for measure in measures)
    first, gain = next(iter(gains.items()), ("", used))
    for name in models:
        if name not in gains and uses_gain:
            what = f"{input_name(name)} does not say with which gain it was trained"
            notice(f"{what}; measuring with {gain} (--gain says another)")
    for name, other in gains.items():
        if other.simplest() != gain.simplest() and uses_gain:
            what = f"was trained with the gain {other}, and {input_name(first)} with {gain}"
            raise ModelError(f"{what}; say with --gain which one to measure with", name)
    return tuple(replace(measure, conventions=replace(measure.conventions, gain=gain)) for measure in measures)


def label_scale(models: Mapping[str, Trained], measures: tuple[Measure, ...]) -> int | None:
    """Return the largest label of err that the models were trained with; None when they name none.

    ModelError when the models name different ones.
    """
    naming_none = [measure for measure in measures if measure.kind.uses_label_scale and measure.largest_label is None]
    scales = {name: model.largest_label for name, model in models.items() if model.largest_label is not None}
    if not scales or not naming_none:
        return None
    first, scale = next(iter(scales.items()))
    for name, other in scales.items():
        if other != scale:
            what = f"was trained with labels up to {other}, and {input_name(first)} with labels up to {scale}"
            raise ModelError(f"{what}; say which in the measure, as in err@10(max={max(scale, other)})", name)
    return scale


def warn_of_single_documents(data: DataSize, warn: Callable[[str], None]) -> None:
    """Warn when every query has a single document."""
    if data.n_queries == data.n_documents > 1:
        warn("every query has one document, so no ranking can be better than another; is the query id right?")


def warn_of_large_labels(measures: Sequence[Measure], labels: Float64Array, warn: Callable[[str], None]) -> None:
    """Warn when labels are too large for the gain of a measure."""
    remark = measures[0].conventions.gain.remark(labels.max(initial=0.0))
    if remark is not None and any(measure.kind.uses_gain for measure in measures):
        warn(remark)
