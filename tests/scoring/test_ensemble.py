"""Trees are checked for what makes them trees."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.trees import ensembles, grow
from hypothesis import given

from lmart.scoring.ensemble import Ensemble, Tree, flatten, node_sums, structure_fault


def tree(left: list[int], right: list[int], **others: Any) -> Tree:
    n = len(left)
    fields = {
        "split_columns": np.zeros(n, np.int32),
        "thresholds": np.zeros(n),
        "missing_left": np.zeros(n, np.bool_),
        "left": np.array(left, np.int32),
        "right": np.array(right, np.int32),
        "leaf_values": np.zeros(n + 1),
    }
    return Tree(**{**fields, **others})


GOOD = tree([1, -1], [-2, -3])


@given(ensembles())
def test_random_trees_are_sound(ensemble: Ensemble) -> None:
    assert structure_fault(flatten(ensemble.trees), ensemble.n_features) is None


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (replace(GOOD, thresholds=np.array([0.0, np.nan])), "a threshold is not finite"),
        (replace(GOOD, thresholds=np.array([np.inf, 0.0])), "a threshold is not finite"),
        (replace(GOOD, leaf_values=np.array([0.0, 0.0, -np.inf])), "a leaf value is not finite"),
        (replace(GOOD, split_columns=np.array([0, 2], np.int32)), "a split is on a feature"),
        (replace(GOOD, split_columns=np.array([-1, 0], np.int32)), "a split is on a feature"),
        (tree([2, -1], [-2, -3]), "a left child is neither"),
        (tree([1, -1], [-2, -4]), "a right child is neither"),
        (tree([1, -1], [-2, -(2**31)]), "a right child is neither"),
        (tree([1, 0], [-2, -3]), "node 0, which is the root"),
        (tree([1, -1], [1, -3]), "a node is the child of two nodes"),
        (tree([1, -1], [-1, -3]), "a leaf is the child of two nodes"),
        (tree([-1, -1], [-2, -3]), "a leaf is the child of two nodes"),
        (tree([-1, 2, 1], [-2, -3, -4]), "a ring that the root does not reach"),
    ],
)
def test_what_is_no_tree_is_named(bad: Tree, words: str) -> None:
    assert structure_fault(flatten([GOOD]), 2) is None
    fault = structure_fault(flatten([GOOD, tree([], []), bad, GOOD]), 2)
    assert fault is not None
    assert fault[0] == 2
    assert words in fault[1]


def test_the_first_bad_tree_is_named() -> None:
    low, high = tree([1, -1], [1, -3]), replace(GOOD, thresholds=np.array([np.nan, 0.0]))
    assert structure_fault(flatten([GOOD, low, high]), 1) == (1, "a node is the child of two nodes")
    assert structure_fault(flatten([GOOD, high, low]), 1) == (1, "a threshold is not finite")


def test_flattened_trees_lie_end_to_end() -> None:
    rng = random.Random(3)
    trees = [grow(rng, size, range(2), [0.5]) for size in (3, 1, 1, 4)]
    flat = flatten(trees)
    assert flat.n_trees == 4
    assert flat.node_offsets.tolist() == [0, 2, 2, 2, 5]
    assert flat.leaf_offsets.tolist() == [0, 3, 4, 5, 9]
    assert flat.tree_of_node.tolist() == [0, 0, 3, 3, 3]
    assert flat.leaf_values.tolist() == [value for one in trees for value in one.leaf_values.tolist()]
    assert flatten([]).n_trees == 0


def test_features_have_a_name_for_people() -> None:
    assert Ensemble((), np.array([4, 9])).feature_name(1) == "9"
    assert Ensemble((), np.array([1, 2]), ("bm25", "age")).feature_name(1) == "age"


def test_sums_over_the_leaves_below_each_node() -> None:
    rng = random.Random(1)
    trees = [
        grow(rng, size, range(3), [0.0, 1.0], shape) for size, shape in ((1, "random"), (9, "random"), (6, "chain"))
    ]
    numbers = np.array([rng.random() for _ in range(16)])
    expected = []
    start = 0
    for tree in trees:
        below: dict[int, float] = {~leaf: float(numbers[start + leaf]) for leaf in range(tree.n_leaves)}
        for node in reversed(range(tree.n_leaves - 1)):  # children come after their parents
            below[node] = below[int(tree.left[node])] + below[int(tree.right[node])]
        expected += [below[node] for node in range(tree.n_leaves - 1)]
        start += tree.n_leaves
    assert node_sums(flatten(trees), numbers).tolist() == expected
    assert node_sums(flatten(trees), np.arange(16)).dtype == np.int64
