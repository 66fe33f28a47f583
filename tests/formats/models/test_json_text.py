"""JSON of model files: what strict reading refuses, and what tools may write."""

from __future__ import annotations

import gc
import math

import pytest
from helpers.foreign_models import refusal

from lmart.formats.models.json_text import parse_json, shown, spelled

DEEP = b"[" * 5_000 + b"]" * 5_000


def strictly(content: bytes, path: str) -> object:
    return parse_json(content, path, strict=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": NaN}', "'NaN' is no JSON number"),
        (b'{"a": -Infinity}', "'-Infinity' is no JSON number"),
        (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' is given twice"),
        (DEEP, "brackets are nested too deep"),
    ],
)
def test_strict_reading_refuses_what_other_tools_may_write(content: bytes, words: str) -> None:
    assert words in refusal(strictly, content)
    parse_json(content, "file")


def test_other_tools_numbers_keys_and_nesting_mean_what_they_mean_there() -> None:
    found = parse_json(b'{"a": 1, "a": [NaN, -Infinity]}', "file")
    assert isinstance(found, dict)
    assert math.isnan(found["a"][0]) and found["a"][1] == -math.inf
    inner, levels = parse_json(DEEP, "file"), 0
    while inner:
        assert isinstance(inner, list)
        inner, levels = inner[0], levels + 1
    assert levels == 4_999


@pytest.mark.parametrize("read", [strictly, parse_json])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a":\n [1, ', "file:2: the model ends in the middle"),
        (b'{"a":\n "b', "file:2: the model ends in the middle"),
        (b'{"a":\n [1,, 2]}', "file:2: this is not valid JSON, at column 5: ', 2]}'"),
        (b'{"a": 1}\n{"b": 2}', "file:2: there is more after the end of the model, at column 1: '{\"b\": 2}'"),
        (b'{"a":\n "\xff"}', "file:2: this is not UTF-8 text"),
        (b"[" + b"1" * 5000 + b"]", "a number is too long"),
        (b" \r\n", "the file is empty"),
    ],
)
def test_what_is_no_json_is_refused_in_one_line(read: object, content: bytes, words: str) -> None:
    assert words in refusal(read, content)


def test_values_in_messages() -> None:
    values: list[object] = ["1", 1, None, True, [1], {}]
    assert list(map(shown, values)) == ["'1'", "'1'", "'null'", "'true'", "a list", "an object"]
    assert list(map(spelled, values)) == ["'\"1\"'", "'1'", "'null'", "'true'", "'[1]'", "'{}'"]


def test_an_interrupt_leaves_the_collection_of_garbage_on(monkeypatch: pytest.MonkeyPatch) -> None:
    disable = gc.disable

    def interrupted() -> None:
        disable()
        raise KeyboardInterrupt

    monkeypatch.setattr(gc, "disable", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parse_json(b"{}", "m.json")
    assert gc.isenabled()
