"""Metadata files: sizes of queries, weights of queries or rows, initial scores and positions of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.constraints import MonotoneConstraints
from lmart.data.metadata import LARGEST_SCORE, LARGEST_WEIGHT, Positions, Weights, spread_weights
from lmart.errors import DataError, SettingsError, counted, quote
from lmart.formats.line_reader import WORD_COMMENT, Lines, far_too_many, read_lines, read_numbers
from lmart.formats.results.scores import read_scores

__all__ = [
    "Weights",
    "read_categories",
    "read_init_scores",
    "read_monotone",
    "read_positions",
    "read_query_sizes",
    "read_weights",
]

LARGEST_QUERY = 10**12  # rows, so that sums of sizes stay whole numbers of the machine
ALL_ZERO = "all weights are zero; give at least one above zero"
_NO_NUMBER = "holds no number; give a file of one number a line"
_POSITIONS_ARE = "give one position for each row of the data"
_SIZES_ARE = "give the row count of each query, one a line"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONSTRAINT_COMMENT = re.compile(rb"\A#.*|(?<=:[+-])[ \t]+#.*|(?<=:1)[ \t]+#.*|(?<=:[+-]1)[ \t]+#.*")


def read_query_sizes(path: str) -> Iterator[Int64Array]:
    """Yield the number of rows of each query, one a line: int64 arrays to be laid end to end, all numbers > 0.

    The file is read as far as they are asked for. DataError for anything else, and when there is none.
    """
    found = False
    for lines in read_lines(path):
        found = True
        if max(map(len, lines.texts)) > 18 or not all(map(bytes.isdigit, lines.texts)):
            raise _wrong_size(lines, path)
        sizes = np.array(list(map(int, lines.texts)), np.int64)
        if sizes.min() < 1 or sizes.max() > LARGEST_QUERY:
            raise _wrong_size(lines, path)
        yield sizes
    if not found:
        raise DataError(_NO_NUMBER, path)


def _wrong_size(lines: Lines, path: str) -> DataError:
    """Return the refusal of the first line that is no size of a query."""
    for token, line in zip(*lines, strict=True):
        what = f"query size {quote(token)}"
        if not token.isdigit():
            return DataError(f"{what} is not a whole number; {_SIZES_ARE}", path, line)
        if len(token) > 18 or int(token) > LARGEST_QUERY:
            return DataError(f"{what} is above {LARGEST_QUERY}; {_SIZES_ARE}", path, line)
        if int(token) == 0:
            return DataError(f"{what}: a query has at least one row; leave empty queries out", path, line)
    raise AssertionError("no line is at fault")


def read_weights(path: str, query_offsets: Int64Array, input_rows: Int64Array | None = None) -> Weights:
    """Read one weight a query or one a row, distinguished by their count.

    DataError (with all three numbers) when the count fits neither, and for a weight that is negative, above
    LARGEST_WEIGHT or no number, or when all are zero. When every query has one row, both readings mean the same.
    """
    weights = read_weight_numbers(path, query_offsets)
    if not weights.any():
        raise DataError(ALL_ZERO, path)
    return spread_weights(weights, query_offsets, input_rows)


def read_weight_numbers(path: str, query_offsets: Int64Array) -> Float64Array:
    """Read one weight a query or one a row: as many numbers as there are of either.

    DataError as `read_weights`, but all may be zero.
    """
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    numbers, more = read_numbers(path, (0.0, LARGEST_WEIGHT), _fault_of_weight, n_documents)
    if not len(numbers):
        raise DataError(_NO_NUMBER, path)
    if len(numbers) not in (n_queries, n_documents):
        raise DataError(
            f"there are {'more than ' if more else ''}{len(numbers)} weights, but the data has {n_queries} queries and "
            f"{n_documents} rows; give one weight a query or one a row",
            path,
        )
    numbers += 0.0  # no minus zero
    return numbers


def _fault_of_weight(token: bytes) -> str:
    return f"weight {quote(token)} is not a number from 0 to {LARGEST_WEIGHT:g}; give one weight a line"


def read_init_scores(path: str, n_documents: int, source: str, input_rows: Int64Array | None = None) -> Float64Array:
    """Read the scores that training starts from, in the form of `read_scores`: float64[n_documents].

    DataError as `read_scores`, and for a score beyond LARGEST_SCORE.
    """
    scores = read_scores(path, n_documents, source, LARGEST_SCORE)
    return scores if input_rows is None else scores[input_rows]


def read_positions(path: str, n_documents: int, source: str, input_rows: Int64Array | None = None) -> Positions:
    """Read the position that each row was shown at: any word, one a line; equal words are one position.

    DataError names the line that is empty, has more than one word, or is not text, or both counts when they differ.
    """
    places: dict[bytes, int] = {}
    parts = [np.zeros(0, np.int32)]
    count, more = 0, False
    for lines in read_lines(path, WORD_COMMENT, f"the line is empty; {_POSITIONS_ARE}"):
        n_known = len(places)
        parts.append(np.array([places.setdefault(word, len(places)) for word in lines.texts], np.int32))
        for word in dict.fromkeys(lines.texts):
            if places[word] >= n_known and (fault := _fault_of_position(word)):
                raise DataError(f"{fault}; {_POSITIONS_ARE}", path, lines.numbers[lines.texts.index(word)])
        count += len(lines.texts)
        if far_too_many(count, n_documents):
            more = True
            break
    codes = np.concatenate(parts)
    if count != n_documents:
        held, rows = counted(count, "position"), counted(n_documents, "row")
        what = f"holds {'more than ' if more else ''}{held}, but {source} has {rows}"
        raise DataError(f"{what}; give one for each row, in the same order", path)
    names = tuple(word.decode("utf-8") for word in places)
    return Positions(names, codes if input_rows is None else codes[input_rows])


def _fault_of_position(word: bytes) -> str:
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return f"position {quote(word)} is not UTF-8"
    if len(text.split()) > 1:
        return f"there is more than one word in {quote(word)}"
    return f"position {quote(word)} holds a control character" if _CONTROL.search(text) else ""


def read_monotone(path: str) -> MonotoneConstraints:
    """Read monotone constraints, FEATURE:+1 or FEATURE:-1 a line.

    Blank lines and comments after '#', at the start of a line or after a constraint, do not count.
    DataError for any other line, a feature that is named twice, and when there is none.
    """
    found: dict[str, int] = {}
    for lines in read_lines(path, _CONSTRAINT_COMMENT):
        for raw, line in zip(*lines, strict=True):
            text = raw.decode("utf-8", "backslashreplace")
            try:
                own = MonotoneConstraints.parse(text).directions
            except SettingsError:
                own = {}
            if len(own) != 1:
                what = f"{quote(text)} is no constraint"
                raise DataError(f"{what}; give FEATURE:+1 or FEATURE:-1 on each line", path, line)
            if own.keys() & found.keys():
                (feature,) = own
                raise DataError(f"feature {quote(feature)} stands there twice; leave one", path, line)
            found |= own
    if not found:
        raise DataError("holds no constraint; give FEATURE:+1 or FEATURE:-1 on each line", path)
    return MonotoneConstraints(found)


def read_categories(path: str) -> list[str]:
    """Read the names or indices of categories, one a line; blank lines do not count.

    DataError for a name that stands twice or holds a comma, and when there is none.
    """
    found: list[str] = []
    for lines in read_lines(path, re.compile(rb"(?!)")):
        for raw, line in zip(*lines, strict=True):
            name = raw.decode("utf-8", "backslashreplace").strip()
            if name in found:
                raise DataError(f"feature {quote(name)} stands there twice; leave one", path, line)
            if "," in name:
                raise DataError(f"{quote(name)} holds a comma; give one name on each line", path, line)
            found += [name] if name else []
    if not found:
        raise DataError("holds no name; give the name or index of a feature on each line", path)
    return found
