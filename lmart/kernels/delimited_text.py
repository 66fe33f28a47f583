"""Reading CSV and TSV text without quoted fields: one call reads the lines of one chunk."""

# ruff: noqa: PLR1714, SIM102, SIM109, SIM110 (plain comparisons compile best)
from __future__ import annotations

import math
from typing import NamedTuple

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.decimal_numbers import HARD, WRONG, parse_number
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

# What a column of a table holds.
IGNORED, FEATURE, LABEL, QUERY, DOCUMENT = 0, 1, 2, 3, 4
# Places in the `counts` of parse_delimited.
ROWS, RUNS, HARD_NUMBERS, FAULTS = 0, 1, 2, 3
N_COUNTS = 4


@inner_kernel
def _same_bytes(text: UInt8Array, p: int, q: int, n: int) -> bool:
    """Return whether the n bytes of `text` at p and at q are equal."""
    for i in range(n):
        if text[p + i] != text[q + i]:
            return False
    return True


@inner_kernel
def _missing_word(text: UInt8Array, start: int, delimiter: int) -> int:
    """Return the end of `na` or `null` in any letter case, if one of them is the field of `text` from `start` to the
    next `delimiter` or line end; else `start`."""
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
    """Return 1 or 0 and the end of `true` or `false` in any letter case, if one of them is the field of `text` from
    `start` to the next `delimiter` or line end; else 0 and `start`."""
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
    powers         : uint64[651, 2], of `decimal_numbers.powers_of_five`
    """

    delimiter: int
    kinds: UInt8Array
    places: Int32Array
    n_features: int
    allow_infinite: bool
    powers: UInt64Array


class ParsedTable(NamedTuple):
    """What `parse_delimited` writes; rows is at least the newlines of the text.

    labels    : float64[rows]
    values    : float64[rows * n_features], row by row; nan where a field is empty, nan, na or null; 1 and 0 for true
                and false
    runs      : int64[rows, 4], runs of equal query ids: row, start and stop of the id in the text, line
    hard      : int64[rows * n_fields, 5], numbers left to float(): place in `values` (~row: in `labels`), start, stop,
                line
    documents : int64[rows, 2], start and stop of the document id
    faults    : int64[m, 3], the first m faulty lines: line, start and stop
    counts    : int64[>= 4], by ROWS, RUNS, HARD_NUMBERS, FAULTS
    """

    labels: Float64Array
    values: Float64Array
    runs: Int64Array
    hard: Int64Array
    documents: Int64Array
    faults: Int64Array
    counts: Int64Array


@kernel
def parse_delimited(text: UInt8Array, start: int, stop: int, layout: TableLayout, out: ParsedTable) -> None:
    """Read whole lines of which no field is in quotes. A line with a fault is noted and leaves no row; blank lines are
    none.

    text        : uint8[>= stop], in; text[stop - 1] is a newline
    start, stop : int, the bytes to read; lines count from 0 at `start`
    layout      : TableLayout, in      out : ParsedTable, out
    Parallel: each call writes only its own `out`. Cost: O(stop - start).
    """
    delimiter, kinds, places, n_features, allow_infinite, powers = layout
    labels, values, runs, hard, documents, faults, counts = out
    rows = 0
    n_runs = 0
    n_hard = 0
    n_faults = 0
    line = 0
    id_start = 0
    id_stop = 0
    last = len(kinds) - 1
    p = start
    while p < stop:
        line_start = p
        row_hard = n_hard
        new_start = 0
        new_stop = 0
        wrong = False
        while text[p] == 32 or text[p] == 13 or (text[p] == 9 and delimiter != 9):
            p += 1
        is_row = text[p] != 10
        if is_row:
            p = line_start
            documents[rows, 0] = 0
            documents[rows, 1] = 0
        f = 0
        while is_row and not wrong:
            kind = kinds[f]
            while text[p] == 32 or (text[p] == 9 and delimiter != 9):
                p += 1
            if kind == FEATURE or kind == LABEL:
                value = math.nan
                if text[p] != delimiter and text[p] != 10 and text[p] != 13:
                    status, value, q = parse_number(text, p, powers, delimiter)
                    if status == WRONG:
                        q = _missing_word(text, p, delimiter)
                        value = math.nan
                        if q == p:
                            value, q = _truth_word(text, p, delimiter)
                            wrong = q == p
                    elif status == HARD:
                        hard[n_hard, 0] = ~rows if kind == LABEL else rows * n_features + places[f]
                        hard[n_hard, 1] = p
                        hard[n_hard, 2] = q
                        hard[n_hard, 3] = line
                        n_hard += 1
                    p = q
                if kind == LABEL:
                    labels[rows] = value
                    wrong |= not 0.0 <= value < math.inf
                else:
                    values[rows * n_features + places[f]] = value
                    wrong |= math.isinf(value) and not allow_infinite
                while text[p] == 32 or (text[p] == 9 and delimiter != 9):
                    p += 1
            else:
                first = p
                while text[p] != delimiter and text[p] != 10:
                    wrong |= text[p] == 0
                    p += 1
                q = p
                at_end = text[p] == 10
                while q > first and (text[q - 1] == 32 or text[q - 1] == 9 or (at_end and text[q - 1] == 13)):
                    q -= 1
                for i in range(first, q):
                    wrong |= text[i] == 13
                if kind == QUERY:
                    new_start = first
                    new_stop = q
                    wrong |= first == q
                elif kind == DOCUMENT:
                    documents[rows, 0] = first
                    documents[rows, 1] = q
            if f == last:
                while text[p] == 13:
                    p += 1
                wrong |= text[p] != 10
                break
            wrong |= text[p] != delimiter
            if not wrong:
                p += 1
                f += 1
        while text[p] != 10:
            p += 1
        if wrong:
            if n_faults < len(faults):
                faults[n_faults, 0] = line
                faults[n_faults, 1] = line_start
                faults[n_faults, 2] = p
            n_faults += 1
            n_hard = row_hard
        elif is_row:
            if new_stop > new_start:
                same = n_runs > 0 and new_stop - new_start == id_stop - id_start
                if same:
                    same = _same_bytes(text, new_start, id_start, new_stop - new_start)
                if not same:
                    runs[n_runs, 0] = rows
                    runs[n_runs, 1] = new_start
                    runs[n_runs, 2] = new_stop
                    runs[n_runs, 3] = line
                    n_runs += 1
                    id_start = new_start
                    id_stop = new_stop
            rows += 1
        p += 1
        line += 1
    counts[ROWS] = rows
    counts[RUNS] = n_runs
    counts[HARD_NUMBERS] = n_hard
    counts[FAULTS] = n_faults
