"""Bins that are kept row by row: a code for each bin of a row that is not the usual one of its feature.

The codes of a feature are adjacent numbers, one for each of its bins, and those of a row ascend, so that the bin of a
row in a feature is found by binary search. That takes memory in proportion to the codes, however many features there
are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel, shared_kernel
from lmart.kernels.row_arrays import SharedColumnRows
from lmart.kernels.scoring.tree_walk import BinnedTree
from lmart.kernels.trees.bin_edges import bin_of


class RowCoding(NamedTuple):
    """How the cells of rows become codes of m features. The codes of feature f start at edge_offsets[f] + 2 f.

    features     : int32[n_columns], the feature of each column of the rows, or -1
    edges        : float64[all edges], of all features end to end, ascending in a feature
    edge_offsets : int64[m + 1]
    absent_bins  : uint8[m], the bin of a cell that is not written: the usual one
    """

    features: Int32Array
    edges: Float64Array
    edge_offsets: Int64Array
    absent_bins: UInt8Array


@kernel
def code_row_cells(
    rows: SharedColumnRows, coding: RowCoding, start: int, stop: int, lengths: Int64Array, codes: UInt32Array
) -> int:
    """Write the codes of rows start:stop, ascending in each row; return how many there are.

    rows        : SharedColumnRows, in      coding : RowCoding, in
    start, stop : int64, the rows of this call
    lengths     : int64[stop - start], codes of each row, out
    codes       : uint32[>= cells of the rows], out

    Bins are those of `code_cells`. Parallel: the caller runs ranges of rows side by side. Cost: a binary search a cell.
    """
    offsets, column_starts, columns, values = rows.offsets, rows.column_starts, rows.columns, rows.values
    features, edges, edge_offsets, absent_bins = coding.features, coding.edges, coding.edge_offsets, coding.absent_bins
    n = 0
    for row in range(start, stop):
        first = n
        shift = column_starts[row] - offsets[row]
        for k in range(offsets[row], offsets[row + 1]):
            f = features[columns[k + shift]]
            if f < 0:
                continue
            edge = edge_offsets[f]
            n_edges = edge_offsets[f + 1] - edge
            document_bin = n_edges + 1 if np.isnan(values[k]) else bin_of(values[k], edges, edge, n_edges)
            if document_bin == absent_bins[f]:
                continue
            code = edge + 2 * f + document_bin
            place = n
            while place > first and codes[place - 1] > code:  # columns of tables may have any order
                codes[place] = codes[place - 1]
                place -= 1
            codes[place] = code
            n += 1
        lengths[row - start] = n - first
    return n


@kernel
def count_codes(counts: Int64Array, codes: UInt32Array, start: int, stop: int) -> None:
    """Add how often each code occurs among codes[start:stop].

    counts : int64[n_codes], in and out      codes : uint32[...], in      start, stop : int64, the codes of this call

    Parallel: each worker has counts of its own.
    """
    for k in range(start, stop):
        counts[codes[k]] += 1


class MixedBins(NamedTuple):
    """Bins of n rows, of k features one feature after the other, and of the others row by row.

    bins               : uint8[k, n]
    most_frequent_bins : uint8[k], of those features
    starts             : int64[k], where the bins of each of them start in a histogram, ascending
    row_offsets        : int64[n + 1], the codes of row r are codes[row_offsets[r]:row_offsets[r + 1]]
    codes              : uint32[...], as `code_row_cells` writes them
    places             : int32[n_codes], the place of each code in a histogram, ascending, -1 where it has none
    """

    bins: UInt8Array
    most_frequent_bins: UInt8Array
    starts: Int64Array
    row_offsets: Int64Array
    codes: UInt32Array
    places: Int32Array


@kernel
def count_mixed_bins(mixed: MixedBins, start: int, stop: int, row_lengths: Int64Array) -> None:
    """Write how many places `list_mixed_bins` writes for each of the rows start:stop.

    mixed       : MixedBins, in      start, stop : int64, the rows of this call
    row_lengths : int64[n], out; start:stop is overwritten

    Parallel: the caller runs ranges of rows side by side.
    """
    for row in range(start, stop):
        n = 0
        for f in range(len(mixed.starts)):
            n += mixed.bins[f, row] != mixed.most_frequent_bins[f]
        for k in range(mixed.row_offsets[row], mixed.row_offsets[row + 1]):
            n += mixed.places[mixed.codes[k]] >= 0
        row_lengths[row] = n


@kernel
def list_mixed_bins(
    mixed: MixedBins, start: int, stop: int, row_offsets: Int64Array, other_bins: UInt16Array | UInt32Array
) -> None:
    """Write, row by row, the places of all bins that are not the most frequent one of their feature, ascending.

    mixed       : MixedBins, in      start, stop : int64, the rows of this call
    row_offsets : int64[n + 1], sums of the row lengths that `count_mixed_bins` wrote, in
    other_bins  : uint16 or uint32[row_offsets[n]], out; those of the rows of this call are overwritten

    Parallel: the caller runs ranges of rows side by side.
    """
    bins, most_frequent_bins, starts = mixed.bins, mixed.most_frequent_bins, mixed.starts
    m = len(starts)
    for row in range(start, stop):
        end = row_offsets[row]
        f = 0
        for k in range(mixed.row_offsets[row], mixed.row_offsets[row + 1]):
            place = mixed.places[mixed.codes[k]]
            if place < 0:
                continue
            while f < m and starts[f] < place:
                if bins[f, row] != most_frequent_bins[f]:
                    other_bins[end] = starts[f] + bins[f, row]
                    end += 1
                f += 1
            other_bins[end] = place
            end += 1
        while f < m:
            if bins[f, row] != most_frequent_bins[f]:
                other_bins[end] = starts[f] + bins[f, row]
                end += 1
            f += 1


@inner_kernel
def bin_in_row(codes: UInt16Array | UInt32Array, start: int, stop: int, first: int, last: int, usual_bin: int) -> int:
    """Return the bin of a row in a feature.

    codes       : uint16 or uint32[...], in      start, stop : int64, where those of the row are, ascending
    first, last : int64, the codes of the feature are first:last      usual_bin : int64, its bin where there is none
    """
    place = start
    left = stop - start
    while left > 0:
        half = (left + 1) >> 1
        place += half * int(np.int64(codes[place + half - 1]) < first)
        left -= half
    if place < stop and np.int64(codes[place]) < last:
        return int(np.int64(codes[place]) - first)
    return usual_bin


@shared_kernel
def find_bins(
    documents: Int32Array,
    row_offsets: Int64Array,
    codes: UInt16Array | UInt32Array,
    feature_codes: tuple[int, int, int],
    start: int,
    stop: int,
    bins: UInt8Array,
) -> None:
    """Write the bins of documents[start:stop] in a feature.

    documents     : int32[n_leaf], rows, in
    row_offsets   : int64[n + 1], the codes of row r are codes[row_offsets[r]:row_offsets[r + 1]], ascending, in
    codes         : uint16 or uint32[...], in
    feature_codes : (int64, int64, int64), the first code of the feature, the one after its last, and its usual bin
    start, stop   : int64, the documents of this call
    bins          : uint8[n], the bin of each row, out; others than those of the documents stay as they are

    Parallel: the caller runs ranges of documents side by side. Cost: a binary search in each row.
    """
    first, last, usual_bin = feature_codes
    for i in range(start, stop):
        row = documents[i]
        bins[row] = bin_in_row(codes, row_offsets[row], row_offsets[row + 1], first, last, usual_bin)


class RowBins(NamedTuple):
    """The bins of n rows in m features, row by row.

    row_offsets : int64[n + 1], the codes of row r are codes[row_offsets[r]:row_offsets[r + 1]], ascending
    codes       : uint16 or uint32[...]
    code_starts : int64[m + 1], the codes of feature f are code_starts[f]:code_starts[f + 1]
    usual_bins  : uint8[m], the bin of a row without a code of the feature
    """

    row_offsets: Int64Array
    codes: UInt16Array | UInt32Array
    code_starts: Int64Array
    usual_bins: UInt8Array


@kernel
def walk_row_bins(rows: RowBins, tree: BinnedTree, start: int, stop: int, scores: Float64Array) -> None:
    """Add the value of each row's leaf to scores[start:stop], as `walk_bins` does.

    rows   : RowBins, in      tree : BinnedTree, in      start, stop : int64, the rows of this call
    scores : float64[n], in and out

    Parallel: each call writes scores[start:stop] only. Cost: a binary search for each node that a row passes.
    """
    row_offsets, codes, code_starts, usual_bins = rows.row_offsets, rows.codes, rows.code_starts, rows.usual_bins
    split_features, split_bins, missing_bins = tree.split_features, tree.split_bins, tree.missing_bins
    missing_left, left, right, leaf_values = tree.missing_left, tree.left, tree.right, tree.leaf_values
    for row in range(start, stop):
        node = 0 if len(left) else -1
        while node >= 0:
            f = split_features[node]
            document_bin = bin_in_row(
                codes, row_offsets[row], row_offsets[row + 1], code_starts[f], code_starts[f + 1], usual_bins[f]
            )
            goes_left = missing_left[node] if document_bin == missing_bins[f] else document_bin <= split_bins[node]
            node = left[node] if goes_left else right[node]
        scores[row] += leaf_values[~node]
