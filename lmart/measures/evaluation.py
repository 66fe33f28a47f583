"""How well scores rank judged queries: measures of one ranking, and of several over the same queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.errors import DataError, ModelError, SettingsError, input_name
from lmart.gains import Gain, grade_scale, refuse_labels_above
from lmart.measures.judgments import Judgments, query_sums
from lmart.measures.kinds import Relevance
from lmart.measures.query_kernels import IdealRanking, QueryKernels, RankedBy, document_relevance, rank_discounts
from lmart.measures.results import (
    EvaluationReport,
    MeasuredQueries,
    ScaledWeights,
    label_scales,
    scaled_weights,
)
from lmart.measures.values import LARGEST_CUTOFF, Measure
from lmart.threads import WorkerPool


class Evaluator:
    """Computes measures of judged queries; `evaluate` may be called many times, but not by two threads at once.

    judgments : of the documents
    measures  : all with the same conventions
    pool      : its threads measure ranges of queries in parallel; the values never depend on it
    weights   : one number >= 0 a query, or one a document, whose mean in a query is the query's weight; None: all 1
    scale     : L of a measure of err that names none itself; None: 4, or the largest label when that is more

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
        self._documents = judgments.reversed() if self.conventions.ties == "reverse" else judgments
        self.labels, self.query_offsets = self._documents.labels, self._documents.query_offsets
        self.pool = pool if pool is not None else WorkerPool(1)
        self._scaled = None if weights is None else scaled_weights(weights, self.query_offsets)
        self._n_relevant: dict[float | None, Float64Array] = {}
        self.empty = self._relevant_documents(self.conventions.relevant) == 0
        self._own_scale = scale or grade_scale(self.labels)
        self._scales = label_scales(measures, self._own_scale)
        for largest in set(self._scales.values()):
            refuse_labels_above(self.labels, largest)
        self._rankings = QueryKernels(self._documents.ranked_offsets, self.pool)
        self._order = self._rankings.unsorted()
        self._relevances: dict[tuple[Relevance, float | None], Float64Array] = {}
        self._ideal = IdealRanking(self._documents, self.conventions, self.pool)
        largest_query = int(np.diff(self.query_offsets).max(initial=0))
        self._discounts = {measure: rank_discounts(measure, largest_query) for measure in measures}
        for measure in measures:
            self._relevance(measure)
            if measure.kind.divisor == "ideal DCG":
                self._ideal_dcg(measure, self._discounts[measure])

    def evaluate(self, scores: Float64Array) -> EvaluationReport:
        """Rank each query's documents by `scores` (float64[n_documents], higher first, no nan) and measure.

        Scores of documents that are not retrieved do not matter. DataError when a score is nan, or a DCG too large for
        a number.
        """
        return self.measure(scores).report(self.measures, self._scaled, self._own_scale)

    def measure(self, scores: Float64Array) -> MeasuredQueries:
        """Rank each query's documents by scores and measure each query; DataError when a score is nan.

        scores : float64[n_documents], higher first
        """
        scores = self._ranked_scores(scores)
        self._rankings.sort(scores, self._order)
        values, unweighted, too_large = {}, {}, {}
        for measure in self.measures:
            raw = self._raw(measure, scores)
            undefined = self._undefined(measure, raw)
            if not measure.kind.at_most_1 and not np.isfinite(raw).all():
                too_large[str(measure)] = self._largest_label(int(np.argmin(np.isfinite(raw))))
            values[str(measure)] = self._measure(measure, raw, undefined)
            if measure.kind.divisor == "ideal DCG" and self.conventions.empty_weight == "one":
                unweighted[str(measure)] = undefined
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

    def _raw(self, measure: Measure, scores: Float64Array) -> Float64Array:
        """Return what the measure's kernel writes for each query, before it is divided by anything."""
        relevance = self._documents.ranked(self._relevance(measure))
        tables: tuple[Float64Array, ...] = (self._discounts[measure],)
        if measure.kind.relevance == "preference":
            n_relevant = self._relevant_documents(measure.least_relevant)
            n_judged = query_sums(self._documents.only_judged(np.ones(len(self.labels))), self.query_offsets)
            tables = (n_relevant, n_judged - n_relevant)
        average = self.conventions.ties == "average"
        return self._rankings.values(measure, RankedBy(self._order, scores, relevance), tables, average)

    def _undefined(self, measure: Measure, raw: Float64Array) -> BoolArray:
        """Return in which queries the conventions say what the measure is: bool[n_queries]."""
        kind, conventions = measure.kind, self.conventions
        if not kind.counts_empty or (kind.divisor == "cutoff" and conventions.empty_p == "zero"):
            return np.zeros(len(raw), np.bool_)
        if kind.relevance == "label":
            return np.isnan(raw)
        if kind.divisor != "ideal DCG":
            level = measure.least_relevant if kind.is_binary else None
            return np.asarray(self._relevant_documents(level) == 0)
        asked = measure
        if conventions.empty_ndcg == "lowest" and conventions.lowest_cutoff is not None:
            asked = replace(measure, cutoff=min(measure.cutoff or LARGEST_CUTOFF, conventions.lowest_cutoff))
        nothing = np.asarray(self._ideal_dcg(asked, self._discounts[measure]) == 0)
        return nothing | (self._relevant_documents(None) == 0) if conventions.empty_ndcg == "label" else nothing

    def _measure(self, measure: Measure, values: Float64Array, undefined: BoolArray) -> Float64Array:
        """Return the measure of each query: values divided as its kind says, with the convention for empty queries."""
        if measure.kind.divisor == "ideal DCG":
            values = self._ndcg(measure, values)
        elif measure.kind.divisor != "none":
            values = values / np.maximum(self._divisors(measure), 1.0)
        values[undefined] = {"zero": 0.0, "one": 1.0, "skip": np.nan}[self.conventions.empty]
        if self.conventions.missing == "skip":
            values[self._documents.n_ranked == 0] = np.nan
        return values

    def _ndcg(self, measure: Measure, dcg: Float64Array) -> Float64Array:
        ideal = self._ideal_dcg(measure, self._discounts[measure])
        values = dcg / np.where(ideal == 0, 1.0, ideal)
        if self.conventions.ideal == "gain":
            values = np.minimum(values, 1.0)  # rounding must not lift a sum above that of the best order
        if self.conventions.short == "zero" and measure.cutoff is not None:
            values[self._documents.n_ranked < measure.cutoff] = 0.0
        return values

    def _divisors(self, measure: Measure) -> Float64Array:
        """Return what the sum of each query is divided by, float64[n_queries]; 0 stands for 1."""
        wanted, conventions = measure.kind.divisor, self.conventions
        cutoffs = np.full(len(self.empty), float(measure.cutoff or LARGEST_CUTOFF))
        within: Float64Array = np.minimum(cutoffs, self._documents.n_ranked)
        if wanted == "cutoff":
            return within if conventions.p_divisor == "length" else cutoffs
        if wanted == "documents to the cutoff":
            return within
        n_relevant = self._relevant_documents(measure.least_relevant)
        if wanted == "relevant documents" or conventions.map_divisor == "relevant":
            return n_relevant
        least: Float64Array = np.minimum(n_relevant, cutoffs if conventions.map_divisor == "k" else within)
        return least

    def _relevant_documents(self, level: float | None) -> Float64Array:
        """Return the number of documents of each query whose label reaches a level; computed at the first call."""
        if level not in self._n_relevant:
            self._n_relevant[level] = query_sums(self._documents.relevant(level), self.query_offsets)
        return self._n_relevant[level]

    def _relevance(self, measure: Measure) -> Float64Array:
        """Return what each document counts in a measure, float64[n_documents]; computed at the first call."""
        scale = self._scales.get(str(measure))
        key = (measure.kind.relevance, measure.least_relevant if measure.kind.is_binary else scale)
        if key not in self._relevances:
            self._relevances[key] = document_relevance(self._documents, measure, scale)
        return self._relevances[key]

    def _ideal_dcg(self, measure: Measure, discounts: Float64Array) -> Float64Array:
        """Return the DCG of the best order of each query, summed as that of any other order."""
        return self._ideal.dcg(measure, self._relevance(measure), discounts)

    def _largest_label(self, query: int) -> float:
        """Return the largest label of a query, by its place."""
        return float(self.labels[self.query_offsets[query] : self.query_offsets[query + 1]].max())


@dataclass(frozen=True, eq=False)
class Measurement:
    """How documents are measured: over all queries, and over each of some groups of queries.

    measures : all with the same conventions
    pool     : the workers
    weights  : float64[n_queries], for the means; None: all 1
    scale    : L of a measure of err that names none itself
    groups   : int64 places of the queries of each group
    """

    measures: tuple[Measure, ...]
    pool: WorkerPool
    weights: Float64Array | None
    scale: int
    groups: Sequence[Int64Array] = ()

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
        groups: Sequence[Int64Array] = (),
    ) -> Measurement:
        """Return how documents with these labels are measured, with one largest label of err for all systems.

        measures : as `with_gain_of` gives them
        labels   : float64, of all documents, or only those that are above all labels before them
        rows     : int64, their rows of the input; None: as they stand
        models   : that are measured, by what messages call them
        pool     : the workers
        weights  : float64[n_queries], for the means; None: all 1
        warn     : called with a warning
        groups   : int64 places of the queries of each group
        DataError when a label is above the largest one that a measure names or has no gain, ModelError when models
        disagree.
        """
        scale = label_scale(models, measures)
        largest = labels.max(initial=0.0)
        if scale is not None and largest > scale:
            warn(f"the data has labels above {scale}, the largest of err in training; err goes by those of the data")
            scale = None
        for one in measures:
            if one.largest_label is not None:
                refuse_labels_above(labels, one.largest_label, rows)
        if any(one.kind.uses_gain for one in measures):
            measures[0].conventions.gain.check_labels(labels)
        return cls(measures, pool, weights, scale or grade_scale(labels), groups)

    def evaluator(self, judgments: Judgments) -> Evaluator:
        """Return what measures each query; DataError as `Evaluator`."""
        return Evaluator(judgments, self.measures, self.pool, scale=self.scale)

    def report(self, queries: MeasuredQueries) -> EvaluationReport:
        """Return the means over all queries; DataError when a DCG is too large for a number."""
        return queries.report(self.measures, self._scaled(queries, self.weights), self.scale)

    def by_group(self, queries: MeasuredQueries) -> tuple[EvaluationReport, ...]:
        """Return the means over each group of queries alone; DataError when a DCG is too large for a number."""
        found = []
        for places in self.groups:
            own = queries.taken(places)
            weights = None if self.weights is None else self.weights[places]
            found.append(own.report(self.measures, self._scaled(own, weights), self.scale))
        return tuple(found)

    def _scaled(self, queries: MeasuredQueries, weights: Float64Array | None) -> ScaledWeights | None:
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(queries.sizes)])
        return None if weights is None else scaled_weights(weights, offsets)


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

    models   : by what messages call them
    measures : to be computed
    given_by : the option that gives a gain; None: there is none
    notice   : called with a notice
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
    uses_gain = any(one.kind.uses_gain for one in measures)
    first, gain = next(iter(gains.items()), ("", used))
    for name in models:
        if name not in gains and uses_gain:
            what = f"{input_name(name)} does not say with which gain it was trained"
            notice(f"{what}; measuring with {gain} (--gain says another)")
    for name, other in gains.items():
        if other.simplest() != gain.simplest() and uses_gain:
            what = f"was trained with the gain {other}, and {input_name(first)} with {gain}"
            raise ModelError(f"{what}; say with --gain which one to measure with", name)
    return tuple(replace(one, conventions=replace(one.conventions, gain=gain)) for one in measures)


def label_scale(models: Mapping[str, Trained], measures: tuple[Measure, ...]) -> int | None:
    """Return the largest label of err that the models were trained with; None when they name none.

    ModelError when the models name different ones.
    """
    naming_none = [one for one in measures if one.kind.uses_label_scale and one.largest_label is None]
    scales = {name: model.largest_label for name, model in models.items() if model.largest_label is not None}
    if not scales or not naming_none:
        return None
    first, scale = next(iter(scales.items()))
    for name, other in scales.items():
        if other != scale:
            what = f"was trained with labels up to {other}, and {input_name(first)} with labels up to {scale}"
            raise ModelError(f"{what}; say which in the measure, as in err@10(max={max(scale, other)})", name)
    return scale


def warn_of_large_labels(measures: Sequence[Measure], labels: Float64Array, warn: Callable[[str], None]) -> None:
    """Warn when labels are too large for the gain of a measure."""
    remark = measures[0].conventions.gain.remark(labels.max(initial=0.0))
    if remark is not None and any(one.kind.uses_gain for one in measures):
        warn(remark)
