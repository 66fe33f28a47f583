"""One query at a time: order by score, lambdas and hessians of its pairs.

Vocabulary: `rank` is a place in the model's order (0 is best), `row` is a document's place in the data.
Every sum over pairs is exact: each pair's term is rounded to a multiple of a power of two that is coarse enough for all
partial sums to stay below 2^53 units. So the order of additions, the vector width of the processor and the number of
threads leave no trace in the result.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@kernel
def order_documents(scores: Floats, query_offsets: Longs, first_query: int, last_query: int, order: Rows) -> None:
    """Sort the rows of each query by score descending, ties by row ascending.

    scores        : float64[n], no nan, in
    query_offsets : int64[n_queries + 1], in
    order         : int32[n], in: of each query any permutation of its rows, best a good guess such as the last order;
    out Insertion sort from the guess; a query that needs more than a few moves a document is merge sorted.
    Parallel: the caller runs ranges of queries side by side. Cost: O(n) if the guess is right, else O(n log n).
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    keys = np.empty(largest, np.float64)
    spare_keys = np.empty(largest, np.float64)
    spare_rows = np.empty(largest, np.int32)
    for q in range(first_query, last_query):
        rows = order[query_offsets[q] : query_offsets[q + 1]]
        n = len(rows)
        for k in range(n):
            keys[k] = scores[rows[k]]
        budget = 12 * n
        sorted_to = 1
        while sorted_to < n and budget >= 0:
            key = keys[sorted_to]
            row = rows[sorted_to]
            k = sorted_to
            while k > 0 and (keys[k - 1] < key or (keys[k - 1] == key and rows[k - 1] > row)):
                keys[k] = keys[k - 1]
                rows[k] = rows[k - 1]
                k -= 1
            keys[k] = key
            rows[k] = row
            budget -= sorted_to - k
            sorted_to += 1
        if sorted_to < n:
            merge_sort(keys, rows, spare_keys, spare_rows, n)


@kernel
def merge_sort(keys: Floats, rows: Rows, spare_keys: Floats, spare_rows: Rows, n: int) -> None:
    """Sort keys[:n] descending, equal keys by rows ascending, rows alongside. The spare arrays are overwritten."""
    width = 1
    in_place = True
    while width < n:
        if in_place:
            merge_runs(keys, rows, spare_keys, spare_rows, n, width)
        else:
            merge_runs(spare_keys, spare_rows, keys, rows, n, width)
        in_place = not in_place
        width *= 2
    if not in_place:
        for k in range(n):  # a loop compiles many times faster than a slice assignment
            keys[k] = spare_keys[k]
            rows[k] = spare_rows[k]


@kernel
def merge_runs(from_keys: Floats, from_rows: Rows, to_keys: Floats, to_rows: Rows, n: int, width: int) -> None:
    """Merge neighbouring sorted runs of `width` entries from one pair of arrays into the other."""
    for start in range(0, n, 2 * width):
        i = start
        i_end = min(start + width, n)
        j = i_end
        j_end = min(start + 2 * width, n)
        for k in range(start, j_end):
            take_left = j >= j_end
            if i < i_end and j < j_end:
                take_left = from_keys[i] > from_keys[j] or (
                    from_keys[i] == from_keys[j] and from_rows[i] < from_rows[j]
                )
            if take_left:
                to_keys[k] = from_keys[i]
                to_rows[k] = from_rows[i]
                i += 1
            else:
                to_keys[k] = from_keys[j]
                to_rows[k] = from_rows[j]
                j += 1


@kernel
def ideal_dcg(
    gains: Floats,
    query_offsets: Longs,
    discount: Floats,
    best_first: Rows,
    cutoff: int,
    first_query: int,
    last_query: int,
    out: Floats,
) -> None:
    """Write the DCG of each query's best order, cut at `cutoff` (0: whole query); 0 if nothing has a gain.

    gains      : float64[n], >= 0, in
    discount   : float64[>= longest query], 1/log2(rank + 2), in
    best_first : int32[n], rows of each query by gain (order_documents), in
    out        : float64[n_queries], only the range's entries are written
    Equation: sum over ranks r < cutoff of sorted_gain[r] * discount[r]. Source: Järvelin and Kekäläinen 2002,
    section 2.2. Parallel: ranges of queries side by side. Cost: O(cutoff) a query.
    """
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        total = 0.0
        for rank in range(n if cutoff == 0 else min(cutoff, n)):
            total += gains[best_first[start + rank]] * discount[rank]
        out[q] = total


@kernel
def decay(x: float) -> float:
    """Return exp(-x) for x >= 0, 0 beyond 700, by single multiplications: the same bits on any processor.

    A Taylor sum to degree 16 of the 1024th part, squared ten times: relative error below 1e-12.
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
def add_pairs_of_rank(
    rank: int,
    scores: Floats,
    gains: Floats,
    discount: Floats,
    decays: Floats,
    scale: float,
    normalize: bool,
    grid: float,
    gradients: Floats,
    hessians: Floats,
    pushes: Floats,
    pulls: Floats,
) -> float:
    """Add the pairs of the document at `rank` with all below it; return the sum of their |lambda|.

    scores, gains, discount : float64[n], by rank, scores descending, gains already divided by the ideal DCG, in
    decays                  : float64[n], by rank; decays[k] * scale is exp(-sigma (scores[rank] - scores[k])), in
    grid                    : float64, 1.5 * 2^52 units; adding and subtracting it rounds to whole units
    gradients, hessians     : float64[n], by rank, whole units, added to
    pushes, pulls           : float64[n], scratch
    Equation: rho = 1/(1+exp(sigma (s_i - s_j))) for i the better labelled of the pair, delta = |g_i - g_j| |D_i - D_j|,
    divided by 0.01 + |s_i - s_j| when normalising; gradients -rho delta (i) and +rho delta (j), hessians
    rho (1-rho) delta (both); the factors sigma and sigma^2 come later. Source: Burges 2010, sections 3 and 6
    (LambdaRank, LambdaMART); the division is LightGBM's lambdarank_norm.
    """
    own_score = scores[rank]
    own_gain = gains[rank]
    own_discount = discount[rank]
    n = len(scores) - rank - 1
    lower_scores = scores[rank + 1 :]
    lower_gains = gains[rank + 1 :]
    lower_discount = discount[rank + 1 : rank + 1 + n]
    lower_decays = decays[rank + 1 :]
    lower_gradients = gradients[rank + 1 :]
    lower_hessians = hessians[rank + 1 :]
    base = 0.01 if normalize else 1.0
    slope = 1.0 if normalize else 0.0
    for k in range(n):
        e = lower_decays[k] * scale
        worth = own_gain - lower_gains[k]
        spacing = base + slope * (own_score - lower_scores[k])
        # one division for both 1/(1+e) and 1/spacing
        both = 1.0 / ((1.0 + e) * spacing)
        share = worth * (own_discount - lower_discount[k]) * both
        # worth > 0: the pair stands right, its rho is e/(1+e); else it stands wrong, its rho is 1/(1+e).
        push = share * (e if worth > 0.0 else 1.0)
        pull = abs(share) * e * (both * spacing)
        push = (push + grid) - grid
        pull = (pull + grid) - grid
        pushes[k] = push
        pulls[k] = pull
        lower_gradients[k] += push
        lower_hessians[k] += pull
    # Whole units: any order of additions gives the same, four at a time are faster.
    pushed0 = pushed1 = pushed2 = pushed3 = 0.0
    pulled0 = pulled1 = pulled2 = pulled3 = 0.0
    total0 = total1 = total2 = total3 = 0.0
    for k in range(0, n - 3, 4):
        pushed0 += pushes[k]
        pushed1 += pushes[k + 1]
        pushed2 += pushes[k + 2]
        pushed3 += pushes[k + 3]
        pulled0 += pulls[k]
        pulled1 += pulls[k + 1]
        pulled2 += pulls[k + 2]
        pulled3 += pulls[k + 3]
        total0 += abs(pushes[k])
        total1 += abs(pushes[k + 1])
        total2 += abs(pushes[k + 2])
        total3 += abs(pushes[k + 3])
    for k in range(n & ~3, n):
        pushed0 += pushes[k]
        pulled0 += pulls[k]
        total0 += abs(pushes[k])
    gradients[rank] -= (pushed0 + pushed1) + (pushed2 + pushed3)
    hessians[rank] += (pulled0 + pulled1) + (pulled2 + pulled3)
    return (total0 + total1) + (total2 + total3)


@kernel
def log2_of_one_plus(x: float) -> float:
    """Return log2(1 + x) for x >= 0 by single multiplications and additions: the same bits on any processor."""
    mantissa = 1.0 + x
    exponent = 0
    while mantissa > 1.5:
        mantissa *= 0.5
        exponent += 1
    z = x / (2.0 + x) if exponent == 0 else (mantissa - 1.0) / (mantissa + 1.0)
    square = z * z
    term = z
    series = 0.0
    for k in range(1, 33, 2):
        series += term / k
        term *= square
    return exponent + 2.0 * series / 0.6931471805599453


@kernel
def units_for(bound: float) -> float:
    """Return the grid that rounds to the finest unit of which `bound` holds at most 2^50."""
    grid = 1.5 * 2.0**52
    unit_sum = 2.0**50
    while unit_sum < bound and unit_sum < 2.0**1000:
        unit_sum *= 2.0
        grid *= 2.0
    while unit_sum >= 2.0 * bound and unit_sum > 2.0**-900:
        unit_sum *= 0.5
        grid *= 0.5
    return grid


@kernel
def lambda_gradients(
    scores: Floats,
    gains: Floats,
    inverse_ideal_dcg: Floats,
    query_weights: Floats,
    discount: Floats,
    query_offsets: Longs,
    order: Rows,
    truncation: int,
    sigma: float,
    normalize: bool,
    first_query: int,
    last_query: int,
    gradients: Floats,
    hessians: Floats,
) -> None:
    """Write each document's gradient and hessian of the LambdaRank cost.

    scores            : float64[n], in
    gains             : float64[n], at most 1 in a query (scaled), in
    inverse_ideal_dcg : float64[n_queries], of the scaled gains; 0: the query adds nothing, in
    query_weights     : float64[n_queries], in
    discount          : float64[>= longest query], in
    order             : int32[n], rows of each query by score (order_documents), in
    truncation        : a pair counts when its better rank is below this; 0: all pairs
    gradients, hessians : float64[n], out, overwritten for the queries of the range
    Equation: the sums over pairs of `add_pairs_of_rank`, times sigma (gradient) and sigma^2 (hessian), and when
    normalising times log2(1+S)/S with S = 2 sigma sum |lambda|, times the query's weight. Source: Burges 2010; variant
    and normalisation as LightGBM's lambdarank. Differs: the gradients of a query sum to exactly 0, also after the
    factors (the running sum is rounded, then differenced).
    Parallel: the caller runs ranges of queries side by side; a query writes only its own rows. Cost: O(min(T, n) n).
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    scratch = np.empty((7, largest), np.float64)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        rows = order[start : start + n]
        for row in range(start, start + n):
            gradients[row] = 0.0
            hessians[row] = 0.0
        if inverse_ideal_dcg[q] == 0.0 or n < 2 or query_weights[q] == 0.0:
            continue
        by_rank = scratch[0, :n]
        worth = scratch[1, :n]
        pushes = scratch[2, :n]
        pulls = scratch[3, :n]
        g = scratch[4, :n]
        h = scratch[5, :n]
        decays = scratch[6, :n]
        lowest = np.inf
        highest = -np.inf
        for k in range(n):
            by_rank[k] = scores[rows[k]]
            worth[k] = gains[rows[k]] * inverse_ideal_dcg[q]
            g[k] = 0.0
            h[k] = 0.0
            lowest = min(lowest, worth[k])
            highest = max(highest, worth[k])
        if lowest == highest:
            continue
        spread = normalize and by_rank[0] != by_rank[n - 1]
        # delta is at most 1, or 100 after the division by 0.01 + |difference|
        grid = units_for((101.0 if spread else 1.01) * n)
        total = 0.0
        # One exponential a document serves all pairs, unless scores lie so far apart that it would underflow.
        narrow = sigma * (by_rank[0] - by_rank[n - 1]) < 600.0
        if narrow:
            for k in range(n):
                decays[k] = decay(sigma * (by_rank[0] - by_rank[k]))
        for rank in range(n - 1 if truncation == 0 else min(truncation, n - 1)):
            if not narrow:
                for k in range(rank, n):
                    decays[k] = decay(sigma * (by_rank[rank] - by_rank[k]))
            total += add_pairs_of_rank(
                rank, by_rank, worth, discount, decays, 1.0 / decays[rank], spread, grid, g, h, pushes, pulls
            )
        factor = query_weights[q] * sigma
        if normalize and total > 0.0:
            total *= 2.0 * sigma
            factor *= log2_of_one_plus(total) / total
        size = 0.0
        for k in range(n):
            size += abs(g[k])
        if size == 0.0:
            continue
        grid = units_for(size * factor)
        running = 0.0
        before = 0.0
        for k in range(n):
            running += g[k]
            after = (running * factor + grid) - grid
            gradients[rows[k]] = after - before
            hessians[rows[k]] = h[k] * (factor * sigma)
            before = after
