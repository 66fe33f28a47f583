"""Sums of what queries tell of the values of a category."""

from __future__ import annotations

import numpy as np
import pytest
import reference.categories as reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.ranking.category_effects import UNITS, add_category_slopes

DOCUMENT = st.tuples(st.none() | st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
QUERIES = st.lists(st.lists(DOCUMENT, max_size=5), min_size=1, max_size=5)


@given(QUERIES, st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.integers(0, 5))
def test_sums_are_those_of_the_slow_twin(
    queries: list[list[tuple[int | None, float]]], effects: list[float], split: int
) -> None:
    documents = [document for query in queries for document in query]
    codes = np.array([-1 if value is None else value for value, _ in documents], np.int32)
    gains = np.array([gain for _, gain in documents], np.float64)
    offsets = np.cumsum([0, *map(len, queries)])
    folds = np.arange(len(queries), dtype=np.uint8) % 2
    sums = np.zeros((2, 3, 4), np.int64)
    middle = min(split, len(queries))
    for first, last in ((0, middle), (middle, len(queries))):
        add_category_slopes(sums, codes, gains, offsets, folds.astype(np.uint8), np.array(effects), first, last)
    for fold in (0, 1):
        own = [query for query, of_query in zip(queries, folds.tolist(), strict=True) if of_query == fold]
        expected = reference.sums(own, dict(enumerate(effects)))
        found = sums[fold] / UNITS
        for value in range(4):
            assert found[:, value].tolist() == pytest.approx(expected[value], abs=2e-9 * (1 + len(documents)))


def test_slopes_of_a_query_add_up_to_nothing() -> None:
    sums = np.zeros((1, 3, 3), np.int64)
    gains, offsets = np.array([1.0, 0.0, 3.0, 0.0]), np.array([0, 4])
    codes = np.array([0, 1, 2, 1], np.int32)
    add_category_slopes(sums, codes, gains, offsets, np.zeros(1, np.uint8), np.array([0.3, -2.0, 1.0]), 0, 1)
    assert abs(int(sums[0, 0].sum())) <= 4
    assert sums[0, 1].sum() == pytest.approx(UNITS, rel=1e-8)
