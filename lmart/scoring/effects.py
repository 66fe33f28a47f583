"""What the values of a feature do to scores: partial dependence, and contributions by value, on a sample of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.categories import Categories
from lmart.data.dataset import SparseRows, take_rows
from lmart.decimals import shortest
from lmart.scoring.explain import Explainer
from lmart.scoring.importance import CELLS
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

POINTS = 40  # values of a feature that are tried
SHOWN_ROWS = 400  # whose contributions are given one by one


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """Rows with the features of a model that their columns stand for.

    column_map : int32[number of columns], the model's feature of each column, -1 for none
    """

    rows: SparseRows
    column_map: Int32Array

    def values_of(self, feature: int, absent: float) -> Float64Array:
        """Return the value of a feature in each row, float64[n], `absent` where it is not written."""
        values = np.full(len(self.rows), absent)
        cells = np.flatnonzero(self.column_map[self.rows.columns] == feature)
        values[np.searchsorted(self.rows.offsets, cells, "right") - 1] = self.rows.values[cells]
        return values

    def spaced(self, n: int) -> MatchedRows:
        """Return at most `n` of the rows, evenly spaced."""
        if len(self.rows) <= n:
            return self
        places = np.linspace(0, len(self.rows) - 1, n).round().astype(np.int64)
        return MatchedRows(take_rows(self.rows, places), self.column_map)


@dataclass(frozen=True, eq=False)
class FeatureEffect:
    """What the values of a feature do to the scores of some rows.

    values     : float64[n], ascending, those that were tried
    scores     : float64[n], the mean score when all rows have the value
    missing    : the mean score when it is missing in all rows; None: no row misses it
    deciles    : float64[11], of its values, the smallest and the largest among them
    row_values, contributions : float64[m], its value in some rows, and its contribution to their scores; empty where
                 the model does not say enough of its trees
    categories : the values as the data has them, where they are categories, whose order means nothing; else empty
    """

    feature: str
    values: Float64Array
    scores: Float64Array
    missing: float | None
    deciles: Float64Array
    row_values: Float64Array
    contributions: Float64Array
    categories: Sequence[str] = ()


def partial_dependence(
    scorer: Scorer, matched: MatchedRows, feature: int, values: Sequence[float], pool: WorkerPool | None = None
) -> list[float]:
    """Return the mean score of the rows when all of them have each of some values of a feature (nan: missing).

    feature : position in the model
    Source: Friedman 2001, section 8.2. Each row gets a further cell, in a column of its own, which the feature then
    is; so no row is made dense, however many features there are.
    """
    rows, n_columns = matched.rows, len(matched.column_map)
    ends = rows.offsets[1:]
    columns = np.insert(rows.columns, ends, np.int32(n_columns))
    cells = np.insert(rows.values, ends, 0.0)
    extended = SparseRows(rows.offsets + np.arange(len(rows.offsets)), columns, cells)
    column_map = np.append(np.where(matched.column_map == feature, -1, matched.column_map), feature).astype(np.int32)
    means = []
    for value in values:
        cells[extended.offsets[1:] - 1] = value
        means.append(math.fsum(scorer.score(extended, column_map, pool)) / len(rows))
    return means


def tried_values(present: Float64Array, points: int = POINTS) -> Float64Array:
    """Return values of a feature to try, ascending: its quantiles, evenly spaced.

    present : float64[n], its values in the rows, ascending, without missing ones
    """
    return np.unique(_quantiles(present, points))


def tried_categories(present: Float64Array, points: int = POINTS) -> Float64Array:
    """Return categories to try, ascending: those that most rows have."""
    values, counts = np.unique(present, return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:points]])


def feature_effects(
    scorer: Scorer, explainer: Explainer | None, matched: MatchedRows, features: Sequence[int], pool: WorkerPool
) -> list[FeatureEffect]:
    """Return what the values of features do to the scores of the rows, of those with a value in any row.

    explainer : of the same model; None: it does not say enough of its trees
    features  : positions in the model
    """
    ensemble = scorer.ensemble
    absent = ensemble.absent_value
    some = matched.spaced(SHOWN_ROWS)
    contributions = np.zeros((0, len(features)))
    if explainer is not None:
        contributions = sampled_contributions(explainer, some, np.array(features, np.int64), pool)
    effects = []
    for place, feature in enumerate(features):
        every = matched.values_of(feature, absent)
        present = np.sort(every[~np.isnan(every)])
        if not len(present):
            continue
        category = next((own for own in ensemble.categories if own.column == feature), None)
        tried = tried_values(present) if category is None else tried_categories(present)
        has_missing = len(present) < len(every)
        scores = partial_dependence(scorer, matched, feature, [*tried, *[math.nan] * has_missing], pool)
        own = some.values_of(feature, absent)[: len(contributions)]
        shown = ~np.isnan(own)
        effects.append(
            FeatureEffect(
                ensemble.feature_name(feature),
                tried,
                np.array(scores[: len(tried)]),
                scores[-1] if has_missing else None,
                _quantiles(present, 11),
                own[shown],
                contributions[shown, place],
                () if category is None else _category_names(category, tried),
            )
        )
    return effects


def _category_names(category: Categories, held: Float64Array) -> list[str]:
    """Return what the data calls the categories that rows hold as numbers."""
    if not category.of_texts:
        return list(map(shortest, held.tolist()))
    texts = dict(enumerate(category.values))
    return [str(texts.get(int(place), "another")) for place in held]


def _quantiles(ascending: Float64Array, n: int) -> Float64Array:
    return ascending[np.linspace(0, len(ascending) - 1, n).round().astype(np.int64)]


def sampled_contributions(
    explainer: Explainer, matched: MatchedRows, features: Int64Array, pool: WorkerPool
) -> Float64Array:
    """Return the contributions of some features to the scores of the rows, float64[n, n_some]."""
    rows = matched.rows
    step = max(1, CELLS // max(1, explainer.ensemble.n_features))
    parts = [np.zeros((0, len(features)))]
    for start in range(0, len(rows), step):
        part = rows.between(start, min(start + step, len(rows)))
        parts.append(explainer.explain(part, matched.column_map, pool)[:, features])
    return np.concatenate(parts)
