"""Numbers as text: one grammar for all that is typed, and for files of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.cli.options.types import Real, Whole
from lmart.decimals import ODD, decimal, is_decimal, whole
from lmart.errors import SettingsError, shown
from lmart.gains import Gain
from lmart.measures import parse_measure

NO_NUMBERS = ["", ".", "1_5", "\u0661", " 1", "1 ", "1\n", "nan", "inf", "infinity", "0x10", "1e", "e5", "1.5.2", "--1"]


@pytest.mark.parametrize(
    ("text", "number"), [("2.", 2), (".5", 0.5), ("+1e-3", 0.001), ("-0", 0), ("007", 7), ("1E2", 100)]
)
def test_forms_of_a_decimal(text: str, number: float) -> None:
    assert decimal(text) == decimal(text.encode()) == number
    assert is_decimal(text) and not ODD.search(text.encode())


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_python_takes_besides_is_no_number_at_any_door(text: str) -> None:
    assert decimal(text) is decimal(text.encode()) is whole(text) is None
    for kind in (Real(min=0), Whole(min=0)):
        with pytest.raises(Exception, match="is not a"):
            kind.convert(text, None, None)
    with pytest.raises(SettingsError, match="gain"):
        Gain.parse(f"0,1,3,7,{text}")
    for measure in (f"map(rel={text})", f"rbp({text})", f"ndcg@{text}", f"err(max={text})"):
        if text.strip() == text:  # blanks in brackets do not count
            with pytest.raises(SettingsError):
                parse_measure(measure)


def test_a_number_without_digits_behind_the_point_is_one_at_every_door() -> None:
    assert parse_measure("map(rel=2.)") == parse_measure("map(rel=+2)") == parse_measure("map(rel=2)")
    assert parse_measure("rbp(.9)") == parse_measure("rbp@9e-1")
    assert Gain.parse("0.,1,+3") == Gain.parse("0,1.,3")
    assert Real(min=0).convert("2.", None, None) == 2.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(number: float) -> None:
    assert decimal(repr(number)) == number


@pytest.mark.parametrize("digits", [309, 400, 401, 5000, 70_000])
def test_numbers_of_any_length_are_numbers_or_none(digits: int) -> None:
    text = "9" * digits
    assert is_decimal(text) and decimal(text) is None
    assert (whole(text) is None) == (digits > 400)
    with pytest.raises(Exception, match="is not a whole number from 1 to 2147483647"):
        Whole(min=1).convert(text, None, None)
    with pytest.raises(Exception, match=r"is not a number from 0 to 1e\+300"):
        Real(min=0).convert(text, None, None)


def test_values_in_messages_are_short_and_safe() -> None:
    assert shown([1, "x"]) == "[1, 'x']"
    assert shown("\x1b[31m") == r"'\x1b[31m'"
    assert len(shown(10**400)) == 60
    assert shown(10**5000) == shown([10**5000]) == "a number of thousands of digits"
