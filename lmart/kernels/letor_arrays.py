"""The inputs, outputs and buffers of the kernels that read LETOR text, as named tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt64Array

BATCH = 256  # cells whose ends are found together, or a few more
BATCH_BUFFER = BATCH + 80  # elements of each array of a CellBatch
# Indices into the `counts` of ParsedRows.
ROWS, CELLS, UNKNOWN, RUNS, SLOW_NUMBERS, FAULTS, UNSORTED = 0, 1, 2, 3, 4, 5, 6
N_COUNTS = 7
# Columns of `KnownFeatures.patterns`.
PATTERN, MASK, LENGTH, ID, COLUMN = 0, 1, 2, 3, 4
N_PATTERN_COLUMNS = 5


class RowLayout(NamedTuple):
    """What each row has before its cells: has_label, a label, and has_query, behind that `qid:ID`; both bool."""

    has_label: bool
    has_query: bool


class KnownFeatures(NamedTuple):
    """The features that are known so far; n of them.

    patterns      : uint64[n + 1, 5], by ascending id: the eight bytes of the text `ID:` as PATTERN, the bits of them
                    that have to be equal as MASK, the bytes of `ID:` as LENGTH, ID and COLUMN; the last matches no text
    pattern_of_id : int32[m], the row of `patterns` of each id below m, -1 without one; m may be 0
    """

    patterns: UInt64Array
    pattern_of_id: Int32Array


class ParsedRows(NamedTuple):
    """What `parse_letor` writes; rows is at least the newlines of the text, cells at least its colons behind a digit.

    labels       : float64[rows]
    offsets      : int64[rows + 1], the cells of row r are offsets[r]:offsets[r + 1]
    columns      : int32[cells]; ~k for the k-th id that is not known
    values       : float64[cells]
    unsorted     : int64[rows, 4], rows whose ids do not ascend: row, start, stop and line
    unknown      : int64[cells], ids that are not known, in the order of the text
    runs         : int64[rows, 4], runs of equal query ids: row, start and stop of the id in the text, line
    slow_numbers : int64[cells + rows, 5], labels and values that are left to `decimal_numbers.read_numbers`, as that
                   takes them, but for the last field
    comments     : int64[rows, 2], the index behind the '#' of the row's comment, 0 without one; 0
    faults       : int64[m, 3], the first m faulty lines: line, start and stop
    counts       : int64[7], by ROWS, CELLS, UNKNOWN, RUNS, SLOW_NUMBERS, FAULTS, UNSORTED
    """

    labels: Float64Array
    offsets: Int64Array
    columns: Int32Array
    values: Float64Array
    unsorted: Int64Array
    unknown: Int64Array
    runs: Int64Array
    slow_numbers: Int64Array
    comments: Int64Array
    faults: Int64Array
    counts: Int64Array


class CellBatch(NamedTuple):
    """Buffers for one batch of cells of a row, each of BATCH_BUFFER elements.

    ends          : uint64, the indices of blanks, tabs and, last, of the '#' or line end
    starts, stops : uint64, where values start and stop; first of all cells, then of those that are not short
    words, lasts  : uint64, the first and the last eight bytes of these values
    slow          : uint64, 0 for a value that was read
    members       : uint64, which cells of the batch have values that are not short
    numbers       : float64, the values of these
    """

    ends: UInt64Array
    starts: UInt64Array
    stops: UInt64Array
    words: UInt64Array
    lasts: UInt64Array
    slow: UInt64Array
    members: UInt64Array
    numbers: Float64Array


class RowProgress(NamedTuple):
    """What is known of a row behind some of its cells.

    expected  : uint64, the row of `patterns` of the id that is expected next
    matched   : uint64, the value of `expected` behind the last cell whose id was not the expected one
    previous  : uint64, the id of that cell, plus 1
    ascending : bool, whether all ids ascend
    """

    expected: np.uint64
    matched: np.uint64
    previous: np.uint64
    ascending: bool
