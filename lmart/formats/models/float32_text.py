"""float32 numbers from decimal text, rounded once, and as their shortest text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from lmart.array_types import Float32Array, Float64Array
from lmart.formats.models.thresholds import next32, previous32

_NUMBER = r"[ \t\r\n]*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?"
_DECIMAL = re.compile(_NUMBER + r"[ \t\r\n]*")
_JAVA = re.compile(rf"({_NUMBER})[fFdD]?[ \t\r\n]*")
LONGEST = 1000  # characters of a number


def is_decimal(text: str) -> bool:
    """Return whether a text is a plain decimal number: no infinity, no nan, no type letters."""
    return len(text) <= LONGEST and _DECIMAL.fullmatch(text) is not None


def java_decimal(text: str) -> str | None:
    """Return the plain decimal number in a text for Java's Float.parseFloat, which takes a type letter as in 1.5f."""
    found = _JAVA.fullmatch(text) if len(text) <= LONGEST else None
    return None if found is None else found[1]


def nearest32(texts: Sequence[str], numbers: Float64Array) -> Float32Array:
    """Return the float32 nearest to each decimal text, ties to even, as Java's Float.parseFloat; float32[n].

    texts   : n decimal numbers as `is_decimal` takes them; "" for a number that is exactly the float64
    numbers : float64[n], the float64 nearest to each; rounding these again errs only where one lies exactly between two
              float32 and the text does not, and there the text decides
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = numbers.astype(np.float32)
        back = rounded.astype(np.float64)
        other = np.where(back < numbers, next32(rounded), previous32(rounded))
        between = np.isfinite(other) & np.isfinite(back) & (numbers - back == other.astype(np.float64) - numbers)
    for i in np.flatnonzero(between & (back != numbers)).tolist():
        middle = Fraction(float(numbers[i]))
        exact = Fraction(texts[i].strip()) if texts[i] else middle
        if exact != middle:
            low, high = sorted((rounded[i], other[i]))
            rounded[i] = high if exact > middle else low
    return rounded


def shortest32(numbers: Float32Array) -> list[str]:
    """Return the shortest text of each float32 that reads back equal, infinities as Java and C write them."""
    return [
        text if text[-1] != "f" else "-Infinity" if text[0] == "-" else "Infinity"
        for text in map(str, np.asarray(numbers, np.float32))
    ]
