"""Strict JSON, as all model files in JSON are read: no NaN, no key twice, and one clear line for what is wrong."""

from __future__ import annotations

import json
from typing import NoReturn

from lmart.errors import ModelError, quote

BLANKS = " \t\r\n"  # of JSON


def parse_json(text: str, path: str) -> object:
    """Return what JSON text says: dicts, lists, texts, numbers, true, false and null.

    text : the whole content of a model file
    path : what to call it in messages
    ModelError when it is no strict JSON.
    """

    def refuse_literal(literal: str) -> NoReturn:
        """Refuse NaN and Infinity, which Python takes and JSON does not have."""
        raise ModelError(f"{quote(literal)} is no JSON number; the model is damaged", path)

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Return an object; refuse a key that is given twice."""
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise ModelError(f"the key {quote(twice)} is given twice; the model is damaged", path)
        return found

    try:
        parsed: object = json.loads(text, object_pairs_hook=unique, parse_constant=refuse_literal)
        return parsed
    except json.JSONDecodeError as fault:
        rest = text[fault.pos :].strip(BLANKS)
        if not rest or fault.msg.startswith("Unterminated string"):
            raise ModelError(
                "the model ends in the middle; the file was cut, copy it again", path, fault.lineno
            ) from None
        what = "there is more after the end of the model" if fault.msg == "Extra data" else "this is not valid JSON"
        token = quote(rest.split("\n", 1)[0].rstrip("\r"), 30)
        raise ModelError(
            f"{what}, at column {fault.colno}: {token}; the model is damaged", path, fault.lineno
        ) from None
    except (RecursionError, ValueError):  # nested without end, or an integer of thousands of digits
        raise ModelError("the model is damaged: brackets nested too deep, or a number too long", path) from None


def shown(value: object) -> str:
    """Return a value as messages show it: as JSON, in quotes, cut when it is long."""
    return quote(json.dumps(value))
