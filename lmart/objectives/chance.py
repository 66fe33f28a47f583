"""What objectives draw by chance: numbers that the seed, the round and the row decide, and nothing else."""

from __future__ import annotations

import numpy as np

from lmart.kernels import bit_mixing


def round_key(seed: int, round_number: int) -> np.uint64:
    """Return 64 bits to mix the numbers of rows with; not those by which `boosting` draws the rows of a tree."""
    return np.uint64(bit_mixing.mix_bits(np.uint64(bit_mixing.round_key(seed, round_number))))
