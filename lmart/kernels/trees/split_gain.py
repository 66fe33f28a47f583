"""The gain of a split, with or without monotone constraints, and the highest gain of a feature.

Sums are packed (see `histogram`). G and H are the sums of gradients and hessians of a leaf, in units of the high and
the low half; GL and HL are those of the left child of a split, GR and HR those of the right child. Split gains are in
units too, so that no setting makes them overflow.

Equation: GL^2/(HL + l2) + GR^2/(HR + l2) - G^2/(H + l2). Source: Chen and Guestrin 2016, equation 7, without the 1/2.
With constraints a sum of squares becomes r(G, H + l2) = -(2 G v + (H + l2) v^2) at the leaf value v = -G/(H + l2)
clipped to the leaf's bounds. Source: LightGBM's basic method of monotone constraints. Differs: the bounds hold for the
leaf that is split too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from lmart.array_types import BoolArray, Int8Array, Int64Array, UInt8Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import list_running_sums

ROUNDING = 1e-13  # a split gain below this share of its terms is a rounding error
TURN = 16  # gains that are computed in one turn of a loop, as vectors
LISTED = 256 + TURN  # room for the left sums of a feature


class Split(NamedTuple):
    """A split of a leaf: documents with bins up to `bin` of the feature go left, the others right.

    split_gain   : float64, -inf without a split
    feature      : int64, binned feature
    bin          : int64
    missing_left : bool, whether missing values go left
    left_total   : int64, packed sum of the left child
    """

    split_gain: float
    feature: int
    bin: int
    missing_left: bool
    left_total: int


SplitFields: TypeAlias = tuple[float, int, int, bool, int]
"""The fields of a Split as a plain tuple."""


@inner_kernel
def fields_of(split: Split) -> SplitFields:
    """Return the fields of `split` as a plain tuple, for kernels that Python calls.

    Numba makes a NamedTuple for Python by running Python code, in which a signal may raise; it then crashes.
    """
    return split.split_gain, split.feature, split.bin, split.missing_left, split.left_total


class SplitSearch(NamedTuple):
    """The inputs of the split search that are the same for all leaves of a tree; m features.

    bin_offsets        : int64[m + 1], the bins of feature f are bin_offsets[f]:bin_offsets[f + 1] of a histogram
    most_frequent_bins : uint8[m], the bin of each feature that `histogram.add_documents` leaves out
    has_missing        : bool[m], the last bin of the feature is that of missing values
    all_finite         : bool[m], no value is infinite; only then can a split send all numbers left, nan right
    allowed            : bool[m], the features to split on
    directions         : int8[m], 1: the left child's value may not be above the right child's; -1: not below; 0: either
    constrained        : bool, whether `directions` and bounds of leaf values hold
    l2                 : float64, added to sums of hessians, in units of hessians
    min_hessian        : float64, least sum of hessians of a child, in units of hessians
    min_documents      : int64, fewest documents of a child
    sure_hessian       : int64, packed sum of hessians that no fewer than `min_documents` documents have; 0: unknown
    """

    bin_offsets: Int64Array
    most_frequent_bins: UInt8Array
    has_missing: BoolArray
    all_finite: BoolArray
    allowed: BoolArray
    directions: Int8Array
    constrained: bool
    l2: float
    min_hessian: float
    min_documents: int
    sure_hessian: int


@inner_kernel
def count_cuts(n_bins: int, has_missing: bool, all_finite: bool) -> int:
    """Return how many bins of a feature, from the first one on, a split can be behind.

    n_bins     : int64, bins of the feature      has_missing : bool, the last bin is that of missing values
    all_finite : bool, no value is infinite
    """
    return n_bins - 2 if has_missing and not all_finite else n_bins - 1


@inner_kernel
def sum_of_squares(left_g: float, left_h: float, right_g: float, right_h: float, l2: float) -> float:
    """Return GL^2/(HL + l2) + GR^2/(HR + l2), -inf where a divisor is 0.

    left_g, left_h   : float64, sums of the left child, in units
    right_g, right_h : float64, sums of the right child, in units      l2 : float64, in units of hessians

    One division instead of two, since division is what takes time.
    """
    left_h += l2
    right_h += l2
    product = left_h * right_h
    gain = (left_g * left_g * right_h + right_g * right_g * left_h) / product
    return gain if product > 0.0 else -np.inf


@inner_kernel
def highest_gain(left_sums: Int64Array, n: int, shift: int, total: int, search: SplitSearch) -> float:
    """Return the highest gain of some splits without constraints or counts of documents, -inf without a split.

    left_sums : int64[>= n], packed sums of the left children, less `shift`, in      n, shift : int64
    total     : int64, packed sum of the leaf      search : SplitSearch, in

    It vectorises, as it does not record which split is the best.
    """
    l2, min_hessian = search.l2, search.min_hessian
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    top = np.int64(-1)
    for b in range(np.uint64(n)):
        # With the exponent of 2^52 above it, a half is the number 2^52 + half: two instructions for four sums, where a
        # conversion takes eight. The sign of the high half is turned to make it positive.
        packed = np.uint64(left_sums[b] + shift)
        high = ((packed ^ np.uint64(1 << 63)) >> np.uint64(32)) | np.uint64(0x433 << 52)
        low = (packed & np.uint64(0xFFFFFFFF)) | np.uint64(0x433 << 52)
        left_g = np.uint64(high).view(np.float64) - (2.0**52 + 2.0**31)
        left_h = np.uint64(low).view(np.float64) - 2.0**52
        right_h = total_h - left_h
        gain = sum_of_squares(left_g, left_h, total_g - left_g, right_h, l2)
        allowed = (left_h >= min_hessian) & (right_h >= min_hessian) & (gain >= 0.0)
        bits = np.float64(gain).view(np.int64)  # in the order of the gains, which are not negative, and vectorises
        top = max(top, bits if allowed else np.int64(-1))
    if top < 0:
        return -np.inf
    parent = total_g * total_g / (total_h + l2) if total_h + l2 > 0.0 else 0.0
    best = np.int64(top).view(np.float64)
    return best - parent if best - parent > ROUNDING * best else -np.inf


@inner_kernel
def list_left_sums(histogram: Int64Array, feature: int, search: SplitSearch, left_sums: Int64Array) -> int:
    """List the packed sums of the left children of a feature's splits, missing values right; return how many.

    histogram : int64[n_bins], complete, in      feature : int64      search : SplitSearch, in
    left_sums : int64[LISTED], overwritten

    Empty bins are passed over, since a split behind one has the gain of a split behind the bin before it. The list is
    filled up with its first sum to whole turns of the loop over gains, whose rest would take as long as many turns.
    """
    start = search.bin_offsets[feature]
    n_bins = search.bin_offsets[feature + 1] - start
    stop = start + count_cuts(n_bins, search.has_missing[feature], search.all_finite[feature])
    if stop <= start:
        return 0
    first_sum = histogram[start]
    left_sums[0] = first_sum
    next_bin, found, running = list_running_sums(histogram, start + 1, stop, first_sum, left_sums)
    n = np.uint64(found)
    for b in range(np.uint64(next_bin), np.uint64(stop)):
        packed = histogram[b]
        running += packed
        left_sums[n] = running
        n += np.uint64(packed != 0)
    for k in range(np.uint64(TURN)):
        left_sums[n + k] = first_sum
    return int((n + np.uint64(TURN - 1)) & ~np.uint64(TURN - 1))


@inner_kernel
def best_split_gain(
    histogram: Int64Array, feature: int, total: int, search: SplitSearch, left_sums: Int64Array, n: int
) -> float:
    """Return the gain of a feature's best split without constraints or counts of documents, -inf without a split.

    histogram : int64[n_bins], complete, in      feature : int64      total : int64, packed sum of the leaf
    search    : SplitSearch, in      left_sums, n : as `list_left_sums` made them, in

    The fast form of `best_split`.
    """
    missing = np.int64(0)
    if search.has_missing[feature] and n > 0:
        missing = histogram[search.bin_offsets[feature + 1] - 1]
    best = highest_gain(left_sums, n, 0, total, search)
    return max(best, highest_gain(left_sums, n, int(missing), total, search)) if missing != 0 else best


@inner_kernel
def bounded_value(gradient: float, hessian: float, low: float, high: float) -> float:
    """Return the leaf value that lowers the cost most between bounds: -G/H clipped to them.

    gradient  : float64, sum of gradients, in units
    hessian   : float64, > 0, sum of hessians with l2, in units
    low, high : float64, bounds, in units of gradients by units of hessians
    """
    return min(max(-gradient / hessian, low), high)


@inner_kernel
def cost_reduction(gradient: float, hessian: float, value: float) -> float:
    """Return twice by how much a leaf value lowers the cost: -(2 G v + H v^2), which is G^2/H for the best value.

    gradient : float64, sum of gradients, in units      hessian : float64, sum of hessians with l2, in units
    value    : float64, in units of gradients by units of hessians
    """
    return -(2.0 * gradient + hessian * value) * value


@inner_kernel
def leaf_gain(gradient: float, hessian: float, constrained: bool, low: float, high: float) -> float:
    """Return the leaf's own term of a split gain: G^2/H, with constraints the cost reduction of its bounded value.

    gradient    : float64, sum of gradients, in units
    hessian     : float64, sum of hessians with l2, in units; the term is 0 where it is
    constrained : bool, whether the bounds hold
    low, high   : float64, bounds of the value, in units of gradients by units of hessians
    """
    if not hessian > 0.0:
        return 0.0
    if constrained:
        return cost_reduction(gradient, hessian, bounded_value(gradient, hessian, low, high))
    return gradient * gradient / hessian


@inner_kernel
def gain_between_bounds(
    left_sum: int, total: int, l2: float, direction: int, low: float, high: float
) -> tuple[float, float]:
    """Return the cost reductions of two children with bounded values: their sum, -inf if it is ruled out, and size.

    left_sum  : int64, packed sum of the left child      total : int64, packed sum of the leaf
    l2        : float64, in units of hessians      direction : int64, as in SplitSearch.directions
    low, high : float64, bounds of both values, in units of gradients by units of hessians

    The size is |that of the left child| + |that of the right child|.
    """
    left_g = np.float64(left_sum >> 32)
    left_h = np.float64(left_sum & 0xFFFFFFFF)
    right_g = np.float64(total >> 32) - left_g
    right_h = np.float64(total & 0xFFFFFFFF) - left_h
    left_h += l2
    right_h += l2
    if not (left_h > 0.0 and right_h > 0.0):
        return -np.inf, 0.0
    left_value = bounded_value(left_g, left_h, low, high)
    right_value = bounded_value(right_g, right_h, low, high)
    if direction * left_value > direction * right_value:
        return -np.inf, 0.0
    left = cost_reduction(left_g, left_h, left_value)
    right = cost_reduction(right_g, right_h, right_value)
    return left + right, abs(left) + abs(right)


@kernel
def split_gain_of(left_sum: int, total: int, l2: float, min_hessian: float) -> float:
    """Return the gain of a split, 0 where it is not above rounding or a child's sum of hessians is too small.

    left_sum    : int64, packed sum of the left child      total : int64, packed sum of the leaf
    l2          : float64, in units of hessians
    min_hessian : float64, least sum of hessians of a child, in units of hessians

    Equation: that of the module.
    """
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    left_g = np.float64(left_sum >> 32)
    left_h = np.float64(left_sum & 0xFFFFFFFF)
    right_g = total_g - left_g
    right_h = total_h - left_h
    gain = sum_of_squares(left_g, left_h, right_g, right_h, l2)
    if not (left_h >= min_hessian and right_h >= min_hessian and gain >= 0.0):
        return 0.0
    parent = total_g * total_g / (total_h + l2)
    return gain - parent if gain - parent > ROUNDING * gain else 0.0
