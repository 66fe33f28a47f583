"""Feature ids of cells: the hash table from id to column, and rows put into the order of their ids."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ranking.ordering import merge_sort


@inner_kernel
def find_slot(feature_id: int, keys: Int64Array) -> int:
    """Return the slot of a hash table that holds the id, or the free slot where it belongs.

    feature_id : int64, >= 0
    keys       : int64[2^k], the id in each slot, -1 where it is free, as at least one slot is, in
    """
    mask = len(keys) - 1
    slot = ((feature_id ^ (feature_id >> 32)) * 0x9E3779B97F4A7C1 >> 20) & mask
    while keys[slot] != feature_id and keys[slot] != -1:
        slot = (slot + 1) & mask
    return slot


@kernel
def register_ids(
    ids: Int64Array, keys: Int64Array, columns: Int32Array, known_ids: Int64Array, n_known: int, id_columns: Int32Array
) -> int:
    """Write the column of each id; ids not met before get the next columns. Return how many are known then.

    ids       : int64[n], >= 0, in
    keys      : int64[2^k], the id in each slot of the hash table, -1 where it is free, in and out; n slots are free
    columns   : int32[2^k], the column of the id in each slot, in and out
    known_ids : int64[>= n_known + n], the id of each column, in and out
    n_known   : int64, columns so far      id_columns : int32[n], out

    Cost: O(n) on average.
    """
    for i in range(len(ids)):
        slot = find_slot(int(ids[i]), keys)
        if keys[slot] == -1:
            keys[slot] = ids[i]
            columns[slot] = n_known
            known_ids[n_known] = ids[i]
            n_known += 1
        id_columns[i] = columns[slot]
    return n_known


@kernel
def resolve_columns(columns: Int32Array, start: int, stop: int, resolved: Int32Array) -> None:
    """Replace each column c < 0 of columns[start:stop] by resolved[~c].

    columns  : int32[n_cells], in and out      start, stop : int64, the cells of this call
    resolved : int32[...], in

    Parallel: the caller runs ranges of cells side by side.
    """
    for i in range(start, stop):
        if columns[i] < 0:
            columns[i] = resolved[~columns[i]]


@kernel
def renumber_columns(columns: Int32Array, start: int, stop: int, new_numbers: Int32Array) -> None:
    """Replace each column c of columns[start:stop] by new_numbers[c].

    columns, start, stop : as in `resolve_columns`      new_numbers : int32[n_columns], in

    Parallel: the caller runs ranges of cells side by side.
    """
    for i in range(start, stop):
        columns[i] = new_numbers[columns[i]]


@inner_kernel
def _write_sorted(
    row_columns: Int32Array,
    row_values: Float64Array,
    order: Int32Array,
    n: int,
    columns: Int32Array,
    values: Float64Array,
) -> int:
    """Write the cells of a row in an order, of cells with one column only the last; return how many.

    row_columns : int32[>= n], in      row_values : float64[>= n], in
    order       : int32[>= n], cells with one column side by side, in      n : int64, cells of the row
    columns     : int32[>= n], out      values : float64[>= n], out
    """
    n_kept = 0
    for k in range(n):
        if k + 1 < n and row_columns[order[k]] == row_columns[order[k + 1]]:
            continue
        columns[n_kept] = row_columns[order[k]]
        values[n_kept] = row_values[order[k]]
        n_kept += 1
    return n_kept


@kernel
def sort_rows(
    unsorted: Int64Array,
    known_ids: Int64Array,
    n_rows: int,
    offsets: Int64Array,
    columns: Int32Array,
    values: Float64Array,
    repeated: Int64Array,
) -> int:
    """Sort the cells of some rows by feature id, and keep the last of cells with one id; close the gaps.

    Returns how many of these rows had an id twice.
    unsorted  : int64[m, 4], the rows, ascending in unsorted[:, 0], in
    known_ids : int64[n_known], the id of each column, in      n_rows : int64, all rows
    offsets   : int64[n_rows + 1], the cells of row r are offsets[r]:offsets[r + 1], in and out
    columns   : int32[n_cells], in and out      values : float64[n_cells], in and out
    repeated  : int64[m], places in `unsorted` of the rows in which an id was written twice, out

    Cost: O(cells), and O(k log k) for each row of k cells that is sorted.
    """
    longest = 0
    for i in range(len(unsorted)):
        row = unsorted[i, 0]
        longest = max(longest, offsets[row + 1] - offsets[row])
    keys, spare_keys = np.empty(longest, np.int64), np.empty(longest, np.int64)
    order, spare_order = np.empty(longest, np.int32), np.empty(longest, np.int32)
    row_columns = np.empty(longest, np.int32)
    row_values = np.empty(longest, np.float64)
    n_repeated = 0
    i = 0
    end = offsets[unsorted[0, 0]]  # of the cells written so far
    stop = end
    for row in range(unsorted[0, 0], n_rows):
        first = stop
        stop = offsets[row + 1]
        n = stop - first
        if i < len(unsorted) and unsorted[i, 0] == row:
            for k in range(n):
                row_columns[k] = columns[first + k]
                row_values[k] = values[first + k]
                keys[k] = -known_ids[row_columns[k]]  # the highest comes first, so that ids ascend
                order[k] = k
            merge_sort(keys, order, spare_keys, spare_order, n)
            n_kept = _write_sorted(row_columns, row_values, order, n, columns[end:], values[end:])
            if n_kept < n:
                repeated[n_repeated] = i
                n_repeated += 1
            i += 1
            end += n_kept
        else:
            for k in range(n):
                columns[end + k] = columns[first + k]
                values[end + k] = values[first + k]
            end += n
        offsets[row + 1] = end
    return n_repeated
