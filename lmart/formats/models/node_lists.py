"""Trees of nested JSON objects as lists of nodes, end to end, which readers then turn into arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn, TypeAlias, TypeGuard

import numpy as np

from lmart.array_types import Float64Array
from lmart.errors import ModelError
from lmart.formats.models.tree_building import LARGEST_NUMBER, check_bounds

JsonObject: TypeAlias = "dict[str, object]"


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of JSON is a number that float64 can hold."""
    return (type(value) is float or type(value) is int) and -LARGEST_NUMBER <= value <= LARGEST_NUMBER


def is_whole(value: object, above: int) -> TypeGuard[int]:
    """Return whether a value of JSON is a whole number from 0 to below `above`."""
    return type(value) is int and 0 <= value < above


class NodeLists(ABC):
    """The nodes of all trees, end to end. A reader says what is in a node, and keeps its test or leaf value.

    path        : what to call the file in messages
    sizes       : inner nodes of each tree
    left, right : children of each inner node, counted in its tree: n is a node, ~n a leaf
    gains       : split gain of each inner node, 0 where it has none
    has_gains   : whether all have one
    edges       : by inner node, counted over all trees, where the test of its set of categories changes sides
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.sizes: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.gains: list[float] = []
        self.has_gains = True
        self.edges: dict[int, Float64Array] = {}
        self._n_edges = 0

    def refuse(self, number: int, words: str) -> NoReturn:
        """Refuse a tree, counted from 1."""
        raise ModelError(f"tree {number}: {words}; the model is damaged", self.path)

    @abstractmethod
    def add_node(self, number: int, node: JsonObject) -> tuple[object, object] | None:
        """Keep what a node says; return its left and right child, None when it is a leaf.

        number : of the tree, from 1
        node   : of any keys and values
        """

    def walk(self, number: int, root: object) -> None:
        """Add the nodes of a tree from the root down, left before right; nesting takes no recursion.

        number : of the tree, from 1
        root   : of any kind; ModelError when it or a node below is no object
        """
        start, n_leaves = len(self.left), 0
        waiting: list[tuple[object, int, list[int]]] = [(root, -1, self.left)]  # a node, and where its number goes
        while waiting:
            node, parent, side = waiting.pop()
            if type(node) is not dict:
                self.refuse(number, "a node is not an object")
            children = self.add_node(number, node)
            if children is None:
                here = ~n_leaves
                n_leaves += 1
            else:
                place = len(self.left)
                here = place - start
                self.left.append(0)
                self.right.append(0)
                waiting += ((children[1], place, self.right), (children[0], place, self.left))
            if parent >= 0:
                side[parent] = here
        self.sizes.append(len(self.left) - start)

    def add_gain(self, gain: object) -> None:
        """Add the gain of the inner node that comes next, whatever stands there."""
        if is_number(gain):
            self.gains.append(float(gain))
        else:
            self.gains.append(0.0)
            self.has_gains = False

    def add_edges(self, node: int, edges: Float64Array) -> None:
        """Keep the edges of a set of categories; ModelError when those of all nodes are too many.

        node  : counted over all trees
        edges : float64, ascending
        """
        self._n_edges += len(edges)
        check_bounds(self._n_edges, self.path)
        self.edges[node] = edges

    @property
    def split_gains(self) -> Float64Array | None:
        """The gains, float64[n_nodes], None when one is unknown."""
        return np.array(self.gains, np.float64) if self.has_gains else None
