"""Means of measures: standard errors and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmart.measures.intervals import interval_of_mean, standard_error, student_quantile, weighted_standard_error


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062047), (2, 4.3026527), (4, 2.7764451), (9, 2.2621572), (100, 1.9839715)]
)
def test_quantiles_of_student(freedom: int, quantile: float) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(quantile, abs=1e-7)


def test_intervals_by_hand() -> None:
    low, high = interval_of_mean([0.4, math.nan, 0.6], 0.95, at_most_1=True) or (0.0, 0.0)
    assert (low, high) == (0.0, 1.0)  # 0.5 -+ 12.7 x 0.1
    low, high = interval_of_mean([4.0, 6.0], 0.5, at_most_1=False) or (0.0, 0.0)
    assert [low, high] == pytest.approx([4.0, 6.0])  # t of 1 degree of freedom is 1
    assert interval_of_mean([0.5, math.nan], 0.95, at_most_1=True) is None


def test_equal_weights_give_the_plain_standard_error() -> None:
    values = [0.1, 0.5, 0.9, 0.3]
    assert standard_error(values) == pytest.approx(math.sqrt(0.35 / 3 / 4))
    every, mean = np.array([*values, 7.0]), 0.45
    weights = np.array([2.0, 2.0, 2.0, 2.0, 0.0])
    assert weighted_standard_error(every, weights, mean) == pytest.approx(standard_error(values))
    assert standard_error([0.7]) == 0.0
