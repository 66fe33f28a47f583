"""The inputs and buffers of the kernels of Shapley values, as named tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array

BLOCK_ROWS = 16  # rows processed together


class Trees(NamedTuple):
    """Trees laid end to end, children counted from 0 inside each tree, as in FlatTrees.

    node_offsets   : int64[n_trees + 1], inner nodes of tree t are node_offsets[t]:node_offsets[t + 1]; its leaves are
                     node_offsets[t] + t:node_offsets[t + 1] + t + 1
    split_columns  : int32[n_nodes], feature of each node
    thresholds     : float64[n_nodes], x <= threshold goes left
    missing_left   : bool[n_nodes], whether a missing value goes left
    left, right    : int32[n_nodes], child node, or ~leaf when negative
    leaf_documents : int64[n_leaves], training documents of each leaf
    """

    node_offsets: Int64Array
    split_columns: Int32Array
    thresholds: Float64Array
    missing_left: BoolArray
    left: Int32Array
    right: Int32Array
    leaf_documents: Int64Array


class Paths(NamedTuple):
    """The path to each leaf as conditions, one a feature: low < x <= high, or x is missing and may be.

    offsets        : int64[n_leaves + 1], the conditions of leaf l are offsets[l]:offsets[l + 1]
    features       : int32[n_conditions]
    lows, highs    : float64[n_conditions]
    missing_inside : bool[n_conditions], whether a missing value meets the condition
    fractions      : float64[n_conditions], share of the documents at the nodes on the feature that go on to the leaf
    leaf_values    : float64[n_leaves]
    leaf_shares    : float64[n_leaves], share of the tree's documents that are in the leaf
    """

    offsets: Int64Array
    features: Int32Array
    lows: Float64Array
    highs: Float64Array
    missing_inside: BoolArray
    fractions: Float64Array
    leaf_values: Float64Array
    leaf_shares: Float64Array


class Quadrature(NamedTuple):
    """Gauss-Legendre points and weights on 0..1, by the number of conditions of a path.

    offsets : int64[longest + 2], points for a path of k conditions are offsets[k]:offsets[k + 1]
    points  : float64[...], exact for polynomials of degree k - 1
    weights : float64[...]
    """

    offsets: Int64Array
    points: Float64Array
    weights: Float64Array


class PathBuffers(NamedTuple):
    """Working arrays for the path to one leaf and BLOCK_ROWS rows, overwritten for each leaf.

    inside    : float64[longest + 1, BLOCK_ROWS], 1 where a row meets a condition, else 0
    factors   : float64[longest + 1, BLOCK_ROWS], of each condition in the integrand
    before    : float64[longest + 1, BLOCK_ROWS], product of the factors of earlier conditions
    after     : float64[BLOCK_ROWS], product of the weight and the factors of later conditions
    integrals : float64[longest + 1, BLOCK_ROWS], of the product of the other conditions' factors
    """

    inside: Float64Array
    factors: Float64Array
    before: Float64Array
    after: Float64Array
    integrals: Float64Array
