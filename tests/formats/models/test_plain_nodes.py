"""Nodes with several bounds as chains of plain nodes: the same scores for every row, and no model without end."""

from __future__ import annotations

import random
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from helpers.float32_rows import scores
from helpers.trees import THRESHOLDS, grow, rows_for, sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.errors import ModelError
from lmart.formats.models import quickrank, ranklib, solr
from lmart.formats.models.targets import expand_bounds
from lmart.scoring.ensemble import Ensemble, Tree, flatten, structure_fault
from lmart.scoring.scorer import Scorer


def with_bounds(tree: Tree, further: list[list[float]]) -> Tree:
    """The tree with further bounds at each node."""
    offsets = np.cumsum([0, *map(len, further)]).astype(np.int64)
    return replace(tree, bound_offsets=offsets, bounds=np.array([b for bounds in further for b in bounds]))


def some_bounds(rng: random.Random, tree: Tree, most: int) -> list[list[float]]:
    above = [[bound for bound in THRESHOLDS if bound > t] for t in tree.thresholds.tolist()]
    return [sorted(rng.sample(bounds, rng.randint(0, min(most, len(bounds))))) for bounds in above]


@settings(deadline=None)
@given(st.data())
def test_scores_stay_the_same(data: st.DataObject) -> None:
    n_features = data.draw(st.integers(1, 4))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    trees = [grow(rng, rng.randint(1, 9), range(n_features), THRESHOLDS) for _ in range(3)]
    trees = [with_bounds(tree, some_bounds(rng, tree, 3)) for tree in trees[:2]] + trees[2:]
    absent = data.draw(st.sampled_from(["zero", "missing"]))
    ensemble = Ensemble(tuple(trees), np.arange(n_features), None, 0.5, absent)
    plain = expand_bounds(ensemble)
    assert all(tree.bounds is None and tree.bound_offsets is None for tree in plain.trees)
    assert structure_fault(flatten(plain.trees), n_features) is None
    rows = sparse(data.draw(rows_for(n_features)))
    columns = np.arange(n_features, dtype=np.int32)
    before, after = Scorer(ensemble).score(rows, columns), Scorer(plain).score(rows, columns)
    assert before.tobytes() == after.tobytes()


def test_a_chain_by_hand() -> None:
    stump = replace(grow(random.Random(1), 2, [0], [1.0], missing_left=False), leaf_documents=np.array([3, 4]))
    stump = replace(stump, left=np.array([-1], np.int32), right=np.array([-2], np.int32))
    plain = expand_bounds(Ensemble((with_bounds(stump, [[2.0, 5.0]]),), np.arange(1))).trees[0]
    assert plain.thresholds.tolist() == [1.0, 2.0, 5.0]
    assert plain.missing_left.tolist() == [False, True, False]
    assert (plain.left.tolist(), plain.right.tolist()) == ([-1, -2, -3], [1, 2, -4])
    assert plain.leaf_values.tolist() == [stump.leaf_values[i] for i in (0, 1, 0, 1)]
    assert plain.leaf_documents is None


def test_models_without_such_nodes_are_returned_as_they_are() -> None:
    ensemble = Ensemble((grow(random.Random(1), 5, [0], THRESHOLDS),), np.arange(1))
    assert expand_bounds(ensemble) is ensemble


@pytest.mark.parametrize("format_", [quickrank, ranklib, solr])
def test_formats_without_such_nodes_take_the_chains(format_: ModuleType) -> None:
    rng = random.Random(5)
    trees = [grow(rng, 6, range(2), [-3.5, 0.0, 1.0, 2.5]) for _ in range(3)]
    trees = [replace(tree, leaf_values=np.arange(tree.n_leaves, dtype=float)) for tree in trees]
    further = [[[t + 1.5, t + 2.25] for t in tree.thresholds.tolist()] for tree in trees]
    ensemble = Ensemble(tuple(map(with_bounds, trees, further)), np.array([1, 2]))
    back = format_.read(format_.write(ensemble).content, "m")
    values = np.array([[a / 4, b / 4] for a in range(-24, 24) for b in range(-24, 24)])
    assert scores(back, values, [1, 2]) == scores(ensemble, values)


@pytest.mark.parametrize(("n_leaves", "size"), [(15, r"[\d,]+"), (3000, r"more than 10\^15")])
def test_growth_without_end_is_refused(n_leaves: int, size: str) -> None:
    chain = grow(random.Random(1), n_leaves, [0], [0.0], "chain")
    tree = with_bounds(chain, [[1.0, 2.0, 3.0, 4.0, 5.0]] * (n_leaves - 1))
    with pytest.raises(
        ModelError, match=f"sets of values.*from {n_leaves:,} leaves to {size}, and 100,000 are allowed"
    ):
        expand_bounds(Ensemble((tree,), np.arange(1)))
