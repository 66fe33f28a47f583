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


class PairSettings(NamedTuple):
    """Settings of the cost of a pair.

    truncation : a pair counts when its upper document is at a rank below this
    sigma      : slope of the pair's sigmoid, > 0
    normalize  : whether to normalize by query, as LightGBM's lambdarank_norm
    """

    truncation: int
    sigma: float
    normalize: bool


class Gradients(NamedTuple):
    """First and second derivatives of the cost by each document's score, float64[n_documents]; hessians >= 0."""

    gradients: Float64Array
    hessians: Float64Array
