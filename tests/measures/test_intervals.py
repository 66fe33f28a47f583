"""Means of measures: standard errors and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmart.measures.intervals import (
    _gamma_ratio,
    _student_share,
    interval_of_mean,
    standard_error,
    student_p,
    student_quantile,
    weighted_standard_error,
)


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


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [
        (0.0, 7, 1.0),
        (1.0, 1, 0.5),  # the Cauchy distribution
        (1e-8, 1, 1 - 2e-8 / math.pi),
        (-math.sqrt(2), 2, 1 - math.sqrt(0.5)),  # 1 - t / sqrt(2 + t^2)
        (30.0, 2, 1 - 30 / math.sqrt(902)),
        (2.9154759474, 9, 0.0171576592),
        (1.959963985, 10**9, 0.05),  # the normal distribution
        (8.0, 10**9, 1.2441921148543573e-15),
        (math.inf, 3, 0.0),
        (1e200, 3, 0.0),
    ],
)
def test_p_of_student(t: float, freedom: int, p: float) -> None:
    assert student_p(t, freedom) == pytest.approx(p, rel=1e-7)
    assert student_p(-t, freedom) == student_p(t, freedom)


def test_the_series_of_gamma_continues_gamma() -> None:
    for a in (100.5, 101.0, 130.25, 170.0):
        assert _gamma_ratio(a) == pytest.approx(math.gamma(a + 0.5) / math.gamma(a), rel=3e-14)


@pytest.mark.parametrize("freedom", [1, 2, 3, 30, 199, 200, 201, 999])
def test_p_is_that_of_finite_sums(freedom: int) -> None:
    for t in (0.01, 0.3, 1.0, 1.7, 1.8, 2.5, 4.0):
        inside = _student_share(math.atan(t / math.sqrt(freedom)), freedom)
        assert student_p(t, freedom) == pytest.approx(1 - inside, rel=1e-10)


@pytest.mark.peers
def test_p_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 4, 99, 198, 201, 31_530, 1_000_000, 5_000_000):
        for t in (0.001, 0.5, 1.7, 1.8, 2.0, 5.0, 30.0):
            assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9)
