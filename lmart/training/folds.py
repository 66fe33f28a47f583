"""Folds of cross-validation: which queries are measured together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, counted, input_name, listed, quote
from lmart.measures.results import scaled_weights

LISTED = 3  # queries that a refusal names


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each query is in.

    of_query : int64[n_queries], from 0
    names    : what each fold is called; () where they are numbered from 1
    """

    of_query: Int64Array
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.of_query.max(initial=-1)) + 1

    def name(self, fold: int) -> str:
        """Return what a fold, from 0, is called."""
        return self.names[fold] if self.names else str(fold + 1)


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
        queries = counted(n, "query")
        raise DataError(f"has {queries}, too few for {n_folds:,} folds; use fewer --folds or more data", dataset.source)
    folds = np.empty(n, np.int64)
    folds[_dealing_order(dataset, seed, weights)] = np.arange(n) % n_folds
    return folds


def held_out_queries(
    dataset: RankingDataset, share: float, seed: int, weights: Float64Array | None = None
) -> Int64Array:
    """Return a share of the queries, int64, ascending: at least one, and not all, drawn as `assign_folds` assigns them.

    DataError when there are fewer than two queries.
    """
    n = dataset.n_queries
    if n < 2:
        what = f"has {counted(n, 'query')}, of which no share can be held out for validation"
        raise DataError(f"{what}; give more queries, each with an id of its own", dataset.source)
    n_held_out = min(max(1, round(share * n)), n - 1)
    places = (2 * np.arange(n_held_out) + 1) * n // (2 * n_held_out)
    return np.sort(np.array(_dealing_order(dataset, seed, weights), np.int64)[places])


def _dealing_order(dataset: RankingDataset, seed: int, weights: Float64Array | None) -> list[int]:
    """Return the queries in the order in which they are assigned: by relevant documents and weight, then by hash."""
    n = dataset.n_queries
    marks = [_mark(query_id, seed) for query_id in dataset.query_ids]
    relevant_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(dataset.labels > 0)])
    without_relevant = np.diff(relevant_before[dataset.query_offsets]) == 0
    weightless = np.zeros(n, np.bool_)
    if weights is not None:
        weightless = scaled_weights(weights, dataset.query_offsets).per_query == 0
    return sorted(range(n), key=lambda q: (bool(weightless[q]), bool(without_relevant[q]), marks[q], q))


def named_folds(names: Sequence[str], source: str) -> Folds:
    """Return the folds that queries are in by name, whole numbers in their order before other names.

    names  : of the fold of each query
    source : what says so, as messages call it
    DataError when all queries are in the same fold.
    """
    ordered = sorted(set(names), key=_natural)
    if len(ordered) < 2:
        what = f"all queries of the data are in fold {quote(ordered[0])}" if ordered else "there is no query"
        raise DataError(f"{what}; cross-validation needs at least two folds", source)
    number = {name: fold for fold, name in enumerate(ordered)}
    return Folds(np.array([number[name] for name in names], np.int64), tuple(ordered))


def dealt_groups(values: Sequence[str], n_folds: int, seed: int, source: str) -> Folds:
    """Return folds in which queries of equal value are together.

    values  : of each query
    n_folds, seed : as in `assign_folds`
    source  : what says so, as messages call it
    Values are assigned one by one, those of most queries first, then by a hash of value and seed, each to the fold with
    the fewest queries so far. DataError when there are more folds than values.
    """
    sizes = Counter(values)
    if n_folds > len(sizes):
        held = counted(len(sizes), "different value")
        raise DataError(f"the queries have {held}, too few for {n_folds:,} folds; use fewer --folds", source)
    fold_of_value: dict[str, int] = {}
    n_queries = [0] * n_folds
    for value in sorted(sizes, key=lambda value: (-sizes[value], _mark(value, seed), value)):
        fold = n_queries.index(min(n_queries))
        fold_of_value[value] = fold
        n_queries[fold] += sizes[value]
    return Folds(np.array([fold_of_value[value] for value in values], np.int64))


def values_of_queries(dataset: RankingDataset, values: Mapping[str, str], what: str, path: str) -> list[str]:
    """Return the value of each query by its id, such as the name of its fold; DataError when some have none.

    what : that the values are, in messages; path : what they were read from
    """
    without = [query_id for query_id in dataset.query_ids if query_id not in values]
    source = input_name(dataset.source)
    if len(without) == dataset.n_queries > 0:
        ids = f"it has {quote(next(iter(values), ''))}, {source} has {quote(without[0])}"
        raise DataError(f"no query of the data has a {what}: {ids}; do both name the queries alike?", path)
    if without:
        which = f"{counted(len(without), 'query')} of {source} without a {what}: {listed(without, LISTED)}"
        raise DataError(f"{which}; give each query a line", path)
    return [values[query_id] for query_id in dataset.query_ids]


def common_values(dataset: RankingDataset, values: Sequence[str], what: str) -> list[str]:
    """Return the value that all rows of each query have.

    values : of each row, '' where it has none
    what   : that the values are, in messages
    DataError names the query whose rows have none, or several.
    """
    of_queries = []
    for query, query_id in enumerate(dataset.query_ids):
        start, stop = dataset.query_offsets[query : query + 2].tolist()
        found = sorted(set(values[start:stop]))
        if len(found) > 1:
            both = f"{quote(found[0])} and {quote(found[1])}"
            raise DataError(f"rows of query {quote(query_id)} differ in {what}: {both}; give them one", dataset.source)
        if not found[0]:
            raise DataError(f"query {quote(query_id)} has no {what}; give it one", dataset.source)
        of_queries.append(found[0])
    return of_queries


def _mark(text: str, seed: int) -> bytes:
    """Return the hash of a text by which it is drawn."""
    key = seed.to_bytes(8, "little")
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()


def _natural(name: str) -> tuple[bool, int, str]:
    """Return the key that orders names: whole numbers by size, then the others."""
    is_whole = name.isascii() and name.isdigit() and len(name) <= 18
    return not is_whole, int(name) if is_whole else 0, name
