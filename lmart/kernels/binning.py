"""Values to bins: choose a feature's bin edges, and code every cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]

LARGEST = np.finfo(np.float64).max
TILE = 64


@kernel
def count_cells(columns: Rows, values: Floats, numbers: Longs, missing: Longs, infinite: Longs) -> None:
    """Count each column's written cells: numbers, nans, and those of the numbers that are infinite (all added to).

    columns : int32[n_cells], values : float64[n_cells], in; numbers, missing, infinite : int64[n_columns]
    """
    for k in range(np.uint64(len(values))):
        column = np.uint64(columns[k])
        if np.isnan(values[k]):
            missing[column] += 1
        else:
            numbers[column] += 1
            infinite[column] += np.isinf(values[k])


@kernel
def count_row_cells(
    offsets: Longs, column_starts: Longs, columns: Rows, values: Floats, numbers: Longs, missing: Longs
) -> None:
    """Count each column's written cells in the rows of a sample: numbers, and nans (both added to)."""
    for row in range(len(column_starts)):
        shift = column_starts[row] - offsets[row]
        for k in range(offsets[row], offsets[row + 1]):
            column = np.uint64(columns[np.uint64(k + shift)])
            if np.isnan(values[np.uint64(k)]):
                missing[column] += 1
            else:
                numbers[column] += 1


@kernel
def gather_cells(
    offsets: Longs,
    column_starts: Longs,
    columns: Rows,
    values: Floats,
    places: Rows,
    first: int,
    ends: Longs,
    out: Floats,
) -> None:
    """Write the numbers of the features first.. of a sample, feature by feature.

    offsets, column_starts, columns, values : RowSample, in     places : int32[n_columns], feature of each column, in
    ends : int64[m], in: where each of the m features starts in `out`, out: where it ends
    """
    m = len(ends)
    for row in range(len(column_starts)):
        shift = column_starts[row] - offsets[row]
        for k in range(offsets[row], offsets[row + 1]):
            f = places[np.uint64(columns[np.uint64(k + shift)])] - first
            if 0 <= f < m and not np.isnan(values[np.uint64(k)]):
                out[ends[np.uint64(f)]] = values[np.uint64(k)]
                ends[np.uint64(f)] += 1


@kernel
def between(low: float, high: float) -> float:
    """Return a finite t with low <= t < high, the middle if it can be told from high; nan if there is none."""
    middle = low + (high - low) / 2.0 if low < 0.0 < high and high - low < LARGEST else low / 2.0 + high / 2.0
    if low < middle < high and np.isfinite(middle):
        return middle + 0.0
    if np.isfinite(low):
        return low + 0.0
    return -LARGEST if high > -LARGEST else np.nan


@inner_kernel
def cut_stretch(values: Floats, counts: Longs, start: int, stop: int, n_bins: int, edges: Floats, n_edges: int) -> int:
    """Cut the ascending distinct values start..stop into at most n_bins bins of about equal weight.

    Appends the edges and returns their number. A value heavier than a mean bin stands alone; the mean is that of what
    is left to share out.
    """
    if stop - start <= n_bins:
        for i in range(start, stop - 1):
            n_edges = append_edge(edges, n_edges, values[i], values[i + 1])
        return n_edges
    heavy = np.zeros(len(values), np.bool_)
    rest = 0
    for i in range(start, stop):
        rest += counts[i]
    rest_bins = n_bins
    found = True
    while found and rest_bins > 1:
        found = False
        mean = rest / rest_bins
        for i in range(start, stop):
            if not heavy[i] and counts[i] >= mean and rest_bins > 1:
                heavy[i] = True
                rest -= counts[i]
                rest_bins -= 1
                found = True
    left = n_bins
    mean = rest / rest_bins
    inside = 0
    after_light = False
    for i in range(start, stop - 1):
        inside += counts[i]
        if not heavy[i]:
            rest -= counts[i]
        close = heavy[i] or inside >= mean or (heavy[i + 1] and inside >= 0.5 * mean)
        join = not close and heavy[i + 1] and after_light
        if join:
            n_edges -= 1  # the scrap joins the bin before it
        if join or (close and left > 1):
            n_edges = append_edge(edges, n_edges, values[i], values[i + 1])
            inside = 0
        if close and not join and left > 1:
            left -= 1
            after_light = not heavy[i]
            if not heavy[i]:
                rest_bins -= 1
                mean = rest / max(rest_bins, 1)
    return n_edges


@inner_kernel
def append_edge(edges: Floats, n_edges: int, low: float, high: float) -> int:
    """Append the edge between two neighbours if there is one; return the number of edges."""
    edge = between(low, high)
    if np.isnan(edge):
        return n_edges
    edges[n_edges] = edge
    return n_edges + 1


@kernel
def bin_of(x: float, edges: Floats, start: int, count: int) -> int:
    """Return how many of edges[start:start + count] lie below x, by a branch-free binary search."""
    low = start
    left = count
    while left > 0:
        half = (left + 1) >> 1
        low += half * (edges[low + half - 1] < x)
        left -= half
    return low - start


@kernel
def fit_edges(cells: Floats, zeros: int, max_bins: int, edges: Floats) -> int:
    """Write a feature's ascending bin edges and return their number.

    cells : float64[k], the numbers written in the sample, ascending
    zeros : how many more cells of the sample are zero without being written
    edges : float64[>= max_bins - 1], out; value x is in bin b iff edges[b-1] < x <= edges[b]
    Each distinct value has its own bin if they are at most max_bins. Else zero, if present, has its own, and the rest
    go to the negative and the positive side by their weight.
    """
    values = np.empty(len(cells) + 1, np.float64)
    counts = np.zeros(len(cells) + 1, np.int64)
    d = 0
    put_zero = zeros > 0
    for i in range(len(cells) + 1):
        if put_zero and (i == len(cells) or cells[i] >= 0.0):
            values[d] = 0.0
            counts[d] = zeros
            d += 1
            put_zero = False
        if i < len(cells):
            if d > 0 and values[d - 1] == cells[i]:
                counts[d - 1] += 1
            else:
                values[d] = cells[i] + 0.0
                counts[d] = 1
                d += 1
    # Three stretches: below zero, zero, above; all is one stretch when every value can have its bin.
    zero = d
    after = d
    below_bins = max_bins
    above_bins = 0
    if d > max_bins > 2:
        zero = bin_of(0.0, values, 0, d)
        after = zero + 1 if zero < d and values[zero] == 0.0 else zero
        bins = max_bins - (after - zero)
        below = 0
        above = 0
        for i in range(zero):
            below += counts[i]
        for i in range(after, d):
            above += counts[i]
        below_bins = int(bins * (below / (below + above)) + 0.5)
        below_bins = min(
            max(below_bins, 1 if zero > 0 else 0, bins - (d - after)), bins - (1 if after < d else 0), zero
        )
        above_bins = bins - below_bins
    n_edges = 0
    for stretch in range(3):
        start = 0 if stretch == 0 else zero if stretch == 1 else after
        stop = zero if stretch == 0 else after if stretch == 1 else d
        if start == stop:
            continue
        if start > 0:
            n_edges = append_edge(edges, n_edges, values[start - 1], values[start])
        bins = below_bins if stretch == 0 else 1 if stretch == 1 else above_bins
        n_edges = cut_stretch(values, counts, start, stop, bins, edges, n_edges)
    return n_edges


@kernel
def code_cells(
    offsets: Longs,
    column_starts: Longs,
    columns: Rows,
    values: Floats,
    used: Rows,
    grid: Floats,
    missing_codes: Codes,
    absent_codes: Codes,
    start: int,
    stop: int,
    shift: int,
    out: Codes,
) -> None:
    """Write the bin codes of rows start..stop: how many of its feature's edges lie below a number; nan has its own.

    offsets, column_starts, columns, values : of rows, in; the columns of a row stand at column_starts[row]
    used                     : int32[n_columns], place among the binned features or -1, in
    grid                     : float64[256 m]; 1..255 of each feature's 256 are its edges, ascending, then inf, in
    missing_codes, absent_codes : uint8[m], codes of nan and of a cell that is not written, in
    out                      : uint8[m, n], column-major codes; those of row r stand at r + shift, and are overwritten
    Parallel: the caller runs ranges of rows side by side. Cost: eight steps a cell, the same for all, so that the
    processor guesses no branch and searches for several cells at once.
    """
    m = len(absent_codes)
    tile = np.empty((TILE, m), np.uint8)  # row by row first: neighbours in `out` are far apart
    for first in range(start, stop, TILE):
        last = min(first + TILE, stop)
        for row in range(first, last):
            codes = tile[row - first]
            for f in range(m):
                codes[f] = absent_codes[f]
            column = np.uint64(column_starts[row])
            for k in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
                f = used[np.uint64(columns[column])]
                column += np.uint64(1)
                if f < 0:
                    continue
                x = values[k]
                base = np.uint64(f) << np.uint64(8)
                at = base
                at += np.uint64(grid[at + np.uint64(128)] < x) << np.uint64(7)
                at += np.uint64(grid[at + np.uint64(64)] < x) << np.uint64(6)
                at += np.uint64(grid[at + np.uint64(32)] < x) << np.uint64(5)
                at += np.uint64(grid[at + np.uint64(16)] < x) << np.uint64(4)
                at += np.uint64(grid[at + np.uint64(8)] < x) << np.uint64(3)
                at += np.uint64(grid[at + np.uint64(4)] < x) << np.uint64(2)
                at += np.uint64(grid[at + np.uint64(2)] < x) << np.uint64(1)
                at += np.uint64(grid[at + np.uint64(1)] < x)
                codes[np.uint64(f)] = missing_codes[np.uint64(f)] if np.isnan(x) else at - base
        for f in range(m):
            for row in range(first, last):
                out[f, row + shift] = tile[row - first, f]


@kernel
def count_codes(codes: Codes, counts: Longs) -> None:
    """Write how many documents have each code. codes : uint8[n], in; counts : int64[256], out."""
    for code in range(256):
        counts[code] = 0
    for code in codes:
        counts[code] += 1


@kernel
def count_uncommon(codes: Codes, common_codes: Codes, start: int, stop: int, row_lengths: Longs) -> None:
    """Write, for rows start..stop, in how many features the code is not the feature's most frequent one.

    codes : uint8[m, n], in; common_codes : uint8[m], in; row_lengths : int64[n], out
    """
    for row in range(start, stop):
        row_lengths[row] = 0
    for f in range(len(common_codes)):
        common = common_codes[f]
        for row in range(start, stop):
            row_lengths[row] += codes[f, row] != common


@kernel
def list_uncommon(
    codes: Codes, common_codes: Codes, bin_offsets: Longs, row_offsets: Longs, start: int, stop: int, out: Longs
) -> None:
    """Write, row by row, bin_offsets[f] + code of every feature whose code is not its most frequent one.

    codes : uint8[m, n], in; bin_offsets : int64[m + 1], in; row_offsets : int64[n + 1], in
    out   : uint16 or uint32[row_offsets[n]], the rows' part is overwritten
    """
    ends = np.empty(stop - start, np.int64)
    for row in range(start, stop):
        ends[row - start] = row_offsets[row]
    for f in range(len(common_codes)):
        common = common_codes[f]
        offset = bin_offsets[f]
        for row in range(start, stop):
            code = codes[f, row]
            if code != common:
                out[ends[row - start]] = offset + code
                ends[row - start] += 1
