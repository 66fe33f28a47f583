"""The shape of trees: their depth, the documents of their nodes, and the order in which people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from lmart.array_types import Int64Array
from lmart.scoring.ensemble import Tree, flatten, node_sums


class Step(NamedTuple):
    """A step of reading a tree from its root.

    kind   : 'if' at a node, before what goes left; 'else' at a node, before what goes right; 'leaf' at a leaf
    number : of the node or the leaf, from 0, as in the model file
    depth  : splits above it
    """

    kind: Literal["if", "else", "leaf"]
    number: int
    depth: int


def steps(tree: Tree) -> Iterator[Step]:
    """Yield the steps of reading a tree: each node, what goes left, then what goes right.

    tree : of any depth, as nothing here is recursive
    """
    waiting = [Step("if", 0, 0) if len(tree.thresholds) else Step("leaf", 0, 0)]
    while waiting:
        step = waiting.pop()
        yield step
        if step.kind == "if":
            waiting += [Step("else", step.number, step.depth), _child(int(tree.left[step.number]), step.depth + 1)]
        elif step.kind == "else":
            waiting.append(_child(int(tree.right[step.number]), step.depth + 1))


def _child(child: int, depth: int) -> Step:
    return Step("if", child, depth) if child >= 0 else Step("leaf", ~child, depth)


def node_documents(tree: Tree) -> list[int] | None:
    """Return how many training documents each inner node had; None when the leaves do not say.

    tree : whose nodes are counted
    """
    if tree.leaf_documents is None:
        return None
    counts: list[int] = node_sums(flatten((tree,)), tree.leaf_documents).tolist()
    return counts


def depths(trees: Sequence[Tree]) -> Int64Array:
    """Return the most splits between the root and a leaf of each tree, int64[n_trees].

    trees : in any order; all levels of all trees are walked at once
    """
    flat = flatten(trees)
    found = np.zeros(flat.n_trees, np.int64)
    owner = flat.tree_of_node
    level = flat.node_offsets[:-1][np.diff(flat.node_offsets) > 0]
    while len(level):
        found[np.unique(owner[level])] += 1
        start = flat.node_offsets[owner[level]]
        below = np.concatenate(
            [child[level] + np.where(child[level] >= 0, start, 0) for child in (flat.left, flat.right)]
        )
        is_node = np.concatenate([flat.left[level], flat.right[level]]) >= 0
        level = below[is_node]
    return found
