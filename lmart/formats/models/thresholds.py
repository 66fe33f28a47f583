"""float32 numbers: thresholds of formats that compare in float32, decimal text rounded once, and shortest text.

A tool that rounds each value to float32 (to nearest, ties to even) before it compares is followed exactly: the values
that round to a float32 up to t are those up to the middle between t and the float32 above it, and the middle itself
when t is the even one of the two. So a threshold becomes one on float64, and back, and no row changes side.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from lmart.array_types import Float32Array, Float64Array
from lmart.decimals import is_decimal

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

    Thresholds are float32[n], not nan. Beyond all numbers T is the largest finite float64, or minus it.
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

    Thresholds are float32[n], not nan; below -inf is nothing, so that T is the lowest finite float64.
    """
    below = of_less_or_equal32(previous32(thresholds))
    return np.where(np.isneginf(thresholds), -np.finfo(np.float64).max, below)


LONGEST = 1000  # characters of a number


def decimal_in(text: str, is_java: bool = False) -> str | None:
    """Return the plain decimal number in a text, None without one; `is_java` lets a type letter follow: 1.5f."""
    number = text.strip(" \t\r\n")
    if is_java and number[-1:] in ("f", "F", "d", "D"):
        number = number[:-1]
    return number if len(text) <= LONGEST and is_decimal(number) else None


def nearest32(texts: Sequence[str], numbers: Float64Array) -> Float32Array:
    """Return the float32 nearest to each decimal text, ties to even, as Java's Float.parseFloat; float32[n].

    texts   : n decimal numbers as `decimal_in` gives them; "" for a number that is exactly the float64
    numbers : float64[n], the float64 nearest to each; rounding these again errs only where one lies exactly between two
              float32 and the text does not, and there the text decides
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = numbers.astype(np.float32)
        back = rounded.astype(np.float64)
        other = np.where(back < numbers, next32(rounded), previous32(rounded))
        between = np.isfinite(other) & np.isfinite(back) & (numbers - back == other.astype(np.float64) - numbers)
    for i in np.flatnonzero(between & (back != numbers)).tolist():
        middle = Fraction(float(numbers[i]))
        exact = Fraction(texts[i]) if texts[i] else middle
        if exact != middle:
            low, high = sorted((rounded[i], other[i]))
            rounded[i] = high if exact > middle else low
    return rounded


def shortest32(numbers: Float32Array) -> list[str]:
    """Return the shortest text of each float32 that reads back equal, infinities as Java and C write them."""
    return [
        text if text[-1] != "f" else "-Infinity" if text[0] == "-" else "Infinity"
        for text in map(str, np.asarray(numbers, np.float32))
    ]
