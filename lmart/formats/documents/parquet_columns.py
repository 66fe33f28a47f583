"""Columns of Parquet as numbers and texts: what pyarrow gives, turned into what all readers give."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Protocol, Self, cast

import pyarrow

from lmart.array_types import Float64Array
from lmart.errors import DataError, quote
from lmart.formats.documents.ids import encoding_fault


class ArrowArray(Protocol):
    """What is used of pyarrow.Array."""

    @property
    def type(self) -> object:
        """The type of the values."""

    def dictionary_decode(self) -> Self:
        """Return the values of an array that holds each distinct one once."""

    def cast(self, target_type: str, safe: bool = True) -> Self:
        """Return the values as another type."""

    def fill_null(self, fill_value: float) -> Self:
        """Return the values with something in place of nulls."""

    def to_numpy(self, zero_copy_only: bool = True) -> Float64Array:
        """Return the numbers."""

    def to_pylist(self) -> list[object]:
        """Return the values as Python has them, None for nulls."""


class ArrowFailures:
    """A context in which exceptions of pyarrow become a DataError of one line at `path`."""

    def __init__(self, path: str) -> None:
        self._kinds = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, self._kinds) and not isinstance(error, DataError):
            why = (str(error).splitlines() or [""])[0]
            raise DataError(f"cannot be read as Parquet: {why}; copy or write the file again", self._path) from None


def plain_type(arrow_type: object) -> object:
    """Return the type of the values, of a dictionary too."""
    if pyarrow.types.is_dictionary(arrow_type):
        value_type: object = getattr(arrow_type, "value_type", None)
        return value_type
    return arrow_type


def is_number(arrow_type: object) -> bool:
    """Return whether the values are numbers, or all of them nulls."""
    types = pyarrow.types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_decimal)
    return any(check(arrow_type) for check in checks)


def is_text(arrow_type: object) -> bool:
    """Return whether the values are texts or bytes."""
    types = pyarrow.types
    names = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
    return any(getattr(types, name)(arrow_type) for name in names if hasattr(types, name))


def numbers_of(column: ArrowArray, path: str) -> Float64Array:
    """Return a column as float64[n], nan for nulls; DataError at `path`."""
    with ArrowFailures(path):
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pyarrow.types.is_decimal(column.type):
            column = column.cast("string")  # the way to the nearest number
        numbers = column.cast("float64", safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return numbers + 0.0  # no minus zero


def texts_of(column: ArrowArray, name: str, what: str, path: str) -> tuple[list[str | None], list[tuple[int, str]]]:
    """Return ids as text without blanks at both ends, as CSV has them, None for nulls; numbers as they are written.

    column : the ids
    name   : of the column
    what   : 'query id' or 'document id'
    path   : the input, for messages
    Also return the row in the column and the fault of each that is not UTF-8. DataError for numbers that are no ids.
    """
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_floating(column.type):
        numbers = [None if x is None or math.isnan(x) else x for x in cast(list[float | None], column.to_pylist())]
        if any(x is not None and (abs(x) >= 2**53 or x != int(x)) for x in numbers):
            raise DataError(f"column {quote(name)} holds {column.type}, no {what}s; turn it into text", path)
        return [None if x is None else str(int(x)) for x in numbers], []
    try:
        found = column.to_pylist()
    except UnicodeDecodeError:
        found = column.cast("large_binary").to_pylist()
    texts: list[str | None] = []
    faults: list[tuple[int, str]] = []
    for i, one in enumerate(found):
        text = one
        if isinstance(one, bytes):
            try:
                text = one.decode("utf-8")
            except UnicodeDecodeError:
                faults.append((i, encoding_fault(one, what)))
                text = one.decode("utf-8", "backslashreplace")
        texts.append(None if text is None else str(text).strip(" "))
    return texts, faults
