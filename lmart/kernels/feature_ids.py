"""Feature ids of cells: the hash table from id to column, and rows put into the order of their ids."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.kernels.compiler import inner_kernel, kernel


@inner_kernel
def find_slot(feature_id: int, keys: Int64Array) -> int:
    """Return the slot of a hash table that holds the id, or the free one where it belongs.

    feature_id : int64, >= 0
    keys       : int64[2^k], the id in each slot, -1 where it is free, in; at least one is
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

    ids        : int64[n], >= 0, in
    keys       : int64[2^k], the id in each slot of the hash table, -1 where it is free, in and out; n slots are free
    columns    : int32[2^k], the column of the id in each slot, in and out
    known_ids  : int64[>= n_known + n], the id of each column, in and out
    n_known    : int64, columns so far
    id_columns : int32[n], out

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

    columns     : int32[n_cells], in and out
    start, stop : int64, the cells of this call
    resolved    : int32[...], in

    Parallel: the caller runs ranges of cells side by side.
    """
    for i in range(start, stop):
        if columns[i] < 0:
            columns[i] = resolved[~columns[i]]


@kernel
def renumber_columns(columns: Int32Array, start: int, stop: int, new_numbers: Int32Array) -> None:
    """Replace each column c of columns[start:stop] by new_numbers[c].

    columns     : int32[n_cells], in and out
    start, stop : int64, the cells of this call
    new_numbers : int32[n_columns], in

    Parallel: the caller runs ranges of cells side by side.
    """
    for i in range(start, stop):
        columns[i] = new_numbers[columns[i]]


@inner_kernel
def merge_runs(
    row_columns: Int32Array, known_ids: Int64Array, n: int, width: int, order: Int64Array, merged: Int64Array
) -> None:
    """Merge neighbouring runs of sorted cells: one pass of a stable merge sort by feature id.

    row_columns : int32[>= n], columns of the cells of a row, in
    known_ids   : int64[n_known], the id of each column, in
    n           : int64, cells of the row
    width       : int64, cells of a run
    order       : int64[>= n], places in the row, by ascending id in each run of `width`, in
    merged      : int64[>= n], the same in each run of 2 x `width`, out
    """
    for low in range(0, n, 2 * width):
        middle = min(low + width, n)
        high = min(low + 2 * width, n)
        left, right = low, middle
        for k in range(low, high):
            take_left = left < middle
            if take_left and right < high:
                take_left = known_ids[row_columns[order[left]]] <= known_ids[row_columns[order[right]]]
            if take_left:
                merged[k] = order[left]
                left += 1
            else:
                merged[k] = order[right]
                right += 1


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
    known_ids : int64[n_known], the id of each column, in
    n_rows    : int64, all rows
    offsets   : int64[n_rows + 1], the cells of row r are offsets[r]:offsets[r + 1], in and out
    columns   : int32[n_cells], in and out
    values    : float64[n_cells], in and out
    repeated  : int64[m], places in `unsorted` of the rows in which an id was written twice, out

    Cost: O(cells), and O(k log k) for each row of k cells that is sorted.
    """
    longest = 0
    for i in range(len(unsorted)):
        row = unsorted[i, 0]
        longest = max(longest, offsets[row + 1] - offsets[row])
    order = np.empty(longest, np.int64)
    merged = np.empty(longest, np.int64)
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
        is_unsorted = i < len(unsorted) and unsorted[i, 0] == row
        for k in range(n):
            if is_unsorted:
                order[k] = k
                row_columns[k] = columns[first + k]
                row_values[k] = values[first + k]
            else:
                columns[end + k] = columns[first + k]
                values[end + k] = values[first + k]
        if is_unsorted:
            width = 1
            while width < n:
                merge_runs(row_columns, known_ids, n, width, order, merged)
                order, merged = merged, order
                width *= 2
            start = end
            for k in range(n):
                if k + 1 < n and row_columns[order[k]] == row_columns[order[k + 1]]:
                    continue
                columns[end] = row_columns[order[k]]
                values[end] = row_values[order[k]]
                end += 1
            if end - start < n:
                repeated[n_repeated] = i
                n_repeated += 1
            i += 1
        else:
            end += n
        offsets[row + 1] = end
    return n_repeated
