"""The order of a category's values by the definition, and their places by the other queries."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, floor

Query = Sequence[tuple[int | None, float]]  # the value and the gain of each document


def softmax(values: Sequence[float]) -> list[float]:
    """exp of each, as shares of their sum."""
    powers = [exp(value - max([0.0, *values])) for value in values]
    return [power / sum(powers) for power in powers]


def slopes(query: Query, effects: dict[int, float]) -> list[tuple[int, float, float, float]]:
    """The value, share of gain - p, p and p (1 - p) of each document of a query that says something."""
    total = sum(gain for _, gain in query)
    if len({value for value, _ in query}) < 2 or total == 0:
        return []
    shares = softmax([0.0 if value is None else effects[value] for value, _ in query])
    documents = [(value, gain / total, p) for (value, gain), p in zip(query, shares, strict=True)]
    return [(value, share - p, p, p * (1 - p)) for value, share, p in documents if value is not None]


def sums(queries: Sequence[Query], effects: dict[int, float]) -> dict[int, list[float]]:
    """The sums over all documents of each value: share - p, p, p (1 - p), each term in whole units of 2^-31."""
    found = {value: [0.0, 0.0, 0.0] for value in effects}
    for query in queries:
        for value, *terms in slopes(query, effects):
            for k, term in enumerate(terms):
                found[value][k] += float(Fraction(floor(term * 2**31 + 0.5), 2**31))
    return found


def fit(queries: Sequence[Query], values: Sequence[int], steps: int) -> dict[int, float]:
    """The effect of each value after steps that no curvature makes too long, with a prior of curvature 1."""
    effects = dict.fromkeys(values, 0.0)
    for _ in range(steps):
        found = sums(queries, effects)
        effects = {
            value: effect + (found[value][0] - effect) / (found[value][1] + 1) for value, effect in effects.items()
        }
    return effects


def by_others(queries: Sequence[Query], folds: Sequence[int], fold: int, effects: dict[int, float]) -> dict[int, float]:
    """The effect of each value without the queries of a fold: one step of Newton's method from that by all."""
    others = [query for query, own in zip(queries, folds, strict=True) if own != fold]
    found = sums(others, effects)
    return {value: effect + (found[value][0] - effect) / (found[value][2] + 1) for value, effect in effects.items()}


def number(values: Sequence[object], unseen: int, value: int) -> int:
    """The number of a value, `values` being in order and `unseen` of them before those that are not among them."""
    with_mark: list[object] = [*values[:unseen], None, *values[unseen:]]
    zero = with_mark.index(0) if 0 in values else unseen
    return with_mark.index(value if value in values else None) - zero
