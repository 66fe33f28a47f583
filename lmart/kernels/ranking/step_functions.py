"""Step functions of binned features: the logarithms of their values, and scores that are sums of them."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int64Array, UInt16Array, UInt32Array
from lmart.kernels.exact.exact_math import log2_of_one_plus
from lmart.kernels.numba_support.code_cache import kernel


@kernel
def write_signed_logs(values: Float64Array, logs: Float64Array) -> None:
    """Write the signed logarithm of each value.

    values : float64[n], finite, in      logs : float64[n], out
    Equation: sign(x) log2(1 + |x|), the same bits on any processor; never below that of the value before where that is
    no larger, as rounding might make it. Parallel: one call. Cost: O(n).
    """
    for k in range(len(values)):
        size = log2_of_one_plus(abs(values[k]))
        logs[k] = -size if values[k] < 0.0 else size
        if k > 0 and values[k - 1] <= values[k]:
            logs[k] = max(logs[k], logs[k - 1])


@kernel
def add_bin_values(
    row_offsets: Int64Array,
    other_bins: UInt16Array | UInt32Array,
    base: float,
    differences: Float64Array,
    start: int,
    stop: int,
    scores: Float64Array,
) -> None:
    """Add to the score of each document the values of its bins, all features together.

    row_offsets : int64[n + 1], the other bins of row r are other_bins[row_offsets[r]:row_offsets[r + 1]], in
    other_bins  : uint16 or uint32[...], bins that are not the most frequent one of their feature, in
    base        : float64, the sum of the values of all most frequent bins
    differences : float64[n_bins], what the value of a bin differs from that of the most frequent one, in
    start, stop : int64, the rows of this call      scores : float64[n], in and out
    Parallel: each call writes scores[start:stop] only. Cost: O(other bins of the rows).
    """
    for row in range(start, stop):
        total = base
        for k in range(np.uint64(row_offsets[row]), np.uint64(row_offsets[row + 1])):
            total += differences[np.uint64(other_bins[k])]
        scores[row] += total
