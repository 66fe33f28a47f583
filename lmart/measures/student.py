"""How sure a mean of measures is: its standard error, and its interval by Student's t.

Everything here has the same digits on any machine: single IEEE operations, whole numbers, and functions of `decimal`,
which are rounded correctly; those of C are not, and differ by machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal

from lmart.array_types import Float64Array

_DECIMALS = Context(prec=30)


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of values, of which there is at least one."""
    return math.fsum(values) / len(values)


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of independent values, at least one; 0 of a single one."""
    n, mean = len(values), mean_of(values)
    return math.sqrt(math.fsum((v - mean) * (v - mean) for v in values) / max(1, n - 1) / n)


def interval_of_mean(
    values: Sequence[float], level: float, at_most_1: bool, lowest: float = 0.0
) -> tuple[float, float] | None:
    """Return the interval of the mean of measures by Student's t, clipped to their range; None for fewer than two.

    values    : from `lowest` up; nan is none
    level     : probability that the interval holds the mean
    at_most_1 : whether no value exceeds 1
    lowest    : below which there is no value
    """
    defined = [value for value in values if not math.isnan(value)]
    if len(defined) < 2:
        return None
    mean = mean_of(defined)
    margin = student_quantile(level, len(defined) - 1) * standard_error(defined)
    return max(mean - margin, lowest), min(mean + margin, 1.0) if at_most_1 else mean + margin


def weighted_standard_error(values: Float64Array, weights: Float64Array, mean: float) -> float:
    """Return the standard error of a weighted mean of independent values (Cochran 1977, 6.13), both float64[n]."""
    n = int((weights > 0).sum())
    squares = math.fsum(((weights * (values - mean)) ** 2).tolist())
    return math.sqrt(squares * n / max(1, n - 1)) / math.fsum(weights.tolist())


def student_quantile(level: float, freedom: int) -> float:
    """Return t for which a Student variable lies in -t..t with the probability `level`, by bisection of `student_p`."""
    outside, high = 1.0 - level, 1.0
    while student_p(high, freedom) > outside:
        high *= 2.0
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > outside else (low, middle)
    return low


def student_p(t: float, freedom: int) -> float:
    """Return how likely a Student variable is at least as far from 0 as t: the two-sided p of a t test.

    Degrees of freedom are from 1 to millions; t may be infinite.

    Equation: p = I_x(freedom / 2, 1 / 2) with x = freedom / (freedom + t^2), I the regularized incomplete beta function
    (Abramowitz and Stegun 1964, 26.7.1 and 26.5.27).
    """
    square = t * t
    if math.isinf(square):
        return 0.0
    a = freedom / 2
    # x^a (1 - x)^(1/2) / (B(a, 1/2)), without x itself, whose rounding a power of a would blow up
    logarithm = _DECIMALS.ln(_DECIMALS.add(1, _DECIMALS.divide(Decimal(square), freedom)))
    front = float(_DECIMALS.exp(_DECIMALS.multiply(Decimal(-a), logarithm)))
    front *= math.sqrt(square / (freedom + square) / math.pi) * _gamma_ratio(freedom)
    x = freedom / (freedom + square)
    if x < (a + 1) / (a + 2.5):
        return min(1.0, front * _beta_fraction(a, 0.5, x) / a)
    return max(0.0, 1.0 - front * _beta_fraction(0.5, a, square / (freedom + square)) / 0.5)


def _gamma_ratio(freedom: int) -> float:
    """Return gamma((freedom + 1) / 2) / gamma(freedom / 2), by binomial coefficients, for large freedom by its series.

    Source of the series: Graham, Knuth and Patashnik 1994, exercise 9.60.
    """
    half = freedom // 2
    if freedom <= 200:
        middle = math.comb(2 * half, half)
        if freedom % 2:
            return (1 << 2 * half) / middle / math.sqrt(math.pi)
        return half * middle / (1 << 2 * half) * math.sqrt(math.pi)
    y = 2 / freedom
    series = 1 + y * (-1 / 8 + y * (1 / 128 + y * (5 / 1024 + y * (-21 / 32768 - y * 399 / 262144))))
    return math.sqrt(freedom / 2) * series


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
