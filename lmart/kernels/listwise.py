"""Gradients and hessians of whole queries: costs that depend on chance.

Each sum goes over the documents of a query in a fixed order, so that threads leave no trace in it; the sums of
`add_neighbours` are whole units besides, and cancel exactly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@kernel
def decay(x: float) -> float:
    """Return exp(-x) for x >= 0, 0 beyond 700, by single multiplications: the same bits on any processor.

    A Taylor sum to degree 16 of the 1024th part, squared ten times: relative error below 1e-12. That of `ranking` is
    quicker, but it is asked once a pair, this once a document.
    """
    if x > 700.0:
        return 0.0
    part = x / -1024.0
    power = 1.0
    for k in range(16, 0, -1):
        power = 1.0 + power * part / k
    for _ in range(10):
        power *= power
    return power


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Return 64 well mixed bits of a 64-bit number: as `sampling.mix`."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def write_heights(
    scores: Floats, query_offsets: Longs, sigma: float, first_query: int, last_query: int, heights: Floats
) -> None:
    """Write exp(-sigma (best - score)) of each document, best being the highest score of its query.

    scores  : float64[n], in
    heights : float64[n], in [0, 1], out for the queries of the range
    Parallel: the caller runs ranges of queries side by side.
    """
    for q in range(first_query, last_query):
        best = -np.inf
        for row in range(query_offsets[q], query_offsets[q + 1]):
            best = max(best, scores[row])
        for row in range(query_offsets[q], query_offsets[q + 1]):
            heights[row] = decay(sigma * (best - scores[row]))


@kernel
def cross_entropy(
    heights: Floats,
    gains: Floats,
    units: Floats,
    query_weights: Floats,
    query_offsets: Longs,
    sigma: float,
    key: np.uint64,
    first_query: int,
    last_query: int,
    gradients: Floats,
    hessians: Floats,
) -> None:
    """Write each document's gradient and hessian of the cross entropy between its query's labels and scores.

    heights : float64[n], from write_heights, in
    gains, units : float64[n], gains and what a gain of 1 is in them, in
    query_weights : float64[n_queries], in          key : of the round, in
    gradients, hessians : float64[n], out, overwritten for the queries of the range
    Equation: rho_i = exp(sigma s_i) / sum_j exp(sigma s_j), phi_i = (G_i + 1 - gamma_i) / sum_j (G_j + 1 - gamma_j),
    gamma_i uniform in [0, 1) and new each round; cost -sum phi_i ln rho_i, gradient sigma (rho_i - phi_i), hessian
    sigma^2 rho_i (1 - rho_i); times the query's weight. Source: Bruch 2021, section 4, where 2^label stands for G + 1.
    Differs: the gradient is the derivative itself, without the two further terms of LightGBM's rank_xendcg; a query
    whose gains are all the same is left out, as nothing but chance would part its documents.
    Parallel: the caller runs ranges of queries side by side. Cost: O(n).
    """
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        total_height = 0.0
        total_worth = 0.0
        lowest = np.inf
        highest = -np.inf
        for row in range(start, stop):
            gamma = np.float64(mix(np.uint64(row) ^ key) >> np.uint64(11)) * 2.0**-53
            worth = gains[row] + units[row] * (1.0 - gamma)
            gradients[row] = worth
            hessians[row] = 0.0
            total_height += heights[row]
            total_worth += worth
            lowest = min(lowest, gains[row])
            highest = max(highest, gains[row])
        for row in range(start, stop):
            if lowest == highest:
                gradients[row] = 0.0
                continue
            share = heights[row] / total_height
            gradients[row] = (share - gradients[row] / total_worth) * (query_weights[q] * sigma)
            rest = (total_height - heights[row]) / total_height
            hessians[row] = share * rest * (query_weights[q] * sigma * sigma)


@kernel
def draw_orders(
    heights: Floats,
    query_offsets: Longs,
    order: Rows,
    n_places: int,
    key: np.uint64,
    turn: int,
    first_query: int,
    last_query: int,
    drawn: Rows,
) -> None:
    """Write the first documents of each query in an order drawn by chance.

    heights : float64[n], from write_heights, in        order : int32[n], rows of each query by score, in
    key     : of the round; turn : number of the order, from 0, in
    drawn   : int32[n], out: in the range of each query its first n_places rows, or all if there are no more
    Equation: descending sigma s + ln(r / (1 - r)), r uniform in (0, 1), by the keys exp(sigma s) r / (1 - r); equal
    keys stay by score, as all do that are more than 700 / sigma below the best. Source: Gulin, Kuralenok and Pavlov
    2011, section 3. Parallel: the caller runs ranges of queries side by side. Cost: O(n_places^2 log n + n) on average.
    """
    keys = np.empty(n_places, np.float64)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        room = min(n, n_places)
        for place in range(n):
            row = order[start + place]
            bits = mix(mix(np.uint64(row) ^ key) ^ np.uint64(turn)) >> np.uint64(12)
            r = (np.float64(bits) + 0.5) * 2.0**-52
            own = heights[row] * (r / (1.0 - r))
            if place >= room and own <= keys[room - 1]:
                continue
            at = min(place, room - 1)
            while at > 0 and keys[at - 1] < own:
                keys[at] = keys[at - 1]
                drawn[start + at] = drawn[start + at - 1]
                at -= 1
            keys[at] = own
            drawn[start + at] = row


@kernel
def add_neighbours(
    scores: Floats,
    heights: Floats,
    worths: Floats,
    places: Floats,
    query_weights: Floats,
    query_offsets: Longs,
    order: Rows,
    sigma: float,
    first_query: int,
    last_query: int,
    gradients: Floats,
    hessians: Floats,
    totals: Floats,
) -> None:
    """Add the pairs of documents that are neighbours in an order.

    scores, heights : float64[n], in         worths : float64[n], from 0 to 1, in
    places  : float64[n_places], what a pair counts by the place of its upper document; sum over all orders <= 32, in
    order   : int32[n], of each query the first n_places + 1 rows in the order, in
    gradients, hessians : float64[documents of the range], by row, whole units, without sigma and sigma^2;
    totals              : float64[queries of the range], sum of |lambda|; all three in and out, 0 before the first order
    Equation: for the neighbours at places k and k + 1, i the better one: w = places[k] |worth_i - worth_j|,
    rho = 1 / (1 + exp(sigma (s_i - s_j))), gradients -rho w (i) and +rho w (j), hessians rho (1 - rho) w (both); the
    scores are those without chance. Source: Gulin, Kuralenok and Pavlov 2011, section 3. Queries of weight 0 are left
    out. Parallel: the caller runs ranges of queries side by side, each with sums of its own.
    """
    grid = 1.5 * 2.0**7  # whole units are 2^-45: sums stay below 2^8, so they are exact
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        if query_weights[q] == 0.0:
            continue
        for place in range(min(n - 1, len(places))):
            one = order[start + place]
            other = order[start + place + 1]
            if worths[one] == worths[other]:
                continue
            if worths[one] < worths[other]:
                one, other = other, one
            low = heights[other]
            high = heights[one]
            if low == 0.0 or high == 0.0:
                apart = decay(sigma * abs(scores[one] - scores[other]))
                low = apart if scores[one] > scores[other] else 1.0
                high = 1.0 if scores[one] > scores[other] else apart
            both = low + high
            push = places[place] * (worths[one] - worths[other]) * (low / both)
            pull = push * (high / both)
            push = (push + grid) - grid
            pull = (pull + grid) - grid
            gradients[one - base] -= push
            gradients[other - base] += push
            hessians[one - base] += pull
            hessians[other - base] += pull
            totals[q - first_query] += push
