"""What reading LETOR text and reading tables have in common: blanks, and notes of places in the text."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Int64Array, UInt8Array
from lmart.kernels.numba_support.code_cache import inner_kernel

MARGIN = 64  # bytes behind a text that may be looked at, and mean nothing


@inner_kernel
def skip_blanks(text: UInt8Array, start: int, delimiter: int) -> int:
    """Return the index of the first byte of `text` from `start` on that is neither a blank nor a tab.

    delimiter : int, the byte between fields, in which case a tab is no blank; 0 without a delimiter
    """
    p = start
    while text[p] == 32 or (text[p] == 9 and delimiter != 9):
        p += 1
    return p


@inner_kernel
def note_place(notes: Int64Array, n: int, what: int, start: np.uint64, stop: np.uint64, line: int) -> int:
    """Note a place of the text; return how many there are then.

    notes : int64[> n, >= 4], columns for what, start, stop and line, out      n : int64, notes so far
    what  : int64, of the place      start, stop : uint64      line : int64
    """
    notes[n, 0] = what
    notes[n, 1] = start
    notes[n, 2] = stop
    notes[n, 3] = line
    return n + 1


@inner_kernel
def note_fault(faults: Int64Array, n: int, line: int, start: np.uint64, stop: np.uint64) -> int:
    """Note where a faulty line is while there is space; return how many faults there are then.

    faults : int64[m, 3], columns for line, start and stop, out      n : int64, faults so far
    line   : int64      start, stop : uint64
    """
    if n < len(faults):
        faults[n, 0] = line
        faults[n, 1] = start
        faults[n, 2] = stop
    return n + 1


@inner_kernel
def note_query_id(
    text: UInt8Array, runs: Int64Array, n: int, row: int, start: np.uint64, stop: np.uint64, line: int
) -> int:
    """Begin a run of query ids with a row, unless its id is that of the last run; return how many runs there are then.

    text : uint8, in      runs : int64[> n, 4], columns for row, start, stop and line, in and out
    n    : int64, runs so far      row : int64      start, stop : uint64, where the id is      line : int64
    """
    if n > 0:
        other = np.uint64(runs[n - 1, 1])
        same = stop - start == np.uint64(runs[n - 1, 2]) - other
        p = start
        while same and p < stop:
            same = text[p] == text[other + (p - start)]
            p += np.uint64(1)
        if same:
            return n
    return note_place(runs, n, row, start, stop, line)
