"""Shapley values of rows: how much each feature of a row moves its score away from the mean of the training documents.

The value of a set of features is the score when the row's features outside the set are unknown: at a node on such a
feature both children count, each by its share of the node's training documents. A feature's contribution is its Shapley
value. Source: Lundberg, Erion and Lee 2018, algorithm 2 (path-dependent TreeSHAP). Differs: leaf by leaf instead of by
recursion, as in Mitchell, Frank and Holmes 2022, so that rows are processed together; and the weights of subsets come
from Owen's integral (1972), which Gauss-Legendre points give exactly: all its terms are positive, so nothing cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.row_arrays import RowArrays

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
    """The path to each leaf as conditions, one per feature: low < x <= high, or x is missing and may be.

    Nodes of several bounds on the feature are clauses of the condition, which a number must meet too.

    offsets        : int64[n_leaves + 1], the conditions of leaf l are offsets[l]:offsets[l + 1]
    features       : int32[n_conditions]
    lows, highs    : float64[n_conditions]
    missing_inside : bool[n_conditions], whether a missing value meets the condition
    fractions      : float64[n_conditions], share of the documents at the nodes on the feature that go on to the leaf
    leaf_values    : float64[n_leaves]
    leaf_shares    : float64[n_leaves], share of the tree's documents that are in the leaf
    thresholds     : float64[n_nodes], of the trees
    bound_offsets  : int64[n_nodes + 1], the further bounds of a node are bounds[bound_offsets[i]:bound_offsets[i + 1]]:
                     a number goes left when an even number of its threshold and these is below it
    bounds         : float64[...]
    first_clauses  : int64[n_conditions], the first clause of each, -1 for none
    clause_nodes   : int64[n_clauses], the node of several bounds, ~node where the leaf is on its right side
    next_clauses   : int64[n_clauses], the next clause of the same condition, -1 at the end
    """

    offsets: Int64Array
    features: Int32Array
    lows: Float64Array
    highs: Float64Array
    missing_inside: BoolArray
    fractions: Float64Array
    leaf_values: Float64Array
    leaf_shares: Float64Array
    thresholds: Float64Array
    bound_offsets: Int64Array
    bounds: Float64Array
    first_clauses: Int64Array
    clause_nodes: Int64Array
    next_clauses: Int64Array


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
    earlier   : float64[longest + 1, BLOCK_ROWS], product of the factors of earlier conditions
    later     : float64[BLOCK_ROWS], product of the weight and the factors of later conditions
    integrals : float64[longest + 1, BLOCK_ROWS], of the product of the other conditions' factors
    """

    inside: Float64Array
    factors: Float64Array
    earlier: Float64Array
    later: Float64Array
    integrals: Float64Array


@inner_kernel
def find_parents(trees: Trees, tree: int, parents: Int64Array, documents: Float64Array) -> None:
    """Write the parent of each node and leaf of a tree, and the documents at each node.

    trees     : Trees, in      tree : int64
    parents   : int64[2 n + 1], of n nodes, then of the leaves: the node above, ~node on its right side, out
    documents : float64[n], training documents at each node, out
    """
    first = trees.node_offsets[tree]
    n = trees.node_offsets[tree + 1] - first
    for i in range(n):
        documents[i] = 0.0
        for side in range(2):
            child = trees.left[first + i] if side == 0 else trees.right[first + i]
            parents[child if child >= 0 else n + ~child] = i if side == 0 else ~i
    for leaf in range(n + 1):
        here = n + leaf
        while n > 0 and here != 0:
            node = parents[here] if parents[here] >= 0 else ~parents[here]
            documents[node] += trees.leaf_documents[first + tree + leaf]
            here = node


@inner_kernel
def narrow_condition(
    paths: Paths, condition: int, is_new: bool, trees: Trees, node: int, goes_left: bool, fraction: float, clause: int
) -> None:
    """Narrow a condition to the side of a node that its leaf is on.

    paths     : Paths, in and out      condition : int64
    is_new    : bool, no node of the path has narrowed the condition yet
    trees     : Trees, in      node : int64, counted over all trees
    goes_left : bool, the leaf is on the left side
    fraction  : float64, share of the node's documents on that side
    clause    : int64, the next clause that is free, for a node of several bounds
    """
    if is_new:
        paths.features[condition] = trees.split_columns[node]
        paths.lows[condition] = -np.inf
        paths.highs[condition] = np.inf
        paths.missing_inside[condition] = True
        paths.fractions[condition] = 1.0
        paths.first_clauses[condition] = -1
    threshold = trees.thresholds[node]
    if paths.bound_offsets[node] < paths.bound_offsets[node + 1]:
        paths.clause_nodes[clause] = node if goes_left else ~node
        paths.next_clauses[clause] = paths.first_clauses[condition]
        paths.first_clauses[condition] = clause
    elif goes_left:
        paths.highs[condition] = min(paths.highs[condition], threshold)
    else:
        paths.lows[condition] = max(paths.lows[condition], threshold)
    missing_goes_on = trees.missing_left[node] == goes_left
    paths.missing_inside[condition] = paths.missing_inside[condition] and missing_goes_on
    paths.fractions[condition] *= fraction


@kernel
def list_conditions(trees: Trees, writes: bool, latest: Int64Array, paths: Paths) -> int:
    """Write the path to each leaf as conditions, one per feature; return the number of clauses.

    trees  : Trees, in
    writes : bool, False writes only paths.offsets, to learn how large the other arrays must be
    latest : int64[n_features], -1 everywhere, in; the last condition on each feature, out
    paths  : Paths; all but leaf_values are out

    Equation: fraction = product over the nodes on the feature of documents(child) / documents(node), 1/2 where the node
    has no documents. Parallel: one call for all trees. Cost: O(sum of the depths of the leaves).
    """
    n_conditions, n_clauses = 0, 0
    paths.offsets[0] = 0
    for tree in range(len(trees.node_offsets) - 1):
        first = trees.node_offsets[tree]
        n = trees.node_offsets[tree + 1] - first
        parents = np.empty(n + n + 1, np.int64)
        documents = np.empty(n, np.float64)
        find_parents(trees, tree, parents, documents)
        for leaf in range(n + 1):
            begin = n_conditions
            share = 1.0
            here = n + leaf
            documents_here = np.float64(trees.leaf_documents[first + tree + leaf])
            while n > 0 and here != 0:
                goes_left = parents[here] >= 0
                node = parents[here] if goes_left else ~parents[here]
                fraction = documents_here / documents[node] if documents[node] > 0.0 else 0.5
                share *= fraction
                feature = trees.split_columns[first + node]
                is_new = latest[feature] < begin
                if is_new:
                    latest[feature] = n_conditions
                    n_conditions += 1
                if writes:
                    place = latest[feature]
                    narrow_condition(paths, place, is_new, trees, first + node, goes_left, fraction, n_clauses)
                n_clauses += paths.bound_offsets[first + node] < paths.bound_offsets[first + node + 1]
                documents_here = documents[node]
                here = node
            paths.offsets[first + tree + leaf + 1] = n_conditions
            if writes:
                paths.leaf_shares[first + tree + leaf] = share
    return n_clauses


@inner_kernel
def clear_outside(paths: Paths, first_clause: int, cells: Float64Array, inside: Float64Array) -> None:
    """Clear where numbers do not meet the clauses of a condition.

    paths  : Paths, in      first_clause : int64, the first clause
    cells  : float64[BLOCK_ROWS], values of the feature, in
    inside : float64[BLOCK_ROWS], 1 where the rest of the condition is met, else 0, in and out
    """
    clause = first_clause
    while clause >= 0:
        side = paths.clause_nodes[clause]
        node = side if side >= 0 else ~side
        bounds = paths.bounds[paths.bound_offsets[node] : paths.bound_offsets[node + 1]]
        for r in range(BLOCK_ROWS):
            x = cells[r]
            if not np.isnan(x) and inside[r] > 0.0:
                n_below = np.searchsorted(bounds, x) + 1 if x > paths.thresholds[node] else 0
                if (n_below % 2 == 0) != (side >= 0):
                    inside[r] = 0.0
        clause = paths.next_clauses[clause]


@inner_kernel
def add_contributions(
    paths: Paths, quadrature: Quadrature, cells: Float64Array, sums: Float64Array, buffers: PathBuffers
) -> None:
    """Add what each leaf gives to the contributions of a block of rows.

    paths   : Paths, in      quadrature : Quadrature, for the longest path, in
    cells   : float64[n_features + 1, BLOCK_ROWS], values of the rows, in
    sums    : float64[n_features + 1, BLOCK_ROWS], contributions, in and out
    buffers : PathBuffers, overwritten
    """
    # One function: the three steps of a short path take little longer than calls with all these arrays.
    features, lows, highs, fractions = paths.features, paths.lows, paths.highs, paths.fractions
    points, weights = quadrature.points, quadrature.weights
    inside, factors, earlier = buffers.inside, buffers.factors, buffers.earlier
    later, integrals = buffers.later, buffers.integrals
    for leaf in range(len(paths.leaf_values)):
        begin = paths.offsets[leaf]
        size = paths.offsets[leaf + 1] - begin
        for j in range(size):
            low = lows[begin + j]
            high = highs[begin + j]
            open_below = low == -np.inf
            with_missing = paths.missing_inside[begin + j]
            feature_cells = cells[features[begin + j]]
            for r in range(BLOCK_ROWS):
                x = feature_cells[r]
                if np.isnan(x):
                    inside[j, r] = 1.0 if with_missing else 0.0
                else:
                    inside[j, r] = 1.0 if (x > low or open_below) and x <= high else 0.0
                integrals[j, r] = 0.0
            if paths.first_clauses[begin + j] >= 0:
                clear_outside(paths, paths.first_clauses[begin + j], feature_cells, inside[j])
        for q in range(quadrature.offsets[size], quadrature.offsets[size + 1]):
            t = points[q]
            for r in range(BLOCK_ROWS):
                later[r] = weights[q]
                earlier[0, r] = 1.0
            for j in range(size):
                unknown = fractions[begin + j] * (1.0 - t)
                for r in range(BLOCK_ROWS):
                    factors[j, r] = unknown + inside[j, r] * t
                    earlier[j + 1, r] = earlier[j, r] * factors[j, r]
            for back in range(size):
                j = size - 1 - back
                for r in range(BLOCK_ROWS):
                    integrals[j, r] += earlier[j, r] * later[r]
                    later[r] *= factors[j, r]
        value = paths.leaf_values[leaf]
        for j in range(size):
            fraction = fractions[begin + j]
            feature_sums = sums[features[begin + j]]
            for r in range(BLOCK_ROWS):
                feature_sums[r] += value * (inside[j, r] - fraction) * integrals[j, r]


@kernel
def explain_rows(
    rows: RowArrays,
    column_map: Int32Array,
    absent: float,
    paths: Paths,
    quadrature: Quadrature,
    contributions: Float64Array,
    first: int,
    stop: int,
) -> None:
    """Write what each feature contributes to the scores of rows first:stop.

    rows        : RowArrays, n rows, in
    column_map  : int32[n_data_columns], feature of the model for each data column, n_features for none, in
    absent      : float64, what a cell that is not written means, 0 or nan
    paths       : Paths, as `list_conditions` writes them, in
    quadrature  : Quadrature, for the longest path, in      contributions : float64[n, n_features], out
    first, stop : int64, the rows of this call

    Equation: contribution_f = sum over leaves of value (inside_f - fraction_f) integral over t in 0..1 of the product
    over the other features g of the path of (fraction_g (1 - t) + inside_g t); inside is 1 where the condition holds,
    else 0.
    Parallel: the caller gives each call its own rows; this writes only contributions[first:stop]; the bits of a row do
    not depend on the others. Cost: O(rows x sum over leaves of conditions^2).
    """
    offsets, columns, values = rows.offsets, rows.columns, rows.values
    n_features = contributions.shape[1]
    longest = len(quadrature.offsets) - 2
    cells = np.empty((n_features + 1, BLOCK_ROWS), np.float64)
    sums = np.empty((n_features + 1, BLOCK_ROWS), np.float64)
    buffers = PathBuffers(
        np.empty((longest + 1, BLOCK_ROWS), np.float64),
        np.empty((longest + 1, BLOCK_ROWS), np.float64),
        np.empty((longest + 1, BLOCK_ROWS), np.float64),
        np.empty(BLOCK_ROWS, np.float64),
        np.empty((longest + 1, BLOCK_ROWS), np.float64),
    )
    for start in range(first, stop, BLOCK_ROWS):
        n = min(BLOCK_ROWS, stop - start)
        for f in range(n_features):
            for r in range(BLOCK_ROWS):
                cells[f, r] = absent
                sums[f, r] = 0.0
        for r in range(n):
            for cell in range(offsets[start + r], offsets[start + r + 1]):
                cells[column_map[columns[cell]], r] = values[cell]
        add_contributions(paths, quadrature, cells, sums, buffers)
        for r in range(n):
            for f in range(n_features):
                contributions[start + r, f] = sums[f, r]
