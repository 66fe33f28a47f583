"""Features, numbers and ids that Python programs give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import lmart
from lmart.data.from_python import as_floats, cells_of, features_of
from lmart.errors import ArrayError


class Matrix:
    """What a sparse matrix has, sound or not."""

    def __init__(self, indptr: Any, indices: Any, data: Any, shape: Sequence[int]) -> None:
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape


@pytest.mark.parametrize(
    ("labels", "ids", "names"),
    [
        (None, [1, 2, 3], None),
        ([0, 1, 2], [0, 1, 2], None),
        (["10", "9", "2"], [2, 9, 10], None),
        (["10", "9", "x"], [1, 2, 3], ("10", "9", "x")),
        (["01", "1", "2"], [1, 2, 3], ("01", "1", "2")),
        ([-1, 0, 1], [1, 2, 3], ("-1", "0", "1")),
        ([1.5, 2.5, True], [1, 2, 3], ("1.5", "2.5", "True")),
    ],
)
def test_columns_go_by_number_when_all_labels_are_indices(
    labels: list[object] | None, ids: list[int], names: tuple[str, ...] | None
) -> None:
    rows = np.array([[1.0, 2.0, 3.0]])
    matrix = Matrix([0, 3], [0, 1, 2], [1.0, 2.0, 3.0], (1, 3))
    for features in (rows, rows.tolist(), matrix):
        given = features_of(features, feature_names=labels)
        assert (given.ids.tolist(), given.names, given.by_label) == (ids, names, labels is not None)
        read = given.read(np.arange(3)).between(0, 1)
        order = np.argsort([int(str(label)) for label in labels]) if labels and names is None else np.arange(3)
        assert read.columns.tolist() == [0, 1, 2] and read.values.tolist() == rows[0, order].tolist()
        some = given.read(np.array([2, 0])).between(0, 1)
        assert some.columns.tolist() == [0, 1] and some.values.tolist() == rows[0, order[[2, 0]]].tolist()


@pytest.mark.parametrize(
    ("indptr", "indices", "data", "shape"),
    [
        ([0, 10**6], [0], [1.0], (1, 5)),
        ([0, 2**62], [0], [1.0], (1, 5)),
        (np.array([0, 2**63, 1], np.uint64), [0], [1.0], (2, 5)),
        ([0, 1], [2**33], [1.0], (1, 2**40)),
        ([0, 1], [7], [1.0], (1, 5)),
        ([0, 1], [-1], [1.0], (1, 5)),
        ([0, 1], np.array([0], object), [1.0], (1, 5)),
        ([0, 1], [0], [[1.0]], (1, 5)),
        ([], [], [], (-1, 5)),
        ([0], [], [], (0, -1)),
        ([0, 1], [0], [1.0], (10**12, 5)),
    ],
)
def test_a_matrix_with_cells_outside_is_refused(indptr: Any, indices: Any, data: Any, shape: Sequence[int]) -> None:
    with pytest.raises(ArrayError, match=r"X is no sound sparse matrix: .*; build it anew"):
        features_of(Matrix(indptr, indices, data, shape))


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "bsr_matrix", "coo_array", "lil_matrix"])
def test_a_matrix_of_scipy_is_checked_before_scipy_converts_it(kind: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    plain = np.arange(1.0, 13.0).reshape(4, 3)
    features_of(getattr(sparse, kind)(plain))
    for name in ("indptr", "indices", "row", "rows"):
        matrix = getattr(sparse, kind)(plain)
        part = getattr(matrix, name, None)
        if part is None:
            continue
        if name == "rows":
            part[1][0] = 10**6
        else:
            part[1] = 10**6
        with pytest.raises(ArrayError, match="no sound sparse matrix"):
            features_of(matrix)


def test_columns_of_a_frame_are_read_by_their_places() -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    odd = pd.Index([slice(0, 1), len, "c"], dtype=object)
    twice = pa.Table.from_arrays(list(map(pa.array, rows.T)), names=["a", "a", "b"])
    frames = [(pd.DataFrame(rows, columns=odd), None), (pd.DataFrame(rows, columns=list("aab")), ["x", "y", "z"])]
    for frame, names in [*frames, (twice, ["x", "y", "z"]), (twice.to_batches()[0], ["x", "y", "z"])]:
        read = features_of(frame, feature_names=names).read(np.array([1, 2])).between(0, 2)
        assert read.values.tolist() == [2.0, 3.0, 5.0, 6.0]


def test_sparse_frames_of_several_types_are_one_matrix() -> None:
    pd = pytest.importorskip("pandas")
    cells = {"a": np.array([0, 3]), "b": np.array([True, False]), "c": np.array([0.0, 0.5])}
    frame = pd.DataFrame(
        {name: pd.arrays.SparseArray(some, fill_value=some.dtype.type()) for name, some in cells.items()}
    )
    read = features_of(frame).read(np.arange(3)).between(0, 2)
    assert (read.offsets.tolist(), read.columns.tolist(), read.values.tolist()) == ([0, 1, 3], [1, 0, 2], [1, 3, 0.5])


def test_a_series_is_no_frame() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(ArrayError, match="X has 1 dimension; give rows x columns"):
        features_of(pd.Series([1.0, 2.0]))


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
