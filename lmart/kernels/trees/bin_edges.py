"""Bin edges of features, chosen from a sample of rows: count and gather its cells, and cut their values into bins."""

from __future__ import annotations

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.row_arrays import SharedColumnRows

LARGEST = np.finfo(np.float64).max


@kernel
def count_cells(
    columns: Int32Array, values: Float64Array, numbers: Int64Array, missing: Int64Array, infinite: Int64Array
) -> None:
    """Add to each column how many of its written cells are numbers, missing, and infinite.

    columns  : int32[n_cells], in      values : float64[n_cells], in
    numbers  : int64[n_columns], cells that are not nan, in and out
    missing  : int64[n_columns], cells that are nan, in and out
    infinite : int64[n_columns], those of `numbers` that are infinite, in and out

    Parallel: each worker has counts of its own.
    """
    for k in range(np.uint64(len(values))):
        column = np.uint64(columns[k])
        if np.isnan(values[k]):
            missing[column] += 1
        else:
            numbers[column] += 1
            infinite[column] += np.isinf(values[k])


@kernel
def count_row_cells(rows: SharedColumnRows, numbers: Int64Array, missing: Int64Array) -> None:
    """Add to each column how many of its written cells in a sample of rows are numbers and missing.

    rows : SharedColumnRows, in      numbers, missing : as in `count_cells`
    """
    offsets, column_starts, columns, values = rows.offsets, rows.column_starts, rows.columns, rows.values
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
    rows: SharedColumnRows, features: Int32Array, first: int, ends: Int64Array, cells: Float64Array
) -> None:
    """Write the numbers of adjacent features in a sample of rows, feature by feature.

    rows  : SharedColumnRows, in      features : int32[n_columns], the feature of each column, in
    first : int64, the first of the m features
    ends  : int64[m], where each feature starts in `cells`, in; where it ends, out
    cells : float64[...], out

    Parallel: the caller runs ranges of features side by side, each with `cells` of its own.
    """
    offsets, column_starts, columns, values = rows.offsets, rows.column_starts, rows.columns, rows.values
    m = len(ends)
    for row in range(len(column_starts)):
        shift = column_starts[row] - offsets[row]
        for k in range(offsets[row], offsets[row + 1]):
            f = features[np.uint64(columns[np.uint64(k + shift)])] - first
            if 0 <= f < m and not np.isnan(values[np.uint64(k)]):
                cells[ends[np.uint64(f)]] = values[np.uint64(k)]
                ends[np.uint64(f)] += 1


@kernel
def edge_between(low: float, high: float) -> float:
    """Return a finite edge with low <= edge < high: the middle where it differs from both; nan without such an edge.

    low, high : float64, low < high, may be infinite
    """
    middle = low + (high - low) / 2.0 if low < 0.0 < high and high - low < LARGEST else low / 2.0 + high / 2.0
    if low < middle < high and np.isfinite(middle):
        return middle + 0.0
    if np.isfinite(low):
        return low + 0.0
    return -LARGEST if high > -LARGEST else np.nan


@inner_kernel
def append_edge(edges: Float64Array, n_edges: int, low: float, high: float) -> int:
    """Append the edge between two neighbouring values if there is one; return the number of edges.

    edges     : float64[> n_edges], out      n_edges : int64, edges so far
    low, high : float64, the neighbours, low < high
    """
    edge = edge_between(low, high)
    if np.isnan(edge):
        return n_edges
    edges[n_edges] = edge
    return n_edges + 1


@inner_kernel
def mark_heavy_values(counts: Int64Array, start: int, stop: int, n_bins: int, heavy: BoolArray) -> tuple[int, int]:
    """Mark the values start:stop that get a bin of their own; return total count and number of bins of the others.

    counts : int64[n_distinct], how often each value occurs, in      start, stop : int64, the values to cut
    n_bins : int64, bins for these values, >= 1      heavy : bool[n_distinct], False in; out

    A value whose count is at least the mean count of a bin gets a bin of its own; the mean is then recomputed over
    the remaining values and bins, until no further value does.
    """
    rest = 0
    for i in range(start, stop):
        rest += counts[i]
    rest_bins = n_bins
    grew = True
    while grew and rest_bins > 1:
        grew = False
        mean = rest / rest_bins
        for i in range(start, stop):
            if not heavy[i] and counts[i] >= mean and rest_bins > 1:
                heavy[i] = True
                rest -= counts[i]
                rest_bins -= 1
                grew = True
    return rest, rest_bins


@inner_kernel
def cut_range(
    values: Float64Array, counts: Int64Array, start: int, stop: int, n_bins: int, edges: Float64Array, n_edges: int
) -> int:
    """Cut the distinct values start:stop into at most n_bins bins of about equal counts; return the number of edges.

    values  : float64[n_distinct], ascending, in      counts, start, stop : as in `mark_heavy_values`
    n_bins  : int64, >= 1      edges : float64[...], new edges are appended, in and out
    n_edges : int64, edges so far

    A bin is filled until it has the mean count of the bins that are left, or half of that when a heavy value follows. A
    heavy value, which `mark_heavy_values` marks, always ends a bin. When the values before it are too few for a bin,
    they join the bin before, unless that ends with a heavy value too: then they share the bin of the next.
    Source: GreedyFindBin of LightGBM. Differs: there, heavy values are marked once, by the mean of all values, and
    values too few for a bin always share the bin of the heavy value.
    Example: the values 1 2 3 4 5 6 7 of the counts 3 3 1 9 1 2 2, in 4 bins. 4 is heavy, as 9 >= 21 / 4; the mean of
    the other 3 bins is 12 / 3 = 4. 1 and 2 reach it and fill a bin. 3 does not reach half of it before 4, so it joins
    them. 4 has a bin. 5 and 6 reach the mean of the 2 bins left after the first, 6 / 2; 7 is the rest:
    1 2 3 | 4 | 5 6 | 7.
    """
    if stop - start <= n_bins:
        for i in range(start, stop - 1):
            n_edges = append_edge(edges, n_edges, values[i], values[i + 1])
        return n_edges
    heavy = np.zeros(len(values), np.bool_)
    rest, rest_bins = mark_heavy_values(counts, start, stop, n_bins, heavy)
    bins_left = n_bins
    mean = rest / rest_bins
    in_bin = 0  # documents in the bin that is being filled
    after_light = False  # the bin before it ends with a value that is not heavy
    for i in range(start, stop - 1):
        in_bin += counts[i]
        if not heavy[i]:
            rest -= counts[i]
        close = heavy[i] or in_bin >= mean or (heavy[i + 1] and in_bin >= 0.5 * mean)
        join = not close and heavy[i + 1] and after_light
        if join:
            n_edges -= 1  # too small for a bin, so the values join the bin before
        if join or (close and bins_left > 1):
            n_edges = append_edge(edges, n_edges, values[i], values[i + 1])
            in_bin = 0
        if close and not join and bins_left > 1:
            bins_left -= 1
            after_light = not heavy[i]
            if not heavy[i]:
                rest_bins -= 1
                mean = rest / max(rest_bins, 1)
    return n_edges


@kernel
def bin_of(x: float, edges: Float64Array, start: int, count: int) -> int:
    """Return how many of edges[start:start + count] lie below x, by a binary search without branches.

    x     : float64, no nan      edges : float64[...], ascending from `start`, in      start : int64
    count : int64
    """
    low = start
    left = count
    while left > 0:
        half = (left + 1) >> 1
        low += half * (edges[low + half - 1] < x)
        left -= half
    return low - start


@inner_kernel
def count_distinct(cells: Float64Array, n_zeros: int, values: Float64Array, counts: Int64Array) -> int:
    """Write the distinct values of cells and how often each occurs; return how many there are.

    cells  : float64[k], ascending, in      n_zeros : int64, further cells that are 0
    values : float64[k + 1], ascending, out      counts : int64[k + 1], 0 in; out
    """
    n_distinct = 0
    put_zero = n_zeros > 0
    for i in range(len(cells) + 1):
        if put_zero and (i == len(cells) or cells[i] >= 0.0):
            values[n_distinct] = 0.0
            counts[n_distinct] = n_zeros
            n_distinct += 1
            put_zero = False
        if i < len(cells):
            if n_distinct > 0 and values[n_distinct - 1] == cells[i]:
                counts[n_distinct - 1] += 1
            else:
                values[n_distinct] = cells[i] + 0.0
                counts[n_distinct] = 1
                n_distinct += 1
    return n_distinct


@inner_kernel
def count_negative_bins(counts: Int64Array, zero: int, after: int, n_distinct: int, n_bins: int) -> int:
    """Return how many of n_bins bins the values below zero get, by how often they and those above zero occur.

    counts : int64[...], how often each distinct value occurs, in      zero : int64, values below zero
    after  : int64, where the values above zero start      n_distinct : int64, where they end
    n_bins : int64, bins for both
    """
    below = 0
    above = 0
    for i in range(zero):
        below += counts[i]
    for i in range(after, n_distinct):
        above += counts[i]
    by_count = int(n_bins * (below / (below + above)) + 0.5)
    least = max(by_count, 1 if zero > 0 else 0, n_bins - (n_distinct - after))
    return min(least, n_bins - (1 if after < n_distinct else 0), zero)


@kernel
def fit_edges(cells: Float64Array, n_zeros: int, max_bins: int, edges: Float64Array) -> int:
    """Write a feature's ascending bin edges and return their number.

    cells    : float64[k], the numbers written in the sample, ascending, in
    n_zeros  : int64, how many more cells of the sample are zero without being written
    max_bins : int64, 2..255
    edges    : float64[>= max_bins - 1], out; value x is in bin b iff edges[b-1] < x <= edges[b]

    Each distinct value has a bin of its own if they are at most max_bins. Else zero, if present, has its own, and the
    other bins go to the negative and the positive values by how often these occur.
    """
    values = np.empty(len(cells) + 1, np.float64)
    counts = np.zeros(len(cells) + 1, np.int64)
    n_distinct = count_distinct(cells, n_zeros, values, counts)
    # Three ranges of values: below zero, zero, above; all is one range when every value can have its bin.
    zero = n_distinct
    after = n_distinct
    below_bins = max_bins
    above_bins = 0
    if n_distinct > max_bins > 2:
        zero = bin_of(0.0, values, 0, n_distinct)
        after = zero + 1 if zero < n_distinct and values[zero] == 0.0 else zero
        n_bins = max_bins - (after - zero)
        below_bins = count_negative_bins(counts, zero, after, n_distinct, n_bins)
        above_bins = n_bins - below_bins
    n_edges = 0
    for part in range(3):
        start = 0 if part == 0 else zero if part == 1 else after
        stop = zero if part == 0 else after if part == 1 else n_distinct
        if start == stop:
            continue
        if start > 0:
            n_edges = append_edge(edges, n_edges, values[start - 1], values[start])
        n_bins = below_bins if part == 0 else 1 if part == 1 else above_bins
        n_edges = cut_range(values, counts, start, stop, n_bins, edges, n_edges)
    return n_edges
