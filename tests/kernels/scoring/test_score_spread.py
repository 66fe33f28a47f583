"""Sums of squared distances from the mean score of a query."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lmart.kernels.scoring.score_spread import sum_query_squares


def test_squares_of_planted_scores() -> None:
    scores, offsets = np.array([1.0, 3.0, 5.0, 5.0, -2.0, 2.0]), np.array([0, 2, 4, 6])
    assert sum_query_squares(scores, offsets, 0.0) == 2 * 1.0 + 0.0 + 2 * 4.0


def test_a_sum_that_goes_on_has_the_bits_of_one_sum() -> None:
    scores = np.random.default_rng(2).normal(size=60)
    offsets = np.array([0, 7, 30, 41, 60])
    expected = sum_query_squares(scores, offsets, 0.0)
    sum_so_far = sum_query_squares(scores[:30], offsets[:3], 0.0)
    assert sum_query_squares(scores[30:], offsets[2:] - 30, sum_so_far) == expected
    means = [scores[a:b].mean() for a, b in pairwise(offsets)]
    assert expected == pytest.approx(((scores - np.repeat(means, np.diff(offsets))) ** 2).sum())
