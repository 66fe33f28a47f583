"""Decimal text to float64, correctly rounded; and the rows of tables, whose fields are mostly decimals.

Decimals of up to 16 characters are read by arithmetic on words of eight characters. Up to eight characters are handled
as the bytes of one word, the first lowest: x = word ^ '00000000' turns digits into 0..9; shifted up, so that its
last character is the highest byte, a short token has leading zeros. The digit tests and sums are of Lemire, Number
parsing at a gigabyte per second, 2021, section 4; without branches, so that loops over them become vector instructions.
Digits and power of ten are exact doubles, so one division rounds once (Clinger 1990). Minus zero becomes zero.

All others are read character by character, compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space,
35 '#', 43 '+', 45 '-', 46 '.'. Every text ends with a newline, so no loop needs to ask whether there is a further byte.
"""

# ruff: noqa: PLR1714 (plain comparisons compile best)
from __future__ import annotations

import math

import numpy as np

from lmart.array_types import Float64Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

# How a number ended: its value is there; Python's float() has to decide the last bit; it is no number.
EXACT, HARD, WRONG = 0, 1, 2
LOWEST_POWER, HIGHEST_POWER = -342, 308
_POWERS_OF_TEN = 10.0 ** np.arange(23)  # exact
_MASK32 = np.uint64(0xFFFFFFFF)
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
DIGIT_ZEROS = np.uint64(0x3030303030303030)  # '0' in each byte
_ZERO, _ONE, _THREE, _SEVEN, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(8)
_NINE, _LOW_BYTE = np.uint64(9), np.uint64(255)
_EACH = np.uint64(0x0101010101010101)  # 1 in each byte
_HIGH = np.uint64(0x8080808080808080)
_POINTS = np.uint64(0x1E1E1E1E1E1E1E1E)  # '.' ^ '0' in each byte
_MINUS = np.uint64(0x1D)  # '-' ^ '0'
_LAST = np.uint64(1 << 56)  # the mark of a point that is the last of eight characters
_TO_HIGH = np.uint64(0x7676767676767676)  # 10 and more, but not 9, plus this has the high bit
_LARGEST = 2.0**53  # whole numbers below it are exact doubles
# What to divide by when the point is the k-th of eight characters, counted from 0, at k + 1; without a point at 0.
_SCALES = np.array([1e0, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0])
_PLACES = np.uint64(0x1020304050607080)  # times the mark of a point: k + 1 in the highest four bits


@inner_kernel
def nondigits(x: np.uint64) -> np.uint64:
    """Return a word with the high bit of each byte of `x` that is above 9, as far as the lowest of them."""
    return ((x + _TO_HIGH) | x) & _HIGH


@inner_kernel
def eight_digits(x: np.uint64) -> np.uint64:
    """Return the number whose eight digits are the bytes of `x`, the first in the lowest byte."""
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
    lower = mark - _ONE  # the bits of the characters before the point; all bits without a point
    moved = (x & lower) << _EIGHT if point != _ZERO else x
    return moved | (x & ~(lower | (mark * _LOW_BYTE))), mark


@inner_kernel
def short_decimal(word: np.uint64, length: np.uint64) -> tuple[float, np.uint64]:
    """Return the value of up to eight characters: digits, one point at most, a minus; and 0 if it is nothing else.

    word : uint64, the eight bytes from the start of the value      length : uint64, of the value
    """
    x = word ^ DIGIT_ZEROS
    negative = x & _LOW_BYTE == _MINUS
    if negative:
        x ^= _MINUS
    x, mark = _take_point(x << ((_ZERO - (length << _THREE)) & np.uint64(63)))
    is_slow = (((x + _TO_HIGH) | x) & _HIGH) | (mark & _LAST)
    if length - _ONE >= _EIGHT or (negative and length == _ONE):
        is_slow = _ONE
    value = float(np.int32(eight_digits(x))) / _SCALES[(mark * _PLACES) >> np.uint64(60)]
    return 0.0 - value if negative else value, is_slow


@inner_kernel
def long_decimal(word: np.uint64, last: np.uint64, length: np.uint64) -> tuple[float, np.uint64]:
    """Return the value of 9 to 16 characters: digits, one point at most, a minus; and 0 if it is nothing else.

    word, last : uint64, the first and last eight bytes of the value      length : uint64, of the value
    """
    x = word ^ DIGIT_ZEROS
    negative = x & _LOW_BYTE == _MINUS
    if negative:
        x ^= _MINUS
    x, mark = _take_point(x << ((_ZERO - (length << _THREE)) & np.uint64(63)))
    y, last_mark = _take_point(last ^ DIGIT_ZEROS)
    last_digits = 1e8
    only_mark, second_mark = mark, _ZERO
    if last_mark != _ZERO:
        last_digits = 1e7
        only_mark, second_mark = last_mark, mark
    scale = _SCALES[(only_mark * _PLACES) >> np.uint64(60)]
    if mark != _ZERO:
        scale *= 1e8
    mantissa = float(np.int32(eight_digits(x))) * last_digits + float(np.int32(eight_digits(y)))
    is_slow = ((((x + _TO_HIGH) | x) | ((y + _TO_HIGH) | y)) & _HIGH) | (last_mark & _LAST) | second_mark
    if mantissa >= _LARGEST or length - _NINE >= _EIGHT:
        is_slow = _ONE
    value = mantissa / scale
    return 0.0 - value if negative else value, is_slow


@inner_kernel
def read_short_decimals(
    words: UInt64Array,
    starts: UInt64Array,
    stops: UInt64Array,
    n: np.uint64,
    first: np.uint64,
    values: Float64Array,
    slow: UInt64Array,
) -> np.uint64:
    """Read values as `short_decimal` does; mark those that it cannot read.

    words, starts, stops : uint64[>= n], in, the eight bytes from the start of each value, where it starts and stops
    values               : float64, out, from `first` on      slow : uint64[>= n], out, 0 for a value that was read
    Return a word that is 0 if none is slow. Without branches, so that several cells are read at once.
    """
    any_slow = _ZERO
    for i in range(n):
        value, is_slow = short_decimal(words[i], stops[i] - starts[i])
        values[first + np.uint64(i)] = value
        slow[i] = is_slow
        any_slow |= is_slow
    return any_slow


@inner_kernel
def read_long_decimals(
    words: UInt64Array,
    lasts: UInt64Array,
    starts: UInt64Array,
    stops: UInt64Array,
    n: np.uint64,
    numbers: Float64Array,
    slow: UInt64Array,
) -> None:
    """Read values as `long_decimal` does; mark those that it cannot read.

    words, lasts, starts, stops : uint64[>= n], in, the first and last eight bytes of each value, where it starts, stops
    numbers                : float64[>= n], out, the values        slow : uint64[>= n], out, 0 for a value that was read
    """
    for i in range(n):
        numbers[i], slow[i] = long_decimal(words[i], lasts[i], stops[i] - starts[i])


def powers_of_five() -> UInt64Array:
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
def multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return high and low word of a * b."""
    shift = np.uint64(32)
    a0, a1 = a & _MASK32, a >> shift
    b0, b1 = b & _MASK32, b >> shift
    low, middle, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    carry = (low >> shift) + (middle & _MASK32) + (other & _MASK32)
    return high + (middle >> shift) + (other >> shift) + (carry >> shift), (carry << shift) | (low & _MASK32)


@inner_kernel
def _scale(mantissa: np.uint64, power: int, powers: UInt64Array) -> tuple[float, bool]:
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
    high, low = multiply(word, powers[power - LOWEST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the next bits may carry into the bits that count
        more, _ = multiply(word, powers[power - LOWEST_POWER, 1])
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
    """Return whether `character` ends a number: a blank, tab, newline, carriage return or '#'."""
    return character == 32 or character == 10 or character == 9 or character == 13 or character == 35


@inner_kernel
def _parse_word(text: UInt8Array, start: int) -> tuple[float, int]:
    """Return nan or infinity (always positive) and where the word at text[start] ends, or 0 and `start`."""
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


@inner_kernel
def _read_digits(text: UInt8Array, start: int) -> tuple[np.uint64, int, int, bool, int]:
    """Read digits with at most one point at text[start].

    Return the number of the first 19 digits behind leading zeros, the power of ten to multiply it by, how many digits
    there are, whether one that was left out is not 0, and where they stop.
    """
    p = start
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
            return mantissa, power, digits, more, p
        p += 1


@inner_kernel
def _read_exponent(text: UInt8Array, start: int) -> tuple[int, int]:
    """Return the exponent whose `e` is at text[start], and where it stops; 0 and `start` when it has no digits."""
    p = start + 1
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += 1
    digit = int(text[p]) - 48
    if not 0 <= digit <= 9:
        return 0, start
    exponent = 0
    while 0 <= digit <= 9:
        if exponent < 10**12:  # far beyond every power that a text can balance
            exponent = exponent * 10 + digit
        p += 1
        digit = int(text[p]) - 48
    return -exponent if negative else exponent, p


@inner_kernel
def _round(mantissa: np.uint64, power: int, more: bool, powers: UInt64Array) -> tuple[float, bool]:
    """Return mantissa * 10^power correctly rounded, and whether that is sure; mantissa > 0.

    more   : bool, whether the number is above that, but below (mantissa + 1) * 10^power
    powers : uint64[651, 2], of `powers_of_five`, in
    """
    if not more and mantissa <= np.uint64(1 << 53) and -22 <= power <= 22:
        # Both are exact doubles, so one operation rounds once (Clinger 1990).
        value = float(mantissa)
        return value * _POWERS_OF_TEN[power] if power >= 0 else value / _POWERS_OF_TEN[-power], True
    value, sure = _scale(mantissa, power, powers)
    if sure and more:
        above, sure = _scale(mantissa + np.uint64(1), power, powers)
        sure = sure and above == value
    return value, sure


@kernel
def parse_number(text: UInt8Array, start: int, powers: UInt64Array, delimiter: int) -> tuple[int, float, int]:
    """Read one decimal number, nan or infinity: return how it ended (EXACT, HARD or WRONG), its value, and its end.

    text      : uint8[n], in; a blank, newline, '#' or the delimiter must follow the number
    start     : int, where the number begins      powers : uint64[651, 2], in
    delimiter : a further character that ends a number (newline: none)
    The value is correctly rounded to float64; minus zero becomes zero; HARD leaves the number to the caller's float().
    Digits up to the 19th are exact; with more, the number is between two neighbours of 19 digits, and sure if both
    round alike. Cost: O(length).
    """
    negative = text[start] == 45
    first = start + 1 if negative or text[start] == 43 else start
    mantissa, power, digits, more, p = _read_digits(text, first)
    value, sure = 0.0, True
    if digits == 0:
        value, p = _parse_word(text, first)
        if p == first:
            return WRONG, 0.0, start
    else:
        if int(text[p]) | 32 == 101:  # e
            exponent, stop = _read_exponent(text, p)
            if stop == p:
                return WRONG, 0.0, start
            power += exponent
            p = stop
        if mantissa != np.uint64(0):
            value, sure = _round(mantissa, power, more, powers)
    if not (_ends_token(int(text[p])) or text[p] == delimiter):
        return WRONG, 0.0, start
    if not sure:
        return HARD, 0.0, p
    return EXACT, -value if negative and value != 0.0 else value, p


@kernel
def read_numbers(
    text: UInt8Array,
    numbers: Int64Array,
    allow_infinite: bool,
    powers: UInt64Array,
    labels: Float64Array,
    values: Float64Array,
) -> int:
    """Read single numbers; return how many are left to the caller, which are then the first of `numbers`.

    text    : uint8[n], in; behind each number is a blank, tab, newline, carriage return or '#'
    numbers : int64[m, 5], in and out: the place in `values` (~row: in `labels`), start and stop in the text, line, and
              what is wrong with those left: HARD, or WRONG, also of a label that is not finite or negative, or of an
              infinity unless it is allowed; those left stay in order
    allow_infinite : bool, whether an infinity is a value      powers : uint64[651, 2], in, of `powers_of_five`
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
