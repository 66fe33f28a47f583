"""The reading kernels against their slow twins and Python's float()."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest
import reference.letor
from helpers.reading import hard_decimals, plain_decimals, wrong_decimals
from hypothesis import example, given
from hypothesis import strategies as st

from lmart.kernels.text import decimals, feature_ids

POWERS = decimals.powers_of_five()
ENDINGS = (b" ", b"\t", b"\n", b"\r", b"#")


def parsed(token: bytes, ending: bytes = b" ") -> float | None:
    """What the kernel reads: float() where it leaves the last bit to that, None where it is no number."""
    text = np.frombuffer(token + ending + b"\n", np.uint8)
    status, value, stop = decimals.parse_number(text, 0, POWERS, 10)
    if status == decimals.WRONG:
        return None
    assert stop == len(token)
    return float(token) or 0.0 if status == decimals.HARD else value


def bits(number: float | None) -> bytes | None:
    return None if number is None else b"nan" if math.isnan(number) else struct.pack("<d", number)


WORDS = (
    "0 1 -1 +1 007 1. .5 -.5 +.5 0.1 1e5 1E5 1e+05 1e-05 1.e1 .1e1 1e308 1.7976931348623157e308 1.7976931348623159e308 "
    "1e309 -1e309 1e400 -1e400 4.9e-324 2.4703282292062327e-324 2.4703282292062328e-324 1e-400 -1e-400 "
    "2.2250738585072011e-308 2.2250738585072014e-308 9007199254740993 9007199254740992.5 9007199254740993e22 "
    "123456789012345678901234567890 0.000000000000000000000000000000123456789012345678901 "
    "1e23 8.5e22 9e22 1e22 1e-22 1e-23 5e-324 1e999999999999999999999 0e999999999999999999999 1e-99999999999999 "
    "18446744073709551615 18446744073709551616 9999999999999999999 99999999999999999999 0.3 "
    "1.00000000000000011102230246251565404236316680908203125 1.00000000000000011102230246251565404236316680908203124 "
    "1.00000000000000011102230246251565404236316680908203126 nan NaN -nan +NAN inf -inf Infinity -INFINITY "
    "1_000 0,5 0x10 NA null infinit in i na n nanx infx 1e 1e+ 1e- e5 . - + +- -+1 1.2.3 1-2 1..2 .e1 ½ 1d5 1f "
    "--1 1e1.5 inf1"
)
TOKENS = WORDS.split()


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_spelling_is_read_as_float_reads_it_or_refused(ending: bytes) -> None:
    for token in (word.encode() for word in [*TOKENS, ""]):
        assert bits(parsed(token, ending)) == bits(reference.letor.number(token)), token


@pytest.mark.slow
def test_random_and_hard_decimals_have_the_bits_of_float() -> None:
    for token in hard_decimals(5_000, 1):
        assert bits(parsed(token)) == bits(float(token) or 0.0), token
    assert wrong_decimals(hard_decimals(200_000, 2)) == []  # millions: tests/bench/fuzzing.py --decimals


@pytest.mark.parametrize("in_a_row", [1, 3, 8, 136, 700])
def test_plain_decimals_have_the_bits_of_float_side_by_side(in_a_row: int) -> None:
    assert wrong_decimals(plain_decimals(5_000, in_a_row), in_a_row) == []


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 4))
@example(0, 0)
def test_any_decimal_has_the_bits_of_float(number: object, ending: int) -> None:
    token = str(number).encode()
    assert bits(parsed(token, ENDINGS[ending])) == bits(float(token) or 0.0)


def test_few_numbers_are_left_to_python() -> None:
    tokens = [repr(random.Random(7).random() * 10.0**e).encode() for e in range(-300, 300)]
    text = [np.frombuffer(token + b"\n", np.uint8) for token in tokens]
    assert all(decimals.parse_number(number, 0, POWERS, 10)[0] == decimals.EXACT for number in text)


def test_the_delimiter_ends_a_number() -> None:
    text = np.frombuffer(b"1.5,2\n", np.uint8)
    assert decimals.parse_number(text, 0, POWERS, ord(",")) == (decimals.EXACT, 1.5, 3)
    assert decimals.parse_number(text, 0, POWERS, 10)[0] == decimals.WRONG


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 20), max_size=60))
def test_ids_get_columns_in_the_order_of_their_first_appearance(ids: list[int]) -> None:
    keys, columns = np.full(256, -1, np.int64), np.zeros(256, np.int32)
    first_ids, out = np.empty(64, np.int64), np.empty(len(ids), np.int32)
    count = feature_ids.register_ids(np.array(ids, np.int64), keys, columns, first_ids, 0, out)
    first = list(dict.fromkeys(ids))
    assert first_ids[:count].tolist() == first
    assert out.tolist() == [first.index(feature_id) for feature_id in ids]


def test_ids_with_equal_low_or_high_bits_do_not_pile_up() -> None:
    for ids in (np.arange(2000) << 40, np.arange(2000) << 8, np.arange(2000)):
        keys, columns = np.full(4096, -1, np.int64), np.zeros(4096, np.int32)
        feature_ids.register_ids(ids, keys, columns, np.empty(2000, np.int64), 0, np.empty(2000, np.int32))
        taken = np.flatnonzero(keys != -1)
        assert np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
        assert max(map(len, np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1))) < 400


def test_columns_are_resolved_and_renumbered_in_a_slice() -> None:
    columns = np.array([-1, 0, -2, -1], np.int32)
    feature_ids.resolve_columns(columns, 1, 4, np.array([7, 9], np.int32))
    assert columns.tolist() == [-1, 0, 9, 7]
    feature_ids.renumber_columns(columns, 1, 2, np.array([5], np.int32))
    assert columns.tolist() == [-1, 5, 9, 7]
