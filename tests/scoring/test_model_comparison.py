"""Comparing two forms of a model: what changed is found, what did not is not."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.trees import grow, sparse
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import ModelError
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.model_comparison import ModelComparison, align_features, compare_models

ROWS = sparse([{0: 0.25, 1: 3.0}, {1: -1.0}, {0: 2.0}])
COLUMNS = np.arange(2, dtype=np.int32)


def model(seed: int = 1, n_trees: int = 3, n_leaves: int = 12) -> Ensemble:
    rng = random.Random(seed)
    thresholds = [rng.gauss(0, 1) for _ in range(50)]
    trees = [grow(rng, n_leaves, range(2), thresholds) for _ in range(n_trees)]
    return Ensemble(tuple(replace(tree, leaf_values=tree.leaf_values % 1.0) for tree in trees), np.array([3, 8]))


def compared(first: Ensemble, second: Ensemble, float32: bool = False) -> ModelComparison:
    return compare_models(first, second, [(ROWS, COLUMNS)], float32)


def with_first_tree(ensemble: Ensemble, tree: Tree) -> Ensemble:
    return replace(ensemble, trees=(tree, *ensemble.trees[1:]))


@given(st.integers(0, 2**32))
def test_one_ulp_of_one_threshold_is_found(seed: int) -> None:
    first = model(seed, n_leaves=2)
    tree = first.trees[0]
    moved = with_first_tree(first, replace(tree, thresholds=np.nextafter(tree.thresholds, np.inf)))
    assert compared(first, first) == ModelComparison(3, 9, 0, 0, 0.0)
    assert compared(first, moved).planted_changed == 1


def test_float32_rows_do_not_see_what_float32_cannot_hold() -> None:
    first = model()
    thresholds = [np.nextafter(tree.thresholds, -np.inf) for tree in first.trees]
    second = replace(
        first, trees=tuple(replace(t, thresholds=new) for t, new in zip(first.trees, thresholds, strict=True))
    )
    assert compared(first, second, float32=True).planted_changed == 0
    assert compared(first, second).planted_changed > 0


def test_every_node_has_planted_rows_that_come_to_it() -> None:
    """Changing the threshold of any node by one ulp is found, wherever it is in its tree."""
    rng = random.Random(4)
    thresholds = sorted(rng.gauss(0, 1) for _ in range(400))
    first = Ensemble((grow(rng, 40, range(60), thresholds),), np.arange(60))
    tree = first.trees[0]
    reachable = 0
    for node in range(len(tree.thresholds)):
        changed = tree.thresholds.copy()
        changed[node] = np.nextafter(changed[node], np.inf)
        second = replace(first, trees=(replace(tree, thresholds=changed),))
        reachable += compare_models(first, second, [], False).planted_changed > 0
    assert reachable >= 0.9 * len(tree.thresholds)  # the others ask what is known already on their path


def test_leaf_values_and_rows_of_the_data() -> None:
    first = model()
    tree = first.trees[0]
    second = with_first_tree(first, replace(tree, leaf_values=tree.leaf_values + 0.5))
    found = compared(first, second)
    assert found.largest_difference == pytest.approx(0.5)
    assert found.rows_changed == 3
    turned = with_first_tree(first, replace(tree, left=tree.right, right=tree.left))
    assert compared(first, turned).rows_changed >= 2  # two leaves have the same value


def test_a_first_tree_of_one_leaf_stands_for_the_base_score() -> None:
    first = replace(model(), base_score=0.25)
    empty, none = np.zeros(0), np.zeros(0, np.int32)
    leaf = Tree(none, empty, np.zeros(0, np.bool_), none, none, np.array([0.25]))
    second = replace(first, base_score=0.0, trees=(leaf, *first.trees))
    assert compared(first, second) == ModelComparison(3, 3 * 3 * 11, 0, 0, 0.0)


def test_models_of_different_trees_are_refused() -> None:
    with pytest.raises(ModelError, match="3 trees split, but 2 of what was written"):
        compared(model(), replace(model(), trees=model().trees[1:]))


def test_features_are_aligned_by_name_or_id() -> None:
    first = model()
    shuffled = replace(first, feature_ids=np.array([1, 2]), feature_names=("b", "a"))
    flipped = tuple(replace(tree, split_columns=1 - tree.split_columns) for tree in first.trees)
    aligned = align_features(first, replace(shuffled, trees=flipped), {"3": "a", "8": "b"})
    assert compared(first, aligned).planted_changed == 0
    fewer = replace(first, feature_ids=np.array([3]), trees=())
    assert align_features(first, fewer, {}).n_features == 2
    with pytest.raises(ModelError, match="does not have"):
        align_features(first, replace(first, feature_ids=np.array([3, 9])), {})


def test_an_average_may_be_written_as_a_sum() -> None:
    first = replace(model(), average=True)
    trees = tuple(replace(tree, leaf_values=tree.leaf_values / 3) for tree in first.trees)
    found = compared(first, replace(first, trees=trees, average=False))
    assert (found.rows_changed, found.planted_changed) == (0, 0) and found.largest_difference < 1e-15
