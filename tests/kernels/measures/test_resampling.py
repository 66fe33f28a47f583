"""Resampled sums and sign flips against their plain twins, and planted answers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference.resampling
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.measures import resampling

KEYS = st.integers(0, 2**64 - 1)
WHOLE = st.integers(-(2**31), 2**31 - 1)


def buffers(n_flips: int) -> resampling.FlipBuffers:
    size = resampling.TABLES * resampling.TABLE
    return resampling.FlipBuffers(
        np.full(size, 7, np.int64), np.full(n_flips, 7, np.uint64), np.full(n_flips, 7, np.int64)
    )


@given(st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=70), KEYS)
def test_sums_are_those_of_the_twin(rows: list[tuple[int, int]], key: int) -> None:
    columns = np.array(rows, np.int32).T.copy()
    sums = np.full((4, 2), -1, np.int64)
    resampling.sum_resamples(np.full(len(rows), 9, np.uint16), columns, np.uint64(key), 1, 4, sums)
    assert sums[0].tolist() == [-1, -1]
    for b in range(1, 4):
        drawn = reference.resampling.drawn_queries(len(rows), key, b)
        assert sums[b].tolist() == [sum(rows[q][c] for q in drawn) for c in range(2)]


def test_every_query_is_drawn_as_often_as_chance_has_it() -> None:
    n, n_resamples = 5, 20_000
    columns = np.identity(n).astype(np.int32)  # column c counts the draws of query c
    sums = np.zeros((n_resamples, n), np.int64)
    key = np.uint64(mix_bits(np.uint64(0)))
    resampling.sum_resamples(np.zeros(n, np.uint16), columns, key, 0, n_resamples, sums)
    assert (sums.sum(axis=1) == n).all()
    for c in range(n):
        often = Counter(sums[:, c].tolist())
        for k, chance in enumerate((0.32768, 0.4096, 0.2048, 0.0512)):  # binomial(5, 1/5)
            assert often[k] / n_resamples == pytest.approx(chance, abs=5 * np.sqrt(chance / n_resamples))
    assert np.corrcoef(sums[:, 0], sums[:, 1])[0, 1] == pytest.approx(-1 / (n - 1), abs=0.03)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=200), KEYS)
def test_flips_are_those_of_the_twin(differences: list[int], key: int) -> None:
    every = np.array(differences, np.int64)
    sums = [abs(total) for total in reference.resampling.flipped_sums(differences, key, range(5, 20))]
    for b, total in enumerate(sums, 5):
        for bound in (total, total + 1):
            found = resampling.count_extreme_flips(buffers(1), every, bound, np.uint64(key), False, b, b + 1)
            assert found == (bound == total)
    middle = sorted(sums)[7]
    found = resampling.count_extreme_flips(buffers(20), every, middle, np.uint64(key), False, 5, 20)
    assert found == sum(total >= middle for total in sums)


def test_all_signs_are_tried_once() -> None:
    # Of 1, 2 and 4 each sum from -7 to 7 in steps of 2 comes once.
    differences = np.array([1, 2, 4], np.int64)
    for bound, count in ((1, 8), (2, 6), (5, 4), (6, 2), (7, 2), (8, 0)):
        halves = [(0, 3), (3, 8)]
        found = [
            resampling.count_extreme_flips(buffers(8), differences, bound, np.uint64(1), True, *half) for half in halves
        ]
        assert sum(found) == count


def test_signs_are_as_often_plus_as_minus() -> None:
    # Of 1,000 equal differences the absolute sum is above 2 sqrt(1000) for 4.55 percent.
    differences = np.ones(1000, np.int64)
    key = np.uint64(mix_bits(np.uint64(3)))
    found = resampling.count_extreme_flips(buffers(20_000), differences, 64, key, False, 0, 20_000)
    assert found / 20_000 == pytest.approx(0.0463, abs=0.006)  # with the correction for whole numbers
