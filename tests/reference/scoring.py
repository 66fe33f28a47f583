"""Scores of rows by walking the trees, and by bins of the cells.

A tree is (columns, thresholds, missing_left, left, right, leaf_values); children >= 0 are inner nodes, others ~leaf.
The threshold of a node of several bounds is a list of them: a value with an even number of them below it goes left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

PlainTree = tuple[
    Sequence[int], Sequence[float | list[float]], Sequence[bool], Sequence[int], Sequence[int], Sequence[float]
]


def goes_left(tree: PlainTree, node: int, x: float) -> bool:
    """Whether a value goes left at a node."""
    threshold = tree[1][node]
    if isnan(x):
        return tree[2][node]
    return sum(t < x for t in threshold) % 2 == 0 if isinstance(threshold, list) else x <= threshold


def leaf_reached(tree: PlainTree, row: Sequence[float]) -> int:
    """The leaf that a row of raw values (nan: missing) comes to."""
    columns, _, _, left, right, leaf_values = tree
    node = 0 if len(leaf_values) > 1 else ~0
    while node >= 0:
        node = left[node] if goes_left(tree, node, row[columns[node]]) else right[node]
    return ~node


def score_rows(base_score: float, trees: Sequence[PlainTree], rows: Sequence[Sequence[float]]) -> list[float]:
    """Base score, then the leaf value of each tree added in order."""
    scores = []
    for row in rows:
        score = base_score
        for tree in trees:
            score += tree[5][leaf_reached(tree, row)]
        scores.append(score)
    return scores


def code_rows(
    cells: Sequence[dict[int, float]],
    thresholds: Mapping[int, Sequence[float]],
    coded: Sequence[tuple[int, int, bool]],
    absent: float,
) -> list[list[int]]:
    """The code of each row in each coded column (feature, thresholds left out at its start, missing values are low)."""
    codes = []
    for row in cells:
        shown = []
        for feature, start, missing_low in coded:
            x = row.get(feature, absent)
            if isnan(x):
                shown.append(0 if missing_low else 255)
            else:
                shown.append(min(max(sum(t < x for t in thresholds[feature]) - start, 0), 255))
        codes.append(shown)
    return codes


def first_leaf(masks: Sequence[tuple[int, int, bool, int, int]], n_leaves: int, codes: Sequence[int]) -> int:
    """The first leaf of a row that no mask (column, bitvector byte, flip, code, bits that stay) clears."""
    alive = set(range(n_leaves))
    for column, byte, flip, code, stay in masks:
        if (255 - codes[column] if flip else codes[column]) > code:
            alive -= {8 * byte + bit for bit in range(8) if not stay >> bit & 1}
    return min(alive)
