"""JSON with one meaning: the one door for the documents that lmart writes itself, and for settings.

A key is there once, and NaN and Infinity are no numbers.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

from lmart.errors import first_repeated, quote


class NotStrict(ValueError):
    """Why a text is JSON, but not with one meaning; a clause for a message."""


def strict_json(text: str | bytes) -> Any:
    """Return what JSON text says.

    ValueError when it is no JSON: NotStrict when it is, but with more than one meaning or none.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_literal)
    except RecursionError:
        raise NotStrict("brackets are nested too deep") from None
    except (json.JSONDecodeError, NotStrict):
        raise
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise NotStrict("a number is too long") from None


def check_numbers(document: object) -> None:
    """Raise NotStrict when a number of a document is more than a float64 can hold."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float | int) and not abs(value) <= sys.float_info.max:
            raise NotStrict("a number is too large")
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _refuse_literal(literal: str) -> NoReturn:
    raise NotStrict(f"{quote(literal)} is no JSON number")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotStrict(f"the key {quote(first_repeated(key for key, _ in pairs) or '')} is given twice")
    return found
