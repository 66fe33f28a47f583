"""The cells `index:value` of a row of LETOR text: their columns and values.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 48 '0', 57 '9', 58 ':'.

The ends of tokens are found in 64 bytes at once (Langdale and Lemire, Parsing gigabytes of JSON per second, 2019,
section 3), so that no token waits for the one before it. A cell is first compared with the index that the row is
expected to have next; only where they differ its digits are read.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import UInt8Array, UInt64Array
from lmart.kernels.letor_arrays import (
    BATCH,
    CELLS,
    COLUMN,
    ID,
    LENGTH,
    MASK,
    PATTERN,
    SLOW_NUMBERS,
    UNKNOWN,
    CellBatch,
    KnownFeatures,
    ParsedRows,
    RowProgress,
)
from lmart.kernels.numba_support.code_cache import inner_kernel
from lmart.kernels.numba_support.intrinsics import byte_marks, load_word, set_bits, trailing_zeros
from lmart.kernels.parsed_text import note_place
from lmart.kernels.short_decimals import (
    DIGIT_ZEROS,
    eight_digits,
    nondigits,
    read_long_decimals,
    read_short_decimals,
)

_ZERO, _ONE, _THREE, _EIGHT, _ALL_BITS = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(8), np.uint64(64)


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
        found = (found & (first - _ONE)) | first  # - 1: all bits when there is none
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

    text  : uint8, in      n : uint64, cells of the batch      first_cell : uint64, the first of them in out.values
    line  : int64          batch : CellBatch as `_read_ids` and `read_short_decimals` leave it
    out   : ParsedRows, out
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

    Return where the cells stop, the index behind the last one in out.columns, whether the ids ascend, and whether the
    row is wrong.
    text  : uint8, in      start : uint64, where the first cell starts      line : int64
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
