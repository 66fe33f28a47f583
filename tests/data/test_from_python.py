"""Features that Python programs give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lmart.data.from_python import features_of
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
