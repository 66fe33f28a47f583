"""Bootstrap percentile intervals of means over queries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.measures.resampling import Resampling
from lmart.measures.whole_numbers import whole_numbers
from lmart.threads import WorkerPool, chunks

DRAWS_A_CALL = 1 << 21
Interval = tuple[float, float]


def bootstrap_intervals(
    values: Sequence[Float64Array], weights: Float64Array | None, resampling: Resampling, pool: WorkerPool
) -> list[Interval]:
    """Return an interval for the mean of each of several measures of the same queries.

    values     : of each measure float64[n_queries], finite, n_queries > 0
    weights    : float64[n_queries], > 0; None: all 1
    resampling : how many resamples are drawn, from which seed, and the level
    pool       : its threads draw in parallel; the intervals do not depend on it

    In each resample as many queries as there are, drawn with replacement, have a (weighted) mean; all measures share
    the draws. The ends of the interval are the quantiles (1 - level) / 2 and (1 + level) / 2 of these means, between
    two of them by straight lines. Source: Efron and Tibshirani 1993, section 13.3.
    """
    n = len(values[0])
    products = [one if weights is None else one * weights for one in values]
    rows = [whole_numbers(one, bound_sum=False) for one in (*products, *([] if weights is None else [weights]))]
    sums = _resampled_sums([row for row, _ in rows], resampling, pool)
    divisor, exponent = (np.float64(n), 0) if weights is None else (sums[-1], rows[-1][1])
    lower = (1 - resampling.level) / 2
    intervals = []
    for total, (_, own) in zip(sums[: len(values)], rows, strict=False):
        means = np.sort(np.ldexp(total / divisor, own - exponent)).tolist()
        intervals.append((quantile(means, lower), quantile(means, 1 - lower)))
    return intervals


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which a share of values lies, between two of them by a straight line.

    ascending : the values, at least one
    share     : from 0 to 1
    """
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
