"""Numbers as whole multiples of a power of two."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmart.measures.whole_numbers import BITS, whole_numbers

VALUES = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=12)


@given(VALUES, st.booleans())
def test_values_are_rounded_to_the_unit_and_sums_fit(values: list[float], bound_sum: bool) -> None:
    whole, exponent = whole_numbers(np.array(values), bound_sum)
    unit = Fraction(2) ** exponent
    for value, number in zip(values, whole.tolist(), strict=True):
        assert abs(Fraction(value) - number * unit) <= unit / 2
    absolute = [abs(number) for number in whole.tolist()]
    assert max(absolute, default=0) <= 2**BITS
    if bound_sum:
        assert sum(absolute) <= 2**BITS + len(values)


def test_short_numbers_are_exact_at_any_size() -> None:
    for scale in (-1000, 0, 900):
        values = np.ldexp(np.array([0.5, -3.25, 1024.0]), scale)
        whole, exponent = whole_numbers(values, bound_sum=True)
        assert [math.ldexp(number, exponent) for number in whole.tolist()] == values.tolist()
    assert whole_numbers(np.zeros(3), True)[0].tolist() == [0, 0, 0]
    assert whole_numbers(np.array([]), True)[0].tolist() == []
