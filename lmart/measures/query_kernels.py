"""What the kernels of measures need, and calls of them over all queries, range by range."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import query_ranges
from lmart.gains import discount_table, stop_probabilities
from lmart.measures.conventions import Conventions
from lmart.measures.judgments import Judgments
from lmart.measures.values import Measure
from lmart.threads import WorkerPool

DOCUMENTS_A_CALL = 16384


class RankedBy(NamedTuple):
    """Documents in an order, and what they count in a measure.

    order     : int32[n_documents], rows of each query, highest score first
    scores    : float64[n_documents], by row
    relevance : float64[n_documents], by row
    """

    order: Int32Array
    scores: Float64Array
    relevance: Float64Array


class QueryKernels:
    """Sorts and measures the documents of queries.

    query_offsets : int64[n_queries + 1]
    pool          : its threads take ranges of queries side by side
    """

    def __init__(self, query_offsets: Int64Array, pool: WorkerPool) -> None:
        self.query_offsets = query_offsets
        self.pool = pool
        self._ranges = query_ranges(query_offsets, DOCUMENTS_A_CALL)

    def unsorted(self) -> Int32Array:
        """Return the order of the data, int32[n_documents]."""
        return np.arange(int(self.query_offsets[-1]), dtype=np.int32)

    def sort(self, scores: Float64Array, order: Int32Array) -> None:
        """Sort the rows of each query by score descending, equal scores by row.

        scores : float64[n_documents], no nan
        order  : int32[n_documents], any order of the rows of each query; sorted in place
        """
        # numba is loaded only when something is measured: usage errors must come quickly
        from lmart.kernels.ranking import ordering

        self.pool.run(ordering.order_documents, [(scores, self.query_offsets, a, b, order) for a, b in self._ranges])

    def values(
        self, measure: Measure, ranked: RankedBy, tables: tuple[Float64Array, ...], average: bool
    ) -> Float64Array:
        """Return what the measure's kernel writes for each query, float64[n_queries].

        measure : to be computed
        ranked  : the documents
        tables  : the discounts by rank; of bpref, the relevant and the other judged documents of each query
        average : whether to take the mean over the orders of tied documents
        """
        from lmart.kernels.measures import query_measures

        values = np.empty(len(self.query_offsets) - 1)
        documents = query_measures.RankedDocuments(*ranked, self.query_offsets)
        kernel = getattr(query_measures, measure.kind.kernel)
        cutoff = measure.cutoff or max(1, len(ranked.order))
        if measure.kind.cutoff == "none":
            settings: tuple[object, ...] = () if measure.kind.relevance == "label" else (average,)
        else:
            settings = (cutoff, average)
        takes_tables = measure.kind.kernel in ("discounted_sums", "preference_sums")
        call = partial(kernel, documents, *(tables if takes_tables else ()))
        self.pool.run(call, [(a, b, *settings, values) for a, b in self._ranges])
        return values


class IdealRanking:
    """The best order of the documents of each query, retrieved or not, and its DCG.

    documents   : of the queries
    conventions : say what the best order goes by
    pool        : the workers
    """

    def __init__(self, documents: Judgments, conventions: Conventions, pool: WorkerPool) -> None:
        self._documents = documents
        self._by_label = conventions.ideal == "label"
        self._queries = QueryKernels(documents.query_offsets, pool)
        self._order: Int32Array | None = None
        self._dcg: dict[int | None, Float64Array] = {}

    def dcg(self, measure: Measure, gains: Float64Array, discounts: Float64Array) -> Float64Array:
        """Return the DCG of the best order of each query to the cutoff of a measure, float64[n_queries].

        measure   : ndcg
        gains     : float64[n_documents]
        discounts : float64[>= ranks looked at]
        """
        if measure.cutoff not in self._dcg:
            keys = self._documents.only_judged(self._documents.labels, -1.0) if self._by_label else gains
            if self._order is None:
                self._order = self._queries.unsorted()
                self._queries.sort(keys, self._order)
            ranked = RankedBy(self._order, keys, gains)
            self._dcg[measure.cutoff] = self._queries.values(measure, ranked, (discounts,), False)
        return self._dcg[measure.cutoff]


def document_relevance(documents: Judgments, measure: Measure, scale: int | None) -> Float64Array:
    """Return what each document counts in a measure, float64[n_documents]; unjudged ones have no gain."""
    wanted, gain, labels = measure.kind.relevance, measure.conventions.gain, documents.labels
    if wanted == "scaled gain":
        relevance = documents.only_judged(gain.scaled(labels, documents.query_offsets))
    elif wanted == "gain":
        relevance = documents.only_judged(gain.of_labels(labels))
    elif wanted == "stopping probability":
        relevance = stop_probabilities(labels, scale)
    elif wanted == "label":
        relevance = documents.only_judged(labels, np.nan)
    elif wanted == "being judged":
        relevance = documents.only_judged(np.ones(len(labels)))
    else:
        unjudged = -1.0 if wanted == "preference" else 0.0
        relevance = documents.only_judged(documents.relevant(measure.least_relevant), unjudged)
    return np.ascontiguousarray(relevance, np.float64)


def rank_discounts(measure: Measure, largest_query: int) -> Float64Array:
    """Return the discount of each rank that a measure looks at, float64[n_ranks]."""
    n_ranks = min(measure.cutoff or largest_query, largest_query)
    if measure.kind.discount == "log2":
        table = discount_table(n_ranks)
        return np.concatenate([table[:1], table[:-1]]) if measure.conventions.discount == "letor" else table
    table = np.ones(n_ranks)
    if measure.kind.discount == "geometric" and n_ranks:
        table[1:] = measure.persistence
        table = np.multiply.accumulate(table) * (1.0 - (measure.persistence or 0.0))
    return table
