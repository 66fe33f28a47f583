"""Gradients and hessians of pairs of neighbours in random orders (YetiRank).

Each pair's term is rounded to whole units, so that sums are exact, in any order, and cancel exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.exact.exact_math import exp_minus
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ranking.gradient_arrays import Gradients, PairSettings, RankedQueries
from lmart.kernels.ranking.ordering import longest_query
from lmart.kernels.ranking.pairs import write_query_gradients
from lmart.kernels.ranking.random_orders import (
    FIRST_GUESS,
    OrderBuffers,
    draw_order,
    padded_length,
    write_keys,
    write_random_bits,
)

_ONE = np.uint64(1)
GRID = 1.5 * 2.0**7  # adding and subtracting it rounds to whole units of 2^-45: sums below 2^8 are exact


class RandomOrders(NamedTuple):
    """The random orders of each query in a round.

    key          : uint64, of the round
    n_orders     : int64, > 0
    rank_weights : float64[n_ranks], n_ranks > 0, weight of a pair by the rank of its upper document; n_orders times
                   their sum is at most 32
    first_row    : int64, number of row 0 in all data, which random numbers depend on
    """

    key: np.uint64
    n_orders: int
    rank_weights: Float64Array
    first_row: int


class QueryDocuments(NamedTuple):
    """The documents of one query, each float64[n], and the sums over its pairs, without the factors sigma and sigma^2.

    exponentials : from `write_softmax_numerators`
    relevance    : from 0 to 1
    gradients, hessians : whole units, in and out
    """

    scores: Float64Array
    exponentials: Float64Array
    relevance: Float64Array
    gradients: Float64Array
    hessians: Float64Array


class PairBuffers(NamedTuple):
    """Working arrays of the pairs of one order, each float64[n_ranks + 2], by rank.

    relevance : of the document at a rank
    of_upper  : its exponential, for the pair with the document below
    of_lower  : likewise, for the pair with the document above
    gradients, hessians : of the pair with the document above, 0 without such a document
    sizes     : sums of |gradient| over the orders so far
    """

    relevance: Float64Array
    of_upper: Float64Array
    of_lower: Float64Array
    gradients: Float64Array
    hessians: Float64Array
    sizes: Float64Array


@inner_kernel
def read_ranks(order: Int32Array, query: QueryDocuments, sigma: float, pairs: PairBuffers) -> None:
    """Write relevance and exponentials of the documents at the ranks of an order.

    order : int32[n], documents, in      query : scores, exponentials and relevance are read, in
    sigma : float64, > 0, in
    pairs : relevance, of_upper and of_lower are out; of each pair only the quotient of the two exponentials counts

    Where a document is too far below the best of the query for an exponential, a pair's start from its higher score.
    """
    relevance, of_upper, of_lower = pairs.relevance, pairs.of_upper, pairs.of_lower
    smallest = 1.0
    for k in range(np.uint64(len(order))):
        document = np.uint64(order[k])
        relevance[k] = query.relevance[document]
        of_upper[k] = of_lower[k] = query.exponentials[document]
        smallest = min(smallest, query.exponentials[document])
    if smallest > 0.0:
        return
    for rank in range(len(order) - 1):
        distance = sigma * (query.scores[order[rank]] - query.scores[order[rank + 1]])
        of_upper[rank] = exp_minus(max(-distance, 0.0))
        of_lower[rank + 1] = exp_minus(max(distance, 0.0))


@inner_kernel
def add_neighbour_pairs(
    order: Int32Array, query: QueryDocuments, rank_weights: Float64Array, sigma: float, pairs: PairBuffers
) -> None:
    """Add the pairs of documents at adjacent ranks of one order of a query.

    order        : int32[n], the documents at its first ranks, in
    query        : gradients and hessians are in and out, the rest is in
    rank_weights : float64[>= n - 1], weight of a pair by the rank of its upper document, in
    sigma        : float64, > 0, in      pairs : sizes in and out, the rest scratch

    Equation: for the neighbours at ranks k and k + 1, i the better one: w = rank_weights[k] |y_i - y_j|, y relevance,
    rho = 1 / (1 + exp(sigma (s_i - s_j))), gradients -rho w (i) and +rho w (j), hessians rho (1 - rho) w (both).
    Source: Gulin, Kuralenok and Pavlov 2011, section 3. Cost: O(n), without branches.
    """
    relevance, of_upper, of_lower, gradients, hessians, sizes = pairs
    read_ranks(order, query, sigma, pairs)
    n = np.uint64(len(order))
    for k in range(n - _ONE):
        below = np.uint64(k) + _ONE
        difference = relevance[k] - relevance[below]  # signed like the upper document's gain by the pair
        upper, lower = of_upper[k], of_lower[below]
        inverse = 1.0 / (upper + lower)
        of_worse = lower if difference > 0.0 else upper
        of_better = upper if difference > 0.0 else lower
        gradient = rank_weights[k] * difference * (of_worse * inverse)
        hessian = abs(gradient) * (of_better * inverse)
        gradient = (gradient + GRID) - GRID
        gradients[below] = gradient
        hessians[below] = (hessian + GRID) - GRID
        sizes[k] += abs(gradient)
    gradients[n] = hessians[n] = 0.0
    for k in range(n):
        document, below = np.uint64(order[k]), np.uint64(k) + _ONE
        query.gradients[document] += gradients[k] - gradients[below]
        query.hessians[document] += hessians[k] + hessians[below]


@inner_kernel
def add_orders_of_query(
    first_row: int,
    query: QueryDocuments,
    orders: RandomOrders,
    sigma: float,
    buffers: OrderBuffers,
    pairs: PairBuffers,
) -> None:
    """Draw the orders of one query, and add their pairs.

    first_row : int64, the row of the query's first document, in
    query     : gradients and hessians are in and out, the rest is in
    orders    : key, number and rank weights of the orders, in      sigma : float64, > 0, in
    buffers   : scratch
    pairs     : gradients[0] and hessians[0] are 0, in; sizes in and out, the rest scratch
    """
    n = len(query.scores)
    n_kept = min(n, len(orders.rank_weights) + 1)
    for k in range(n, padded_length(n)):
        buffers.keys[k] = np.float32(0.0)
    guess = FIRST_GUESS
    for first_order in range(0, orders.n_orders, 3):
        key = mix_bits(orders.key ^ np.uint64(first_order))
        write_random_bits(orders.first_row + first_row, n, key, buffers.random_bits)
        for number in range(min(3, orders.n_orders - first_order)):
            write_keys(buffers.random_bits, 21 * number, query.exponentials, buffers.keys)
            guess = draw_order(query.scores, n_kept, guess, buffers)
            add_neighbour_pairs(buffers.order[:n_kept], query, orders.rank_weights, sigma, pairs)


@inner_kernel
def write_gradients_of_query(
    q: int,
    queries: RankedQueries,
    query: QueryDocuments,
    orders: RandomOrders,
    settings: PairSettings,
    buffers: OrderBuffers,
    pairs: PairBuffers,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian of one query.

    q        : the query, of at least two documents, in      queries : all queries, in
    query    : the documents of this query; gradients and hessians are scratch, the rest is in
    orders, buffers : as in `add_orders_of_query`      settings : sigma and normalize are read, in
    pairs    : gradients[0] and hessians[0] are 0, in; the rest is scratch
    output   : float64[n_documents], by row, out for the rows of this query
    """
    n_ranks = len(orders.rank_weights)
    for k in range(len(query.scores)):
        query.gradients[k] = query.hessians[k] = 0.0
    for k in range(n_ranks):
        pairs.sizes[k] = 0.0
    start = queries.query_offsets[q]
    add_orders_of_query(start, query, orders, settings.sigma, buffers, pairs)
    total = 0.0
    for k in range(n_ranks):
        total += pairs.sizes[k]
    rows = queries.order[start : queries.query_offsets[q + 1]]
    sums = Gradients(query.gradients, query.hessians)
    write_query_gradients(rows, sums, total, queries.query_weights[q], settings, output)


@kernel
def neighbour_gradients(
    queries: RankedQueries,
    exponentials: Float64Array,
    relevance: Float64Array,
    orders: RandomOrders,
    settings: PairSettings,
    first_query: int,
    last_query: int,
    output: Gradients,
) -> None:
    """Write each document's gradient and hessian of a cost of pairs of neighbours in random orders.

    queries      : all queries, with their rows in the order of the data; those of weight 0 get zeros, in
    exponentials : float64[n_documents], by row, from `write_softmax_numerators`, in
    relevance    : float64[n_documents], by row, from 0 to 1, in
    orders       : key, number and rank weights of the orders, in      settings : sigma and normalize are read, in
    first_query, last_query : the queries first_query..last_query - 1 are worked on, in
    output       : float64[n_documents], by row, out, overwritten for these queries

    Equation: see `write_keys`, `add_neighbour_pairs` and `write_query_gradients`. A document's random bits for three
    orders are one hash of its row. Parallel: the caller runs ranges of queries side by side; a query writes only its
    own rows. Cost: O(n_orders (n + n_ranks^2)) in vector code for a query of n documents.
    """
    scores, query_weights, query_offsets, _ = queries
    n_ranks = len(orders.rank_weights)
    longest = longest_query(query_offsets, first_query, last_query)
    n_padded = padded_length(longest)
    numbers, indices = np.zeros((2, n_padded), np.float32), np.zeros((3, n_padded), np.int32)
    random_bits = np.empty(longest, np.uint64)
    buffers = OrderBuffers(random_bits, numbers[0], numbers[1], indices[0], indices[1], indices[2])
    by_rank = np.zeros((6, n_ranks + 2))
    pairs = PairBuffers(by_rank[0], by_rank[1], by_rank[2], by_rank[3], by_rank[4], by_rank[5])
    sums = np.empty((2, longest))
    for q in range(first_query, last_query):
        start, stop = query_offsets[q], query_offsets[q + 1]
        for row in range(start, stop):
            output.gradients[row] = output.hessians[row] = 0.0
        n = stop - start
        if query_weights[q] == 0.0 or n < 2 or n_ranks < 1:
            continue
        query = QueryDocuments(
            scores[start:stop], exponentials[start:stop], relevance[start:stop], sums[0, :n], sums[1, :n]
        )
        write_gradients_of_query(q, queries, query, orders, settings, buffers, pairs, output)
