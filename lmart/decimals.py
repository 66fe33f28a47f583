"""Numbers as people write them: one grammar for options, settings, gains, measures and files, and their bounds.

Digits are those of ASCII, a point may stand before, between or behind them, and an exponent may follow: 5, 2., .5,
-1e3. What Python takes besides, such as 1_000, other digits, blanks, nan and infinity, is no number.
"""

from __future__ import annotations

import re

MOST_COUNTED = 2**31 - 1  # of trees, documents, threads and whatever else is counted, where nothing else bounds it
LARGEST_REAL = 1e300

ODD = re.compile(rb"[^0-9+\-.eE]")  # characters that no decimal has, though float() takes them

_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TEXT = re.compile(_DECIMAL)
_BYTES = re.compile(_DECIMAL.encode())
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")  # Python limits the digits of a number that it reads


def is_decimal(text: str | bytes) -> bool:
    """Return whether a text is a decimal number, of any size."""
    return (_TEXT.fullmatch(text) if isinstance(text, str) else _BYTES.fullmatch(text)) is not None


def decimal(text: str | bytes) -> float | None:
    """Return the finite number that a text is; None when it is none."""
    number = float(text) if is_decimal(text) else float("inf")
    return number if abs(number) < float("inf") else None


def whole(text: str) -> int | None:
    """Return the whole number that a text is; None when it is none, or has more than 400 digits."""
    return int(text) if _WHOLE.fullmatch(text) else None


def shortest(number: float) -> str:
    """Return the shortest text that reads back equal; whole numbers without a point, minus zero as 0."""
    text = repr(number)
    if text.endswith(".0"):
        text = text[:-2]
        return "0" if text == "-0" else text
    return text
