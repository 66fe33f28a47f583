"""Evaluator: prepared once for a set of judged queries, then computes their measures for any scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.errors import DataError
from lmart.gains import grade_scale, refuse_labels_above
from lmart.measures.conventions import Conventions
from lmart.measures.judgments import Judgments, query_sums
from lmart.measures.kinds import Relevance
from lmart.measures.query_kernels import IdealRanking, QueryKernels, RankedBy, document_relevance, rank_discounts
from lmart.measures.values import LARGEST_CUTOFF, Measure
from lmart.threads import WorkerPool


@dataclass(frozen=True)
class EvaluationReport:
    """The measures of one ranking.

    n_queries, n_documents : of the data
    conventions : of all measures
    values          : mean over the queries by str(measure), None when no query counts
    per_query       : float64[n_queries] by str(measure), nan where the query is skipped
    n_empty_queries : queries without a relevant document
    grade_scales    : L of each measure of err by str(measure), whose stopping probability is (2^label - 1) / 2^L
    grade_scale     : L of the first of them, or what it would be
    """

    values: dict[str, float | None]
    per_query: dict[str, Float64Array]
    n_queries: int
    n_documents: int
    n_empty_queries: int
    grade_scale: int
    conventions: Conventions
    grade_scales: dict[str, int] = field(default_factory=dict)

    @property
    def stopping(self) -> str:
        """How likely a reader of err stops at a document, as a formula; with one of each measure when L differs."""
        if len(set(self.grade_scales.values())) < 2:
            return f"(2^label - 1) / 2^{self.grade_scale}"
        return ", ".join(f"(2^label - 1) / 2^{scale} in {name}" for name, scale in self.grade_scales.items())

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values, without the queries one by one."""
        return {
            "queries": self.n_queries,
            "documents": self.n_documents,
            "empty_queries": self.n_empty_queries,
            "conventions": self.conventions.to_json() | {"err": self.stopping},
            "metrics": dict(self.values),
        }


class Evaluator:
    """Computes measures of judged queries; `evaluate` may be called many times, but not by two threads at once.

    labels        : float64[n_documents], finite, >= 0; those of unjudged documents do not matter
    query_offsets : int64[n_queries + 1]
    measures      : all with the same conventions
    pool          : its threads measure ranges of queries in parallel; the values never depend on it
    weights       : one number >= 0 a query, or one a document, whose mean in a query is the query's weight; None: all 1
    scale         : L of a measure of err that names none itself; None: 4, or the largest label when that is more
    judged        : bool[n_documents]; an unjudged document is not relevant, has no gain, and does not count in bpref
                    and kendall; None: all are judged
    retrieved     : bool[n_documents]; a document that is not retrieved stands in no ranking, and counts only among the
                    judged and relevant documents of its query and in the best order; None: all are retrieved
    tie_order     : int64[n_documents], place of a document among those of its query with the same score, the lowest
                    first, such as `docid_order` gives; None: in the order of the data

    DataError when a gain table has no entry for a label, a label is above the L of err, or the weights do not fit.

    >>> labels, offsets = np.array([0.0, 1.0]), np.array([0, 2])
    >>> Evaluator(labels, offsets, parse_measures("ndcg@10,mrr")).evaluate(np.array([2.0, 1.0])).values
    {'ndcg@10': 0.6309297535714574, 'mrr': 0.5}
    """

    def __init__(
        self,
        labels: Float64Array,
        query_offsets: Int64Array,
        measures: Sequence[Measure],
        pool: WorkerPool | None = None,
        weights: Float64Array | None = None,
        scale: int | None = None,
        *,
        judged: BoolArray | None = None,
        retrieved: BoolArray | None = None,
        tie_order: Int64Array | None = None,
    ) -> None:
        conventions = {measure.conventions for measure in measures}
        if len(conventions) != 1:
            raise ValueError("give at least one measure, and measures of the same conventions")
        self.measures = tuple(measures)
        self.conventions = measures[0].conventions
        if self.conventions.ties == "docid" and tie_order is None:
            raise ValueError("ties by document id need a tie_order")
        reverse = self.conventions.ties == "reverse"
        self._documents = Judgments(labels, query_offsets, judged, retrieved, tie_order, reverse)
        self.labels, self.query_offsets = self._documents.labels, self._documents.query_offsets
        self.pool = pool if pool is not None else WorkerPool(1)
        self.weights = None if weights is None else query_weights(weights, self.query_offsets)
        self._weight_1 = 1.0 if weights is None else float(np.ldexp(1.0, _exponent(weights)))
        self._n_relevant: dict[float | None, Float64Array] = {}
        self.empty = self._relevant_documents(self.conventions.relevant) == 0
        own_scale = scale or grade_scale(self.labels)
        self._scales = {str(one): one.largest_label or own_scale for one in measures if one.kind.uses_label_scale}
        for largest in set(self._scales.values()):
            refuse_labels_above(self.labels, largest)
        self.grade_scale = next(iter(self._scales.values()), own_scale)
        self._rankings = QueryKernels(self._documents.ranked_offsets, self.pool)
        self._order = self._rankings.unsorted()
        self._relevances: dict[tuple[Relevance, float | None], Float64Array] = {}
        self._ideal = IdealRanking(self._documents, self.conventions, self.pool)
        largest_query = int(np.diff(self.query_offsets).max(initial=0))
        self._discounts = {measure: rank_discounts(measure, largest_query) for measure in measures}
        for measure in measures:
            self._relevance(measure)
            if measure.kind.divisor == "ideal DCG":
                self._ideal_dcg(measure)

    def evaluate(self, scores: Float64Array) -> EvaluationReport:
        """Rank each query's documents by `scores` (float64[n_documents], higher first, no nan) and measure.

        Scores of documents that are not retrieved do not matter. DataError when a score is nan, or a DCG too large for
        a number.
        """
        scores = self._ranked_scores(scores)
        self._rankings.sort(scores, self._order)
        values, means = {}, {}
        for measure in self.measures:
            raw = self._raw(measure, scores)
            undefined = self._undefined(measure, raw)
            values[str(measure)] = self._measure(measure, raw, undefined)
            plain = measure.kind.divisor == "ideal DCG" and self.conventions.empty_weight == "one"
            means[str(measure)] = self._mean(values[str(measure)], undefined if plain else None)
        return EvaluationReport(
            means,
            values,
            len(self.query_offsets) - 1,
            len(self.labels),
            int(np.count_nonzero(self.empty)),
            self.grade_scale,
            self.conventions,
            self._scales,
        )

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
        if conventions.empty_ndcg == "lowest":
            of_ndcg = [one for one in self.measures if one.kind.divisor == "ideal DCG"]
            measure = min(of_ndcg, key=lambda one: one.cutoff or LARGEST_CUTOFF)
        nothing = np.asarray(self._ideal_dcg(measure) == 0)
        return nothing | (self._relevant_documents(None) == 0) if conventions.empty_ndcg == "label" else nothing

    def _measure(self, measure: Measure, values: Float64Array, undefined: BoolArray) -> Float64Array:
        """Return the measure of each query: values divided as its kind says, with the convention for empty queries."""
        if not measure.kind.at_most_1:
            values = self._finite_dcg(measure, values)
        elif measure.kind.divisor == "ideal DCG":
            values = self._ndcg(measure, values)
        elif measure.kind.divisor != "none":
            values = values / np.maximum(self._divisors(measure), 1.0)
        values[undefined] = {"zero": 0.0, "one": 1.0, "skip": np.nan}[self.conventions.empty]
        if self.conventions.missing == "skip":
            values[self._documents.n_ranked == 0] = np.nan
        return values

    def _ndcg(self, measure: Measure, dcg: Float64Array) -> Float64Array:
        ideal = self._ideal_dcg(measure)
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

    def _ideal_dcg(self, measure: Measure) -> Float64Array:
        """Return the DCG of the best order of each query, summed as that of any other order."""
        return self._ideal.dcg(measure, self._relevance(measure), self._discounts[measure])

    def _finite_dcg(self, measure: Measure, values: Float64Array) -> Float64Array:
        bad = ~np.isfinite(values)
        if bad.any():
            q = int(np.argmax(bad))
            label = self.labels[self.query_offsets[q] : self.query_offsets[q + 1]].max()
            raise DataError(
                f"{measure} is too large for a number: the gain {self.conventions.gain} of label {label:g} is too "
                "large; measure ndcg, or use --gain linear"
            )
        return values

    def _mean(self, values: Float64Array, unweighted: BoolArray | None) -> float | None:
        """Return the weighted mean over the queries that count, the same in any order of the queries.

        values     : float64[n_queries], nan where a query does not count
        unweighted : bool[n_queries], queries whose value enters the sum with the weight 1; None: none
        """
        counts = ~np.isnan(values)
        weights = np.ones(len(values)) if self.weights is None else self.weights
        total = math.fsum(weights[counts].tolist())
        if total == 0:
            return None
        if self.weights is not None and unweighted is not None:
            weights = np.where(unweighted, self._weight_1, weights)
        products = values[counts] if self.weights is None else values[counts] * weights[counts]
        try:
            return math.fsum(products.tolist()) / total
        except OverflowError:  # of dcg only; a power of two changes no digit
            return math.fsum(np.ldexp(products, -64).tolist()) / total * 2.0**64


def query_weights(weights: Float64Array, query_offsets: Int64Array) -> Float64Array:
    """Return one weight a query, scaled by a power of two to at most 1, from one a query or one a document.

    weights       : float64, one a query or one a document
    query_offsets : int64[n_queries + 1]

    DataError when there are neither as many as queries nor as many as documents, or one is negative or not finite.
    """
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    if len(weights) not in (n_queries, n_documents):
        raise DataError(
            f"there are {len(weights)} weights, but {n_queries} queries and {n_documents} documents; "
            "give one weight a query or one a document"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(f"weight {i + 1} is {float(weights[i])!r}; use finite numbers from 0 up")
    scaled = np.ldexp(weights, _exponent(weights))
    if len(weights) == n_queries:
        return scaled
    return query_sums(scaled, query_offsets) / np.maximum(np.diff(query_offsets), 1)


def _exponent(weights: Float64Array) -> int:
    """Return the power of two that weights are scaled by."""
    return -int(np.frexp(weights.max(initial=0.0))[1])
