"""Mixed bits against their plain twins."""

from __future__ import annotations

import numpy as np
import reference.random_numbers
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.exact import bit_mixing


@given(st.integers(0, 2**64 - 1))
def test_mixed_bits_are_those_of_the_twin(x: int) -> None:
    assert int(bit_mixing.mix_bits(np.uint64(x))) == reference.random_numbers.mix(x)


def test_mixed_bits_are_those_of_splitmix64() -> None:
    # The first outputs of SplitMix64 from the state 0.
    assert [int(bit_mixing.mix_bits(np.uint64(k * 0x9E3779B97F4A7C15 % 2**64))) for k in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


@given(st.integers(0, 2**31), st.integers(1, 10**6))
def test_a_key_goes_by_seed_and_round(seed: int, round_number: int) -> None:
    wanted = reference.random_numbers.mix(reference.random_numbers.mix(seed) ^ round_number)
    assert int(bit_mixing.round_key(seed, round_number)) == wanted
