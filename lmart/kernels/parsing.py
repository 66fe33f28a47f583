"""Bytes of LETOR text to labels, query runs, indices and values; where the faults are. And the table of feature ids.

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

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import config, types
from numba.extending import intrinsic

from lmart.kernels.compiler import inner_kernel, kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

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

    def marks(text: Any, index: Any, low: Any, high: Any) -> Any:
        """Return a bit for each of the 64 bytes at text[index], the first one lowest: set if it is in low..high."""
        some = text[int(index) : int(index) + 64]
        return np.packbits((some >= low) & (some <= high), bitorder="little").view(np.uint64)[0]

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

    @intrinsic
    def marks(typing_context: Any, text: Any, index: Any, low: Any, high: Any) -> Any:
        """Return a bit for each of the 64 bytes at text[index], the first one lowest: set if it is in low..high."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from llvmlite import ir

            byte, number = ir.IntType(8), ir.IntType(32)
            vector = ir.VectorType(byte, 64)

            def in_each_byte(value: Any) -> Any:
                one = builder.insert_element(vector(None), builder.trunc(value, byte), number(0))
                return builder.shuffle_vector(one, vector(None), ir.VectorType(number, 64)(None))

            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            some = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)
            least = in_each_byte(arguments[2])
            span = builder.sub(in_each_byte(arguments[3]), least)
            found = builder.icmp_unsigned("<=", builder.sub(some, least), span)
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(text, types.uint64, types.int64, types.int64), codegen


@kernel
def count_marks(text: Bytes, start: int, stop: int) -> tuple[int, int]:
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
        digits = marks(text, p, 48, 57)
        lines += set_bits(marks(text, p, 10, 10) & inside)
        cells += set_bits(marks(text, p, 58, 58) & ((digits << _ONE) | digit_before) & inside)
        digit_before = digits >> np.uint64(63)
        p += _ALL_BITS
    return int(np.int64(lines)), int(np.int64(cells))


@inner_kernel
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


@inner_kernel
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


@inner_kernel
def _nondigits(x: np.uint64) -> np.uint64:
    """Return a word with the high bit of each byte that is above 9, as far as the lowest of them."""
    return ((x + _TO_HIGH) | x) & _HIGH


@inner_kernel
def _whole(x: np.uint64) -> np.uint64:
    """Return the number of eight digits, the first one in the lowest byte."""
    pairs = x * np.uint64(10) + (x >> _EIGHT)
    few = np.uint64(0x000000FF000000FF)
    high = (pairs & few) * np.uint64(0x000F424000000064)
    low = ((pairs >> np.uint64(16)) & few) * np.uint64(0x0000271000000001)
    return (high + low) >> np.uint64(32)


@inner_kernel
def _take_point(x: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return eight characters without their first point, those before it moved up; and its mark, 1 in its byte."""
    point = x ^ _POINTS
    point = (point - _EACH) & ~point & _HIGH
    mark = (point & (~point + _ONE)) >> _SEVEN
    before = mark - _ONE  # all bits when there is no point
    moved = (x & before) << _EIGHT if point != _ZERO else x
    return moved | (x & ~(before | (mark * _LOW_BYTE))), mark


@inner_kernel
def _end_of_token(text: Bytes, start: np.uint64) -> np.uint64:
    """Return where the first blank, tab, '#' or line end from `start` on stands."""
    p = start
    while text[p] != 32 and text[p] != 10 and text[p] != 9 and text[p] != 13 and text[p] != 35:
        p += _ONE
    return p


@inner_kernel
def _find_ends(text: Bytes, start: np.uint64, ends: Words) -> np.uint64:
    """Write where the blanks and tabs stand, and last the first '#' or line end; return how many; BATCH at least.

    text : uint8, in, from start on     ends : uint64[BATCH + 80], out
    """
    n = _ZERO
    p = start
    while n < np.uint64(BATCH):
        found = marks(text, p, 32, 32) | marks(text, p, 9, 9)
        closing = marks(text, p, 10, 10) | marks(text, p, 13, 13) | marks(text, p, 35, 35)
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
    words: Words, starts: Words, stops: Words, n: np.uint64, first: np.uint64, values: Floats, strange: Words
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
    words: Words, lasts: Words, starts: Words, stops: Words, n: np.uint64, numbers: Floats, strange: Words
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
    places      : int32[m], in, where in `spellings` the id of this number stands, or -1; m may be 0
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
                            slot = _slot(int(np.int64(feature_id)), keys)
                            columns[cell + n] = key_columns[slot]
                            if keys[slot] == -1:
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
                        lasts[n_long] = load_word(text, stops[i] - _EIGHT)
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
