"""Rows of LETOR text to labels, query ids, feature ids and values; where the faults are.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 48 '0', 57 '9', 58 ':',
100 'd', 105 'i', 113 'q'. Every text ends with a newline, so no loop needs to ask whether there is a further byte;
MARGIN further bytes may be looked at, and mean nothing. Indices are unsigned: an index that may be negative costs
a test at each byte.

The ends of tokens are found in 64 bytes at once (Langdale and Lemire, Parsing gigabytes of JSON per second, 2019,
section 3), so that no token waits for the one before it. A cell is first compared with the index that the row is
expected to have next; its digits are read only where they differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import byte_marks, load_word, set_bits, trailing_zeros
from lmart.kernels.text.decimals import (
    DIGIT_ZEROS,
    eight_digits,
    nondigits,
    read_long_decimals,
    read_short_decimals,
)
from lmart.kernels.text.parsed_text import note_fault, note_place, note_query_id

BATCH = 256  # cells whose ends are found together, or a few more
BATCH_BUFFER = BATCH + 80  # elements of each array of a CellBatch
# Indices into the `counts` of ParsedRows.
ROWS, CELLS, UNKNOWN, RUNS, SLOW_NUMBERS, FAULTS, UNSORTED = 0, 1, 2, 3, 4, 5, 6
N_COUNTS = 7
# Columns of `KnownFeatures.patterns`.
PATTERN, MASK, LENGTH, ID, COLUMN = 0, 1, 2, 3, 4
N_PATTERN_COLUMNS = 5
_ZERO, _ONE, _TWO, _THREE, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_EIGHT, _ALL_BITS = np.uint64(8), np.uint64(64)


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
    slow_numbers : int64[cells + rows, 5], labels and values that are left to `decimals.read_numbers`, as that
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
    """The state of reading a row after some of its cells.

    expected  : uint64, the row of `patterns` of the id that is expected next
    matched   : uint64, the value of `expected` behind the last cell whose id was not as expected
    previous  : uint64, the id of that cell, plus 1
    ascending : bool, whether all ids ascend
    """

    expected: np.uint64
    matched: np.uint64
    previous: np.uint64
    ascending: bool


@inner_kernel
def _find_ends(text: UInt8Array, start: np.uint64, ends: UInt64Array) -> np.uint64:
    """Write the indices of blanks and tabs, and last of the first '#' or line end; return how many, BATCH at least.

    text : uint8, in      start : uint64      ends : uint64[BATCH_BUFFER], out
    """
    n = _ZERO
    p = start
    while n < np.uint64(BATCH):
        found = byte_marks(text, p, 32, 32) | byte_marks(text, p, 9, 9)
        closing = byte_marks(text, p, 10, 10) | byte_marks(text, p, 13, 13) | byte_marks(text, p, 35, 35)
        first = closing & (~closing + _ONE)
        found = (found & (first - _ONE)) | first  # - 1: all bits without one
        last = n + set_bits(found)
        for k in range(12):  # enough for most text, and no branch to predict
            ends[n + np.uint64(k)] = p + trailing_zeros(found)
            found &= found - _ONE
        n += np.uint64(12)
        while n < last:
            ends[n] = p + trailing_zeros(found)
            found &= found - _ONE
            n += _ONE
        n = last
        if closing != _ZERO:
            break
        p += _ALL_BITS
    return n


@inner_kernel
def _long_id(text: UInt8Array, start: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the number whose digits begin at text[start], and where they stop; that is `start` if it is too large."""
    feature_id = _ZERO
    p = start
    while 48 <= text[p] <= 57:
        digit = np.uint64(text[p] - 48)
        if feature_id > (np.uint64(0x7FFFFFFFFFFFFFFF) - digit) // np.uint64(10):
            return _ZERO, start
        feature_id = feature_id * np.uint64(10) + digit
        p += _ONE
    return feature_id, p


@inner_kernel
def _read_id(text: UInt8Array, start: np.uint64, word: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the id whose digits begin at text[start], and the index behind its colon; that is `start` without an id.

    word : uint64, the eight bytes at text[start]
    """
    x = word ^ DIGIT_ZEROS
    n_digits = trailing_zeros(nondigits(x)) >> _THREE
    if n_digits == _ZERO:
        return _ZERO, start
    if n_digits < _EIGHT:
        feature_id = eight_digits(x << (_ALL_BITS - (n_digits << _THREE)))
        stop = start + n_digits
    else:
        feature_id, stop = _long_id(text, start)
    return feature_id, stop + _ONE if stop != start and text[stop] == 58 else start


@inner_kernel
def _write_column(feature_id: np.uint64, cell: np.uint64, features: KnownFeatures, out: ParsedRows) -> np.uint64:
    """Write the column of an id at out.columns[cell], or note an id that is not known; return which to expect next.

    feature_id : uint64      features : KnownFeatures, in      out : ParsedRows, out
    """
    patterns, pattern_of_id = features
    found = pattern_of_id[feature_id] if feature_id < np.uint64(len(pattern_of_id)) else -1
    if found >= 0:
        out.columns[cell] = patterns[np.uint64(found), COLUMN]
        return np.uint64(found) + _ONE
    n_unknown = out.counts[UNKNOWN]
    out.unknown[n_unknown] = np.int64(feature_id)
    out.columns[cell] = ~n_unknown
    out.counts[UNKNOWN] = n_unknown + 1
    return np.uint64(len(patterns) - 1)


@inner_kernel
def _read_ids(
    text: UInt8Array,
    start: np.uint64,
    n_ends: np.uint64,
    first_cell: np.uint64,
    progress: RowProgress,
    features: KnownFeatures,
    batch: CellBatch,
    out: ParsedRows,
) -> tuple[np.uint64, np.uint64, RowProgress, bool]:
    """Write the columns of a batch of cells, and where their values are.

    Return where it stopped, how many cells there are, the progress, and whether the row is wrong.
    text       : uint8, in      start : uint64, where the batch starts      n_ends : uint64, of batch.ends
    first_cell : uint64, the first cell of the batch in out.columns
    progress   : RowProgress behind the cells before      features : KnownFeatures, in
    batch      : CellBatch; ends in, starts, stops and words out      out : ParsedRows, out
    """
    patterns = features.patterns
    expected, matched, previous, ascending = progress
    p = start
    n = _ZERO
    for k in range(n_ends):
        end = batch.ends[k]
        word = load_word(text, p)
        if word & patterns[expected, MASK] == patterns[expected, PATTERN]:
            value_start = p + patterns[expected, LENGTH]
            out.columns[first_cell + n] = patterns[expected, COLUMN]
            expected += _ONE
        elif end == p:  # blanks side by side, or at the end
            p = end + _ONE
            continue
        else:
            if expected > matched:
                previous = patterns[expected - _ONE, ID] + _ONE
            feature_id, value_start = _read_id(text, p, word)
            if value_start == p:
                return p, n, RowProgress(expected, matched, previous, ascending), True
            expected = _write_column(feature_id, first_cell + n, features, out)
            matched = expected
            ascending &= bool(feature_id >= previous)
            previous = feature_id + _ONE
        batch.starts[n] = value_start
        batch.stops[n] = end
        batch.words[n] = load_word(text, value_start)
        n += _ONE
        p = end + _ONE
    return p, n, RowProgress(expected, matched, previous, ascending), False


@inner_kernel
def _read_other_values(
    text: UInt8Array, n: np.uint64, first_cell: np.uint64, line: int, batch: CellBatch, out: ParsedRows
) -> bool:
    """Write the values of a batch that are not short, or note them as slow; return whether one is empty.

    text : uint8, in      n : uint64, cells of the batch      first_cell : uint64, the first of them in out.values
    line : int64          batch : CellBatch as `_read_ids` and `read_short_decimals` leave it
    out  : ParsedRows, out
    """
    _, starts, stops, words, lasts, slow, members, numbers = batch
    n_long = _ZERO
    for i in range(n):  # no branch to predict: half of all values may be long
        members[n_long] = i
        words[n_long] = words[i]
        starts[n_long] = starts[i]
        stops[n_long] = stops[i]
        lasts[n_long] = load_word(text, max(stops[i], _EIGHT) - _EIGHT)  # of long values at least
        n_long += np.uint64(slow[i] != _ZERO)
    read_long_decimals(words, lasts, starts, stops, n_long, numbers, slow)
    has_empty = False
    for k in range(n_long):
        out.values[first_cell + members[k]] = numbers[k]
        if slow[k] != _ZERO:
            has_empty |= bool(starts[k] == stops[k])
            cell = int(np.int64(first_cell + members[k]))
            n_slow = out.counts[SLOW_NUMBERS]
            out.counts[SLOW_NUMBERS] = note_place(out.slow_numbers, n_slow, cell, starts[k], stops[k], line)
    return has_empty


@inner_kernel
def read_cells(
    text: UInt8Array, start: np.uint64, line: int, features: KnownFeatures, batch: CellBatch, out: ParsedRows
) -> tuple[np.uint64, np.uint64, bool, bool]:
    """Write the columns and values of a row's cells, behind those that out.counts[CELLS] counts.

    Return where the cells stop, the index behind the last in out.columns, whether the ids ascend, and whether the
    row is wrong.
    text     : uint8, in      start : uint64, where the first cell starts      line : int64
    features : KnownFeatures, in      batch : CellBatch, overwritten      out : ParsedRows, out
    """
    p = start
    cell = np.uint64(out.counts[CELLS])
    progress = RowProgress(_ZERO, _ZERO, _ZERO, True)
    while True:
        n_ends = _find_ends(text, p, batch.ends)
        p, n, progress, wrong = _read_ids(text, p, n_ends, cell, progress, features, batch, out)
        if not wrong:
            any_slow = read_short_decimals(batch.words, batch.starts, batch.stops, n, cell, out.values, batch.slow)
            if any_slow != _ZERO:
                wrong = _read_other_values(text, n, cell, line, batch, out)
        cell += n
        last = batch.ends[n_ends - _ONE]
        if wrong or (text[last] != 32 and text[last] != 9):
            return min(p, last), cell, progress.ascending, wrong


@kernel
def count_marks(text: UInt8Array, start: int, stop: int) -> tuple[int, int]:
    """Return how many newlines, and how many colons behind a digit, text[start:stop] has.

    text : uint8[>= stop + MARGIN], in; stop > start
    Cost: O(stop - start), a twentieth of a nanosecond a byte.
    """
    lines = _ZERO
    cells = _ZERO
    p = np.uint64(start)
    end = np.uint64(stop)
    digit_before = _ZERO
    while p < end:
        inside = ~_ZERO if end - p >= _ALL_BITS else (_ONE << (end - p)) - _ONE
        digits = byte_marks(text, p, 48, 57)
        lines += set_bits(byte_marks(text, p, 10, 10) & inside)
        cells += set_bits(byte_marks(text, p, 58, 58) & ((digits << _ONE) | digit_before) & inside)
        digit_before = digits >> np.uint64(63)
        p += _ALL_BITS
    return int(np.int64(lines)), int(np.int64(cells))


@inner_kernel
def _skip_blanks(text: UInt8Array, start: np.uint64) -> np.uint64:
    """Return the index of the first byte of `text` from `start` on that is neither blank nor tab."""
    p = start
    while text[p] == 32 or text[p] == 9:
        p += _ONE
    return p


@inner_kernel
def _read_label(text: UInt8Array, start: np.uint64, line: int, out: ParsedRows) -> np.uint64:
    """Write the label of the next row, or note it as slow; return where the text behind it and blanks starts.

    text : uint8, in      start : uint64, where the label starts      line : int64      out : ParsedRows, out
    """
    row = out.counts[ROWS]
    stop = start
    while text[stop] != 32 and text[stop] != 10 and text[stop] != 9 and text[stop] != 13 and text[stop] != 35:
        stop += _ONE
    length = stop - start
    x = load_word(text, start) ^ DIGIT_ZEROS
    if length < _EIGHT:
        x = x << (_ALL_BITS - (length << _THREE))
    if length >= _EIGHT or nondigits(x) != _ZERO:
        out.counts[SLOW_NUMBERS] = note_place(out.slow_numbers, out.counts[SLOW_NUMBERS], ~row, start, stop, line)
    out.labels[row] = float(eight_digits(x))
    return _skip_blanks(text, stop)


@inner_kernel
def _find_query_id(text: UInt8Array, start: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return where the id behind `qid:` at text[start] starts and stops; `start` twice without one."""
    if text[start] != 113 or text[start + _ONE] != 105 or text[start + _TWO] != 100 or text[start + _THREE] != 58:
        return start, start
    first = start + _FOUR
    stop = first
    while text[stop] > 32 and text[stop] != 35:
        stop += _ONE
    return first, stop


@inner_kernel
def _end_line(text: UInt8Array, start: np.uint64) -> tuple[np.uint64, bool]:
    """Return the index of the newline behind text[start], and whether the text up to it is wrong.

    Wrong are a zero byte, and a carriage return that is not before the newline, in a comment too: it may have
    swallowed rows that end so.
    """
    p = start
    wrong = False
    while text[p] != 10:
        wrong |= text[p] == 0 or (text[p] == 13 and text[p + _ONE] != 10 and text[p + _ONE] != 13)
        p += _ONE
    return p, wrong


@inner_kernel
def _parse_line(
    text: UInt8Array,
    line_start: np.uint64,
    line: int,
    layout: RowLayout,
    features: KnownFeatures,
    batch: CellBatch,
    out: ParsedRows,
) -> np.uint64:
    """Write the row of one line, or note its fault; return the index of the newline.

    text   : uint8, in      line_start : uint64      line : int64, of the line
    layout : RowLayout, in      features : KnownFeatures, in
    batch  : CellBatch, overwritten      out : ParsedRows, out
    """
    counts = out.counts
    p = _skip_blanks(text, line_start)
    is_row = text[p] != 10 and text[p] != 35 and text[p] != 13
    n_unknown, n_slow = counts[UNKNOWN], counts[SLOW_NUMBERS]
    cell = np.uint64(counts[CELLS])
    id_start, id_stop = _ZERO, _ZERO
    wrong, ascending = False, True
    if is_row and layout.has_label:
        p = _read_label(text, p, line, out)
    if is_row and layout.has_query:
        id_start, id_stop = _find_query_id(text, p)
        wrong = bool(id_start == id_stop)
        p = _skip_blanks(text, id_stop)
    if is_row and not wrong:
        p, cell, ascending, wrong = read_cells(text, p, line, features, batch, out)
    stop, is_wrong_end = _end_line(text, p)
    if wrong or is_wrong_end:
        counts[FAULTS] = note_fault(out.faults, counts[FAULTS], line, line_start, stop)
        counts[UNKNOWN], counts[SLOW_NUMBERS] = n_unknown, n_slow
    elif is_row:
        row = counts[ROWS]
        if layout.has_query:
            counts[RUNS] = note_query_id(text, out.runs, counts[RUNS], row, id_start, id_stop, line)
        if not ascending:
            counts[UNSORTED] = note_place(out.unsorted, counts[UNSORTED], row, line_start, stop, line)
        out.comments[row, 0] = p + _ONE if text[p] == 35 else _ZERO
        out.comments[row, 1] = 0
        out.offsets[row + 1] = cell
        counts[ROWS], counts[CELLS] = row + 1, cell
    return stop


@inner_kernel
def _parse_lines(
    text: UInt8Array,
    start: np.uint64,
    stop: np.uint64,
    layout: RowLayout,
    features: KnownFeatures,
    batch: CellBatch,
    out: ParsedRows,
) -> None:
    """Do what `parse_letor` does, with buffers for a batch of cells.

    text     : uint8[>= stop + MARGIN], in      start, stop : uint64, the bytes to read
    layout, features, batch, out : as in `_parse_line`
    """
    for i in range(N_COUNTS):
        out.counts[i] = 0
    out.offsets[0] = 0
    line = 0
    p = start
    while p < stop:
        p = _parse_line(text, p, line, layout, features, batch, out) + _ONE
        line += 1


@kernel
def parse_letor(
    text: UInt8Array, start: int, stop: int, layout: RowLayout, features: KnownFeatures, out: ParsedRows
) -> None:
    """Read whole lines of LETOR text. A line with a fault is noted and leaves no row.

    text        : uint8[>= stop + MARGIN], in; text[stop - 1] is a newline
    start, stop : int, the bytes to read; lines count from 0 at `start`
    layout      : RowLayout, in      features : KnownFeatures, in      out : ParsedRows, out
    Reads whole labels below 10^7 and values of up to 16 characters; out.slow_numbers gets the others.
    Parallel: each call writes only its own `out`. Cost: O(stop - start).
    """
    n = BATCH_BUFFER
    batch = CellBatch(
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64),
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.float64),
    )  # fmt: skip
    _parse_lines(text, np.uint64(start), np.uint64(stop), layout, features, batch, out)
