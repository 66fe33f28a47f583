"""How far the scores of a ranker are apart within queries."""

from __future__ import annotations

from lmart.array_types import Float64Array, Int64Array
from lmart.kernels.numba_support.code_cache import kernel


@kernel
def sum_query_squares(scores: Float64Array, query_offsets: Int64Array, sum_so_far: float) -> float:
    """Return the sum over documents of the squared distance of their score from the mean score of their query.

    scores        : float64[n], in
    query_offsets : int64[n_queries + 1], the documents of query q are query_offsets[q]:query_offsets[q + 1], in
    sum_so_far    : float64, the sum over earlier queries

    Equation: sum_q sum_i (s_i - mean_q)^2, added in the order of the documents. Parallel: one call for all queries.
    Cost: two passes over the documents.
    """
    total = sum_so_far
    for q in range(len(query_offsets) - 1):
        start, stop = query_offsets[q], query_offsets[q + 1]
        of_query = 0.0
        for i in range(start, stop):
            of_query += scores[i]
        for i in range(start, stop):
            distance = scores[i] - of_query / (stop - start)
            total += distance * distance
    return total
