"""Rows of LETOR text to labels, query ids, feature ids and values; where the faults are.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 58 ':', 100 'd',
105 'i', 113 'q'. Every text ends with a newline, so no loop needs to ask whether there is a further byte; MARGIN
further bytes may be looked at, and mean nothing. Indices are unsigned: one that may be negative costs a test at each
byte.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import UInt8Array
from lmart.kernels.letor_arrays import (
    BATCH_BUFFER,
    CELLS,
    FAULTS,
    N_COUNTS,
    ROWS,
    RUNS,
    SLOW_NUMBERS,
    UNKNOWN,
    UNSORTED,
    CellBatch,
    KnownFeatures,
    ParsedRows,
    RowLayout,
)
from lmart.kernels.letor_cells import read_cells
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import byte_marks, load_word, set_bits
from lmart.kernels.parsed_text import note_fault, note_place, note_query_id
from lmart.kernels.short_decimals import DIGIT_ZEROS, eight_digits, nondigits

_ZERO, _ONE, _TWO, _THREE, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_EIGHT, _ALL_BITS = np.uint64(8), np.uint64(64)


@kernel
def count_marks(text: UInt8Array, start: int, stop: int) -> tuple[int, int]:
    """Return how many newlines, and how many colons behind a digit, stand in text[start:stop].

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

    text     : uint8, in      line_start : uint64      line : int64, of the line
    layout   : RowLayout, in      features : KnownFeatures, in
    batch    : CellBatch, overwritten      out : ParsedRows, out
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
    layout   : RowLayout, in      features : KnownFeatures, in
    batch    : CellBatch, overwritten      out : ParsedRows, out
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
    What is read here are whole labels below 10^7, and the values of `short_decimals`; out.slow_numbers has the others.
    Parallel: each call writes only its own `out`. Cost: O(stop - start).
    """
    n = BATCH_BUFFER
    batch = CellBatch(
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64),
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.float64),
    )  # fmt: skip
    _parse_lines(text, np.uint64(start), np.uint64(stop), layout, features, batch, out)
