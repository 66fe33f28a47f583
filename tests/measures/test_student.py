"""Means of measures: standard errors and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmart.measures.student import (
    _gamma_ratio,
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
    for freedom in (1, 2, 3, 10, 199, 200, 201, 202, 260, 340):
        a = freedom / 2
        assert _gamma_ratio(freedom) == pytest.approx(math.gamma(a + 0.5) / math.gamma(a), rel=3e-14)


def test_no_function_is_used_that_machines_round_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "atan", "pow", "gamma", "lgamma"):
        monkeypatch.setattr(math, name, None)
    found = [student_p(2.5, freedom) for freedom in (1, 2, 9, 200, 1000)]
    assert found[:3] == [0.2422378831816868, 0.12961172022151077, 0.033861827682985735]
    assert found[3:] == [0.013223172641700719, 0.012578567801091142]
    assert student_quantile(0.95, 4) == 2.7764451051977925
    assert interval_of_mean([0.1, 0.4, 0.35], 0.9, at_most_1=True) == (0.012370139095483124, 0.5542965275711835)


def _student_share(angle: float, freedom: int) -> float:
    """How likely a Student variable lies within the tangent of an angle times sqrt(freedom) of 0.

    Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    odd = freedom % 2
    cosine = math.cos(angle)
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


@pytest.mark.parametrize("freedom", [1, 2, 3, 30, 199, 200, 201, 999])
def test_p_is_that_of_finite_sums(freedom: int) -> None:
    for t in (0.01, 0.3, 1.0, 1.7, 1.8, 2.5, 4.0):
        inside = _student_share(math.atan(t / math.sqrt(freedom)), freedom)
        assert student_p(t, freedom) == pytest.approx(1 - inside, rel=1e-10)


@pytest.mark.peers
def test_quantiles_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 2, 4, 9, 99, 200, 201, 31_530):
        for level in (0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
            expected = stats.t.isf((1 - level) / 2, freedom)
            assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-9)


@pytest.mark.peers
def test_p_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 4, 99, 198, 201, 31_530, 1_000_000, 5_000_000):
        for t in (0.001, 0.5, 1.7, 1.8, 2.0, 5.0, 30.0):
            assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9)
