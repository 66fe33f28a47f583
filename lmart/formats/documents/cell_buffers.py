"""Where readers put the cells of rows, so that they are written once, at the place where they are wanted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array


class CellRoom(Protocol):
    """Gives the place for cells."""

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return columns and values of `count` cells, to be written; given again by the next call unless `lasting`."""


class ReusedRoom:
    """Gives the same arrays again: always, or for lasting cells when nobody holds those of before any more."""

    def __init__(self) -> None:
        self._columns: Int32Array = np.empty(0, np.int32)
        self._values: Float64Array = np.empty(0)

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return columns and values of `count` cells, to be written."""
        # 2: this object's reference and the argument of the call.
        held = lasting and (sys.getrefcount(self._columns) > 2 or sys.getrefcount(self._values) > 2)
        if held or count > len(self._columns):
            size = max(count + count // 8, len(self._columns))
            self._columns, self._values = np.empty(size, np.int32), np.empty(size)
        return self._columns[:count], self._values[:count]


class CellBatch:
    """The cells of adjacent chunks of text, each written in a place of its own that is large enough."""

    def __init__(self, room: CellRoom, most: Sequence[int], lasting: bool) -> None:
        """most : cells of each chunk, at most."""
        self._starts = np.concatenate([[0], np.cumsum(most, dtype=np.int64)]).tolist()
        self._columns, self._values = room.take(self._starts[-1], lasting)
        self._filled = 0

    def place(self, chunk: int) -> tuple[Int32Array, Float64Array]:
        """Return the place of a chunk."""
        between = slice(self._starts[chunk], self._starts[chunk + 1])
        return self._columns[between], self._values[between]

    def close_up(self, chunk: int, count: int) -> tuple[Int32Array, Float64Array]:
        """Return the first `count` cells of a chunk, next to those of the chunks before: call it in their order."""
        start, stop = self._filled, self._filled + count
        if start != self._starts[chunk]:
            for cells in (self._columns, self._values):
                cells[start:stop] = cells[self._starts[chunk] : self._starts[chunk] + count]
        self._filled = stop
        return self._columns[start:stop], self._values[start:stop]


def joined(pieces: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the pieces as one array: as they are where they stand next to each other in a common one, else a copy."""
    base = pieces[0].base
    if not isinstance(base, np.ndarray) or base.ndim != 1 or base.dtype != pieces[0].dtype:
        return np.concatenate(pieces)
    start = place = address(pieces[0])
    for piece in pieces:
        if piece.base is not base or address(piece) != place:
            return np.concatenate(pieces)
        place += piece.nbytes
    first, size = address(base), base.itemsize
    return base[(start - first) // size : (place - first) // size]


def address(array: npt.NDArray[Any]) -> int:
    """Return where in memory the array begins."""
    place: int = array.__array_interface__["data"][0]
    return place
