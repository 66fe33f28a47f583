"""Lines of LightGBM's text model: KEY=NUMBERS."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import ModelError, quote

# What may stand in a line of numbers; int() and float() then judge each of them.
WHOLE = re.compile(rb"[-+0-9 \t]*")
REAL_KEYS = (b"threshold", b"leaf_value", b"split_gain")
REAL = re.compile(rb"[-+0-9.einfaty \t]*", re.IGNORECASE)


class Block(NamedTuple):
    """The lines of one tree by key, with the number of the line where it starts."""

    line: int
    lines: dict[bytes, tuple[int, bytes]]


def _text(block: Block, key: bytes, path: str) -> tuple[int, bytes]:
    if key not in block.lines:
        raise ModelError(f"the tree has no {key.decode()}; the model is damaged", path, block.line)
    return block.lines[key]


def whole_numbers(block: Block, key: bytes, n: int, path: str) -> Int64Array:
    """Return the n whole numbers of a key, int64[n]."""
    line, value = _text(block, key, path)
    try:
        if not WHOLE.fullmatch(value):
            raise ValueError
        found = np.array(list(map(int, value.split())), np.int64)
    except (ValueError, OverflowError):
        raise _bad_token(key, value, line, path) from None
    if len(found) != n:
        raise ModelError(f"{key.decode()} has {len(found)} numbers, {n} are due; the model is damaged", path, line)
    return found


def real_numbers(block: Block, key: bytes, n: int, path: str) -> Float64Array:
    """Return the n numbers of a key, float64[n]; inf and nan are numbers here."""
    line, value = _text(block, key, path)
    try:
        if not REAL.fullmatch(value):
            raise ValueError
        found = np.array(list(map(float, value.split())), np.float64)
    except ValueError:
        raise _bad_token(key, value, line, path) from None
    if len(found) != n:
        raise ModelError(f"{key.decode()} has {len(found)} numbers, {n} are due; the model is damaged", path, line)
    return found


def _bad_token(key: bytes, value: bytes, line: int, path: str) -> ModelError:
    """Return the refusal of the first word of a line that is no number in range."""
    allowed, number = (REAL, float) if key in REAL_KEYS else (WHOLE, int)

    def is_wrong(word: bytes) -> bool:
        """Return whether a word is no number in range."""
        try:
            return allowed.fullmatch(word) is None or (number is int and abs(int(word)) >= 2**63)
        except ValueError:
            return True

    wrong = next((word for word in value.split() if is_wrong(word)), value)
    meant = "a number" if number is float else "a whole number in range"
    return ModelError(
        f"{key.decode()} holds {quote(wrong, 30)}, which is not {meant}; the model is damaged", path, line
    )
