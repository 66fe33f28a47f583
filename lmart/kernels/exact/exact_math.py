"""Functions of one number that have the same bits on any processor, and rounding that makes sums exact.

They use single IEEE multiplications, additions and divisions only, in a fixed order.
"""

from __future__ import annotations

import numpy as np

from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

TO_WHOLE = 1.5 * 2.0**52  # adding it rounds to a whole number, which the low bits of the sum then hold


@kernel
def exp_minus(x: float) -> float:
    """Return exp(-x), and 0 for x above 700.

    x : float64, >= 0, in
    Equation: 2^-m times a Taylor sum to degree 13 of the rest, which is at most ln(2) / 2 in size: relative error below
    1e-15. It has no loop and no branch that keeps a caller's loop from running in vector instructions.
    """
    bounded = min(x, 700.0)
    shifted = bounded * 1.4426950408889634 + TO_WHOLE
    m = shifted - TO_WHOLE
    rest = (m * 0.693147180369123816490 - bounded) + m * 1.90821492927058770002e-10  # ln(2) in two parts
    power = 1.0 / 6227020800.0
    power = power * rest + 1.0 / 479001600.0
    power = power * rest + 1.0 / 39916800.0
    power = power * rest + 1.0 / 3628800.0
    power = power * rest + 1.0 / 362880.0
    power = power * rest + 1.0 / 40320.0
    power = power * rest + 1.0 / 5040.0
    power = power * rest + 1.0 / 720.0
    power = power * rest + 1.0 / 120.0
    power = power * rest + 1.0 / 24.0
    power = power * rest + 1.0 / 6.0
    power = power * rest + 0.5
    power = power * rest + 1.0
    power = power * rest + 1.0
    exponent = np.float64(TO_WHOLE).view(np.int64) - np.float64(shifted).view(np.int64)  # -m
    scale = np.int64((exponent + 1023) << 52).view(np.float64)
    return power * scale if x <= 700.0 else 0.0


@kernel
def log2_of_one_plus(x: float) -> float:
    """Return log2(1 + x), x float64, >= 0.

    Equation: 1 + x = m 2^e with m in (0.75, 1.5], log2(1 + x) = e + 2 atanh((m - 1) / (m + 1)) / ln 2, atanh as 16
    terms of its series. Small x are not added to 1 first, so that they keep their digits.
    """
    mantissa = 1.0 + x
    exponent = 0
    while mantissa > 1.5:
        mantissa *= 0.5
        exponent += 1
    z = x / (2.0 + x) if exponent == 0 else (mantissa - 1.0) / (mantissa + 1.0)
    square = z * z
    term = z
    series = 0.0
    for k in range(1, 33, 2):
        series += term / k
        term *= square
    return exponent + 2.0 * series / 0.6931471805599453


@inner_kernel
def rounding_grid(bound: float) -> float:
    """Return a number g for which (x + g) - g is x rounded to whole units, units so fine that sums stay exact.

    bound : float64, >= 0, of the absolute sum of all x, in
    Equation: g = 1.5 * 2^52 units, the unit being the finest power of two of which `bound` holds at most 2^50, within
    the range of numbers. Sums of rounded x then have at most 53 bits, whatever the order of the additions.
    """
    grid = TO_WHOLE
    units_sum = 2.0**50
    while units_sum < bound and units_sum < 2.0**1000:
        units_sum *= 2.0
        grid *= 2.0
    while units_sum >= 2.0 * bound and units_sum > 2.0**-900:
        units_sum *= 0.5
        grid *= 0.5
    return grid
