"""The numbers of the values of a category, and the sets that thresholds on them are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference.categories as reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.data.categories import Categories, with_numbers
from lmart.data.dataset import SparseRows


@given(st.lists(st.integers(-3, 9), unique=True, max_size=8), st.integers(0, 8), st.lists(st.integers(-4, 10)))
def test_numbers_are_those_of_the_slow_twin(values: list[int], unseen: int, cells: list[int]) -> None:
    unseen = min(unseen, len(values))
    categories = Categories(0, tuple(values), unseen)
    found, is_unseen = categories.find(np.array(cells, np.float64))
    assert found.tolist() == [reference.number(values, unseen, value) for value in cells]
    assert is_unseen.tolist() == [value not in values for value in cells]
    assert 0 not in values or categories.find(np.zeros(1))[0].tolist() == [0.0]


def test_missing_values_stay_and_fractions_are_not_seen() -> None:
    found, unseen = Categories(0, (4, 2), 1).find(np.array([np.nan, 2.5, 2.0]))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [0.0, 1.0]
    assert unseen.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("bounds", "left", "unseen"),
    [
        ([-2.5], [], False),
        ([-0.5], [8, 3], False),
        ([0.5], [8, 3], True),
        ([1.0], [8, 3, 5], True),
        ([-1.5, -0.5], [8, 5], True),
        ([-2.5, -1.5, 0.0], [3], True),
    ],
)
def test_bounds_are_a_set(bounds: list[float], left: list[int], unseen: bool) -> None:
    goes_left, unseen_left = Categories(0, (8, 3, 5), 2).split(bounds)
    assert [value for value, is_left in zip((8, 3, 5), goes_left, strict=True) if is_left] == left
    assert unseen_left is unseen


def test_texts_are_places_in_the_list() -> None:
    found, unseen = Categories(0, ("b", "a", "c"), 1).find(np.array([0.0, 1.0, 2.0, -1.0]))
    assert found.tolist() == [-1.0, 1.0, 2.0, 0.0]
    assert unseen.tolist() == [False, False, False, True]


def test_only_cells_of_categories_change() -> None:
    rows = SparseRows(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([7.0, 7.0, 9.0]))
    unseen: Counter[int] = Counter()
    made = with_numbers(rows, np.array([-1, 3], np.int32), [Categories(3, (1, 7), 2)], unseen)
    assert made.values.tolist() == [7.0, -1.0, 0.0]
    assert rows.values.tolist() == [7.0, 7.0, 9.0]
    assert unseen == {3: 1}
    assert with_numbers(rows, np.array([-1, -1], np.int32), [Categories(3, (1,), 0)]) is rows
