"""A leaf split in one call: its documents are divided, and the best splits of both children found.

Of the children only the smaller has its histogram summed: that of the larger is the rest of the parent's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel, shared_kernel
from lmart.kernels.trees.histogram import add_documents, complete_histogram, subtract_histogram
from lmart.kernels.trees.row_bins import find_bins
from lmart.kernels.trees.row_partition import count_children, count_leaf_bins, partition_rows
from lmart.kernels.trees.split_gain import Split, SplitFields, SplitSearch, fields_of
from lmart.kernels.trees.split_search import (
    best_split,
    feature_of_highest,
    find_best_constrained_split,
    find_best_split,
    find_best_splits_of_children,
)

FEW = 2  # features of a leaf that are counted one by one before all are counted together

Range = tuple[int, int, int, int]
"""Where the documents of a leaf are: first and last of the sampled rows, first and last of the unsampled rows."""


class GrowingRows(NamedTuple):
    """The documents of a tree that grows, in the order of their leaves; n documents, m features.

    bins, places  : uint8[k, n] and int32[m], the bins of documents in some features, as BinnedFeatures has them
    bin_counts    : int64[n_bins], documents in each bin
    missing_bins  : uint8[m], the bin of missing values
    packed        : int64[n], packed gradient and hessian of each document
    row_starts, row_stops, other_bins : of sampled rows, as `histogram.add_documents` takes them
    row_offsets, all_other_bins       : of all rows and features, as BinnedFeatures has them
    sampled       : int32[k], the rows that are in the sums      sampled_buffer : int32[k], of any content
    unsampled     : int32[n - k], those that are only counted      unsampled_buffer : int32[n - k], of any content
    """

    bins: UInt8Array
    places: Int32Array
    bin_counts: Int64Array
    missing_bins: UInt8Array
    packed: Int64Array
    row_starts: Int64Array
    row_stops: Int64Array
    other_bins: UInt16Array | UInt32Array
    row_offsets: Int64Array
    all_other_bins: UInt16Array | UInt32Array
    sampled: Int32Array
    sampled_buffer: Int32Array
    unsampled: Int32Array
    unsampled_buffer: Int32Array


class LeafToSearch(NamedTuple):
    """A leaf whose best split is asked for.

    place  : Range of the leaf
    total  : int64, its packed sum
    bounds : (float64, float64), of its value, in units of gradients by units of hessians
    """

    place: Range
    total: int
    bounds: tuple[float, float]


@inner_kernel
def count_documents(place: Range) -> int:
    """Return the number of documents of a leaf; place : Range of the leaf."""
    first, last, first_unsampled, last_unsampled = place
    return last - first + last_unsampled - first_unsampled


@inner_kernel
def may_split(place: Range, search: SplitSearch) -> bool:
    """Return whether a leaf has documents for two children; place : Range of the leaf, search : SplitSearch, in."""
    return count_documents(place) >= 2 * search.min_documents


@inner_kernel
def bins_of(rows: GrowingRows, search: SplitSearch, feature: int, documents: Int32Array) -> UInt8Array:
    """Return the bins of a feature, uint8[n], of which those of `documents` hold.

    rows    : GrowingRows, in      search : SplitSearch, in      feature : int64      documents : int32[k], rows, in
    """
    place = rows.places[feature]
    if place >= 0:
        column: UInt8Array = rows.bins[place]
        return column
    found = np.empty(rows.bins.shape[1], np.uint8)
    first, last = search.bin_offsets[feature], search.bin_offsets[feature + 1]
    codes = (first, last, int(search.most_frequent_bins[feature]))
    find_bins(documents, rows.row_offsets, rows.all_other_bins, codes, 0, len(documents), found)
    return found


@inner_kernel
def divide_rows(
    rows: GrowingRows,
    search: SplitSearch,
    split: tuple[int, int, bool, int, int],
    documents: Int32Array,
    right: Int32Array,
) -> int:
    """Divide documents by a split, in order; return how many go left.

    rows      : GrowingRows, in      search : SplitSearch, in      split : as in `expand_leaf`
    documents : int32[k], rows, in and out      right : int32[k], overwritten
    """
    feature, split_bin, missing_left, _, _ = split
    n, missing_bin = len(documents), int(rows.missing_bins[feature])
    bins = bins_of(rows, search, feature, documents)
    middle = partition_rows(bins, split_bin, missing_bin, missing_left, documents, 0, n, right)
    for i in range(n - middle):
        documents[middle + i] = right[i]
    return middle


@inner_kernel
def has_enough(rows: GrowingRows, place: Range, split: Split, total: int, search: SplitSearch) -> bool:
    """Return whether a split leaves `min_documents` on each side; sums of hessians may show it without a count.

    rows   : GrowingRows, in      place : Range of the leaf      split : Split
    total  : int64, packed sum of the leaf      search : SplitSearch, in
    """
    enough, left = search.min_documents, split.left_total & 0xFFFFFFFF
    if enough <= 1 or 0 < search.sure_hessian <= min(left, (total & 0xFFFFFFFF) - left):
        return True
    missing_bin = int(rows.missing_bins[split.feature])
    first, last, first_unsampled, last_unsampled = place
    n_left = n_right = 0
    for documents in (rows.sampled[first:last], rows.unsampled[first_unsampled:last_unsampled]):
        bins = bins_of(rows, search, split.feature, documents)
        n_left, n_right = count_children(
            bins, split.bin, missing_bin, split.missing_left, documents, enough, n_left, n_right
        )
    return n_left >= enough and n_right >= enough


@inner_kernel
def count_feature_bins(rows: GrowingRows, place: Range, search: SplitSearch, feature: int) -> Int64Array:
    """Return the documents of a leaf in each bin of a feature, int64[256].

    rows : GrowingRows, in      place : Range of the leaf      search : SplitSearch, in      feature : int64
    """
    counts = np.zeros(256, np.int64)
    first, last, first_unsampled, last_unsampled = place
    for documents in (rows.sampled[first:last], rows.unsampled[first_unsampled:last_unsampled]):
        bins = bins_of(rows, search, feature, documents)
        count_leaf_bins(bins, documents, 0, len(documents), counts)
    return counts


@inner_kernel
def count_all(rows: GrowingRows, place: Range, search: SplitSearch, split_gains: Float64Array) -> Int64Array:
    """Return the documents of a leaf in each bin of all features, int64[n_bins].

    rows        : GrowingRows, in      place : Range of the leaf      search : SplitSearch, in
    split_gains : float64[m], set to -inf where a feature's other bins hold fewer than `min_documents`, in and out
    """
    counts = np.zeros(len(rows.bin_counts), np.int64)
    first, last, first_unsampled, last_unsampled = place
    for documents in (rows.sampled[first:last], rows.unsampled[first_unsampled:last_unsampled]):
        for document in documents:
            row = np.uint64(document)
            for k in range(np.uint64(rows.row_offsets[row]), np.uint64(rows.row_offsets[row + np.uint64(1)])):
                counts[np.uint64(rows.all_other_bins[k])] += 1
    n_documents = count_documents(place)
    for feature in range(len(split_gains)):
        others = np.int64(0)
        for b in range(search.bin_offsets[feature], search.bin_offsets[feature + 1]):
            others += counts[b]
        counts[search.bin_offsets[feature] + search.most_frequent_bins[feature]] = n_documents - others
        if others < search.min_documents:
            split_gains[feature] = -np.inf
    return counts


@shared_kernel
def choose_split(
    rows: GrowingRows,
    place: Range,
    histogram: Int64Array,
    total: int,
    search: SplitSearch,
    bounds: tuple[float, float],
    split_gains: Float64Array,
) -> SplitFields:
    """Return the best split of a leaf that leaves `min_documents` on each side; its gain is -inf without a split.

    rows        : GrowingRows, in      place : Range of the leaf
    histogram   : int64[n_bins], packed sums, complete, in      total : int64, packed sum of the leaf
    search      : SplitSearch, in
    bounds      : (float64, float64), of the leaf values, in units of gradients by units of hessians
    split_gains : float64[m], in units, the highest gain of each feature before documents are counted, in; overwritten

    Where the best split leaves too few documents, those of its feature are counted by bin, which may leave another
    split of this feature. Then the feature of the highest gain is looked at, and so on: only features that could win
    are counted. After a few of them all are counted at once. Ties: lowest feature, then as in `best_split`.
    """
    low, high = bounds
    n_counted = 0
    counts_of_all = rows.bin_counts if count_documents(place) == rows.bins.shape[1] else np.empty(0, np.int64)
    best_counted = Split(-np.inf, -1, -1, False, 0)
    while True:
        feature = feature_of_highest(split_gains, 0, len(split_gains))
        if feature < 0 or feature == best_counted.feature:
            return fields_of(best_counted)
        if len(counts_of_all) == 0:
            split = best_split(histogram, histogram, feature, total, search, 0, low, high)
            if has_enough(rows, place, split, total, search):
                return fields_of(split)
            if n_counted == FEW:
                counts_of_all = count_all(rows, place, search, split_gains)
        n_counted += 1
        if len(counts_of_all) > 0:
            counts = counts_of_all[search.bin_offsets[feature] : search.bin_offsets[feature + 1]]
        else:
            counts = count_feature_bins(rows, place, search, feature)
        counted = best_split(histogram, counts, feature, total, search, search.min_documents, low, high)
        split_gains[feature] = counted.split_gain
        if counted.split_gain > best_counted.split_gain or (
            counted.split_gain == best_counted.split_gain and feature < best_counted.feature
        ):
            best_counted = counted


@inner_kernel
def subtract_documents(rows: GrowingRows, place: Range, histogram: Int64Array) -> None:
    """Take the documents of a leaf out of a histogram, from all bins but the most frequent of each feature.

    rows : GrowingRows, in      place : Range of the leaf      histogram : int64[n_bins], packed sums, in and out
    """
    for i in range(place[0], place[1]):
        row = np.uint64(rows.sampled[i])
        value = rows.packed[row]
        for k in range(np.uint64(rows.row_starts[row]), np.uint64(rows.row_stops[row])):
            histogram[np.uint64(rows.other_bins[k])] -= value


@inner_kernel
def find_splits(
    rows: GrowingRows,
    search: SplitSearch,
    larger: LeafToSearch,
    smaller: LeafToSearch,
    histogram: Int64Array,
    histogram_of_smaller: Int64Array,
) -> tuple[SplitFields, SplitFields]:
    """Return the best splits of the children of a leaf, of the larger child first, and write their histograms.

    rows      : GrowingRows, in      search : SplitSearch, in
    larger, smaller : LeafToSearch, the children
    histogram : int64[n_bins], packed sums of the leaf, in; of the larger child, complete, out
    histogram_of_smaller : int64[n_bins], packed sums of the smaller child, complete, out if it may be split
    """
    m = len(search.allowed)
    split_gains = np.empty((2, m))
    bin_arrays = (search.bin_offsets, search.most_frequent_bins)
    both = may_split(smaller.place, search)
    if both:
        for b in range(np.uint64(len(histogram_of_smaller))):
            histogram_of_smaller[b] = 0
        row_arrays = (rows.row_starts, rows.row_stops, rows.other_bins)
        add_documents(histogram_of_smaller, rows.sampled, rows.packed, *row_arrays, smaller.place[0], smaller.place[1])
    else:
        subtract_documents(rows, smaller.place, histogram)
    if both and search.constrained:
        subtract_histogram(histogram, histogram_of_smaller, smaller.total, *bin_arrays, 0, m)
    elif both:
        totals = (larger.total, smaller.total)
        find_best_splits_of_children(histogram, histogram_of_smaller, *totals, search, 0, m, split_gains)
    elif search.constrained:
        complete_histogram(histogram, larger.total, *bin_arrays, 0, m)
    else:
        find_best_split(histogram, larger.total, search, 0, m, split_gains[0])
    of_larger = of_smaller = fields_of(Split(-np.inf, -1, -1, False, 0))
    for number in range(2 if both else 1):
        leaf, sums = (larger, histogram) if number == 0 else (smaller, histogram_of_smaller)
        if search.constrained:
            low, high = leaf.bounds
            find_best_constrained_split(sums, leaf.total, search, low, high, 0, m, split_gains[number])
        found = choose_split(rows, leaf.place, sums, leaf.total, search, leaf.bounds, split_gains[number])
        if number == 0:
            of_larger = found
        else:
            of_smaller = found
    return of_larger, of_smaller


@kernel
def expand_leaf(
    rows: GrowingRows,
    search: SplitSearch,
    place: Range,
    split: tuple[int, int, bool, int, int],
    bounds: tuple[tuple[float, float], tuple[float, float]],
    histogram: Int64Array,
    histogram_of_smaller: Int64Array,
) -> tuple[int, int, SplitFields, SplitFields]:
    """Split a leaf, and find the best splits of its children.

    Returns how many sampled and how many unsampled documents go left, and the splits of the left and right child; their
    gains, in units, are -inf without a split.
    rows      : GrowingRows, in; the rows of the leaf are put in the order of its children
    search    : SplitSearch, in      place : Range of the leaf
    split     : feature, bin, whether missing values go left, packed sums of the left child and of the leaf
    bounds    : of the left child's value and of the right child's, as in LeafToSearch
    histogram : int64[n_bins], packed sums of the leaf, complete, in; of the larger child, that of more sampled
                documents, out: complete if this child has a split
    histogram_of_smaller : int64[n_bins], of any content; packed sums of the smaller child, out, likewise

    Ties: the right child is the larger. Parallel: the caller expands leaves side by side. Cost: O(cells of the smaller
    child's documents + bins).
    """
    first, last, first_unsampled, last_unsampled = place
    _, _, _, left_total, total = split
    left_bounds, right_bounds = bounds
    sampled = rows.sampled[first:last], rows.sampled_buffer[first:last]
    unsampled = rows.unsampled[first_unsampled:last_unsampled], rows.unsampled_buffer[first_unsampled:last_unsampled]
    n_left = n_left_unsampled = 0
    for documents, buffer in (sampled, unsampled):
        n_left, n_left_unsampled = n_left_unsampled, divide_rows(rows, search, split, documents, buffer)
    middle, middle_unsampled = first + n_left, first_unsampled + n_left_unsampled
    left = LeafToSearch((first, middle, first_unsampled, middle_unsampled), left_total, left_bounds)
    right = LeafToSearch((middle, last, middle_unsampled, last_unsampled), total - left_total, right_bounds)
    left_is_smaller = n_left <= last - middle
    smaller, larger = (left, right) if left_is_smaller else (right, left)
    of_smaller = of_larger = fields_of(Split(-np.inf, -1, -1, False, 0))
    if may_split(larger.place, search) or may_split(smaller.place, search):
        of_larger, of_smaller = find_splits(rows, search, larger, smaller, histogram, histogram_of_smaller)
    if left_is_smaller:
        return n_left, n_left_unsampled, of_smaller, of_larger
    return n_left, n_left_unsampled, of_larger, of_smaller
