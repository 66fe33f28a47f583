"""Categories in training: each is ordered once by what its values add to a score, and is then binned like a number.

The order is that of the model. In the training rows, the place of a rare value is not that which it has by all queries,
but by those of the other folds of queries: so trees cannot learn the labels of a row from the place of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.binning.binned_features import BinnedDataset, bin_dataset
from lmart.binning.edges import BinEdges
from lmart.data.categories import (
    LARGEST,
    NO_VALUE,
    Categories,
    as_numbers,
    cells_of,
    looked_up,
    placed_rows,
    unwritten,
)
from lmart.data.dataset import Features, RankingDataset, Rows, SparseRows, Unbinned, even_ranges, pieces
from lmart.decimals import shortest
from lmart.errors import DataError, counted, quote
from lmart.gains import Gain
from lmart.kernels.exact.bit_mixing import round_key
from lmart.kernels.ranking.category_effects import UNITS, add_category_slopes
from lmart.kernels.trees import gradient_sampling
from lmart.scoring.scorer import ModelScores
from lmart.settings import AUTO, TrainSettings
from lmart.threads import WorkerPool

FOLDS = 4  # of queries; few, as the places of a value in many folds would tell their labels
STEPS = 10  # of the fit
PRIOR = 1.0  # curvature that pulls an effect towards 0
FREQUENT = 16.0  # curvature from which the place of a value hardly depends on a query


class Effects(NamedTuple):
    """What the values of a category add to a score.

    of_values : float64[n_values], by all queries
    of_others : float64[FOLDS, n_values], by the queries that are not of the fold
    rare      : bool[n_values], whether the two differ much: so do their places in the training rows
    """

    of_values: Float64Array
    of_others: Float64Array
    rare: BoolArray


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """Rows with the numbers of categories in place of their values.

    numbers : by column of the rows, float64[n], the number of each row; nan: missing
    """

    rows: Rows
    numbers: Mapping[int, Float64Array]

    def __len__(self) -> int:
        return len(self.rows)

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop."""
        return numbered_part(self.rows.between(start, stop), start, self.numbers)


def numbered_part(part: SparseRows, first_row: int, numbers: Mapping[int, Float64Array]) -> SparseRows:
    """Return rows with numbers in place of what they hold, those of `NumberedRows.numbers` from first_row on."""
    values = part.values.copy()
    row_of = np.repeat(np.arange(first_row, first_row + len(part)), np.diff(part.offsets))
    for column, of_rows in numbers.items():
        cells = np.flatnonzero(part.columns == column)
        values[cells] = of_rows[row_of[cells]]
    return SparseRows(part.offsets, part.columns, values)


class PlacedCategory(NamedTuple):
    """A category, and the numbers of its values by the codes of `codes_of`, those below 0 counting from the end.

    in_folds : float64[FOLDS, n_values + 2], in the training rows of each fold
    of_model : float64[n_values + 2], as the model numbers them
    """

    category: Categories
    in_folds: Float64Array
    of_model: Float64Array


class TrainingColumns(Features, Protocol):
    """The features of a training set, and the texts that some columns hold; see RankingDataset."""

    @property
    def source(self) -> str:
        """What messages call the data."""

    @property
    def texts(self) -> Mapping[int, tuple[str, ...]]:
        """By feature that is a category of texts, the texts that its numbers in the rows stand for."""


class NumberedCategories(NamedTuple):
    """The categories of a training set.

    categories  : as the model has them
    held_out    : by column, float64[n], what trees are grown from: the numbers of rows, those of rare values by the
                  other folds
    of_model    : by column, the numbers that the model gives these rows, where they differ
    kept        : columns of categories that have other values, or another order, than in the model to go on from
    """

    categories: tuple[Categories, ...]
    held_out: dict[int, Float64Array]
    of_model: dict[int, Float64Array]
    kept: list[int]


def bin_training_set(
    dataset: Unbinned, settings: TrainSettings, pool: WorkerPool, scores: ModelScores | None = None
) -> BinnedDataset:
    """Return a training set in memory in bins, its categories in their order.

    scores : scorer of the model to continue, which sees the rows as trees are grown from them; None: no model

    DataError when a category is no feature of the data, or has a value that is no whole number.
    """
    limits = settings.max_bins, settings.absent, settings.min_docs, settings.seed
    if not settings.categorical:
        refuse_texts(dataset)
        if scores is not None:
            scores.add_rows(dataset.features, dataset)
        return bin_dataset(dataset, *limits, pool)
    of_scores = [] if scores is None else scores.categories_of(dataset)
    columns = sorted({*category_columns(settings, dataset), *(of_known.column for of_known in of_scores)})
    idle = idle_texts(dataset.texts, len(dataset.labels)) if settings.categorical == AUTO else []
    if idle:
        missing = dict.fromkeys(idle, np.full(len(dataset.labels), np.nan))
        dataset = replace(dataset, features=NumberedRows(dataset.features, missing))  # type: ignore[type-var]
    numbered = number_categories(dataset, columns, settings.gain, settings.absent, settings.seed, pool, of_scores)
    rows = NumberedRows(dataset.features, numbered.held_out)
    if scores is not None:
        places = scores.matcher.known_columns
        scores.kept = tuple(int(places[column]) for column in numbered.kept)
        scores.add_rows(rows, dataset, NumberedRows(rows, numbered.of_model) if numbered.of_model else None)
    binned = bin_dataset(replace(dataset, features=rows), *limits, pool)  # type: ignore[type-var]
    edges = with_unseen_bins(binned.features.edges, numbered.categories)
    features, of_model = replace(binned.features, edges=edges), bins_of_model(edges, numbered.of_model)
    return replace(binned, features=features, categories=numbered.categories, model_bins=of_model)


def with_unseen_bins(edges: BinEdges, categories: Sequence[Categories]) -> BinEdges:
    """Return the bins, where missing values of categories that training did not see go with unseen ones."""
    zero_bins = edges.zero_bins.copy()
    by_column = {of_feature.column: of_feature for of_feature in categories}
    for feature, column in enumerate(edges.columns.tolist()):
        if column in by_column:
            unseen = np.array([by_column[column].unseen_number])
            zero_bins[feature] = edges.bins_of(feature, unseen)[0]
    return replace(edges, zero_bins=zero_bins)


def bins_of_model(edges: BinEdges, numbers: Mapping[int, Float64Array]) -> dict[int, UInt8Array]:
    """Return, by feature in bins, the bins of the numbers that the model gives rows, float64[n] by column."""
    return {
        feature: edges.bins_of(feature, numbers[column])
        for feature, column in enumerate(edges.columns.tolist())
        if column in numbers
    }


def placed_dataset(dataset: RankingDataset, categories: Sequence[Categories]) -> RankingDataset:
    """Return a data set whose texts are numbered as the categories of a model of the same features are."""
    columns = np.arange(dataset.n_features, dtype=np.int32)
    rows = placed_rows(dataset.features, dataset.texts, columns, categories, dataset.feature_name)
    return replace(dataset, features=rows.between(0, dataset.n_documents), texts={})


def category_columns(settings: TrainSettings, dataset: TrainingColumns) -> list[int]:
    """Return the columns of categories, ascending.

    DataError when the data has no feature of a name, or a column holds texts and is no category.
    """
    listed = dataset.feature_names or tuple(map(str, dataset.feature_ids.tolist()))
    places = {name: column for column, name in enumerate(listed)}
    for name in settings.categories:
        if name not in places:
            raise DataError(f"there is no feature {quote(name)}, which --categorical names", dataset.source)
    found = {places[name] for name in settings.categories}
    if settings.categorical == AUTO:
        found |= set(dataset.texts)
    refuse_texts(dataset, found)
    return sorted(found)


def refuse_texts(dataset: TrainingColumns, categories: Collection[int] = ()) -> None:
    """Raise DataError when a column holds texts and is no category."""
    for column in sorted(dataset.texts):
        if column not in categories:
            raise DataError(
                f"column {quote(_name_of(dataset, column))} holds texts; name it with --categorical, or leave it out",
                dataset.source,
            )


def idle_texts(texts: Mapping[int, Sequence[str]], n_documents: int) -> list[int]:
    """Return the columns of texts that mostly stand in one row only, as titles do, so that nothing can be learned."""
    return [column for column, listed in sorted(texts.items()) if 2 * len(listed) > n_documents]


def _name_of(dataset: TrainingColumns, column: int) -> str:
    names = dataset.feature_names
    return names[column] if names is not None else str(int(dataset.feature_ids[column]))


def describe_idle(dataset: TrainingColumns, n_documents: int) -> list[str]:
    """Return a line for each column that `idle_texts` finds."""
    return [
        f"{dataset.source}: column {quote(_name_of(dataset, column))} is left out: its values hardly repeat"
        for column in idle_texts(dataset.texts, n_documents)
    ]


def describe_automatic(dataset: TrainingColumns, n_documents: int) -> list[str]:
    """Return a line that names the columns that become categories with 'auto', and one for each that does not."""
    idle = idle_texts(dataset.texts, n_documents)
    taken = [
        f"{quote(_name_of(dataset, column))} ({counted(len(texts), 'value')})"
        for column, texts in sorted(dataset.texts.items())
        if column not in idle
    ]
    what = f"categories: {', '.join(taken)}" if taken else "no column is a category"
    return [f"{dataset.source}: {what}", *describe_idle(dataset, n_documents)]


def number_categories(
    dataset: Unbinned,
    columns: Sequence[int],
    gain: Gain,
    absent: str,
    seed: int,
    pool: WorkerPool,
    known: Sequence[Categories] = (),
) -> NumberedCategories:
    """Return the categories of a training set.

    columns : of the categories
    gain    : of labels
    absent  : 'zero' or 'missing', what a cell that is not written means
    known   : of a model to go on from; where the data would have other values, or order them otherwise, they stay

    DataError when a category has a value that is no whole number.
    """
    of_known = {of_feature.column: of_feature for of_feature in known}
    cells = _cells_of_columns(dataset, columns, absent)
    gains, offsets = gain.scaled(dataset.labels, dataset.query_offsets), dataset.query_offsets
    folds = folds_of_queries(0, len(offsets) - 1, seed)
    row_folds = np.repeat(folds, np.diff(offsets))
    found = NumberedCategories((), {}, {}, [])
    categories = []
    for column in columns:
        texts, earlier = dataset.texts.get(column), of_known.get(column)
        as_texts = earlier is not None and earlier.of_texts
        if texts is None and as_texts and not np.isnan(cells[column]).all():
            what = f"feature {quote(_name_of(dataset, column))} is a category of texts in the model"
            raise DataError(f"{what}, but has numbers; give its texts, in a column of a table", dataset.source)
        if texts is not None and not as_texts and (said := as_numbers(texts)) is not None:
            cells[column], texts = looked_up(np.append(said, 0.0), cells[column]), None
        held = distinct_values(cells[column])
        if texts is None:
            refuse_fractions(held, dataset, column)
        else:
            held = held[held >= 0.0]
        codes = codes_of(cells[column], held)
        counts = np.bincount(codes[codes >= 0], minlength=len(held))
        effects = fit_effects(len(held), LocalSlopes(codes, gains, offsets, folds, pool).sums)
        placed = place_values(column, held, counts, effects, texts)
        made = placed.category
        if earlier is not None and (earlier.values, earlier.unseen) != (made.values, made.unseen):
            of_rows = (
                cells[column]
                if texts is None
                else looked_up(np.append(earlier.places_of(texts), NO_VALUE), cells[column])
            )
            categories.append(earlier)
            found.held_out[column] = earlier.find(of_rows)[0]
            found.kept.append(column)
            continue
        categories.append(made)
        numbers, of_model = placed.in_folds[row_folds, codes], placed.of_model[codes]
        found.held_out[column] = numbers
        if not np.array_equal(numbers, of_model, equal_nan=True):
            found.of_model[column] = of_model
    return found._replace(categories=tuple(categories))


def _cells_of_columns(dataset: Unbinned, columns: Sequence[int], absent: str) -> dict[int, Float64Array]:
    """Return what the rows hold of each column, float64[n], nan where that is missing."""
    n = len(dataset.labels)
    cells = {column: np.full(n, unwritten(absent, column in dataset.texts)) for column in columns}
    column_map = np.arange(len(dataset.feature_ids), dtype=np.int32)
    for start, _, part in pieces(dataset.features, len(dataset.feature_ids)):
        for column in columns:
            places = cells_of(part, column_map, column)
            rows = np.searchsorted(part.offsets, places, "right") - 1
            cells[column][start + rows] = part.values[places]
    return cells


def folds_of_queries(first: int, n_queries: int, seed: int) -> UInt8Array:
    """Return the folds of queries first, first + 1, ..., uint8[n_queries]: by its number and the seed alone."""
    mixed = np.empty(n_queries, np.uint64)
    numbers = np.arange(first, first + n_queries, dtype=np.int32)
    gradient_sampling.mix_each(numbers, np.uint64(round_key(seed, 0)), mixed)
    return (mixed % np.uint64(FOLDS)).astype(np.uint8)


def distinct_values(cells: Float64Array) -> Float64Array:
    """Return the values that rows hold, each once, ascending."""
    held: Float64Array = np.unique(cells[~np.isnan(cells)])
    return held


def codes_of(cells: Float64Array, held: Float64Array) -> Int32Array:
    """Return the place of each row's value among those that are held, ascending, int32[n]; -1: missing, -2: no text."""
    places = np.searchsorted(held, cells)
    seen = np.append(held, np.nan)[places] == cells
    return np.where(seen, places, np.where(np.isnan(cells), -1, -2)).astype(np.int32)


def refuse_fractions(held: Float64Array, dataset: TrainingColumns, column: int) -> None:
    """Raise DataError when a value of a category is no whole number."""
    wrong = held[(np.floor(held) != held) | (np.abs(held) > LARGEST)]
    if len(wrong):
        what = (
            f"feature {quote(_name_of(dataset, column))} is a category, but has the value {shortest(float(wrong[0]))}"
        )
        raise DataError(f"{what}; categories are whole numbers up to 2^53, or texts", dataset.source)


def fit_effects(n_values: int, sums_at: Callable[[Float64Array], Int64Array]) -> Effects:
    """Return what each value of a category adds to a score, fitted to the gains of queries.

    sums_at : returns the sums of `add_category_slopes` over all queries, int64[FOLDS, 3, n_values], at such effects

    The cost is the cross entropy of the gains of each query, as that of a linear ranker, plus PRIOR / 2 times the sum
    of squares. Steps divide by sums of p, which no curvature is above, so that they never overshoot. Without the
    queries of a fold, an effect is one step of Newton's method from that of all queries: so is a leave-one-out estimate
    in Rad and Maleki 2020.
    """
    effects = np.zeros(n_values)
    for _ in range(STEPS):
        sums = sums_at(effects).sum(axis=0) / UNITS
        effects += (sums[0] - PRIOR * effects) / (sums[1] + PRIOR)
    by_fold = sums_at(effects)
    slopes, curvatures = ((by_fold.sum(axis=0) - by_fold) / UNITS)[:, [0, 2]].swapaxes(0, 1)
    of_others = effects + (slopes - PRIOR * effects) / (curvatures + PRIOR)
    curvature = by_fold[:, 2].sum(axis=0) / UNITS
    return Effects(effects, of_others, (curvature > 0.0) & (curvature < FREQUENT))


class LocalSlopes(NamedTuple):
    """Rows in memory whose categories are fitted.

    codes : int32[n], as of `codes_of`
    gains : float64[n]      folds : uint8[n_queries]
    """

    codes: Int32Array
    gains: Float64Array
    query_offsets: Int64Array
    folds: UInt8Array
    pool: WorkerPool

    def sums(self, effects: Float64Array) -> Int64Array:
        """Return the sums of `add_category_slopes` over all queries, int64[FOLDS, 3, n_values]."""
        codes, gains, offsets, folds, pool = self
        own = [np.zeros((FOLDS, 3, len(effects)), np.int64) for _ in range(pool.threads)]
        calls = [(codes, gains, offsets, folds, effects, a, b) for a, b in even_ranges(offsets)]
        pool.run(add_category_slopes, calls, own[: max(1, min(len(own), len(calls)))])
        return sum(own[1:], own[0])


def place_values(
    column: int, held: Float64Array, counts: Int64Array, effects: Effects, texts: Sequence[str] | None
) -> PlacedCategory:
    """Return a category in the order of its effects, with the numbers of its values.

    held   : float64[n_values], what rows hold, ascending: whole numbers, or places in `texts`
    counts : int64[n_values], rows of each
    """
    made, order = _in_order(column, held, counts, effects, texts)
    usual = np.empty(len(order))
    usual[order] = made.numbers
    in_folds = np.where(effects.rare, _numbers_in_folds(made, order, effects), usual)
    others = np.array([made.unseen_number, np.nan])
    return PlacedCategory(made, np.column_stack([in_folds, np.tile(others, (FOLDS, 1))]), np.append(usual, others))


def _in_order(
    column: int, held: Float64Array, counts: Int64Array, effects: Effects, texts: Sequence[str] | None
) -> tuple[Categories, Int64Array]:
    """Return a category in the order of its effects, and that order of its values, int64[n_values].

    Values of the same effect go by how many rows they have, most first: so do all values of a category that is the same
    in all rows of a query.
    """
    order = np.lexsort((held, -counts, effects.of_values))
    unseen = int(np.searchsorted(effects.of_values[order], 0.0, "right"))
    values = tuple(map(int, held[order].tolist()))
    return Categories(column, values if texts is None else tuple(texts[number] for number in values), unseen), order


def _numbers_in_folds(categories: Categories, order: Int64Array, effects: Effects) -> Float64Array:
    """Return the number of each value by the queries that are not of each fold, float64[FOLDS, n_values].

    It is a place in the order of all, between two values where it is none of theirs.
    """
    in_order = np.insert(effects.of_values[order], categories.unseen, 0.0)
    places = np.searchsorted(in_order, effects.of_others)
    between = in_order[np.minimum(places, len(order))] != effects.of_others
    found = places - 0.5 * between
    found[effects.of_others == 0.0] = categories.unseen
    numbers: Float64Array = found - categories.unseen + categories.unseen_number
    return numbers
