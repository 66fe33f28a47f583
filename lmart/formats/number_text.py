"""Numbers as text."""

from __future__ import annotations


def shortest(number: float) -> str:
    """Return the shortest text that reads back equal; whole numbers without a point, minus zero as 0."""
    text = repr(number)
    if text.endswith(".0"):
        text = text[:-2]
        return "0" if text == "-0" else text
    return text
