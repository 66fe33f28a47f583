"""RankingDataset: judged documents grouped by query, the common form of all formats and stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.errors import DataError, listed, quote

PIECE_ROWS, PIECE_CELLS = 1 << 16, 1 << 21  # at most, of rows that are converted at a time


@dataclass(frozen=True)
class SparseRows:
    """The written cells of n rows, row by row, columns ascending in a row; what is not written is absent.

    offsets : int64[n + 1], cells of row i are offsets[i]:offsets[i + 1]
    columns : int32[n_cells], positions in `RankingDataset.feature_ids`
    values  : float64[n_cells], nan is missing
    """

    offsets: Int64Array
    columns: npt.NDArray[np.int32]
    values: Float64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def dense(self, n_columns: int, absent: float) -> Float64Array:
        """Return the rows as float64[n, n_columns], `absent` (0 or nan) where nothing is written."""
        out = np.full((len(self), n_columns), absent)
        out[np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.columns] = self.values
        return out

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop; their cells are views of these."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return SparseRows(self.offsets[start : stop + 1] - first, self.columns[first:last], self.values[first:last])


class Rows(Protocol):
    """Rows of features that are given out piece by piece, such as SparseRows, or those of an array."""

    def __len__(self) -> int: ...

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop."""


def pieces(rows: Rows, n_columns: int) -> Iterator[tuple[int, int, SparseRows]]:
    """Yield the first row, the one after the last, and the rows of pieces that cover all."""
    step = max(1, min(PIECE_ROWS, PIECE_CELLS // max(1, n_columns)))
    for start in range(0, len(rows), step):
        stop = min(start + step, len(rows))
        yield start, stop, rows.between(start, stop)


def join_rows(parts: Sequence[SparseRows]) -> SparseRows:
    """Return the rows of all parts, one part after the other."""
    sizes = [np.diff(part.offsets) for part in parts]
    return SparseRows(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))]),
        np.concatenate([np.zeros(0, np.int32), *(part.columns for part in parts)]),
        np.concatenate([np.zeros(0), *(part.values for part in parts)]),
    )


def take_rows(rows: SparseRows, order: Int64Array) -> SparseRows:
    """Return the rows order[0], order[1], ... as rows of their own."""
    sizes = np.diff(rows.offsets)[order]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    cells = rows_of(rows.offsets, order)
    return SparseRows(offsets, rows.columns[cells], rows.values[cells])


class Judged(Protocol):
    """Labels and queries of a data set, without its features; see RankingDataset."""

    @property
    def labels(self) -> Float64Array:
        """float64[n_documents]: the labels."""

    @property
    def query_offsets(self) -> Int64Array:
        """int64[n_queries + 1]: where the rows of each query start, and the end."""

    @property
    def source(self) -> str:
        """What messages call the data."""

    @property
    def input_rows(self) -> Int64Array | None:
        """int64[n_documents]: the row of the input of each row; None: in input order."""


class Features(Protocol):
    """Features that columns may stand for: those of a data set, or of a model."""

    @property
    def feature_ids(self) -> Int64Array:
        """int64[n_features]: the index of each, ascending."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The name of each; None: they have indices only."""


class TableColumns(Features, Protocol):
    """The features of a data set, and which of its inputs have a column for them; see RankingDataset."""

    @property
    def table_features(self) -> Mapping[str, Int64Array]:
        """For each input that is a table, the ids of the features that it has a column for."""


class Unbinned(Judged, TableColumns, Protocol):
    """A data set whose values are at hand, wherever they are; see RankingDataset."""

    @property
    def features(self) -> Rows:
        """The rows."""

    @property
    def texts(self) -> Mapping[int, tuple[str, ...]]:
        """By feature that is a category of texts, the texts that its numbers in the rows stand for."""


class DataSize(Protocol):
    """How many documents, queries, queries of one row and features a data set has."""

    @property
    def n_documents(self) -> int:
        """The number of rows."""

    @property
    def n_queries(self) -> int:
        """The number of queries."""

    @property
    def n_single(self) -> int:
        """The number of queries of one row."""

    @property
    def n_features(self) -> int:
        """The number of features."""


class Counted:
    """How many documents, queries and features a data set has."""

    feature_ids: Int64Array
    labels: Float64Array
    query_offsets: Int64Array
    feature_names: tuple[str, ...] | None
    table_features: Mapping[str, Int64Array]

    @property
    def n_documents(self) -> int:
        """The number of rows."""
        return len(self.labels)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.query_offsets) - 1

    @property
    def n_single(self) -> int:
        """The number of queries of one row."""
        return int((np.diff(self.query_offsets) == 1).sum())

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_ids)


@dataclass(frozen=True)
class RankingDataset(Counted):
    """n documents of n_queries queries. Rows of a query are adjacent; `doc_*` names rows, `rank_*` places.

    features       : SparseRows of n rows
    feature_ids    : int64[n_features], ascending, the indices as written in the file
    labels         : float64[n], finite, >= 0
    query_offsets  : int64[n_queries + 1]
    query_ids      : n_queries texts
    feature_names  : n_features texts when the source has names (CSV), else None
    document_ids   : n texts ('' where there is none) when they were asked for, else None
    input_rows     : int64[n], the row of the input (from 0, through all inputs) that each document was, when rows were
                     collected by query; None: documents are in the order of the input
    source         : what to call it in messages
    table_features : for each input that is a table, the ids of the features that it has a column for
    texts          : by feature that is a category of texts, the texts that its numbers in the rows stand for
    """

    features: SparseRows
    feature_ids: Int64Array
    labels: Float64Array
    query_offsets: Int64Array
    query_ids: Sequence[str]
    feature_names: tuple[str, ...] | None = None
    document_ids: Sequence[str] | None = None
    input_rows: Int64Array | None = None
    source: str = field(default="data", compare=False)
    table_features: Mapping[str, Int64Array] = field(default_factory=dict, compare=False)
    texts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.labels)
        if len(self.features) != n or (len(self.query_offsets) and self.query_offsets[-1] != n):
            raise ValueError("rows, labels and query offsets differ in length")
        if len(self.query_ids) != self.n_queries:
            raise ValueError("query ids and query offsets differ in length")

    def feature_name(self, column: int) -> str:
        """Return what the user calls the feature of a column: its name, else its index as written."""
        return self.feature_names[column] if self.feature_names is not None else str(int(self.feature_ids[column]))


def rows_of(query_offsets: Int64Array, queries: Int64Array) -> Int64Array:
    """Return the rows of these queries, one query after the other: int64."""
    starts, sizes = query_offsets[:-1][queries], np.diff(query_offsets)[queries]
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(int(sizes.sum()))


def select_queries(dataset: RankingDataset, queries: Int64Array) -> RankingDataset:
    """Return the data set of these queries alone (int64, from 0), in this order, with all features."""
    rows = rows_of(dataset.query_offsets, queries)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(dataset.query_offsets)[queries])])
    ids, documents = dataset.query_ids, dataset.document_ids
    return RankingDataset(
        take_rows(dataset.features, rows),
        dataset.feature_ids,
        dataset.labels[rows],
        offsets,
        [ids[q] for q in queries.tolist()],
        dataset.feature_names,
        None if documents is None else [documents[row] for row in rows.tolist()],
        rows if dataset.input_rows is None else dataset.input_rows[rows],
        dataset.source,
        texts=dataset.texts,
    )


def join_datasets(sets: Sequence[RankingDataset]) -> RankingDataset:
    """Return data sets as one, with the features of all; queries of different sets differ, whatever their ids.

    Features are the same by name where there are names, else by index; DataError when only some sets have names, or a
    feature has texts in some and numbers in others.
    """
    first, rest = sets[0], sets[1:]
    for dataset in rest:
        if (dataset.feature_names is None) != (first.feature_names is None):
            raise DataError("only some of the data sets have names of features; give them the same", dataset.source)
    ids = dict(zip(map(first.feature_name, range(first.n_features)), first.feature_ids.tolist(), strict=True))
    for dataset in rest:
        for column, index in enumerate(dataset.feature_ids.tolist()):
            new = index if first.feature_names is None else max(ids.values(), default=0) + 1
            ids.setdefault(dataset.feature_name(column), new)
    ascending = sorted(ids, key=ids.__getitem__)
    places = {name: place for place, name in enumerate(ascending)}
    texts: dict[int, dict[str, int]] = {}
    for dataset in sets:
        for column, own in dataset.texts.items():
            numbers = texts.setdefault(places[dataset.feature_name(column)], {})
            for text in own:
                numbers.setdefault(text, len(numbers))
    parts = []
    for dataset in sets:
        place = np.array([places[dataset.feature_name(column)] for column in range(dataset.n_features)], np.int32)
        rows = replace(_with_common_texts(dataset, place, texts), columns=place[dataset.features.columns])
        parts.append(rows if (np.diff(place) > 0).all() else _with_ascending_columns(rows))
    joined = RankingDataset(
        join_rows(parts),
        np.array([ids[name] for name in ascending], np.int64),
        np.concatenate([dataset.labels for dataset in sets]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(d.query_offsets) for d in sets]))]),
        [query_id for dataset in sets for query_id in dataset.query_ids],
        None if first.feature_names is None else tuple(ascending),
        source=listed([dataset.source for dataset in sets], 1, str),
    )
    return replace(joined, texts={column: tuple(numbers) for column, numbers in texts.items()})


def _with_common_texts(
    dataset: RankingDataset, place: Int32Array, texts: Mapping[int, Mapping[str, int]]
) -> SparseRows:
    """Return the rows of a data set, whose texts have the numbers that they have in all sets together.

    place : int32[n_features], the feature of all sets that each of the data set is
    texts : by feature of all sets, the number of each text
    """
    rows = dataset.features
    values = rows.values.copy() if texts else rows.values
    for column, feature in enumerate(place.tolist() if texts else ()):
        if feature not in texts:
            continue
        cells = np.flatnonzero((rows.columns == column) & ~np.isnan(values))
        if column in dataset.texts:
            table = np.array([*(texts[feature][text] for text in dataset.texts[column]), -1.0])
            values[cells] = table[values[cells].astype(np.int64)]
        elif len(cells):
            what = f"feature {quote(dataset.feature_name(column))} has numbers, but texts in other data"
            raise DataError(f"{what}; give it the same type everywhere", dataset.source)
    return replace(rows, values=values)


def _with_ascending_columns(rows: SparseRows) -> SparseRows:
    """Return the same rows with the cells of each in the order of their columns."""
    order = np.lexsort((rows.columns, np.repeat(np.arange(len(rows)), np.diff(rows.offsets))))
    return SparseRows(rows.offsets, rows.columns[order], rows.values[order])


def even_ranges(offsets: Int64Array, size: int = 8192) -> list[tuple[int, int]]:
    """Return (first, last) ranges that cover all queries, each of about `size` documents; or all rows, by their cells.

    offsets : int64[n + 1], where each query or row begins, from 0, and where the last one ends
    """
    if len(offsets) < 2:
        return []
    marks = np.arange(size, int(offsets[-1]), size)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(offsets, marks), [len(offsets) - 1]])).tolist()
    return list(pairwise(bounds))
