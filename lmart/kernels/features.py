"""Features as columns: the table of their ids, and the cells of rows put right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@inner_kernel
def _slot(feature_id: int, keys: Longs) -> int:
    """Return where in `keys` the id stands, or the free place where it belongs. keys : int64[2^k], -1 is free."""
    mask = len(keys) - 1
    slot = ((feature_id ^ (feature_id >> 32)) * 0x9E3779B97F4A7C1 >> 20) & mask
    while keys[slot] != feature_id and keys[slot] != -1:
        slot = (slot + 1) & mask
    return slot


@kernel
def register_ids(ids: Longs, keys: Longs, columns: Ints, known_ids: Longs, n_known: int, out: Ints) -> int:
    """Write the column of each id; ids not met before get the next columns. Return how many are known then.

    ids       : int64[n], >= 0, in             out     : int32[n], out
    keys      : int64[2^k], in and out         columns : int32[2^k], in and out; room for all n
    known_ids : int64[>= n_known + n], in and out, the id of each column
    Cost: O(n) on average.
    """
    for i in range(len(ids)):
        slot = _slot(int(ids[i]), keys)
        if keys[slot] == -1:
            keys[slot] = ids[i]
            columns[slot] = n_known
            known_ids[n_known] = ids[i]
            n_known += 1
        out[i] = columns[slot]
    return n_known


@kernel
def look_up_ids(ids: Longs, keys: Longs, columns: Ints, out: Ints) -> None:
    """Write the column of each id, -1 for those not known.

    ids  : int64[n], >= 0, in      out     : int32[n], out
    keys : int64[2^k], in          columns : int32[2^k], in
    Cost: O(n) on average.
    """
    for i in range(len(ids)):
        slot = _slot(int(ids[i]), keys)
        out[i] = columns[slot] if keys[slot] != -1 else -1


@kernel
def resolve_columns(columns: Ints, start: int, stop: int, resolved: Ints) -> None:
    """Replace each column c < 0 of columns[start:stop] by resolved[~c]. Parallel: slices are independent."""
    for i in range(start, stop):
        if columns[i] < 0:
            columns[i] = resolved[~columns[i]]


@kernel
def renumber_columns(columns: Ints, start: int, stop: int, new_numbers: Ints) -> None:
    """Replace each column c of columns[start:stop] by new_numbers[c]. Parallel: slices are independent."""
    for i in range(start, stop):
        columns[i] = new_numbers[columns[i]]


@kernel
def sort_rows(
    unsorted: Longs, known_ids: Longs, n_rows: int, offsets: Longs, columns: Ints, values: Floats, repeated: Longs
) -> int:
    """Sort the cells of some rows by feature id, of cells with one id keep the last; return how many rows had such.

    unsorted  : int64[m, 4], in, the rows ascending in unsorted[:, 0]     known_ids : int64[n_known], in
    offsets   : int64[n_rows + 1], in and out      columns, values : int32[cells], float64[cells], in and out
    repeated  : int64[m], out, places in `unsorted` of the rows in which an id stood twice
    Stable merge sort, by runs of doubling length. Cost: O(cells), and O(k log k) for each of these rows of k cells.
    """
    longest = 0
    for i in range(len(unsorted)):
        row = unsorted[i, 0]
        longest = max(longest, offsets[row + 1] - offsets[row])
    order = np.empty(longest, np.int64)
    other = np.empty(longest, np.int64)
    row_columns = np.empty(longest, np.int32)
    row_values = np.empty(longest, np.float64)
    n_repeated = 0
    i = 0
    place = offsets[unsorted[0, 0]]
    stop = place
    for row in range(unsorted[0, 0], n_rows):
        first = stop
        stop = offsets[row + 1]
        n = stop - first
        if i < len(unsorted) and unsorted[i, 0] == row:
            for k in range(n):
                order[k] = k
                row_columns[k] = columns[first + k]
                row_values[k] = values[first + k]
            width = 1
            while width < n:
                for low in range(0, n, 2 * width):
                    middle = min(low + width, n)
                    high = min(low + 2 * width, n)
                    left, right = low, middle
                    for k in range(low, high):
                        take_left = left < middle
                        if take_left and right < high:
                            left_id = known_ids[row_columns[order[left]]]
                            take_left = left_id <= known_ids[row_columns[order[right]]]
                        if take_left:
                            other[k] = order[left]
                            left += 1
                        else:
                            other[k] = order[right]
                            right += 1
                order, other = other, order
                width *= 2
            start = place
            for k in range(n):
                if k + 1 < n and row_columns[order[k]] == row_columns[order[k + 1]]:
                    continue
                columns[place] = row_columns[order[k]]
                values[place] = row_values[order[k]]
                place += 1
            if place - start < n:
                repeated[n_repeated] = i
                n_repeated += 1
            i += 1
        else:
            for k in range(first, stop):
                columns[place] = columns[k]
                values[place] = values[k]
                place += 1
        offsets[row + 1] = place
    return n_repeated
