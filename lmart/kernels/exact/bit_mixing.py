"""Random numbers by hashing: 64 well mixed bits of a number, so that a row's draw depends on nothing but its number."""

from __future__ import annotations

import numpy as np

from lmart.kernels.numba_support.code_cache import kernel


@kernel
def mix_bits(x: np.uint64) -> np.uint64:
    """Return 64 well mixed bits of a 64-bit number.

    x : uint64, any

    Source: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
    """
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def round_key(seed: int, round_number: int) -> np.uint64:
    """Return 64 bits of a seed and a round, to mix the numbers of rows and features with.

    seed : int64, the seed of the training      round_number : int64, the boosting round
    """
    return mix_bits(mix_bits(np.uint64(seed)) ^ np.uint64(round_number))
