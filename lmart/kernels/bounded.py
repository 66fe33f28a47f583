"""The best split of a histogram where leaf values have bounds, and the two sides of a split an order.

Apart from `splitting`, whose gains need no leaf values and so one division where these take two and more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Signs = npt.NDArray[np.int8]

# A gain below this share of its terms is rounding, not gain; as in splitting, since kernels share no constants.
ROUNDING = 1e-13


@inner_kernel
def bounded_value(gradient: float, hessian: float, low: float, high: float) -> float:
    """Return the leaf value of sums that costs least between bounds, hessian > 0."""
    return min(max(-gradient / hessian, low), high)


@inner_kernel
def worth(gradient: float, hessian: float, value: float) -> float:
    """Return twice by how much a leaf value lowers the cost: -(2 G w + H w^2), G^2 / H for the best value."""
    return -(2.0 * gradient + hessian * value) * value


@kernel
def best_bounded_split(
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
    sign: int,
    low: float,
    high: float,
) -> tuple[float, int, bool, int]:
    """Return (gain, code, missing left, left total) of one feature's best split, as `splitting.best_split` does.

    sign      : 1: the value of the left side may not be above that of the right one; -1: not below; 0: either
    low, high : bounds of both values, in units of gradients by units of hessians, at least one value between them
    Equation: w(GL, HL + l2) + w(GR, HR + l2) - w(G, H + l2), w = -(2 G v + H v^2) at v = -G/H cut to low..high.
    Source: LightGBM's basic method of monotone constraints. Differs: the bounds hold for the leaf that is split too.
    """
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    parent = 0.0
    if total_h + l2 > 0.0:
        parent = worth(total_g, total_h + l2, bounded_value(total_g, total_h + l2, low, high))
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
    size = 0.0
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
                and left_h + l2 > 0.0
                and right_h + l2 > 0.0
            ):
                left_value = bounded_value(left_g, left_h + l2, low, high)
                right_value = bounded_value(right_g, right_h + l2, low, high)
                if sign * left_value > sign * right_value:
                    continue
                left_worth = worth(left_g, left_h + l2, left_value)
                right_worth = worth(right_g, right_h + l2, right_value)
                gain = left_worth + right_worth
                if gain > best or (gain == best and b < best_code):
                    best = gain
                    size = abs(left_worth) + abs(right_worth)
                    best_code = b
                    best_left = side == 1
                    best_total = running
    enough = best - parent > ROUNDING * (size + abs(parent))
    return (best - parent if enough else -np.inf), best_code, best_left, best_total


@kernel
def best_bounded_gains(
    histogram: Longs,
    counts: Longs,
    total: int,
    bin_offsets: Longs,
    has_missing: Flags,
    all_finite: Flags,
    l2: float,
    min_hessian: float,
    signs: Signs,
    low: float,
    high: float,
    first: int,
    last: int,
    gains: Floats,
) -> None:
    """Write the gain of the best split of each feature in first..last, documents uncounted; -inf without one.

    histogram : int64[n_bins], complete, in       signs : int8[m], in       gains : float64[m], out
    counts    : int64[0]; the other arguments are those of `best_bounded_split`
    Parallel: ranges of features side by side. Cost: O(bins).
    """
    for f in range(first, last):
        start = bin_offsets[f]
        own = (start, bin_offsets[f + 1] - start, has_missing[f], all_finite[f], total, l2, min_hessian, 0)
        gains[f] = best_bounded_split(histogram, counts, *own, signs[f], low, high)[0]
