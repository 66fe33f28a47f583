"""Values to bins: find the bin of every cell, and list the bins of each row for histograms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.row_arrays import SharedColumnRows

TILE = 64  # rows whose bins are gathered row by row before they are written feature by feature


class BinGrid(NamedTuple):
    """How the cells of rows become bins of m features.

    features     : int32[n_columns], the binned feature of each column of the rows, or -1
    grid         : float64[256 m]; entries 1..255 of each feature's 256 are its edges, ascending, then inf
    missing_bins : uint8[m], the bin of nan
    absent_bins  : uint8[m], the bin of a cell that is not written
    """

    features: Int32Array
    grid: Float64Array
    missing_bins: UInt8Array
    absent_bins: UInt8Array


@inner_kernel
def count_edges_below(grid: Float64Array, base: np.uint64, x: float) -> np.uint64:
    """Return how many of a feature's edges lie below x, by eight steps without branches.

    grid : float64[256 m], as in BinGrid, in      base : uint64, where the feature's 256 entries start
    x    : float64; nan gives 0
    """
    entry = base
    entry += np.uint64(grid[entry + np.uint64(128)] < x) << np.uint64(7)
    entry += np.uint64(grid[entry + np.uint64(64)] < x) << np.uint64(6)
    entry += np.uint64(grid[entry + np.uint64(32)] < x) << np.uint64(5)
    entry += np.uint64(grid[entry + np.uint64(16)] < x) << np.uint64(4)
    entry += np.uint64(grid[entry + np.uint64(8)] < x) << np.uint64(3)
    entry += np.uint64(grid[entry + np.uint64(4)] < x) << np.uint64(2)
    entry += np.uint64(grid[entry + np.uint64(2)] < x) << np.uint64(1)
    entry += np.uint64(grid[entry + np.uint64(1)] < x)
    return entry - base


@kernel
def code_cells(rows: SharedColumnRows, bin_grid: BinGrid, start: int, stop: int, shift: int, bins: UInt8Array) -> None:
    """Write the bins of rows start:stop: how many of its feature's edges lie below a number; nan has a bin of its own.

    rows  : SharedColumnRows, in      bin_grid : BinGrid, in      start, stop : int64, the rows of this call
    shift : int64, the bins of row r are in column r + shift of `bins`
    bins  : uint8[m, n], out, overwritten there

    Parallel: the caller runs ranges of rows side by side. Cost: eight steps a cell, the same for all, so that the
    processor guesses no branch and searches for several cells at once.
    """
    offsets, column_starts, columns, values = rows.offsets, rows.column_starts, rows.columns, rows.values
    features, grid = bin_grid.features, bin_grid.grid
    missing_bins, absent_bins = bin_grid.missing_bins, bin_grid.absent_bins
    m = len(absent_bins)
    tile = np.empty((TILE, m), np.uint8)  # row by row first: neighbours in `bins` are far apart
    for first in range(start, stop, TILE):
        last = min(first + TILE, stop)
        for row in range(first, last):
            row_bins = tile[row - first]
            for f in range(m):
                row_bins[f] = absent_bins[f]
            column = np.uint64(column_starts[row])
            for k in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
                f = features[np.uint64(columns[column])]
                column += np.uint64(1)
                if f < 0:
                    continue
                x = values[k]
                below = count_edges_below(grid, np.uint64(f) << np.uint64(8), x)
                row_bins[np.uint64(f)] = missing_bins[np.uint64(f)] if np.isnan(x) else below
        for f in range(m):
            for row in range(first, last):
                bins[f, row + shift] = tile[row - first, f]


@kernel
def count_bins(bins: UInt8Array, counts: Int64Array) -> None:
    """Write how many documents are in each bin of a feature.

    bins : uint8[n], in      counts : int64[256], out
    """
    for b in range(256):
        counts[b] = 0
    for b in bins:
        counts[b] += 1


@kernel
def count_other_bins(
    bins: UInt8Array, most_frequent_bins: UInt8Array, start: int, stop: int, row_lengths: Int64Array
) -> None:
    """Write, for rows start:stop, in how many features the bin is not the feature's most frequent bin.

    bins        : uint8[m, n], in      most_frequent_bins : uint8[m], in
    start, stop : int64, the rows of this call      row_lengths : int64[n], out; start:stop is overwritten

    Parallel: the caller runs ranges of rows side by side.
    """
    for row in range(start, stop):
        row_lengths[row] = 0
    for f in range(len(most_frequent_bins)):
        most_frequent = most_frequent_bins[f]
        for row in range(start, stop):
            row_lengths[row] += bins[f, row] != most_frequent


@kernel
def list_other_bins(
    bins: UInt8Array,
    most_frequent_bins: UInt8Array,
    bin_offsets: Int64Array,
    row_offsets: Int64Array,
    start: int,
    stop: int,
    other_bins: UInt16Array | UInt32Array,
) -> None:
    """Write, row by row, bin_offsets[f] + bin of every feature f whose bin is not its most frequent bin.

    bins, most_frequent_bins : as in `count_other_bins`
    bin_offsets        : int64[m + 1], where the bins of each feature start in a histogram, in
    row_offsets        : int64[n + 1], sums of the row lengths that `count_other_bins` wrote, in
    start, stop        : int64, the rows of this call
    other_bins         : uint16 or uint32[row_offsets[n]], out; those of the rows of this call are overwritten

    Parallel: the caller runs ranges of rows side by side.
    """
    ends = np.empty(stop - start, np.int64)
    for row in range(start, stop):
        ends[row - start] = row_offsets[row]
    for f in range(len(most_frequent_bins)):
        most_frequent = most_frequent_bins[f]
        offset = bin_offsets[f]
        for row in range(start, stop):
            document_bin = bins[f, row]
            if document_bin != most_frequent:
                other_bins[ends[row - start]] = offset + document_bin
                ends[row - start] += 1
