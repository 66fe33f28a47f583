"""Exact sums over the pairs of one query, in the order of the scores; see `pair_gradients`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.kernels.exact_math import TO_WHOLE, exp_minus, log2_of_one_plus, rounding_grid
from lmart.kernels.gradient_arrays import Gradients, PairSettings
from lmart.kernels.numba_support.code_cache import inner_kernel

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
