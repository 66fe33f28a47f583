"""Features, numbers and ids that Python programs give, to train on or to score.

Arrays, DataFrames, Tables and sparse matrices are known by what they can do, not by class. Rows are converted piece by
piece, so that no second copy of all values is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.categories import CategoryTexts
from lmart.data.dataset import Features, Rows, SparseRows
from lmart.data.feature_names import are_indices, has_control
from lmart.decimals import is_decimal
from lmart.errors import ArrayError, counted, first_repeated, quote

TextsOf = Callable[[Int64Array], dict[int, tuple[str, ...]]]  # of columns, by index in these places
NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "time spans", "V": "records"}  # by kind of a dtype
NUMBERS = "biuf"  # kinds of dtypes that NumPy turns into float64 by itself
_CATEGORIES = ("category", "categorical", "enum", "dictionary")  # how types of categories begin, in small letters
_NO_CELL = ("NoneType", "NAType", "NaTType")  # types of pandas for a missing cell
_MOST_COLUMNS = 2**31 - 1


def is_masked(values: object) -> bool:
    """Return whether values are a masked array, or a list of some."""
    if isinstance(values, list | tuple):
        return any(isinstance(part, np.ma.MaskedArray) for part in values)
    return isinstance(values, np.ma.MaskedArray)


def array_of(values: Any, what: str) -> npt.NDArray[Any]:
    """Return lists or a column of a table as an array; an array as it is.

    ArrayError for lists of different lengths, and for what is on a cluster of Dask.
    """
    refuse_dask(values, what)
    if not isinstance(values, np.ndarray) and hasattr(values, "to_numpy"):  # pandas, polars, pyarrow
        try:
            values = values.to_numpy()
        except ValueError:  # an Array of pyarrow with texts, nulls or bools
            values = values.to_numpy(zero_copy_only=False)
        except Exception as fault:  # of polars, by classes of its own
            raise ArrayError(f"{what} cannot be an array: {fault}") from None
    try:
        if isinstance(values, list | tuple) and is_masked(values):  # NumPy loses the mask of a part
            parts = [np.ma.getdata(part) if isinstance(part, np.ma.MaskedArray) else part for part in values]
            return np.ma.array(parts, mask=[np.ma.getmaskarray(part) for part in values])
        return np.asanyarray(values) if is_masked(values) else np.asarray(values)
    except ValueError as fault:
        raise ArrayError(f"{what} cannot be an array: {fault}") from None


def refuse_masked(values: object, what: str) -> None:
    """Raise ArrayError when some entries, one for each row or query, are masked."""
    if is_masked(values):
        hidden = np.flatnonzero(np.ma.getmaskarray(array_of(values, what)))
        if len(hidden):
            raise ArrayError(f"entry {hidden[0]} (from 0) of {what} is masked; give its value, or drop the row")


def cells_of(values: object, what: str) -> npt.NDArray[Any]:
    """Return a list, an array or a column of a table as a one-dimensional array; ArrayError when that cannot be."""
    refuse_masked(values, what)
    array = np.asarray(array_of(values, what))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ArrayError(f"{what} has {counted(array.ndim, 'dimension')}; give one entry for each row")
    return array


def as_floats(values: object, what: str) -> Float64Array:
    """Return numbers, or texts of numbers, as C-ordered float64; None and masked cells are nan.

    An array that is that already is returned itself. ArrayError when some are no real numbers.
    """
    array = array_of(values, what)
    kind = array.dtype.kind
    if kind in NO_NUMBERS:
        raise ArrayError(f"{what} holds {NO_NUMBERS[kind]}, no real numbers; turn them into numbers, or leave them out")
    plain = np.asarray(array) if kind in NUMBERS else _numbers_of_objects(np.asarray(array), what)
    numbers = np.ascontiguousarray(plain, np.float64) if plain.ndim else plain.astype(np.float64)
    if isinstance(array, np.ma.MaskedArray):
        numbers = np.where(np.ma.getmaskarray(array), np.nan, numbers)
    return numbers if numbers.flags.writeable else numbers.copy()  # kernels are compiled for the usual arrays


def _numbers_of_objects(array: npt.NDArray[Any], what: str) -> Float64Array:
    """Return the numbers of an array of objects or texts; None and pandas.NA are nan."""
    cells = array.reshape(-1).tolist()
    kinds = {type(cell) for cell in cells}
    if any(kind.__name__ in ("NoneType", "NAType") for kind in kinds):
        cells = [np.nan if type(cell).__name__ in ("NoneType", "NAType") else cell for cell in cells]
    try:
        if any(issubclass(kind, str | bytes) for kind in kinds):
            _refuse_odd_texts(cells)
        return np.fromiter(map(float, cells), np.float64, len(cells)).reshape(array.shape)
    except OverflowError:
        raise ArrayError(f"{what} holds a number that is too large for 64 bits") from None
    except (TypeError, ValueError) as fault:
        raise ArrayError(f"{what} holds no numbers: {fault}") from None


def _refuse_odd_texts(cells: list[object]) -> None:
    """Raise ValueError for texts that are numbers to Python alone, such as '1_000'."""
    for cell in cells:
        if isinstance(cell, str | bytes) and not is_decimal(cell.strip()) and math.isfinite(float(cell)):
            raise ValueError(f"could not convert string to float: {cell!r}")


@dataclass(frozen=True, eq=False)
class GivenFeatures:
    """Columns by ascending id, and how their rows are read.

    ids      : int64[m], ascending
    names    : m texts; None: features have indices only
    by_label : whether columns have labels, as those of a DataFrame do; else they go by their places
    order    : int64[m], which column, as given, each feature is
    read     : returns rows of the columns with these places among `ids`, int64[k], in this order; ArrayError when they
               hold no numbers
    texts    : returns for such places, by index in them, the texts that the numbers of rows stand for
    """

    ids: Int64Array
    names: tuple[str, ...] | None
    by_label: bool
    order: Int64Array
    read: Callable[[Int64Array], Rows]
    texts: TextsOf


def features_of(
    features: Any,
    what: str = "X",
    feature_names: Sequence[object] | None = None,
    categorical: Collection[str] | None = (),
    may_name: bool = False,
) -> GivenFeatures:
    """Return the features of an array, a DataFrame, a sparse matrix or lists.

    Columns go by their labels. When all labels are whole numbers, features have these as indices and no names, as in a
    header of CSV; without labels they are 1, 2, ..., m.

    categorical : features whose texts are categories; None: of every column that holds texts
    may_name    : whether refusals of other columns that hold texts say to name them in `categorical`

    ArrayError when features have another shape or hold no numbers, or labels are missing, repeated or no names.
    """
    refuse_path(features, what)
    own = column_labels(features, what)
    labels: Sequence[object] | None = own
    if own is not None:
        features = _as_sparse(features)
    reader = None
    if _is_sparse(features):
        rows, m = _sparse_rows(features, what)
        read: Callable[[Int64Array], Rows] = partial(_take_columns, rows, m)
    elif own is not None:
        called = [*map(str, own if feature_names is None else feature_names)]
        m, read = len(own), (reader := _FrameReader(features, own, what, called, categorical, may_name))
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
        return GivenFeatures(np.arange(1, m + 1), None, False, np.arange(m), read, _no_texts)
    texts = _no_texts if reader is None else reader.texts
    return _labelled([_checked_name(label) for label in labels], read, texts, what)


def category_names(given: object) -> list[str] | None:
    """Return the features that the argument `categorical` of Python names; None: 'auto'."""
    if isinstance(given, str):
        return None if given == "auto" else [name for name in given.split(",") if name]
    return [*map(str, np.asarray([] if given is None else given, object).reshape(-1))]


def _no_texts(places: Int64Array) -> dict[int, tuple[str, ...]]:
    return {}


def refuse_path(features: object, what: str = "X") -> None:
    """Raise ArrayError when features are the path of a file, or on a cluster of Dask."""
    if isinstance(features, str | bytes) or hasattr(features, "__fspath__"):
        raise ArrayError(f"{what} is a path; give lmart.read({str(features)!r})")
    refuse_dask(features, what)


def refuse_dask(values: object, what: str) -> None:
    """Raise ArrayError for what Dask has yet to compute: an array of it would be computed here, in silence."""
    if type(values).__module__.partition(".")[0] in ("dask", "dask_expr", "distributed"):
        how = "write it as Parquet for the commands with --dask, or give its .compute() if this process can hold it"
        raise ArrayError(f"{what} is a Dask {type(values).__name__}; {how}")


def refuse_other_width(n_columns: int, others: Features, source: str) -> None:
    """Raise ArrayError when columns without labels are more or fewer than the features that they stand for."""
    if n_columns != len(others.feature_ids):
        due = len(others.feature_ids)
        what = f"{source} has {counted(n_columns, 'column')}, where {due} {'is' if due == 1 else 'are'} due"
        raise ArrayError(f"{what}; give the same features in the same order")


def names_beside(ids: Int64Array, names: tuple[str, ...] | None, others: Features | None) -> tuple[str, ...] | None:
    """Return the names of columns that are matched with `others`: their indices as text where those occur as names."""
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


def _labelled(names: Sequence[str], read: Callable[[Int64Array], Rows], texts: TextsOf, what: str) -> GivenFeatures:
    """Return features with names, or with the indices that all names are."""
    if (repeated := first_repeated(names)) is not None:
        raise ArrayError(f"two columns of {what} are the same feature, {quote(repeated)}; rename one")
    if not are_indices(names):
        return GivenFeatures(np.arange(1, len(names) + 1), tuple(names), True, np.arange(len(names)), read, texts)
    ids = np.array([int(name) for name in names], np.int64)
    order = np.argsort(ids)
    moved = partial(_read_in_order, read, order), partial(_texts_in_order, texts, order)
    return GivenFeatures(ids[order], None, True, order, *moved)


def _read_in_order(read: Callable[[Int64Array], Rows], order: Int64Array, places: Int64Array) -> Rows:
    return read(order[places])


def _texts_in_order(texts: TextsOf, order: Int64Array, places: Int64Array) -> dict[int, tuple[str, ...]]:
    return texts(order[places])


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
            repeated = np.empty((k, self._m), np.int32)
            repeated[:] = np.arange(self._m)
            columns = self._columns = repeated.reshape(-1)
        values = np.ascontiguousarray(self._numbers(start, stop)).reshape(-1)
        return SparseRows(np.arange(k + 1, dtype=np.int64) * self._m, columns[: k * self._m], values)


def _columns_of_array(array: npt.NDArray[Any], what: str, places: Int64Array) -> Rows:
    """Return the rows of columns of an array of numbers, of any type and in any order."""
    chosen = slice(None) if np.array_equal(places, np.arange(array.shape[1])) else places
    return DensePieces(len(array), len(places), partial(_cells_of_array, array, chosen, what))


def _cells_of_array(
    array: npt.NDArray[Any], columns: slice | Int64Array, what: str, start: int, stop: int
) -> Float64Array:
    return as_floats(array[start:stop, columns], what)


class _FrameReader:
    """Reads columns of a DataFrame or Table; each is converted once, and only when it is asked for.

    names, categorical, may_name : of the features, as in `features_of`
    """

    def __init__(
        self,
        frame: Any,
        labels: Sequence[Hashable],
        what: str,
        names: Sequence[str],
        categorical: Collection[str] | None,
        may_name: bool,
    ) -> None:
        self._frame, self._labels, self._what = frame, labels, what
        self._names, self._categorical, self._may_name = names, categorical, may_name
        self._converted: dict[int, Any] = {}  # by place
        self._texts: dict[int, tuple[str, ...]] = {}  # by place

    def texts(self, places: Int64Array) -> dict[int, tuple[str, ...]]:
        """Return, by index in these places, the texts of those that hold some."""
        self(places)
        return {i: self._texts[place] for i, place in enumerate(places.tolist()) if place in self._texts}

    def __call__(self, places: Int64Array) -> Rows:
        for place in places.tolist():
            if place not in self._converted:
                column = self._convert(place)
                if column.shape != (len(self._frame),):
                    what = f"{self._name(place)} of {self._what} has the shape {column.shape}"
                    raise ArrayError(f"{what}; give one number for each row")
                self._converted[place] = column
        return DensePieces(len(self._frame), len(places), partial(self._cells, places.tolist()))

    def _convert(self, place: int) -> Any:
        """Return the numbers of a column; if it is a category, those of its texts."""
        column, what, name = _column_at(self._frame, self._labels, place), self._name(place), self._names[place]
        is_named = self._categorical is not None and name in self._categorical
        hint = f"give categorical=[{quote(name)}]"
        if _is_category(column):
            if self._categorical is not None and not is_named:
                remedy = "turn them into numbers, as by .astype(float), or drop the column"
                raise ArrayError(f"{what} holds categories; {f'{hint}, ' if self._may_name else ''}{remedy}")
        elif not is_named or _is_of_numbers(column):
            try:
                return _numbers_of_column(column, what)
            except ArrayError as fault:
                if not _has_texts(column):
                    raise
                if self._categorical is not None:
                    remedy = f"; {hint} if its values are categories, or drop the column" if self._may_name else ""
                    raise ArrayError(f"{fault.message}{remedy}") from None
        numbered = CategoryTexts()
        numbers = numbered.number(_texts_of_column(column, what))
        self._texts[place] = numbered.found
        return numbers

    def _name(self, place: int) -> str:
        return f"column {quote(str(self._labels[place]))}"

    def _cells(self, places: Sequence[int], start: int, stop: int) -> Float64Array:
        out = np.empty((stop - start, len(places)))
        for i, place in enumerate(places):
            column = self._converted[place]
            is_array = isinstance(column, np.ndarray)
            out[:, i] = column[start:stop] if is_array else as_floats(column.iloc[start:stop], self._name(place))
        return out


def _column_at(frame: Any, labels: Sequence[Hashable], place: int) -> Any:
    """Return a column of a DataFrame by its place where that can be asked for: a label may repeat, or be a function."""
    if hasattr(frame, "iloc"):  # pandas
        return frame.iloc[:, place]
    if hasattr(frame, "column"):  # pyarrow
        return frame.column(place)
    return frame[labels[place]]


def _numbers_of_column(column: Any, what: str) -> Any:
    """Return a column as an array of numbers, or as it is if it is sparse: dense, all such could be too large."""
    dtype = _type_of(column)
    of_numpy = isinstance(dtype, np.dtype)
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


def _type_of(column: Any) -> Any:
    return getattr(column, "dtype", None) or getattr(column, "type", None)


def _is_category(column: Any) -> bool:
    """Return whether a column is of a type of categories, as of pandas, polars or pyarrow."""
    dtype = _type_of(column)
    return not isinstance(dtype, np.dtype) and str(dtype).lower().startswith(_CATEGORIES)


def _is_of_numbers(column: Any) -> bool:
    """Return whether a column is of a type of numbers."""
    return getattr(_type_of(column), "kind", "") in [*NUMBERS] or array_of(column, "it").dtype.kind in NUMBERS


def _cells_of_column(column: Any) -> list[Any]:
    """Return the cells of a column as Python has them."""
    for name in ("to_pylist", "to_list"):  # of pyarrow; of pandas and polars
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(array_of(column, "it").tolist())


def _has_texts(column: Any) -> bool:
    return any(isinstance(cell, str) for cell in _cells_of_column(column))


def _texts_of_column(column: Any, what: str) -> list[str | None]:
    """Return the text of each cell, None where it is missing; ArrayError for what is neither a text nor a number."""
    texts: list[str | None] = []
    for cell in _cells_of_column(column):
        if cell is None or type(cell).__name__ in _NO_CELL or (isinstance(cell, float) and math.isnan(cell)):
            texts.append(None)
        elif isinstance(cell, str | int | float | np.number | np.bool_):
            texts.append(str(cell))
        else:
            raise ArrayError(f"{what} holds a {type(cell).__name__}, no category; turn it into text")
    return texts


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
