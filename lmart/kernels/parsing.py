"""Bytes of LETOR text to labels, query runs, indices and values; where the faults are. And the table of feature ids.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 45 '-', 46 '.', 58 ':'.
Every text ends with a newline, so no loop needs to ask whether there is a further byte; MARGIN further bytes may be
looked at, and mean nothing.

Up to eight characters are handled at once, as the bytes of one word, the first one lowest: x = word ^ '00000000' turns
digits into 0..9; shifted up, so that its last character is the highest byte, a short token has leading zeros.
Source: the digit tests and sums of Lemire, Number parsing at a gigabyte per second, 2021, section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import config, types
from numba.extending import intrinsic

from lmart.kernels.compiler import kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

MARGIN = 16
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
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ZEROS = np.uint64(0x3030303030303030)  # '0' in each byte
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_COLONS = np.uint64(0x3A3A3A3A3A3A3A3A)
_POINTS = np.uint64(0x1E1E1E1E1E1E1E1E)  # '.' ^ '0' in each byte
_MINUS = np.uint64(0x1D)  # '-' ^ '0'
_ABOVE_BLANK = np.uint64(0x2121212121212121)
_TO_HIGH = np.uint64(0x7676767676767676)  # 10 and more, but not 9, plus this has the high bit
_LARGEST = np.uint64(1 << 53)  # whole numbers up to it are exact doubles
# What to divide by when the place of the point in eight characters is k; 8: there is none.
_SCALES = np.array([1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0, 1e0])

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def load_word(array: Any, index: Any) -> Any:
        """Return the word of eight bytes at array[index]: the plain form of one instruction."""
        return np.uint64(int.from_bytes(array[int(index) : int(index) + 8].tobytes(), "little"))

    def trailing_zeros(word: Any) -> Any:
        """Return how many bits below the lowest set one are 0; 64 without any: the plain form of one instruction."""
        bits = int(word)
        return np.uint64((bits & -bits).bit_length() - 1 if bits else 64)

    def set_bits(word: Any) -> Any:
        """Return how many bits are set: the plain form of one instruction."""
        return np.uint64(int(word).bit_count())

else:

    @intrinsic
    def load_word(typing_context: Any, array: Any, index: Any) -> Any:
        """Return the word of eight bytes at array[index], which need not be aligned."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from llvmlite import ir

            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(array, types.uint64), codegen

    @intrinsic
    def trailing_zeros(typing_context: Any, word: Any) -> Any:
        """Return how many bits below the lowest set one are 0; 64 without any."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from llvmlite import ir

            return builder.cttz(arguments[0], ir.IntType(1)(0))

        return types.uint64(types.uint64), codegen

    @intrinsic
    def set_bits(typing_context: Any, word: Any) -> Any:
        """Return how many bits are set."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), codegen


@kernel
def _zero_bytes(x: np.uint64) -> np.uint64:
    """Return a word with the high bit of each byte that is 0."""
    return ~((((x & _LOW) + _LOW) | x) | _LOW)


@kernel
def count_marks(text: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Return how many newlines, and how many colons behind a digit, stand in text[start:stop].

    text : uint8[>= stop], in; stop > start
    Cost: O(stop - start), a tenth of a nanosecond a byte.
    """
    lines = np.uint64(text[start] == 10)
    cells = _ZERO
    p = np.uint64(start) + _ONE
    end = np.uint64(stop)
    n_words = (end - p) >> _THREE
    for i in range(n_words):
        q = p + (np.uint64(i) << _THREE)
        word = load_word(text, q)
        lines += set_bits(_zero_bytes(word ^ _NEWLINES))
        x = load_word(text, q - _ONE) ^ _ZEROS
        digits = ~(((x & _LOW) + _TO_HIGH) | x)
        cells += set_bits(_zero_bytes(word ^ _COLONS) & digits)
    p += n_words << _THREE
    while p < end:
        lines += np.uint64(text[p] == 10)
        cells += np.uint64(text[p] == 58 and 48 <= text[p - _ONE] <= 57)
        p += _ONE
    return int(np.int64(lines)), int(np.int64(cells))


@kernel
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


@kernel
def _find_document(text: Bytes, start: int) -> tuple[int, int]:
    """Return where the document id of a comment stands; `start` is behind its '#'. The forms: `docid = X`, `X`."""
    p = start
    while text[p] == 32 or text[p] == 9:
        p += 1
    q = p
    while text[q] > 32 and text[q] != 61:
        q += 1
    if q - p == 5:
        same = int(text[p]) | 32 == 100 and int(text[p + 1]) | 32 == 111 and int(text[p + 2]) | 32 == 99
        same = same and int(text[p + 3]) | 32 == 105 and int(text[p + 4]) | 32 == 100
        r = q
        while text[r] == 32 or text[r] == 9:
            r += 1
        if same and text[r] == 61:
            p = r + 1
            while text[p] == 32 or text[p] == 9:
                p += 1
    q = p
    while text[q] > 32:
        q += 1
    return p, q


@kernel
def _nondigits(x: np.uint64) -> np.uint64:
    """Return a word with the high bit of each byte that is above 9, as far as the lowest of them."""
    return ((x + _TO_HIGH) | x) & _HIGH


@kernel
def _whole(x: np.uint64) -> np.uint64:
    """Return the number of eight digits, the first one in the lowest byte."""
    pairs = x * np.uint64(10) + (x >> _EIGHT)
    few = np.uint64(0x000000FF000000FF)
    high = (pairs & few) * np.uint64(0x000F424000000064)
    low = ((pairs >> np.uint64(16)) & few) * np.uint64(0x0000271000000001)
    return (high + low) >> np.uint64(32)


@kernel
def _take_point(x: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return eight characters without their first point, those before it moved up; and its place, 8 for none."""
    point = x ^ _POINTS
    point = (point - _EACH) & ~point & _HIGH
    bit = (point & (~point + _ONE)) >> _SEVEN
    before = bit - _ONE
    return (
        ((x & before) << (_EIGHT if point != _ZERO else _ZERO)) | (x & ~(before | (bit * _LOW_BYTE))),
        trailing_zeros(point) >> _THREE,
    )


@kernel
def _end_of_token(text: Bytes, start: np.uint64) -> np.uint64:
    """Return where the first blank, tab, '#' or line end from `start` on stands."""
    p = start
    while text[p] != 32 and text[p] != 10 and text[p] != 9 and text[p] != 13 and text[p] != 35:
        p += _ONE
    return p


@kernel
def parse_letor(
    text: Bytes,
    start: int,
    stop: int,
    has_label: bool,
    has_query: bool,
    want_documents: bool,
    spellings: Words,
    places: Ints,
    keys: Longs,
    key_columns: Ints,
    labels: Floats,
    offsets: Longs,
    columns: Ints,
    values: Floats,
    unsorted: Longs,
    unknown: Longs,
    runs: Longs,
    odd: Longs,
    documents: Longs,
    faults: Longs,
    counts: Longs,
) -> None:
    """Read whole lines of LETOR text. A line with a fault is noted and leaves no row.

    text        : uint8[>= stop + MARGIN], in; text[stop - 1] is a newline
    has_label, has_query : what stands before the cells of every row
    spellings   : uint64[n + 1, 5], in, by ascending id: SPELLING, MASK, LENGTH, ID, COLUMN; the last is like no text
    places      : int32[n_known], in, where in `spellings` a column stands
    keys, key_columns : int64[2^k], int32[2^k], hash table id -> column, in
    labels      : float64[rows], out              offsets : int64[rows + 1], out
    columns     : int32[cells], out; the k-th id that is in no table is given as ~k
    values      : float64[cells], out
    unsorted    : int64[rows, 4], out, rows whose ids do not ascend: row, line, start and stop
    unknown     : int64[cells], out, ids in no table, in the order of the text
    runs        : int64[rows, 4], out, runs of equal query ids: row, start and stop of the id in text, line
    odd         : int64[cells + rows, 5], out, labels and values left to `read_numbers`, for which it is laid out
    documents   : int64[rows, 2], out, start and stop of the document id
    faults      : int64[m, 3], out, the first m faulty lines: line, start and stop
    counts      : int64[7], out, by ROWS, CELLS, UNKNOWN, RUNS, ODD_NUMBERS, FAULTS, UNSORTED
    rows is at least the newlines, cells at least the colons behind a digit. Lines count from 0 at `start`.
    What is read here are whole labels below 10^7, and values of up to 16 characters, digits with one point at most and
    a minus, below 2^53 without the point: digits and power of ten are exact doubles, so one division rounds once
    (Clinger 1990). Minus zero is given as zero.
    Parallel: each call writes only its own outputs. Cost: O(stop - start).
    """
    nowhere = np.uint64(len(spellings) - 1)
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
            previous = _ZERO  # the id before, plus 1
            while not wrong:
                word = load_word(text, p)
                if word & spellings[place, MASK] == spellings[place, SPELLING]:
                    q = p + spellings[place, LENGTH]
                    feature_id = spellings[place, ID]
                    columns[cell] = spellings[place, COLUMN]
                    place += _ONE
                else:
                    x = word ^ _ZEROS
                    n = trailing_zeros(_nondigits(x)) >> _THREE
                    if n == _ZERO:
                        wrong = text[p] != 10 and text[p] != 35 and text[p] != 13
                        break
                    if n < _EIGHT:
                        feature_id = _whole(x << (_ALL_BITS - (n << _THREE)))
                        q = p + n
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
                    slot = _slot(int(np.int64(feature_id)), keys)
                    if keys[slot] == -1:
                        unknown[n_unknown] = np.int64(feature_id)
                        columns[cell] = ~n_unknown
                        n_unknown += 1
                        place = nowhere
                    else:
                        columns[cell] = key_columns[slot]
                        place = np.uint64(places[key_columns[slot]]) + _ONE
                ascending &= feature_id >= previous
                previous = feature_id + _ONE
                # Values of up to 8 characters, one blank, and the next id that is expected: most of all text.
                first = place
                while True:
                    x = load_word(text, q) ^ _ZEROS
                    negative = x & _LOW_BYTE == _MINUS
                    if negative:
                        x ^= _MINUS
                    ends = load_word(text, q + _ONE)
                    ends = (ends - _ABOVE_BLANK) & ~ends & _HIGH  # lowest bit: the first byte that is at most a blank
                    n = (trailing_zeros(ends) >> _THREE) + _ONE
                    if ends == _ZERO:
                        break
                    y, point = _take_point(x << (_ALL_BITS - (n << _THREE)))
                    if _nondigits(y) != _ZERO or point == _SEVEN or (negative and n == _ONE):
                        n = _ZERO
                        break
                    value = float(_whole(y)) / _SCALES[point]
                    values[cell] = 0.0 - value if negative else value
                    cell += _ONE
                    p = q + n
                    word = load_word(text, p + _ONE)
                    if text[p] != 32 or word & spellings[place, MASK] != spellings[place, SPELLING]:
                        q = p
                        break
                    columns[cell] = spellings[place, COLUMN]
                    q = p + _ONE + spellings[place, LENGTH]
                    place += _ONE
                if place > first:
                    previous = spellings[place - _ONE, ID] + _ONE
                if q != p:  # a value is left: of up to 16 characters, or else
                    p = _end_of_token(text, q)
                    n = p - q
                    strange = n <= _EIGHT or n > np.uint64(16)
                    mantissa = _ZERO
                    scale = 1.0
                    if not strange:
                        x, point = _take_point(x << (_ALL_BITS + _ALL_BITS - (n << _THREE)))
                        y, last_point = _take_point(load_word(text, p - _EIGHT) ^ _ZEROS)
                        strange = (_nondigits(x) | _nondigits(y)) != _ZERO or last_point == _SEVEN
                        mantissa = _whole(x) * np.uint64(100000000)
                        if last_point < _EIGHT:
                            strange |= point < _EIGHT
                            mantissa = _whole(x) * np.uint64(10000000)
                            scale = _SCALES[last_point]
                        elif point < _EIGHT:
                            scale = _SCALES[point] * 1e8
                        mantissa += _whole(y)
                        strange |= mantissa > _LARGEST
                    if strange:
                        if n == _ZERO:
                            wrong = True
                            break
                        odd[n_odd, 0] = cell
                        odd[n_odd, 1] = q
                        odd[n_odd, 2] = p
                        odd[n_odd, 3] = line
                        n_odd += 1
                    value = float(mantissa) / scale
                    values[cell] = 0.0 - value if negative else value
                    cell += _ONE
                while text[p] == 32 or text[p] == 9:
                    p += _ONE
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
