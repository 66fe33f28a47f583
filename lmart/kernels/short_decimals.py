"""Decimals of up to 16 characters to float64, by arithmetic on words of eight characters.

Up to eight characters are handled as the bytes of one word, the first one lowest: x = word ^ '00000000' turns digits
into 0..9; shifted up, so that its last character is the highest byte, a short token has leading zeros. The digit tests
and sums are of Lemire, Number parsing at a gigabyte per second, 2021, section 4; without branches, so that loops over
them become vector instructions.

Digits and power of ten are exact doubles, so one division rounds once (Clinger 1990). Minus zero is given as zero.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel

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
# What to divide by when the point is the k-th of eight characters, counted from 0, at k + 1; at 0: there is none.
_SCALES = np.array([1e0, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0])
_PLACES = np.uint64(0x1020304050607080)  # times the mark of a point: k + 1 in the highest four bits


@inner_kernel
def nondigits(x: np.uint64) -> np.uint64:
    """Return a word with the high bit of each byte of `x` that is above 9, as far as the lowest of them."""
    return ((x + _TO_HIGH) | x) & _HIGH


@inner_kernel
def eight_digits(x: np.uint64) -> np.uint64:
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
def short_decimal(word: np.uint64, length: np.uint64) -> tuple[float, np.uint64]:
    """Return the value of up to eight characters: digits, one point at most, a minus; and 0 if it is nothing else.

    word   : uint64, the eight bytes from the start of the value      length : uint64, of the value
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
    values  : float64, out, from `first` on      slow : uint64[>= n], out, 0 for a value that was read
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
    numbers : float64[>= n], out, the values        slow : uint64[>= n], out, 0 for a value that was read
    """
    for i in range(n):
        numbers[i], slow[i] = long_decimal(words[i], lasts[i], stops[i] - starts[i])
