"""Shapley values over all subsets of features; trees as in `scoring`, with the documents of each leaf."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import factorial

from reference.scoring import PlainTree, goes_left


def known_value(tree: PlainTree, documents: Sequence[int], row: Sequence[float], known: set[int], node: int) -> float:
    """What a tree gives when only some features are known: elsewhere both children count, by their documents."""
    columns, _, _, left, right, values = tree
    if node < 0:
        return values[~node]
    if columns[node] in known:
        side = left if goes_left(tree, node, row[columns[node]]) else right
        return known_value(tree, documents, row, known, side[node])

    def below(child: int) -> int:
        return documents[~child] if child < 0 else below(left[child]) + below(right[child])

    here, there = below(left[node]), below(right[node])
    share = here / (here + there) if here + there else 0.5
    return share * known_value(tree, documents, row, known, left[node]) + (1 - share) * known_value(
        tree, documents, row, known, right[node]
    )


def explain_row(
    base_score: float, trees: Sequence[tuple[PlainTree, Sequence[int]]], row: Sequence[float]
) -> tuple[float, list[float]]:
    """The value of no known feature, and the Shapley value of each feature, over all subsets of the others."""
    n = len(row)

    def value(known: set[int]) -> float:
        return base_score + sum(known_value(t, d, row, known, 0 if t[0] else -1) for t, d in trees)

    shapley = [0.0] * n
    for feature in range(n):
        others = [f for f in range(n) if f != feature]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for subset in combinations(others, size):
                shapley[feature] += weight * (value({*subset, feature}) - value(set(subset)))
    return value(set()), shapley
