"""Rows of documents to the text of LETOR files and of tables: numbers in the shortest form, texts unchanged.

Every number and word is written with a separator behind it; the last separator becomes the newline.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import load_word, store_word
from lmart.kernels.text.shortest_decimals import LONGEST_NUMBER, STORE_MARGIN, write_number

MARGIN = LONGEST_NUMBER + STORE_MARGIN  # bytes behind the text that may be overwritten, and behind texts that are read
NAME_WORDS = 3  # words of eight bytes that hold `ID:`, at most 20 bytes
_ZERO, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
_SIXTEEN = np.uint64(16)


class Texts(NamedTuple):
    """n texts, end to end.

    content : uint8[>= offsets[n] + MARGIN]
    offsets : int64[n + 1], text i is content[offsets[i]:offsets[i + 1]]
    """

    content: UInt8Array
    offsets: Int64Array


class RowsToWrite(NamedTuple):
    """n rows, and what stands before and behind their cells.

    labels        : float64[n], or of length 0 when rows have none
    query_offsets : int64[n_runs + 1], where runs of rows of one query start
    queries       : Texts, one per run; empty for rows without queries
    documents     : Texts, one per row; empty for rows without document ids
    offsets       : int64[n + 1], the cells of row i are offsets[i]:offsets[i + 1]
    columns       : int32[n_cells], ascending in each row of a table
    values        : float64[n_cells]
    """

    labels: Float64Array
    query_offsets: Int64Array
    queries: Texts
    documents: Texts
    offsets: Int64Array
    columns: Int32Array
    values: Float64Array


@inner_kernel
def _write_text(out: UInt8Array, at: np.uint64, texts: Texts, place: int) -> np.uint64:
    """Write a text; return the index behind it.

    out : uint8, out      at : uint64, where to begin      texts : Texts, in      place : int, which of them
    """
    start, stop = np.uint64(texts.offsets[place]), np.uint64(texts.offsets[place + 1])
    p = at
    while start < stop:
        store_word(out, p, load_word(texts.content, start))
        start += _EIGHT
        p += _EIGHT
    return p - (start - stop)


@inner_kernel
def _run_of(query_offsets: Int64Array, row: int) -> int:
    """Return the run that a row belongs to.

    query_offsets : int64[n_runs + 1], in, ascending      row : int, below query_offsets[n_runs]
    """
    low, high = 0, len(query_offsets) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if query_offsets[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@kernel
def write_letor_rows(
    rows: RowsToWrite,
    start: int,
    stop: int,
    names: UInt64Array,
    lengths: UInt64Array,
    powers: UInt64Array,
    out: UInt8Array,
) -> int:
    """Write rows as LETOR text; return how many bytes that takes.

    rows    : RowsToWrite, in      start, stop : int, the rows to write
    names   : uint64[n_features, 3], in, the bytes of `ID:` of each column
    lengths : uint64[n_features], in, how many bytes these are
    powers  : uint64[617, 2], in, of `shortest_decimals.powers_of_ten`
    out     : uint8, out, long enough for the text and MARGIN bytes more
    Parallel: each call writes only its own `out`. Cost: O(cells + bytes).
    """
    p = _ZERO
    run = _run_of(rows.query_offsets, start)
    has_labels, has_queries = len(rows.labels) > 0, len(rows.queries.offsets) > 1
    has_documents = len(rows.documents.offsets) > 1
    for row in range(start, stop):
        begin = p
        if has_labels:
            p = write_number(out, p, rows.labels[row], powers)
            out[p] = 32
            p += _ONE
        if has_queries:
            while rows.query_offsets[run + 1] <= row:
                run += 1
            store_word(out, p, np.uint64(0x3A646971))  # qid:
            p = _write_text(out, p + np.uint64(4), rows.queries, run)
            out[p] = 32
            p += _ONE
        for cell in range(np.uint64(rows.offsets[row]), np.uint64(rows.offsets[row + 1])):
            column = np.uint64(rows.columns[cell])
            length = lengths[column]
            store_word(out, p, names[column, 0])
            if length > _EIGHT:
                store_word(out, p + _EIGHT, names[column, 1])
                store_word(out, p + _SIXTEEN, names[column, 2])
            p = write_number(out, p + length, rows.values[cell], powers)
            out[p] = 32
            p += _ONE
        if has_documents and rows.documents.offsets[row] < rows.documents.offsets[row + 1]:
            out[p] = 35  # '#'
            store_word(out, p + _ONE, np.uint64(0x203D206469636F64))  # 'docid = '
            p = _write_text(out, p + np.uint64(9), rows.documents, row)
            out[p] = 32
            p += _ONE
        p = p if p > begin else p + _ONE
        out[p - _ONE] = 10
    return int(np.int64(p))


@inner_kernel
def _write_absent(out: UInt8Array, at: np.uint64, count: int, is_missing: bool, delimiter: int) -> np.uint64:
    """Write fields without a cell, each with a delimiter behind it; return the index behind them.

    out        : uint8, out      at : uint64, where to begin      count : int, how many
    is_missing : bool, whether such a field is empty; else it is 0      delimiter : int, a character
    """
    p = at
    for _ in range(count):
        if not is_missing:
            out[p] = 48
            p += _ONE
        out[p] = delimiter
        p += _ONE
    return p


@kernel
def write_table_rows(
    rows: RowsToWrite,
    start: int,
    stop: int,
    n_features: int,
    delimiter: int,
    is_missing: bool,
    powers: UInt64Array,
    out: UInt8Array,
) -> int:
    """Write rows as lines of a table, a missing value as an empty field, or nan alone in a line; return how many bytes.

    rows, start, stop, powers, out : as in `write_letor_rows`      n_features : int, the number of columns of features
    delimiter   : int, the character between fields
    is_missing  : bool, whether the field of a feature that a row has no cell for is empty; else it is 0
    Parallel: each call writes only its own `out`. Cost: O(rows * features + bytes).
    """
    p = _ZERO
    run = _run_of(rows.query_offsets, start)
    has_labels, has_queries = len(rows.labels) > 0, len(rows.queries.offsets) > 1
    has_documents = len(rows.documents.offsets) > 1
    for row in range(start, stop):
        begin = p
        if has_labels:
            p = write_number(out, p, rows.labels[row], powers)
            out[p] = delimiter
            p += _ONE
        if has_queries:
            while rows.query_offsets[run + 1] <= row:
                run += 1
            p = _write_text(out, p, rows.queries, run)
            out[p] = delimiter
            p += _ONE
        if has_documents:
            p = _write_text(out, p, rows.documents, row)
            out[p] = delimiter
            p += _ONE
        n_written = 0
        for cell in range(np.uint64(rows.offsets[row]), np.uint64(rows.offsets[row + 1])):
            column = int(rows.columns[cell])
            if column > n_written:
                p = _write_absent(out, p, column - n_written, is_missing, delimiter)
            value = rows.values[cell]
            if not np.isnan(value):
                p = write_number(out, p, value, powers)
            out[p] = delimiter
            p += _ONE
            n_written = column + 1
        p = _write_absent(out, p, n_features - n_written, is_missing, delimiter)
        if n_features == 1 and p == begin + _ONE:  # readers skip blank lines
            store_word(out, begin, np.uint64(0x6E616E))  # nan
            p = begin + np.uint64(4)
        p = p if p > begin else p + _ONE
        out[p - _ONE] = 10
    return int(np.int64(p))
