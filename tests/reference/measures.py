"""Measures of one query, from the definitions.

Each takes what the documents of the query are worth in ranked order, best first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations, product
from math import fsum, log2


def ranked_rows(scores: Sequence[float]) -> list[int]:
    """Rows by score descending, equal scores by row ascending."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row], row))


def tied_orders(scores: Sequence[float]) -> list[list[int]]:
    """Every order of the rows in which no higher score stands below a lower one."""
    groups = [[row for row in range(len(scores)) if scores[row] == one] for one in sorted(set(scores), reverse=True)]
    choices = product(*(permutations(group) for group in groups))
    return [[row for group in choice for row in group] for choice in choices]


def over_tied_orders(
    measure: Callable[..., float], scores: Sequence[float], worths: Sequence[float], *rest: object
) -> float:
    """Mean of a measure over all orders of the tied documents."""
    orders = tied_orders(scores)
    return fsum(measure([worths[row] for row in order], *rest) for order in orders) / len(orders)


def discounted_sums(worths: Sequence[float], cutoff: int, discount: Callable[[int], float]) -> float:
    """Sum of worth x discount(0-based rank)."""
    return fsum(worth * discount(rank) for rank, worth in enumerate(worths[:cutoff]))


def precision_sums(relevant: Sequence[float], cutoff: int) -> float:
    """Sum of the precision at each relevant document."""
    return fsum(sum(relevant[: rank + 1]) / (rank + 1) for rank in range(min(cutoff, len(relevant))) if relevant[rank])


def average_precision(relevant: Sequence[float], cutoff: int) -> float:
    """Mean of the precision at each relevant document."""
    return precision_sums(relevant, cutoff) / max(sum(relevant), 1)


def reciprocal_ranks(relevant: Sequence[float], cutoff: int) -> float:
    """1 / rank of the first relevant document."""
    return next((1 / (rank + 1) for rank, one in enumerate(relevant[:cutoff]) if one), 0.0)


def expected_reciprocal_ranks(stops: Sequence[float], cutoff: int) -> float:
    """Expected 1 / rank of the document at which the reader stops."""
    total, reach = 0.0, 1.0
    for rank, stop in enumerate(stops[:cutoff]):
        total += reach * stop / (rank + 1)
        reach *= 1 - stop
    return total


def swapped_ndcg_change(gains: Sequence[float], order: Sequence[int], first: int, second: int, cutoff: int) -> float:
    """|NDCG after swapping two places - NDCG before|, both from the definition."""
    n = len(gains)
    ideal = sum(g / log2(r + 2) for r, g in enumerate(sorted(gains, reverse=True)[: cutoff or n]))
    swapped = list(order)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    before = sum(gains[row] / log2(r + 2) for r, row in enumerate(order))
    after = sum(gains[row] / log2(r + 2) for r, row in enumerate(swapped))
    return abs(after - before) / ideal
