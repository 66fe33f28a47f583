"""Folds of cross-validation: which queries each one leaves out."""

from __future__ import annotations

import hashlib

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, counted
from lmart.measures.measured_queries import scaled_weights


def assign_folds(dataset: RankingDataset, n_folds: int, seed: int, weights: Float64Array | None = None) -> Int64Array:
    """Return the fold of each query, int64[n_queries], from 0.

    dataset : whose queries are assigned
    n_folds : number of folds
    seed    : of the hash
    weights : one a query, or one a document; None: all 1
    Queries are assigned to folds in turn: first those with a relevant document, then those without, last those of
    weight 0, each ordered by a hash of query id and seed. So the folds differ by at most 1 in the number of queries, of
    queries with weight, and of those with weight and a relevant document; the order of the data does not matter.
    DataError when there are more folds than queries.
    """
    n = dataset.n_queries
    if n_folds > n:
        queries = counted(n, "query", "queries")
        raise DataError(f"has {queries}, too few for {n_folds:,} folds; use fewer --folds or more data", dataset.source)
    key = seed.to_bytes(8, "little")
    marks = [
        hashlib.blake2b(query_id.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()
        for query_id in dataset.query_ids
    ]
    relevant_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(dataset.labels > 0)])
    without_relevant = np.diff(relevant_before[dataset.query_offsets]) == 0
    weightless = np.zeros(n, np.bool_)
    if weights is not None:
        weightless = scaled_weights(weights, dataset.query_offsets).per_query == 0
    order = sorted(range(n), key=lambda q: (bool(weightless[q]), bool(without_relevant[q]), marks[q], q))
    folds = np.empty(n, np.int64)
    folds[order] = np.arange(n) % n_folds
    return folds
