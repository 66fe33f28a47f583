"""Nodes with several bounds, sums in float32 and averages: what models of other tools need."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.trees import THRESHOLDS, around, grow, rows_for, sparse, with_bounds
from hypothesis import given
from hypothesis import strategies as st

from lmart.scoring.ensemble import Ensemble, Tree, flatten, structure_fault
from lmart.scoring.explain import Explainer
from lmart.scoring.scorer import Scorer


def walk(tree: Tree, row: list[float]) -> float:
    """The leaf value that a row of raw values (nan: missing) comes to."""
    assert tree.bounds is not None and tree.bound_offsets is not None
    place = 0 if tree.n_leaves > 1 else ~0
    while place >= 0:
        x = row[tree.split_columns[place]]
        bounds = [tree.thresholds[place], *tree.bounds[tree.bound_offsets[place] : tree.bound_offsets[place + 1]]]
        left = bool(tree.missing_left[place]) if math.isnan(x) else sum(b < x for b in bounds) % 2 == 0
        place = int(tree.left[place] if left else tree.right[place])
    return float(tree.leaf_values[~place])


def twin_score(ensemble: Ensemble, row: dict[int, float]) -> float:
    absent = 0.0 if ensemble.absent == "zero" else math.nan
    cells = [row.get(column, absent) for column in range(ensemble.n_features)]
    if ensemble.sums == "float32":
        total = np.float32(ensemble.base_score)
        for tree in ensemble.trees:
            total = np.float32(total + np.float32(walk(tree, cells)))
        score = float(total)
    else:
        score = ensemble.base_score
        for tree in ensemble.trees:
            score += walk(tree, cells)
    return score / len(ensemble.trees) if ensemble.average and ensemble.trees else score


def in_float32(tree: Tree) -> Tree:
    return replace(tree, leaf_values=tree.leaf_values.astype(np.float32).astype(np.float64))


@given(st.data())
def test_scores_are_those_of_the_plain_walk(data: st.DataObject) -> None:
    n_features = data.draw(st.integers(1, 4))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    sums = data.draw(st.sampled_from(["float64", "float32"]))
    trees = [with_bounds(rng, grow(rng, rng.randint(1, 20), range(n_features), THRESHOLDS)) for _ in range(4)]
    if sums == "float32":
        trees = [in_float32(tree) for tree in trees]
    ensemble = Ensemble(
        tuple(trees),
        np.arange(n_features),
        None,
        0.5,
        data.draw(st.sampled_from(["zero", "missing"])),
        sums=sums,
        average=data.draw(st.booleans()),
    )
    rows = data.draw(rows_for(n_features))
    found = Scorer(ensemble).score(sparse(rows), np.arange(n_features, dtype=np.int32)).tolist()
    assert [score.hex() for score in found] == [twin_score(ensemble, row).hex() for row in rows]


def test_more_conditions_than_a_byte_can_count() -> None:
    rng = random.Random(3)
    thresholds = [rng.gauss(0, 1) for _ in range(700)]
    tree = grow(rng, 600, range(2), thresholds)
    further = [sorted(b for b in rng.sample(thresholds, 3) if b > t) for t in tree.thresholds.tolist()]
    offsets = np.cumsum([0, *map(len, further)]).astype(np.int64)
    tree = replace(tree, bound_offsets=offsets, bounds=np.array([b for bounds in further for b in bounds]))
    ensemble = Ensemble((tree,), np.arange(2))
    rows = [{0: rng.choice(around(thresholds)), 1: rng.choice(around(thresholds))} for _ in range(300)]
    found = Scorer(ensemble).score(sparse(rows), np.arange(2, dtype=np.int32)).tolist()
    assert found == [twin_score(ensemble, row) for row in rows]


@pytest.mark.parametrize("bounds", [[1.0], [3.0, 3.0], [3.0, 2.0], [math.inf], [math.nan]])
def test_bounds_ascend_from_the_threshold(bounds: list[float]) -> None:
    rng = random.Random(1)
    tree = replace(grow(rng, 2, [0], [1.0]), bound_offsets=np.array([0, len(bounds)]), bounds=np.array(bounds))
    fault = structure_fault(flatten([tree]), 1)
    assert fault is not None and "bounds" in fault[1]


def test_an_average_with_several_bounds_is_explained() -> None:
    rng = random.Random(2)
    trees = tuple(replace(grow(rng, 4, range(2), [0.5]), leaf_documents=np.arange(1, 5)) for _ in range(3))
    ranges = replace(trees[0], bound_offsets=np.array([0, 1, 1, 1]), bounds=np.array([1.0]))
    ensemble = Ensemble((ranges, *trees[1:]), np.arange(2), average=True)
    rows, columns = sparse([{0: 0.1, 1: 0.9}, {0: 2.0, 1: 2.0}]), np.arange(2, dtype=np.int32)
    explainer = Explainer(ensemble)
    totals = explainer.base + explainer.explain(rows, columns).sum(axis=1)
    assert totals == pytest.approx(Scorer(ensemble).score(rows, columns), rel=1e-12)
