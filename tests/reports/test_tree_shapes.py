"""Depths, documents and reading order of trees."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.trees import grow

from lmart.reports.tree_shapes import Step, depths, node_documents, steps
from lmart.scoring.ensemble import Tree


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
