"""What readers of other tools' models share: lists of nodes and features, and the trees that they make."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError, first_repeated, quote
from lmart.scoring.ensemble import FlatTrees, Tree, structure_fault

MOST_BOUNDS = 1 << 24  # of one model: all its categorical splits together
MOST_LISTED = 1_000_000  # features that a model lists only because the file says how many there are
LARGEST_NUMBER = float(np.finfo(np.float64).max)

JsonObject: TypeAlias = "dict[str, object]"


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of JSON is a number that float64 can hold."""
    return (type(value) is float or type(value) is int) and -LARGEST_NUMBER <= value <= LARGEST_NUMBER


def is_whole(value: object, above: int) -> TypeGuard[int]:
    """Return whether a value of JSON is a whole number from 0 to below `above`."""
    return type(value) is int and 0 <= value < above


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

    names   : n_columns names, None or empty without any; names that are all as the tool gives them by itself, or just
              numbers of columns, are no names
    used    : the columns that splits use; without names, column 0 is no feature when it is not among them
    default : how the tool names columns by itself, such as 'Column_'; None when it does not

    ModelError when a split is on a column that there is not, or two features have the same name.
    """
    used = np.unique(used)
    if len(used) and (used[0] < 0 or used[-1] >= n_columns):
        wrong = used[-1] if used[-1] >= n_columns else used[0]
        raise ModelError(f"a split is on column {wrong}, and the model has {n_columns}; the model is damaged", path)
    if not names:
        ids = np.arange(n_columns, dtype=np.int64) if n_columns <= MOST_LISTED else used
        return Features(ids[1:] if len(ids) and ids[0] == 0 and 0 not in used[:1] else ids, None)
    prefixes = ("",) if default is None else ("", default)
    if all(any(name == f"{prefix}{j}" for prefix in prefixes) for j, name in enumerate(names)):
        return Features(np.arange(0 if 0 in used[:1] else 1, n_columns, dtype=np.int64), None)
    if (twice := first_repeated(names)) is not None:
        raise ModelError(f"two features have the name {quote(twice)}; the model is damaged", path)
    return Features(np.arange(n_columns, dtype=np.int64), tuple(names))


class NodeLists(ABC):
    """The nodes of all trees of nested JSON, end to end. A reader keeps the test or leaf value of each node.

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

    def refuse(self, number: int, words: str) -> NoReturn:
        """Refuse a tree, counted from 1."""
        raise ModelError(f"tree {number}: {words}; the model is damaged", self.path)

    @abstractmethod
    def add_node(self, number: int, node: JsonObject) -> tuple[object, object] | None:
        """Keep what a node says, of any keys and values; return its left and right child, None when it is a leaf."""

    def walk(self, number: int, root: object) -> None:
        """Add the nodes of a tree, from 1, from the root down, left first; ModelError when a node is no object."""
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

    @property
    def split_gains(self) -> Float64Array | None:
        """The gains, float64[n_nodes], None when one is unknown."""
        return np.array(self.gains, np.float64) if self.has_gains else None


def counts_to_offsets(counts: Int64Array | Sequence[int]) -> Int64Array:
    """Return where each of the parts starts that have these lengths, and where the last ends, int64[n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64), dtype=np.int64)])


def trees_of_leaves(node_offsets: Int64Array) -> Int64Array:
    """Return the tree of each leaf, int64[n_leaves]."""
    return np.repeat(np.arange(len(node_offsets) - 1, dtype=np.int64), np.diff(node_offsets) + 1)


def category_ranges(categories: Int64Array) -> Int64Array:
    """Return ascending numbers as ranges, int64[n, 2]: each from its first to before its end."""
    starts = np.ones(len(categories), np.bool_)
    starts[1:] = np.diff(categories) > 1
    ends = np.append(starts[1:], True)[: len(categories)]
    return np.column_stack([categories[starts], categories[ends] + 1])


def set_edges(
    thresholds: Float64Array, edges: Mapping[int, Float64Array], path: str
) -> tuple[Int64Array, Float64Array]:
    """Give nodes tests that change sides at several edges; return the bound_offsets and bounds of all nodes.

    thresholds : float64[n_nodes]; set at these nodes, to the first edge, or to the largest number without any

    ModelError when the sets would need more memory than those of any model that was trained.
    """
    counts = np.zeros(len(thresholds), np.int64)
    nodes = sorted(edges)
    for node in nodes:
        thresholds[node] = edges[node][0] if len(edges[node]) else LARGEST_NUMBER
        counts[node] = max(len(edges[node]) - 1, 0)
    if counts.sum() > MOST_BOUNDS:
        raise ModelError(
            f"the categorical splits of the model have more than {MOST_BOUNDS:,} ranges; the model is damaged", path
        )
    return counts_to_offsets(counts), np.concatenate([np.zeros(0), *(edges[node][1:] for node in nodes)])


def plain_trees(
    node_offsets: Int64Array,
    columns: npt.ArrayLike,
    thresholds: Float64Array,
    missing_left: BoolArray,
    left: Sequence[int],
    right: Sequence[int],
    leaf_values: Float64Array,
) -> FlatTrees:
    """Return trees whose nodes have no further bounds."""
    return FlatTrees(
        node_offsets,
        np.asarray(columns, np.int32),
        thresholds,
        missing_left,
        np.array(left, np.int32),
        np.array(right, np.int32),
        leaf_values,
        np.zeros(len(thresholds) + 1, np.int64),
        np.zeros(0),
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
    node_offsets, leaf_offsets = flat.node_offsets, flat.leaf_offsets
    weights = _views(leaf_weights, leaf_offsets)
    if leaf_weights is not None and len(leaf_weights):
        sound = np.isfinite(leaf_weights) & (leaf_weights >= 0)
        starts = leaf_offsets[:-1]
        are_weights = np.logical_and.reduceat(sound, starts) & np.maximum.reduceat(leaf_weights > 0, starts)
        weights = [view if is_sound else None for view, is_sound in zip(weights, are_weights.tolist(), strict=True)]
    return cut_trees(flat, _views(split_gains, node_offsets), _views(leaf_documents, leaf_offsets), weights)


def _views(array: npt.NDArray[Any] | None, offsets: Int64Array) -> list[Any]:
    """Return the part of each tree, or None for each."""
    if array is None:
        return [None] * (len(offsets) - 1)
    return [array[start:stop] for start, stop in itertools.pairwise(offsets.tolist())]


def cut_trees(
    flat: FlatTrees,
    split_gains: Iterable[Float64Array | None],
    leaf_documents: Iterable[Int64Array | None],
    leaf_weights: Iterable[Float64Array | None],
) -> tuple[Tree, ...]:
    """Return sound trees as views of the arrays; gains, documents and weights are those of each tree."""
    trees = []
    ranges = itertools.pairwise(flat.node_offsets.tolist())
    extra = zip(split_gains, leaf_documents, leaf_weights, strict=True)
    for number, ((start, stop), (gains, documents, weights)) in enumerate(zip(ranges, extra, strict=True)):
        first, last = int(flat.bound_offsets[start]), int(flat.bound_offsets[stop])
        trees.append(
            Tree(
                flat.split_columns[start:stop],
                flat.thresholds[start:stop],
                flat.missing_left[start:stop],
                flat.left[start:stop],
                flat.right[start:stop],
                flat.leaf_values[start + number : stop + number + 1],
                gains,
                documents,
                flat.bound_offsets[start : stop + 1] - first if last > first else None,
                flat.bounds[first:last] if last > first else None,
                weights,
            )
        )
    return tuple(trees)
