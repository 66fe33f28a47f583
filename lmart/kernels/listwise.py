"""Gradients and hessians of costs with random numbers: XE-NDCG, and pairs of neighbours in random orders (YetiRank).

Each sum goes over the documents of a query in a fixed order, so it does not depend on the number of threads; the sums
of `add_neighbour_pairs` are in whole units besides, and cancel exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.kernels.bit_mixing import mix_bits
from lmart.kernels.exact_math import exp_minus_by_squaring
from lmart.kernels.gradient_arrays import Gradients, PairSums, RankedQueries
from lmart.kernels.numba_support.code_cache import kernel

GRID = 1.5 * 2.0**7  # adding and subtracting it rounds to whole units of 2^-45: sums below 2^8 are exact


class SoftmaxQueries(NamedTuple):
    """The inputs of the cross entropy.

    exponentials  : float64[n_documents], softmax numerators (`write_softmax_numerators`)
    gains         : float64[n_documents], scaled by query
    gain_units    : float64[n_documents], what a gain of 1 is in `gains`
    query_weights : float64[n_queries], >= 0
    query_offsets : int64[n_queries + 1]
    """

    exponentials: Float64Array
    gains: Float64Array
    gain_units: Float64Array
    query_weights: Float64Array
    query_offsets: Int64Array


class OrderDraw(NamedTuple):
    """One random order of each query.

    n_ranks : how many of its first documents are wanted, > 0
    key     : uint64, of the round
    number  : of the order in its round, from 0
    """

    n_ranks: int
    key: np.uint64
    number: int


@kernel
def write_softmax_numerators(
    scores: Float64Array,
    query_offsets: Int64Array,
    sigma: float,
    first_query: int,
    last_query: int,
    exponentials: Float64Array,
) -> None:
    """Write exp(-sigma (best - score)) of each document, best being the highest score of its query.

    scores        : float64[n], by row, in
    query_offsets : int64[n_queries + 1], in
    sigma         : float64, > 0, in
    first_query, last_query : the queries first_query..last_query - 1 are written, in
    exponentials  : float64[n], by row, in [0, 1], out for these queries
    Parallel: the caller runs ranges of queries side by side. Cost: O(n).
    """
    for q in range(first_query, last_query):
        best = -np.inf
        for row in range(query_offsets[q], query_offsets[q + 1]):
            best = max(best, scores[row])
        for row in range(query_offsets[q], query_offsets[q + 1]):
            exponentials[row] = exp_minus_by_squaring(sigma * (best - scores[row]))


@kernel
def cross_entropy(
    queries: SoftmaxQueries, sigma: float, key: np.uint64, first_query: int, last_query: int, output: Gradients
) -> None:
    """Write each document's gradient and hessian of the cross entropy between its query's labels and scores.

    queries : all queries, in
    sigma   : float64, > 0, in
    key     : uint64, of the round, in
    first_query, last_query : the queries first_query..last_query - 1 are worked on, in
    output  : float64[n_documents], by row, out, overwritten for these queries
    Equation: rho_i = exp(sigma s_i) / sum_j exp(sigma s_j), phi_i = (G_i + 1 - gamma_i) / sum_j (G_j + 1 - gamma_j),
    gamma_i uniform in [0, 1) and new each round; cost -sum phi_i ln rho_i, gradient sigma (rho_i - phi_i), hessian
    sigma^2 rho_i (1 - rho_i); times the query's weight. Source: Bruch 2021, section 4, where 2^label stands for G + 1.
    Differs: the gradient is the derivative itself, without the two further terms of LightGBM's rank_xendcg; a query
    whose gains are all equal is left out, as its gradients would be noise alone.
    Parallel: the caller runs ranges of queries side by side. Cost: O(n).
    """
    exponentials, gains, gain_units, query_weights, query_offsets = queries
    gradients, hessians = output
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        total_exponential = 0.0
        total_target = 0.0
        lowest = np.inf
        highest = -np.inf
        for row in range(start, stop):
            gamma = np.float64(mix_bits(np.uint64(row) ^ key) >> np.uint64(11)) * 2.0**-53
            target = gains[row] + gain_units[row] * (1.0 - gamma)
            gradients[row] = target
            hessians[row] = 0.0
            total_exponential += exponentials[row]
            total_target += target
            lowest = min(lowest, gains[row])
            highest = max(highest, gains[row])
        for row in range(start, stop):
            if lowest == highest:
                gradients[row] = 0.0
                continue
            rho = exponentials[row] / total_exponential
            gradients[row] = (rho - gradients[row] / total_target) * (query_weights[q] * sigma)
            rest = (total_exponential - exponentials[row]) / total_exponential
            hessians[row] = rho * rest * (query_weights[q] * sigma * sigma)


@kernel
def draw_orders(
    exponentials: Float64Array,
    query_offsets: Int64Array,
    order: Int32Array,
    draw: OrderDraw,
    first_query: int,
    last_query: int,
    drawn: Int32Array,
) -> None:
    """Write the first documents of each query in a random order.

    exponentials  : float64[n], by row, from `write_softmax_numerators`, in
    query_offsets : int64[n_queries + 1], in
    order         : int32[n], rows of each query by score, in
    draw          : which order, and how many documents of it, in
    first_query, last_query : the queries first_query..last_query - 1 are written, in
    drawn         : int32[n], out: at the start of each query's range its first n_ranks rows, or all if it has fewer
    Equation: descending sigma s + ln(r / (1 - r)), r uniform in (0, 1), by the keys exp(sigma s) r / (1 - r); equal
    keys stay by score, as all do that are more than 700 / sigma below the best. Source: Gulin, Kuralenok and Pavlov
    2011, section 3. Parallel: the caller runs ranges of queries side by side. Cost: O(n_ranks^2 log n + n) on average.
    """
    keys = np.empty(draw.n_ranks, np.float64)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        n_kept = min(n, draw.n_ranks)
        for rank in range(n):
            row = order[start + rank]
            bits = mix_bits(mix_bits(np.uint64(row) ^ draw.key) ^ np.uint64(draw.number)) >> np.uint64(12)
            r = (np.float64(bits) + 0.5) * 2.0**-52
            key = exponentials[row] * (r / (1.0 - r))
            if rank >= n_kept and key <= keys[n_kept - 1]:
                continue
            k = min(rank, n_kept - 1)
            while k > 0 and keys[k - 1] < key:
                keys[k] = keys[k - 1]
                drawn[start + k] = drawn[start + k - 1]
                k -= 1
            keys[k] = key
            drawn[start + k] = row


@kernel
def add_neighbour_pairs(
    queries: RankedQueries,
    exponentials: Float64Array,
    relevance: Float64Array,
    rank_weights: Float64Array,
    sigma: float,
    first_query: int,
    last_query: int,
    sums: PairSums,
) -> None:
    """Add the pairs of documents at adjacent ranks of an order.

    queries      : all queries in the random order, of which the first n_ranks + 1 rows of each query are read;
                   scores are those without noise; queries of weight 0 are left out, in
    exponentials : float64[n_documents], by row, from `write_softmax_numerators`, in
    relevance    : float64[n_documents], by row, from 0 to 1, in
    rank_weights : float64[n_ranks], weight of a pair by the rank of its upper document; its sum over all orders that
                   are added is at most 32, in
    sigma        : float64, > 0, in
    first_query, last_query : the queries first_query..last_query - 1 are added, in
    sums         : of these queries, by row, whole units, in and out, 0 before the first order
    Equation: for the neighbours at ranks k and k + 1, i the better one: w = rank_weights[k] |y_i - y_j|, y relevance,
    rho = 1 / (1 + exp(sigma (s_i - s_j))), gradients -rho w (i) and +rho w (j), hessians rho (1 - rho) w (both).
    Source: Gulin, Kuralenok and Pavlov 2011, section 3. Parallel: the caller runs ranges of queries side by side, each
    with sums of its own. Cost: O(min(n_ranks, n)) for a query of n documents.
    """
    scores, query_weights, query_offsets, order = queries
    gradients, hessians, totals = sums
    first_row = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        if query_weights[q] == 0.0:
            continue
        for rank in range(min(n - 1, len(rank_weights))):
            better = order[start + rank]
            worse = order[start + rank + 1]
            if relevance[better] == relevance[worse]:
                continue
            if relevance[better] < relevance[worse]:
                better, worse = worse, better
            of_worse = exponentials[worse]
            of_better = exponentials[better]
            if of_worse == 0.0 or of_better == 0.0:  # too far below the best of the query: start from the higher score
                of_lower = exp_minus_by_squaring(sigma * abs(scores[better] - scores[worse]))
                of_worse = of_lower if scores[better] > scores[worse] else 1.0
                of_better = 1.0 if scores[better] > scores[worse] else of_lower
            both = of_worse + of_better
            gradient = rank_weights[rank] * (relevance[better] - relevance[worse]) * (of_worse / both)
            hessian = gradient * (of_better / both)
            gradient = (gradient + GRID) - GRID
            hessian = (hessian + GRID) - GRID
            gradients[better - first_row] -= gradient
            gradients[worse - first_row] += gradient
            hessians[better - first_row] += hessian
            hessians[worse - first_row] += hessian
            totals[q - first_query] += gradient
