"""Buffers that readers write the cells of rows to, so that cells need not be copied afterwards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array

Scalar = TypeVar("Scalar", bound=np.generic)


class CellBuffer(Protocol):
    """Hands out arrays to write cells to."""

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return uninitialised columns and values, int32[count] and float64[count].

        count   : number of cells
        lasting : whether the arrays must stay valid after the next call; else the next call may return them again
        """


class ReusedBuffer:
    """Reuses one pair of arrays: lasting cells only when no earlier block still uses them."""

    def __init__(self) -> None:
        self._columns: Int32Array = np.empty(0, np.int32)
        self._values: Float64Array = np.empty(0)

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return uninitialised columns and values of `count` cells, as `CellBuffer` says."""
        # 2: this object's reference and the argument of the call.
        held = lasting and (sys.getrefcount(self._columns) > 2 or sys.getrefcount(self._values) > 2)
        if held or count > len(self._columns):
            size = max(count + count // 8, len(self._columns))
            self._columns, self._values = np.empty(size, np.int32), np.empty(size)
        return self._columns[:count], self._values[:count]


class CellBatch:
    """The cells of adjacent chunks of text: each chunk is parsed into its own slice of one buffer, in parallel."""

    def __init__(self, cell_buffer: CellBuffer, most: Sequence[int], lasting: bool) -> None:
        """Take the slices.

        cell_buffer : to take them from
        most        : upper bound of the number of cells of each chunk
        lasting     : as in `CellBuffer.take`
        """
        self._starts = np.concatenate([[0], np.cumsum(most, dtype=np.int64)]).tolist()
        self._columns, self._values = cell_buffer.take(self._starts[-1], lasting)
        self._filled = 0

    def place(self, chunk: int) -> tuple[Int32Array, Float64Array]:
        """Return columns and values of the slice of a chunk."""
        between = slice(self._starts[chunk], self._starts[chunk + 1])
        return self._columns[between], self._values[between]

    def close_up(self, chunk: int, count: int) -> tuple[Int32Array, Float64Array]:
        """Move the first `count` cells of a chunk up to the end of the chunk before, and return them.

        Call it once for each chunk, in their order.
        """
        start, stop = self._filled, self._filled + count
        if start != self._starts[chunk]:
            for cells in (self._columns, self._values):
                cells[start:stop] = cells[self._starts[chunk] : self._starts[chunk] + count]
        self._filled = stop
        return self._columns[start:stop], self._values[start:stop]


def joined(pieces: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """Return the concatenated pieces: a view where they are adjacent slices of one array, else a copy."""
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


def address(array: npt.NDArray[np.generic]) -> int:
    """Return the address of the array's first byte."""
    place: int = array.__array_interface__["data"][0]
    return place
