"""Samples for one tree: of rows by the size of their gradients, and of features by mixed bits.

Source: Ibragimov and Gusev 2019 (minimal variance sampling).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, UInt64Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel


class RowDraw(NamedTuple):
    """What decides whether a row is drawn.

    threshold : float64, > 0, from `threshold_for`
    key       : uint64, round_key(seed, round number)
    first_row : int64, number of row 0 in the whole data
    """

    threshold: float
    key: np.uint64
    first_row: int


@kernel
def mix_each(numbers: Int32Array, key: np.uint64, mixed: UInt64Array) -> None:
    """Write the mixed bits of each number under a key.

    numbers : int32[n], >= 0, in      key : uint64      mixed : uint64[n], out
    """
    for k in range(len(numbers)):
        mixed[k] = mix_bits(np.uint64(numbers[k]) ^ key)


@inner_kernel
def gradient_size(gradient: float, hessian: float) -> float:
    """Return a row's sampling weight, sqrt(g^2 + h^2 / 10).

    gradient : float64      hessian : float64
    """
    return float(np.sqrt(gradient * gradient + 0.1 * hessian * hessian))


@kernel
def gradient_sizes(gradients: Float64Array, hessians: Float64Array, start: int, stop: int, sizes: Float64Array) -> None:
    """Write the sampling weights of rows start:stop, as `gradient_size` gives them.

    gradients : float64[n], in      hessians : float64[n], in      start, stop : int64, the rows of this call
    sizes     : float64[n], out
    """
    for row in range(start, stop):
        sizes[row] = gradient_size(gradients[row], hessians[row])


@kernel
def threshold_for(sorted_sizes: Float64Array, sampling_rate: float) -> float:
    """Return mu with mean(min(1, size / mu)) = sampling_rate; 0 when all rows are to be kept.

    sorted_sizes  : float64[n], sampling weights, ascending, in
    sampling_rate : float64, share of the rows to be drawn, 0..1

    Source: Ibragimov and Gusev 2019, equation 6.
    """
    n = len(sorted_sizes)
    below = 0.0  # added up from the smallest size: a large sum less its large terms has lost the small terms
    # mu between sizes i-1 and i: below_i / mu + (n - i) = sampling_rate * n
    for i in range(n):
        expected = sampling_rate * n - (n - i)
        if expected > 0.0 and below <= sorted_sizes[i] * expected:
            return below / expected
        below += sorted_sizes[i]
    return below / (sampling_rate * n)


@kernel
def draw_rows(
    gradients: Float64Array,
    hessians: Float64Array,
    draw: RowDraw,
    start: int,
    stop: int,
    sampled: Int32Array,
    unsampled: Int32Array,
) -> int:
    """Draw rows of start:stop; return how many.

    Divides gradients and hessians of sampled rows by their sampling probability, and zeros those of the others.
    gradients   : float64[n], in and out      hessians : float64[n], in and out      draw : RowDraw, in
    start, stop : int64, the rows of this call
    sampled     : int32[n], out: the drawn rows, ascending, from `start` on
    unsampled   : int32[n], out: the other rows, ascending, from `start` on

    A row is drawn when its uniform number, mixed from key and row number, is below size / threshold.
    Parallel: the caller runs ranges of rows side by side.
    """
    threshold, key = draw.threshold, np.uint64(draw.key)
    n_sampled = np.uint64(0)
    first = np.uint64(start)
    first_row = np.uint64(draw.first_row)
    for row in range(first, np.uint64(stop)):
        g = gradients[row]
        h = hessians[row]
        size = gradient_size(g, h)
        uniform = np.float64(mix_bits((first_row + np.uint64(row)) ^ key) >> np.uint64(11)) * 2.0**-53
        # Without a branch, which could not be predicted: the row is written to both, and one of the two is overwritten.
        drawn = uniform * threshold < size
        sampled[first + n_sampled] = row
        unsampled[row - n_sampled] = row
        n_sampled += np.uint64(drawn)
        factor = max(threshold / size, 1.0) if drawn else 0.0
        gradients[row] = g * factor
        hessians[row] = h * factor
    return int(n_sampled)
