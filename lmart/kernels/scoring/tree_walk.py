"""Scores of rows that walk down trees, comparing bins or codes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

# Where the parts of a node word start, from the low bits up; the lowest 32 are the left child.
_CODE, _COLUMN = np.uint64(32), np.uint64(40)
_ONE = np.uint64(1)
LAST_CODE = 255  # no code is above it, so a node with it is left for none


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

    bins   : uint8[m, n], in      tree : BinnedTree, in      start, stop : int64, the rows of this call
    scores : float64[n], in and out

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


class CodedTrees(NamedTuple):
    """Trees whose nodes compare codes, all in one list of places; place t is the root of tree t.

    words   : uint64[n_places], of `node_words`; the right child stands behind the left child, and a leaf is its own
              left child
    values  : float64[n_places], leaf values
    n_trees : int64
    """

    words: UInt64Array
    values: Float64Array
    n_trees: int


def node_words(columns: Int64Array, codes: Int64Array, children: Int64Array) -> UInt64Array:
    """Return words that hold nodes, uint64[n].

    columns  : int64[n], coded columns, below 2^24
    codes    : int64[n], 0..255, above which a document goes right
    children : int64[n], place of the left child, below 2^32
    """
    words = children.astype(np.uint64)
    for values, place in ((columns, _COLUMN), (codes, _CODE)):
        words |= values.astype(np.uint64) << place
    return words


@inner_kernel
def next_place(words: UInt64Array, codes: UInt8Array, place: np.uint64, document: np.uint64) -> np.uint64:
    """Return the child of a node that a document goes to; of a leaf, the leaf.

    words : uint64[n_places], as in CodedTrees, in      codes : uint8[n_coded, n], in
    place : uint64, of the node      document : uint64, below n
    """
    word = words[place]
    goes_right = codes[word >> _COLUMN, document] > np.uint8((word >> _CODE) & np.uint64(0xFF))
    return np.uint64((word & np.uint64(0xFFFFFFFF)) + np.uint64(goes_right))


@inner_kernel
def walk_codes(trees: CodedTrees, codes: UInt8Array, n: int, in_float32: bool, sums: Float64Array) -> None:
    """Add to the sum of each of n documents its leaf value in every tree, in tree order.

    trees : CodedTrees, in      codes : uint8[n_coded, >= n], in
    in_float32 : bool, the sum is rounded to float32 after each tree
    sums  : float64[>= n], in and out

    Eight trees are walked together, so that their loads overlap, and no branch depends on a comparison; all documents
    before the next eight trees, so that the nodes of these stay in the nearest cache.
    """
    words, values = trees.words, trees.values
    for tree in range(0, trees.n_trees, 8):
        n_walked = min(8, trees.n_trees - tree)
        last = np.uint64(tree + n_walked - 1)
        r0 = np.uint64(tree)  # past the end the last tree is walked again, for nothing
        r1 = min(r0 + _ONE, last)
        r2 = min(r0 + np.uint64(2), last)
        r3 = min(r0 + np.uint64(3), last)
        r4 = min(r0 + np.uint64(4), last)
        r5 = min(r0 + np.uint64(5), last)
        r6 = min(r0 + np.uint64(6), last)
        r7 = min(r0 + np.uint64(7), last)
        for d in range(np.uint64(n)):
            document = np.uint64(d)
            p0, p1, p2, p3, p4, p5, p6, p7 = r0, r1, r2, r3, r4, r5, r6, r7
            moved = _ONE
            while moved != np.uint64(0):
                q0 = next_place(words, codes, p0, document)
                q1 = next_place(words, codes, p1, document)
                q2 = next_place(words, codes, p2, document)
                q3 = next_place(words, codes, p3, document)
                q4 = next_place(words, codes, p4, document)
                q5 = next_place(words, codes, p5, document)
                q6 = next_place(words, codes, p6, document)
                q7 = next_place(words, codes, p7, document)
                moved = (p0 ^ q0) | (p1 ^ q1) | (p2 ^ q2) | (p3 ^ q3) | (p4 ^ q4) | (p5 ^ q5) | (p6 ^ q6) | (p7 ^ q7)
                p0, p1, p2, p3, p4, p5, p6, p7 = q0, q1, q2, q3, q4, q5, q6, q7
            leaf_values = (
                values[p0],
                values[p1],
                values[p2],
                values[p3],
                values[p4],
                values[p5],
                values[p6],
                values[p7],
            )
            total = sums[document]
            for i in range(n_walked):
                total += leaf_values[i]
                if in_float32:
                    total = np.float64(np.float32(total))
            sums[document] = total
