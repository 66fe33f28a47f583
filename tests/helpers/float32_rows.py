"""Ensembles and rows for the tests of formats that compare in float32."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from helpers.trees import THRESHOLDS, grow
from lmart.array_types import Float64Array
from lmart.data.dataset import SparseRows
from lmart.formats.models.thresholds import next32, previous32
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.scorer import Scorer

SPECIAL = [0.0, -0.0, 1e-40, -1e-40, 3.4028234663852886e38, -3.4028234663852886e38]
FINER = [0.1, 1 / 3, -1 / 3, 2.5000000000000004, 1.0000000180025095e-35, 1e300, -1e300, 100.1, 12345.678, -7e-7, 3e-6]


@st.composite
def models(draw: st.DrawFn) -> Ensemble:
    """Small models whose feature ids count from 1, whose leaves of a tree differ, on thresholds of all sizes."""
    n_features = draw(st.integers(1, 4))
    rng = random.Random(draw(st.integers(0, 2**32)))
    thresholds = [*THRESHOLDS, *FINER] + [rng.gauss(0, 10 ** rng.uniform(-6, 6)) for _ in range(5)]
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    trees = [grow(rng, size, range(n_features), thresholds) for size in sizes]
    trees = [
        replace(tree, leaf_values=np.arange(tree.n_leaves, dtype=np.float64) + 1.0 + rng.random()) for tree in trees
    ]
    ids = np.array(sorted(rng.sample(range(1, 30), n_features)), np.int64)
    return Ensemble(tuple(trees), ids, absent=draw(st.sampled_from(["zero", "missing"])))


def planted(ensemble: Ensemble, with_nan: bool = False) -> Float64Array:
    """Rows of float32 numbers, float64[n, n_features]: each threshold, its float32 neighbours, and special values."""
    rng = random.Random(7)
    values: list[list[float]] = [list(SPECIAL) for _ in range(ensemble.n_features)]
    for tree in ensemble.trees:
        for column, threshold in zip(tree.split_columns.tolist(), tree.thresholds.tolist(), strict=True):
            with np.errstate(over="ignore"):
                near = np.array([threshold]).astype(np.float32)
            for one in (previous32(near), near, next32(near)):
                if np.isfinite(one[0]):
                    values[column].append(float(one[0]))
    if with_nan:
        values = [[*column, float("nan")] for column in values]
    n = max(map(len, values)) * 2
    return np.array([[rng.choice(column) for column in values] for _ in range(n)]).reshape(n, ensemble.n_features)


def dense_rows(values: Float64Array) -> SparseRows:
    """The rows with every cell written."""
    n, width = values.shape
    columns = np.tile(np.arange(width, dtype=np.int32), n)
    return SparseRows(np.arange(n + 1, dtype=np.int64) * width, columns, values.reshape(-1).astype(np.float64))


def scores(ensemble: Ensemble, values: Float64Array, feature_ids: list[int] | None = None) -> list[float]:
    """The scores of dense rows whose columns are the features named, by default all of the ensemble."""
    ids = ensemble.feature_ids.tolist()
    columns = [ids.index(f) if f in ids else -1 for f in (feature_ids or ids)]
    found: list[float] = Scorer(ensemble).score(dense_rows(values), np.array(columns, np.int32)).tolist()
    return found


def leaf_values(ensemble: Ensemble, t: int, values: Float64Array, feature_ids: list[int]) -> list[float]:
    """The leaf value of tree t that each dense row comes to, in float64."""
    one = replace(ensemble, trees=ensemble.trees[t : t + 1], base_score=0.0, sums="float64", average=False)
    return scores(one, values, feature_ids)
