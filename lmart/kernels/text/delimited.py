"""Reading CSV and TSV text without quoted fields: one call reads the lines of one chunk."""

# ruff: noqa: SIM102 (plain comparisons compile best)
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import load_word, trailing_zeros
from lmart.kernels.text.decimals import HARD, WRONG, long_decimal, parse_number, short_decimal
from lmart.kernels.text.parsed_text import note_fault, note_place, note_query_id, skip_blanks

# What a column of a table holds.
IGNORED, FEATURE, LABEL, QUERY, DOCUMENT = 0, 1, 2, 3, 4
# Places in the `counts` of parse_delimited.
ROWS, RUNS, SLOW_NUMBERS, FAULTS = 0, 1, 2, 3
N_COUNTS = 4
_ZERO, _THREE, _EIGHT, _SIXTEEN = np.uint64(0), np.uint64(3), np.uint64(8), np.uint64(16)
_EACH = np.uint64(0x0101010101010101)  # 1 in each byte
_HIGH = np.uint64(0x8080808080808080)


@inner_kernel
def _first_zero_byte(word: np.uint64) -> np.uint64:
    """Return the index of the first byte of a word that is 0, the lowest being 0; 8 without any.

    word : uint64
    """
    return trailing_zeros((word - _EACH) & ~word & _HIGH) >> _THREE


@inner_kernel
def _missing_word(text: UInt8Array, start: int, delimiter: int) -> int:
    """Return where a field ends that says `na` or `null` in any letter case; `start` for other fields.

    text      : uint8[...], in      start : int64, where the field starts
    delimiter : int64, the byte that ends a field, as a line end does
    """
    p = start
    while text[p] > 32 and text[p] != delimiter:
        p += 1
    first, second = int(text[start]) | 32, int(text[start + 1]) | 32
    if p - start == 2 and first == 110 and second == 97:
        return p
    if p - start == 4 and first == 110 and second == 117:
        if int(text[start + 2]) | 32 == 108 and int(text[start + 3]) | 32 == 108:
            return p
    return start


@inner_kernel
def _truth_word(text: UInt8Array, start: int, delimiter: int) -> tuple[float, int]:
    """Return 1 or 0, and where the field ends, for a field that says `true` or `false`; 0 and `start` for others.

    text : uint8[...], in; letters of any case      start, delimiter : as in `_missing_word`
    """
    p = start
    while text[p] > 32 and text[p] != delimiter:
        p += 1
    if p - start == 4 and int(text[start]) | 32 == 116 and int(text[start + 1]) | 32 == 114:  # t, r
        if int(text[start + 2]) | 32 == 117 and int(text[start + 3]) | 32 == 101:  # u, e
            return 1.0, p
    if p - start == 5 and int(text[start]) | 32 == 102 and int(text[start + 1]) | 32 == 97:  # f, a
        if int(text[start + 2]) | 32 == 108 and int(text[start + 3]) | 32 == 115:  # l, s
            if int(text[start + 4]) | 32 == 101:  # e
                return 0.0, p
    return 0.0, start


class TableLayout(NamedTuple):
    """The columns of a table, and how its fields are read.

    delimiter      : int, comma or tab
    kinds          : uint8[n_fields], IGNORED, FEATURE, LABEL, QUERY or DOCUMENT
    places         : int32[n_fields], where in its row a feature is put
    n_features     : int, how many values a row has
    allow_infinite : bool, whether infinite values are data; else they are faults
    powers         : uint64[651, 2], of `decimals.powers_of_five`
    """

    delimiter: int
    kinds: UInt8Array
    places: Int32Array
    n_features: int
    allow_infinite: bool
    powers: UInt64Array


class ParsedTable(NamedTuple):
    """What `parse_delimited` writes; rows is at least the newlines of the text.

    labels       : float64[rows]
    values       : float64[rows * n_features], row by row; nan where a field is empty, nan, na or null; 1 and 0 for true
                   and false
    runs         : int64[rows, 4], runs of equal query ids: row, start and stop of the id in the text, line
    slow_numbers : int64[rows * n_fields, 5], numbers left to float(): place in `values` (~row: in `labels`), start,
                   stop, line
    documents    : int64[rows, 2], start and stop of the document id
    faults       : int64[m, 3], the first m faulty lines: line, start and stop
    counts       : int64[>= 4], by ROWS, RUNS, SLOW_NUMBERS, FAULTS
    """

    labels: Float64Array
    values: Float64Array
    runs: Int64Array
    slow_numbers: Int64Array
    documents: Int64Array
    faults: Int64Array
    counts: Int64Array


@inner_kernel
def _read_number(
    text: UInt8Array, start: int, index: int, line: int, layout: TableLayout, out: ParsedTable
) -> tuple[float, int, bool]:
    """Return the number of a field, nan without one, where it stops, and whether it is wrong.

    text   : uint8, in      start : int64, where the field starts behind blanks
    index  : int64, in out.values; ~row for a label      line : int64
    layout : TableLayout, in      out : ParsedTable; `slow_numbers` may get the number
    """
    delimiter = layout.delimiter
    if text[start] == delimiter or text[start] == 10 or text[start] == 13:
        return math.nan, start, False
    status, value, stop = parse_number(text, start, layout.powers, delimiter)
    if status == HARD:
        n = out.counts[SLOW_NUMBERS]
        out.counts[SLOW_NUMBERS] = note_place(out.slow_numbers, n, index, np.uint64(start), np.uint64(stop), line)
    if status != WRONG:
        return value, stop, False
    stop = _missing_word(text, start, delimiter)
    if stop != start:
        return math.nan, stop, False
    value, stop = _truth_word(text, start, delimiter)
    return value, stop, stop == start


@inner_kernel
def _read_short_number(text: UInt8Array, start: int, end_word: np.uint64) -> tuple[float, int]:
    """Return the number of a field of up to 15 characters that is a plain decimal, and where it stops.

    For any other field that is `start`.
    text     : uint8, in      start : int64, where the field starts, behind blanks or not
    end_word : uint64, the byte that ends the field, eight times
    """
    p = np.uint64(start)
    word = load_word(text, p)
    length = _first_zero_byte(word ^ end_word)
    if length < _EIGHT:
        value, is_slow = short_decimal(word, length)
        return value, start if is_slow != _ZERO else int(np.int64(p + length))
    length += _first_zero_byte(load_word(text, p + _EIGHT) ^ end_word)
    value, is_slow = long_decimal(word, load_word(text, p + length - _EIGHT), length)
    if length == _EIGHT:
        value, is_slow = short_decimal(word, length)
    return value, start if is_slow != _ZERO or length == _SIXTEEN else int(np.int64(p + length))


@inner_kernel
def _find_text(text: UInt8Array, start: int, delimiter: int) -> tuple[int, int, bool]:
    """Return where the text of a field stops, without blanks behind it, where the field stops, and whether it is wrong.

    text : uint8, in      start : int64, where the field starts behind blanks      delimiter : int, comma or tab
    Wrong are zero bytes and carriage returns in it.
    """
    wrong = False
    end = start
    while text[end] != delimiter and text[end] != 10:
        wrong |= text[end] == 0
        end += 1
    stop = end
    at_end = text[end] == 10
    while stop > start and (text[stop - 1] == 32 or text[stop - 1] == 9 or (at_end and text[stop - 1] == 13)):
        stop -= 1
    for i in range(start, stop):
        wrong |= text[i] == 13
    return stop, end, wrong


@inner_kernel
def _read_field(
    text: UInt8Array,
    start: int,
    field: int,
    line: int,
    end_word: np.uint64,
    layout: TableLayout,
    out: ParsedTable,
) -> tuple[int, int, int, bool]:
    """Write one field of the next row; return where it stops, where its query id starts and stops, if it is wrong.

    text   : uint8, in      start : int64, where the field starts      field : int64, in the row      line : int64
    end_word : uint64, the byte that ends the field, eight times
    layout : TableLayout, in      out : ParsedTable, out
    """
    row = out.counts[ROWS]
    delimiter, kind = layout.delimiter, layout.kinds[field]
    if kind == FEATURE:
        value, stop = _read_short_number(text, start, end_word)
        if stop != start:
            out.values[row * layout.n_features + layout.places[field]] = value
            return stop, 0, 0, False
    p = skip_blanks(text, start, delimiter)
    if kind == FEATURE:
        index = row * layout.n_features + layout.places[field]
        value, stop, wrong = _read_number(text, p, index, line, layout, out)
        out.values[index] = value
        wrong |= math.isinf(value) and not layout.allow_infinite
        return skip_blanks(text, stop, delimiter), 0, 0, wrong
    if kind == LABEL:
        value, stop, wrong = _read_number(text, p, ~row, line, layout, out)
        out.labels[row] = value
        return skip_blanks(text, stop, delimiter), 0, 0, wrong or not 0.0 <= value < math.inf
    stop, end, wrong = _find_text(text, p, delimiter)
    if kind == QUERY:
        return end, p, stop, wrong or p == stop
    if kind == DOCUMENT:
        out.documents[row, 0] = p
        out.documents[row, 1] = stop
    return end, 0, 0, wrong


@inner_kernel
def _read_fields(
    text: UInt8Array, start: int, line: int, layout: TableLayout, out: ParsedTable
) -> tuple[int, int, int, bool]:
    """Write the fields of the next row; return where it stops, where its query id starts and stops, if it is wrong.

    text : uint8, in      start : int64, where the line starts      line : int64
    layout : TableLayout, in      out : ParsedTable, out
    """
    id_start, id_stop = 0, 0
    last = len(layout.kinds) - 1
    p = start
    for field in range(last + 1):
        end_word = np.uint64(10 if field == last else layout.delimiter) * _EACH
        p, first, stop, wrong = _read_field(text, p, field, line, end_word, layout, out)
        if stop > 0:
            id_start, id_stop = first, stop
        if wrong or (field < last and text[p] != layout.delimiter):
            return p, id_start, id_stop, True
        p += field < last
    while text[p] == 13:
        p += 1
    return p, id_start, id_stop, text[p] != 10


@inner_kernel
def _parse_line(text: UInt8Array, line_start: int, line: int, layout: TableLayout, out: ParsedTable) -> int:
    """Write the row of one line, or note its fault; return the index of the newline.

    text : uint8, in      line_start : int64      line : int64, of the line
    layout : TableLayout, in      out : ParsedTable, out
    """
    counts = out.counts
    p = line_start
    while text[p] == 32 or text[p] == 13 or (text[p] == 9 and layout.delimiter != 9):
        p += 1
    if text[p] == 10:
        return p
    row, n_slow = counts[ROWS], counts[SLOW_NUMBERS]
    out.documents[row, 0] = 0
    out.documents[row, 1] = 0
    p, id_start, id_stop, wrong = _read_fields(text, line_start, line, layout, out)
    while text[p] != 10:
        p += 1
    if wrong:
        counts[FAULTS] = note_fault(out.faults, counts[FAULTS], line, np.uint64(line_start), np.uint64(p))
        counts[SLOW_NUMBERS] = n_slow
        return p
    if id_stop > id_start:
        counts[RUNS] = note_query_id(text, out.runs, counts[RUNS], row, np.uint64(id_start), np.uint64(id_stop), line)
    counts[ROWS] = row + 1
    return p


@kernel
def parse_delimited(text: UInt8Array, start: int, stop: int, layout: TableLayout, out: ParsedTable) -> None:
    """Read whole lines without quoted fields.

    A line with a fault is noted and leaves no row, nor does a blank line.

    text        : uint8[>= stop + MARGIN], in; text[stop - 1] is a newline
    start, stop : int, the bytes to read; lines count from 0 at `start`
    layout      : TableLayout, in      out : ParsedTable, out
    Parallel: each call writes only its own `out`. Cost: O(stop - start).
    """
    for i in range(N_COUNTS):
        out.counts[i] = 0
    line = 0
    p = start
    while p < stop:
        p = _parse_line(text, p, line, layout, out) + 1
        line += 1
