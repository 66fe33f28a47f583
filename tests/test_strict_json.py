"""The door to JSON that has one meaning."""

from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.strict_json import NotStrict, check_numbers, strict_json

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(DOCUMENTS)
def test_what_is_written_reads_back(document: object) -> None:
    for text in (json.dumps(document), json.dumps(document, ensure_ascii=False)):
        assert strict_json(text) == strict_json(b"\xef\xbb\xbf" + text.encode()) == document


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "the key 'c' is given twice"),
        ("[NaN]", "'NaN' is no JSON number"),
        ("[-Infinity]", "'-Infinity' is no JSON number"),
        ("[" * 200_000, "brackets are nested too deep"),
        ("1" * 5000, "a number is too long"),
    ],
)
def test_json_without_one_meaning_is_refused(text: str, words: str) -> None:
    with pytest.raises(NotStrict, match=f"^{words}$"):
        strict_json(text)


@pytest.mark.parametrize("text", ["", "{", "x", "[1] 2", "\ufeff\ufeff1", b"\xff", "[1]".encode("utf-16")])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError) as fault:  # of any words
        strict_json(text)
    assert not isinstance(fault.value, NotStrict)


@pytest.mark.parametrize("number", [1e400, -1e400, 10**309, -(10**400), math.nan])
def test_numbers_beyond_every_float_are_found_at_any_depth(number: float) -> None:
    check_numbers({"a": [1, 1e308, -(10**308), True, "x", None]})
    with pytest.raises(NotStrict, match="a number is too large"):
        check_numbers({"a": [{"b": number}]})


def test_many_keys_are_looked_up_once() -> None:
    text = "{" + ",".join(f'"k{i}":1' for i in range(200_000)) + ',"z":1,"z":2}'
    began = time.process_time()
    with pytest.raises(NotStrict, match="'z'"):
        strict_json(text)
    assert time.process_time() - began < 5.0
