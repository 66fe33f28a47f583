"""Gradients and hessians of costs with random numbers: XE-NDCG, and pairs of neighbours in random orders (YetiRank).

Each sum goes over the documents of a query in a fixed order, so it does not depend on the number of threads; the sums
of `add_pairs_of_random_orders` are in whole units besides, and cancel exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt64Array
from lmart.kernels.bit_mixing import mix_bits
from lmart.kernels.exact_math import exp_minus
from lmart.kernels.gradient_arrays import Gradients, PairSums, RankedQueries
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ordering import longest_query

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


class RandomOrders(NamedTuple):
    """The random orders of each query in a round.

    key          : uint64, of the round
    n_orders     : how many are drawn, > 0
    rank_weights : float64[n_ranks], n_ranks > 0, weight of a pair by the rank of its upper document; n_orders times
                   their sum is at most 32
    """

    key: np.uint64
    n_orders: int
    rank_weights: Float64Array


class OrderBuffers(NamedTuple):
    """Working arrays for one query, overwritten for each order.

    random_bits : uint64[>= documents of the query], by rank
    keys        : uint64[n_ranks + 1], of the first documents of the order, see `draw_first_ranks`
    """

    random_bits: UInt64Array
    keys: UInt64Array


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
            exponentials[row] = exp_minus(sigma * (best - scores[row]))


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


@inner_kernel
def draw_first_ranks(
    exponentials: Float64Array, ranked_rows: Int32Array, shift: int, n_kept: int, buffers: OrderBuffers
) -> None:
    """Write the first documents of one random order of a query.

    exponentials : float64[n_documents], by row, from `write_softmax_numerators`, in
    ranked_rows  : int32[n], the rows of the query by score, in
    shift        : int64, from which bit on the random bits of a document are taken
    n_kept       : int64, how many documents are wanted, at most n
    buffers      : random_bits in; keys out: the high 32 bits are those of the key below as float32, the low ones are
                   2^32 - 1 - rank of the document by score

    Equation: descending sigma s + ln(r / (1 - r)) by the keys exp(sigma s) r / (1 - r), r in (0, 1) from 21 bits; equal
    keys stay by score, as do all that are more than 87 / sigma below the best. Cost: O(n + n_kept^2 log n) on average.
    """
    random_bits, keys = buffers
    one = np.uint64(1)
    last = np.uint64(n_kept - 1)
    least = 0.0  # key of the last of those kept
    for rank in range(np.uint64(len(ranked_rows))):
        low_bits = (random_bits[rank] >> np.uint64(shift)) & np.uint64(0x1FFFFF)
        r = (np.float64(low_bits) + 0.5) * 2.0**-21
        exponential = exponentials[ranked_rows[rank]]
        if rank > last and exponential * r < least * (1.0 - r):  # saves the division
            continue
        key_bits = np.uint64(np.float32(exponential * (r / (1.0 - r))).view(np.uint32))
        key = (key_bits << np.uint64(32)) | (np.uint64(0xFFFFFFFF) - np.uint64(rank))
        if rank > last and key < keys[last]:
            continue
        k = min(np.uint64(rank), last)
        while k > np.uint64(0) and keys[k - one] < key:
            keys[k] = keys[k - one]
            k -= one
        keys[k] = key
        if rank >= last:
            least = np.float64(np.uint32(keys[last] >> np.uint64(32)).view(np.float32))


@inner_kernel
def add_neighbour_pairs(
    keys: UInt64Array,
    ranked_rows: Int32Array,
    queries: RankedQueries,
    exponentials: Float64Array,
    relevance: Float64Array,
    rank_weights: Float64Array,
    sigma: float,
    first_row: int,
    sums: PairSums,
) -> float:
    """Add the pairs of documents at adjacent ranks of one order of a query; return the sum of |lambda| over them.

    keys         : uint64[n], the first documents of the order, as `draw_first_ranks` writes them, in
    ranked_rows  : int32[n_documents of the query], its rows by score, in
    queries      : scores are read, in
    exponentials : float64[n_documents], by row, from `write_softmax_numerators`, in
    relevance    : float64[n_documents], by row, from 0 to 1, in
    rank_weights : float64[>= n - 1], weight of a pair by the rank of its upper document, in
    sigma        : float64, > 0, in
    first_row    : int64, the row of the first entry of sums
    sums         : gradients and hessians are in and out, whole units, 0 before the first order

    Equation: for the neighbours at ranks k and k + 1, i the better one: w = rank_weights[k] |y_i - y_j|, y relevance,
    rho = 1 / (1 + exp(sigma (s_i - s_j))), gradients -rho w (i) and +rho w (j), hessians rho (1 - rho) w (both).
    Source: Gulin, Kuralenok and Pavlov 2011, section 3. Cost: O(n).
    """
    scores, gradients, hessians = queries.scores, sums.gradients, sums.hessians
    total = 0.0
    first = np.uint64(first_row)
    lower = np.uint64(ranked_rows[np.uint64(0xFFFFFFFF) - (keys[0] & np.uint64(0xFFFFFFFF))])
    for rank in range(np.uint64(len(keys) - 1)):
        upper = lower
        lower = np.uint64(
            ranked_rows[np.uint64(0xFFFFFFFF) - (keys[np.uint64(rank) + np.uint64(1)] & np.uint64(0xFFFFFFFF))]
        )
        better, worse = upper, lower
        if relevance[better] == relevance[worse]:
            continue
        if relevance[better] < relevance[worse]:
            better, worse = worse, better
        of_worse = exponentials[worse]
        of_better = exponentials[better]
        if of_worse == 0.0 or of_better == 0.0:  # too far below the best of the query: start from the higher score
            of_lower = exp_minus(sigma * abs(scores[better] - scores[worse]))
            of_worse = of_lower if scores[better] > scores[worse] else 1.0
            of_better = 1.0 if scores[better] > scores[worse] else of_lower
        inverse = 1.0 / (of_worse + of_better)
        gradient = rank_weights[rank] * (relevance[better] - relevance[worse]) * (of_worse * inverse)
        hessian = gradient * (of_better * inverse)
        gradient = (gradient + GRID) - GRID
        hessian = (hessian + GRID) - GRID
        gradients[better - first] -= gradient
        gradients[worse - first] += gradient
        hessians[better - first] += hessian
        hessians[worse - first] += hessian
        total += gradient
    return total


@kernel
def add_pairs_of_random_orders(
    queries: RankedQueries,
    exponentials: Float64Array,
    relevance: Float64Array,
    orders: RandomOrders,
    sigma: float,
    first_query: int,
    last_query: int,
    sums: PairSums,
) -> None:
    """Draw random orders of each query, and add the pairs of documents at adjacent ranks.

    queries      : all queries, ordered by score; queries of weight 0 are left out, in
    exponentials : float64[n_documents], by row, from `write_softmax_numerators`, in
    relevance    : float64[n_documents], by row, from 0 to 1, in
    orders       : what is drawn, in
    sigma        : float64, > 0, in
    first_query, last_query : the queries first_query..last_query - 1 are added, in
    sums         : of these queries, by row, whole units, out, 0 before

    Equation: see `draw_first_ranks` and `add_neighbour_pairs`. A document's random bits for three orders are one hash
    of its row. Parallel: the caller runs ranges of queries side by side, each with sums of its own.
    Cost: O(n_orders (n + n_ranks^2 log n)) for a query of n documents.
    """
    query_offsets, order = queries.query_offsets, queries.order
    n_ranks = len(orders.rank_weights)
    longest = longest_query(query_offsets, first_query, last_query)
    buffers = OrderBuffers(np.empty(longest, np.uint64), np.empty(n_ranks + 1, np.uint64))
    first_row = query_offsets[first_query]
    for q in range(first_query, last_query):
        ranked_rows = order[query_offsets[q] : query_offsets[q + 1]]
        n_kept = min(len(ranked_rows), n_ranks + 1)
        if queries.query_weights[q] == 0.0 or n_kept < 2:
            continue
        for first_order in range(0, orders.n_orders, 3):
            key = mix_bits(orders.key ^ np.uint64(first_order))
            for rank in range(len(ranked_rows)):
                buffers.random_bits[rank] = mix_bits(np.uint64(ranked_rows[rank]) ^ key)
            for number in range(min(3, orders.n_orders - first_order)):
                draw_first_ranks(exponentials, ranked_rows, 21 * number, n_kept, buffers)
                sums.totals[q - first_query] += add_neighbour_pairs(
                    buffers.keys[:n_kept],
                    ranked_rows,
                    queries,
                    exponentials,
                    relevance,
                    orders.rank_weights,
                    sigma,
                    first_row,
                    sums,
                )
