"""Explaining: what each feature contributes to a score, exact path-dependent TreeSHAP.

base + the contributions of all features = score, up to rounding: the base is the mean score of the documents that the
trees were grown from, and a contribution is the change of the expected score when the feature becomes known, averaged
over all orders of the features (Shapley value).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.categories import with_numbers
from lmart.data.dataset import SparseRows
from lmart.errors import ModelError
from lmart.kernels.row_arrays import contiguous_rows
from lmart.kernels.scoring import shap as kernels
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree, flatten
from lmart.threads import WorkerPool, chunks

CHUNK = 64  # rows of one call
ALL_SIZES = 16  # points up to which each number of them is its own; then multiples of it
MOST_POINTS = 256  # enough for full precision on paths of some thousand features; exact up to 512


class Explanation(NamedTuple):
    """What `Model.explain` returns: base + contributions.sum(axis=1) is the score of each row, up to rounding.

    base          : the mean score of the documents that the model was trained on
    contributions : float64[n, n_features], by row and feature, in the order of `Model.feature_ids`
    """

    base: float
    contributions: Float64Array


class Explainer:
    """An ensemble prepared for explaining; immutable, so threads may share it.

    ModelError when the trees do not say how many documents their leaves had, nor the hessian sums of these.
    """

    def __init__(self, ensemble: Ensemble, path: str | None = None) -> None:
        documents = [_leaf_documents(tree) for tree in ensemble.trees]
        if any(document is None for document in documents):
            raise ModelError(
                "does not say how many documents each leaf had ('leaf_documents'), without which no score can be "
                "explained; train the model with lmart, or score without",
                path,
            )
        self.ensemble = ensemble
        counted = [document for document in documents if document is not None]
        leaf_documents = np.concatenate([np.zeros(0, np.int64), *counted]).astype(np.int64, copy=False)
        flat = flatten(ensemble.trees)
        if ensemble.average:
            flat = replace(flat, leaf_values=flat.leaf_values / max(len(ensemble.trees), 1))
        self._paths = _find_paths(flat, leaf_documents, ensemble.n_features)
        self._quadrature = _quadrature(np.diff(self._paths.offsets))
        mean_values = self._paths.leaf_shares * self._paths.leaf_values
        try:
            self.base = math.fsum([float(ensemble.base_score), *mean_values.tolist()])
        except OverflowError:
            what = "the leaf values of the model add up to more than a number can hold; the model is damaged"
            raise ModelError(what, path) from None

    def explain(self, rows: SparseRows, column_map: Int32Array, pool: WorkerPool | None = None) -> Float64Array:
        """Return what each of the model's features contributes to the score of each row, float64[n, n_features].

        column_map : int32[number of columns], the model's feature of each column of the rows, -1 for none
        ModelError when a contribution is too large for a number.
        """
        n = len(rows)
        contributions = np.empty((n, self.ensemble.n_features))
        rows = with_numbers(rows, column_map, self.ensemble.categories)
        arrays = contiguous_rows(rows.offsets, rows.columns, rows.values)
        features = np.where(column_map < 0, self.ensemble.n_features, column_map).astype(np.int32)
        absent = 0.0 if self.ensemble.absent == "zero" else math.nan
        calls = [
            (arrays, features, absent, self._paths, self._quadrature, contributions, start, stop)
            for start, stop in chunks(n, CHUNK)
        ]
        if pool is None:
            for call in calls:
                kernels.explain_rows(*call)
        else:
            pool.run(kernels.explain_rows, calls)
        if not (math.isfinite(self.base) and np.isfinite(contributions).all()):
            raise ModelError("the leaf values of the model add up to more than a number can hold; the model is damaged")
        return contributions


def _leaf_documents(tree: Tree) -> Int64Array | None:
    """Return the documents in each leaf, or whole numbers in the proportions of leaf_weights; None when not known."""
    if tree.leaf_documents is not None:
        return tree.leaf_documents
    if tree.n_leaves == 1:
        return np.ones(1, np.int64)
    if tree.leaf_weights is None:
        return None
    # A power of two makes the largest 2^52 to 2^53: float32 weights of at least 2^-29 of it stay exact.
    scaled: Float64Array = np.ldexp(tree.leaf_weights, 53 - np.frexp(tree.leaf_weights.max())[1])
    return np.rint(scaled).astype(np.int64)


def _find_paths(flat: FlatTrees, leaf_documents: Int64Array, n_features: int) -> kernels.Paths:
    """Return the path to each leaf of all trees; leaf_documents : int64[n_leaves]."""
    trees = kernels.Trees(
        flat.node_offsets, flat.split_columns, flat.thresholds, flat.missing_left, flat.left, flat.right, leaf_documents
    )
    shares = np.zeros(len(flat.leaf_values))
    offsets = np.zeros(len(shares) + 1, np.int64)
    counted = _empty_paths(flat, offsets, shares, 0)
    n_clauses = kernels.list_conditions(trees, False, np.full(n_features, -1, np.int64), counted)
    paths = _empty_paths(flat, offsets, shares, n_clauses)
    kernels.list_conditions(trees, True, np.full(n_features, -1, np.int64), paths)
    return paths


def _empty_paths(flat: FlatTrees, offsets: Int64Array, shares: Float64Array, n_clauses: int) -> kernels.Paths:
    """Return paths with arrays for offsets[-1] conditions and their clauses, whose content is still to be written."""
    n = int(offsets[-1])
    conditions = (np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n, np.bool_), np.empty(n))
    clauses = (np.empty(n, np.int64), np.empty(n_clauses, np.int64), np.empty(n_clauses, np.int64))
    nodes = (flat.thresholds, flat.bound_offsets, flat.bounds)
    return kernels.Paths(offsets, *conditions, flat.leaf_values, shares, *nodes, *clauses)


def _quadrature(sizes: Int64Array) -> kernels.Quadrature:
    """Return Gauss-Legendre points and weights on 0..1 for paths of these numbers of conditions.

    k points are exact up to degree 2 k - 1; a path of n conditions asks for degree n - 1.
    """
    used = set(sizes.tolist())
    by_count: dict[int, tuple[Float64Array, Float64Array]] = {0: (np.zeros(0), np.zeros(0))}
    points, weights, counts = [np.zeros(0)], [np.zeros(0)], []
    for size in range(int(sizes.max(initial=0)) + 1):
        count = (size + 1) // 2 if size in used else 0
        if count > ALL_SIZES:
            count = min(-(-count // ALL_SIZES) * ALL_SIZES, MOST_POINTS)
        if count not in by_count:
            x, w = np.polynomial.legendre.leggauss(count)
            by_count[count] = (x + 1.0) / 2.0, w / 2.0
        points.append(by_count[count][0])
        weights.append(by_count[count][1])
        counts.append(count)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return kernels.Quadrature(offsets, np.concatenate(points), np.concatenate(weights))
