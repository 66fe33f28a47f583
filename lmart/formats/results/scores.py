"""Scores files: one number a line, in the order of the data's rows."""

from __future__ import annotations

import re
import sys
from itertools import islice
from typing import Protocol

from lmart.array_types import Float64Array
from lmart.decimals import decimal, is_decimal
from lmart.errors import DataError, quote
from lmart.formats.line_reader import read_numbers

NUMBERS_AT_A_TIME = 1 << 16
LARGEST = sys.float_info.max


class _Writable(Protocol):
    """What numbers are written to, such as `lmart.streams.AtomicOutput`."""

    def write(self, data: bytes, /) -> object: ...


def read_scores(
    path: str, n_documents: int | None = None, source: str = "the data", largest: float = LARGEST
) -> Float64Array:
    """Read a finite number a line, of either sign up to `largest`, float64[n]; gzip, zstd, CRLF and comments are taken.

    DataError names the line and the token that is no such number, or both counts when they differ.
    """
    empty = "the line is empty; give one score for each row of the data"
    scores, more = read_numbers(path, (-largest, largest), lambda token: _fault(token, largest), n_documents, empty)
    if n_documents is not None and len(scores) != n_documents:
        raise _wrong_count(len(scores), more, n_documents, source, path)
    return scores


def write_scores(scores: Float64Array, out: _Writable) -> None:
    """Write one score a line, the shortest form that reads back equal; a longer list may come block by block."""
    numbers = iter(scores.tolist())
    while part := list(islice(numbers, NUMBERS_AT_A_TIME)):
        out.write(format_scores(part))


def format_scores(numbers: list[float]) -> bytes:
    """Return the numbers as lines, the shortest form that reads back equal."""
    return "".join([f"{number!r}\n" for number in numbers]).encode("ascii")


def _fault(token: bytes, largest: float) -> str:
    """Return what is wrong with a token that is no score."""
    if is_decimal(token):
        if decimal(token) is not None:
            return f"score {quote(token)} is too large to start from; use scores from -{largest:g} to {largest:g}"
        return f"score {quote(token)} is too large for a number; scores must be finite"
    if token.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity"):
        return f"score {quote(token)} is not finite; every row needs a finite score"
    words = re.split(rb"[ \t\r]+", token)
    if len(words) > 1 and is_decimal(words[0]):
        return f"there is more than one number in {quote(token)}; give one score a line"
    return f"{quote(token)} is not a number; give one score a line, in the order of the data's rows"


def _wrong_count(n_scores: int, more: bool, n_documents: int, source: str, path: str) -> DataError:
    scores = f"{'more than ' if more else ''}{n_scores} score" + ("" if n_scores == 1 else "s")
    rows = f"{n_documents} row" + ("" if n_documents == 1 else "s")
    return DataError(f"holds {scores}, but {source} has {rows}; give one score for each row, in the same order", path)
