"""How much each feature of a model matters: share of the split gain, number of splits, mean absolute contribution."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.explain import Explainer
from lmart.threads import WorkerPool

CELLS = 1 << 20  # contributions held at a time
MOST_ROWS = 1024  # rows explained at a time


@dataclass(frozen=True, eq=False)
class Importance:
    """What each feature does in the trees of a model.

    splits      : int64[n_features], nodes that split on the feature
    gain_shares : float64[n_features], its share of the split gain, from 0 to 1; None when a split has no gain

    Gains of different objectives have different scales, so they are compared within each ranker: the share of a feature
    is its mean over the rankers, which count evenly, as their scores do in the model. Rankers without a split do not
    count.
    """

    splits: Int64Array
    gain_shares: Float64Array | None


def split_importance(ensemble: Ensemble) -> Importance:
    """Return the split counts and shares of split gain of the features of a model."""
    trees, m = ensemble.trees, ensemble.n_features
    splits = np.zeros(m, np.int64)
    for tree in trees:
        splits += np.bincount(tree.split_columns, minlength=m)
    if any(len(tree.thresholds) and tree.split_gains is None for tree in trees):
        return Importance(splits, None)
    shares = [share for part in trees_by_ranker(ensemble) if (share := _gain_shares(part, m)) is not None]
    mean = np.zeros(m)
    for share in shares:
        mean += share / len(shares)
    return Importance(splits, mean)


def trees_by_ranker(ensemble: Ensemble) -> list[tuple[Tree, ...]]:
    """Return the trees of each ranker; of a model that is no mean of rankers all trees as one."""
    if not ensemble.rankers:
        return [ensemble.trees]
    ends = np.cumsum([0, *(part.trees for part in ensemble.rankers)]).tolist()
    return [ensemble.trees[start:end] for start, end in itertools.pairwise(ends)]


def _gain_shares(trees: Sequence[Tree], n_features: int) -> Float64Array | None:
    """Return the share of each feature in the split gain of one ranker; None when there is no gain at all.

    Gains below 0, which other tools may write, count as 0. They are scaled by the largest, so that no sum overflows.
    """
    gains = [tree.split_gains for tree in trees if tree.split_gains is not None]
    largest = max((float(of_tree.max(initial=0.0)) for of_tree in gains), default=0.0)
    if largest <= 0.0:
        return None
    sums = np.zeros(n_features)
    for tree in trees:
        if tree.split_gains is not None:
            scaled = np.maximum(tree.split_gains, 0.0) / largest
            sums += np.bincount(tree.split_columns, scaled, minlength=n_features)
    shares: Float64Array = sums / sums.sum()
    return shares


def importance_order(found: Importance, contributions: Float64Array | None = None) -> list[int]:
    """Return the features by position, the most important first.

    contributions : float64[n_features], mean absolute contributions, which then decide; None: the gain does, or splits
    Of equals the one with more splits is first, then the first in the model.
    """
    value = contributions if contributions is not None else found.gain_shares
    order: list[int] = np.lexsort((-found.splits, -(found.splits if value is None else value))).tolist()
    return order


def importance_by_name(ensemble: Ensemble, found: Importance) -> dict[str, dict[str, float | int | None]]:
    """Return `gain_share` and `splits` by feature for those that are split on, the most important first."""
    shares = [None] * ensemble.n_features if found.gain_shares is None else found.gain_shares.tolist()
    return {
        ensemble.feature_name(column): {"gain_share": shares[column], "splits": int(found.splits[column])}
        for column in importance_order(found)
        if found.splits[column]
    }


class ContributionMeans:
    """Adds up the absolute contributions of features to scores, row by row, in constant memory, whatever the pool."""

    def __init__(self, explainer: Explainer, pool: WorkerPool | None = None) -> None:
        self.n_rows = 0
        self._explainer = explainer
        self._pool = pool
        self._sums = np.zeros(explainer.ensemble.n_features)

    def add(self, rows: SparseRows, column_map: Int32Array) -> None:
        """Add the contributions to the scores of rows; ModelError when one is too large for a number."""
        step = max(1, min(MOST_ROWS, CELLS // max(1, len(self._sums))))
        for start in range(0, len(rows), step):
            part = rows.between(start, min(start + step, len(rows)))
            self.add_contributions(self._explainer.explain(part, column_map, self._pool))

    def add_contributions(self, contributions: Float64Array) -> None:
        """Add contributions to the scores of rows that are explained already, float64[n, n_features].

        Rows are added one after the other, so that the sums do not depend on how rows come in blocks.
        """
        for row in np.abs(contributions):
            self._sums += row
        self.n_rows += len(contributions)

    @property
    def means(self) -> Float64Array:
        """The mean absolute contribution of each feature, float64[n_features]; 0 without rows."""
        means: Float64Array = self._sums / max(1, self.n_rows)
        return means
