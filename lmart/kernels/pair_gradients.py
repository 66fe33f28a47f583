"""Gradients and hessians of costs that are weighted sums over the pairs of a query.

Every sum over pairs is exact: each pair's term is rounded to a multiple of a power of two that is coarse enough for all
partial sums to stay below 2^53 units. So the result does not depend on the order of additions, the vector width of
the processor or the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.kernels.exact_math import TO_WHOLE, exp_minus, log2_of_one_plus, rounding_grid
from lmart.kernels.gradient_arrays import Gradients, NdcgTables, PairBlock, PairSettings, PairSums, RankedQueries
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ordering import longest_query
from lmart.kernels.pair_weights import end_of_ranks, start_of_weights, write_ndcg_changes

WIDEST = 600.0  # sigma times a difference of scores up to which its exponential and the inverse are far from the limits


class QueryByRank(NamedTuple):
    """One query of n documents in the order of the scores, each float64[n], by rank.

    scores      : descending
    exponentials : exp(-sigma (a common score - scores[rank])), for the quotients of two of them
    gradients, hessians : sums over pairs, whole units, without the factors sigma, sigma^2 and query weight
    """

    scores: Float64Array
    exponentials: Float64Array
    gradients: Float64Array
    hessians: Float64Array


@inner_kernel
def write_exponentials(
    scores: Float64Array, top_score: float, sigma: float, first_rank: int, exponentials: Float64Array
) -> None:
    """Write exp(-sigma (top_score - score)) for the documents from a rank on.

    scores       : float64[n], by rank, descending, in
    top_score    : float64, not below scores[first_rank], in
    sigma        : float64, > 0, in
    first_rank   : the first rank to write, in
    exponentials : float64[n], by rank, out from first_rank on
    """
    for k in range(np.uint64(first_rank), np.uint64(len(exponentials))):
        exponentials[k] = exp_minus(sigma * (top_score - scores[k]))


@inner_kernel
def add_pairs_of_rank(
    rank: int, by_rank: QueryByRank, weights: Float64Array, scale: float, divide_by_distance: bool, grid: float
) -> float:
    """Add the pairs of the document at a rank with all below it; return the sum of their |lambda|.

    rank    : of the upper document, in
    by_rank : the query; its gradients and hessians are in and out, the rest is in
    weights : float64[n - rank - 1], of the pairs with the documents below, in rank order: how much a pair counts,
              positive when the upper document is the better one, negative when the lower is, in
    scale   : float64, exponentials[k] * scale is exp(-sigma (scores[rank] - scores[k])), in
    divide_by_distance : whether weights are divided by 0.01 + the difference of the scores, in
    grid    : float64, from `rounding_grid`; adding and subtracting it rounds to whole units, in
    Equation: rho = 1/(1 + exp(sigma (s_i - s_j))) for i the better document of the pair, delta = |weight|, divided by
    0.01 + |s_i - s_j| when asked for; gradients -rho delta (i) and +rho delta (j), hessians rho (1 - rho) delta (both);
    the factors sigma and sigma^2 come later. Source: Burges 2010, sections 3 and 6 (LambdaRank, LambdaMART); the
    division is LightGBM's lambdarank_norm.
    """
    upper_score = by_rank.scores[rank]
    lower_scores = by_rank.scores[rank + 1 :]
    lower_exponentials = by_rank.exponentials[rank + 1 :]
    lower_gradients = by_rank.gradients[rank + 1 :]
    lower_hessians = by_rank.hessians[rank + 1 :]
    base = 0.01 if divide_by_distance else 1.0
    slope = 1.0 if divide_by_distance else 0.0
    bits_of_zero = np.float64(grid).view(np.int64)
    gradient_units = hessian_units = lambda_units = np.int64(0)  # sums of integers, since those vectorise
    for k in range(len(weights)):
        e = lower_exponentials[k] * scale
        weight = weights[k]
        distance = base + slope * (upper_score - lower_scores[k])
        inverse = 1.0 / ((1.0 + e) * distance)  # one division for both 1/(1+e) and 1/distance
        share = weight * inverse
        # weight > 0: the better document is above, rho is e/(1+e); else it is below, rho is 1/(1+e).
        gradient = share * (e if weight > 0.0 else 1.0) + grid
        hessian = abs(share) * e * (inverse * distance) + grid
        lower_gradients[k] += gradient - grid
        lower_hessians[k] += hessian - grid
        units = np.float64(gradient).view(np.int64) - bits_of_zero
        gradient_units += units
        lambda_units += abs(units)
        hessian_units += np.float64(hessian).view(np.int64) - bits_of_zero
    unit = grid / TO_WHOLE
    by_rank.gradients[rank] -= gradient_units * unit
    by_rank.hessians[rank] += hessian_units * unit
    return lambda_units * unit


@inner_kernel
def write_query_gradients(
    rows: Int32Array, sums: Gradients, total: float, query_weight: float, settings: PairSettings, output: Gradients
) -> None:
    """Write the gradients and hessians of one query from the sums over its pairs.

    rows         : int32[n], the row of each entry of the sums, in
    sums         : float64[n], without the factors sigma, sigma^2 and query weight, in
    total        : float64, sum of |lambda| over pairs, for settings.normalize, in
    query_weight : float64, >= 0, in
    settings     : sigma and normalize are read, in
    output       : float64[n_documents], by row, out, written for these rows where not all gradients of sums are 0
    Equation: gradients times sigma, hessians times sigma^2, when normalising both times log2(1 + S)/S with
    S = 2 sigma total (LightGBM's lambdarank_norm), times the query's weight. When the gradients of the sums add up to
    exactly 0, so do those written: their running sum is rounded, then differenced.
    """
    gradients = output.gradients
    hessians = output.hessians
    pair_gradients = sums.gradients
    pair_hessians = sums.hessians
    factor = query_weight * settings.sigma
    if settings.normalize and total > 0.0:
        total *= 2.0 * settings.sigma
        factor *= log2_of_one_plus(total) / total
    n = len(rows)
    size = 0.0
    for k in range(n):
        size += abs(pair_gradients[k])
    if size == 0.0:
        return
    grid = rounding_grid(size * factor)
    running = 0.0
    before = 0.0
    for k in range(n):
        running += pair_gradients[k]
        after = (running * factor + grid) - grid
        gradients[rows[k]] = after - before
        hessians[rows[k]] = pair_hessians[k] * (factor * settings.sigma)
        before = after


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
