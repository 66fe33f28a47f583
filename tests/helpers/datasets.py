"""Small data sets for tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from lmart.data.dataset import RankingDataset, SparseRows


def dataset(
    labels: Sequence[float], queries: Sequence[Any], features: Any, ids: Sequence[int] | None = None
) -> RankingDataset:
    """Return a data set of dense rows; queries holds each row's query id, rows of a query adjacent."""
    values = np.asarray(features, np.float64)
    n, m = values.shape
    runs = [(str(key), len(list(rows))) for key, rows in groupby(queries)]
    return RankingDataset(
        SparseRows(np.arange(n + 1) * m, np.tile(np.arange(m, dtype=np.int32), n), values.ravel()),
        np.arange(1, m + 1) if ids is None else np.asarray(ids, np.int64),
        np.asarray(labels, np.float64),
        np.cumsum([0, *(size for _, size in runs)]),
        [key for key, _ in runs],
    )


def random_dataset(seed: int, n_queries: int = 30, n_features: int = 6, longest: int = 20) -> RankingDataset:
    """Return learnable data with ties, zeros and a constant column."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, n_queries)
    n = int(sizes.sum())
    features = rng.normal(size=(n, n_features)).round(2)
    features[:, 1] = np.maximum(features[:, 1], 0)
    features[:, -1] = 3.5
    labels = np.clip(np.floor(features[:, 0] + features[:, 1] + rng.normal(size=n) + 0.7), 0, 4)
    return dataset(labels.tolist(), np.repeat(np.arange(n_queries), sizes).tolist(), features)
