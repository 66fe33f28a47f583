"""Numbers and ids that Python programs give, as arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lmart
from lmart.data.python_values import as_floats, cells_of
from lmart.errors import ArrayError


def test_read_only_arrays_are_copied_and_others_are_not() -> None:
    """Kernels are compiled anew for arrays that cannot be written, which takes seconds."""
    array = np.ones((3, 2))
    assert as_floats(array, "X") is array
    array.setflags(write=False)
    assert as_floats(array, "X").flags.writeable


class NAType:
    """As pandas.NA, which is no number."""


def test_what_is_missing_is_nan() -> None:
    for values in (
        [1, None],
        np.array([1, NAType()], object),
        np.ma.array([1, 2], mask=[False, True]),
        [1, np.ma.masked],
    ):
        assert np.array_equal(as_floats(values, "X"), [1.0, math.nan], equal_nan=True)
    both = np.array([None, NAType(), "nan", 2], object)
    assert np.array_equal(as_floats(both, "X"), [math.nan, math.nan, math.nan, 2.0], equal_nan=True)
    rows = [np.ma.array([1, 2], mask=[True, False]), np.array([3, 4])]
    assert np.array_equal(as_floats(rows, "X"), [[math.nan, 2.0], [3.0, 4.0]], equal_nan=True)


@pytest.mark.parametrize("text", ["1_000", "\u0661", "one", "", "0x10"])
def test_a_text_is_a_number_in_every_form_or_in_none(text: str) -> None:
    for values in ([text], np.array([text]), np.array([text], object), np.array([1.0, text], object)):
        with pytest.raises(ArrayError, match="X holds no numbers"):
            as_floats(values, "X")
    assert as_floats(np.array(["1e3", b"-.5"], object), "X").tolist() == [1000.0, -0.5]
    assert as_floats(np.array([b"12"]), "X").tolist() == [12.0]


def test_masked_entries_are_refused_by_their_place() -> None:
    hidden = np.ma.array([1, 0, 1], mask=[False, True, False])
    for values in (
        hidden,
        hidden[:, None],
        [1, np.ma.masked, 0],
        np.ma.array(["a", "b", "b"], mask=[False, True, False]),
    ):
        with pytest.raises(ArrayError, match=r"entry 1 \(from 0\) of y is masked; give its value, or drop the row"):
            cells_of(values, "y")
    assert cells_of(np.ma.array([1, 0]), "y").tolist() == [1, 0]


@pytest.mark.parametrize("name", ["y", "qid", "group", "weights", "init_scores", "positions"])
def test_everything_beside_x_refuses_masked_entries(name: str) -> None:
    given = {"y": [1, 0, 1], "qid": [1, 1, 1], "weights": [1, 1, 1], "init_scores": [0, 0, 0], "positions": [1, 2, 3]}
    if name == "group":
        del given["qid"]
        given["group"] = [2, 1]
    hidden: Any = np.ma.array(given[name], mask=[True, *[False] * (len(given[name]) - 1)])
    with pytest.raises(ArrayError, match=rf"entry 0 \(from 0\) of {name} is masked"):
        lmart.Dataset([[1.0], [2.0], [3.0]], **given | {name: hidden})


def test_columns_that_numpy_has_no_type_for_are_refused() -> None:
    pl = pytest.importorskip("polars")
    with pytest.raises(ArrayError, match="y cannot be an array: cannot convert i128"):
        as_floats(pl.Series([1, 2], dtype=pl.Int128), "y")
