"""Sums of the values of queries that are the same however queries are grouped: exact until they are rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence


def exact_sum(values: Sequence[float]) -> list[float]:
    """Return a few numbers whose sum is exactly that of the values, the largest first.

    values : finite numbers

    `math.fsum` of such numbers, of several groups, is that of all values. Source: Shewchuk 1997, as `math.fsum` has it.
    OverflowError when the sum is too large for a number.
    """
    parts: list[float] = []
    while rest := math.fsum([*values, *(-part for part in parts)]):
        parts.append(rest)
    return parts
