"""What readers of other tools' models share: lists of nodes and features, and the trees that they make."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, TypeAlias, TypeGuard

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError, first_repeated, quote
from lmart.scoring.ensemble import FlatTrees, Tree, structure_fault

MOST_BOUNDS = 1 << 24  # of one model: all its categorical splits together
LARGEST_NUMBER = float(np.finfo(np.float64).max)


class Conditions(NamedTuple):
    """The tests of n nodes, as those of `Tree`.

    thresholds   : float64[n], finite
    missing_left : bool[n]
    swapped      : bool[n], whether what the tool calls the left child is the right one of `Tree`
    bound_counts : int64[n], further bounds of each node
    bounds       : float64[sum of bound_counts]
    """

    thresholds: Float64Array
    missing_left: BoolArray
    swapped: BoolArray
    bound_counts: Int64Array
    bounds: Float64Array


class PlainNodes(NamedTuple):
    """The nodes and leaves of all trees end to end, like `FlatTrees` but with feature ids and no further bounds.

    node_offsets : int64[n_trees + 1]
    features     : int64[n_nodes], feature ids
    thresholds   : float64[n_nodes], in lmart's sense
    missing_left : bool[n_nodes]
    left, right  : int64[n_nodes], counted in each tree
    leaf_values  : float64[n_leaves]
    """

    node_offsets: Int64Array
    features: Int64Array
    thresholds: Float64Array
    missing_left: BoolArray
    left: Int64Array
    right: Int64Array
    leaf_values: Float64Array

    def lay_out(self, feature_ids: Int64Array) -> FlatTrees:
        """Return the trees with the columns of a model.

        feature_ids : int64[n_features] of the model, ascending, all that the nodes name
        """
        return FlatTrees(
            self.node_offsets,
            np.searchsorted(feature_ids, self.features).astype(np.int32),
            self.thresholds,
            self.missing_left,
            self.left.astype(np.int32),
            self.right.astype(np.int32),
            self.leaf_values,
            np.zeros(len(self.features) + 1, np.int64),
            np.zeros(0),
        )


def counts_to_offsets(counts: Int64Array | Sequence[int]) -> Int64Array:
    """Return where each of the parts starts that have these lengths, and where the last ends, int64[n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64), dtype=np.int64)])


def join_bounds(numbers: Sequence[int], parts: Sequence[Float64Array], n: int) -> tuple[Int64Array, Float64Array]:
    """Return bound_counts and bounds of n nodes, of which those with ascending `numbers` have the bounds in `parts`."""
    counts = np.zeros(n, np.int64)
    counts[list(numbers)] = [len(part) for part in parts]
    return counts, np.concatenate([np.zeros(0), *parts])


def check_bounds(total: int, path: str) -> None:
    """Refuse a model whose categorical splits would need more memory than any model that was trained."""
    if total > MOST_BOUNDS:
        raise ModelError(
            f"the categorical splits of the model have more than {MOST_BOUNDS:,} ranges; the model is damaged", path
        )


def build_trees(
    flat: FlatTrees,
    n_features: int,
    path: str,
    split_gains: Float64Array | None = None,
    leaf_documents: Int64Array | None = None,
    leaf_weights: Float64Array | None = None,
) -> tuple[Tree, ...]:
    """Return the trees as views of the arrays; ModelError naming the first that is no sound tree, counted from 1.

    flat           : the trees
    n_features     : of the model
    path           : what to call the file in messages
    split_gains    : float64[n_nodes], None if unknown; left out when one is not finite
    leaf_documents : int64[n_leaves], None if unknown; left out when one is negative
    leaf_weights   : float64[n_leaves], None if unknown; left out of a tree in which one is negative or infinite, or all
                     are 0
    """
    unsound = structure_fault(flat, n_features)
    if unsound is not None:
        raise ModelError(f"tree {unsound[0] + 1}: {unsound[1]}; the model is damaged", path)
    if split_gains is not None and not np.isfinite(split_gains).all():
        split_gains = None
    if leaf_documents is not None and (leaf_documents < 0).any():
        leaf_documents = None
    are_weights: list[bool] = []
    if leaf_weights is not None and len(leaf_weights):
        starts = flat.leaf_offsets[:-1]
        sound = np.isfinite(leaf_weights) & (leaf_weights >= 0)
        are_weights = (np.logical_and.reduceat(sound, starts) & np.maximum.reduceat(leaf_weights > 0, starts)).tolist()
    trees = []
    offsets, bound_offsets = flat.node_offsets.tolist(), flat.bound_offsets
    for number, (start, stop) in enumerate(itertools.pairwise(offsets)):
        leaves = slice(start + number, stop + number + 1)
        first, last = int(bound_offsets[start]), int(bound_offsets[stop])
        trees.append(
            Tree(
                flat.split_columns[start:stop],
                flat.thresholds[start:stop],
                flat.missing_left[start:stop],
                flat.left[start:stop],
                flat.right[start:stop],
                flat.leaf_values[leaves],
                None if split_gains is None else split_gains[start:stop],
                None if leaf_documents is None else leaf_documents[leaves],
                bound_offsets[start : stop + 1] - first if last > first else None,
                flat.bounds[first:last] if last > first else None,
                leaf_weights[leaves] if leaf_weights is not None and are_weights[number] else None,
            )
        )
    return tuple(trees)


def swap_children(left: Int32Array, right: Int32Array, swapped: BoolArray) -> tuple[Int32Array, Int32Array]:
    """Return the left and right children with those of the swapped nodes exchanged, int32[n] each."""
    return np.where(swapped, right, left).astype(np.int32), np.where(swapped, left, right).astype(np.int32)


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


MOST_LISTED = 1_000_000  # features that a model lists only because the file says how many there are


class Features(NamedTuple):
    """What a model lists as its features: the fields of Ensemble of the same names."""

    feature_ids: Int64Array
    feature_names: tuple[str, ...] | None

    def columns(self, ids: Int64Array) -> Int32Array:
        """Return the column of each id, int32[n]; every id must be listed."""
        return np.searchsorted(self.feature_ids, ids).astype(np.int32)


def list_features(
    n_columns: int, names: Sequence[str] | None, used: Int64Array, default: str | None, path: str
) -> Features:
    """Return the features of a tool that counts its columns from 0: column j is the feature with id j.

    n_columns : of the model
    names     : n_columns names, None or empty without any; names that are all as the tool gives them by itself, or just
                numbers of columns, are no names
    used      : the columns that splits use; without names, column 0 is no feature when it is not among them
    default   : how the tool names columns by itself, such as 'Column_'; None when it does not
    path      : what to call the file in messages

    ModelError when a split is on a column that there is not, or two features have the same name.
    """
    used = np.unique(used)
    if len(used) and (used[0] < 0 or used[-1] >= n_columns):
        wrong = used[-1] if used[-1] >= n_columns else used[0]
        raise ModelError(f"a split is on column {wrong}, and the model has {n_columns}; the model is damaged", path)
    if not names:
        ids = np.arange(n_columns, dtype=np.int64) if n_columns <= MOST_LISTED else used
        return Features(ids[1:] if len(ids) and ids[0] == 0 and 0 not in used[:1] else ids, None)
    numbered = ("",) if default is None else ("", default)
    if all(any(name == f"{before}{j}" for before in numbered) for j, name in enumerate(names)):
        return Features(np.arange(0 if 0 in used[:1] else 1, n_columns, dtype=np.int64), None)
    if (twice := first_repeated(names)) is not None:
        raise ModelError(f"two features have the name {quote(twice)}; the model is damaged", path)
    return Features(np.arange(n_columns, dtype=np.int64), tuple(names))
