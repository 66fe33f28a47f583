"""Logarithms of bins, and scores that are sums of step functions."""

from __future__ import annotations

import numpy as np
import pytest
import reference.linear
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.ranking.step_functions import add_bin_values, write_signed_logs


@given(st.lists(st.floats(-1e300, 1e300), max_size=20))
def test_logarithms_are_those_of_the_slow_twin(values: list[float]) -> None:
    logs = np.empty(len(values))
    write_signed_logs(np.array(values), logs)
    assert logs.tolist() == pytest.approx([reference.linear.signed_log(x) for x in values], rel=1e-13)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20))
def test_logarithms_rise_with_values(values: list[float]) -> None:
    values.sort()
    logs = np.empty(len(values))
    write_signed_logs(np.array([*values[:-1], np.nextafter(values[-2], np.inf)]), logs)
    assert (np.diff(logs) >= 0).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12), st.integers(0, 2))
def test_scores_are_those_of_the_slow_twin(bins: list[tuple[int, int]], split: int) -> None:
    values, usual, starts = [[1.0, -2.0, 4.0], [0.5, 0.25, 8.0, -1.0]], (1, 2), (0, 3)
    others = [[starts[f] + b for f, b in enumerate(row) if b != usual[f]] for row in bins]
    offsets = np.cumsum([0, *map(len, others)])
    differences = np.array([one - of[usual[f]] for f, of in enumerate(values) for one in of])
    scores = np.arange(len(bins), dtype=np.float64)
    arrays = offsets, np.array([b for row in others for b in row], np.uint16), -2.0 + 8.0, differences
    middle = min(split, len(bins))
    add_bin_values(*arrays, 0, middle, scores)
    add_bin_values(*arrays, middle, len(bins), scores)
    assert scores.tolist() == reference.linear.add_bin_values(bins, values, list(range(len(bins))))
