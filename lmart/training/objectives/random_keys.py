"""Random numbers of objectives, which depend on the seed, the round and the row alone."""

from __future__ import annotations

import numpy as np

from lmart.kernels.exact import bit_mixing


def round_key(seed: int, round_number: int) -> np.uint64:
    """Return the 64-bit key of a round's random numbers; another one than that of the row sample of its tree.

    seed         : of the ranker
    round_number : from 1
    """
    return np.uint64(bit_mixing.mix_bits(np.uint64(bit_mixing.round_key(seed, round_number))))
