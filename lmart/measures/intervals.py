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
