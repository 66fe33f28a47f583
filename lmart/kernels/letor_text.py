"""Bytes of LETOR text to labels, query runs, indices and values; where the faults are.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 45 '-', 46 '.', 58 ':'.
Every text ends with a newline, so no loop needs to ask whether there is a further byte; MARGIN further bytes may be
looked at, and mean nothing.

The ends of tokens are found in 64 bytes at once (Langdale and Lemire, Parsing gigabytes of JSON per second, 2019,
section 3), so that no token waits for the one before it. Up to eight characters are handled as the bytes of one word,
the first one lowest: x = word ^ '00000000' turns digits into 0..9; shifted up, so that its last character is the
highest byte, a short token has leading zeros. The digit tests and sums are of Lemire, Number parsing at a gigabyte per
second, 2021, section 4; loops over them without branches become vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import byte_marks, load_word, set_bits, trailing_zeros

MARGIN = 64
BATCH = 256  # cells whose ends are found together, or a few more
# Places in the `counts` of parse_letor.
ROWS, CELLS, UNKNOWN, RUNS, ODD_NUMBERS, FAULTS, UNSORTED = 0, 1, 2, 3, 4, 5, 6
N_COUNTS = 7
# What `spellings` says of an id: it and a colon as a word, which bits of that count, their bytes, the id, its column.
SPELLING, MASK, LENGTH, ID, COLUMN = 0, 1, 2, 3, 4
N_SPELLINGS = 5

_ZERO, _ONE, _THREE, _SEVEN, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(8)
_NINE, _ALL_BITS, _LOW_BYTE = np.uint64(9), np.uint64(64), np.uint64(255)
_EACH = np.uint64(0x0101010101010101)  # 1 in each byte
_HIGH = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)  # '0' in each byte
_POINTS = np.uint64(0x1E1E1E1E1E1E1E1E)  # '.' ^ '0' in each byte
_MINUS = np.uint64(0x1D)  # '-' ^ '0'
_LAST = np.uint64(1 << 56)  # the mark of a point that is the last of eight characters
_TO_HIGH = np.uint64(0x7676767676767676)  # 10 and more, but not 9, plus this has the high bit
_LARGEST = 2.0**53  # whole numbers below it are exact doubles
# What to divide by when the point is at place k of eight characters, at k + 1; 0: there is none.
_SCALES = np.array([1e0, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0])
_PLACES = np.uint64(0x1020304050607080)  # times the mark of a point: k + 1 in the highest four bits


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
def _document_key(text: UInt8Array, start: int) -> int:
    """Return how many bytes the key of a document id has that stands at text[start], in any letter case; 0: none does.

    The keys: docid, docno, doc_id, document_id.
    """
    low = 0x20  # makes a capital letter small
    p = start
    if int(text[p]) | low != 100 or int(text[p + 1]) | low != 111 or int(text[p + 2]) | low != 99:  # doc
        return 0
    p += 3
    if int(text[p]) | low == 110 and int(text[p + 1]) | low == 111:  # no
        return p + 2 - start
    if int(text[p]) | low == 117 and int(text[p + 1]) | low == 109 and int(text[p + 2]) | low == 101:  # ume
        if int(text[p + 3]) | low != 110 or int(text[p + 4]) | low != 116 or text[p + 5] != 95:  # nt_
            return 0
        p += 5
    if text[p] == 95:
        p += 1
    if int(text[p]) | low == 105 and int(text[p + 1]) | low == 100:  # id
        return p + 2 - start
    return 0


@inner_kernel
def _skip_blanks(text: UInt8Array, start: int) -> int:
    """Return where the first byte of `text` from `start` on stands that is neither blank nor tab."""
    p = start
    while text[p] == 32 or text[p] == 9:
        p += 1
    return p


@inner_kernel
def _end_of_word(text: UInt8Array, start: int) -> int:
    """Return where the first blank, tab or line end of `text` from `start` on stands."""
    p = start
    while text[p] != 32 and text[p] != 9 and text[p] != 10 and text[p] != 13:
        p += 1
    return p


@inner_kernel
def _find_document(text: UInt8Array, start: int) -> tuple[int, int]:
    """Return where the document id of a comment in `text` stands; `start` is behind its '#'.

    It is the word behind the first `docid =`, or another key of `_document_key`, with '=' or ':', with blanks or
    without, at any place of the comment; a ',' or ';' between it and what follows is no part of it. In a comment
    without such a key it is the first word, unless that is a key itself: one that '=' follows.
    """
    p = start
    may_start = True
    while text[p] != 10:
        if may_start:
            length = _document_key(text, p)
            if length:
                q = _skip_blanks(text, p + length)
                if text[q] == 61 or text[q] == 58:
                    p = _skip_blanks(text, q + 1)
                    q = _end_of_word(text, p)
                    separated = q > p + 1 and (text[q - 1] == 44 or text[q - 1] == 59)
                    if separated and text[_skip_blanks(text, q)] > 32:
                        q -= 1
                    return p, q
        may_start = text[p] <= 32 or text[p] == 35 or text[p] == 44 or text[p] == 59  # '#' ',' ';'
        p += 1
    p = _skip_blanks(text, start)
    q = _end_of_word(text, p)
    if text[_skip_blanks(text, q)] == 61:
        return p, p
    return p, q


@inner_kernel
def _nondigits(x: np.uint64) -> np.uint64:
    """Return a word with the high bit of each byte of `x` that is above 9, as far as the lowest of them."""
    return ((x + _TO_HIGH) | x) & _HIGH


@inner_kernel
def _whole(x: np.uint64) -> np.uint64:
    """Return the number whose eight digits are the bytes of `x`, the first one in the lowest byte."""
    pairs = x * np.uint64(10) + (x >> _EIGHT)
    few = np.uint64(0x000000FF000000FF)
    high = (pairs & few) * np.uint64(0x000F424000000064)
    low = ((pairs >> np.uint64(16)) & few) * np.uint64(0x0000271000000001)
    return (high + low) >> np.uint64(32)


@inner_kernel
def _take_point(x: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the eight characters of `x` without their first point, those before it moved up; and its mark.

    The mark is 1 in the byte of the point.
    """
    point = x ^ _POINTS
    point = (point - _EACH) & ~point & _HIGH
    mark = (point & (~point + _ONE)) >> _SEVEN
    before = mark - _ONE  # all bits when there is no point
    moved = (x & before) << _EIGHT if point != _ZERO else x
    return moved | (x & ~(before | (mark * _LOW_BYTE))), mark


@inner_kernel
def _end_of_token(text: UInt8Array, start: np.uint64) -> np.uint64:
    """Return where the first blank, tab, '#' or line end of `text` from `start` on stands."""
    p = start
    while text[p] != 32 and text[p] != 10 and text[p] != 9 and text[p] != 13 and text[p] != 35:
        p += _ONE
    return p


@inner_kernel
def _find_ends(text: UInt8Array, start: np.uint64, ends: UInt64Array) -> np.uint64:
    """Write where the blanks and tabs stand, and last the first '#' or line end; return how many; BATCH at least.

    text : uint8, in, from start on     ends : uint64[BATCH + 80], out
    """
    n = _ZERO
    p = start
    while n < np.uint64(BATCH):
        found = byte_marks(text, p, 32, 32) | byte_marks(text, p, 9, 9)
        closing = byte_marks(text, p, 10, 10) | byte_marks(text, p, 13, 13) | byte_marks(text, p, 35, 35)
        first = closing & (~closing + _ONE)
        found = (found & (first - _ONE)) | first  # - 1: all bits when there is none
        last = n + set_bits(found)
        for k in range(12):  # enough for most text: no branch to guess
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
def _read_short(
    words: UInt64Array,
    starts: UInt64Array,
    stops: UInt64Array,
    n: np.uint64,
    first: np.uint64,
    values: Float64Array,
    strange: UInt64Array,
) -> np.uint64:
    """Read values of up to eight characters: digits, one point at most, a minus; mark those that are none of these.

    words, starts, stops : uint64[>= n], in, the eight bytes from the start of each value, where it starts and stops
    values  : float64, out, from `first` on      strange : uint64[>= n], out, 0 for a value that was read
    Return a word that is 0 if none is strange. Without branches, so that several cells are read at once.
    """
    some = _ZERO
    for i in range(n):
        length = stops[i] - starts[i]
        x = words[i] ^ _ZEROS
        negative = x & _LOW_BYTE == _MINUS
        if negative:
            x ^= _MINUS
        x, mark = _take_point(x << ((_ZERO - (length << _THREE)) & np.uint64(63)))
        odd = (((x + _TO_HIGH) | x) & _HIGH) | (mark & _LAST)
        if length - _ONE >= _EIGHT or (negative and length == _ONE):
            odd = _ONE
        value = float(np.int32(_whole(x))) / _SCALES[(mark * _PLACES) >> np.uint64(60)]
        values[first + np.uint64(i)] = 0.0 - value if negative else value
        strange[i] = odd
        some |= odd
    return some


@inner_kernel
def _read_long(
    words: UInt64Array,
    lasts: UInt64Array,
    starts: UInt64Array,
    stops: UInt64Array,
    n: np.uint64,
    numbers: Float64Array,
    strange: UInt64Array,
) -> None:
    """Read values of 9 to 16 characters: digits, one point at most, a minus; mark those that are none of these.

    words, lasts, starts, stops : uint64[>= n], in, the first and last eight bytes of each value, where it starts, stops
    numbers : float64[>= n], out, the values        strange : uint64[>= n], out, 0 for a value that was read
    """
    for i in range(n):
        length = stops[i] - starts[i]
        x = words[i] ^ _ZEROS
        negative = x & _LOW_BYTE == _MINUS
        if negative:
            x ^= _MINUS
        x, mark = _take_point(x << ((_ZERO - (length << _THREE)) & np.uint64(63)))
        y, last_mark = _take_point(lasts[i] ^ _ZEROS)
        last_digits = 1e8
        only_mark, second_mark = mark, _ZERO
        if last_mark != _ZERO:
            last_digits = 1e7
            only_mark, second_mark = last_mark, mark
        scale = _SCALES[(only_mark * _PLACES) >> np.uint64(60)]
        if mark != _ZERO:
            scale *= 1e8
        mantissa = float(np.int32(_whole(x))) * last_digits + float(np.int32(_whole(y)))
        odd = ((((x + _TO_HIGH) | x) | ((y + _TO_HIGH) | y)) & _HIGH) | (last_mark & _LAST) | second_mark
        if mantissa >= _LARGEST or length - _NINE >= _EIGHT:
            odd = _ONE
        value = mantissa / scale
        numbers[i] = 0.0 - value if negative else value
        strange[i] = odd


class RowLayout(NamedTuple):
    """What stands in each row before its cells, and whether document ids are wanted.

    has_label, has_query : bool, whether a row starts with a label, and then has `qid:ID`
    want_documents       : bool, whether to look for document ids in comments
    """

    has_label: bool
    has_query: bool
    want_documents: bool


class KnownFeatures(NamedTuple):
    """The feature ids that are known so far, as a row writes them.

    spellings : uint64[n + 1, 5], by ascending id: SPELLING, MASK, LENGTH, ID, COLUMN; the last is like no text
    places    : int32[m], where in `spellings` the id of this number stands, or -1; m may be 0
    """

    spellings: UInt64Array
    places: Int32Array


class ParsedRows(NamedTuple):
    """What `parse_letor` writes; rows is at least the newlines of the text, cells at least its colons behind a digit.

    labels    : float64[rows]             offsets : int64[rows + 1], where the cells of each row start
    columns   : int32[cells]; the k-th id that is not known is given as ~k
    values    : float64[cells]
    unsorted  : int64[rows, 4], rows whose ids do not ascend: row, line, start and stop
    unknown   : int64[cells], ids that are not known, in the order of the text
    runs      : int64[rows, 4], runs of equal query ids: row, start and stop of the id in the text, line
    odd       : int64[cells + rows, 5], labels and values left to `read_numbers`, for which it is laid out
    documents : int64[rows, 2], start and stop of the document id
    faults    : int64[m, 3], the first m faulty lines: line, start and stop
    counts    : int64[7], by ROWS, CELLS, UNKNOWN, RUNS, ODD_NUMBERS, FAULTS, UNSORTED
    """

    labels: Float64Array
    offsets: Int64Array
    columns: Int32Array
    values: Float64Array
    unsorted: Int64Array
    unknown: Int64Array
    runs: Int64Array
    odd: Int64Array
    documents: Int64Array
    faults: Int64Array
    counts: Int64Array


@kernel
def parse_letor(
    text: UInt8Array, start: int, stop: int, layout: RowLayout, features: KnownFeatures, out: ParsedRows
) -> None:
    """Read whole lines of LETOR text. A line with a fault is noted and leaves no row.

    text        : uint8[>= stop + MARGIN], in; text[stop - 1] is a newline
    start, stop : int, the bytes to read; lines count from 0 at `start`
    layout      : RowLayout, in      features : KnownFeatures, in      out : ParsedRows, out
    What is read here are whole labels below 10^7, and values of up to 16 characters, digits with one point at most and
    a minus, below 2^53 without the point: digits and power of ten are exact doubles, so one division rounds once
    (Clinger 1990). Minus zero is given as zero.
    Parallel: each call writes only its own `out`. Cost: O(stop - start).
    """
    has_label, has_query, want_documents = layout
    spellings, places = features
    labels, offsets, columns, values, unsorted, unknown, runs, odd, documents, faults, counts = out
    nowhere = np.uint64(len(spellings) - 1)
    room = BATCH + 80
    ends = np.empty(room, np.uint64)
    starts = np.empty(room, np.uint64)  # of the values of a batch, and their stops, first bytes, and marks
    stops = np.empty(room, np.uint64)
    words = np.empty(room, np.uint64)
    strange = np.empty(room, np.uint64)
    members = np.empty(room, np.uint64)  # of a batch, those that are not short; their last bytes, and numbers
    lasts = np.empty(room, np.uint64)
    numbers = np.empty(room, np.float64)
    rows = 0
    cells = _ZERO
    n_unknown = 0
    n_runs = 0
    n_odd = 0
    n_faults = 0
    n_unsorted = 0
    line = 0
    id_start = _ZERO
    id_stop = _ZERO
    # Unsigned: an index that may be negative costs a test at each byte.
    p = np.uint64(start)
    end = np.uint64(stop)
    offsets[0] = 0
    while p < end:
        line_start = p
        wrong = False
        row_unknown = n_unknown
        row_odd = n_odd
        new_start = _ZERO
        new_stop = _ZERO
        while text[p] == 32 or text[p] == 9:
            p += _ONE
        is_row = text[p] != 10 and text[p] != 35 and text[p] != 13
        cell = cells
        ascending = True
        if is_row:
            if has_label:
                q = _end_of_token(text, p)
                x = load_word(text, p) ^ _ZEROS
                n = q - p
                if n < _EIGHT:
                    x = x << (_ALL_BITS - (n << _THREE))
                if n >= _EIGHT or _nondigits(x) != _ZERO:
                    odd[n_odd, 0] = ~rows
                    odd[n_odd, 1] = p
                    odd[n_odd, 2] = q
                    odd[n_odd, 3] = line
                    n_odd += 1
                labels[rows] = float(_whole(x))
                p = q
                while text[p] == 32 or text[p] == 9:
                    p += _ONE
            if has_query:
                wrong = text[p] != 113 or text[p + _ONE] != 105  # q, i, d, colon
                if not wrong:
                    wrong = text[p + np.uint64(2)] != 100 or text[p + _THREE] != 58
                if not wrong:
                    p += np.uint64(4)
                    new_start = p
                    while text[p] > 32 and text[p] != 35:
                        p += _ONE
                    new_stop = p
                    wrong = new_start == new_stop
                    while text[p] == 32 or text[p] == 9:
                        p += _ONE
            place = _ZERO  # of the id to expect
            matched = _ZERO  # the place before those that met what was expected
            previous = _ZERO  # the id before, plus 1
            more = not wrong
            while more:
                n_ends = _find_ends(text, p, ends)
                n = _ZERO
                for k in range(n_ends):
                    stop_at = ends[k]
                    word = load_word(text, p)
                    if word & spellings[place, MASK] == spellings[place, SPELLING]:
                        q = p + spellings[place, LENGTH]
                        columns[cell + n] = spellings[place, COLUMN]
                        place += _ONE
                    elif stop_at == p:  # blanks side by side, or at the end
                        p = stop_at + _ONE
                        continue
                    else:
                        if place > matched:
                            previous = spellings[place - _ONE, ID] + _ONE
                        x = word ^ _ZEROS
                        digits = trailing_zeros(_nondigits(x)) >> _THREE
                        if digits == _ZERO:
                            wrong = True
                            break
                        if digits < _EIGHT:
                            feature_id = _whole(x << (_ALL_BITS - (digits << _THREE)))
                            q = p + digits
                        else:
                            feature_id = _ZERO
                            q = p
                            while 48 <= text[q] <= 57:
                                digit = np.uint64(text[q] - 48)
                                if feature_id > (np.uint64(0x7FFFFFFFFFFFFFFF) - digit) // np.uint64(10):
                                    wrong = True
                                    break
                                feature_id = feature_id * np.uint64(10) + digit
                                q += _ONE
                        if wrong or text[q] != 58:
                            wrong = True
                            break
                        q += _ONE
                        at = places[feature_id] if feature_id < np.uint64(len(places)) else -1
                        if at >= 0:
                            place = np.uint64(at) + _ONE
                            columns[cell + n] = spellings[np.uint64(at), COLUMN]
                        else:
                            place = nowhere
                            unknown[n_unknown] = np.int64(feature_id)
                            columns[cell + n] = ~n_unknown
                            n_unknown += 1
                        matched = place
                        ascending &= bool(feature_id >= previous)
                        previous = feature_id + _ONE
                    starts[n] = q
                    stops[n] = stop_at
                    words[n] = load_word(text, q)
                    n += _ONE
                    p = stop_at + _ONE
                if not wrong and _read_short(words, starts, stops, n, cell, values, strange) != _ZERO:
                    n_long = _ZERO
                    for i in range(n):  # no branch to guess: half of all values may be long
                        members[n_long] = i
                        words[n_long] = words[i]
                        starts[n_long] = starts[i]
                        stops[n_long] = stops[i]
                        lasts[n_long] = load_word(text, max(stops[i], _EIGHT) - _EIGHT)  # of long ones at least
                        n_long += np.uint64(strange[i] != _ZERO)
                    _read_long(words, lasts, starts, stops, n_long, numbers, strange)
                    for k in range(n_long):
                        values[cell + members[k]] = numbers[k]
                        if strange[k] != _ZERO:
                            wrong |= bool(starts[k] == stops[k])
                            odd[n_odd, 0] = cell + members[k]
                            odd[n_odd, 1] = starts[k]
                            odd[n_odd, 2] = stops[k]
                            odd[n_odd, 3] = line
                            n_odd += 1
                cell += n
                last = ends[n_ends - _ONE]
                more = not wrong and (text[last] == 32 or text[last] == 9)
                if not more and p > last:
                    p = last
        if text[p] == 13 and not wrong:
            q = p
            while text[q] == 13:
                q += _ONE
            wrong = text[q] != 10
        comment = p + _ONE
        while text[p] != 10:
            wrong |= text[p] == 0
            if text[p] == 13:  # in a comment too: it may have swallowed rows that end so
                wrong |= text[p + _ONE] != 10 and text[p + _ONE] != 13
            p += _ONE
        if wrong:
            if n_faults < len(faults):
                faults[n_faults, 0] = line
                faults[n_faults, 1] = line_start
                faults[n_faults, 2] = p
            n_faults += 1
            n_unknown = row_unknown
            n_odd = row_odd
        elif is_row:
            if has_query:
                same = n_runs > 0 and new_stop - new_start == id_stop - id_start
                q = new_start
                while same and q < new_stop:
                    same = text[q] == text[id_start + (q - new_start)]
                    q += _ONE
                if not same:
                    runs[n_runs, 0] = rows
                    runs[n_runs, 1] = new_start
                    runs[n_runs, 2] = new_stop
                    runs[n_runs, 3] = line
                    n_runs += 1
                    id_start = new_start
                    id_stop = new_stop
            if want_documents:
                documents[rows, 0] = 0
                documents[rows, 1] = 0
                if text[comment - _ONE] == 35:
                    documents[rows, 0], documents[rows, 1] = _find_document(text, int(np.int64(comment)))
            if not ascending:
                unsorted[n_unsorted, 0] = rows
                unsorted[n_unsorted, 1] = line
                unsorted[n_unsorted, 2] = line_start
                unsorted[n_unsorted, 3] = p
                n_unsorted += 1
            rows += 1
            cells = cell
            offsets[rows] = cells
        p += _ONE
        line += 1
    counts[ROWS] = rows
    counts[CELLS] = cells
    counts[UNKNOWN] = n_unknown
    counts[RUNS] = n_runs
    counts[ODD_NUMBERS] = n_odd
    counts[FAULTS] = n_faults
    counts[UNSORTED] = n_unsorted
