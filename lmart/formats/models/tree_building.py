"""Trees from arrays of nodes laid end to end, as readers of other tools' models collect them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError
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
