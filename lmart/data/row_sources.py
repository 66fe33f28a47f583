"""Rows that Python programs give, converted piece by piece, so that no second copy of all values is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array
from lmart.data.dataset import Rows, SparseRows
from lmart.data.frames import as_floats
from lmart.errors import ArrayError


class DensePieces:
    """Every cell of n rows and m columns; pieces of equal size share the array of their columns.

    n, m    : rows and columns
    numbers : called with the first row and the one after the last, returns their cells, float64[k, m]
    """

    def __init__(self, n: int, m: int, numbers: Callable[[int, int], Float64Array]) -> None:
        self._n, self._m, self._numbers = n, m, numbers
        self._columns: Int32Array = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return self._n

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop; values of a C-ordered float64 array are a view of it."""
        k = stop - start
        if len(self._columns) < k * self._m:
            self._columns = np.tile(np.arange(self._m, dtype=np.int32), k)
        values = np.ascontiguousarray(self._numbers(start, stop)).reshape(-1)
        return SparseRows(np.arange(k + 1, dtype=np.int64) * self._m, self._columns[: k * self._m], values)


def array_pieces(array: npt.NDArray[np.generic]) -> DensePieces:
    """Return the rows of an array of n rows and m columns, of any type of numbers and in any order.

    array : [n, m]

    ArrayError, when the rows are read, if there are cells that are no real numbers.
    """
    n, m = array.shape
    return DensePieces(n, m, lambda start, stop: as_floats(array[start:stop], "X"))


def column_pieces(columns: Sequence[Float64Array], n: int) -> DensePieces:
    """Return the rows of columns.

    columns : float64[n] each
    n       : number of rows
    """

    def numbers(start: int, stop: int) -> Float64Array:
        return np.stack([column[start:stop] for column in columns], axis=1) if columns else np.zeros((stop - start, 0))

    return DensePieces(n, len(columns), numbers)


class FiniteRows:
    """Rows whose infinite values are refused when they are read.

    rows   : the rows
    names  : what each column is called
    source : what messages call the data
    """

    def __init__(self, rows: Rows, names: Sequence[str], source: str) -> None:
        self._rows, self._names, self._source = rows, names, source

    def __len__(self) -> int:
        return len(self._rows)

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop; ArrayError names the first infinite value."""
        part = self._rows.between(start, stop)
        infinite = np.flatnonzero(np.isinf(part.values))
        if len(infinite):
            cell = int(infinite[0])
            row = start + int(np.searchsorted(part.offsets, cell, "right")) - 1
            what = f"row {row} (from 0), column {self._names[int(part.columns[cell])]} is {part.values[cell]}"
            raise ArrayError(f"{what}; mend it, or give allow_inf=True", self._source)
        return part
