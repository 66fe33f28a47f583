"""Numbers and ids that Python programs give as arrays, lists, or columns of DataFrames and Tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array
from lmart.decimals import is_decimal
from lmart.errors import ArrayError, counted

NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "time spans", "V": "records"}  # by kind of a dtype
NUMBERS = "biuf"  # kinds of dtypes that NumPy turns into float64 by itself


def is_masked(values: object) -> bool:
    """Return whether values are a masked array, or a list of some."""
    if isinstance(values, list | tuple):
        return any(isinstance(part, np.ma.MaskedArray) for part in values)
    return isinstance(values, np.ma.MaskedArray)


def array_of(values: Any, what: str) -> npt.NDArray[Any]:
    """Return values as an array; the array itself if they are one, and a masked array if they are masked.

    values : an array, lists, or a column of a DataFrame or Table
    what   : what to call them in messages

    ArrayError when lists have different lengths.
    """
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
    """Raise ArrayError when some entries are masked.

    values : one entry for each row or query
    what   : what to call them in messages
    """
    if is_masked(values):
        hidden = np.flatnonzero(np.ma.getmaskarray(array_of(values, what)))
        if len(hidden):
            raise ArrayError(f"entry {hidden[0]} (from 0) of {what} is masked; give its value, or drop the row")


def cells_of(values: object, what: str) -> npt.NDArray[Any]:
    """Return a column as an array of one dimension: of a list, an array, or a column of a DataFrame.

    ArrayError when it has another number of dimensions, or an entry is masked.
    """
    refuse_masked(values, what)
    array = np.asarray(array_of(values, what))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ArrayError(f"{what} has {counted(array.ndim, 'dimension')}; give one entry for each row")
    return array


def as_floats(values: object, what: str) -> Float64Array:
    """Return numbers as float64, C-ordered; the array itself if it is that already. None and masked cells are nan.

    values : numbers, or texts that are numbers
    what   : what to call them in messages

    ArrayError when some are no real numbers.
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
