"""The inputs and outputs of the gradient kernels, as named tuples of arrays.

`rank` is a document's 0-based index in the order of the scores, `row` its index in the data.
"""

from __future__ import annotations

from typing import NamedTuple

from lmart.array_types import Float64Array, Int32Array, Int64Array


class RankedQueries(NamedTuple):
    """Queries with their documents in an order, usually that of the scores.

    scores        : float64[n_documents], by row
    query_weights : float64[n_queries], >= 0; the pairs of a query of weight 0 are left out
    query_offsets : int64[n_queries + 1], query q has the rows query_offsets[q]:query_offsets[q + 1]
    order         : int32[n_documents], the rows of each query, highest score first (`ordering.order_documents`)
    """

    scores: Float64Array
    query_weights: Float64Array
    query_offsets: Int64Array
    order: Int32Array


class NdcgTables(NamedTuple):
    """The inputs of NDCG.

    gains             : float64[n_documents], by row, scaled so that none is above 1
    inverse_ideal_dcg : float64[n_queries], 1 / ideal DCG of the scaled gains; 0 for a query in which no gain is above 0
    discount          : float64[>= documents of the longest query], 1 / log2(rank + 2)
    """

    gains: Float64Array
    inverse_ideal_dcg: Float64Array
    discount: Float64Array


class PairSettings(NamedTuple):
    """Settings of the cost of a pair.

    truncation : a pair counts when its upper document is at a rank below this; 0: all pairs
    sigma      : slope of the pair's sigmoid, > 0
    normalize  : whether to normalize by query, as LightGBM's lambdarank_norm
    """

    truncation: int
    sigma: float
    normalize: bool


class PairBlock(NamedTuple):
    """The pairs whose weights are in memory at a time.

    They are those of the queries first_query..last_query - 1 whose upper document is at the ranks
    first_rank..last_rank - 1. Their weights are a float64[documents of these queries * (last_rank - first_rank)], query
    after query. Those of a query of n documents are a [last_rank - first_rank, n] in C order, indexed by the upper
    document's rank less first_rank, and by the lower document's rank; entries that belong to no pair are neither
    written nor read.
    """

    first_query: int
    last_query: int
    first_rank: int
    last_rank: int


class Gradients(NamedTuple):
    """First and second derivatives of the cost by each document's score, float64[n_documents]; hessians >= 0."""

    gradients: Float64Array
    hessians: Float64Array


class PairSums(NamedTuple):
    """Sums over the pairs of a range of queries, without the factors sigma, sigma^2 and query weight.

    gradients, hessians : float64[documents of the range], whole units of a power of two
    totals              : float64[queries of the range], sum of |lambda| over the pairs of a query
    """

    gradients: Float64Array
    hessians: Float64Array
    totals: Float64Array
