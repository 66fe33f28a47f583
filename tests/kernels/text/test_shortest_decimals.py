"""Numbers as the kernels write them, against repr()."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest
import reference.row_text
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.text import shortest_decimals

POWERS = shortest_decimals.powers_of_ten()


def text_of(number: float) -> str:
    out = np.full(shortest_decimals.LONGEST_NUMBER + shortest_decimals.STORE_MARGIN, ord("x"), np.uint8)
    length = shortest_decimals.write_one_number(out, number, POWERS)
    assert length <= shortest_decimals.LONGEST_NUMBER
    return out[:length].tobytes().decode()


PLANTED = {
    0.0: "0",
    -7.0: "-7",
    0.5: "0.5",
    -0.0001: "-0.0001",
    0.00001: "1e-05",
    -0.000123: "-0.000123",
    12345.678: "12345.678",
    99999999.5: "99999999.5",
    100000000.5: "100000000.5",
    999999999999999.0: "999999999999999",
    1e15: "1000000000000000",
    9999999999999998.0: "9999999999999998",
    1e16: "1e+16",
    1.5e300: "1.5e+300",
    0.1 + 0.2: "0.30000000000000004",
    5e-324: "5e-324",
    2.2250738585072014e-308: "2.2250738585072014e-308",
    1.7976931348623157e308: "1.7976931348623157e+308",
    2.0**-44: "5.684341886080802e-14",
    9007199254740993.0: "9007199254740992",
    math.inf: "inf",
    -math.inf: "-inf",
}


@pytest.mark.parametrize(("number", "text"), PLANTED.items())
def test_planted_numbers(number: float, text: str) -> None:
    assert text_of(number) == text


def test_nan_has_no_sign() -> None:
    assert text_of(math.nan) == text_of(-math.nan) == "nan"


def test_zero_has_no_sign() -> None:
    assert text_of(-0.0) == "0"


def test_powers_of_two_and_their_neighbours() -> None:
    """There the interval that is read as the number is not symmetric."""
    for exponent in range(-1074, 1024):
        power = math.ldexp(1.0, exponent)
        for number in (power, math.nextafter(power, 0.0), math.nextafter(power, math.inf)):
            assert text_of(number) == reference.row_text.number(number)


def test_random_bits_and_decimals() -> None:
    draw = random.Random(1)
    for _ in range(5_000):
        for number in (
            struct.unpack("<d", draw.getrandbits(64).to_bytes(8, "little"))[0],
            round(draw.random() * 10 ** draw.randint(-3, 9), draw.randint(0, 12)),
            draw.random() * 10.0 ** draw.randint(-8, 20),
            float(draw.getrandbits(draw.randint(1, 64))),
            -float(f"{draw.random():.{draw.randint(1, 17)}g}"),
        ):
            assert text_of(number) == reference.row_text.number(number)


@given(st.floats())
def test_any_number_reads_back_equal(number: float) -> None:
    text = text_of(number)
    assert text == reference.row_text.number(number)
    assert float(text) == number or math.isnan(number)
