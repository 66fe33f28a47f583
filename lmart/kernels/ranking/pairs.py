"""Gradients and hessians of costs that are weighted sums over the pairs of a query.

Every sum over pairs is exact: each pair's term is rounded to a multiple of a power of two that is coarse enough for all
partial sums to stay below 2^53 units. So the result does not depend on the order of additions, the vector width of
the processor or the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.kernels.exact.exact_math import TO_WHOLE, exp_minus, log2_of_one_plus, rounding_grid
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ranking.gradient_arrays import Gradients, PairSettings, RankedQueries
from lmart.kernels.ranking.ordering import longest_query
from lmart.kernels.ranking.pair_weights import PairWeighting, QueryTerms, write_terms, write_weights

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

    scores       : float64[n], by rank, descending, in      top_score : float64, not below scores[first_rank], in
    sigma        : float64, > 0, in      first_rank : the first rank to write, in
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
              positive when the upper document is better, negative when the lower is, in
    scale   : float64, exponentials[k] * scale is exp(-sigma (scores[rank] - scores[k])), in
    divide_by_distance : whether weights are divided by 0.01 + the difference of the scores, in
    grid    : float64, from `rounding_grid`; adding and subtracting it rounds to whole units, in
    Equation: rho = 1/(1 + exp(sigma (s_i - s_j))) for i the better document of the pair, delta = |weight|, divided by
    0.01 + |s_i - s_j| if settings say so; gradients -rho delta (i) and +rho delta (j), hessians rho (1 - rho) delta
    (both); the factors sigma and sigma^2 come later. Source: Burges 2010, sections 3 and 6 (LambdaRank, LambdaMART);
    the division is LightGBM's lambdarank_norm.
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
    query_weight : float64, >= 0, in      settings : sigma and normalize are read, in
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
    rounded = 0.0
    for k in range(n):
        running += pair_gradients[k]
        rounded_next = (running * factor + grid) - grid
        gradients[rows[k]] = rounded_next - rounded
        hessians[rows[k]] = pair_hessians[k] * (factor * settings.sigma)
        rounded = rounded_next


@inner_kernel
def add_pairs(
    by_rank: QueryByRank, weighting: PairWeighting, terms: QueryTerms, settings: PairSettings, weights: Float64Array
) -> float:
    """Add the pairs of one query; return the sum of |lambda|.

    by_rank   : scores are in, exponentials are scratch, gradients and hessians are in and out
    weighting : how the pairs are weighted, in      terms : of the query, relevance in, the rest is scratch
    settings  : truncation, sigma and normalize, in      weights : float64[n], scratch
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

    q         : the query, in      queries : all queries, ranked by score, in
    weighting, settings : as in `add_pairs`      scratch : float64[8, >= documents of the query]
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
    weighting, settings : as in `add_pairs`
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
