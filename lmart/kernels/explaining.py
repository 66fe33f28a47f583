"""Explaining kernels: how much each feature of a row moves its score away from the mean of the training documents.

The value of a set of features is the score when the row's features outside the set are unknown: at a node on such a
feature both children count, each by its share of the node's training documents. A feature's contribution is its Shapley
value. Source: Lundberg, Erion and Lee 2018, algorithm 2 (path-dependent TreeSHAP). Differs: leaf by leaf instead of by
recursion, as in Mitchell, Frank and Holmes 2022, so that rows go together; and the weights of subsets come from Owen's
integral (1972), which Gauss-Legendre points give exactly: all its terms are positive, so that nothing cancels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

BLOCK = 16  # rows that go together

Bools = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@kernel
def lay_paths(
    node_offsets: I64,
    split_columns: I32,
    thresholds: F64,
    missing_left: Bools,
    left: I32,
    right: I32,
    leaf_documents: I64,
    writes: bool,
    latest: I64,
    path_offsets: I64,
    features: I32,
    lows: F64,
    highs: F64,
    missing_inside: Bools,
    fractions: F64,
    leaf_shares: F64,
) -> None:
    """Write the path to each leaf as conditions, one a feature: low < x <= high, or x is missing and may be.

    node_offsets .. right : the trees, as in FlatTrees, in
    leaf_documents : int64[n_leaves], documents of each leaf, in
    writes         : False writes only path_offsets, to learn how much room the rest needs
    latest         : int64[n_features], -1 everywhere at first; overwritten
    path_offsets   : int64[n_leaves + 1], conditions of leaf l are path_offsets[l]:path_offsets[l + 1], out
    features, lows, highs, missing_inside : int32, float64, float64, bool[n_conditions], the condition, out
    fractions      : float64[n_conditions], share of documents at the nodes on the feature that go on to the leaf, out
    leaf_shares    : float64[n_leaves], share of the tree's documents that are in the leaf, out
    Equation: fraction = product over the nodes on the feature of documents(child) / documents(node), 1/2 where the node
    has no documents. Parallel: one call for all trees. Cost: O(sum of the depths of the leaves).
    """
    total = 0
    path_offsets[0] = 0
    for tree in range(len(node_offsets) - 1):
        first = node_offsets[tree]
        n = node_offsets[tree + 1] - first
        first_leaf = first + tree
        above = np.empty(n + n + 1, np.int64)  # of the nodes, then of the leaves: the node above, ~node on its right
        documents = np.empty(n, np.float64)
        for i in range(n):
            documents[i] = 0.0
            for side in range(2):
                child = left[first + i] if side == 0 else right[first + i]
                above[child if child >= 0 else n + ~child] = i if side == 0 else ~i
        for leaf in range(n + 1):
            here = n + leaf
            while n > 0 and here != 0:
                node = above[here] if above[here] >= 0 else ~above[here]
                documents[node] += leaf_documents[first_leaf + leaf]
                here = node
        for leaf in range(n + 1):
            begin = total
            share = 1.0
            here = n + leaf
            below = np.float64(leaf_documents[first_leaf + leaf])
            while n > 0 and here != 0:
                goes_left = above[here] >= 0
                node = above[here] if goes_left else ~above[here]
                fraction = below / documents[node] if documents[node] > 0.0 else 0.5
                share *= fraction
                feature = split_columns[first + node]
                known = latest[feature] >= begin
                if not known:
                    latest[feature] = total
                    total += 1
                if writes:
                    at = latest[feature]
                    if not known:
                        features[at] = feature
                        lows[at] = -np.inf
                        highs[at] = np.inf
                        missing_inside[at] = True
                        fractions[at] = 1.0
                    threshold = thresholds[first + node]
                    if goes_left:
                        highs[at] = min(highs[at], threshold)
                    else:
                        lows[at] = max(lows[at], threshold)
                    missing_inside[at] = missing_inside[at] and missing_left[first + node] == goes_left
                    fractions[at] *= fraction
                below = documents[node]
                here = node
            path_offsets[first_leaf + leaf + 1] = total
            if writes:
                leaf_shares[first_leaf + leaf] = share


@kernel
def explain_rows(
    offsets: I64,
    columns: I32,
    values: F64,
    column_map: I32,
    absent: float,
    path_offsets: I64,
    features: I32,
    lows: F64,
    highs: F64,
    missing_inside: Bools,
    fractions: F64,
    leaf_values: F64,
    point_offsets: I64,
    points: F64,
    weights: F64,
    longest: int,
    contributions: F64,
    first: int,
    stop: int,
) -> None:
    """Write what each feature contributes to the scores of rows first:stop.

    offsets, columns, values : int64[n + 1], int32[n_cells], float64[n_cells], SparseRows, in
    column_map     : int32[n_data_columns], feature of the model for each data column, n_features for none, in
    absent         : what a cell that is not written means, 0 or nan
    path_offsets .. fractions : as `lay_paths` writes them, in
    leaf_values    : float64[n_leaves], in
    point_offsets  : int64[longest + 2], points for a path of k conditions are point_offsets[k]:point_offsets[k + 1], in
    points, weights : float64, Gauss-Legendre on 0..1, exact for polynomials of degree k - 1, in
    longest        : conditions of the longest path
    contributions  : float64[n, n_features], out; first, stop : the rows of this call
    Equation: contribution_f = sum over leaves of value (inside_f - fraction_f) integral over t in 0..1 of the product
    over the other features g of the path of (fraction_g (1 - t) + inside_g t); inside is 1 where the condition holds,
    else 0.
    Parallel: the caller gives each call its own rows; this writes only contributions[first:stop]; the bits of a row do
    not depend on the others. Cost: O(rows x sum over leaves of conditions^2).
    """
    n_features = contributions.shape[1]
    cells = np.empty((n_features + 1, BLOCK), np.float64)
    sums = np.empty((n_features + 1, BLOCK), np.float64)
    inside = np.empty((longest + 1, BLOCK), np.float64)
    factors = np.empty((longest + 1, BLOCK), np.float64)
    ahead = np.empty((longest + 1, BLOCK), np.float64)  # product of the factors before this one
    behind = np.empty(BLOCK, np.float64)  # and after it
    integrals = np.empty((longest + 1, BLOCK), np.float64)
    for start in range(first, stop, BLOCK):
        n = min(BLOCK, stop - start)
        for f in range(n_features):
            for r in range(BLOCK):
                cells[f, r] = absent
                sums[f, r] = 0.0
        for r in range(n):
            for cell in range(offsets[start + r], offsets[start + r + 1]):
                cells[column_map[columns[cell]], r] = values[cell]
        for leaf in range(len(leaf_values)):
            begin = path_offsets[leaf]
            size = path_offsets[leaf + 1] - begin
            for j in range(size):
                low = lows[begin + j]
                high = highs[begin + j]
                open_below = low == -np.inf
                with_missing = missing_inside[begin + j]
                cell_row = cells[features[begin + j]]
                for r in range(BLOCK):
                    x = cell_row[r]
                    if np.isnan(x):
                        inside[j, r] = 1.0 if with_missing else 0.0
                    else:
                        inside[j, r] = 1.0 if (x > low or open_below) and x <= high else 0.0
                    integrals[j, r] = 0.0
            for q in range(point_offsets[size], point_offsets[size + 1]):
                t = points[q]
                for r in range(BLOCK):
                    behind[r] = weights[q]
                    ahead[0, r] = 1.0
                for j in range(size):
                    unknown = fractions[begin + j] * (1.0 - t)
                    for r in range(BLOCK):
                        factors[j, r] = unknown + inside[j, r] * t
                        ahead[j + 1, r] = ahead[j, r] * factors[j, r]
                for back in range(size):
                    j = size - 1 - back
                    for r in range(BLOCK):
                        integrals[j, r] += ahead[j, r] * behind[r]
                        behind[r] *= factors[j, r]
            value = leaf_values[leaf]
            for j in range(size):
                fraction = fractions[begin + j]
                sum_row = sums[features[begin + j]]
                for r in range(BLOCK):
                    sum_row[r] += value * (inside[j, r] - fraction) * integrals[j, r]
        for r in range(n):
            for f in range(n_features):
                contributions[start + r, f] = sums[f, r]
