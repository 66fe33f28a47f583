"""Features that Python programs give: arrays, DataFrames, sparse matrices; known by what they can do, not by class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import ArrayError, quote

NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "time spans", "V": "records"}  # by kind of a dtype


class Frame(Protocol):
    """What is used of a DataFrame (pandas, polars) or Table (pyarrow)."""

    def __len__(self) -> int: ...

    def __getitem__(self, label: Hashable, /) -> object: ...


class SparseMatrix(Protocol):
    """What is used of a sparse matrix or array of SciPy, in compressed rows."""

    shape: Sequence[int]
    indptr: object
    indices: object
    data: object

    def copy(self) -> SparseMatrix:
        """Return a copy."""

    def sum_duplicates(self) -> None:
        """Add up cells that are given twice, and sort those of each row."""


def column_labels(features: object) -> list[Hashable] | None:
    """Return the labels of the columns of a DataFrame (pandas, polars) or Table (pyarrow), None of anything else.

    ArrayError when two columns have one label, or when the table is yet to be computed.
    """
    if hasattr(features, "collect"):  # before its columns are asked for, which may be work
        raise ArrayError(f"features is a {type(features).__name__}, not computed yet; give what its collect() returns")
    labels = getattr(features, "column_names", getattr(features, "columns", None))
    if labels is None or not hasattr(features, "__getitem__"):
        return None
    listed = list(labels)
    seen = set()
    for label in listed:
        if label in seen:
            raise ArrayError(f"two columns of features are named {quote(str(label))}; rename one")
        seen.add(label)
    return listed


def is_sparse(features: object) -> TypeGuard[SparseMatrix]:
    """Return whether it is a sparse matrix, as those of SciPy."""
    return hasattr(features, "tocsr") or all(hasattr(features, name) for name in ("indptr", "indices", "data", "shape"))


def rows_of_frame(features: Frame, labels: Sequence[Hashable]) -> SparseRows:
    """Return the rows of the columns with these labels, in this order; nulls are missing. ArrayError."""
    columns = [numbers_of_column(features[label], f"column {quote(str(label))}") for label in labels]
    for label, column in zip(labels, columns, strict=True):
        if column.shape != columns[0].shape or column.ndim != 1:
            found = f"{len(column)} rows" if column.ndim == 1 else f"{column.ndim} dimensions"
            what = f"column {quote(str(label))} of features has {found}"
            raise ArrayError(f"{what}; give columns of one number a row, all of the same length")
    return dense_rows(np.stack(columns, axis=1) if columns else np.zeros((len(features), 0)))


def rows_of_array(features: object) -> tuple[SparseRows, int]:
    """Return the rows of an array, and how many columns it has; nan and None are missing. ArrayError."""
    values = as_floats(features, "features")
    if values.ndim != 2:
        raise ArrayError(f"features has {values.ndim} dimensions; give rows x columns, a single row as [row]")
    return dense_rows(values), values.shape[1]


def rows_of_sparse(features: SparseMatrix) -> tuple[SparseRows, int]:
    """Return the rows of a sparse matrix, of the cells that it stores, and how many columns it has. ArrayError."""
    if len(features.shape) != 2:
        raise ArrayError(f"features has {len(features.shape)} dimensions; give rows x columns, a single row as [row]")
    matrix: SparseMatrix = features.tocsr() if hasattr(features, "tocsr") else features
    if not _ascend(matrix):
        if not hasattr(matrix, "sum_duplicates"):
            raise ArrayError("the column indices of features do not ascend in a row; sort them first")
        matrix = matrix.copy()
        matrix.sum_duplicates()  # sorts too
    n_rows, n_columns = (int(n) for n in matrix.shape)
    offsets = np.array(_whole(matrix.indptr))
    columns, values = _whole(matrix.indices), as_floats(matrix.data, "features")
    if len(offsets) != n_rows + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ArrayError("features is no sound sparse matrix: its row offsets do not fit its shape")
    if offsets[-1] > min(len(columns), len(values)):
        raise ArrayError("features is no sound sparse matrix: it has fewer cells than its row offsets say")
    columns, values = columns[: offsets[-1]], values[: offsets[-1]]
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
        raise ArrayError("features is no sound sparse matrix: its indices are out of range")
    return SparseRows(offsets, columns.astype(np.int32), values), n_columns


def dense_rows(values: Float64Array) -> SparseRows:
    """Return the rows of float64[n, m], every cell of them."""
    n, m = values.shape
    columns = np.tile(np.arange(m, dtype=np.int32), n)
    return SparseRows(np.arange(n + 1, dtype=np.int64) * m, columns, np.ascontiguousarray(values).reshape(-1))


def _ascend(matrix: SparseMatrix) -> bool:
    columns, offsets = _whole(matrix.indices), _whole(matrix.indptr)
    steps = columns[1:] > columns[:-1]
    starts = offsets[(offsets > 0) & (offsets < len(columns))]
    steps[starts - 1] = True
    return bool(steps.all())


def _whole(numbers: object) -> Int64Array:
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise ArrayError("features is no sound sparse matrix: its indices are no whole numbers")
    return array.astype(np.int64, copy=False)


def numbers_of_column(column: object, what: str) -> Float64Array:
    """Return the numbers of one column of a DataFrame; nulls are nan. A column of float64 is not copied.

    column : of a DataFrame
    what   : what to call it in messages

    ArrayError when some are no real numbers.
    """
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if not hasattr(column, "to_numpy") or kind in NO_NUMBERS or isinstance(dtype, np.dtype):
        return as_floats(column, what)
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas
    except TypeError:
        values = column.to_numpy()
    except ValueError as fault:
        raise ArrayError(f"{what} holds no numbers: {fault}") from None
    return as_floats(values, what)


def as_floats(values: object, what: str) -> Float64Array:
    """Return numbers as float64, C-ordered; the array itself if it is that already. None and masked cells are nan.

    values : numbers
    what   : what to call them in messages

    ArrayError when some are no real numbers.
    """
    try:
        array = np.asarray(values)
    except ValueError as fault:
        raise ArrayError(f"{what} cannot be an array: {fault}") from None
    if array.dtype.kind in NO_NUMBERS:
        raise ArrayError(f"{what} holds {NO_NUMBERS[array.dtype.kind]}; features are real numbers")
    try:
        numbers = np.ascontiguousarray(array, np.float64) if array.ndim else array.astype(np.float64)
    except OverflowError:
        raise ArrayError(f"{what} holds a number that is too large for 64 bits") from None
    except (TypeError, ValueError) as fault:
        if array.dtype.kind != "O":
            raise ArrayError(f"{what} holds no numbers: {fault}") from None
        numbers = _numbers_of_objects(array, what)
    if isinstance(values, np.ma.MaskedArray):
        numbers = np.where(np.ma.getmaskarray(values), np.nan, numbers)
    return numbers if numbers.flags.writeable else numbers.copy()  # kernels are compiled for the usual arrays


def _numbers_of_objects(array: npt.NDArray[np.object_], what: str) -> Float64Array:
    # pandas.NA is no number by itself
    plain = [np.nan if type(one).__name__ == "NAType" else one for one in array.reshape(-1).tolist()]
    try:
        return np.fromiter(map(float, plain), np.float64, len(plain)).reshape(array.shape)
    except OverflowError:
        raise ArrayError(f"{what} holds a number that is too large for 64 bits") from None
    except (TypeError, ValueError) as fault:
        raise ArrayError(f"{what} holds no numbers: {fault}") from None
