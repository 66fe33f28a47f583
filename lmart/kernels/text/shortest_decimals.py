"""float64 to the shortest decimal text that reads back equal, as Python's repr() has it, whole numbers without a point.

Of the texts with the fewest digits, the nearest to the number is taken. A number with few decimals is found by trying:
a whole number below 10^15 divided by a power of ten up to 10^22 is the double nearest to that decimal (Clinger 1990),
and no two decimals of 15 digits are read as one double. All others go through `_shortest_digits`.

Characters are written by their code: 45 '-', 46 '.', 48 '0', 101 'e'.
"""

from __future__ import annotations

import math

import numpy as np

from lmart.array_types import UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel
from lmart.kernels.numba_support.intrinsics import number_bits, store_word, trailing_zeros
from lmart.kernels.text.decimals import DIGIT_ZEROS, multiply

LONGEST_NUMBER = 24  # characters, as in -2.2250738585072014e-308
STORE_MARGIN = 16  # bytes behind a number that may be overwritten
LOWEST_TEN, HIGHEST_TEN = -292, 324
FIRST_EXPONENT_FORM = 16  # 1e16 is the first whole number with an exponent
_POWERS_OF_TEN = 10.0 ** np.arange(23)  # exact
_FEW = np.array([10**k for k in range(9)], np.uint64)
_CLOSE = 2.0**-51  # more than the relative error of x * 10^k, which rounds twice
_LARGEST_TRIED = 1e15
_ZERO, _ONE, _TWO, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_THREE, _EIGHT, _TEN, _FORTY = np.uint64(3), np.uint64(8), np.uint64(10), np.uint64(40)
_ALL_BITS = np.uint64(64)
_EIGHT_DIGITS = np.uint64(100_000_000)
_FRACTION_BITS = np.uint64(52)
_FRACTION = np.uint64((1 << 52) - 1)


def powers_of_ten() -> UInt64Array:
    """Return uint64[617, 2]: high and low word of 10^k * 2^(127 - floor(log2(10^k))) for k = -292..324, rounded up."""
    table = np.empty((HIGHEST_TEN - LOWEST_TEN + 1, 2), np.uint64)
    for k in range(LOWEST_TEN, HIGHEST_TEN + 1):
        shift = 127 - (k * 1741647 >> 19)  # floor(log2(10^k)), exact in this range
        top, bottom = 10 ** max(k, 0) << max(shift, 0), 10 ** max(-k, 0) << max(-shift, 0)
        word = -(-top // bottom)
        table[k - LOWEST_TEN, 0] = word >> 64
        table[k - LOWEST_TEN, 1] = word & 0xFFFFFFFFFFFFFFFF
    return table


@inner_kernel
def _digits_word(number: np.uint64) -> np.uint64:
    """Return the eight digits 0..9 of a number below 10^8 as the bytes of a word, the first lowest.

    number : uint64
    Two, four and then eight lanes are divided at once, by multiplication, which is exact for numbers this small.
    """
    high = number // np.uint64(10000)
    lanes = high | ((number - high * np.uint64(10000)) << np.uint64(32))
    hundreds = ((lanes * np.uint64(10486)) >> np.uint64(20)) & np.uint64(0x0000007F0000007F)
    lanes = hundreds | ((lanes - hundreds * np.uint64(100)) << np.uint64(16))
    tens = ((lanes * np.uint64(103)) >> _TEN) & np.uint64(0x000F000F000F000F)
    return tens | ((lanes - tens * _TEN) << _EIGHT)


@inner_kernel
def _write_whole(out: UInt8Array, at: np.uint64, number: np.uint64) -> np.uint64:
    """Write a whole number without leading zeros; return the index behind it.

    out : uint8, out      at : uint64, where to begin      number : uint64, below 10^16
    """
    if number < _TEN:
        out[at] = np.uint8(number + np.uint64(48))
        return at + _ONE
    p = at
    low = number
    if number >= _EIGHT_DIGITS:
        high = number // _EIGHT_DIGITS
        low = number - high * _EIGHT_DIGITS
        word = _digits_word(high)
        zeros = trailing_zeros(word) >> _THREE
        store_word(out, p, (word | DIGIT_ZEROS) >> (zeros << _THREE))
        p += _EIGHT - zeros
        store_word(out, p, _digits_word(low) | DIGIT_ZEROS)
        return p + _EIGHT
    word = _digits_word(low)
    zeros = trailing_zeros(word) >> _THREE
    store_word(out, p, (word | DIGIT_ZEROS) >> (zeros << _THREE))
    return p + _EIGHT - zeros


@inner_kernel
def _round_to_odd(high: np.uint64, low: np.uint64, factor: np.uint64) -> np.uint64:
    """Return the highest 64 of the 192 bits of (high * 2^64 + low) * factor, the last of them set when it is not exact.

    high, low, factor : uint64
    """
    carried, _ = multiply(low, factor)
    top, middle = multiply(high, factor)
    total = middle + carried
    if total < middle:
        top += _ONE
    return top | np.uint64(total > _ONE)


@inner_kernel
def _shortest_digits(bits: np.uint64, powers: UInt64Array) -> tuple[np.uint64, int]:
    """Return m and p such that m * 10^p is the shortest decimal that is read as a number; m may end in zeros.

    bits   : uint64, of the number, which is above 0 and finite
    powers : uint64[617, 2], in, of `powers_of_ten`
    Source: Giulietti, The Schubfach way to render doubles, 2020, section 9. Let 10^k be the largest power of ten below
    the width of the interval that is read as the number. Of the multiples of 10^k and 10^(k + 1) next to the number the
    shortest is taken that lies inside, and the nearest of two.
    """
    fraction = bits & _FRACTION
    exponent = int((bits >> _FRACTION_BITS) & np.uint64(0x7FF))
    significand = fraction
    power = -1074
    if exponent != 0:
        significand = fraction | np.uint64(1 << 52)
        power = exponent - 1075
    odd = significand & _ONE  # the ends of the interval of an odd significand are read as its neighbours
    is_lower_end_close = np.uint64(fraction == _ZERO and exponent > 1)
    k = (
        power * 1262611 - (524031 if is_lower_end_close != _ZERO else 0)
    ) >> 22  # floor(log10(2^power)), or of 3/4 of it
    shift = np.uint64(power + ((-k * 1741647) >> 19) + 1)
    high, low = powers[-k - LOWEST_TEN, 0], powers[-k - LOWEST_TEN, 1]
    middle = significand << _TWO
    # Four times the lower end, the number and the upper end, in units of 10^k.
    lower = _round_to_odd(high, low, (middle - _TWO + is_lower_end_close) << shift) + odd
    number = _round_to_odd(high, low, middle << shift)
    upper = _round_to_odd(high, low, (middle + _TWO) << shift) - odd
    below = number >> _TWO
    if below >= _TEN:
        tens = below // _TEN
        lower_is_in = lower <= _FORTY * tens
        upper_is_in = _FORTY * tens + _FORTY <= upper
        if lower_is_in != upper_is_in:
            return tens + np.uint64(upper_is_in), k + 1
    lower_is_in = lower <= _FOUR * below
    upper_is_in = _FOUR * below + _FOUR <= upper
    if lower_is_in != upper_is_in:
        return below + np.uint64(upper_is_in), k
    half = _FOUR * below + _TWO
    up = number > half or (number == half and below & _ONE != _ZERO)
    return below + np.uint64(up), k


@inner_kernel
def _write_decimal(out: UInt8Array, at: np.uint64, digits: np.uint64, power: int) -> np.uint64:
    """Write digits * 10^power as repr() has it, whole numbers without a point; return the index behind it.

    out    : uint8, out      at : uint64, where to begin
    digits : uint64, above 0 and below 10^17      power : int
    """
    m = digits
    while m % _TEN == _ZERO:
        m //= _TEN
        power += 1
    n = 0
    rest = m
    while rest != _ZERO:
        rest //= _TEN
        n += 1
    place = n + power  # of the point, counted from the first digit
    if 0 < place <= FIRST_EXPONENT_FORM or -4 < place <= 0:
        # Zeros before the digits, the digits with a point among them, zeros behind.
        n_before = max(1 - place, 0)
        n_written = max(n_before + n, place)
        point = max(place, 1)
        total = n_written + (1 if n_written > point else 0)
        for i in range(total - 1, -1, -1):
            if i == point:
                out[at + np.uint64(i)] = 46
                continue
            digit = i - n_before - (1 if i > point else 0)
            if 0 <= digit < n:
                out[at + np.uint64(i)] = np.uint8(m % _TEN + np.uint64(48))
                m //= _TEN
            else:
                out[at + np.uint64(i)] = 48
        return at + np.uint64(total)
    total = n + (1 if n > 1 else 0)
    for i in range(total - 1, -1, -1):
        if i == 1:
            out[at + _ONE] = 46
        else:
            out[at + np.uint64(i)] = np.uint8(m % _TEN + np.uint64(48))
            m //= _TEN
    p = at + np.uint64(total)
    exponent = place - 1
    out[p] = 101
    out[p + _ONE] = 45 if exponent < 0 else 43
    if exponent > -10 and exponent < 10:
        out[p + _TWO] = 48
        p += _ONE
    return _write_whole(out, p + _TWO, np.uint64(abs(exponent)))


@inner_kernel
def _write_fraction(out: UInt8Array, at: np.uint64, number: float, powers: UInt64Array) -> np.uint64:
    """Write a number that is above 0, finite, and not whole or at least 10^15; return the index behind it.

    out    : uint8, out      at : uint64, where to begin      number : float64
    powers : uint64[617, 2], in
    """
    if number < _LARGEST_TRIED:
        for k in range(1, 23):
            scaled = number * _POWERS_OF_TEN[k]
            if scaled >= _LARGEST_TRIED:
                break
            rounded = np.rint(scaled)
            if abs(scaled - rounded) <= scaled * _CLOSE and rounded / _POWERS_OF_TEN[k] == number:
                digits = np.uint64(np.int64(rounded))
                if k > 8 or number < 1e-4 or number >= 1e8:
                    return _write_decimal(out, at, digits, -k)
                integer = np.uint64(np.int64(number))
                p = _write_whole(out, at, integer)
                out[p] = 46
                decimals = (digits - integer * _FEW[k]) * _FEW[8 - k]
                store_word(out, p + _ONE, _digits_word(decimals) | DIGIT_ZEROS)
                return p + _ONE + np.uint64(k)
    digits, power = _shortest_digits(number_bits(number), powers)
    return _write_decimal(out, at, digits, power)


@inner_kernel
def write_number(out: UInt8Array, at: np.uint64, number: float, powers: UInt64Array) -> np.uint64:
    """Write the shortest text of a number: `nan`, `inf`, minus zero as 0; return the index behind it.

    out    : uint8[>= at + LONGEST_NUMBER + STORE_MARGIN], out      at : uint64, where to begin
    number : float64      powers : uint64[617, 2], in, of `powers_of_ten`
    """
    p = at
    if number < 0.0:
        out[p] = 45
        p += _ONE
        number = -number
    if number < _LARGEST_TRIED:
        integer = np.uint64(np.int64(number))
        if float(np.int64(integer)) == number:
            return _write_whole(out, p, integer)
        return _write_fraction(out, p, number, powers)
    if np.isnan(number) or number == math.inf:
        word = np.uint64(0x6E616E) if np.isnan(number) else np.uint64(0x666E69)  # nan, inf
        store_word(out, p, word)
        return p + _THREE
    return _write_fraction(out, p, number, powers)
