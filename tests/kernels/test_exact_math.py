"""Functions of one number against those of the standard library."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels import exact_math

BOTH = pytest.mark.parametrize("exp_minus", [exact_math.exp_minus, exact_math.exp_minus_by_squaring])


@BOTH
@given(x=st.floats(0, 700))
def test_exp_minus(exp_minus: Callable[[float], float], x: float) -> None:
    assert exp_minus(x) == pytest.approx(math.exp(-x), rel=1e-12)


@BOTH
def test_exp_minus_ends_at_zero(exp_minus: Callable[[float], float]) -> None:
    assert exp_minus(0.0) == 1 and exp_minus(700.0) > 0 and exp_minus(701.0) == 0


@given(st.floats(0, 1e9))
def test_log2_of_one_plus(x: float) -> None:
    assert exact_math.log2_of_one_plus(x) == pytest.approx(math.log1p(x) / math.log(2), rel=1e-14, abs=1e-300)
