"""Bytes of text to labels, query runs, indices and values; where the faults are. And the table of feature ids.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 43 '+', 45 '-', 46 '.',
58 ':'. Every text ends with a newline, so no loop needs to ask whether there is a further byte.
"""

# ruff: noqa: PLR1714, SIM102, SIM109, SIM110 (plain comparisons compile best)
from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

# How a number ended: its value is there; Python's float() has to decide the last bit; it is none.
EXACT, HARD, WRONG = 0, 1, 2
# Places in the `counts` of parse_letor.
ROWS, CELLS, UNKNOWN, RUNS, HARD_NUMBERS, FAULTS, LINES, UNSORTED = 0, 1, 2, 3, 4, 5, 6, 7
N_COUNTS = 8
# What a column of a table holds.
IGNORED, FEATURE, LABEL, QUERY, DOCUMENT = 0, 1, 2, 3, 4

LOWEST_POWER, HIGHEST_POWER = -342, 308
_POWERS_OF_TEN = 10.0 ** np.arange(23)  # exact
_MASK32 = np.uint64(0xFFFFFFFF)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def powers_of_five() -> Words:
    """Return uint64[651, 2]: the leading 128 bits (high, low word) of 5^q for q = -342..308.

    Truncated for q >= 0, rounded up for q < 0, as the proof of Lemire 2021 (section 5) wants them.
    """
    table = np.empty((HIGHEST_POWER - LOWEST_POWER + 1, 2), np.uint64)
    for q in range(LOWEST_POWER, HIGHEST_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            bits = power.bit_length()
            leading = power << 128 - bits if bits <= 128 else power >> bits - 128
        else:
            bits = (power - 1).bit_length()
            leading = (1 << bits + 127) // power + 1 if q >= -27 else (1 << 2 * bits + 128) // power + 1
            leading >>= max(leading.bit_length() - 128, 0)
        table[q - LOWEST_POWER, 0] = leading >> 64
        table[q - LOWEST_POWER, 1] = leading & 0xFFFFFFFFFFFFFFFF
    return table


@kernel
def _multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return high and low word of a * b."""
    shift = np.uint64(32)
    a0, a1 = a & _MASK32, a >> shift
    b0, b1 = b & _MASK32, b >> shift
    low, middle, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    carry = (low >> shift) + (middle & _MASK32) + (other & _MASK32)
    return high + (middle >> shift) + (other >> shift) + (carry >> shift), (carry << shift) | (low & _MASK32)


@kernel
def _scale(mantissa: np.uint64, power: int, powers: Words) -> tuple[float, bool]:
    """Return mantissa * 10^power correctly rounded, and whether that is sure; mantissa > 0.

    powers : uint64[651, 2], of powers_of_five, in
    Source: Lemire, Number parsing at a gigabyte per second, 2021, algorithm 1 (by Eisel and Lemire).
    """
    if power < LOWEST_POWER:
        return 0.0, True
    if power > HIGHEST_POWER:
        return math.inf, True
    zeros = 0
    word = mantissa
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - step) == np.uint64(0):
            word = word << np.uint64(step)
            zeros += step
    high, low = _multiply(word, powers[power - LOWEST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the next bits may carry into the ones that count
        more, _ = _multiply(word, powers[power - LOWEST_POWER, 1])
        room = _ALL_ONES - low
        if more > room:
            high += np.uint64(1)
            low = more - room - np.uint64(1)
        else:
            low = low + more
    if low == _ALL_ONES and (power < -27 or power > 55):
        return 0.0, False
    top = int(high >> np.uint64(63))
    kept = high >> np.uint64(top + 9)
    exponent = ((217706 * power) >> 16) + 63 + top - zeros + 1023
    if exponent <= 0:  # below the normal numbers
        if exponent <= -63:
            return 0.0, True
        kept = kept >> np.uint64(1 - exponent)
        kept = (kept + (kept & np.uint64(1))) >> np.uint64(1)
        return math.ldexp(float(kept), -1074), True
    odd_tie = low <= np.uint64(1) and -4 <= power <= 23 and kept & np.uint64(3) == np.uint64(1)
    if odd_tie and kept << np.uint64(top + 9) == high:  # half way: to even
        kept = kept - np.uint64(1)
    kept = (kept + (kept & np.uint64(1))) >> np.uint64(1)
    if exponent >= 0x7FE and (exponent > 0x7FE or kept >= np.uint64(1 << 53)):
        return math.inf, True
    return math.ldexp(float(kept), exponent - 1075), True


@kernel
def _ends_token(character: int) -> bool:
    return character == 32 or character == 10 or character == 9 or character == 13 or character == 35


@kernel
def _parse_word(text: Bytes, start: int) -> tuple[float, int]:
    """Return nan or infinity (always positive) and where the word ends, if it is one of them; else 0 and `start`."""
    first = int(text[start]) | 32
    if first != 110 and first != 105:
        return 0.0, start
    second = int(text[start + 1]) | 32
    if second != 97 and second != 110:
        return 0.0, start
    third = int(text[start + 2]) | 32
    if first == 110 and second == 97 and third == 110:
        return math.nan, start + 3
    if first == 105 and second == 110 and third == 102:
        stop = start + 3
        for character in (105, 110, 105, 116, 121):  # the rest of 'infinity'
            if int(text[stop]) | 32 != character:
                break
            stop += 1
        if stop == start + 3 or stop == start + 8:
            return math.inf, stop
    return 0.0, start


@kernel
def parse_number(text: Bytes, start: int, powers: Words, delimiter: int) -> tuple[int, float, int]:
    """Read one decimal number, nan or infinity: return how it ended (EXACT, HARD or WRONG), its value, and its end.

    text      : uint8[n], in; a blank, newline, '#' or the delimiter must follow the number
    powers    : uint64[651, 2], in
    delimiter : a further character that ends a number (newline: none)
    The value is correctly rounded to float64; minus zero is given as zero; HARD: up to the caller, by float().
    Digits up to the 19th are exact; with more, the number is between two neighbours of 19 digits, and sure if both
    round alike. Cost: O(length).
    """
    p = start
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += 1
    mantissa = np.uint64(0)
    power = 0
    digits = 0
    significant = 0
    more = False
    fraction = False
    while True:
        digit = int(text[p]) - 48
        if 0 <= digit <= 9:
            digits += 1
            if significant or digit:
                significant += 1
            if significant <= 19:
                mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                power -= fraction
            else:
                more |= digit != 0
                power += not fraction
        elif digit == -2 and not fraction:
            fraction = True
        else:
            break
        p += 1
    if not digits:
        if fraction:
            return WRONG, 0.0, start
        value, stop = _parse_word(text, p)
        if stop == p or not (_ends_token(int(text[stop])) or text[stop] == delimiter):
            return WRONG, 0.0, start
        return EXACT, -value if negative else value, stop
    if int(text[p]) | 32 == 101:  # e
        p += 1
        down = text[p] == 45
        if down or text[p] == 43:
            p += 1
        digit = int(text[p]) - 48
        if not 0 <= digit <= 9:
            return WRONG, 0.0, start
        exponent = 0
        while 0 <= digit <= 9:
            if exponent < 10**12:  # far beyond every power that a text can balance
                exponent = exponent * 10 + digit
            p += 1
            digit = int(text[p]) - 48
        power += -exponent if down else exponent
    if not (_ends_token(int(text[p])) or text[p] == delimiter):
        return WRONG, 0.0, start
    if mantissa == np.uint64(0):
        return EXACT, 0.0, p
    if not more and mantissa <= np.uint64(1 << 53) and -22 <= power <= 22:
        # Both are exact doubles, so one operation rounds once (Clinger 1990).
        value = float(mantissa)
        value = value * _POWERS_OF_TEN[power] if power >= 0 else value / _POWERS_OF_TEN[-power]
    else:
        value, sure = _scale(mantissa, power, powers)
        if sure and more:
            above, sure = _scale(mantissa + np.uint64(1), power, powers)
            sure = sure and above == value
        if not sure:
            return HARD, 0.0, p
    return EXACT, -value if negative and value > 0.0 else value, p


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
def _starts_query(text: Bytes, p: int) -> bool:
    """Say whether `qid:` stands at p."""
    return bool(text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == 58)


@kernel
def _same_bytes(text: Bytes, p: int, q: int, n: int) -> bool:
    """Say whether the n bytes at p and at q are equal."""
    for i in range(n):
        if text[p + i] != text[q + i]:
            return False
    return True


@kernel
def parse_letor(
    text: Bytes,
    start: int,
    stop: int,
    has_label: bool,
    has_query: bool,
    allow_infinite: bool,
    want_documents: bool,
    powers: Words,
    keys: Longs,
    key_columns: Ints,
    known_ids: Longs,
    labels: Floats,
    offsets: Longs,
    columns: Ints,
    values: Floats,
    unsorted: Longs,
    unknown: Longs,
    runs: Longs,
    hard: Longs,
    documents: Longs,
    faults: Longs,
    counts: Longs,
) -> None:
    """Read whole lines of LETOR text. A line with a fault is noted and leaves no row.

    text        : uint8[>= stop], in; text[stop - 1] is a newline
    has_label, has_query : what stands before the cells of every row
    powers      : uint64[651, 2], in
    keys, key_columns : int64[2^k], int32[2^k], hash table id -> column, in
    known_ids   : int64[n_known], id of each column, in
    labels      : float64[rows], out              offsets : int64[rows + 1], out
    columns     : int32[cells], out; the k-th id that is in no table is given as ~k
    values      : float64[cells], out
    unsorted    : int64[rows, 4], out, rows whose ids do not ascend: row, line, start and stop
    unknown     : int64[cells], out, ids in no table, in the order of the text
    runs        : int64[rows, 4], out, runs of equal query ids: row, start and stop of the id in text, line
    hard        : int64[cells + rows, 4], out, numbers left to float(): cell (~row: the label of that row), start,
                  stop, line
    documents   : int64[rows, 2], out, start and stop of the document id
    faults      : int64[m, 3], out, the first m faulty lines: line, start and stop
    counts      : int64[8], out, by ROWS, CELLS, UNKNOWN, RUNS, HARD_NUMBERS, FAULTS, LINES, UNSORTED
    rows is at least the newlines; cells at least a quarter of the bytes plus one, as the shortest cell is ` 1:2`.
    Lines count from 0 at `start`.
    Parallel: each call writes only its own outputs. Cost: O(stop - start).
    """
    n_known = len(known_ids)
    rows = 0
    cells = 0
    n_unknown = 0
    n_runs = 0
    n_hard = 0
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
        row_hard = n_hard
        new_start = _ZERO
        new_stop = _ZERO
        while text[p] == 32 or text[p] == 9:
            p += _ONE
        is_row = text[p] != 10 and text[p] != 35 and text[p] != 13
        k = 0
        ascending = True
        if is_row:
            if has_label:
                status, value, number_end = parse_number(text, int(np.int64(p)), powers, 10)
                q = np.uint64(number_end)
                if status == HARD:
                    hard[n_hard, 0] = ~rows
                    hard[n_hard, 1] = p
                    hard[n_hard, 2] = q
                    hard[n_hard, 3] = line
                    n_hard += 1
                elif status == WRONG or not 0.0 <= value < math.inf:
                    wrong = True
                p = q
                labels[rows] = value
                while text[p] == 32 or text[p] == 9:
                    p += _ONE
            if has_query and not wrong:
                if _starts_query(text, int(np.int64(p))):
                    p += np.uint64(4)
                    new_start = p
                    while text[p] > 32 and text[p] != 35:
                        p += _ONE
                    new_stop = p
                    wrong = new_start == new_stop
                    while text[p] == 32 or text[p] == 9:
                        p += _ONE
                else:
                    wrong = True
            column = -1
            previous = -1
            while not wrong:
                digit = int(text[p]) - 48
                feature_id = 0
                q = p
                while 0 <= digit <= 9:
                    feature_id = feature_id * 10 + digit
                    q += _ONE
                    digit = int(text[q]) - 48
                if digit != 10 or q == p:
                    wrong = not (q == p and (digit == -38 or digit == -13 or digit == -35))  # newline, '#', CR
                    break
                if q - p > 18:  # may be beyond 2^63 - 1: count again, with care
                    feature_id = 0
                    for i in range(int(np.int64(p)), int(np.int64(q))):
                        digit = int(text[i]) - 48
                        if feature_id > (9223372036854775807 - digit) // 10:
                            wrong = True
                            break
                        feature_id = feature_id * 10 + digit
                    if wrong:
                        break
                p = q + _ONE
                # Plain digits with a point are most of all text; the rest goes the long way.
                q = p
                negative = text[q] == 45
                if negative:
                    q += _ONE
                mantissa = 0
                first = q
                digit = int(text[q]) - 48
                while 0 <= digit <= 9:
                    mantissa = mantissa * 10 + digit
                    q += _ONE
                    digit = int(text[q]) - 48
                digits = q - first
                fraction = _ZERO
                if digit == -2:
                    q += _ONE
                    first = q
                    digit = int(text[q]) - 48
                    while 0 <= digit <= 9:
                        mantissa = mantissa * 10 + digit
                        q += _ONE
                        digit = int(text[q]) - 48
                    fraction = q - first
                    digits += fraction
                if 0 < digits <= 18 and mantissa <= 1 << 53 and _ends_token(digit + 48):
                    value = mantissa / _POWERS_OF_TEN[fraction]
                    if negative and mantissa:
                        value = -value
                else:
                    status, value, number_end = parse_number(text, int(np.int64(p)), powers, 10)
                    q = np.uint64(number_end)
                    if status != EXACT:
                        if status == WRONG:
                            wrong = True
                            break
                        hard[n_hard, 0] = cells + k
                        hard[n_hard, 1] = p
                        hard[n_hard, 2] = q
                        hard[n_hard, 3] = line
                        n_hard += 1
                    elif math.isinf(value) and not allow_infinite:
                        wrong = True
                        break
                p = q
                while text[p] == 32 or text[p] == 9:
                    p += _ONE
                column += 1
                if column >= n_known or known_ids[column] != feature_id:
                    slot = _slot(feature_id, keys)
                    if keys[slot] == -1:
                        unknown[n_unknown] = feature_id
                        column = ~n_unknown
                        n_unknown += 1
                    else:
                        column = int(key_columns[slot])
                columns[cells + k] = column
                values[cells + k] = value
                k += 1
                if column < 0:
                    column = -1
                if feature_id <= previous:
                    ascending = False
                previous = feature_id
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
            n_hard = row_hard
        elif is_row:
            if has_query:
                same = n_runs > 0 and new_stop - new_start == id_stop - id_start
                if same:
                    same = _same_bytes(
                        text, int(np.int64(new_start)), int(np.int64(id_start)), int(np.int64(new_stop - new_start))
                    )
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
            cells += k
            offsets[rows] = cells
        p += _ONE
        line += 1
    counts[ROWS] = rows
    counts[CELLS] = cells
    counts[UNKNOWN] = n_unknown
    counts[RUNS] = n_runs
    counts[HARD_NUMBERS] = n_hard
    counts[FAULTS] = n_faults
    counts[LINES] = line
    counts[UNSORTED] = n_unsorted


@kernel
def _missing_word(text: Bytes, start: int, delimiter: int) -> int:
    """Return the end of `na` or `null` in any case, if one of them is the field; else `start`."""
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


@kernel
def parse_delimited(
    text: Bytes,
    start: int,
    stop: int,
    delimiter: int,
    kinds: Bytes,
    places: Ints,
    n_features: int,
    allow_infinite: bool,
    powers: Words,
    labels: Floats,
    values: Floats,
    runs: Longs,
    hard: Longs,
    documents: Longs,
    faults: Longs,
    counts: Longs,
) -> None:
    """Read whole lines of fields without quotes. A line with a fault is noted and leaves no row; blank lines are none.

    text      : uint8[>= stop], in; text[stop - 1] is a newline
    delimiter : comma or tab
    kinds     : uint8[n_fields], in, IGNORED, FEATURE, LABEL, QUERY or DOCUMENT
    places    : int32[n_fields], in, where in its row a feature is put
    powers    : uint64[651, 2], in
    labels    : float64[rows], out
    values    : float64[rows * n_features], out, row by row; nan where a field is empty, nan, na or null
    runs, hard, documents, faults, counts : as in parse_letor; there are no CELLS and no UNKNOWN
    rows is at least the newlines. Lines count from 0 at `start`. Parallel: each call writes only its own outputs.
    Cost: O(stop - start).
    """
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
    counts[CELLS] = rows * n_features
    counts[UNKNOWN] = 0
    counts[RUNS] = n_runs
    counts[HARD_NUMBERS] = n_hard
    counts[FAULTS] = n_faults
    counts[LINES] = line
