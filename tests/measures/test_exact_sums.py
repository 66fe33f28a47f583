"""Exact sums of groups add up to the exact sum of all."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.measures.exact_sums import exact_sum

NUMBERS = st.lists(st.floats(-1e300, 1e300), max_size=8)


@given(st.lists(NUMBERS, max_size=4))
def test_any_grouping_gives_the_same_sum(groups: list[list[float]]) -> None:
    parts = [part for group in groups for part in exact_sum(group)]
    values = [value for group in groups for value in group]
    assert sum(map(Fraction, parts)) == sum(map(Fraction, values))
    assert math.fsum(parts) == math.fsum(values)


def test_what_rounds_away_is_kept() -> None:
    assert exact_sum([1.0, 2.0**-80, 2.0**-160]) == [1.0, 2.0**-80, 2.0**-160]
    assert exact_sum([]) == exact_sum([1.0, -1.0]) == []


def test_a_sum_that_is_no_number_is_refused() -> None:
    with pytest.raises(OverflowError):
        exact_sum([1e308] * 20)
