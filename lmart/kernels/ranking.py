"""One query at a time: gradients and hessians of its pairs.

Vocabulary: `rank` is a place in the model's order (0 is best), `row` is a document's place in the data.
Every sum over pairs is exact: each pair's term is rounded to a multiple of a power of two that is coarse enough for all
partial sums to stay below 2^53 units. So the order of additions, the vector width of the processor and the number of
threads leave no trace in the result.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

WHOLE = 1.5 * 2.0**52  # adding it rounds to a whole number, which the low bits of the sum then show


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

    2^-m times a Taylor sum to degree 13 of the rest, which is at most ln(2) / 2: relative error below 1e-15.
    """
    bounded = min(x, 700.0)
    shifted = bounded * 1.4426950408889634 + WHOLE
    m = shifted - WHOLE
    rest = (m * 0.693147180369123816490 - bounded) + m * 1.90821492927058770002e-10  # ln(2) in two parts
    power = 1.0 / 6227020800.0
    power = power * rest + 1.0 / 479001600.0
    power = power * rest + 1.0 / 39916800.0
    power = power * rest + 1.0 / 3628800.0
    power = power * rest + 1.0 / 362880.0
    power = power * rest + 1.0 / 40320.0
    power = power * rest + 1.0 / 5040.0
    power = power * rest + 1.0 / 720.0
    power = power * rest + 1.0 / 120.0
    power = power * rest + 1.0 / 24.0
    power = power * rest + 1.0 / 6.0
    power = power * rest + 0.5
    power = power * rest + 1.0
    power = power * rest + 1.0
    exponent = np.float64(WHOLE).view(np.int64) - np.float64(shifted).view(np.int64)  # -m
    scale = np.int64((exponent + 1023) << 52).view(np.float64)
    return power * scale if x <= 700.0 else 0.0


@kernel
def write_decays(scores: Floats, top: float, sigma: float, first: int, decays: Floats) -> None:
    """Write exp(-sigma (top - scores[k])) to decays[k] for all k from `first`. scores : by rank, none above `top`"""
    for k in range(np.uint64(first), np.uint64(len(decays))):
        decays[k] = decay(sigma * (top - scores[k]))


@inner_kernel
def weigh_swaps(rank: int, gains: Floats, discount: Floats, weights: Floats) -> None:
    """Write what swapping the document at `rank` with each below it would change NDCG, as `add_pairs_of_rank` takes it.

    gains   : float64[n], by rank, already divided by the ideal DCG, in        discount : float64[>= n], in
    weights : float64[n], out behind `rank`: (g_i - g_j) (D_i - D_j). Source: Burges 2010, section 6.
    """
    own_gain = gains[rank]
    own_discount = discount[rank]
    lower_gains = gains[rank + 1 :]
    lower_discount = discount[rank + 1 :]
    lower_weights = weights[rank + 1 :]
    for k in range(len(lower_weights)):
        lower_weights[k] = (own_gain - lower_gains[k]) * (own_discount - lower_discount[k])


@inner_kernel
def add_pairs_of_rank(
    rank: int,
    scores: Floats,
    weights: Floats,
    decays: Floats,
    scale: float,
    normalize: bool,
    grid: float,
    gradients: Floats,
    hessians: Floats,
) -> float:
    """Add the pairs of the document at `rank` with all below it; return the sum of their |lambda|.

    scores              : float64[n], by rank, descending, in
    weights             : float64[n - rank - 1], of the documents below, in: how much the pair counts, positive when the
                          upper document is the better one, negative when the lower is
    decays              : float64[n], by rank; decays[k] * scale is exp(-sigma (scores[rank] - scores[k])), in
    grid                : float64, 1.5 * 2^52 units; adding and subtracting it rounds to whole units
    gradients, hessians : float64[n], by rank, whole units, added to
    Equation: rho = 1/(1+exp(sigma (s_i - s_j))) for i the better document of the pair, delta = |weight|, divided by
    0.01 + |s_i - s_j| when normalising; gradients -rho delta (i) and +rho delta (j), hessians rho (1-rho) delta (both);
    the factors sigma and sigma^2 come later. Source: Burges 2010, sections 3 and 6 (LambdaRank, LambdaMART); the
    division is LightGBM's lambdarank_norm.
    """
    own_score = scores[rank]
    n = len(weights)
    lower_scores = scores[rank + 1 :]
    lower_decays = decays[rank + 1 :]
    lower_gradients = gradients[rank + 1 :]
    lower_hessians = hessians[rank + 1 :]
    base = 0.01 if normalize else 1.0
    slope = 1.0 if normalize else 0.0
    at_zero = np.float64(grid).view(np.int64)
    pushed = pulled = total = np.int64(0)  # in units, since sums of integers vectorise
    for k in range(n):
        e = lower_decays[k] * scale
        weight = weights[k]
        spacing = base + slope * (own_score - lower_scores[k])
        both = 1.0 / ((1.0 + e) * spacing)  # one division for both 1/(1+e) and 1/spacing
        share = weight * both
        # weight > 0: the pair stands right, its rho is e/(1+e); else it stands wrong, its rho is 1/(1+e).
        push = share * (e if weight > 0.0 else 1.0) + grid
        pull = abs(share) * e * (both * spacing) + grid
        lower_gradients[k] += push - grid
        lower_hessians[k] += pull - grid
        units = np.float64(push).view(np.int64) - at_zero
        pushed += units
        total += abs(units)
        pulled += np.float64(pull).view(np.int64) - at_zero
    unit = grid / WHOLE
    gradients[rank] -= pushed * unit
    hessians[rank] += pulled * unit
    return total * unit


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


@inner_kernel
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


@inner_kernel
def write_rows(
    rows: Rows,
    g: Floats,
    h: Floats,
    total: float,
    query_weight: float,
    sigma: float,
    normalize: bool,
    gradients: Floats,
    hessians: Floats,
) -> None:
    """Write the gradients and hessians of one query from the sums of its pairs.

    rows  : int32[n], in          g, h : float64[n], by rank, without the factors sigma and sigma^2, in
    total : sum of |lambda| over pairs, for `normalize`, in
    gradients, hessians : float64[all rows], out, overwritten where g is not all 0
    Equation: g sigma and h sigma^2, when normalising times log2(1+S)/S with S = 2 sigma total (LightGBM's
    lambdarank_norm), times the query's weight. When the g sum to exactly 0, so do the gradients: the running sum is
    rounded, then differenced.
    """
    factor = query_weight * sigma
    if normalize and total > 0.0:
        total *= 2.0 * sigma
        factor *= log2_of_one_plus(total) / total
    n = len(rows)
    size = 0.0
    for k in range(n):
        size += abs(g[k])
    if size == 0.0:
        return
    grid = units_for(size * factor)
    running = 0.0
    before = 0.0
    for k in range(n):
        running += g[k]
        after = (running * factor + grid) - grid
        gradients[rows[k]] = after - before
        hessians[rows[k]] = h[k] * (factor * sigma)
        before = after


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
    Equation: the sums over pairs of `add_pairs_of_rank`, weighted by `weigh_swaps`, with the factors of `write_rows`.
    Source: Burges 2010; variant and normalisation as LightGBM's lambdarank. Differs: the gradients of a query sum to
    exactly 0.
    Parallel: the caller runs ranges of queries side by side; a query writes only its own rows. Cost: O(min(T, n) n).
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    scratch = np.empty((6, largest), np.float64)
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
        g = scratch[2, :n]
        h = scratch[3, :n]
        decays = scratch[4, :n]
        weights = scratch[5, :n]
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
            write_decays(by_rank, by_rank[0], sigma, 0, decays)
        for rank in range(n - 1 if truncation == 0 else min(truncation, n - 1)):
            if not narrow:
                write_decays(by_rank, by_rank[rank], sigma, rank, decays)
            weigh_swaps(rank, worth, discount, weights)
            own = weights[rank + 1 :]
            total += add_pairs_of_rank(rank, by_rank, own, decays, 1.0 / decays[rank], spread, grid, g, h)
        write_rows(rows, g, h, total, query_weights[q], sigma, normalize, gradients, hessians)


@kernel
def add_weighted_pairs(
    scores: Floats,
    weights: Floats,
    largest_weight: float,
    query_weights: Floats,
    query_offsets: Longs,
    order: Rows,
    sigma: float,
    normalize: bool,
    first_rank: int,
    last_rank: int,
    first_query: int,
    last_query: int,
    gradients: Floats,
    hessians: Floats,
    totals: Floats,
) -> None:
    """Add the pairs whose upper document is at the ranks first_rank..last_rank, with weights that are given.

    scores  : float64[n], in       order : int32[n], rows of each query by score (order_documents), in
    weights : float64[documents of the range, last_rank - first_rank], in: those of a query are one after the other as
              [last_rank - first_rank, documents of the query], of a pair at [upper rank - first_rank, lower rank]: how
              much it counts, positive when the upper document is the better one, negative when the lower is
    largest_weight : bound of all |weights|, the same for all ranks of a query
    gradients, hessians : float64[documents of the range], by query and rank, without the factors sigma and sigma^2;
    totals              : float64[queries of the range], sum of |lambda|; all three in and out, 0 before the first rank
    Equation: that of `add_pairs_of_rank`. Queries of weight 0 are left out.
    Parallel: the caller runs ranges of queries side by side, each with arrays of its own. Cost: the number of pairs.
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    scratch = np.empty((2, largest), np.float64)
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n = query_offsets[q + 1] - start
        if query_weights[q] == 0.0 or n < 2:
            continue
        rows = order[start : start + n]
        by_rank = scratch[0, :n]
        decays = scratch[1, :n]
        g = gradients[start - base : start - base + n]
        h = hessians[start - base : start - base + n]
        for k in range(n):
            by_rank[k] = scores[rows[k]]
        spread = normalize and by_rank[0] != by_rank[n - 1]
        grid = units_for((101.0 if spread else 1.01) * largest_weight * n)
        narrow = sigma * (by_rank[0] - by_rank[n - 1]) < 600.0
        if narrow:
            write_decays(by_rank, by_rank[0], sigma, 0, decays)
        own = weights[(start - base) * (last_rank - first_rank) :]
        for rank in range(first_rank, min(last_rank, n - 1)):
            if not narrow:
                write_decays(by_rank, by_rank[rank], sigma, rank, decays)
            totals[q - first_query] += add_pairs_of_rank(
                rank,
                by_rank,
                own[(rank - first_rank) * n + rank + 1 : (rank - first_rank) * n + n],
                decays,
                1.0 / decays[rank],
                spread,
                grid,
                g,
                h,
            )


@kernel
def write_weighted(
    pair_gradients: Floats,
    pair_hessians: Floats,
    totals: Floats,
    query_weights: Floats,
    query_offsets: Longs,
    order: Rows,
    sigma: float,
    normalize: bool,
    first_query: int,
    last_query: int,
    gradients: Floats,
    hessians: Floats,
) -> None:
    """Write each document's gradient and hessian from what `add_weighted_pairs` added up, by `write_rows`.

    gradients, hessians : float64[n], out, overwritten for the queries of the range
    """
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        for row in range(start, stop):
            gradients[row] = 0.0
            hessians[row] = 0.0
        if query_weights[q] != 0.0:
            g = pair_gradients[start - base : stop - base]
            h = pair_hessians[start - base : stop - base]
            rows = order[start:stop]
            total = totals[q - first_query]
            write_rows(rows, g, h, total, query_weights[q], sigma, normalize, gradients, hessians)
