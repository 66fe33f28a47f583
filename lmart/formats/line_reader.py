"""Metadata files, line by line: blanks, comments, line ends and a byte order mark are treated alike in all of them.

A file is read piece by piece, and no further than it can belong to the data, so that memory depends on the data alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array
from lmart.decimals import ODD, decimal
from lmart.errors import DataError
from lmart.formats.detection import is_json, refuse_known
from lmart.streams import read_pieces

BLANKS = b" \t\r"
LONGEST_LINE = 1 << 16
MANY_MORE = 1_000_000  # lines beyond those that can be right, up to which they are still counted for the message

COMMENT = re.compile(rb"#.*")
WORD_COMMENT = re.compile(rb"(?:\A|(?<=[ \t]))#[ \t].*")  # where a word may begin with '#'

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Lines(NamedTuple):
    """Lines that hold something, without comments and without blanks at both ends, and the number of each, from 1."""

    texts: list[bytes]
    numbers: Sequence[int]


def read_lines(path: str, comment: re.Pattern[bytes] = COMMENT, empty: str | None = None) -> Iterator[Lines]:
    """Yield the lines of a file that hold more than blanks and a comment; gzip and zstd are taken.

    comment : what does not count, looked for in a line without blanks at its ends
    empty   : what to say of an empty line before others that hold something; None: empty lines do not count
    DataError as `open_input`, for such an empty line, and for a line above LONGEST_LINE bytes.
    """
    gap = 0  # the first of the empty lines after what was yielded last; 0: none
    for first, text in _whole_lines(path):
        if not text.strip(BLANKS + b"\n"):
            gap = gap or first
            continue
        raw = text.split(b"\n")
        n_short = len(raw)
        if len(text) > LONGEST_LINE and max(map(len, raw)) > LONGEST_LINE:
            n_short = next(i for i, line in enumerate(raw) if len(line) > LONGEST_LINE)
        found = Lines([line.strip(BLANKS) for line in raw[:n_short]], range(first, first + n_short))
        fault = None
        if gap or b"#" in text or b"" in found.texts:
            found, gap, fault = _without_comments(found, comment, gap, None if empty is None else (empty, path))
        if found.texts:
            yield found
        if fault is not None:
            raise fault
        if n_short < len(raw):
            raise _too_long(path, first + n_short, raw[n_short])


def _without_comments(
    found: Lines, comment: re.Pattern[bytes], gap: int, empty: tuple[str, str] | None
) -> tuple[Lines, int, DataError | None]:
    """Return the lines that hold something, the first empty line after them, and the fault that follows them."""
    texts: list[bytes] = []
    numbers: list[int] = []
    for text, number in zip(*found, strict=True):
        bare = comment.sub(b"", text).rstrip(BLANKS) if b"#" in text else text
        if bare:
            if gap and empty is not None:
                return Lines(texts, numbers), 0, DataError(*empty, gap)
            texts.append(bare)
            numbers.append(number)
            gap = 0
        elif not text:
            gap = gap or number
    return Lines(texts, numbers), gap, None


def _whole_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number of a line, and the text from there to the end of a later one; DataError for an endless line."""
    line, rest = 1, b""
    for piece in read_pieces(path):
        if line == 1 and not rest:
            refuse_known(piece, path, DataError, "give lines of text", trec=False)
        text = rest + piece
        cut = text.rfind(b"\n")
        rest = text[cut + 1 :]
        if cut >= 0:
            lines = text[:cut]
            yield line, lines.removeprefix(_BYTE_ORDER_MARK) if line == 1 else lines
            line += lines.count(b"\n") + 1
        if len(rest) > LONGEST_LINE:
            raise _too_long(path, line, rest)
    if rest:
        yield line, rest.removeprefix(_BYTE_ORDER_MARK) if line == 1 else rest


def _too_long(path: str, line: int, text: bytes) -> DataError:
    if is_json(text):
        return DataError("the file is JSON, which is not read here; write lines of text", path, line)
    return DataError(f"the line is longer than {LONGEST_LINE} bytes; is it the right file?", path, line)


def read_numbers(
    path: str,
    limits: tuple[float, float],
    fault: Callable[[bytes], str],
    wanted: int | None = None,
    empty: str | None = None,
) -> tuple[Float64Array, bool]:
    """Return the numbers of a file, one a line, float64[n], and whether there are more that were not read.

    limits : the least and the largest number that is taken
    fault  : says what is wrong with a line that is no such number
    wanted : how many there can be at most; far more of them are not read. None: any number
    empty  : as in `read_lines`
    DataError as `read_lines`, and for the first line that is no such number.
    """
    parts = [np.zeros(0)]
    count = 0
    for lines in read_lines(path, empty=empty):
        parts.append(_numbers_of(lines, limits, fault, path))
        count += len(lines.texts)
        if wanted is not None and far_too_many(count, wanted):
            return np.concatenate(parts), True
    return np.concatenate(parts), False


def far_too_many(count: int, wanted: int) -> bool:
    """Return whether there are so many more lines than wanted that their exact number does not matter."""
    return count > 2 * wanted + MANY_MORE


def _numbers_of(lines: Lines, limits: tuple[float, float], fault: Callable[[bytes], str], path: str) -> Float64Array:
    low, high = limits
    try:
        if ODD.search(b"".join(lines.texts)):
            raise ValueError
        numbers = np.array(list(map(float, lines.texts)), np.float64)
        if ((low <= numbers) & (numbers <= high)).all():
            return numbers
    except ValueError:
        pass
    for text, number in zip(*lines, strict=True):
        if (value := decimal(text)) is None or not low <= value <= high:
            raise DataError(fault(text), path, number)
    raise AssertionError("no line is at fault")
