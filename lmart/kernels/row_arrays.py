"""Sparse rows as kernels take them: the arrays of `SparseRows`, and those of a sample of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array


class RowArrays(NamedTuple):
    """n rows of cells.

    offsets : int64[n + 1], the cells of row r are offsets[r]:offsets[r + 1]
    columns : int32[n_cells], the column of each cell
    values  : float64[n_cells], nan where the value is missing
    """

    offsets: Int64Array
    columns: Int32Array
    values: Float64Array


class SharedColumnRows(NamedTuple):
    """n rows of cells; rows with the same columns may share them.

    offsets       : int64[n + 1], the values of row r are values[offsets[r]:offsets[r + 1]]
    column_starts : int64[n], the columns of row r start at columns[column_starts[r]]
    columns       : int32[...], the columns of the cells
    values        : float64[n_cells], nan where the value is missing
    """

    offsets: Int64Array
    column_starts: Int64Array
    columns: Int32Array
    values: Float64Array


def contiguous_rows(offsets: Int64Array, columns: Int32Array, values: Float64Array) -> RowArrays:
    """Return rows in the one layout that kernels are compiled for, copied where they have another."""
    return RowArrays(
        np.ascontiguousarray(offsets, np.int64),
        np.ascontiguousarray(columns, np.int32),
        np.ascontiguousarray(values, np.float64),
    )
