"""The best split of a leaf, from its histogram: of one feature, of all features, or of a range of them.

Split gains are in units, as in `split_gain`.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel, shared_kernel
from lmart.kernels.trees.histogram import fill_most_frequent_bin
from lmart.kernels.trees.split_gain import (
    LISTED,
    ROUNDING,
    Split,
    SplitFields,
    SplitSearch,
    best_split_gain,
    count_cuts,
    fields_of,
    gain_between_bounds,
    leaf_gain,
    list_left_sums,
    sum_of_squares,
)


@inner_kernel
def _best_cut(
    histogram: Int64Array,
    counts: Int64Array,
    total: int,
    search: SplitSearch,
    min_documents: int,
    bounds: tuple[float, float],
    cuts: tuple[int, int, bool, int, int],
) -> tuple[float, float, int, int]:
    """Return the highest gain of a cut, before the leaf's own term is taken off, its size, bin, and left sum.

    histogram     : int64[bins of the feature], packed sums, in
    counts        : int64[>= bins of the feature], documents of the leaf in each bin, in; not read if min_documents is 0
    total         : int64, packed sum of the leaf      search : SplitSearch, in
    min_documents : int64, of each side
    bounds        : (float64, float64), of the leaf values; not read without constraints
    cuts          : how many bins a cut can be behind, direction as in SplitSearch.directions, whether missing values
                    go left, their bin, and documents of the leaf

    The gain is -inf and the bin -1 without a cut. Ties: lowest bin.
    """
    n_cuts, direction, missing_left, missing_bin, n_documents = cuts
    constrained, l2, min_hessian = search.constrained, search.l2, search.min_hessian
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    best, best_size, best_bin, best_left_total = -np.inf, 0.0, -1, 0
    running = histogram[missing_bin] if missing_left else np.int64(0)
    n_left = counts[missing_bin] if missing_left and min_documents > 0 else np.int64(0)
    for b in range(n_cuts):
        running += histogram[b]
        if min_documents > 0:
            n_left += counts[b]
        left_g = np.float64(running >> 32)
        left_h = np.float64(running & 0xFFFFFFFF)
        right_h = total_h - left_h
        enough = n_left >= min_documents and n_documents - n_left >= min_documents
        if not (enough and left_h >= min_hessian and right_h >= min_hessian):
            continue
        if constrained:
            gain, size = gain_between_bounds(running, total, l2, direction, bounds[0], bounds[1])
        else:
            gain = size = sum_of_squares(left_g, left_h, total_g - left_g, right_h, l2)
        if gain > best:
            best, best_size, best_bin, best_left_total = gain, size, b, running
    return best, best_size, best_bin, best_left_total


@shared_kernel
def best_split(
    histogram: Int64Array,
    counts: Int64Array,
    feature: int,
    total: int,
    search: SplitSearch,
    min_documents: int,
    low: float,
    high: float,
) -> Split:
    """Return one feature's best split that leaves min_documents on each side; its gain is -inf without a split.

    histogram : int64[n_bins], packed sums, complete, in      counts, total, search : as in `_best_cut`
    feature   : int64      min_documents : int64
    low, high : float64, bounds of the leaf values, in units of gradients by units of hessians; not read without
                constraints

    Equation: that of `split_gain`, strictly above rounding. Ties: lowest bin, then missing values right.
    """
    start, stop = search.bin_offsets[feature], search.bin_offsets[feature + 1]
    n_bins = stop - start
    sums = histogram[start:stop]
    has_missing = search.has_missing[feature]
    n_cuts = count_cuts(n_bins, has_missing, search.all_finite[feature])
    direction = int(search.directions[feature]) if search.constrained else 0
    n_documents = np.int64(0)
    for b in range(n_bins if min_documents > 0 else 0):
        n_documents += counts[b]
    best, best_size, best_bin, best_missing_left, best_left_total = -np.inf, 0.0, -1, False, 0
    for side in range(2 if has_missing else 1):
        cuts = (n_cuts, direction, side == 1, int(n_bins - 1), int(n_documents))
        gain, size, cut, left_total = _best_cut(sums, counts, total, search, min_documents, (low, high), cuts)
        if gain > best or (gain == best and cut < best_bin):
            best, best_size, best_bin, best_missing_left, best_left_total = gain, size, cut, side == 1, left_total
    total_g, total_h = np.float64(total >> 32), np.float64(total & 0xFFFFFFFF)
    parent = leaf_gain(total_g, total_h + search.l2, search.constrained, low, high)
    if search.constrained:
        best_size += abs(parent)
    split_gain = best - parent if best - parent > ROUNDING * best_size else -np.inf
    return Split(split_gain, feature, best_bin, best_missing_left, best_left_total)


@inner_kernel
def feature_of_highest(split_gains: Float64Array, first: int, last: int) -> int:
    """Return the feature with the highest gain, -1 if none is above -inf.

    split_gains : float64[m], the highest gain of each feature, in      first, last : int64, the features to choose from

    Ties: lowest feature.
    """
    best, highest = -1, -np.inf
    for f in range(first, last):
        if split_gains[f] > highest:
            best, highest = f, split_gains[f]
    return best


@inner_kernel
def best_of_features(
    histogram: Int64Array,
    total: int,
    search: SplitSearch,
    low: float,
    high: float,
    first: int,
    last: int,
    split_gains: Float64Array,
) -> Split:
    """Return the split of the feature with the highest gain; its gain is -inf without a split.

    histogram   : int64[n_bins], packed sums, complete, in      total, search : as in `_best_cut`
    low, high   : float64, bounds of the leaf values, in units of gradients by units of hessians
    first, last : int64, the features to choose from
    split_gains : float64[m], in units, the highest gain of each feature, -inf for those that are not allowed, in

    Ties: lowest feature.
    """
    best = feature_of_highest(split_gains, first, last)
    if best < 0:
        return Split(-np.inf, -1, -1, False, 0)
    return best_split(histogram, histogram, best, total, search, 0, low, high)


@shared_kernel
def find_best_split(
    histogram: Int64Array, total: int, search: SplitSearch, first: int, last: int, split_gains: Float64Array
) -> SplitFields:
    """Complete a histogram, write the highest gain of each feature in first:last, and return the best split of all.

    histogram   : int64[n_bins], packed sums, in; the most frequent bins are filled in
    total       : int64, packed sum of the leaf      search : SplitSearch without constraints, in
    first, last : int64, the features of this call
    split_gains : float64[m], in units, -inf without a split, out

    Documents are not counted. Parallel: the caller runs ranges of features side by side. Cost: O(bins).
    """
    left_sums = np.empty(LISTED, np.int64)
    for f in range(first, last):
        split_gains[f] = -np.inf
        if not search.allowed[f]:
            continue
        start, stop = search.bin_offsets[f], search.bin_offsets[f + 1]
        fill_most_frequent_bin(histogram, start, stop, search.most_frequent_bins[f], total)
        n = list_left_sums(histogram, f, search, left_sums)
        split_gains[f] = best_split_gain(histogram, f, total, search, left_sums, n)
    return fields_of(best_of_features(histogram, total, search, -np.inf, np.inf, first, last, split_gains))


@shared_kernel
def find_best_splits_of_children(
    larger: Int64Array,
    smaller: Int64Array,
    larger_total: int,
    smaller_total: int,
    search: SplitSearch,
    first: int,
    last: int,
    split_gains: Float64Array,
) -> tuple[SplitFields, SplitFields]:
    """Turn the parent's histogram into the larger child's; write the gains and return the best splits of the children.

    larger        : int64[n_bins], the parent's packed sums, complete, in; those of the larger child, out
    smaller       : int64[n_bins], packed sums of the smaller child, in; the most frequent bins are filled in
    larger_total  : int64, packed sum of the larger child      smaller_total : int64, packed sum of the smaller child
    search, first, last : as in `find_best_split`, without constraints
    split_gains   : float64[2, m], in units, -inf without a split: of the larger child, then of the smaller, out;
                    float64[1, m]: the smaller child is not searched, and both splits are those of the larger

    All is done while the bins of a feature are in the cache. Documents are not counted. Parallel: the caller runs
    ranges of features side by side. Cost: O(bins).
    """
    both = len(split_gains) == 2
    left_sums = np.empty((2, LISTED), np.int64)
    for f in range(first, last):
        split_gains[:, f] = -np.inf
        if not search.allowed[f]:
            continue
        start, stop = search.bin_offsets[f], search.bin_offsets[f + 1]
        fill_most_frequent_bin(smaller, start, stop, search.most_frequent_bins[f], smaller_total)
        for b in range(np.uint64(start), np.uint64(stop)):
            larger[b] -= smaller[b]
        # Both lists first: a sum that was just written takes long to load with its neighbours as a vector.
        n_larger = list_left_sums(larger, f, search, left_sums[0])
        n_smaller = list_left_sums(smaller, f, search, left_sums[1]) if both else 0
        split_gains[0, f] = best_split_gain(larger, f, larger_total, search, left_sums[0], n_larger)
        if both:
            split_gains[1, f] = best_split_gain(smaller, f, smaller_total, search, left_sums[1], n_smaller)
    larger_split = best_of_features(larger, larger_total, search, -np.inf, np.inf, first, last, split_gains[0])
    if not both:
        return fields_of(larger_split), fields_of(larger_split)
    smaller_split = best_of_features(smaller, smaller_total, search, -np.inf, np.inf, first, last, split_gains[1])
    return fields_of(larger_split), fields_of(smaller_split)


@shared_kernel
def find_best_constrained_split(
    histogram: Int64Array,
    total: int,
    search: SplitSearch,
    low: float,
    high: float,
    first: int,
    last: int,
    split_gains: Float64Array,
) -> SplitFields:
    """Write the highest gain of each feature in first:last under constraints, and return the best split of all.

    histogram   : int64[n_bins], packed sums, complete, in      total : int64, packed sum of the leaf
    search      : SplitSearch with constraints, in
    low, high   : float64, bounds of the leaf values, in units of gradients by units of hessians
    first, last, split_gains : as in `find_best_split`

    Documents are not counted. Parallel: the caller runs ranges of features side by side. Cost: O(bins).
    """
    for f in range(first, last):
        split_gains[f] = -np.inf
        if search.allowed[f]:
            split_gains[f] = best_split(histogram, histogram, f, total, search, 0, low, high).split_gain
    return fields_of(best_of_features(histogram, total, search, low, high, first, last, split_gains))


@kernel
def count_feature(
    histogram: Int64Array,
    counts: Int64Array,
    feature: int,
    total: int,
    search: SplitSearch,
    min_documents: int,
    bounds: tuple[float, float],
    split_gains: Float64Array,
) -> tuple[SplitFields, SplitFields]:
    """Write the gain of a feature whose documents were counted; return its best split, and the best split of all now.

    histogram, feature : as in `best_split`
    counts        : int64[>= bins of the feature], documents of the leaf in each bin, in
    total, search : as in `_best_cut`      min_documents : int64, of each side of the feature's split
    bounds        : (float64, float64), of the leaf values, in units of gradients by units of hessians
    split_gains   : float64[m], in units, the highest gain of each feature; that of `feature` is overwritten

    For the best split of all no documents are counted. Ties: lowest feature.
    """
    low, high = bounds
    counted = best_split(histogram, counts, feature, total, search, min_documents, low, high)
    split_gains[feature] = counted.split_gain
    best = best_of_features(histogram, total, search, low, high, 0, len(split_gains), split_gains)
    return fields_of(counted), fields_of(best)


@inner_kernel
def add_gains_of_sums(left_sums: Int64Array, total: int, search: SplitSearch, split_gains: Float64Array) -> None:
    """Add the gain of each split of a leaf, as `split_gain_of` gives it, in vector code.

    left_sums   : int64[n], packed sum of the left child by split, in
    total       : int64, packed sum of the leaf      search : SplitSearch without constraints, in
    split_gains : float64[n], in units, in and out
    """
    l2, min_hessian = search.l2, search.min_hessian
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    parent = total_g * total_g / (total_h + l2)
    for b in range(np.uint64(len(left_sums))):
        left_g = np.float64(left_sums[b] >> 32)
        left_h = np.float64(left_sums[b] & 0xFFFFFFFF)
        right_h = total_h - left_h
        gain = sum_of_squares(left_g, left_h, total_g - left_g, right_h, l2)
        rest = gain - parent
        allowed = (left_h >= min_hessian) & (right_h >= min_hessian) & (gain >= 0.0) & (rest > ROUNDING * gain)
        split_gains[b] += rest if allowed else 0.0


@kernel
def add_split_gains(
    histogram: Int64Array,
    counts: Int64Array,
    total: int,
    search: SplitSearch,
    min_documents: int,
    first: int,
    last: int,
    split_gains: Float64Array,
) -> None:
    """Add a leaf's gain of each split of features first:last, where the leaf allows it.

    histogram     : int64[n_bins], packed sums, complete, in      counts, total : as in `_best_cut`
    search, first, last : as in `find_best_split`      min_documents : int64, 0 when there is more than one feature
    split_gains   : float64[2, n_bins], in units, by the bin that a split is behind, in and out: [0] missing values go
                    right, [1] left; untouched without a split

    Parallel: the caller runs ranges of features side by side. Cost: O(bins).
    """
    left_sums = np.empty(256, np.int64)
    for f in range(first, last):
        if not search.allowed[f]:
            continue
        start = search.bin_offsets[f]
        n_bins = search.bin_offsets[f + 1] - start
        n_documents = np.int64(0)
        for b in range(n_bins if min_documents > 0 else 0):
            n_documents += counts[b]
        n_cuts = count_cuts(n_bins, search.has_missing[f], search.all_finite[f])
        for side in range(2 if search.has_missing[f] else 1):
            running = histogram[start + n_bins - 1] if side == 1 else np.int64(0)
            n_left = counts[n_bins - 1] if side == 1 and min_documents > 0 else np.int64(0)
            for b in range(n_cuts):
                running += histogram[start + b]
                if min_documents > 0:
                    n_left += counts[b]
                enough = n_left >= min_documents and n_documents - n_left >= min_documents
                left_sums[b] = running if enough else np.int64(0)  # a split with nothing on the left has no gain
            if n_cuts > 0:
                add_gains_of_sums(left_sums[:n_cuts], total, search, split_gains[side, start : start + n_cuts])
