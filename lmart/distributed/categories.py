"""Categories of data in shards: their values are agreed on, and ordered by sums over all shards, as in one process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.binning.categories import (
    LocalSlopes,
    PlacedCategory,
    category_columns,
    codes_of,
    distinct_values,
    fit_effects,
    folds_of_queries,
    idle_texts,
    place_values,
    refuse_fractions,
)
from lmart.data.categories import Categories, as_numbers, looked_up, unwritten
from lmart.data.dataset import SparseRows
from lmart.distributed.actors import Actors, add_all
from lmart.distributed.reading import JoinedSet
from lmart.distributed.sums import Counts
from lmart.formats.documents.feature_table import FeatureTable
from lmart.gains import Gain
from lmart.settings import AUTO, TrainSettings
from lmart.threads import WorkerPool

NO_COLUMN = -1  # of a shard, for a feature that none of its rows name


class CategoryRows:
    """What the rows of a shard hold of the features that are categories, and then their numbers.

    numbers  : by column of the shard, float64[n], what trees are grown from
    of_model : by feature of all shards, float64[n], the numbers that the model gives, where they differ
    """

    def __init__(self, table: FeatureTable, names: Collection[str], absent: str) -> None:
        self._table, self._names, self._absent = table, list(names), absent
        self._cells: dict[int, list[Float64Array]] = {}
        self._n_rows = 0
        self.numbers: dict[int, Float64Array] = {}
        self.of_model: dict[int, Float64Array] = {}

    def add(self, parts: Sequence[SparseRows]) -> None:
        """Keep what adjacent rows hold."""
        for part in parts:
            for column in self._columns():
                absent = unwritten(self._absent, column in self._table.categories)
                kept = self._cells.setdefault(column, [np.full(self._n_rows, absent)])
                cells, places = np.full(len(part), absent), np.flatnonzero(part.columns == column)
                cells[np.searchsorted(part.offsets, places, "right") - 1] = part.values[places]
                kept.append(cells)
            self._n_rows += len(part)

    def _columns(self) -> set[int]:
        """Return the columns of the categories that are known so far."""
        table, found = self._table, set(self._table.categories)
        for name in self._names:
            if table.names is None:
                found |= set(np.flatnonzero(table.ids == int(name)).tolist()) if name.isdecimal() else set()
            elif name in table.names:
                found.add(table.names.index(name))
        return found

    @property
    def texts(self) -> dict[int, tuple[str, ...]]:
        """By column of the shard that holds texts, what its numbers stand for."""
        return {column: of_column.found for column, of_column in self._table.categories.items()}

    def prepare(self, labels: Float64Array, query_offsets: Int64Array, gain: Gain, seed: int, first_query: int) -> None:
        """Prepare for sums over the queries, the first of which has this number among those of all shards."""
        self._gains, self._offsets = gain.scaled(labels, query_offsets), query_offsets
        self._folds = folds_of_queries(first_query, len(query_offsets) - 1, seed)

    def values(self, column: int, table: Float64Array | None) -> Float64Array:
        """Turn to a category; return its distinct values, ascending.

        table : float64[n + 1], what stands for each of n texts, and for none of them; None: the rows hold numbers
        """
        absent = np.full(self._n_rows, unwritten(self._absent, table is not None))  # as in a shard without rows
        self._of_rows = np.concatenate(self._cells.pop(column, [absent]))
        if table is not None:
            self._of_rows = looked_up(table, self._of_rows)
        return distinct_values(self._of_rows)

    def code(self, held: Float64Array) -> Int64Array:
        """Note the place of each row's value among those of all shards, ascending; return the rows of each."""
        self._codes: Int32Array = codes_of(self._of_rows, held)
        return np.bincount(self._codes[self._codes >= 0], minlength=len(held))

    def slopes(self, effects: Float64Array, pool: WorkerPool) -> Int64Array:
        """Return the sums of `add_category_slopes` over the queries."""
        return LocalSlopes(self._codes, self._gains, self._offsets, self._folds, pool).sums(effects)

    def number(self, column: int, placed: PlacedCategory) -> None:
        """Note the numbers of the rows."""
        row_folds = np.repeat(self._folds, np.diff(self._offsets))
        numbers, of_model = placed.in_folds[row_folds, self._codes], placed.of_model[self._codes]
        if column != NO_COLUMN:
            self.numbers[column] = numbers
        if not np.array_equal(numbers, of_model, equal_nan=True):
            self.of_model[placed.category.column] = of_model


def number_categories(
    shards: Actors, train_set: JoinedSet, columns_of_shards: Sequence[Int32Array], settings: TrainSettings
) -> tuple[Categories, ...]:
    """Let the shards number the categories of the training set, and return these, as one process does.

    columns_of_shards : of each shard, the feature of each of its columns
    """
    columns = category_columns(settings, train_set)
    idle = idle_texts(train_set.texts, train_set.n_documents) if settings.categorical == AUTO else []
    first_queries = np.cumsum([0, *(of_shard.n_queries for of_shard in train_set.found)]).tolist()[:-1]
    shards.each("prepare_categories", [(settings.gain, settings.seed, first) for first in first_queries])
    found = []
    for column in columns:
        own = [_column_of(features, column) for features in columns_of_shards]
        texts: Sequence[str] | None = train_set.texts.get(column)
        tables: list[Float64Array | None] = [None] * len(own)
        if texts is not None:
            said = as_numbers(texts)
            tables = [
                _table(of_shard.texts.get(place, ()), texts, said, column in idle)
                for of_shard, place in zip(train_set.found, own, strict=True)
            ]
            texts = texts if said is None else None
        held = np.unique(np.concatenate(shards.each("category_values", list(zip(own, tables, strict=True)))))
        if texts is None:
            refuse_fractions(held, train_set, column)
        else:
            held = held[held >= 0.0]
        counts: Counts = add_all(shards.call("code_category", held))
        effects = fit_effects(len(held), lambda effects: shards.add("category_slopes", effects).counts)
        placed = place_values(column, held, counts.counts, effects, texts)
        shards.each("number_category", [(place, placed) for place in own])
        found.append(placed.category)
    return tuple(found)


def _column_of(features: Int32Array, column: int) -> int:
    """Return the column of a shard that is this feature, NO_COLUMN where none is."""
    places = np.flatnonzero(features == column)
    return int(places[0]) if len(places) else NO_COLUMN


def _table(own: Sequence[str], texts: Sequence[str], said: Float64Array | None, is_idle: bool) -> Float64Array:
    """Return what stands for each text of a shard, and for none of them, float64[n + 1]."""
    of_texts = np.full(len(texts), np.nan) if is_idle else np.arange(len(texts)) if said is None else said
    numbers = {text: number for number, text in enumerate(texts)}
    places = np.array([numbers[text] for text in own], np.int64)
    return np.append(of_texts[places].astype(np.float64), unwritten("zero", said is None))


def joined_texts(
    texts: Sequence[Mapping[int, Sequence[str]]], columns_of_shards: Sequence[Int32Array]
) -> dict[int, tuple[str, ...]]:
    """Return, by feature, the texts of all shards, each once, in the order in which one process meets them."""
    found: dict[int, dict[str, None]] = {}
    for of_shard, columns in zip(texts, columns_of_shards, strict=True):
        for column, own in of_shard.items():
            found.setdefault(int(columns[column]), {}).update(dict.fromkeys(own))
    return {column: tuple(listed) for column, listed in found.items()}
