"""Categories of a model: the order of a feature's values, in which trees split them like numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.data.dataset import Rows, SparseRows
from lmart.decimals import shortest
from lmart.errors import ArrayError, quote

NO_WORDS = ("", "na", "null")  # of fields without a value, in small letters
MISSING = frozenset({*NO_WORDS, "nan"})
LARGEST = 2**53  # whole numbers up to it are exact
NO_VALUE = 0.5  # what rows hold of a text that is no value of a category


class CategoryTexts:
    """The texts of one column, numbered in the order of first appearance.

    known : the number of each text that a model has, -1 for all others; None: those that appear are numbered
    """

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        self._known = known
        self._numbers: dict[str, int] = {}

    def number(self, texts: Sequence[str | None]) -> Float64Array:
        """Return the number of each text, float64[n], nan where there is none: as in a column of numbers."""
        there = [None if text is None or text.lower() in MISSING else text for text in texts]
        if self._known is not None:
            numbers = self._known
            return np.array([np.nan if text is None else numbers.get(text, -1) for text in there], np.float64)
        own = self._numbers
        return np.array([np.nan if text is None else own.setdefault(text, len(own)) for text in there], np.float64)

    @property
    def found(self) -> tuple[str, ...]:
        """The texts that the numbers stand for, in their order; -1 stands for none of them."""
        return tuple(self._numbers if self._known is None else sorted(self._known, key=self._known.__getitem__))


@dataclass(frozen=True, eq=False)
class Categories:
    """The values of a feature that is a category, in the order in which trees split them.

    A tree compares the number of a value, not the value: numbers count the values in their order, with a place between
    them for values that training did not see. What a row does not name has the number 0.

    column : position in Ensemble.feature_ids
    values : whole numbers or texts, each once, in the order of their numbers. In rows, a text is its place in `values`,
             or any other number where it is none of them
    unseen : how many of the values come before those that training did not see
    """

    column: int
    values: tuple[int, ...] | tuple[str, ...]
    unseen: int

    @cached_property
    def of_texts(self) -> bool:
        """Whether the values are texts."""
        return any(isinstance(value, str) for value in self.values)

    @cached_property
    def numbers(self) -> Float64Array:
        """The number of each value, float64[n_values], ascending whole numbers."""
        places = np.arange(len(self.values))
        numbers: Float64Array = (places + (places >= self.unseen) - self._zero).astype(np.float64)
        return numbers

    @property
    def unseen_number(self) -> float:
        """The number of values that training did not see."""
        return float(self.unseen - self._zero)

    @cached_property
    def _zero(self) -> int:
        """The place that has the number 0, unseen values counted: that of the value 0, else that of unseen ones."""
        if self.of_texts or 0 not in self.values:
            return self.unseen
        place = self.values.index(0)
        return place + (place >= self.unseen)

    @cached_property
    def held(self) -> Float64Array:
        """What rows hold of each value, float64[n_values]: the whole number, or the place of a text."""
        held = np.arange(len(self.values)) if self.of_texts else np.array(self.values, np.int64)
        return held.astype(np.float64)

    @cached_property
    def by_value(self) -> tuple[Float64Array, Float64Array]:
        """What rows hold of each value, ascending, and its number, float64[n_values] each."""
        order = np.argsort(self.held)
        return self.held[order], self.numbers[order]

    def find(self, cells: Float64Array) -> tuple[Float64Array, BoolArray]:
        """Return the numbers of what rows hold, float64[n], nan where missing, and which of it training did not see."""
        held, numbers = self.by_value
        if not len(held):
            return np.where(np.isnan(cells), np.nan, self.unseen_number), ~np.isnan(cells)
        places = np.minimum(np.searchsorted(held, cells), len(held) - 1)
        seen = held[places] == cells
        missing = np.isnan(cells)
        return np.where(missing, np.nan, np.where(seen, numbers[places], self.unseen_number)), ~(seen | missing)

    def places_of(self, texts: Sequence[str]) -> Float64Array:
        """Return what rows are to hold of each text, float64[n]: its place in `values`, or the number that it says."""
        if not self.of_texts:
            return np.array([_number_in(text) for text in texts], np.float64)
        places = {value: place for place, value in enumerate(self.values)}
        return np.array([places.get(text, -1) for text in texts], np.float64)

    def split(self, bounds: Sequence[float]) -> tuple[BoolArray, bool]:
        """Return which values go left at a node, bool[n_values], and whether unseen ones do.

        bounds : its threshold and further bounds, ascending
        """
        goes_left = np.searchsorted(np.array(bounds), np.append(self.numbers, self.unseen_number)) % 2 == 0
        return goes_left[:-1], bool(goes_left[-1])


def unwritten(absent: str, of_texts: bool) -> float:
    """Return what a row holds of a category that it does not name: with 'zero', 0, or a text that is none of them."""
    return np.nan if absent == "missing" else -1.0 if of_texts else 0.0


def looked_up(table: Float64Array, cells: Float64Array) -> Float64Array:
    """Return the entry of each number, float64[n]; nan stays."""
    found = cells.copy()
    there = ~np.isnan(cells)
    found[there] = table[cells[there].astype(np.int64)]
    return found


def as_numbers(texts: Sequence[str]) -> Float64Array | None:
    """Return the whole numbers that texts say, float64[n]; None when one says none."""
    try:
        numbers = np.array(list(map(float, texts)), np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() and (np.floor(numbers) == numbers).all() else None


def _number_in(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return NO_VALUE


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """Rows whose texts are numbered as the categories of a model are.

    tables  : by column, what rows are to hold in place of each number, and of -1, float64[n_texts + 1]
    numbers : by column that should hold texts but does not, the name of its feature: numbers in it are refused
    """

    rows: Rows
    tables: Mapping[int, Float64Array]
    numbers: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.rows)

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop; ArrayError when one has a number in place of a text."""
        part = self.rows.between(start, stop)
        for column, name in self.numbers.items():
            refuse_numbers(part, column, name)
        values = part.values.copy()
        for column, table in self.tables.items():
            cells = part.columns == column
            values[cells] = looked_up(table, values[cells])
        return SparseRows(part.offsets, part.columns, values)


def placed_rows(
    rows: Rows,
    texts: Mapping[int, Sequence[str]],
    column_map: Int32Array,
    categories: Sequence[Categories],
    name_of: Callable[[int], str],
) -> Rows:
    """Return the rows of a data set with its own numbers of texts as a model takes them.

    texts      : by column of the rows, the texts that its numbers stand for
    column_map : int32[number of columns], the model's feature of each column of the rows, -1 for none
    name_of    : returns the name of a feature of the model

    ArrayError when a feature has texts and is no category of the model; so do the rows, when they are read, where a
    category of texts has a number.
    """
    by_feature = {of_feature.column: of_feature for of_feature in categories}
    tables = {}
    for column, listed in texts.items():
        feature = int(column_map[column])
        if feature in by_feature:
            tables[column] = np.append(by_feature[feature].places_of(listed), NO_VALUE)
        elif feature >= 0:
            what = f"feature {quote(name_of(feature))} holds texts, but is no category of the model"
            raise ArrayError(f"{what}; give the numbers that the model was trained on")
    of_texts = {feature for feature, of_feature in by_feature.items() if of_feature.of_texts}
    numbers = {
        column: name_of(feature)
        for column, feature in enumerate(column_map.tolist() if of_texts else ())
        if feature in of_texts and column not in texts
    }
    return PlacedRows(rows, tables, numbers) if tables or numbers else rows


def refuse_numbers(rows: SparseRows, column: int, name: str) -> None:
    """Raise ArrayError when a row has a number in a column that stands for a category of texts, which has a name."""
    values = rows.values[rows.columns == column]
    numbers = values[~np.isnan(values)]
    if len(numbers):
        what = f"feature {quote(name)} is a category of texts, but has the number {shortest(float(numbers[0]))}"
        raise ArrayError(f"{what}; give its texts, in a column of a table or DataFrame")


def with_numbers(
    rows: SparseRows, column_map: Int32Array, categories: Sequence[Categories], unseen: Counter[int] | None = None
) -> SparseRows:
    """Return rows with the numbers of categories in place of their values.

    column_map : int32[number of columns], the model's feature of each column of the rows, -1 for none
    unseen     : by feature, to which the rows with a value that training did not see are added; None: not counted
    """
    values = None
    for of_feature in categories:
        cells = cells_of(rows, column_map, of_feature.column)
        if len(cells):
            values = rows.values.copy() if values is None else values
            values[cells], is_unseen = of_feature.find(rows.values[cells])
            if unseen is not None and of_feature.values:
                unseen[of_feature.column] += int(is_unseen.sum())
    return rows if values is None else SparseRows(rows.offsets, rows.columns, values)


def cells_of(rows: SparseRows, column_map: Int32Array, column: int) -> Int64Array:
    """Return the cells of rows that are of a feature of the model, int64[k]."""
    of_columns = np.flatnonzero(column_map == column)
    if not len(of_columns):
        return np.zeros(0, np.int64)
    return np.flatnonzero(rows.columns == of_columns[0])
