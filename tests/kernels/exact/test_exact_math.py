"""Functions of one number against those of the standard library."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.exact import exact_math


@given(x=st.floats(0, 700))
def test_exp_minus(x: float) -> None:
    assert exact_math.exp_minus(x) == pytest.approx(math.exp(-x), rel=1e-12)


def test_exp_minus_ends_at_zero() -> None:
    assert exact_math.exp_minus(0.0) == 1 and exact_math.exp_minus(700.0) > 0 and exact_math.exp_minus(701.0) == 0


@given(st.floats(0, 1e9))
def test_log2_of_one_plus(x: float) -> None:
    assert exact_math.log2_of_one_plus(x) == pytest.approx(math.log1p(x) / math.log(2), rel=1e-14, abs=1e-300)
