"""DataFrames of pandas and polars and sparse matrices of SciPy train the model that a file of the same data trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart
from lmart.data.python_dataset import unbinned

pytestmark = pytest.mark.peers

DATA = lmart.read(SAMPLE / "train.svm")
GAPS = np.where(np.random.default_rng(1).random((len(DATA), DATA.n_features)) < 0.1, np.nan, DATA.to_numpy())
NAMES = [f"f{i}" for i in range(DATA.n_features)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model of the command line from a table."""
    folder = tmp_path_factory.mktemp("table")
    cells = [",".join("" if np.isnan(one) else repr(one) for one in row) for row in GAPS.tolist()]
    rows = [f"{y:g},{qid},{row}" for y, qid, row in zip(DATA.labels, DATA.qid, cells, strict=True)]
    (folder / "t.csv").write_text("\n".join([",".join(["label", "qid", *NAMES]), *rows, ""]))
    run("train", "--data", folder / "t.csv", "--trees", "6", "-o", folder / "m.json", "-qq")
    return (folder / "m.json").read_bytes()


def saved(X: object, y: object, qid: object, folder: Path, **settings: Any) -> bytes:
    lmart.train(X, y, qid, trees=6, **settings).save(folder / "p.json")
    return (folder / "p.json").read_bytes()


def test_pandas(expected: bytes, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GAPS, columns=NAMES)
    labels, ids = pd.Series(DATA.labels), pd.Series(DATA.qid)
    assert saved(frame, labels, ids, tmp_path) == expected
    assert saved(frame, labels.astype("Int64"), ids.astype("category"), tmp_path) == expected
    moved = frame.sample(frac=1, random_state=1).sort_index()  # an index is no feature
    assert saved(moved.astype(object), labels, ids, tmp_path) == expected
    nullable = frame.astype("Float64")
    assert nullable.isna().to_numpy().any() and saved(nullable, labels, ids, tmp_path) == expected
    columns = [pd.Series(GAPS[:, i], name=name) for i, name in enumerate(NAMES)]  # each column an array of its own
    assert saved(pd.concat(columns, axis=1), labels, ids, tmp_path) == expected


def test_pandas_columns_of_other_types() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [True, False, True, True], "c": pd.array([1, None, 2, 2], "Int32")})
    model = lmart.train(frame, [0, 1, 0, 1], [1, 1, 2, 2], trees=2, min_docs=1)
    assert model.feature_names == ["a", "b", "c"]
    frame["title"] = ["x", "y", "z", "z"]
    with pytest.raises(lmart.ArrayError, match="column 'title' holds no numbers"):
        lmart.train(frame, [0, 1, 0, 1], [1, 1, 2, 2], trees=2)
    with pytest.raises(lmart.ArrayError, match=r"qid of row 1 \(from 0\) is missing"):
        lmart.train(frame[["a"]], [0, 1, 0, 1], pd.array([1, None, 2, 2], "Int64"), trees=2)


def test_pandas_columns_without_names_are_those_of_an_array(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    plain = saved(GAPS, DATA.labels, DATA.qid, tmp_path)
    assert saved(pd.DataFrame(GAPS), DATA.labels, DATA.qid, tmp_path) == plain
    numbered = lmart.train(pd.DataFrame(GAPS[:, :2], columns=["5", "9"]), DATA.labels, DATA.qid, trees=1)
    assert (numbered.feature_ids, numbered.feature_names) == ([5, 9], None)


def test_polars(expected: bytes, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(GAPS, schema=NAMES)
    assert saved(frame, pl.Series(DATA.labels), pl.Series(DATA.qid.tolist()), tmp_path) == expected
    nulls = frame.fill_nan(None)
    assert nulls.null_count().sum_horizontal()[0] > 0
    assert saved(nulls, pl.Series(DATA.labels), pl.Series(DATA.qid.tolist()), tmp_path) == expected
    with pytest.raises(lmart.ArrayError, match="not computed yet"):
        lmart.train(frame.lazy(), DATA.labels, DATA.qid, trees=1)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array"])
def test_scipy(kind: str, tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rows = DATA.to_numpy().copy()
    rows[rows < np.quantile(rows, 0.3, axis=0)] = 0.0  # every feature is somewhere: a text names no other
    text = [
        " ".join([f"{y:g}", f"qid:{qid}", *(f"{i}:{one!r}" for i, one in enumerate(row, 1) if one)])
        for y, qid, row in zip(DATA.labels, DATA.qid, rows.tolist(), strict=True)
    ]
    (tmp_path / "d.svm").write_text("\n".join(text))
    for absent in ("zero", "missing"):
        command = ("train", "--data", tmp_path / "d.svm", "--trees", "6", "--absent", absent)
        run(*command, "-o", tmp_path / "m.json", "-qq")
        matrix = getattr(sparse, kind)(rows)
        assert saved(matrix, DATA.labels, DATA.qid, tmp_path, absent=absent) == (tmp_path / "m.json").read_bytes()


def test_scipy_rows_are_not_copied() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(DATA.to_numpy())
    rows = unbinned(lmart.Dataset(matrix, DATA.labels, DATA.qid), "X", allow_infinite=True).features
    assert np.shares_memory(rows.between(0, 10).values, matrix.data)


def test_arrays_and_float_columns_are_not_copied() -> None:
    X = np.ascontiguousarray(DATA.to_numpy())
    rows = unbinned(lmart.Dataset(X, DATA.labels, DATA.qid), "X", allow_infinite=True).features
    assert np.shares_memory(rows.between(5, 10).values, X)
