"""Explaining: what each feature contributes to a score, exact path-dependent TreeSHAP.

base + the contributions of all features = score, up to rounding: the base is the mean score of the documents that the
trees were grown from, and a contribution says how far knowing the feature moves the score away from it, averaged over
all orders in which features could become known.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.dataset import SparseRows
from lmart.ensemble import Ensemble, Floats, Ints, flatten
from lmart.errors import ModelError
from lmart.kernels import explaining as kernels
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
    contributions: Floats


class Explainer:
    """An ensemble prepared for explaining; unchanged by it, so that threads may share it.

    path : what to call the model in messages. ModelError when the trees do not say how many documents their leaves had.
    """

    def __init__(self, ensemble: Ensemble, path: str | None = None) -> None:
        if any(len(tree.thresholds) and tree.leaf_documents is None for tree in ensemble.trees):
            raise ModelError(
                "does not say how many documents each leaf had ('leaf_documents'), without which no score can be "
                "explained; train the model with lmart, or score without",
                path,
            )
        self.ensemble = ensemble
        flat = flatten(ensemble.trees)
        documents = [
            np.ones(1, np.int64) if tree.leaf_documents is None else tree.leaf_documents for tree in ensemble.trees
        ]
        trees = (
            flat.node_offsets,
            flat.split_columns,
            flat.thresholds,
            flat.missing_left,
            flat.left,
            flat.right,
            np.concatenate([np.zeros(0, np.int64), *documents]).astype(np.int64, copy=False),
        )

        shares = np.zeros(len(flat.leaf_values))
        offsets = np.zeros(len(shares) + 1, np.int64)
        for writes in (False, True):
            n = int(offsets[-1])
            paths = (np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n, np.bool_), np.empty(n))
            latest = np.full(ensemble.n_features, -1, np.int64)
            kernels.lay_paths(*trees, writes, latest, offsets, *paths, shares)
        self._longest = int(np.diff(offsets).max(initial=0))
        self._paths = (offsets, *paths, flat.leaf_values)
        self._points = _points(np.diff(offsets), self._longest)
        try:
            self.base = math.fsum([float(ensemble.base_score), *(shares * flat.leaf_values).tolist()])
        except OverflowError:
            what = "the leaf values of the model add up to more than a number can hold; the model is damaged"
            raise ModelError(what, path) from None

    def explain(self, rows: SparseRows, column_map: Ints, pool: WorkerPool | None = None) -> Floats:
        """Return what each of the model's features contributes to the score of each row, float64[n, n_features].

        rows, column_map, pool : as in `Scorer.score`
        """
        n = len(rows)
        contributions = np.empty((n, self.ensemble.n_features))
        shared = (
            np.ascontiguousarray(rows.offsets, np.int64),
            np.ascontiguousarray(rows.columns, np.int32),
            np.ascontiguousarray(rows.values, np.float64),
            np.where(column_map < 0, self.ensemble.n_features, column_map).astype(np.int32),
            0.0 if self.ensemble.absent == "zero" else math.nan,
            *self._paths,
            *self._points,
            self._longest,
            contributions,
        )
        calls = [(*shared, start, stop) for start, stop in chunks(n, CHUNK)]
        if pool is None:
            for call in calls:
                kernels.explain_rows(*call)
        else:
            pool.run(kernels.explain_rows, calls)
        if not (math.isfinite(self.base) and np.isfinite(contributions).all()):
            raise ModelError("the leaf values of the model add up to more than a number can hold; the model is damaged")
        return contributions


def _points(sizes: npt.NDArray[np.int64], longest: int) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return offsets by the size of a path, int64[longest + 2], and Gauss-Legendre points and weights on 0..1.

    k points are exact up to degree 2 k - 1; a path of n conditions asks for degree n - 1.
    """
    used = set(sizes.tolist())
    made: dict[int, tuple[Floats, Floats]] = {0: (np.zeros(0), np.zeros(0))}
    points, weights, counts = [np.zeros(0)], [np.zeros(0)], []
    for size in range(longest + 1):
        count = (size + 1) // 2 if size in used else 0
        if count > ALL_SIZES:
            count = min(-(-count // ALL_SIZES) * ALL_SIZES, MOST_POINTS)
        if count not in made:
            x, w = np.polynomial.legendre.leggauss(count)
            made[count] = (x + 1.0) / 2.0, w / 2.0
        points.append(made[count][0])
        weights.append(made[count][1])
        counts.append(count)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return offsets, np.concatenate(points), np.concatenate(weights)
