"""Thresholds of formats that compare in float32, as thresholds on float64, and back, so that no row changes side.

A tool that rounds each value to float32 (to nearest, ties to even) before it compares is followed exactly: the values
that round to a float32 up to t are those up to the middle between t and the float32 above it, and the middle itself
when t is the even one of the two.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float32Array, Float64Array

LARGEST32 = np.float32(np.finfo(np.float32).max)


def next32(numbers: Float32Array) -> Float32Array:
    """Return the float32 above each, float32[n]; above the largest is inf."""
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(numbers, np.float32), np.float32(np.inf))


def previous32(numbers: Float32Array) -> Float32Array:
    """Return the float32 below each, float32[n]; -0.0 and 0.0 are the same number."""
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(numbers, np.float32), np.float32(-np.inf))


def round_down32(thresholds: Float64Array) -> Float32Array:
    """Return the largest float32 <= each threshold, float32[n].

    A float32 x is <= the result exactly when it is <= the threshold: for formats that test x <= t in float32.
    Beyond the range of float32 the result is the largest finite one, or -inf below it.
    """
    exact = np.asarray(thresholds, np.float64)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    rounded = np.where(rounded.astype(np.float64) > exact, previous32(rounded), rounded)
    return np.minimum(rounded, LARGEST32).astype(np.float32)


def round_up32(thresholds: Float64Array) -> Float32Array:
    """Return the smallest float32 > each threshold, float32[n].

    A float32 x is < the result exactly when it is <= the threshold: for formats that test x < t in float32, as XGBoost.
    From the largest float32 on the result is that one, so only a value equal to it changes side.
    """
    return np.minimum(next32(round_down32(thresholds)), LARGEST32).astype(np.float32)


def of_less_or_equal32(thresholds: Float32Array) -> Float64Array:
    """Return T, float64[n]: float32(x) <= threshold exactly when x <= T, for every float64 x.

    thresholds : float32[n], not nan. Beyond all numbers T is the largest finite float64, or minus it.
    """
    below = np.asarray(thresholds, np.float32)
    below = np.where(below == 0, np.float32(0), below).astype(np.float32)  # -0.0 has another bit pattern
    above = next32(below)
    is_even = (below.view(np.uint32) & 1) == 0
    low = below.astype(np.float64)
    high = np.where(np.isinf(above), 2.0**128, above.astype(np.float64))  # what follows the largest float32
    high = np.where(np.isposinf(below), low, high)
    with np.errstate(invalid="ignore"):
        low = np.where(np.isneginf(low), -(2.0**128), low)
        middle = low + (high - low) / 2.0
    exact = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    limit = np.finfo(np.float64).max
    exact = np.where(np.isposinf(below), limit, exact)
    return np.clip(exact, -limit, limit)


def of_less32(thresholds: Float32Array) -> Float64Array:
    """Return T, float64[n]: float32(x) < threshold exactly when x <= T, for every float64 x.

    thresholds : float32[n], not nan; below -inf is nothing, so that T is the lowest finite float64
    """
    below = of_less_or_equal32(previous32(thresholds))
    return np.where(np.isneginf(thresholds), -np.finfo(np.float64).max, below)
