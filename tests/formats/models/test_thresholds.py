"""A threshold taken to another format puts every value on the side that it had."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lmart.formats.models.thresholds import LARGEST32, of_less32, of_less_or_equal32, round_down32, round_up32

FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def around(threshold: float, exact: float) -> list[float]:
    """The threshold, the exact one, and their neighbours."""
    return [float(np.nextafter(x, to)) for x in (threshold, exact) for to in (-np.inf, x, np.inf)]


@given(FLOAT32)
@example(0.0)
@example(-0.0)
@example(1e-45)
@example(-1e-45)
@example(1.0)
@example(float(LARGEST32))
@example(-float(LARGEST32))
@example(-math.inf)
def test_float64_follows_a_comparison_in_float32(number: float) -> None:
    threshold = np.array([number], np.float32)
    less, less_or_equal = float(of_less32(threshold)[0]), float(of_less_or_equal32(threshold)[0])
    with np.errstate(over="ignore"):
        for x in around(number, less) + around(number, less_or_equal):
            if not math.isfinite(x) or (math.isinf(number) and x == -np.finfo(np.float64).max):
                continue  # thresholds are finite
            assert (np.float32(x) < threshold[0]) == (x <= less)
            assert (np.float32(x) <= threshold[0]) == (x <= less_or_equal)


@given(st.floats(-1e38, 1e38), FLOAT32)
def test_float32_values_keep_their_side(threshold: float, value: float) -> None:
    down, up = round_down32(np.array([threshold]))[0], round_up32(np.array([threshold]))[0]
    for x in (np.float32(value), down, up, np.nextafter(down, np.float32(-np.inf))):
        assert (float(x) <= threshold) == bool(x <= down) == bool(x < up)


@pytest.mark.parametrize(
    ("threshold", "down", "up"),
    [
        (0.1, 0.09999999403953552, 0.10000000149011612),
        (0.5, 0.5, 0.5000000596046448),
        (2.5000000000000004, 2.5, 2.500000238418579),
        (1.0000000180025095e-35, 1.0000000180025095e-35, 1.0000000897489909e-35),
        (0.0, 0.0, 1.401298464324817e-45),
        (1e300, float(LARGEST32), float(LARGEST32)),
    ],
)
def test_known_neighbours(threshold: float, down: float, up: float) -> None:
    assert round_down32(np.array([threshold]))[0] == np.float32(down)
    assert round_up32(np.array([threshold]))[0] == np.float32(up)


def test_known_middles() -> None:
    exact = [0.09999999776482582, 0.49999998509883875, 0.9999999701976775, 2.99999988079071]
    assert of_less32(np.array([0.1, 0.5, 1.0, 3.0], np.float32)).tolist() == exact
