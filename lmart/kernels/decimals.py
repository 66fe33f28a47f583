"""Decimal text to float64, correctly rounded; and the rows of tables, whose fields are mostly decimals.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 43 '+', 45 '-', 46 '.'.
Every text ends with a newline, so no loop needs to ask whether there is a further byte.
"""

# ruff: noqa: PLR1714, SIM102, SIM109, SIM110 (plain comparisons compile best)
from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

# How a number ended: its value is there; Python's float() has to decide the last bit; it is none.
EXACT, HARD, WRONG = 0, 1, 2
# What a column of a table holds.
IGNORED, FEATURE, LABEL, QUERY, DOCUMENT = 0, 1, 2, 3, 4
# Places in the `counts` of parse_delimited.
ROWS, RUNS, HARD_NUMBERS, FAULTS = 0, 1, 2, 3
N_COUNTS = 4

LOWEST_POWER, HIGHEST_POWER = -342, 308
_POWERS_OF_TEN = 10.0 ** np.arange(23)  # exact
_MASK32 = np.uint64(0xFFFFFFFF)
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


@inner_kernel
def _multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return high and low word of a * b."""
    shift = np.uint64(32)
    a0, a1 = a & _MASK32, a >> shift
    b0, b1 = b & _MASK32, b >> shift
    low, middle, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    carry = (low >> shift) + (middle & _MASK32) + (other & _MASK32)
    return high + (middle >> shift) + (other >> shift) + (carry >> shift), (carry << shift) | (low & _MASK32)


@inner_kernel
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


@inner_kernel
def _ends_token(character: int) -> bool:
    return character == 32 or character == 10 or character == 9 or character == 13 or character == 35


@inner_kernel
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
def read_numbers(
    text: Bytes, numbers: Longs, allow_infinite: bool, powers: Words, labels: Floats, values: Floats
) -> int:
    """Read numbers that stand alone; return how many are left to the caller, then the first ones of `numbers`.

    text    : uint8[n], in; behind each number is a blank, tab, newline, carriage return or '#'
    numbers : int64[m, 5], in and out: the place in `values` (~row: in `labels`), start and stop in the text, line, and
              what is wrong with those left: HARD, or WRONG, also of a label that is not finite or negative, or of an
              infinity unless it is allowed; those left stay in order
    powers  : uint64[651, 2], in
    labels, values : float64, out at the places named
    Parallel: each call writes only its own outputs. Cost: O(bytes of the numbers).
    """
    n_left = 0
    for i in range(len(numbers)):
        place, start = numbers[i, 0], numbers[i, 1]
        status, value, stop = parse_number(text, start, powers, 10)
        if status != HARD and stop != numbers[i, 2]:
            status = WRONG
        elif place < 0:
            if status == EXACT and not 0.0 <= value < math.inf:
                status = WRONG
            labels[~place] = value
        else:
            if math.isinf(value) and not allow_infinite:
                status = WRONG
            values[place] = value
        if status != EXACT:
            for k in range(4):
                numbers[n_left, k] = numbers[i, k]
            numbers[n_left, 4] = status
            n_left += 1
    return n_left


@inner_kernel
def _same_bytes(text: Bytes, p: int, q: int, n: int) -> bool:
    """Say whether the n bytes at p and at q are equal."""
    for i in range(n):
        if text[p + i] != text[q + i]:
            return False
    return True


@inner_kernel
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


@inner_kernel
def _truth_word(text: Bytes, start: int, delimiter: int) -> tuple[float, int]:
    """Return 1 or 0 and the end of `true` or `false` in any case, if one of them is the field; else 0 and `start`."""
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
    """Read whole lines of which no field is in quotes. A line with a fault is noted and leaves no row; blank lines are
    none.

    text      : uint8[>= stop], in; text[stop - 1] is a newline
    delimiter : comma or tab
    kinds     : uint8[n_fields], in, IGNORED, FEATURE, LABEL, QUERY or DOCUMENT
    places    : int32[n_fields], in, where in its row a feature is put
    powers    : uint64[651, 2], in
    labels    : float64[rows], out
    values    : float64[rows * n_features], out, row by row; nan where a field is empty, nan, na or null; 1 and 0 for
                true and false
    runs      : int64[rows, 4], out, runs of equal query ids: row, start and stop of the id in text, line
    hard      : int64[rows * n_fields, 4], out, numbers left to float(): place in `values` (~row: in `labels`), start,
                stop, line
    documents : int64[rows, 2], out, start and stop of the document id
    faults    : int64[m, 3], out, the first m faulty lines: line, start and stop
    counts    : int64[4], out, by ROWS, RUNS, HARD_NUMBERS, FAULTS
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
