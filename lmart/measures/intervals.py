"""How sure a mean of measures is: its standard error, and its interval by Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmart.array_types import Float64Array


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of values, of which there is at least one."""
    return math.fsum(values) / len(values)


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of independent values; 0 of a single one.

    values : at least one
    """
    n, mean = len(values), mean_of(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / max(1, n - 1) / n)


def interval_of_mean(
    values: Sequence[float], level: float, at_most_1: bool, lowest: float = 0.0
) -> tuple[float, float] | None:
    """Return the interval of the mean of measures by Student's t, clipped to their range; None for fewer than two.

    values    : from `lowest` up; nan is none
    level     : probability that the interval holds the mean
    at_most_1 : whether no value exceeds 1
    lowest    : below which there is no value
    """
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return None
    mean = mean_of(known)
    margin = student_quantile(level, len(known) - 1) * standard_error(known)
    return max(mean - margin, lowest), min(mean + margin, 1.0) if at_most_1 else mean + margin


def weighted_standard_error(values: Float64Array, weights: Float64Array, mean: float) -> float:
    """Return the standard error of a weighted mean of independent values (Cochran 1977, 6.13).

    values  : float64[n]
    weights : float64[n], >= 0, one of them above 0; those of weight 0 do not count
    mean    : the weighted mean of the values
    """
    n = int((weights > 0).sum())
    squares = math.fsum(((weights * (values - mean)) ** 2).tolist())
    return math.sqrt(squares * n / max(1, n - 1)) / math.fsum(weights.tolist())


def student_quantile(level: float, freedom: int) -> float:
    """Return t for which a Student variable lies in -t..t with the probability `level`.

    level   : between 0 and 1
    freedom : degrees of freedom, >= 1

    By bisection of the finite sums of Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _student_share(angle, freedom) < level else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _student_share(angle: float, freedom: int) -> float:
    """Return how likely a Student variable lies within the tangent of an angle times sqrt(freedom) of 0."""
    odd = freedom % 2
    cosine = math.cos(angle)
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def student_p(t: float, freedom: int) -> float:
    """Return how likely a Student variable is at least as far from 0 as t: the two-sided p of a t test.

    t       : may be infinite
    freedom : degrees of freedom, >= 1, millions as well

    Equation: p = I_x(freedom / 2, 1 / 2) with x = freedom / (freedom + t^2), I the regularized incomplete beta function
    (Abramowitz and Stegun 1964, 26.7.1 and 26.5.27).
    """
    square = t * t
    if math.isinf(square):
        return 0.0
    a = freedom / 2
    # x^a (1 - x)^(1/2) / (B(a, 1/2)), without x itself, whose rounding a power of a would blow up
    front = math.exp(-a * math.log1p(square / freedom)) * math.sqrt(square / (freedom + square) / math.pi)
    front *= _gamma_ratio(a)
    x = freedom / (freedom + square)
    if x < (a + 1) / (a + 2.5):
        return min(1.0, front * _beta_fraction(a, 0.5, x) / a)
    return max(0.0, 1.0 - front * _beta_fraction(0.5, a, square / (freedom + square)) / 0.5)


def _gamma_ratio(a: float) -> float:
    """Return gamma(a + 1/2) / gamma(a); for large a by its series (Graham, Knuth and Patashnik 1994, exercise 9.60)."""
    if a <= 100:
        return math.gamma(a + 0.5) / math.gamma(a)
    y = 1 / a
    return math.sqrt(a) * (1 + y * (-1 / 8 + y * (1 / 128 + y * (5 / 1024 + y * (-21 / 32768 - y * 399 / 262144)))))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, x < (a + 1) / (a + b + 2).

    Equation: 26.5.8 of Abramowitz and Stegun 1964, by the method of Lentz 1976 in the form of Thompson and Barnett
    1986. It needs O(sqrt(max(a, b))) terms.
    """
    tiny = 1e-300
    c, d = 1.0, 1.0 / _not_0(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 1_000_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        factor = 1.0
        for term in (even, odd):
            d = 1.0 / _not_0(1 + term * d, tiny)
            c = _not_0(1 + term / c, tiny)
            factor = c * d
            value *= factor
        if abs(factor - 1) < 1e-15:
            break
    return value


def _not_0(x: float, tiny: float) -> float:
    return x if abs(x) >= tiny else tiny
