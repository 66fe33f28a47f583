"""What the values of a category add to a score by themselves: sums of a softmax regression on them alone."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.kernels.exact.exact_math import exp_minus
from lmart.kernels.numba_support.code_cache import kernel

UNITS = 2.0**31  # of a sum, in 1: sums of 2^31 documents fit 64 bits


@kernel
def add_category_slopes(
    sums: Int64Array,
    codes: Int32Array,
    gains: Float64Array,
    query_offsets: Int64Array,
    folds: UInt8Array,
    effects: Float64Array,
    first_query: int,
    last_query: int,
) -> None:
    """Add the slopes and curvatures of queries to the sums of their documents' values.

    sums          : int64[n_folds, 3, n_values], in units of 1 / UNITS: of t - p, of p, of p (1 - p); in and out
    codes         : int32[n], the value of each document, by row; -1: missing, whose effect is 0, in
    gains         : float64[n], >= 0, by row, in
    query_offsets : int64[n_queries + 1], in
    folds         : uint8[n_queries], below n_folds, in
    effects       : float64[n_values], what each value adds to a score, in
    first_query, last_query : the queries first_query..last_query - 1 count, in
    Equation: t is the share of a document in the gain of its query, p the softmax of the effects there. Source: the
    gradient of ListNet (Cao et al. 2007) and its diagonal; sums of p bound the curvature from above. Differs: a query
    whose documents all have the same value is skipped, as it says nothing of it, and so is one without gain. Each term
    is rounded to whole units, so that sums are the same in any order. Parallel: each call has sums of its own. Cost:
    O(documents of the queries).
    """
    for q in range(first_query, last_query):
        first, last = query_offsets[q], query_offsets[q + 1]
        gain, best, differ = 0.0, 0.0, False
        for row in range(first, last):
            gain += gains[row]
            differ |= codes[row] != codes[first]
            if codes[row] >= 0:
                best = max(best, effects[codes[row]])
        if not differ or gain == 0.0:
            continue
        total = 0.0
        for row in range(first, last):
            total += exp_minus(best - (effects[codes[row]] if codes[row] >= 0 else 0.0))
        for row in range(first, last):
            code = codes[row]
            if code >= 0:
                p = exp_minus(best - effects[code]) / total
                sums[folds[q], 0, code] += np.int64(np.rint((gains[row] / gain - p) * UNITS))
                sums[folds[q], 1, code] += np.int64(np.rint(p * UNITS))
                sums[folds[q], 2, code] += np.int64(np.rint(p * (1.0 - p) * UNITS))
