"""Gradients and hessians of costs that are weighted sums over the pairs of a query.

Every sum over pairs is exact: each pair's term is rounded to a multiple of a power of two that is coarse enough for all
partial sums to stay below 2^53 units. So the result does not depend on the order of additions, the vector width of
the processor or the number of threads.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.kernels.exact_math import rounding_grid
from lmart.kernels.gradient_arrays import Gradients, NdcgTables, PairBlock, PairSettings, PairSums, RankedQueries
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ordering import longest_query
from lmart.kernels.pair_sums import WIDEST, QueryByRank, add_pairs_of_rank, write_exponentials, write_query_gradients
from lmart.kernels.pair_weights import end_of_ranks, start_of_weights, write_ndcg_changes


@inner_kernel
def add_lambda_pairs(
    by_rank: QueryByRank, relevance: Float64Array, discount: Float64Array, settings: PairSettings, weights: Float64Array
) -> float:
    """Add the pairs of one query, weighted by the change of NDCG; return the sum of |lambda|.

    by_rank   : scores are in, exponentials are scratch, gradients and hessians are in and out
    relevance : float64[n], gains by rank, divided by the ideal DCG, in
    discount  : float64[>= n], 1 / log2(rank + 2), in
    settings  : truncation, sigma and normalize, in
    weights   : float64[n], scratch
    Equation: that of `add_pairs_of_rank`, with the weights of `write_ndcg_changes`. Cost: O(min(T, n) n).
    """
    scores = by_rank.scores
    exponentials = by_rank.exponentials
    n = len(scores)
    divide_by_distance = settings.normalize and scores[0] != scores[n - 1]
    # delta is at most 1, or 100 after the division by 0.01 + |difference|
    grid = rounding_grid((101.0 if divide_by_distance else 1.01) * n)
    total = 0.0
    # One exponential a document serves all pairs, unless scores are so far apart that it would underflow.
    narrow = settings.sigma * (scores[0] - scores[n - 1]) < WIDEST
    if narrow:
        write_exponentials(scores, scores[0], settings.sigma, 0, exponentials)
    for rank in range(n - 1 if settings.truncation == 0 else min(settings.truncation, n - 1)):
        if not narrow:
            write_exponentials(scores, scores[rank], settings.sigma, rank, exponentials)
        write_ndcg_changes(rank, relevance, discount, weights)
        scale = 1.0 / exponentials[rank]
        total += add_pairs_of_rank(rank, by_rank, weights[rank + 1 :], scale, divide_by_distance, grid)
    return total


@inner_kernel
def write_lambdas_of_query(
    q: int,
    queries: RankedQueries,
    ndcg: NdcgTables,
    settings: PairSettings,
    scratch: Float64Array,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian of the LambdaRank cost, for one query.

    q        : the query, in
    queries  : all queries, ranked by score, in
    ndcg     : their gains, inverse ideal DCG and discounts, in
    settings : truncation, sigma and normalize, in
    scratch  : float64[6, >= documents of the query]
    output   : float64[n_documents], by row, out for the rows of this query
    Separate from its caller, because in a kernel that allocates arrays every slice costs a reference count.
    """
    scores, query_weights, query_offsets, order = queries
    gains, inverse_ideal_dcg, discount = ndcg
    gradients, hessians = output
    start = query_offsets[q]
    n = query_offsets[q + 1] - start
    for row in range(start, start + n):
        gradients[row] = 0.0
        hessians[row] = 0.0
    if inverse_ideal_dcg[q] == 0.0 or n < 2 or query_weights[q] == 0.0:
        return
    rows = order[start : start + n]
    scores_by_rank = scratch[0, :n]
    relevance = scratch[1, :n]
    sums = Gradients(scratch[2, :n], scratch[3, :n])
    lowest = np.inf
    highest = -np.inf
    for k in range(n):
        scores_by_rank[k] = scores[rows[k]]
        relevance[k] = gains[rows[k]] * inverse_ideal_dcg[q]
        sums.gradients[k] = 0.0
        sums.hessians[k] = 0.0
        lowest = min(lowest, relevance[k])
        highest = max(highest, relevance[k])
    if lowest == highest:
        return
    by_rank = QueryByRank(scores_by_rank, scratch[4, :n], sums.gradients, sums.hessians)
    total = add_lambda_pairs(by_rank, relevance, discount, settings, scratch[5, :n])
    write_query_gradients(rows, sums, total, query_weights[q], settings, output)


@kernel
def lambda_gradients(
    queries: RankedQueries,
    ndcg: NdcgTables,
    settings: PairSettings,
    first_query: int,
    last_query: int,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian of the LambdaRank cost.

    queries  : all queries, ranked by score, in
    ndcg     : their gains, inverse ideal DCG (0: the query adds nothing) and discounts, in
    settings : truncation, sigma and normalize, in
    first_query, last_query : the queries first_query..last_query - 1 are worked on, in
    output   : float64[n_documents], by row, out, overwritten for these queries
    Equation: the sums over pairs of `add_pairs_of_rank`, weighted by `write_ndcg_changes`, with the factors of
    `write_query_gradients`. Source: Burges 2010; variant and normalisation as LightGBM's lambdarank. Differs: the
    gradients of a query sum to exactly 0.
    Parallel: the caller runs ranges of queries side by side; a query writes only its own rows. Cost: O(min(T, n) n) for
    a query of n documents at truncation T.
    """
    scratch = np.empty((6, longest_query(queries.query_offsets, first_query, last_query)), np.float64)
    for q in range(first_query, last_query):
        write_lambdas_of_query(q, queries, ndcg, settings, scratch, output)


@kernel
def add_weighted_pairs(
    queries: RankedQueries,
    weights: Float64Array,
    largest_weight: float,
    settings: PairSettings,
    block: PairBlock,
    sums: PairSums,
) -> None:
    """Add the pairs of a block, with weights that are given.

    queries  : all queries, ranked by score; those of weight 0 are left out, in
    weights  : float64, laid out as `PairBlock` says: how much a pair counts, positive when the upper document is the
               better one, negative when the lower is, in
    largest_weight : float64, bound of all |weights|, the same for all blocks of a query, in
    settings : sigma and normalize are read, in
    block    : which pairs, in
    sums     : of the queries of the block, by query and rank, in and out, 0 before the first block
    Equation: that of `add_pairs_of_rank`.
    Parallel: the caller runs ranges of queries side by side, each with weights and sums of its own. Cost: the number of
    pairs.
    """
    scores, _, query_offsets, order = queries
    pair_gradients, pair_hessians, totals = sums
    scratch = np.empty((2, longest_query(query_offsets, block.first_query, block.last_query)), np.float64)
    first_row = query_offsets[block.first_query]
    for q in range(block.first_query, block.last_query):
        last_rank = end_of_ranks(queries, block, q)
        if last_rank == block.first_rank:
            continue
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        scores_by_rank = scratch[0, :n]
        exponentials = scratch[1, :n]
        gradients = pair_gradients[start - first_row : start - first_row + n]
        hessians = pair_hessians[start - first_row : start - first_row + n]
        by_rank = QueryByRank(scores_by_rank, exponentials, gradients, hessians)
        for k in range(n):
            scores_by_rank[k] = scores[order[start + k]]
        divide_by_distance = settings.normalize and scores_by_rank[0] != scores_by_rank[n - 1]
        grid = rounding_grid((101.0 if divide_by_distance else 1.01) * largest_weight * n)
        narrow = settings.sigma * (scores_by_rank[0] - scores_by_rank[n - 1]) < WIDEST
        if narrow:
            write_exponentials(scores_by_rank, scores_by_rank[0], settings.sigma, 0, exponentials)
        for rank in range(block.first_rank, last_rank):
            if not narrow:
                write_exponentials(scores_by_rank, scores_by_rank[rank], settings.sigma, rank, exponentials)
            first_weight = start_of_weights(query_offsets, block, q, rank)
            of_rank = weights[first_weight + rank + 1 : first_weight + n]
            scale = 1.0 / exponentials[rank]
            totals[q - block.first_query] += add_pairs_of_rank(rank, by_rank, of_rank, scale, divide_by_distance, grid)


@kernel
def write_weighted(
    sums: PairSums,
    queries: RankedQueries,
    settings: PairSettings,
    first_query: int,
    last_query: int,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian from sums over pairs.

    sums     : of the queries of the range, a query's entries in the order of its rows in queries.order, in
    queries  : all queries; those of weight 0 get zeros, scores are not read, in
    settings : sigma and normalize are read, in
    first_query, last_query : the queries first_query..last_query - 1 are written, in
    output   : float64[n_documents], by row, out, overwritten for these queries
    Equation: that of `write_query_gradients`. Parallel: the caller runs ranges of queries side by side. Cost: O(n).
    """
    _, query_weights, query_offsets, order = queries
    pair_gradients, pair_hessians, totals = sums
    gradients, hessians = output
    first_row = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        for row in range(start, stop):
            gradients[row] = 0.0
            hessians[row] = 0.0
        if query_weights[q] != 0.0:
            of_query = Gradients(
                pair_gradients[start - first_row : stop - first_row],
                pair_hessians[start - first_row : stop - first_row],
            )
            rows = order[start:stop]
            total = totals[q - first_query]
            write_query_gradients(rows, of_query, total, query_weights[q], settings, output)
