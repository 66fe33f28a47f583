"""JSON of other tools: NaN and Infinity are taken where a tool writes them, and trees may be nested deeply."""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lmart.errors import ModelError, quote

BLANKS = " \t\r\n"
CUT = "the model ends in the middle; the file was cut, copy it again"
MOST_LEVELS = 20_000  # of brackets: more than any tree that was trained

TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<mark>[{}\[\],:])"
    r'|(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<whole>-?(?:0|[1-9]\d{0,400})(?![\d.eE]))"
    r"|(?P<real>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"|(?P<word>true|false|null|NaN|-?Infinity))",
    re.ASCII,
)
WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def json_start(start: bytes) -> str:
    """Return the first bytes of a file as text, without byte-order mark and leading blanks; '' when it is no text."""
    return start.removeprefix(codecs.BOM_UTF8).decode("utf-8", "ignore").lstrip(BLANKS)


def parse_json(content: bytes, path: str) -> Any:
    """Return what the JSON text says; ModelError in one line when it is no JSON. Nesting takes no recursion."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise ModelError("this is no UTF-8 text; the model is damaged", path, line) from None
    if not text.strip(BLANKS):
        raise ModelError("the file is empty", path)
    try:
        with _no_collection():
            return json.loads(text)
    except json.JSONDecodeError as fault:
        if fault.msg.startswith("Unterminated string"):
            raise ModelError(CUT, path, fault.lineno) from None
        raise _refusal(text, fault.pos, path) from None
    except RecursionError:
        return _parse_nested(text, path)
    except ValueError:  # an integer of thousands of digits
        raise ModelError("a number of the file is too long; the model is damaged", path) from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch the search for unused cycles off: there are none in JSON, and it takes more time than the parsing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _refusal(text: str, position: int, path: str) -> ModelError:
    """Return the refusal of a text that is no JSON from `position` on."""
    rest = text[position : position + 200].strip(BLANKS)
    if not rest:
        return ModelError(CUT, path)
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    token = quote(rest.split("\n", 1)[0].rstrip("\r"), 30)
    return ModelError(f"this is not valid JSON, at column {column}: {token}; the model is damaged", path, line)


class _Level:
    """An object or array that is being read: its value, the key that waits, and what may come next."""

    __slots__ = ("expects", "key", "value")

    def __init__(self, is_object: bool) -> None:
        self.value: dict[str, Any] | list[Any] = {} if is_object else []
        self.key = ""
        self.expects = "key or end" if is_object else "value or end"

    def add(self, value: Any) -> None:
        """Add a value of an array, or that of the waiting key."""
        if isinstance(self.value, dict):
            self.value[self.key] = value
        else:
            self.value.append(value)
        self.expects = "comma or end"


def _parse_nested(text: str, path: str) -> Any:
    """Return what the text says, by an explicit stack: for texts that are nested more deeply than json.loads takes."""
    levels: list[_Level] = []
    outermost = _Level(False)
    outermost.expects = "value"
    position, end = 0, len(text.rstrip(BLANKS))
    while position < end:
        found = TOKEN.match(text, position)
        if found is None:
            raise _refusal(text, position, path)
        here = levels[-1] if levels else outermost
        kind = found.lastgroup or ""
        token = found.group(kind)
        if not _step(here, levels, outermost, (kind, token)):
            raise _refusal(text, found.start(kind), path)
        if len(levels) > MOST_LEVELS:
            raise ModelError(f"brackets are nested more than {MOST_LEVELS:,} deep; the model is damaged", path)
        position = found.end()
    if levels or not isinstance(outermost.value, list) or not outermost.value:
        raise ModelError(CUT, path)
    return outermost.value[0]


def _step(here: _Level, levels: list[_Level], outermost: _Level, token: tuple[str, str]) -> bool:
    """Take one token; return whether it may stand there."""
    kind, text = token
    is_object = isinstance(here.value, dict)
    if kind == "mark" and text not in "{[":
        if text == ":" and here.expects == "colon":
            here.expects = "value"
        elif text == "," and here.expects == "comma or end" and levels:
            here.expects = "key" if is_object else "value"
        elif levels and text == ("}" if is_object else "]") and here.expects.endswith("end"):
            (levels[-2] if len(levels) > 1 else outermost).add(levels.pop().value)
        else:
            return False
        return True
    if is_object and here.expects.startswith("key"):
        if kind != "text":
            return False
        here.key, here.expects = json.loads(text), "colon"
        return True
    if not here.expects.startswith("value"):
        return False
    if kind == "mark":
        levels.append(_Level(text == "{"))
        return True
    here.add(_value(kind, text))
    return True


def _value(kind: str, text: str) -> Any:
    """Return what a token says that is a value by itself."""
    if kind == "text":
        return json.loads(text)
    if kind == "word":
        return WORDS[text]
    return int(text) if kind == "whole" else float(text)
