"""Summaries of the values that a measure has by query: mean, median, spread, and a bootstrap interval of the mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.measures.resampling import Resampling
from lmart.measures.results import exponential, is_geometric, logarithms
from lmart.threads import WorkerPool, chunks


@dataclass(frozen=True)
class Summary:
    """What the values of one measure are like over the queries that count; None where it is not defined.

    mean     : weighted, when queries have weights
    median   : with weights, the value that half of the weight is below
    count    : queries that count: the measure is defined for them, and their weight is not 0
    std      : standard deviation, with count - 1, in a geometric mean of the logarithms; None for a single query
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
        return {"mean": self.mean, "median": self.median, "count": self.count, "std": self.std, "interval": interval}


def summarize(
    per_query: Mapping[str, Float64Array],
    means: Mapping[str, float | None],
    weights: Float64Array | None,
    resampling: Resampling,
    pool: WorkerPool,
) -> dict[str, Summary]:
    """Return the summary of each measure.

    per_query : float64[n_queries] by measure, nan where the query is left out
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
        counted, interval = values[counts], intervals[name]
        if is_geometric(name):
            center = float(logarithms(np.array([mean]))[0])
            median, std = exponential(weighted_median(counted, own)), standard_deviation(counted, own, center)
            interval = None if interval is None else (exponential(interval[0]), exponential(interval[1]))
        else:
            median, std = weighted_median(counted, own), standard_deviation(counted, own, mean)
        summaries[name] = Summary(mean, median, len(counted), std, interval)
    return summaries


def intervals_of_means(
    values: Mapping[str, Float64Array],
    counting: Mapping[str, BoolArray],
    weights: Float64Array | None,
    resampling: Resampling,
    pool: WorkerPool,
) -> dict[str, Interval | None]:
    """Return the bootstrap interval of each mean; None where fewer than two queries count.

    values  : float64[n_queries] by name
    weights : float64[n_queries], > 0 where queries count; None: all 1

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
    """Return the median; with weights, the mean of the values that half of the weight is not above and not below."""
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
    """Return the values of the queries that count: the measure is defined for them, and their weight is not 0."""
    return values[_counting(values, weights)]


def value_range(values: Float64Array) -> tuple[float, float]:
    """Return the range that a histogram of values shows: 0 to 1; where values lie outside, from -1 or less, or further.

    values : float64[n]; nan is left out
    """
    defined = values[~np.isnan(values)]
    lowest = float(defined.min(initial=0.0))
    return (min(-1.0, lowest) if lowest < 0 else 0.0), max(1.0, float(defined.max(initial=0.0)))


def histogram(values: Float64Array, low: float, high: float, n_bins: int) -> Int64Array:
    """Return how many values lie in each of several equal parts of a range; `high` itself is in the last.

    values    : float64[n]; nan is left out
    low, high : ends of the range, low < high
    n_bins    : parts
    """
    defined = values[~np.isnan(values)]
    places = np.clip(((defined - low) / (high - low) * n_bins).astype(np.int64), 0, n_bins - 1)
    return np.bincount(places, minlength=n_bins).astype(np.int64)


def _counting(values: Float64Array, weights: Float64Array | None) -> BoolArray:
    is_defined = ~np.isnan(values)
    return is_defined if weights is None else is_defined & (weights > 0)


DRAWS_A_CALL = 1 << 21
Interval = tuple[float, float]


def bootstrap_intervals(
    values: Sequence[Float64Array], weights: Float64Array | None, resampling: Resampling, pool: WorkerPool
) -> list[Interval]:
    """Return an interval for the mean of each of several measures of the same queries.

    In each resample as many queries as there are, drawn with replacement, have a (weighted) mean; all measures share
    the draws. The ends of the interval are the quantiles (1 - level) / 2 and (1 + level) / 2 of these means, between
    two of them by straight lines. Source: Efron and Tibshirani 1993, section 13.3.
    """
    n = len(values[0])
    products = [row if weights is None else row * weights for row in values]
    rows = [whole_numbers(row, bound_sum=False) for row in (*products, *([] if weights is None else [weights]))]
    sums = _resampled_sums([row for row, _ in rows], resampling, pool)
    divisor, exponent = (np.float64(n), 0) if weights is None else (sums[-1], rows[-1][1])
    lower = (1 - resampling.level) / 2
    intervals = []
    for total, (_, own) in zip(sums[: len(values)], rows, strict=False):
        means = np.sort(np.ldexp(total / divisor, own - exponent)).tolist()
        intervals.append((quantile(means, lower), quantile(means, 1 - lower)))
    return intervals


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which a share of values lies, between two of them by a straight line."""
    place = share * (len(ascending) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)


def _resampled_sums(rows: Sequence[Int64Array], resampling: Resampling, pool: WorkerPool) -> Float64Array:
    """Return float64[n_rows, n_resamples], the sum of each row over the queries of each resample."""
    # numba is loaded only when something is drawn: usage errors must come quickly
    from lmart.kernels.exact.bit_mixing import mix_bits
    from lmart.kernels.measures.resampling import sum_resamples

    n, n_resamples = len(rows[0]), resampling.resamples_of(len(rows[0]))
    columns: Int32Array = np.empty((2 * len(rows), n), np.int32)  # upper and lower bits of each row
    for i, row in enumerate(rows):
        columns[2 * i] = row >> 31
        columns[2 * i + 1] = row & 0x7FFFFFFF
    sums: Int64Array = np.empty((n_resamples, len(columns)), np.int64)
    ranges = chunks(n_resamples, max(1, DRAWS_A_CALL // n))
    counts = [np.empty(n, np.uint16) for _ in range(min(pool.threads, len(ranges)))]
    key = np.uint64(mix_bits(np.uint64(resampling.seed)))
    pool.run(sum_resamples, [(columns, key, a, b, sums) for a, b in ranges], own=counts)
    return np.ascontiguousarray((sums[:, 0::2] * 2.0**31 + sums[:, 1::2]).T)


BITS = 61


def whole_numbers(values: Float64Array, bound_sum: bool) -> tuple[Int64Array, int]:
    """Return whole numbers of at most BITS bits, and the exponent e for which the values are they times 2^e, rounded.

    bound_sum : whether the sum of the absolute whole numbers has at most BITS bits, and not only each of them
    """
    largest = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    exponent = largest - BITS
    if bound_sum:
        exponent += math.frexp(math.fsum(np.ldexp(np.abs(values), -largest).tolist()))[1]
    return np.rint(np.ldexp(values, -exponent)).astype(np.int64), exponent
