"""Splits on categories as splits on sets of values, for formats of other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.categories import Categories
from lmart.errors import ModelError, quote
from lmart.formats.models.nodes import LARGEST_NUMBER, counts_to_offsets
from lmart.scoring.ensemble import Ensemble, Tree

EdgesOf = Callable[[Int64Array], Float64Array]
"""Returns where the test of a set of categories, int64[n], changes sides."""


class ValueSets(NamedTuple):
    """A model whose splits on categories are sets of values, and how many nodes send missing values elsewhere."""

    ensemble: Ensemble
    changed: int


class _Split(NamedTuple):
    """The feature of a node, and its threshold and further bounds."""

    column: int
    bounds: tuple[float, ...]


class _SetOfNode(NamedTuple):
    """The bounds of the test for a set of values, float64[n], and whether unseen values are those that go left."""

    edges: Float64Array
    unseen_left: bool


def with_value_sets(ensemble: Ensemble, tool: str, edges_of: EdgesOf, missing_with_unseen: bool) -> ValueSets:
    """Return the model with nodes of several bounds on the values of categories, in place of thresholds on numbers.

    missing_with_unseen : missing values go with those that training did not see, as the tool knows no other

    No set has values that training did not see: the children of a node are swapped where these would go right. A text
    is its place in `Categories.values`. ModelError when a value is below 0.
    """
    by_column = {of_feature.column: of_feature for of_feature in ensemble.categories}
    for column, of_feature in by_column.items():
        lowest = min((value for value in of_feature.values if isinstance(value, int)), default=0)
        if lowest < 0:
            name = quote(ensemble.feature_name(column))
            raise ModelError(f"category {name} has the value {lowest}, and {tool} knows none below 0")
    if not by_column:
        return ValueSets(ensemble, 0)
    sets: dict[_Split, _SetOfNode] = {}
    for tree in ensemble.trees:
        for split in _splits(tree):
            if split.column in by_column and split not in sets:
                sets[split] = _set_of_node(by_column[split.column], split.bounds, edges_of)
    written = [_with_sets(tree, sets, missing_with_unseen) for tree in ensemble.trees]
    trees = tuple(tree for tree, _ in written)
    return ValueSets(replace(ensemble, trees=trees, categories=()), sum(changed for _, changed in written))


def _with_sets(tree: Tree, sets: Mapping[_Split, _SetOfNode], missing_with_unseen: bool) -> tuple[Tree, int]:
    """Return a tree with the sets of its nodes, and of how many of them the side of missing values changed."""
    thresholds, missing_left = tree.thresholds.copy(), tree.missing_left.copy()
    left, right = tree.left.copy(), tree.right.copy()
    further, changed = [np.zeros(0)] * len(thresholds), 0
    for node, split in enumerate(_splits(tree)):
        if (of_node := sets.get(split)) is None:
            further[node] = np.array(split.bounds[1:])
            continue
        if not of_node.unseen_left:
            left[node], right[node], missing_left[node] = right[node], left[node], not missing_left[node]
        if missing_with_unseen and not missing_left[node]:
            missing_left[node], changed = True, changed + 1
        thresholds[node], further[node] = of_node.edges[0], of_node.edges[1:]
    offsets, bounds = counts_to_offsets([len(edges) for edges in further]), np.concatenate([np.zeros(0), *further])
    made = replace(tree, thresholds=thresholds, missing_left=missing_left, left=left, right=right)
    return (replace(made, bound_offsets=offsets, bounds=bounds) if len(bounds) else made), changed


def _splits(tree: Tree) -> Iterator[_Split]:
    """Yield what each node of a tree tests."""
    offsets = [0] * (len(tree.thresholds) + 1) if tree.bound_offsets is None else tree.bound_offsets.tolist()
    bounds = [] if tree.bounds is None else tree.bounds.tolist()
    nodes = zip(tree.split_columns.tolist(), tree.thresholds.tolist(), offsets, offsets[1:], strict=False)
    for column, threshold, first, last in nodes:
        yield _Split(column, (threshold, *bounds[first:last]))


def _set_of_node(categories: Categories, bounds: Sequence[float], edges_of: EdgesOf) -> _SetOfNode:
    """Return the set of the values that go to the other side than unseen ones."""
    goes_left, unseen_left = categories.split(bounds)
    members = np.sort(categories.held[goes_left != unseen_left]).astype(np.int64)
    return _SetOfNode(edges_of(members) if len(members) else np.array([LARGEST_NUMBER]), unseen_left)
