"""Features that Python programs train on: rows to be read piece by piece, and what each column is called."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import cast

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import Rows
from lmart.data.feature_names import has_control, is_index
from lmart.data.frames import Frame, as_floats, column_labels, is_sparse, numbers_of_column, rows_of_sparse
from lmart.data.row_sources import array_pieces, column_pieces
from lmart.errors import ArrayError, quote


@dataclass(frozen=True)
class GivenFeatures:
    """The rows of features, with the columns by ascending id.

    rows     : n rows
    ids      : int64[m], ascending
    names    : m texts; None: features have indices only
    by_label : whether the columns go by labels of their own, as those of a DataFrame do
    """

    rows: Rows
    ids: Int64Array
    names: tuple[str, ...] | None
    by_label: bool


def features_of(features: object, feature_names: Sequence[str] | None = None) -> GivenFeatures:
    """Return the features of an array, a DataFrame, a sparse matrix or lists.

    features      : n rows and m columns
    feature_names : what each column is called; None: as a DataFrame says, else 1, 2, ..., m

    Columns with names go by them. When all names are whole numbers, as in LETOR text, features have these as indices
    and no names, as in CSV; the columns 0, 1, 2, ... of a DataFrame without names are 1, 2, ..., as those of an array.
    ArrayError when features have another shape or hold no numbers, or names are missing, repeated or no text.
    """
    refuse_path(features)
    labels = None if is_sparse(features) else column_labels(features)
    if labels is not None:
        columns = [numbers_of_column(cast(Frame, features)[label], f"column {quote(str(label))}") for label in labels]
        rows, m = _rows_of_columns(columns, labels, len(cast(Frame, features))), len(labels)
    elif is_sparse(features):
        rows, m = rows_of_sparse(features)
    else:
        array = features if isinstance(features, np.ndarray) and features.dtype != object else as_floats(features, "X")
        if array.ndim != 2:
            raise ArrayError(f"X has {array.ndim} dimensions; give rows x columns (reshape it, or [row] for one row)")
        rows, m = array_pieces(array), array.shape[1]
    if feature_names is not None:
        labels = list(feature_names)
        if len(labels) != m:
            raise ArrayError(f"there are {len(labels)} feature_names, but X has {m} columns; name each")
    numbered = labels is None or (all(isinstance(one, Integral) for one in labels) and labels == list(range(m)))
    if numbered or labels is None:
        return GivenFeatures(rows, np.arange(1, m + 1), None, False)
    return _named(rows, [_checked_name(one) for one in labels], labels)


def refuse_path(features: object) -> None:
    """Raise ArrayError when features are the path of a file.

    features : as a program gives them
    """
    if isinstance(features, str | bytes) or hasattr(features, "__fspath__"):
        raise ArrayError(f"X is a path; give lmart.read({str(features)!r})")


def _named(rows: Rows, names: list[str], labels: Sequence[Hashable]) -> GivenFeatures:
    """Return features with names, or with the indices that all names are."""
    repeated = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if repeated:
        raise ArrayError(f"two columns of X are named {quote(min(repeated))}; rename one")
    if not all(map(is_index, names)):
        return GivenFeatures(rows, np.arange(1, len(names) + 1), tuple(names), True)
    ids = np.array([int(name) for name in names], np.int64)
    if (np.diff(ids) > 0).all():
        return GivenFeatures(rows, ids, None, True)
    what = "the columns of X are numbered, but not in ascending order"
    raise ArrayError(f"{what}; sort them: X[sorted(X.columns, key=int)]")


def _checked_name(label: Hashable) -> str:
    name = str(label)
    if not name or has_control(name):
        raise ArrayError(f"the column name {quote(name)} is empty or holds a control character; rename it")
    return name


def _rows_of_columns(columns: Sequence[Float64Array], labels: Sequence[Hashable], n: int) -> Rows:
    for column, label in zip(columns, labels, strict=True):
        if column.shape != (n,):
            what = f"column {quote(str(label))} of X has the shape {column.shape}"
            raise ArrayError(f"{what}; give columns of one number a row, all of the same length")
    return column_pieces(columns, n)
