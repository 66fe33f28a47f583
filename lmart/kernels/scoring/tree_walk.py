"""Scores of binned rows: each row walks down a tree, comparing bins."""

from __future__ import annotations

from typing import NamedTuple

from lmart.array_types import BoolArray, Float64Array, Int32Array, UInt8Array
from lmart.kernels.numba_support.code_cache import kernel


class BinnedTree(NamedTuple):
    """A tree whose nodes compare bins; no node when it has one leaf.

    split_features : int32[n_nodes], binned feature of each node
    split_bins     : int32[n_nodes], a document goes left when its bin <= split_bins[node]
    missing_bins   : uint8[m], the bin of missing values of each feature
    missing_left   : bool[n_nodes], whether a missing value goes left
    left, right    : int32[n_nodes], child node, or ~leaf when negative
    leaf_values    : float64[n_nodes + 1]
    """

    split_features: Int32Array
    split_bins: Int32Array
    missing_bins: UInt8Array
    missing_left: BoolArray
    left: Int32Array
    right: Int32Array
    leaf_values: Float64Array


@kernel
def walk_bins(bins: UInt8Array, tree: BinnedTree, start: int, stop: int, scores: Float64Array) -> None:
    """Add the value of each row's leaf to scores[start:stop].

    bins        : uint8[m, n], in
    tree        : BinnedTree, in
    start, stop : int64, the rows of this call
    scores      : float64[n], in and out

    Parallel: each call writes scores[start:stop] only. Cost: O((stop - start) * depth of the leaves).
    """
    split_features, split_bins, missing_bins = tree.split_features, tree.split_bins, tree.missing_bins
    missing_left, left, right, leaf_values = tree.missing_left, tree.left, tree.right, tree.leaf_values
    for row in range(start, stop):
        node = 0 if len(left) else -1
        while node >= 0:
            feature = split_features[node]
            document_bin = bins[feature, row]
            goes_left = (
                missing_left[node] if document_bin == missing_bins[feature] else document_bin <= split_bins[node]
            )
            node = left[node] if goes_left else right[node]
        scores[row] += leaf_values[~node]
