"""Features that Python programs give, to train on or to score: columns with their names, and rows in pieces.

Arrays, DataFrames, Tables and sparse matrices are known by what they can do, not by class. Rows are converted piece by
piece, so that no second copy of all values is made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import Features, Rows, SparseRows
from lmart.data.feature_names import are_indices, has_control
from lmart.data.python_values import NUMBERS, array_of, as_floats
from lmart.errors import ArrayError, counted, first_repeated, quote

_CATEGORIES = ("category", "categorical", "enum", "dictionary")  # how types of categories begin, in small letters
_MOST_COLUMNS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class GivenFeatures:
    """Columns by ascending id, and how their rows are read.

    ids      : int64[m], ascending
    names    : m texts; None: features have indices only
    by_label : whether columns have labels, as those of a DataFrame do; else they go by their places
    order    : int64[m], which column, as given, each feature is
    read     : returns rows of the columns with these places among `ids`, int64[k], in this order; ArrayError when they
               hold no numbers
    """

    ids: Int64Array
    names: tuple[str, ...] | None
    by_label: bool
    order: Int64Array
    read: Callable[[Int64Array], Rows]


def features_of(features: Any, what: str = "X", feature_names: Sequence[object] | None = None) -> GivenFeatures:
    """Return the features of an array, a DataFrame, a sparse matrix or lists.

    features      : n rows and m columns
    what          : what to call them in messages
    feature_names : the label of each column; None: as a DataFrame says, else there are none

    Columns go by their labels. When all labels are whole numbers, features have these as indices and no names, as in a
    header of CSV; without labels they are 1, 2, ..., m.
    ArrayError when features have another shape or hold no numbers, or labels are missing, repeated or no names.
    """
    refuse_path(features, what)
    own = column_labels(features, what)
    labels: Sequence[object] | None = own
    if own is not None:
        features = _as_sparse(features)
    if _is_sparse(features):
        rows, m = _sparse_rows(features, what)
        read: Callable[[Int64Array], Rows] = partial(_take_columns, rows, m)
    elif own is not None:
        m, read = len(own), _reader_of_frame(features, own, what)
    else:
        array = array_of(features, what)
        array = array if array.dtype.kind in NUMBERS else as_floats(array, what)
        if array.ndim != 2:
            dimensions = counted(array.ndim, "dimension")
            raise ArrayError(f"{what} has {dimensions}; give rows x columns (reshape it, or [row] for one row)")
        m = array.shape[1]
        read = partial(_columns_of_array, array, what)
    if feature_names is not None:
        labels = list(feature_names)
        if len(labels) != m:
            names = counted(len(labels), "column is", "columns are")
            raise ArrayError(f"{names} named, but {what} has {counted(m, 'column')}; name each")
    if labels is None:
        return GivenFeatures(np.arange(1, m + 1), None, False, np.arange(m), read)
    return _labelled([_checked_name(label) for label in labels], read, what)


def refuse_path(features: object, what: str = "X") -> None:
    """Raise ArrayError when features are the path of a file."""
    if isinstance(features, str | bytes) or hasattr(features, "__fspath__"):
        raise ArrayError(f"{what} is a path; give lmart.read({str(features)!r})")


def refuse_other_width(n_columns: int, others: Features, source: str) -> None:
    """Raise ArrayError when columns without labels are more or fewer than the features that they stand for."""
    if n_columns != len(others.feature_ids):
        due = len(others.feature_ids)
        what = f"{source} has {counted(n_columns, 'column')}, where {due} {'is' if due == 1 else 'are'} due"
        raise ArrayError(f"{what}; give the same features in the same order")


def names_beside(ids: Int64Array, names: tuple[str, ...] | None, others: Features | None) -> tuple[str, ...] | None:
    """Return the names that columns with labels have beside features with names: numbers too, if some are among these.

    ids    : int64[m], of the columns
    names  : of the columns; None: they have indices only
    others : the features; None: there are none
    """
    if names is None and others is not None and others.feature_names is not None:
        texts = tuple(map(str, ids.tolist()))
        return None if set(texts).isdisjoint(others.feature_names) else texts
    return names


def column_labels(features: object, what: str) -> list[Hashable] | None:
    """Return the labels of the columns of a DataFrame (pandas, polars) or Table (pyarrow), None of anything else.

    ArrayError when the table is yet to be computed.
    """
    if hasattr(features, "collect"):  # before its columns are asked for, which may be work
        raise ArrayError(f"{what} is a {type(features).__name__}, not computed yet; give what its collect() returns")
    labels = getattr(features, "column_names", getattr(features, "columns", None))
    if labels is None or not hasattr(features, "__getitem__") or _is_sparse(features):
        return None
    return list(labels)


def _is_sparse(features: object) -> bool:
    return hasattr(features, "tocsr") or all(hasattr(features, name) for name in ("indptr", "indices", "data", "shape"))


def _labelled(names: Sequence[str], read: Callable[[Int64Array], Rows], what: str) -> GivenFeatures:
    """Return features with names, or with the indices that all names are."""
    if (repeated := first_repeated(names)) is not None:
        raise ArrayError(f"two columns of {what} are the same feature, {quote(repeated)}; rename one")
    if not are_indices(names):
        return GivenFeatures(np.arange(1, len(names) + 1), tuple(names), True, np.arange(len(names)), read)
    ids = np.array([int(name) for name in names], np.int64)
    order = np.argsort(ids)
    return GivenFeatures(ids[order], None, True, order, lambda places: read(order[places]))


def _checked_name(label: object) -> str:
    name = str(label)
    if not name or has_control(name):
        raise ArrayError(f"the column name {quote(name)} is empty or holds a control character; rename it")
    return name


class DensePieces:
    """Every cell of n rows and m columns; pieces of equal size share the array of their columns.

    n, m    : rows and columns
    numbers : called with the first row and the one after the last, returns their cells, float64[k, m]
    """

    def __init__(self, n: int, m: int, numbers: Callable[[int, int], Float64Array]) -> None:
        self._n, self._m, self._numbers = n, m, numbers
        self._columns: Int32Array = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return self._n

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop; values of a C-ordered float64 array are a view of it."""
        k = stop - start
        columns = self._columns  # which another thread may replace
        if len(columns) < k * self._m:
            columns = self._columns = np.tile(np.arange(self._m, dtype=np.int32), k)
        values = np.ascontiguousarray(self._numbers(start, stop)).reshape(-1)
        return SparseRows(np.arange(k + 1, dtype=np.int64) * self._m, columns[: k * self._m], values)


def _columns_of_array(array: npt.NDArray[Any], what: str, places: Int64Array) -> Rows:
    """Return the rows of columns of an array of numbers, of any type and in any order."""
    if np.array_equal(places, np.arange(array.shape[1])):
        return DensePieces(len(array), len(places), lambda start, stop: as_floats(array[start:stop], what))
    return DensePieces(len(array), len(places), lambda start, stop: as_floats(array[start:stop, places], what))


def _reader_of_frame(frame: Any, labels: Sequence[Hashable], what: str) -> Callable[[Int64Array], Rows]:
    """Return what reads columns of a DataFrame; each is converted once, and only when it is asked for."""
    n = len(frame)

    @cache
    def column(place: int) -> Callable[[int, int], npt.NDArray[Any]]:
        name = f"column {quote(str(labels[place]))}"
        found = _numbers_of_column(_column_at(frame, labels, place), name)
        if found.shape != (n,):
            raise ArrayError(f"{name} of {what} has the shape {found.shape}; give one number for each row")
        if isinstance(found, np.ndarray):
            return lambda start, stop: cast(npt.NDArray[Any], found[start:stop])
        return lambda start, stop: as_floats(found.iloc[start:stop], name)

    def read(places: Int64Array) -> Rows:
        columns = [column(place) for place in places.tolist()]

        def numbers(start: int, stop: int) -> Float64Array:
            out = np.empty((stop - start, len(columns)))
            for place, cells in enumerate(columns):
                out[:, place] = cells(start, stop)
            return out

        return DensePieces(n, len(columns), numbers)

    return read


def _column_at(frame: Any, labels: Sequence[Hashable], place: int) -> Any:
    """Return a column of a DataFrame by its place where that can be asked for: a label may repeat, or be a function."""
    if hasattr(frame, "iloc"):  # pandas
        return frame.iloc[:, place]
    if hasattr(frame, "column"):  # pyarrow
        return frame.column(place)
    return frame[labels[place]]


def _numbers_of_column(column: Any, what: str) -> Any:
    """Return a column as an array of numbers, or as it is if it is sparse: dense, all such could be too large."""
    dtype = getattr(column, "dtype", None) or getattr(column, "type", None)
    of_numpy = isinstance(dtype, np.dtype)
    if not of_numpy and str(dtype).lower().startswith(_CATEGORIES):
        raise ArrayError(f"{what} holds categories; turn them into numbers, as by .astype(float), or drop the column")
    kind = getattr(dtype, "kind", "")
    if kind in NUMBERS and hasattr(dtype, "fill_value"):
        return column
    if kind in NUMBERS and hasattr(column, "to_numpy") and not of_numpy:
        try:
            return column.to_numpy(dtype=np.float64, na_value=np.nan)  # numbers of pandas that may be missing
        except (TypeError, ValueError):
            pass
    array = array_of(column, what)
    return array if array.dtype.kind in NUMBERS and type(array) is np.ndarray else as_floats(array, what)


def _as_sparse(features: Any) -> Any:
    """Return a DataFrame of pandas as a sparse matrix if all its columns are sparse and leave out zeros."""
    types = list(getattr(features, "dtypes", ()))
    if not types or any(getattr(dtype, "fill_value", None) != 0 for dtype in types):
        return features
    if len(set(types)) > 1:  # of which pandas may make objects, which SciPy does not take
        features = features.astype(type(types[0])(np.float64, 0.0))
    return features.sparse.to_coo()


def _sparse_rows(features: Any, what: str) -> tuple[SparseRows, int]:
    """Return the rows of a sparse matrix, of the cells that it stores, and how many columns it has."""
    if len(features.shape) != 2:
        dimensions = counted(len(features.shape), "dimension")
        raise ArrayError(f"{what} has {dimensions}; give rows x columns, a single row as [row]")
    _refuse_unsound(features, what)
    matrix = features.tocsr() if hasattr(features, "tocsr") else features
    if matrix is not features:  # lists of lists are as sound as the matrix that is made of them
        _refuse_unsound(matrix, what)
    if not _ascend(matrix):
        if not hasattr(matrix, "sum_duplicates"):
            raise ArrayError(f"the column indices of {what} do not ascend in a row; sort them first")
        matrix = matrix.copy()
        matrix.sum_duplicates()  # sorts too
    offsets = np.array(_whole(matrix.indptr, what))
    columns, values = np.asarray(matrix.indices)[: offsets[-1]], np.asarray(matrix.data)[: offsets[-1]]
    return SparseRows(offsets, columns.astype(np.int32), as_floats(values, what)), int(matrix.shape[1])


def _refuse_unsound(matrix: Any, what: str) -> None:
    """Raise ArrayError for places of cells outside the matrix: SciPy and the kernels write and read there unseen."""

    def check(sound: bool, why: str) -> None:
        if not sound:
            raise ArrayError(f"{what} is no sound sparse matrix: {why}; build it anew")

    shape = tuple(int(n) for n in matrix.shape)
    check(min(shape) >= 0 and shape[1] <= _MOST_COLUMNS, f"its shape is {shape}")
    if hasattr(matrix, "indptr"):
        block = getattr(matrix, "blocksize", (1, 1))
        sides = [n // int(size) for n, size in zip(shape, block, strict=True)]
        outer, inner = reversed(sides) if getattr(matrix, "format", "csr") == "csc" else sides
        offsets, indices = _whole(matrix.indptr, what), _whole(matrix.indices, what)
        fit = len(offsets) == outer + 1 and offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())
        check(fit, "its row offsets do not fit its shape")
        n_cells = min(len(indices), len(np.asarray(matrix.data)))
        check(int(offsets[-1]) <= n_cells, "it has fewer cells than its row offsets say")
        check(_within(indices[: offsets[-1]], inner), "its indices are out of range")
        check(np.asarray(matrix.data).ndim == 1 or hasattr(matrix, "blocksize"), "its cells are no plain numbers")
    elif all(hasattr(matrix, name) for name in ("row", "col", "data")):
        places = [_whole(getattr(matrix, name), what) for name in ("row", "col")]
        check(len({*map(len, places), len(np.asarray(matrix.data))}) == 1, "its indices and cells differ in number")
        check(all(map(_within, places, shape)), "its indices are out of range")


def _within(indices: Int64Array, n: int) -> bool:
    return not len(indices) or bool(0 <= indices.min() <= indices.max() < n)


def _ascend(matrix: Any) -> bool:
    columns, offsets = np.asarray(matrix.indices), np.asarray(matrix.indptr)
    columns = columns[: offsets[-1]]
    steps = columns[1:] > columns[:-1]
    starts = offsets[(offsets > 0) & (offsets < len(columns))]
    steps[starts - 1] = True
    return bool(steps.all())


def _whole(numbers: object, what: str) -> Int64Array:
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise ArrayError(f"{what} is no sound sparse matrix: its indices are no whole numbers; build it anew")
    return array.astype(np.int64, copy=False)


def _take_columns(rows: SparseRows, m: int, places: Int64Array) -> SparseRows:
    """Return the rows of the columns with these places, in this order."""
    if np.array_equal(places, np.arange(m)):
        return rows
    moved = np.full(m, -1, np.int32)
    moved[places] = np.arange(len(places))
    columns = moved[rows.columns]
    cells = np.flatnonzero(columns >= 0)
    row = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))[cells]
    order = np.lexsort((columns[cells], row))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(row, minlength=len(rows)))])
    return SparseRows(offsets, columns[cells][order], rows.values[cells][order])
