"""Sums over the ranked documents of each query, of which the functions in `kinds` make measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.data.dataset import even_ranges
from lmart.gains import discount_table, stop_probabilities
from lmart.measures.conventions import Conventions
from lmart.measures.judgments import Judgments, query_sums
from lmart.measures.kinds import Relevance
from lmart.measures.measure import LARGEST_CUTOFF, Measure
from lmart.threads import WorkerPool

DOCUMENTS_A_CALL = 16384


class RankedBy(NamedTuple):
    """Documents in an order, and what they count in a measure.

    order : int32[n_documents], rows of each query, highest score first
    """

    order: Int32Array
    scores: Float64Array
    relevance: Float64Array


class QueryKernels:
    """Calls kernels over all queries, on ranges of queries side by side."""

    def __init__(self, query_offsets: Int64Array, pool: WorkerPool) -> None:
        self.query_offsets = query_offsets
        self.pool = pool
        self._ranges = even_ranges(query_offsets, DOCUMENTS_A_CALL)

    def unsorted(self) -> Int32Array:
        """Return the order of the data, int32[n_documents]."""
        return np.arange(int(self.query_offsets[-1]), dtype=np.int32)

    def sort(self, scores: Float64Array, order: Int32Array) -> None:
        """Sort the rows of each query, order[int32], by score descending, equal scores by row; no score may be nan."""
        # numba is loaded only when something is measured: usage errors must come quickly
        from lmart.kernels.ranking import ordering

        self.pool.run(ordering.order_documents, [(scores, self.query_offsets, a, b, order) for a, b in self._ranges])

    def call(
        self,
        kernel: str,
        ranked: RankedBy,
        tables: tuple[Float64Array | Int64Array, ...] = (),
        settings: tuple[int | bool, ...] = (),
    ) -> Float64Array:
        """Return what a kernel writes for each query, float64[n_queries].

        tables   : its arguments between the documents and the range of queries
        settings : its arguments behind the range of queries
        """
        from lmart.kernels.measures import query_measures

        values = np.empty(len(self.query_offsets) - 1)
        documents = query_measures.RankedDocuments(*ranked, self.query_offsets)
        call = partial(getattr(query_measures, kernel), documents, *tables)
        self.pool.run(call, [(a, b, *settings, values) for a, b in self._ranges])
        return values


class JudgedQueries:
    """Judged queries, ranked again and again; what does not depend on the ranking is computed at most once.

    scales  : L of each measure of err, by str(measure)
    weights : float64[n_queries], which functions of programs are given; None: all 1
    """

    def __init__(
        self,
        documents: Judgments,
        conventions: Conventions,
        scales: Mapping[str, int],
        pool: WorkerPool,
        weights: Float64Array | None = None,
    ) -> None:
        self.weights = weights
        self.documents, self.conventions = documents, conventions
        self.n_ranked = documents.n_ranked
        self._scales = scales
        self._largest_query = int(np.diff(documents.query_offsets).max(initial=0))
        self._rankings = QueryKernels(documents.ranked_offsets, pool)
        self._order = self._rankings.unsorted()
        self.scores: Float64Array = np.zeros(0)
        self._ideal_queries = QueryKernels(documents.query_offsets, pool)
        self._ideal_order: Int32Array | None = None
        self._ideal_dcg: dict[int | None, Float64Array] = {}
        self._n_relevant: dict[float | None, Float64Array] = {}
        self._relevances: dict[tuple[Relevance, float | None], Float64Array] = {}
        self._discounts: dict[Measure, Float64Array] = {}

    def rank(self, scores: Float64Array) -> None:
        """Rank the documents of each query by score, higher first; equal scores stand as they come, and none is nan."""
        self.scores = scores
        self._rankings.sort(scores, self._order)

    def call(
        self,
        kernel: str,
        measure: Measure,
        tables: tuple[Float64Array | Int64Array, ...] = (),
        settings: tuple[int | bool, ...] = (),
    ) -> Float64Array:
        """Return what a kernel writes for each query of the ranking, float64[n_queries]; see `QueryKernels.call`."""
        relevance = self.documents.ranked(self.relevance(measure))
        return self._rankings.call(kernel, RankedBy(self._order, self.scores, relevance), tables, settings)

    def n_relevant(self, level: float | None) -> Float64Array:
        """Return the number of documents of each query whose label reaches a level, float64[n_queries]."""
        if level not in self._n_relevant:
            self._n_relevant[level] = query_sums(self.documents.relevant(level), self.documents.query_offsets)
        return self._n_relevant[level]

    def relevance(self, measure: Measure) -> Float64Array:
        """Return what each document counts in a measure, float64[n_documents]; DataError when a label has no gain."""
        scale = self._scales.get(str(measure))
        key = (measure.kind.relevance, measure.least_relevant if measure.kind.is_binary else scale)
        if key not in self._relevances:
            self._relevances[key] = document_relevance(self.documents, measure, scale)
        return self._relevances[key]

    def discounts(self, measure: Measure) -> Float64Array:
        """Return the discount of each rank that a measure looks at, float64[n_ranks]."""
        if measure not in self._discounts:
            self._discounts[measure] = rank_discounts(measure, self._largest_query)
        return self._discounts[measure]

    def ideal_dcg(self, measure: Measure, cutoff: int | None) -> Float64Array:
        """Return the DCG of the best order of each query, retrieved or not, down to a cutoff, float64[n_queries]."""
        if cutoff not in self._ideal_dcg:
            gains, documents = self.relevance(measure), self.documents
            keys = documents.only_judged(documents.labels, -1.0) if self.conventions.ideal == "label" else gains
            if self._ideal_order is None:
                self._ideal_order = self._ideal_queries.unsorted()
                self._ideal_queries.sort(keys, self._ideal_order)
            ranked, looked_at = RankedBy(self._ideal_order, keys, gains), cutoff or max(1, len(keys))
            tables = (self.discounts(measure),)
            self._ideal_dcg[cutoff] = self._ideal_queries.call("discounted_sums", ranked, tables, (looked_at, False))
        return self._ideal_dcg[cutoff]


@dataclass(frozen=True, eq=False)
class RankedQueries:
    """Ranked queries as a measure sees them: every array is float64[n_queries]."""

    queries: JudgedQueries
    measure: Measure

    @property
    def conventions(self) -> Conventions:
        """The conventions of the measure."""
        return self.measure.conventions

    @property
    def n_ranked(self) -> Int64Array:
        """Documents that are ranked, int64[n_queries]."""
        return self.queries.n_ranked

    @property
    def cutoffs(self) -> Float64Array:
        """The cutoff, or without a cutoff a number that no query reaches."""
        return np.full(len(self.n_ranked), float(self.measure.cutoff or LARGEST_CUTOFF))

    @property
    def looked_at(self) -> Float64Array:
        """Documents that are ranked down to the cutoff."""
        return np.minimum(self.cutoffs, self.n_ranked)

    @property
    def n_relevant(self) -> Float64Array:
        """Relevant documents, ranked or not."""
        return self.queries.n_relevant(self.measure.least_relevant if self.measure.kind.is_binary else None)

    @property
    def n_others(self) -> Float64Array:
        """Judged documents that are not relevant, ranked or not."""
        documents = self.queries.documents
        judged = documents.only_judged(np.ones(len(documents.labels)))
        return query_sums(judged, documents.query_offsets) - self.n_relevant

    @property
    def _average(self) -> bool:
        return self.conventions.ties == "average"

    @property
    def _cut(self) -> tuple[int, bool]:
        """The cutoff and whether ties are averaged, as kernels take them."""
        return self.measure.cutoff or max(1, int(self.n_ranked.sum())), self._average

    def unless_empty(self, values: Float64Array) -> Float64Array:
        """Return the values, and nan for queries without a relevant document."""
        return np.where(self.n_relevant == 0, np.nan, values)

    def hits(self, depths: Float64Array | None = None) -> Float64Array:
        """Return the sum of what documents count, down to a depth of each query; None: to the cutoff."""
        ranks = (self.looked_at if depths is None else depths).astype(np.int64)
        return self.queries.call("sums_to_depths", self.measure, (ranks,), (self._average,))

    def precision_divisors(self) -> Float64Array:
        """Return what precision is divided by: k, or in a shorter query its length if the conventions say so."""
        by_length = self.conventions.p_divisor == "length" or self.measure.cutoff is None
        return self.looked_at.clip(min=1.0) if by_length else self.cutoffs

    def dcg(self) -> Float64Array:
        """Return the sum of gain x discount."""
        return self._discounted_sums()

    def ideal_dcg(self) -> Float64Array:
        """Return the DCG of the best order."""
        return self.queries.ideal_dcg(self.measure, self.measure.cutoff)

    def has_no_ideal(self) -> BoolArray:
        """Return whether ndcg is undefined for a query: bool[n_queries]."""
        cutoff, lowest = self.measure.cutoff, self.conventions.lowest_cutoff
        if self.conventions.empty_ndcg == "lowest" and lowest is not None:
            cutoff = min(cutoff or LARGEST_CUTOFF, lowest)
        nothing = np.asarray(self.queries.ideal_dcg(self.measure, cutoff) == 0)
        return nothing | (self.queries.n_relevant(None) == 0) if self.conventions.empty_ndcg == "label" else nothing

    def rank_biased_sums(self) -> Float64Array:
        """Return the sum of (1 - r) r^(rank) over the relevant documents."""
        return self._discounted_sums()

    def _discounted_sums(self) -> Float64Array:
        tables = (self.queries.discounts(self.measure),)
        return self.queries.call("discounted_sums", self.measure, tables, self._cut)

    def precision_sums(self) -> Float64Array:
        """Return the sum of the precision at the ranks of the relevant documents."""
        return self.queries.call("precision_sums", self.measure, (), self._cut)

    def reciprocal_ranks(self) -> Float64Array:
        """Return 1 / rank of the first relevant document."""
        return self._first_relevant(np.arange(1.0, self.n_ranked.max(initial=0) + 1.0))

    def successes(self) -> Float64Array:
        """Return 1 where a relevant document is within the cutoff, else 0."""
        values = self._first_relevant(np.ones(self.n_ranked.max(initial=0)))
        return np.minimum(values, 1.0)  # the chances of the ranks of a group add up to 1 but for rounding

    def _first_relevant(self, divisors: Float64Array) -> Float64Array:
        return self.queries.call("first_relevant_values", self.measure, (divisors,), self._cut)

    def expected_reciprocal_ranks(self) -> Float64Array:
        """Return the expected 1 / rank at which a reader stops."""
        return self.queries.call("expected_reciprocal_ranks", self.measure, (), self._cut)

    def interpolated_precisions(self) -> Float64Array:
        """Return the largest precision at a rank where the recall of the measure is reached."""
        needed = np.floor((self.measure.recall_level or 0.0) * self.n_relevant + 0.9)
        return self.queries.call("interpolated_precisions", self.measure, (needed,))

    def preference_sums(self) -> Float64Array:
        """Return the sum over relevant documents of the share of judged others that they stand above."""
        return self.queries.call("preference_sums", self.measure, (self.n_relevant, self.n_others), (self._average,))

    def ordered_pairs(self) -> Float64Array:
        """Return the number of pairs of a relevant and another judged document in the right order."""
        return self.queries.call("ordered_pairs", self.measure, (self.n_relevant, self.n_others))

    def rank_correlations(self) -> Float64Array:
        """Return Kendall's tau-b of scores and labels, nan when all labels are equal."""
        return self.queries.call("rank_correlations", self.measure)


def document_relevance(documents: Judgments, measure: Measure, scale: int | None) -> Float64Array:
    """Return what each document counts in a measure, float64[n_documents]; unjudged ones have no gain."""
    gain, labels = measure.conventions.gain, documents.labels
    match measure.kind.relevance:
        case "scaled gain":
            relevance = documents.only_judged(gain.scaled(labels, documents.query_offsets))
        case "gain":
            relevance = documents.only_judged(gain.of_labels(labels))
        case "stopping probability":
            relevance = stop_probabilities(labels, scale)
        case "label" | "own":
            relevance = documents.only_judged(labels, np.nan)
        case "being judged":
            relevance = documents.only_judged(np.ones(len(labels)))
        case "relevant":
            relevance = documents.only_judged(documents.relevant(measure.least_relevant), 0.0)
        case "preference":
            relevance = documents.only_judged(documents.relevant(measure.least_relevant), -1.0)
    return np.ascontiguousarray(relevance, np.float64)


def rank_discounts(measure: Measure, largest_query: int) -> Float64Array:
    """Return the discount of each rank that a measure looks at, float64[n_ranks]."""
    n_ranks = min(measure.cutoff or largest_query, largest_query)
    if measure.kind.uses_gain:
        table = discount_table(n_ranks)
        return np.concatenate([table[:1], table[:-1]]) if measure.conventions.discount == "letor" else table
    table = np.ones(n_ranks)
    if n_ranks:
        table[1:] = measure.persistence
        table = np.multiply.accumulate(table) * (1.0 - (measure.persistence or 0.0))
    return table
