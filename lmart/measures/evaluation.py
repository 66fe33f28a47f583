"""Evaluator: prepared once for a set of judged queries, then computes their measures for any scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import query_ranges
from lmart.errors import DataError
from lmart.gains import discount_table, grade_scale, refuse_labels_above, stop_probabilities
from lmart.measures.kinds import Relevance
from lmart.measures.values import Conventions, Measure
from lmart.threads import WorkerPool

DOCUMENTS_A_CALL = 16384


@dataclass(frozen=True)
class EvaluationReport:
    """The measures of one ranking.

    n_queries, n_documents : of the data
    conventions : of all measures
    values          : mean over the queries by str(measure), None when no query counts
    per_query       : float64[n_queries] by str(measure), nan where the query is skipped
    n_empty_queries : queries without a relevant document (label > 0)
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
            "conventions": self.conventions.to_json() | {"relevant": "label > 0", "err": self.stopping},
            "metrics": dict(self.values),
        }


class Evaluator:
    """Computes measures of judged queries; `evaluate` may be called many times, but not by two threads at once.

    labels        : float64[n_documents], finite, >= 0
    query_offsets : int64[n_queries + 1]
    measures      : all with the same conventions
    pool          : its threads measure ranges of queries in parallel; the values never depend on it
    weights       : one number >= 0 a query, or one a document, whose mean in a query is the query's weight; None: all 1
    scale         : L of a measure of err that names none itself; None: 4, or the largest label when that is more

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
    ) -> None:
        conventions = {measure.conventions for measure in measures}
        if len(conventions) != 1:
            raise ValueError("give at least one measure, and measures of the same conventions")
        self.measures = tuple(measures)
        self.conventions = measures[0].conventions
        self.labels = labels
        self.query_offsets = np.ascontiguousarray(query_offsets, np.int64)
        self.sizes = np.diff(self.query_offsets)
        self.pool = pool if pool is not None else WorkerPool(1)
        self.weights = None if weights is None else query_weights(weights, self.query_offsets)
        self.relevant = np.asarray(labels > 0, np.float64)
        self.n_relevant = _query_sums(self.relevant, self.query_offsets)
        self.empty = self.n_relevant == 0
        own_scale = scale or grade_scale(labels)
        self._scales = {str(one): one.largest_label or own_scale for one in measures if one.kind.uses_label_scale}
        for largest in set(self._scales.values()):
            refuse_labels_above(labels, largest)
        self.grade_scale = next(iter(self._scales.values()), own_scale)
        self._ranges = query_ranges(self.query_offsets, DOCUMENTS_A_CALL)
        self._order = np.arange(len(labels), dtype=np.int32)
        self._relevances: dict[tuple[Relevance, int], Float64Array] = {}
        self._ideal: dict[int, Float64Array] = {}
        self._ideal_order: npt.NDArray[np.int32] | None = None
        self._discounts = {measure: self._discount(measure) for measure in measures}
        for measure in measures:
            self._relevance(measure)
            if measure.kind.divisor == "ideal DCG":
                self._ideal_dcg(measure)

    def evaluate(self, scores: Float64Array) -> EvaluationReport:
        """Rank each query's documents by `scores` (float64[n_documents], higher first, no nan) and measure.

        DataError when a score is nan, or a DCG too large for a number.
        """
        if len(scores) != len(self.labels):
            raise ValueError(f"{len(scores)} scores for {len(self.labels)} documents")
        if (bad := np.isnan(scores)).any():
            raise DataError(f"the score of document {int(np.argmax(bad)) + 1} is nan; every document needs a score")
        scores = np.ascontiguousarray(scores, np.float64)
        self._sort(scores, self._order)
        per_query = {str(measure): self._measure(measure, scores) for measure in self.measures}
        return EvaluationReport(
            {name: self._mean(values) for name, values in per_query.items()},
            per_query,
            len(self.sizes),
            len(self.labels),
            int(np.count_nonzero(self.empty)),
            self.grade_scale,
            self.conventions,
            self._scales,
        )

    def _measure(self, measure: Measure, scores: Float64Array) -> Float64Array:
        """Return the measure of each query, with the convention for empty queries applied."""
        values = self._raw(measure, scores, self._order, self.conventions.ties == "average")
        kind, undefined = measure.kind, self.empty
        if not kind.at_most_1:
            return self._finite_dcg(measure, values)
        if kind.divisor == "ideal DCG":
            ideal = self._ideal_dcg(measure)
            undefined = undefined | (ideal == 0)
            # rounding must not lift a sum above that of the best order
            values = np.minimum(values / np.where(undefined, 1.0, ideal), 1.0)
        elif kind.divisor == "relevant documents":
            values = values / np.where(undefined, 1.0, self.n_relevant)
        elif kind.divisor == "cutoff":
            values = values / float(measure.cutoff or 1)
        values[undefined] = {"zero": 0.0, "one": 1.0, "skip": np.nan}[self.conventions.empty]
        return values

    def _raw(self, measure: Measure, scores: Float64Array, order: npt.NDArray[np.int32], average: bool) -> Float64Array:
        """Return what the measure's kernel writes for each query, before it is divided by anything."""
        # numba is loaded only when something is measured: usage errors must come quickly
        from lmart.kernels import measures

        values = np.empty(len(self.sizes))
        ranked = measures.RankedDocuments(order, scores, self._relevance(measure), self.query_offsets)
        cutoff = measure.cutoff or len(self.labels)
        kernel = getattr(measures, measure.kind.kernel)
        tables = [self._discounts[measure]] if measure.kind.kernel == "discounted_sums" else []
        call = partial(kernel, ranked, *tables)
        self.pool.run(call, [(a, b, cutoff, average, values) for a, b in self._ranges])
        return values

    def _relevance(self, measure: Measure) -> Float64Array:
        """Return what each document counts in a measure, float64[n_documents]; computed at the first call."""
        wanted, scale = measure.kind.relevance, self._scales.get(str(measure), 0)
        if (wanted, scale) not in self._relevances:
            gain = self.conventions.gain
            if wanted == "scaled gain":
                relevance = gain.scaled(self.labels, self.query_offsets)
            elif wanted == "gain":
                relevance = gain.of_labels(self.labels)
            elif wanted == "stopping probability":
                relevance = stop_probabilities(self.labels, scale)
            else:
                relevance = self.relevant
            self._relevances[wanted, scale] = np.ascontiguousarray(relevance, np.float64)
        return self._relevances[wanted, scale]

    def _discount(self, measure: Measure) -> Float64Array:
        """Return the discount of each rank that the measure looks at, float64[n_ranks]."""
        n_ranks = min(measure.cutoff or len(self.labels), int(self.sizes.max(initial=0)))
        if measure.kind.discount == "log2":
            return discount_table(n_ranks)
        table = np.ones(n_ranks)
        if measure.kind.discount == "geometric" and n_ranks:
            table[1:] = measure.persistence
            table = np.multiply.accumulate(table) * (1.0 - (measure.persistence or 0.0))
        return table

    def _ideal_dcg(self, measure: Measure) -> Float64Array:
        """Return the DCG of the best order of each query, summed as that of any other order."""
        cutoff = measure.cutoff or len(self.labels)
        if cutoff not in self._ideal:
            gains = self._relevance(measure)
            if self._ideal_order is None:
                self._ideal_order = self._order.copy()
                self._sort(gains, self._ideal_order)
            self._ideal[cutoff] = self._raw(measure, gains, self._ideal_order, False)
        return self._ideal[cutoff]

    def _sort(self, scores: Float64Array, order: npt.NDArray[np.int32]) -> None:
        from lmart.kernels import ordering

        self.pool.run(ordering.order_documents, [(scores, self.query_offsets, a, b, order) for a, b in self._ranges])

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

    def _mean(self, values: Float64Array) -> float | None:
        """Return the weighted mean over the queries that count, the same in any order of the queries."""
        counts = ~np.isnan(values)
        weights = np.ones(len(values)) if self.weights is None else self.weights
        total = math.fsum(weights[counts].tolist())
        if total == 0:
            return None
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
    scaled = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    if len(weights) == n_queries:
        return scaled
    return _query_sums(scaled, query_offsets) / np.maximum(np.diff(query_offsets), 1)


def _query_sums(values: Float64Array, query_offsets: Int64Array) -> Float64Array:
    """Return the sum of each query's values, each query on its own, so that neighbours cannot change its rounding."""
    sums = np.zeros(len(query_offsets) - 1)
    filled = np.flatnonzero(np.diff(query_offsets))
    if len(filled):
        sums[filled] = np.add.reduceat(values, query_offsets[:-1][filled])
    return sums
