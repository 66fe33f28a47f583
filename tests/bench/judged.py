"""Judged documents as the measuring programs hold them, and NDCG@10 by one plain program for all tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array

CUTOFF = 10


class Judged(NamedTuple):
    """n documents; `cells` holds each feature in the column of its index.

    cells : float64[n, largest index + 1], 0 where nothing is written
    labels : float64[n]; offsets : int64[n_queries + 1]
    """

    cells: Float64Array
    labels: Float64Array
    offsets: npt.NDArray[np.int64]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def query_of_document(self) -> npt.NDArray[np.int64]:
        """Return the place of each document's query."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def widened(self, n_columns: int) -> Judged:
        """Return the same with exactly so many columns; columns beyond them hold features that no model asks for."""
        cells = np.zeros((len(self.cells), n_columns))
        shared = min(n_columns, self.cells.shape[1])
        cells[:, :shared] = self.cells[:, :shared]
        return self._replace(cells=cells)


def load(paths: Iterable[str]) -> Judged:
    """Read LETOR text, several files as one."""
    from lmart.formats.documents.reading import read_dataset
    from lmart.formats.read_options import ReadOptions

    data = read_dataset(list(paths), ReadOptions())
    cells = np.zeros((data.n_documents, int(data.feature_ids[-1]) + 1))
    cells[:, data.feature_ids] = data.features.dense(data.n_features, 0.0)
    return Judged(cells, data.labels, data.query_offsets)


def ndcg_by_query(data: Judged, scores: npt.ArrayLike) -> Float64Array:
    """Return NDCG@10 of each query, nan where no document is relevant: gain 2^label - 1, ties in the order given."""
    gains = np.exp2(data.labels) - 1.0
    dcg = _dcg(data, gains, -np.asarray(scores, np.float64))
    ideal = _dcg(data, gains, -gains)
    return np.where(ideal > 0, dcg / np.where(ideal > 0, ideal, 1.0), np.nan)


def ndcg(data: Judged, scores: npt.ArrayLike) -> float:
    """Return mean NDCG@10, queries without a relevant document left out."""
    return float(np.nanmean(ndcg_by_query(data, scores)))


def _dcg(data: Judged, gains: Float64Array, keys: Float64Array) -> Float64Array:
    query = data.query_of_document
    order = np.lexsort((keys, query))  # stable, and queries stay where they are
    ranks = np.arange(len(keys)) - data.offsets[query]
    discounted = np.where(ranks < CUTOFF, gains[order] / np.log2(ranks + 2.0), 0.0)
    return np.bincount(query, discounted, minlength=len(data.sizes)).astype(np.float64)
