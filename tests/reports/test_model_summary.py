"""What a summary says of a model."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.trees import grow

from lmart.reports.model_summary import (
    Step,
    changed_settings,
    depths,
    node_documents,
    ranker_of_tree,
    steps,
    summarize,
    tree_to_json,
)
from lmart.scoring.ensemble import Ensemble, RankerPart, Tree
from lmart.settings import TrainSettings


def stump(column: int, gain: float, documents: tuple[int, int]) -> Tree:
    return Tree(
        np.array([column], np.int32),
        np.array([0.25]),
        np.array([False]),
        np.array([-2], np.int32),
        np.array([-1], np.int32),
        np.array([1.0, -1.0]),
        np.array([gain]),
        np.array(documents),
    )


def two_rankers() -> Ensemble:
    parts = (RankerPart(2, "yetirank", "leafwise", 2, 1.0, 0), RankerPart(1, "lambdamart", "oblivious", 2, 0.5, 7))
    trees = (stump(0, 3.0, (4, 6)), stump(1, 1.0, (2, 8)), stump(1, 9.0, (5, 5)))
    names = ("a", "b", "c")
    return Ensemble(trees, np.array([1, 2, 3]), names, settings=TrainSettings(seed=4).to_json(), rankers=parts)


def test_rankers_and_features() -> None:
    found = summarize(two_rankers(), "lmart")
    assert [(one.first_tree, one.trees, one.objective, one.depth) for one in found.rankers] == [
        (1, 2, "yetirank", 1),
        (3, 1, "lambdamart", 1),
    ]
    assert [one.split_features for one in found.rankers] == [2, 1]
    assert [(one.feature, one.gain_share, one.splits) for one in found.importance] == [
        ("b", 0.625, 2),
        ("a", 0.375, 1),
        ("c", 0.0, 0),
    ]
    assert found.unused == ["c"]
    assert (found.changed, found.documents) == ({"seed": 4}, 10)
    assert found.leaf_documents == (2, 5, 8)  # of 2, 4, 5, 5, 6, 8
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()


def test_contributions_decide_the_order() -> None:
    found = summarize(two_rankers(), "lmart", np.array([0.5, 0.25, 0.0]))
    assert [(one.feature, one.contribution) for one in found.importance] == [("a", 0.5), ("b", 0.25), ("c", 0.0)]


def test_a_model_of_another_tool() -> None:
    model = replace(two_rankers(), rankers=(), settings={"source": "x"}, feature_names=None)
    model = replace(model, trees=tuple(replace(tree, split_gains=None, leaf_documents=None) for tree in model.trees))
    found = summarize(model, "ranklib")
    (ranker,) = found.rankers
    assert (ranker.first_tree, ranker.trees, ranker.objective, ranker.features) == (1, 3, None, None)
    assert [one.gain_share for one in found.importance] == [None] * 3
    assert (found.changed, found.documents, found.leaf_documents) == ({"source": "x"}, None, None)


def test_a_model_without_trees() -> None:
    found = summarize(Ensemble((), np.array([1, 2])), "lmart")
    assert found.rankers[0].first_tree is None and found.to_json()["leaves"] == 0


def test_settings_that_differ() -> None:
    assert changed_settings(TrainSettings().to_json()) == {}
    assert changed_settings({"l2": 1.0, "trees": 300, "unknown": 1}) == {"l2": 1.0, "unknown": 1}


@pytest.mark.parametrize(("number", "ranker"), [(1, 1), (2, 1), (3, 2)])
def test_the_ranker_of_a_tree(number: int, ranker: int) -> None:
    assert ranker_of_tree(two_rankers(), number) == ranker


def test_a_tree_as_json() -> None:
    assert tree_to_json(two_rankers(), 2) == {
        "tree": 2,
        "ranker": 1,
        "nodes": [
            {
                "node": 0,
                "depth": 0,
                "feature": "b",
                "threshold": 0.25,
                "missing": "right",
                "left": {"leaf": 1},
                "right": {"leaf": 0},
                "split_gain": 1.0,
                "documents": 10,
            }
        ],
        "leaves": [
            {"leaf": 1, "depth": 1, "value": -1.0, "documents": 8},
            {"leaf": 0, "depth": 1, "value": 1.0, "documents": 2},
        ],
    }


def test_further_bounds_stand_in_the_json() -> None:
    tree = replace(stump(0, 1.0, (1, 1)), bound_offsets=np.array([0, 2]), bounds=np.array([0.5, 2.0]))
    (node,) = tree_to_json(Ensemble((tree,), np.array([1])), 1)["nodes"]
    assert (node["threshold"], node["bounds"]) == (0.25, [0.5, 2.0])


def test_json_of_a_deep_tree() -> None:
    tree = grow(random.Random(0), 3001, [0], [0.5], "chain")
    assert json.dumps(tree_to_json(Ensemble((tree,), np.array([1])), 1))


def plain_depth(tree: Tree, child: int = 0) -> int:
    if child < 0 or not len(tree.thresholds):
        return 0
    return 1 + max(plain_depth(tree, int(side[child])) for side in (tree.left, tree.right))


def plain_documents(tree: Tree, child: int) -> int:
    assert tree.leaf_documents is not None
    if child < 0:
        return int(tree.leaf_documents[~child])
    return sum(plain_documents(tree, int(side[child])) for side in (tree.left, tree.right))


def trees() -> list[Tree]:
    rng = random.Random(3)
    shapes = ["random", "chain", "level"]
    return [grow(rng, size, range(3), [0.5], shape) for size in (1, 2, 9, 30) for shape in shapes]


def test_depths() -> None:
    assert depths(trees()).tolist() == [plain_depth(tree) for tree in trees()]
    assert depths([]).tolist() == []


@pytest.mark.parametrize("tree", trees())
def test_steps_visit_every_node_and_leaf_once_in_order(tree: Tree) -> None:
    found = list(steps(tree))
    for kind, n in (("if", len(tree.thresholds)), ("else", len(tree.thresholds)), ("leaf", tree.n_leaves)):
        assert sorted(step.number for step in found if step.kind == kind) == list(range(n))
    assert max(step.depth for step in found) == plain_depth(tree)
    place = {step: k for k, step in enumerate(found)}
    for node in range(len(tree.thresholds)):
        (start,) = (step for step in found if step.kind == "if" and step.number == node)
        other = Step("else", node, start.depth)
        assert place[start] < place[other]
        assert (found[place[start] + 1].number, found[place[other] + 1].number) == tuple(
            child if child >= 0 else ~child for child in (int(tree.left[node]), int(tree.right[node]))
        )


@pytest.mark.parametrize("tree", trees())
def test_documents_of_nodes(tree: Tree) -> None:
    assert node_documents(tree) is None
    counted = replace(tree, leaf_documents=np.arange(1, tree.n_leaves + 1))
    expected = [plain_documents(counted, node) for node in range(len(tree.thresholds))]
    assert node_documents(counted) == expected


def test_a_chain_of_thousands_of_nodes() -> None:
    tree = grow(random.Random(0), 5001, [0], [0.5], "chain")
    assert depths([tree]).tolist() == [5000]
    assert max(step.depth for step in steps(tree)) == 5000
