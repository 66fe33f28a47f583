"""Packed sums in fewer bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Int32Array, Int64Array, UInt8Array, UInt32Array
from lmart.kernels.trees import packed_sums

GRADIENTS = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**19) - 2, 2**19 + 2), st.just(0))
HESSIANS = st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 2**20 + 2), st.just(0))


class Short(NamedTuple):
    """The arrays that `shorten_sums` writes."""

    low: UInt32Array
    high: UInt8Array
    places: Int32Array
    long_sums: Int64Array


def shortened(sums: Int64Array, room: int) -> tuple[int, Short]:
    """Return what `shorten_sums` returns and writes."""
    low, high = np.empty(len(sums), np.uint32), np.empty(len(sums), np.uint8)
    short = Short(low, high, np.empty(room, np.int32), np.empty(room, np.int64))
    return packed_sums.shorten_sums(sums, *short), short


@given(st.lists(st.tuples(GRADIENTS, HESSIANS), max_size=40))
def test_sums_come_back(pairs: list[tuple[int, int]]) -> None:
    sums = np.array([(gradient << 32) + hessian for gradient, hessian in pairs], np.int64)
    is_long = [not (-(2**19) <= gradient < 2**19 and hessian < 2**20) for gradient, hessian in pairs]
    n_long, (low, high, places, long_sums) = shortened(sums, len(sums))
    assert places[:n_long].tolist() == np.flatnonzero(is_long).tolist()
    assert long_sums[:n_long].tolist() == sums[is_long].tolist()
    again = np.empty_like(sums)
    packed_sums.restore_sums(low, high, places[:n_long], long_sums[:n_long], again)
    assert again.tolist() == sums.tolist()
    if n_long:
        assert shortened(sums, n_long - 1)[0] == -1


def test_blocks_are_told_apart() -> None:
    """Long sums first and last in a block and in one that is not full; the largest that is not long."""
    sums = np.zeros(2 * packed_sums.BLOCK_SUMS + 5, np.int64)
    where = [0, packed_sums.BLOCK_SUMS - 1, packed_sums.BLOCK_SUMS, len(sums) - 1]
    sums[where] = [-(2**62), 2**20, ((2**19 - 1) << 32) + 2**20 - 1, 2**51]
    n_long, (_, _, places, _) = shortened(sums, 4)
    assert places[:n_long].tolist() == [0, packed_sums.BLOCK_SUMS - 1, len(sums) - 1]
