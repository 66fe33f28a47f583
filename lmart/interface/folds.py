"""Folds as Python programs give them: a number, or which fold each query is in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lmart.data.dataset import RankingDataset
from lmart.data.from_python import cells_of
from lmart.errors import ArrayError, SettingsError, counted, shown
from lmart.training.folds import Folds, common_values, dealt_groups, named_folds, values_of_queries


def check_folds(folds: object, fold_by: object) -> None:
    """Raise SettingsError when a number of folds is below 2, or `fold_by` is given without a number."""
    if fold_by is not None and _number(folds) is None:
        raise SettingsError("fold_by deals queries to a number of folds; give folds a number")
    if isinstance(folds, str | bytes | float) or ((number := _number(folds)) is not None and number < 2):
        raise SettingsError(f"folds is {shown(folds)}; give a number from 2 up, or the fold of each query")


def folds_of(folds: object, fold_by: object, judged: RankingDataset, seed: int) -> int | Folds:
    """Return folds for `cross_validate`.

    folds   : their number, or the name of the fold of each query: a dict by query id, or one a query, or one a row
    fold_by : in the same forms, a value of each query; those of equal values are in the same fold. None: there is none
    judged  : the documents
    seed    : by which queries or values are assigned
    ArrayError when there are others than queries or rows; DataError as `named_folds` and `dealt_groups`.
    """
    number = _number(folds)
    if number is None:
        return named_folds(_of_queries(folds, "fold", "folds", judged), "folds")
    if fold_by is None:
        return number
    return dealt_groups(_of_queries(fold_by, "value", "fold_by", judged), number, seed, "fold_by")


def _number(folds: object) -> int | None:
    return int(folds) if isinstance(folds, int | np.integer) and not isinstance(folds, bool) else None


def _of_queries(given: object, what: str, argument: str, judged: RankingDataset) -> list[str]:
    """Return the text that each query has."""
    if isinstance(given, Mapping):
        return values_of_queries(judged, {str(key): str(value) for key, value in given.items()}, what, argument)
    cells = cells_of(given, argument)
    n, n_queries = judged.n_documents, judged.n_queries
    if len(cells) not in (n, n_queries):
        has = f"{counted(n_queries, 'query')} and {counted(n, 'row')}"
        entries = counted(len(cells), "entry")
        raise ArrayError(f"{argument} has {entries}, but X has {has}; give one for each of either")
    if len(cells) == n_queries:
        return list(map(str, cells.tolist()))
    rows = cells if judged.input_rows is None else cells[judged.input_rows]
    return common_values(judged, list(map(str, rows.tolist())), f"{what} of {argument}")
