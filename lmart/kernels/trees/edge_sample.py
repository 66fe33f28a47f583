"""A sample of rows for bin edges: whether a row is in it depends on the mixed bits of its number alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.row_arrays import RowArrays, SharedColumnRows


class SampleSlices(NamedTuple):
    """Where the n chosen rows of a block are written in a sample.

    row_numbers   : int64[n], number of each row in the data
    ends          : int64[n], where the cells of each row end in the sample
    column_starts : int64[n], where the columns of each row start in the sample
    columns       : int32[n_columns], the columns of the block's chosen rows
    values        : float64[n_cells], the cells of the block's chosen rows
    first_column  : int64, where `columns` start in the sample
    first_cell    : int64, where `values` start in the sample
    """

    row_numbers: Int64Array
    ends: Int64Array
    column_starts: Int64Array
    columns: Int32Array
    values: Float64Array
    first_column: int
    first_cell: int


@inner_kernel
def is_chosen(row: int, key: np.uint64, halvings: int) -> bool:
    """Return whether the mixed bits of a row's number start with `halvings` zeros.

    row      : int64, number of the row      key : uint64, mix_bits(seed)
    halvings : int64, 0..63, how often the sample was halved
    """
    return halvings == 0 or mix_bits(np.uint64(row) ^ np.uint64(key)) >> np.uint64(64 - halvings) == 0


@inner_kernel
def same_columns(columns: Int32Array, first: int, second: int, length: int) -> bool:
    """Return whether columns[first:first + length] and columns[second:second + length] are the same.

    columns : int32[...], in      first, second : int64      length : int64
    """
    for k in range(length):  # noqa: SIM110  (no generators in kernels)
        if columns[np.uint64(first + k)] != columns[np.uint64(second + k)]:
            return False
    return True


@kernel
def choose_rows(
    offsets: Int64Array, columns: Int32Array, first_row: int, key: np.uint64, halvings: int, chosen: Int64Array
) -> tuple[int, int, int]:
    """Write which rows of a block are in the sample; return how many, their cells, and the columns to be copied.

    offsets   : int64[n + 1], of SparseRows, in      columns : int32[n_cells], of SparseRows, in
    first_row : int64, number of the block's first row      key : uint64, mix_bits(seed)
    halvings  : int64, how often the sample was halved
    chosen    : int64[n], places in the block, ascending, out

    A row with the columns of the chosen row before it shares them, so these are not copied.
    """
    count = 0
    n_cells = 0
    n_columns = 0
    start = -1
    length = -1
    for i in range(len(offsets) - 1):
        if is_chosen(first_row + i, key, halvings):
            row_length = offsets[i + 1] - offsets[i]
            if row_length != length or not same_columns(columns, start, offsets[i], row_length):
                n_columns += row_length
            start = offsets[i]
            length = row_length
            n_cells += row_length
            chosen[count] = i
            count += 1
    return count, n_cells, n_columns


@kernel
def copy_chosen(rows: RowArrays, chosen: Int64Array, first_row: int, out: SampleSlices) -> None:
    """Write the chosen rows of a block; a row with the columns of the row before it shares them.

    rows      : RowArrays, the block, in      chosen : int64[n], places in the block, ascending, in
    first_row : int64, number of the block's first row
    out       : SampleSlices, as large as `choose_rows` counted, out

    Parallel: the caller runs blocks side by side, each call writing its own slices.
    """
    offsets, columns, values = rows.offsets, rows.columns, rows.values
    out_columns, out_values = out.columns, out.values
    n_cells = 0
    n_columns = 0
    previous = -1
    for j in range(len(chosen)):
        i = chosen[j]
        start = offsets[i]
        length = offsets[i + 1] - start
        shared = previous >= 0 and offsets[previous + 1] - offsets[previous] == length
        if shared and same_columns(columns, offsets[previous], start, length):
            out.column_starts[j] = out.first_column + n_columns - length
        else:
            out.column_starts[j] = out.first_column + n_columns
            for k in range(length):
                out_columns[np.uint64(n_columns + k)] = columns[np.uint64(start + k)]
            n_columns += length
        for k in range(length):
            out_values[np.uint64(n_cells + k)] = values[np.uint64(start + k)]
        n_cells += length
        out.row_numbers[j] = first_row + i
        out.ends[j] = out.first_cell + n_cells
        previous = i


@kernel
def thin_rows(row_numbers: Int64Array, rows: SharedColumnRows, key: np.uint64, halvings: int) -> tuple[int, int, int]:
    """Move the rows that stay in a halved sample to the front; return how many rows, cells and columns are left.

    row_numbers : int64[n], as `copy_chosen` wrote them, in and out
    rows        : SharedColumnRows, as `copy_chosen` wrote them, in and out
    key         : uint64, mix_bits(seed)
    halvings    : int64, how often the sample was halved, this time included
    """
    offsets, column_starts, columns, values = rows.offsets, rows.column_starts, rows.columns, rows.values
    count = 0
    n_cells = 0
    n_columns = 0
    previous = -1
    previous_length = -1
    start = offsets[0]
    for i in range(len(row_numbers)):
        stop = offsets[i + 1]
        if is_chosen(row_numbers[i], key, halvings):
            length = stop - start
            source = column_starts[i]
            shared = length == previous_length and (
                source == previous or same_columns(columns, n_columns - length, source, length)
            )
            if not shared:  # columns only move to the front, so those at `source` are still there
                for k in range(length):
                    columns[np.uint64(n_columns + k)] = columns[np.uint64(source + k)]
                n_columns += length
            previous = source
            previous_length = length
            for k in range(length):
                values[np.uint64(n_cells + k)] = values[np.uint64(start + k)]
            n_cells += length
            row_numbers[count] = row_numbers[i]
            column_starts[count] = n_columns - length
            count += 1
            offsets[count] = n_cells
        start = stop
    return count, n_cells, n_columns
