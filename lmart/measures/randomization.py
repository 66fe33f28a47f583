"""Fisher's randomization test of paired differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.measures.resampling import EXACT_UP_TO, Resampling
from lmart.measures.whole_numbers import whole_numbers
from lmart.threads import WorkerPool, chunks

FLIPS_A_CALL = 2048
TOLERANCE = 1e-12


class RandomizationTest(NamedTuple):
    """What a randomization test found.

    p     : how likely a difference of means is as large, in either direction, when the systems do not differ
    flips : the sign vectors that were tried
    exact : whether these are all there are
    """

    p: float
    flips: int
    exact: bool


def randomization_test(differences: Float64Array, resampling: Resampling, pool: WorkerPool) -> RandomizationTest:
    """Test whether the mean of paired differences is 0; two-sided.

    differences : float64[n_queries], finite; where they have weights, times these
    resampling  : how many sign vectors are drawn, and from which seed
    pool        : its threads draw in parallel; p does not depend on it

    When the systems do not differ, the sign of each query's difference is as likely the other one. p is the share of
    sign vectors under which the absolute sum of the differences is at least the one there is, less a tolerance of
    1e-12 of the sum of absolute differences. Queries without a difference change nothing. Where at most 20 differ,
    all sign vectors are tried; else p = (count + 1) / (flips + 1). Source: Fisher 1935, section 21; Smucker, Allan and
    Carterette 2007.
    """
    differing = differences[differences != 0]
    n = len(differing)
    exact = n <= EXACT_UP_TO
    n_flips = 2**n if exact else resampling.flips
    whole, _ = whole_numbers(differing, bound_sum=True)
    # Each was rounded by up to a half, in the sum there is and in that of a sign vector.
    tolerance = max(n, int(TOLERANCE * float(np.abs(whole).sum())))
    bound = abs(int(whole.sum())) - tolerance
    count = n_flips if bound <= 0 else _count_extreme(whole, bound, resampling.seed, (n_flips, exact), pool)
    return RandomizationTest(count / n_flips if exact else (count + 1) / (n_flips + 1), n_flips, exact)


def _count_extreme(whole: Int64Array, bound: int, seed: int, flips: tuple[int, bool], pool: WorkerPool) -> int:
    """Count the sign vectors under which the sum is at least `bound`; flips: how many, and whether they are all."""
    # numba is loaded only when something is drawn: usage errors must come quickly
    from lmart.kernels.exact.bit_mixing import mix_bits
    from lmart.kernels.measures import resampling as kernels

    n_flips, exact = flips
    ranges = chunks(n_flips, FLIPS_A_CALL)
    buffers = [
        kernels.FlipBuffers(
            np.empty(kernels.TABLES * kernels.TABLE, np.int64),
            np.empty(FLIPS_A_CALL, np.uint64),
            np.empty(FLIPS_A_CALL, np.int64),
        )
        for _ in range(min(pool.threads, len(ranges)))
    ]
    # Other draws than those of the bootstrap.
    key = np.uint64(mix_bits(np.uint64(mix_bits(np.uint64(seed)))))
    calls = [(whole, bound, key, exact, a, b) for a, b in ranges]
    return sum(pool.run(kernels.count_extreme_flips, calls, own=buffers))
