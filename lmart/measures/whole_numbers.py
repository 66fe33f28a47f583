"""Numbers as whole multiples of a power of two, so that their sums are exact in any order."""

from __future__ import annotations

import math

import numpy as np

from lmart.array_types import Float64Array, Int64Array

BITS = 61


def whole_numbers(values: Float64Array, bound_sum: bool) -> tuple[Int64Array, int]:
    """Return whole numbers of at most BITS bits, and the exponent e for which the values are they times 2^e, rounded.

    values    : float64[n], finite
    bound_sum : whether the sum of the absolute whole numbers has at most BITS bits, and not only each of them
    """
    largest = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    exponent = largest - BITS
    if bound_sum:
        exponent += math.frexp(math.fsum(np.ldexp(np.abs(values), -largest).tolist()))[1]
    return np.rint(np.ldexp(values, -exponent)).astype(np.int64), exponent
