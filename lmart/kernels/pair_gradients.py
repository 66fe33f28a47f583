"""Gradients and hessians of costs that are weighted sums over the pairs of a query.

Every sum over pairs is exact: each pair's term is rounded to a multiple of a power of two that is coarse enough for all
partial sums to stay below 2^53 units. So the result does not depend on the order of additions, the vector width of
the processor or the number of threads.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.kernels.exact_math import rounding_grid
from lmart.kernels.gradient_arrays import Gradients, PairSettings, RankedQueries
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ordering import longest_query
from lmart.kernels.pair_sums import WIDEST, QueryByRank, add_pairs_of_rank, write_exponentials, write_query_gradients
from lmart.kernels.pair_weights import PairWeighting, QueryTerms, write_terms, write_weights


@inner_kernel
def add_pairs(
    by_rank: QueryByRank, weighting: PairWeighting, terms: QueryTerms, settings: PairSettings, weights: Float64Array
) -> float:
    """Add the pairs of one query; return the sum of |lambda|.

    by_rank   : scores are in, exponentials are scratch, gradients and hessians are in and out
    weighting : how the pairs are weighted, in
    terms     : of the query, relevance in, the rest is scratch
    settings  : truncation, sigma and normalize, in
    weights   : float64[n], scratch
    Equation: that of `add_pairs_of_rank`, with the weights of `write_weights`. Cost: O(min(T, n) n).
    """
    scores = by_rank.scores
    exponentials = by_rank.exponentials
    n = len(scores)
    divide_by_distance = settings.normalize and scores[0] != scores[n - 1]
    # delta is at most the largest weight, or 100 times that after the division by 0.01 + |difference|
    grid = rounding_grid((101.0 if divide_by_distance else 1.01) * weighting.largest_weight * n)
    total = 0.0
    # One exponential a document serves all pairs, unless scores are so far apart that it would underflow.
    narrow = settings.sigma * (scores[0] - scores[n - 1]) < WIDEST
    if narrow:
        write_exponentials(scores, scores[0], settings.sigma, 0, exponentials)
    for rank in range(min(settings.truncation, write_terms(weighting, terms))):
        if not narrow:
            write_exponentials(scores, scores[rank], settings.sigma, rank, exponentials)
        of_rank = weights[rank + 1 :]
        write_weights(rank, weighting, terms, of_rank)
        scale = 1.0 / exponentials[rank]
        total += add_pairs_of_rank(rank, by_rank, of_rank, scale, divide_by_distance, grid)
    return total


@inner_kernel
def write_gradients_of_query(
    q: int,
    queries: RankedQueries,
    weighting: PairWeighting,
    settings: PairSettings,
    scratch: Float64Array,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian of one query.

    q         : the query, in
    queries   : all queries, ranked by score, in
    weighting : how the pairs are weighted, in
    settings  : truncation, sigma and normalize, in
    scratch   : float64[8, >= documents of the query]
    output    : float64[n_documents], by row, out for the rows of this query
    Separate from its caller, because in a kernel that allocates arrays every slice costs a reference count.
    """
    scores, query_weights, query_offsets, order = queries
    start = query_offsets[q]
    n = query_offsets[q + 1] - start
    for row in range(start, start + n):
        output.gradients[row] = 0.0
        output.hessians[row] = 0.0
    if weighting.scale[q] == 0.0 or n < 2 or query_weights[q] == 0.0:
        return
    rows = order[start : start + n]
    by_rank = QueryByRank(scratch[0, :n], scratch[1, :n], scratch[2, :n], scratch[3, :n])
    terms = QueryTerms(scratch[4, :n], scratch[5, :n], scratch[6, :n])
    relevance = terms.relevance
    lowest = np.inf
    highest = -np.inf
    for k in range(n):
        by_rank.scores[k] = scores[rows[k]]
        by_rank.gradients[k] = 0.0
        by_rank.hessians[k] = 0.0
        relevance[k] = weighting.relevance[rows[k]] * weighting.scale[q]
        lowest = min(lowest, relevance[k])
        highest = max(highest, relevance[k])
    if lowest == highest:
        return
    total = add_pairs(by_rank, weighting, terms, settings, scratch[7, :n])
    sums = Gradients(by_rank.gradients, by_rank.hessians)
    write_query_gradients(rows, sums, total, query_weights[q], settings, output)


@kernel
def pair_gradients(
    queries: RankedQueries,
    weighting: PairWeighting,
    settings: PairSettings,
    first_query: int,
    last_query: int,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian of a cost that is a weighted sum over pairs.

    queries   : all queries, ranked by score; those of weight 0 get zeros, in
    weighting : how the pairs are weighted, in
    settings  : truncation, sigma and normalize, in
    first_query, last_query : the queries first_query..last_query - 1 are worked on, in
    output    : float64[n_documents], by row, out, overwritten for these queries
    Equation: the sums over pairs of `add_pairs_of_rank`, weighted by `write_weights`, with the factors of
    `write_query_gradients`. Source: Burges 2010; variant and normalisation as LightGBM's lambdarank. Differs: the
    gradients of a query sum to exactly 0.
    Parallel: the caller runs ranges of queries side by side; a query writes only its own rows. Cost: O(min(T, n) n) for
    a query of n documents at truncation T.
    """
    scratch = np.empty((8, longest_query(queries.query_offsets, first_query, last_query)), np.float64)
    for q in range(first_query, last_query):
        write_gradients_of_query(q, queries, weighting, settings, scratch, output)
