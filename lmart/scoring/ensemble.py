"""Tree and Ensemble: the model in memory, as flat arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.data.categories import Categories
from lmart.errors import counted

Scalar = TypeVar("Scalar", bound=np.generic)
LINEAR = "linear"  # the form of the trees of a linear ranker


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree of n inner nodes and n + 1 leaves. Node 0 is the root; a tree of one leaf has no node.

    A document goes left when its value <= threshold; a missing value goes where missing_left says. A node may have
    further bounds above its threshold: then a document goes left when an even number of its bounds are below its value,
    as in the ranges of a categorical split (value in (-inf, threshold] or in (bound 1, bound 2] ...).

    split_columns : int32[n], positions in Ensemble.feature_ids
    thresholds    : float64[n], finite
    missing_left  : bool[n]
    left, right   : int32[n]; c >= 0 is inner node c, c < 0 is leaf ~c (-1 is leaf 0)
    leaf_values   : float64[n + 1], multiplied by the learning rate
    split_gains   : float64[n], None if unknown
    leaf_documents : int64[n + 1], training documents in each leaf, None if unknown
    bound_offsets  : int64[n + 1], the further bounds of node i are bounds[bound_offsets[i]:bound_offsets[i + 1]],
                     ascending and above its threshold; None when no node has any
    bounds         : float64[bound_offsets[n]], finite; None with bound_offsets
    leaf_weights   : float64[n + 1], hessian sums of the training documents in each leaf, None if unknown; a tool that
                     does not count documents explains scores by them
    """

    split_columns: Int32Array
    thresholds: Float64Array
    missing_left: BoolArray
    left: Int32Array
    right: Int32Array
    leaf_values: Float64Array
    split_gains: Float64Array | None = None
    leaf_documents: Int64Array | None = None
    bound_offsets: Int64Array | None = None
    bounds: Float64Array | None = None
    leaf_weights: Float64Array | None = None

    @property
    def n_leaves(self) -> int:
        """The number of leaves, one more than inner nodes."""
        return len(self.leaf_values)


class RankerPart(NamedTuple):
    """Which trees of a model belong to one of several rankers, after those of the rankers before, and what it is.

    trees     : number of its trees
    objective : name of its objective
    tree      : name of the form of its trees
    leaves    : most leaves of a tree
    features  : share of the features that each tree could split on
    seed      : of what was drawn by chance
    """

    trees: int
    objective: str
    tree: str
    leaves: int
    features: float
    seed: int


def rankers_in_words(trees: Sequence[str | None]) -> str:
    """Return how many rankers a model is the mean of, in words.

    trees : the form of the trees of each, that of the linear ranker being LINEAR
    """
    n_linear = trees.count(LINEAR)
    words = counted(max(1, len(trees) - n_linear), "ranker")
    return f"{words} and a linear ranker" if n_linear else words


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A whole model: score = base_score, then + leaf value of each tree, in order, divided if it is an average.

    trees       : in the order in which their leaf values are added
    feature_ids : int64[n_features], ascending, as in the training file
    base_score  : score without any tree
    absent      : 'zero' or 'missing', what an index that is not in the row means
    gain        : the gain it was trained with, as text; None when the model does not say
    settings    : of the training, plain JSON values
    sums        : 'float64', or 'float32' when the sum is rounded to float32 after each tree, as XGBoost does
    average     : whether the sum is divided by the number of trees, as in a random forest of LightGBM
    rankers     : the rankers that the model is the mean of; () when there is one
    categories  : the features that are categories: thresholds on them are on the numbers of values, see Categories
    remarks     : what users should know of the file that it was read from; not written
    """

    trees: tuple[Tree, ...]
    feature_ids: Int64Array
    feature_names: tuple[str, ...] | None = None
    base_score: float = 0.0
    absent: str = "zero"
    gain: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    sums: str = "float64"
    average: bool = False
    rankers: tuple[RankerPart, ...] = ()
    categories: tuple[Categories, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_ids)

    @property
    def absent_value(self) -> float:
        """The value of a feature that a row does not name; nan is missing."""
        return 0.0 if self.absent == "zero" else math.nan

    @property
    def largest_label(self) -> int | None:
        """The largest label of err in training; None when the model does not say."""
        largest = self.settings.get("largest_label")
        return largest if type(largest) is int and largest >= 1 else None

    def feature_name(self, column: int) -> str:
        """Return what the user calls the feature of a column: its name, else its index as written."""
        return self.feature_names[column] if self.feature_names is not None else str(int(self.feature_ids[column]))


@dataclass(frozen=True, eq=False)
class FlatTrees:
    """The trees of an ensemble laid end to end; children count from 0 inside each tree, as in Tree.

    node_offsets : int64[n_trees + 1], inner nodes of tree t are node_offsets[t]:node_offsets[t + 1]; its leaves are
                   node_offsets[t] + t:node_offsets[t + 1] + t + 1, as each tree has one leaf more than inner nodes
    bound_offsets : int64[n_nodes + 1], the further bounds of node i, counted over all trees, are
                    bounds[bound_offsets[i]:bound_offsets[i + 1]]
    the rest     : the arrays of Tree, concatenated; what is not used in scoring is left out
    """

    node_offsets: Int64Array
    split_columns: Int32Array
    thresholds: Float64Array
    missing_left: BoolArray
    left: Int32Array
    right: Int32Array
    leaf_values: Float64Array
    bound_offsets: Int64Array
    bounds: Float64Array

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.node_offsets) - 1

    @property
    def tree_of_node(self) -> Int64Array:
        """The tree of each inner node, int64[n_nodes]."""
        return np.repeat(np.arange(self.n_trees, dtype=np.int64), np.diff(self.node_offsets))

    @property
    def leaf_offsets(self) -> Int64Array:
        """Where the leaves of each tree start in leaf_values, int64[n_trees + 1]."""
        return self.node_offsets + np.arange(len(self.node_offsets), dtype=np.int64)

    @property
    def children(self) -> tuple[Int64Array, Int64Array]:
        """The left and right child of each node, int64[n_nodes], over all trees: n_nodes + k is leaf k."""
        trees, n_nodes = self.tree_of_node, len(self.thresholds)
        start, leaf_start = self.node_offsets[trees], n_nodes + self.leaf_offsets[trees]
        left, right = (
            np.where(child >= 0, child + start, leaf_start + ~child.astype(np.int64))
            for child in (self.left, self.right)
        )
        return left, right


def flatten(trees: Sequence[Tree]) -> FlatTrees:
    """Lay the trees end to end."""
    sizes = np.array([len(tree.thresholds) for tree in trees], dtype=np.int64)

    def joined(name: str, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """Return one array of all trees end to end."""
        parts = [getattr(tree, name) for tree in trees]
        return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype)

    return FlatTrees(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]),
        joined("split_columns", np.int32),
        joined("thresholds", np.float64),
        joined("missing_left", np.bool_),
        joined("left", np.int32),
        joined("right", np.int32),
        joined("leaf_values", np.float64),
        np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *map(_bound_counts, trees)]))]
        ),
        np.concatenate([np.zeros(0), *(tree.bounds for tree in trees if tree.bounds is not None)]),
    )


def node_sums(flat: FlatTrees, of_leaves: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return the sum of a number of each leaf, [n_leaves], over the leaves below each inner node, [n_nodes]."""
    n_nodes = len(flat.thresholds)
    left, right = flat.children
    levels = [flat.node_offsets[:-1][np.diff(flat.node_offsets) > 0]]
    while len(levels[-1]):
        below = np.concatenate([left[levels[-1]], right[levels[-1]]])
        levels.append(below[below < n_nodes])
    sums = np.concatenate([np.zeros(n_nodes, of_leaves.dtype), of_leaves])
    for level in reversed(levels):
        sums[level] = sums[left[level]] + sums[right[level]]
    found: npt.NDArray[Scalar] = sums[:n_nodes]
    return found


def _bound_counts(tree: Tree) -> Int64Array:
    """Return how many further bounds each node has, int64[n]."""
    if tree.bound_offsets is None:
        return np.zeros(len(tree.thresholds), np.int64)
    return np.diff(tree.bound_offsets)


def structure_fault(flat: FlatTrees, n_features: int) -> tuple[int, str] | None:
    """Return the first tree (from 0) that is no tree, with what is wrong in words; None when all are sound.

    The arrays of the trees must agree in length. Checked: numbers finite, columns below `n_features`, children in
    range, each node and leaf the child of exactly one node, every node reachable from its root. No recursion.
    """
    faults: list[tuple[int, str]] = []

    def refuse(bad: BoolArray, tree_of: Int64Array, words: str) -> None:
        """Note the fault of the first node or leaf that is bad."""
        if bad.any():
            faults.append((int(tree_of[int(np.argmax(bad))]), words))

    owner = flat.tree_of_node
    sizes = np.diff(flat.node_offsets)
    leaf_owner = np.repeat(np.arange(flat.n_trees, dtype=np.int64), sizes + 1)
    refuse(~np.isfinite(flat.thresholds), owner, "a threshold is not finite")
    refuse(~np.isfinite(flat.leaf_values), leaf_owner, "a leaf value is not finite")
    refuse(_bounds_unsound(flat), owner, "the bounds of a node are not finite and ascending")
    refuse(
        (flat.split_columns < 0) | (flat.split_columns >= n_features), owner, "a split is on a feature it does not list"
    )
    inner: list[Int64Array] = []  # global numbers of the child where it is an inner node, else -1
    reached_leaves: list[Int64Array] = []
    for name, child in (("left", flat.left.astype(np.int64)), ("right", flat.right.astype(np.int64))):
        room = sizes[owner] if len(owner) else np.zeros(0, np.int64)
        outside = (child >= room) | (~child > room)
        refuse(outside, owner, f"a {name} child is neither a node nor a leaf of the tree")
        refuse(child == 0, owner, f"a {name} child is node 0, which is the root")
        usable = ~outside
        start = flat.node_offsets[owner] if len(owner) else np.zeros(0, np.int64)
        inner.append(np.where(usable & (child > 0), child + start, -1))
        reached_leaves.append((~child + start + owner)[usable & (child < 0)])
    n_nodes = len(owner)
    both = np.concatenate(inner)
    times = np.bincount(both[both >= 0], minlength=n_nodes)
    times[flat.node_offsets[:-1][sizes > 0]] += 1
    refuse(times > 1, owner, "a node is the child of two nodes")
    leaf_times = np.bincount(np.concatenate(reached_leaves), minlength=len(leaf_owner))
    refuse(leaf_times > 1, leaf_owner, "a leaf is the child of two nodes")
    refuse((leaf_times == 0) & (sizes[leaf_owner] > 0), leaf_owner, "a leaf is the child of no node")
    if not faults:
        refuse(times == 0, owner, "a node is the child of no node")
        refuse(~_reachable(flat, inner[0], inner[1]), owner, "nodes form a ring that the root does not reach")
    return min(faults, key=lambda fault: fault[0]) if faults else None


def _bounds_unsound(flat: FlatTrees) -> BoolArray:
    """Return which nodes have a bound that is not finite or not above the one before it, bool[n_nodes]."""
    counts = np.diff(flat.bound_offsets)
    node = np.repeat(np.arange(len(counts)), counts)
    is_first = np.zeros(len(flat.bounds), np.bool_)
    is_first[flat.bound_offsets[:-1][counts > 0]] = True
    lower = np.where(is_first, flat.thresholds[node], np.concatenate([np.zeros(1), flat.bounds])[:-1])
    wrong = ~np.isfinite(flat.bounds) | ~(flat.bounds > lower)
    return np.bincount(node[wrong], minlength=len(counts)) > 0


def _reachable(flat: FlatTrees, left: Int64Array, right: Int64Array) -> BoolArray:
    """Return which nodes can be reached from the roots: level by level, all trees at once, bool[n_nodes]."""
    seen = np.zeros(len(left), np.bool_)
    level = flat.node_offsets[:-1][np.diff(flat.node_offsets) > 0]
    while len(level):
        seen[level] = True
        below = np.concatenate([left[level], right[level]])
        level = below[below >= 0]
        level = level[~seen[level]]
    return seen
