"""Sums of gradient and hessian by bin, as packed integers.

A document's gradient and hessian share one int64: gradient in the high half, hessian (never negative) in the low half,
scaled so that the sums over all documents fit their halves. One addition adds both, exactly, in any order; parent minus
child is exact too. Source: the packing of Shi et al. 2022 (quantized GBDT training), with 32-bit halves instead of few
bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel, shared_kernel
from lmart.kernels.numba_support.intrinsics import prefetch

# How many documents ahead bins are prefetched, and, earlier still, the offsets of bins.
BINS_AHEAD = 6
OFFSETS_AHEAD = 12
LINES_AHEAD = 4  # first cache lines of a document's bins; the last one is prefetched too
LINE = 64  # bytes


@kernel
def sum_magnitudes(gradients: Float64Array, hessians: Float64Array, start: int, stop: int) -> tuple[float, float]:
    """Return the sums of |gradient| and of hessian over rows start:stop, added in row order.

    gradients   : float64[n], in      hessians : float64[n], >= 0, in
    start, stop : int64, the rows of this call
    """
    gradient = 0.0
    hessian = 0.0
    for row in range(start, stop):
        gradient += abs(gradients[row])
        hessian += hessians[row]
    return gradient, hessian


@kernel
def pack_gradients(
    gradients: Float64Array,
    hessians: Float64Array,
    gradient_scale: float,
    hessian_scale: float,
    start: int,
    stop: int,
    packed: Int64Array,
) -> int:
    """Write the packed gradient and hessian of rows start:stop; return the largest hessian of these rows in units.

    gradients, hessians, start, stop : as in `sum_magnitudes`
    gradient_scale : float64, units of the high half in a gradient of 1
    hessian_scale  : float64, units of the low half in a hessian of 1
    packed         : int64[n], out; start:stop is overwritten

    Equation: round(gradient * gradient_scale) << 32 + round(hessian * hessian_scale).
    Parallel: the caller runs ranges of rows side by side.
    """
    largest = 0
    for row in range(start, stop):
        gradient = np.int64(np.rint(gradients[row] * gradient_scale))
        hessian = np.int64(np.rint(hessians[row] * hessian_scale))
        packed[row] = (gradient << 32) + hessian
        largest = max(largest, int(hessian))
    return largest


@shared_kernel
def add_documents(
    histogram: Int64Array,
    documents: Int32Array,
    packed: Int64Array,
    row_starts: Int64Array,
    row_stops: Int64Array,
    other_bins: UInt16Array | UInt32Array,
    start: int,
    stop: int,
) -> int:
    """Add documents[start:stop] to a histogram, in all bins but the most frequent of each feature.

    Returns the packed sum of these documents.
    histogram   : int64[n_bins], packed sums, the bins of all features end to end, in and out
    documents   : int32[n_leaf], rows, in      packed : int64[n], packed gradient and hessian of each row, in
    row_starts  : int64[n], the other bins of row r are other_bins[row_starts[r]:row_stops[r]], in
    row_stops   : int64[n], in
    other_bins  : uint16 or uint32[...], places in `histogram`, as BinnedFeatures has them, in
    start, stop : int64, the documents of this call

    Parallel: each worker has a histogram of its own. Cost: an addition a cell that is not in a most frequent bin.
    """
    total = 0
    last = len(documents) - 1
    for i in range(start, stop):
        far = documents[min(i + OFFSETS_AHEAD, last)]
        prefetch(packed, far)
        prefetch(row_starts, far)
        prefetch(row_stops, far)
        near = np.uint64(documents[min(i + BINS_AHEAD, last)])
        final = row_stops[near] - 1
        for line in range(LINES_AHEAD):
            prefetch(other_bins, min(row_starts[near] + line * (LINE // other_bins.itemsize), final))
        prefetch(other_bins, final)  # left out, a miss a document: a third of the time of leaves below the root
        row = np.uint64(documents[i])
        value = packed[row]
        total += value
        for k in range(np.uint64(row_starts[row]), np.uint64(row_stops[row])):
            histogram[np.uint64(other_bins[k])] += value
    return total


class NarrowedRows(NamedTuple):
    """The other bins of rows in some of the features.

    starts : int64[n], the bins of row r are bins[starts[r]:stops[r]]
    stops  : int64[n]
    bins   : uint16 or uint32[all other bins], places in a histogram
    """

    starts: Int64Array
    stops: Int64Array
    bins: UInt16Array | UInt32Array


@kernel
def narrow_rows(
    documents: Int32Array,
    row_offsets: Int64Array,
    other_bins: UInt16Array | UInt32Array,
    allowed_bins: BoolArray,
    start: int,
    stop: int,
    narrowed: NarrowedRows,
) -> None:
    """Copy the other bins of documents[start:stop] in allowed features.

    documents   : int32[n_leaf], rows, ascending, in
    row_offsets : int64[n + 1], the other bins of row r are other_bins[row_offsets[r]:row_offsets[r + 1]], in
    other_bins  : uint16 or uint32[...], in      allowed_bins : bool[n_bins], whether a bin is copied, in
    start, stop : int64, the documents of this call
    narrowed    : out for these rows, whose bins follow each other from where those of the first row were

    Parallel: the caller runs ranges of documents side by side. Cost: O(other bins of these rows), without branches.
    """
    if start == stop:
        return
    starts, stops, bins = narrowed
    end = np.uint64(row_offsets[documents[start]])
    for i in range(start, stop):
        row = np.uint64(documents[i])
        starts[row] = np.int64(end)
        for k in range(np.uint64(row_offsets[row]), np.uint64(row_offsets[row + np.uint64(1)])):
            other_bin = other_bins[k]
            bins[end] = other_bin  # never beyond where it was
            end += np.uint64(allowed_bins[np.uint64(other_bin)])
        stops[row] = np.int64(end)


@kernel
def merge_histograms(histogram: Int64Array, worker_histograms: Int64Array, first: int, last: int) -> None:
    """Add the histograms of the other workers to the first worker's, and clear them for the next leaf.

    histogram         : int64[n_bins], packed sums, in and out
    worker_histograms : int64[workers - 1, n_bins], packed sums, in; 0 out
    first, last       : int64, the bins of this call

    Parallel: the caller runs ranges of bins side by side.
    """
    for worker_histogram in worker_histograms:
        for b in range(np.uint64(first), np.uint64(last)):
            histogram[b] += worker_histogram[b]
            worker_histogram[b] = 0


@inner_kernel
def fill_most_frequent_bin(histogram: Int64Array, start: int, stop: int, most_frequent_bin: int, total: int) -> None:
    """Write a feature's most frequent bin: the leaf's total less the other bins. A second time it does nothing.

    histogram         : int64[n_bins], packed sums, in and out      start, stop : int64, the feature's bins
    most_frequent_bin : int64, counted from `start`      total : int64, packed sum of the leaf
    """
    others = np.int64(0)
    for b in range(np.uint64(start), np.uint64(stop)):
        others += histogram[b]
    histogram[start + most_frequent_bin] += total - others


@shared_kernel
def complete_histogram(
    histogram: Int64Array, total: int, bin_offsets: Int64Array, most_frequent_bins: UInt8Array, first: int, last: int
) -> None:
    """Fill in the most frequent bins of features first:last.

    histogram          : int64[n_bins], packed sums, in and out      total : int64, packed sum of the leaf
    bin_offsets        : int64[m + 1], the bins of feature f are bin_offsets[f]:bin_offsets[f + 1], in
    most_frequent_bins : uint8[m], counted from the feature's first bin, in
    first, last        : int64, the features of this call

    Parallel: the caller runs ranges of features side by side.
    """
    for f in range(first, last):
        fill_most_frequent_bin(histogram, bin_offsets[f], bin_offsets[f + 1], most_frequent_bins[f], total)


@shared_kernel
def subtract_histogram(
    parent: Int64Array,
    child: Int64Array,
    child_total: int,
    bin_offsets: Int64Array,
    most_frequent_bins: UInt8Array,
    first: int,
    last: int,
) -> None:
    """Complete a child's histogram and turn its parent's into the other child's.

    parent             : int64[n_bins], packed sums, complete, in; parent - child, exactly, out
    child              : int64[n_bins], packed sums, in; the most frequent bins are filled in
    child_total        : int64, packed sum of the child
    bin_offsets, most_frequent_bins, first, last : as in `complete_histogram`

    Parallel: the caller runs ranges of features side by side.
    """
    for f in range(first, last):
        start, stop = bin_offsets[f], bin_offsets[f + 1]
        fill_most_frequent_bin(child, start, stop, most_frequent_bins[f], child_total)
        for b in range(np.uint64(start), np.uint64(stop)):
            parent[b] -= child[b]
