"""The best split of one feature of a leaf, from its histogram.

Split gains are in units, as in `split_gain`.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.split_gain import (
    ROUNDING,
    Split,
    SplitSearch,
    count_cuts,
    gain_between_bounds,
    leaf_gain,
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
    total         : int64, packed sum of the leaf
    search        : SplitSearch, in
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


@kernel
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
    """Return one feature's best split that leaves min_documents on each side; its gain is -inf when there is none.

    histogram     : int64[n_bins], packed sums, complete, in
    counts        : int64[>= bins of the feature], documents of the leaf in each bin, in; not read if min_documents is 0
    feature       : int64
    total         : int64, packed sum of the leaf
    search        : SplitSearch, in
    min_documents : int64
    low, high     : float64, bounds of the leaf values, in units of gradients by units of hessians; not read without
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
