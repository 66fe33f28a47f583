"""Numbers as the kernels write them, against repr()."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence

import numpy as np
import reference.row_text
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.text.row_text import RowsToWrite, Texts, write_table_rows
from lmart.kernels.text.shortest_decimals import LONGEST_NUMBER, STORE_MARGIN, powers_of_ten

POWERS = powers_of_ten()


def texts_of(numbers: Sequence[float]) -> list[str]:
    """Return numbers as they are written as the labels of rows without features."""
    n, none = len(numbers), Texts(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    cells = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    rows = RowsToWrite(np.array(numbers, np.float64), np.array([0, n]), none, none, *cells)
    out = np.full(n * (LONGEST_NUMBER + 1) + STORE_MARGIN, ord("x"), np.uint8)
    length = write_table_rows(rows, 0, n, 0, ord(","), False, POWERS, out)
    return out[:length].tobytes().decode().splitlines()


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


def test_planted_numbers() -> None:
    assert texts_of(list(PLANTED)) == list(PLANTED.values())


def test_nan_and_zero_have_no_sign() -> None:
    assert texts_of([math.nan, -math.nan, -0.0]) == ["nan", "nan", "0"]


def test_powers_of_two_and_their_neighbours() -> None:
    """There the interval that is read as the number is not symmetric."""
    powers = [math.ldexp(1.0, exponent) for exponent in range(-1074, 1024)]
    numbers = [*powers, *(math.nextafter(power, end) for power in powers for end in (0.0, math.inf))]
    assert texts_of(numbers) == list(map(reference.row_text.number, numbers))


def test_random_bits_and_decimals() -> None:
    draw = random.Random(1)
    numbers = [
        number
        for _ in range(5_000)
        for number in (
            struct.unpack("<d", draw.getrandbits(64).to_bytes(8, "little"))[0],
            round(draw.random() * 10 ** draw.randint(-3, 9), draw.randint(0, 12)),
            draw.random() * 10.0 ** draw.randint(-8, 20),
            float(draw.getrandbits(draw.randint(1, 64))),
            -float(f"{draw.random():.{draw.randint(1, 17)}g}"),
        )
    ]
    assert texts_of(numbers) == list(map(reference.row_text.number, numbers))


@given(st.floats())
def test_any_number_reads_back_equal(number: float) -> None:
    (text,) = texts_of([number])
    assert text == reference.row_text.number(number)
    assert float(text) == number or math.isnan(number)
