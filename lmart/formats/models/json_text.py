"""JSON of models: strict, with one meaning for all that it says, or as other tools write it, deeply nested too."""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager

from lmart.errors import ModelError, quote
from lmart.strict_json import NotStrict, strict_json

BLANKS = " \t\r\n"
CUT = "the model ends in the middle; the file was cut, copy it again"
SHOWN = 30  # characters of a value or text in messages
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


def parse_json(content: bytes, path: str, strict: bool = False) -> object:
    """Return what JSON text says: dicts, lists, texts, numbers, true, false and null.

    strict : NaN, Infinity, a key that is given twice and deep nesting are refused; else the first two are numbers, the
             last value of a key counts, and brackets may be nested up to MOST_LEVELS, which takes no recursion

    ModelError in one line when it is no such JSON.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise ModelError("this is not UTF-8 text; the model is damaged", path, line) from None
    if not text.strip(BLANKS):
        raise ModelError("the file is empty", path)
    try:
        with _no_collection():
            return strict_json(text) if strict else json.loads(text)
    except json.JSONDecodeError as fault:
        if fault.msg.startswith("Unterminated string"):
            raise ModelError(CUT, path, fault.lineno) from None
        raise _refusal(text, fault.pos, path, is_more=fault.msg == "Extra data") from None
    except NotStrict as fault:
        raise ModelError(f"{fault}; the model is damaged", path) from None
    except RecursionError:
        return _parse_nested(text, path)
    except ValueError:  # an integer of thousands of digits
        raise ModelError("a number is too long; the model is damaged", path) from None


def shown(value: object) -> str:
    """Return a value for a message: a text without its quotes, an object or array by its kind only."""
    if isinstance(value, str):
        return quote(value, SHOWN)
    if value is None or isinstance(value, (bool, int, float)):
        return quote(json.dumps(value), SHOWN)
    return "an object" if isinstance(value, dict) else "a list"


def spelled(value: object) -> str:
    """Return a value for a message as JSON spells it, cut when it is long: where a text must not look like a number."""
    return quote(json.dumps(value))


def refuse_unknown_keys(
    found: Iterable[str], allowed: Container[str], where: str, path: str, tool: str = "lmart"
) -> None:
    """Raise ModelError for a key that is not allowed, as the tool that wrote it may score by it.

    allowed : those that are obeyed, or cannot change a score
    """
    for key in found:
        if key not in allowed:
            raise ModelError(f"{where} has the key {quote(key, SHOWN)}, which {tool} does not know", path)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch the search for unused cycles off: there are none in JSON, and it takes more time than the parsing."""
    was_on = gc.isenabled()
    try:  # already here: an interrupt may come at once
        gc.disable()
        yield
    finally:
        if was_on:
            gc.enable()


def _refusal(text: str, position: int, path: str, is_more: bool = False) -> ModelError:
    """Return the refusal of a text that is no JSON from a place on."""
    line = text.count("\n", 0, position) + 1
    rest = text[position:].lstrip(BLANKS)[:200].rstrip(BLANKS)
    if not rest:
        return ModelError(CUT, path, line)
    column = position - text.rfind("\n", 0, position)
    token = quote(rest.split("\n", 1)[0].rstrip("\r"), SHOWN)
    what = "there is more after the end of the model" if is_more else "this is not valid JSON"
    return ModelError(f"{what}, at column {column}: {token}; the model is damaged", path, line)


def _parse_nested(text: str, path: str) -> object:
    """Return what the text says, by an explicit stack: for texts that are nested more deeply than json.loads takes."""
    outermost: list[object] = []
    levels: list[dict[str, object] | list[object]] = [outermost]  # the objects and arrays that are open
    key, expects = "", "value"
    position, end = 0, len(text.rstrip(BLANKS))
    while position < end:
        found = TOKEN.match(text, position)
        if found is None:
            raise _refusal(text, position, path)
        here, kind = levels[-1], found.lastgroup or ""
        token, closing = found[kind], "}" if isinstance(here, dict) else "]"
        match expects:
            case "value" | "value or end" if kind != "mark" or token in "{[":
                value = _value(kind, token)
                if isinstance(here, dict):
                    here[key] = value
                else:
                    here.append(value)
                expects = "comma or end"
                if isinstance(value, dict | list):
                    levels.append(value)
                    expects = "key or end" if token == "{" else "value or end"
            case "key" | "key or end" if kind == "text":
                key, expects = json.loads(token), "colon"
            case "colon" if token == ":":
                expects = "value"
            case "comma or end" if token == "," and here is not outermost:
                expects = "key" if isinstance(here, dict) else "value"
            case "key or end" | "value or end" | "comma or end" if token == closing and here is not outermost:
                levels.pop()
                expects = "comma or end"
            case _:
                raise _refusal(text, found.start(kind), path)
        if len(levels) - 1 > MOST_LEVELS:
            raise ModelError(f"brackets are nested more than {MOST_LEVELS:,} deep; the model is damaged", path)
        position = found.end()
    if len(levels) > 1 or not outermost:
        raise ModelError(CUT, path)
    return outermost[0]


def _value(kind: str, token: str) -> object:
    """Return what a token says that is a value by itself, or begins as an empty object or array."""
    if kind == "mark":
        return {} if token == "{" else []
    if kind == "text":
        written: str = json.loads(token)
        return written
    if kind == "word":
        return WORDS[token]
    return int(token) if kind == "whole" else float(token)
