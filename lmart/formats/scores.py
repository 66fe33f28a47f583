"""Scores files: one number a line, in the order of the data's rows."""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lmart.errors import DataError, quote
from lmart.streams import read_all

Floats = npt.NDArray[np.float64]

NUMBERS_AT_A_TIME = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# float() also takes 1_000 and spaces of other kinds
_NUMBER = re.compile(rb"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*\r?")
_ODD = re.compile(rb"[^0-9+\-.eE \t\r\n]")


class Writable(Protocol):
    """What numbers are written to, such as `lmart.streams.AtomicOutput`."""

    def write(self, data: bytes, /) -> object:
        """Take the bytes."""


def read_scores(path: str, n_documents: int | None = None, source: str = "the data") -> Floats:
    """Read one finite number a line, float64[n]; gzip, zstd, CRLF and a last line without its end are taken.

    n_documents : how many there must be, the rows of `source`; None: any number
    DataError names the line and the token that is no finite number, or both counts when they differ.
    """
    content = read_all(path).removeprefix(_BYTE_ORDER_MARK)
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()  # what follows the last line's end, and empty lines there
    try:
        if _ODD.search(content):
            raise ValueError
        scores = np.array(list(map(float, lines)), np.float64)
    except ValueError:
        raise _first_fault(lines, path) from None
    if not np.isfinite(scores).all():
        raise _first_fault(lines, path)
    if n_documents is not None and len(scores) != n_documents:
        raise _wrong_count(len(scores), n_documents, source, path)
    return scores


def write_scores(scores: Floats, out: Writable) -> None:
    """Write one score a line, the shortest form that reads back equal; a longer list may come block by block."""
    numbers = iter(scores.tolist())
    while part := list(islice(numbers, NUMBERS_AT_A_TIME)):
        out.write(format_scores(part))


def format_scores(numbers: list[float]) -> bytes:
    """Return the numbers as lines, the shortest form that reads back equal."""
    return "".join([f"{number!r}\n" for number in numbers]).encode("ascii")


def _first_fault(lines: list[bytes], path: str) -> DataError:
    """Return the refusal of the first line that is not one finite number."""
    for i, line in enumerate(lines):
        token = line.rstrip(b"\r")
        if _NUMBER.fullmatch(line):
            if math.isfinite(float(token)):
                continue
            fault = f"score {quote(token.strip())} is too large for a number; scores must be finite"
        elif not token.strip():
            fault = "the line is empty; give one score for each row of the data"
        elif token.strip().lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity"):
            fault = f"score {quote(token.strip())} is not finite; every row needs a finite score"
        elif len(token.split()) > 1 and _NUMBER.fullmatch(token.split()[0]):
            fault = f"there is more than one number in {quote(token)}; give one score a line"
        else:
            fault = f"{quote(token)} is not a number; give one score a line, in the order of the data's rows"
        return DataError(fault, path, i + 1)
    raise AssertionError("no line is at fault")


def _wrong_count(n_scores: int, n_documents: int, source: str, path: str) -> DataError:
    scores = f"{n_scores} score" + ("" if n_scores == 1 else "s")
    rows = f"{n_documents} row" + ("" if n_documents == 1 else "s")
    return DataError(f"holds {scores}, but {source} has {rows}; give one score for each row, in the same order", path)
