"""Summaries of the values that a measure has by query: mean, median, spread, and an interval of the mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.measures.bootstrap import Interval, bootstrap_intervals
from lmart.measures.resampling import Resampling
from lmart.measures.whole_numbers import whole_numbers
from lmart.threads import WorkerPool


@dataclass(frozen=True)
class Summary:
    """What the values of one measure are like over the queries that count; None where it is not defined.

    mean     : weighted, when queries have weights
    median   : with weights, the value that half of the weight is below
    count    : queries that count: the measure is defined for them, and their weight is not 0
    std      : standard deviation, with count - 1; None for a single query
    interval : of the mean, by the bootstrap; None for a single query
    """

    mean: float | None
    median: float | None
    count: int
    std: float | None
    interval: Interval | None

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        interval = None if self.interval is None else list(self.interval)
        return {
            "mean": self.mean,
            "median": self.median,
            "count": self.count,
            "std": self.std,
            "interval": interval,
        }


def summarize(
    per_query: Mapping[str, Float64Array],
    means: Mapping[str, float | None],
    weights: Float64Array | None,
    resampling: Resampling,
    pool: WorkerPool,
) -> dict[str, Summary]:
    """Return the summary of each measure.

    per_query  : float64[n_queries] by measure, nan where the query is left out
    means      : by measure, as evaluated
    weights    : float64[n_queries], >= 0; None: all 1
    resampling : how the intervals are drawn
    pool       : its threads draw in parallel; no value depends on it
    """
    counting = {name: _counting(values, weights) for name, values in per_query.items()}
    intervals = intervals_of_means(per_query, counting, weights, resampling, pool)
    summaries = {}
    for name, values in per_query.items():
        counts, mean = counting[name], means[name]
        own = None if weights is None else weights[counts]
        if mean is None or not counts.any():
            summaries[name] = Summary(None, None, 0, None, None)
            continue
        known = values[counts]
        median, std = weighted_median(known, own), standard_deviation(known, own, mean)
        summaries[name] = Summary(mean, median, len(known), std, intervals[name])
    return summaries


def intervals_of_means(
    values: Mapping[str, Float64Array],
    counting: Mapping[str, BoolArray],
    weights: Float64Array | None,
    resampling: Resampling,
    pool: WorkerPool,
) -> dict[str, Interval | None]:
    """Return the bootstrap interval of each mean; None where fewer than two queries count.

    values     : float64[n_queries] by name
    counting   : bool[n_queries] by name, the queries that are drawn from
    weights    : float64[n_queries], > 0 where queries count; None: all 1
    resampling : how many resamples, from which seed, and the level
    pool       : its threads draw in parallel

    Measures for which the same queries count share the draws.
    """
    intervals: dict[str, Interval | None] = dict.fromkeys(values)
    groups: dict[bytes, list[str]] = {}
    for name, counts in counting.items():
        if np.count_nonzero(counts) > 1:
            groups.setdefault(counts.tobytes(), []).append(name)
    for names in groups.values():
        counts = counting[names[0]]
        own = None if weights is None else weights[counts]
        drawn = bootstrap_intervals([values[name][counts] for name in names], own, resampling, pool)
        intervals.update(zip(names, drawn, strict=True))
    return intervals


def weighted_median(values: Float64Array, weights: Float64Array | None) -> float:
    """Return the median; with weights, the mean of the values that half of the weight is not above and not below.

    values  : float64[n], n > 0
    weights : float64[n], > 0; None: all 1
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order].tolist()
    # In whole numbers, as sums of weights such as 0.1 are rounded, and half of the weight then is somewhere else.
    shares, _ = whole_numbers(np.ones(len(values)) if weights is None else weights[order], bound_sum=True)
    twice_below = 2 * np.cumsum(shares)
    total = twice_below[-1] // 2
    low = int(np.searchsorted(twice_below, total))
    high = int(np.searchsorted(twice_below, total, side="right"))
    return float(ascending[low] / 2 + ascending[min(high, len(values) - 1)] / 2)


def standard_deviation(values: Float64Array, weights: Float64Array | None, mean: float) -> float | None:
    """Return the standard deviation of values around their mean; None for a single one.

    values  : float64[n], n > 0
    weights : float64[n], > 0; None: all 1
    mean    : their mean

    Equation: sqrt(n / (n - 1) x sum of w (v - mean)^2 / sum of w).
    """
    n = len(values)
    if n < 2:
        return None
    weights = np.ones(n) if weights is None else weights
    scale = int(np.frexp(np.abs(values - mean).max())[1])  # the square of a large DCG is beyond the numbers
    squares = np.ldexp(values - mean, -scale) ** 2
    variance = math.fsum((weights * squares).tolist()) / math.fsum(weights.tolist()) * n / (n - 1)
    return math.ldexp(math.sqrt(variance), scale)


def counted_values(values: Float64Array, weights: Float64Array | None) -> Float64Array:
    """Return the values of the queries that count: the measure is defined for them, and their weight is not 0.

    values  : float64[n_queries], nan where the query is left out
    weights : float64[n_queries], >= 0; None: all 1
    """
    return values[_counting(values, weights)]


def value_range(values: Float64Array) -> tuple[float, float]:
    """Return the range that a histogram of values shows: 0 to 1; where values lie outside, from -1 or to the largest.

    values : float64[n]; nan is left out
    """
    known = values[~np.isnan(values)]
    return (-1.0 if known.min(initial=0.0) < 0 else 0.0), max(1.0, float(known.max(initial=0.0)))


def histogram(values: Float64Array, low: float, high: float, n_bins: int) -> Int64Array:
    """Return how many values lie in each of several equal parts of a range; `high` itself is in the last.

    values    : float64[n]; nan is left out
    low, high : ends of the range, low < high
    n_bins    : parts
    """
    known = values[~np.isnan(values)]
    places = np.clip(((known - low) / (high - low) * n_bins).astype(np.int64), 0, n_bins - 1)
    return np.bincount(places, minlength=n_bins).astype(np.int64)


def _counting(values: Float64Array, weights: Float64Array | None) -> BoolArray:
    known = ~np.isnan(values)
    return known if weights is None else known & (weights > 0)
