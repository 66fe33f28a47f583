"""Nodes with several bounds rewritten as plain nodes, for formats that know one threshold a node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lmart.errors import ModelError, counted
from lmart.formats.models.tree_building import LARGEST_NUMBER, counts_to_offsets
from lmart.scoring.ensemble import Ensemble, Tree

# A split on a set of categories copies its subtrees once for each run of categories, so nested ones grow without limit.
# A model of 100,000 leaves is still an everyday size, however small it was before; above that, a growth to 4 times is
# the most that does not surprise whoever serves the model.
USUAL_LEAVES = 100_000
MOST_GROWTH = 4
MARKS_FROM = 1e300  # thresholds above it may stand for a node that is kept


def expand_bounds(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble with a chain of plain nodes for each node that has several bounds; the same scores.

    A node with threshold t and bounds b1, b2 becomes x <= t (left), else x <= b1 (right), else x <= b2 (left), else
    right; its subtrees are copied as often as needed. Trees without such nodes are kept as they are; the others lose
    split_gains and leaf_documents, which do not add up over copies. ModelError when the model would grow too large:
    above 100,000 leaves and 4 times its own.
    """
    if all(tree.bounds is None for tree in ensemble.trees):
        return ensemble
    before = sum(tree.n_leaves for tree in ensemble.trees)
    most = max(MOST_GROWTH * before, USUAL_LEAVES)
    after = 0.0
    for tree in ensemble.trees:
        after += _expanded_leaves(tree)
    if after > most:
        size = f"{after:,.0f}" if after < 1e15 else "more than 10^15"
        raise ModelError(
            "splits on sets of values, such as categories, need a chain of plain splits each in this format: the model"
            f" would grow from {counted(before, 'leaf', 'leaves')} to {size}, and {most:,} are allowed; train it"
            " without categorical features or with fewer categories in a split"
        )
    return replace(ensemble, trees=tuple(_expand(tree) for tree in ensemble.trees))


def _bound_counts(tree: Tree) -> list[int]:
    """Return how many bounds each node has above its threshold."""
    if tree.bound_offsets is None:
        return [0] * len(tree.thresholds)
    counts: list[int] = np.diff(tree.bound_offsets).tolist()
    return counts


def _expanded_leaves(tree: Tree) -> float:
    """Return the leaves that a tree would have, a float as they may be more than an integer array can count."""
    if tree.bounds is None or not len(tree.bounds):
        return float(tree.n_leaves)
    counts, left, right = _bound_counts(tree), tree.left.tolist(), tree.right.tolist()
    order, waiting = [], [0]  # parents before their children
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += [child for child in (left[node], right[node]) if child >= 0]
    leaves = [1.0] * (len(left) + 1)  # the last entry is what a leaf counts
    for node in reversed(order):
        outcomes = counts[node] + 2  # left, right, left ...
        n_left = leaves[max(left[node], -1)]
        n_right = leaves[max(right[node], -1)]
        leaves[node] = (outcomes + 1) // 2 * n_left + outcomes // 2 * n_right
    return leaves[0]


def _expand(tree: Tree) -> Tree:
    """Return the tree with plain nodes only, numbered from the root down, left before right."""
    if tree.bounds is None or tree.bound_offsets is None or not len(tree.bounds):
        return replace(tree, bound_offsets=None, bounds=None)
    counts, left, right = _bound_counts(tree), tree.left.tolist(), tree.right.tolist()
    starts, missing_left = tree.bound_offsets.tolist(), tree.missing_left.tolist()
    olds: list[int] = []  # the node that each new one comes from
    places: list[int] = []  # which of its bounds: 0 is the threshold
    children: list[list[int]] = [[], []]
    leaves: list[int] = []  # the leaf that each new one is a copy of
    waiting = [(0, 0, -1, 0)]  # node or ~leaf, place among its bounds, new parent, side of it
    while waiting:
        old, place, parent, side = waiting.pop()
        if old < 0:
            children[side][parent] = ~len(leaves)
            leaves.append(~old)
            continue
        new = len(olds)
        if parent >= 0:
            children[side][parent] = new
        olds.append(old)
        places.append(place)
        children[0].append(0)
        children[1].append(0)
        here, other = (left[old], right[old]) if place % 2 == 0 else (right[old], left[old])
        waiting.append((other, 0, new, 1) if place == counts[old] else (old, place + 1, new, 1))
        waiting.append((here, 0, new, 0))
    old_nodes, place_of = np.array(olds), np.array(places)
    bound = np.array(starts)[old_nodes] + place_of - 1
    thresholds = np.where(place_of == 0, tree.thresholds[old_nodes], tree.bounds[np.maximum(bound, 0)])
    # A missing value that goes right passes the threshold and leaves the chain at its first bound, or at its end.
    missing = np.array(missing_left)[old_nodes] | (place_of == 1)
    return Tree(
        tree.split_columns[old_nodes],
        thresholds,
        missing,
        np.array(children[0], np.int32),
        np.array(children[1], np.int32),
        tree.leaf_values[leaves],
    )


def expand_except(ensemble: Ensemble, kept: dict[tuple[int, int], int]) -> tuple[Ensemble, dict[tuple[int, int], int]]:
    """Return the ensemble with nodes of several bounds expanded but for those that the format holds as they are.

    ensemble : the model
    kept     : a number for each node (tree, node) that is kept; its bounds are dropped from the result

    Returns also the numbers of the kept nodes by where they are in the result, some of them copied.
    """
    taken = {float(t) for tree in ensemble.trees for t in tree.thresholds[tree.thresholds > MARKS_FROM]}
    marks: dict[float, int] = {}  # a threshold that no node has stands for a kept node while its tree is expanded
    marked: dict[int, dict[int, float]] = {}
    mark = LARGEST_NUMBER
    for (number, node), payload in kept.items():
        mark = float(np.nextafter(mark, 0.0))
        while mark in taken:
            mark = float(np.nextafter(mark, 0.0))
        marks[mark] = payload
        marked.setdefault(number, {})[node] = mark
    trees = tuple(
        _without_bounds(tree, marked[number]) if number in marked else tree
        for number, tree in enumerate(ensemble.trees)
    )
    expanded = expand_bounds(replace(ensemble, trees=trees))
    found = {}
    for number in marked:
        tree = expanded.trees[number]
        for node in np.flatnonzero(tree.thresholds > MARKS_FROM).tolist():
            threshold = float(tree.thresholds[node])
            if threshold in marks:
                found[number, node] = marks[threshold]
    return expanded, found


def _without_bounds(tree: Tree, marks: dict[int, float]) -> Tree:
    """Return the tree in which the given nodes have the given thresholds and no further bounds."""
    thresholds = tree.thresholds.copy()
    thresholds[list(marks)] = list(marks.values())
    if tree.bound_offsets is None or tree.bounds is None:
        return replace(tree, thresholds=thresholds)
    is_marked = np.zeros(len(thresholds), np.bool_)
    is_marked[list(marks)] = True
    counts = np.diff(tree.bound_offsets)
    bounds = tree.bounds[~np.repeat(is_marked, counts)]
    counts[is_marked] = 0
    if not len(bounds):
        return replace(tree, thresholds=thresholds, bound_offsets=None, bounds=None)
    return replace(tree, thresholds=thresholds, bound_offsets=counts_to_offsets(counts), bounds=bounds)
