"""The best split of a histogram, and its gains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

# A gain below this share of its terms is rounding, not gain.
ROUNDING = 1e-13


@kernel
def fill_common(histogram: Longs, start: int, stop: int, common: int, total: int) -> None:
    """Write a feature's most frequent bin, which add_documents leaves out: the leaf's total less the other bins.

    histogram : int64[n_bins], in and out; the feature's bins are start..stop, and `common` is a code
    Does nothing where the bin is there already.
    """
    others = np.int64(0)
    for b in range(np.uint64(start), np.uint64(stop)):
        others += histogram[b]
    histogram[start + common] += total - others


@kernel
def best_gain(
    histogram: Longs,
    start: int,
    stop: int,
    has_missing: bool,
    all_finite: bool,
    total: int,
    l2: float,
    min_hessian: float,
    left: Longs,
) -> float:
    """Return the gain of one feature's best split, documents uncounted; -inf without one.

    As `best_split`, of which this is the fast form: bins that add nothing are passed over, since they have the gain
    of the bin before, and which split it is remains unsaid.
    start, stop : the feature's bins          left : int64[256], room to work in
    """
    n_cuts = stop - start - 1
    missing = np.int64(0)
    if has_missing:
        missing = histogram[stop - 1]
        if not all_finite:
            n_cuts -= 1
    if n_cuts < 1:
        return -np.inf
    running = histogram[start]
    left[0] = running
    n = np.uint64(1)
    for b in range(np.uint64(start + 1), np.uint64(start + n_cuts)):
        packed = histogram[b]
        running += packed
        left[n] = running
        n += np.uint64(packed != 0)
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    parent = total_g * total_g / (total_h + l2) if total_h + l2 > 0.0 else 0.0
    top = np.int64(-1)
    for side in range(2 if missing != 0 else 1):
        shift = missing if side == 1 else np.int64(0)
        for b in range(n):
            packed = left[b] + shift
            left_g = np.float64(packed >> 32)
            left_h = np.float64(packed & 0xFFFFFFFF)
            right_g = total_g - left_g
            right_h = total_h - left_h
            allowed = left_h >= min_hessian and right_h >= min_hessian
            left_h += l2
            right_h += l2
            both = left_h * right_h  # one division instead of two, since it is what takes time
            gain = (left_g * left_g * right_h + right_g * right_g * left_h) / both
            bits = np.float64(gain).view(np.int64)  # in the order of the gains, which are not negative, and vectorises
            top = max(top, bits if allowed and both > 0.0 and gain >= 0.0 else np.int64(-1))
    if top < 0:
        return -np.inf
    best = np.int64(top).view(np.float64)
    return best - parent if best - parent > ROUNDING * best else -np.inf


@kernel
def best_gains(
    histogram: Longs,
    total: int,
    bin_offsets: Longs,
    common_codes: Codes,
    has_missing: Flags,
    all_finite: Flags,
    l2: float,
    min_hessian: float,
    first: int,
    last: int,
    gains: Floats,
) -> None:
    """Complete a histogram, and write the gain of the best split of each feature in first..last.

    histogram    : int64[n_bins], packed sums, in; the common bins are filled in
    total        : packed sum of the leaf, in        bin_offsets : int64[m + 1], in
    common_codes : uint8[m], in
    gains        : float64[m], out, -inf without a split
    The other arguments are those of `best_split`. Parallel: ranges of features side by side. Cost: O(bins).
    """
    left = np.empty(256, np.int64)
    for f in range(first, last):
        start = bin_offsets[f]
        stop = bin_offsets[f + 1]
        fill_common(histogram, start, stop, common_codes[f], total)
        gains[f] = best_gain(histogram, start, stop, has_missing[f], all_finite[f], total, l2, min_hessian, left)


@kernel
def best_gains_of_children(
    parent: Longs,
    child: Longs,
    other_total: int,
    child_total: int,
    bin_offsets: Longs,
    common_codes: Codes,
    has_missing: Flags,
    all_finite: Flags,
    l2: float,
    min_hessian: float,
    first: int,
    last: int,
    gains: Floats,
) -> None:
    """Turn the parent's histogram into the other child's, and write the best gains of both, as `best_gains`.

    parent : int64[n_bins], complete, in; parent - child, exactly, out        child : int64[n_bins], completed
    gains  : float64[2, m], out: those of the other child, then those of the child
    All is done while a feature's bins are in the cache.
    """
    left = np.empty(256, np.int64)
    for f in range(first, last):
        start = bin_offsets[f]
        stop = bin_offsets[f + 1]
        fill_common(child, start, stop, common_codes[f], child_total)
        for b in range(np.uint64(start), np.uint64(stop)):
            parent[b] -= child[b]
        shape = (start, stop, has_missing[f], all_finite[f])
        gains[0, f] = best_gain(parent, *shape, other_total, l2, min_hessian, left)
        gains[1, f] = best_gain(child, *shape, child_total, l2, min_hessian, left)


@kernel
def best_split(
    histogram: Longs,
    counts: Longs,
    start: int,
    n_bins: int,
    has_missing: bool,
    all_finite: bool,
    total: int,
    l2: float,
    min_hessian: float,
    min_docs: int,
) -> tuple[float, int, bool, int]:
    """Return (gain, code, missing left, left total) of one feature's best split with min_docs documents on each side.

    histogram       : int64[...], packed sums, in; the feature's bins are start..start + n_bins
    counts          : int64[>= n_bins], the documents of each code in the leaf, in; without meaning when min_docs is 0
    has_missing     : the last bin is that of missing values
    all_finite      : no value is infinite, so that 'every number left, missing right' has a threshold
    total           : packed sum of the leaf          l2, min_hessian : in units of the low half
    The gain is -inf without a split; it is in units, so that no setting makes it overflow. Left is code <= this.
    Equation: GL^2/(HL + l2) + GR^2/(HR + l2) - G^2/(H + l2), strictly above 0, HL and HR at least min_hessian.
    Source: Chen and Guestrin 2016, equation 7, without the 1/2. Ties: lowest code, then missing right.
    """
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    parent = total_g * total_g / (total_h + l2) if total_h + l2 > 0.0 else 0.0
    documents = np.int64(0)
    missing = np.int64(0)
    missing_documents = np.int64(0)
    n_cuts = n_bins - 1
    if min_docs > 0:
        for b in range(n_bins):
            documents += counts[b]
    if has_missing:
        missing = histogram[start + n_bins - 1]
        if min_docs > 0:
            missing_documents = counts[n_bins - 1]
        n_cuts = n_bins - 1 if all_finite else n_bins - 2
    best = -np.inf
    best_code = -1
    best_left = False
    best_total = 0
    for side in range(2 if has_missing else 1):
        running = missing if side == 1 else np.int64(0)
        left_documents = missing_documents if side == 1 else np.int64(0)
        for b in range(n_cuts):
            running += histogram[start + b]
            if min_docs > 0:
                left_documents += counts[b]
            left_g = np.float64(running >> 32)
            left_h = np.float64(running & 0xFFFFFFFF)
            right_g = total_g - left_g
            right_h = total_h - left_h
            if (
                left_documents >= min_docs
                and documents - left_documents >= min_docs
                and left_h >= min_hessian
                and right_h >= min_hessian
            ):
                left_h += l2
                right_h += l2
                both = left_h * right_h
                gain = (left_g * left_g * right_h + right_g * right_g * left_h) / both
                if both > 0.0 and (gain > best or (gain == best and b < best_code)):
                    best = gain
                    best_code = b
                    best_left = side == 1
                    best_total = running
    enough = best - parent > ROUNDING * best
    return (best - parent if enough else -np.inf), best_code, best_left, best_total


@kernel
def complete(histogram: Longs, total: int, bin_offsets: Longs, common_codes: Codes, first: int, last: int) -> None:
    """Fill in the most frequent bin of features first..last. The arguments are those of `best_gains`."""
    for f in range(first, last):
        fill_common(histogram, bin_offsets[f], bin_offsets[f + 1], common_codes[f], total)


@kernel
def subtract(
    parent: Longs, child: Longs, child_total: int, bin_offsets: Longs, common_codes: Codes, first: int, last: int
) -> None:
    """Complete a child's histogram and turn its parent's into the other child's, as `best_gains_of_children`."""
    for f in range(first, last):
        start = bin_offsets[f]
        stop = bin_offsets[f + 1]
        fill_common(child, start, stop, common_codes[f], child_total)
        for b in range(np.uint64(start), np.uint64(stop)):
            parent[b] -= child[b]


@kernel
def gain_of(left: int, total: int, l2: float, min_hessian: float) -> float:
    """Return the gain of a split by its packed sums, 0 where it is not above rounding or a hessian is too small.

    Equation: that of `best_split`.
    """
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    left_g = np.float64(left >> 32)
    left_h = np.float64(left & 0xFFFFFFFF)
    right_g = total_g - left_g
    right_h = total_h - left_h
    allowed = left_h >= min_hessian and right_h >= min_hessian
    left_h += l2
    right_h += l2
    both = left_h * right_h
    if not allowed or not both > 0.0:
        return 0.0
    best = (left_g * left_g * right_h + right_g * right_g * left_h) / both
    parent = total_g * total_g / (total_h + l2)
    return best - parent if best - parent > ROUNDING * best else 0.0


@kernel
def add_gains(
    histogram: Longs,
    total: int,
    bin_offsets: Longs,
    has_missing: Flags,
    all_finite: Flags,
    l2: float,
    min_hessian: float,
    counts: Longs,
    min_docs: int,
    first: int,
    last: int,
    gains: Floats,
) -> None:
    """Add one leaf's gain of each cut behind a bin of the features first..last, where the leaf allows it.

    histogram : int64[n_bins], complete, in
    counts    : int64[>= n_bins of the feature], the documents of each of its codes in the leaf; without meaning when
                min_docs is 0, as it must be for more than one feature
    gains     : float64[2, n_bins], added to: missing values right, and left; untouched where there is no cut
    The other arguments are those of `best_split`. Cost: O(bins).
    """
    for f in range(first, last):
        start = bin_offsets[f]
        n_bins = bin_offsets[f + 1] - start
        documents = np.int64(0)
        if min_docs > 0:
            for b in range(n_bins):
                documents += counts[b]
        missing = np.int64(0)
        missing_documents = np.int64(0)
        n_cuts = n_bins - 1
        if has_missing[f]:
            missing = histogram[start + n_bins - 1]
            if min_docs > 0:
                missing_documents = counts[n_bins - 1]
            n_cuts = n_bins - 1 if all_finite[f] else n_bins - 2
        for side in range(2 if has_missing[f] else 1):
            running = missing if side == 1 else np.int64(0)
            left_documents = missing_documents if side == 1 else np.int64(0)
            for b in range(n_cuts):
                running += histogram[start + b]
                if min_docs > 0:
                    left_documents += counts[b]
                if left_documents >= min_docs and documents - left_documents >= min_docs:
                    gains[side, start + b] += gain_of(running, total, l2, min_hessian)
