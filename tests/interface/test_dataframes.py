"""DataFrames of pandas and polars and sparse matrices of SciPy train the model that a file of the same data trains."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart
from lmart.array_types import Float64Array
from lmart.data.python_dataset import unbinned
from lmart.errors import DataError

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


def test_columns_with_numbers_keep_them_and_their_values(tmp_path: Path) -> None:
    """In any order, and from 0: the model, and the scores, are those of a CSV file of the same columns."""
    pd = pytest.importorskip("pandas")
    few, settings = GAPS[:, :3], {"rankers": 1}
    for labels in ([0, 1, 2], ["0", "1", "2"], ["5", "11", "9"], [np.int64(2), np.int64(1), np.int64(0)]):
        frame = pd.DataFrame(few, columns=labels)
        frame.assign(label=DATA.labels, qid=DATA.qid).to_csv(tmp_path / "t.csv", index=False)
        run("train", "--data", tmp_path / "t.csv", "--trees", "6", "--rankers", "1", "-o", tmp_path / "m.json", "-qq")
        assert saved(frame, DATA.labels, DATA.qid, tmp_path, **settings) == (tmp_path / "m.json").read_bytes()
        named = saved(few, DATA.labels, DATA.qid, tmp_path, feature_names=labels, **settings)
        assert named == (tmp_path / "m.json").read_bytes()
        sparse = pytest.importorskip("scipy.sparse").csr_array(np.where(np.isnan(few), np.nan, few))
        assert saved(sparse, DATA.labels, DATA.qid, tmp_path, feature_names=labels, **settings) == named
        model = lmart.load(tmp_path / "m.json")
        assert model.feature_ids == sorted(map(int, labels)) and model.feature_names is None
        scores = model.predict(frame)
        assert (model.predict(frame[frame.columns[::-1]]) == scores).all()
        assert (model.predict(few, feature_names=[str(label) for label in labels]) == scores).all()
        assert (model.predict_letor(tmp_path / "t.csv") == scores).all()
        further = frame.assign(price=1.5)
        with pytest.warns(UserWarning, match="1 of 4 features is not in the model: 'price'"):
            assert (model.predict(further) == scores).all()
        further = frame.assign(title="red", label=DATA.labels, qid=DATA.qid)  # which nobody takes for features
        assert (model.predict(further) == scores).all()
        with pytest.raises(DataError, match="'title'"):
            model.predict(further, strict=True)
        with pytest.warns(UserWarning, match="'title'"):
            assert (model.predict(lmart.Dataset(frame.assign(title=1), DATA.labels, DATA.qid)) == scores).all()


LABELS = ("012345", "1234", "abcd", "a17b", "9876", "0ab2")


def test_a_frame_its_file_and_its_dataset_are_matched_alike(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    rng, draw = np.random.default_rng(5), random.Random(5)
    trained_on = [draw.sample(names, draw.randint(1, 4)) for names in LABELS for _ in range(2)]
    scored = [draw.sample(names, draw.randint(1, 4)) for names in LABELS for _ in range(2)]
    outcomes = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for columns in trained_on:
            X = rng.random((20, len(columns)))
            labels = X[:, 0] > 0.5
            model = lmart.train(pd.DataFrame(X, columns=columns), labels, [1] * 20, trees=2, rankers=1, min_docs=1)
            for others in scored:
                frame = pd.DataFrame(rng.random((6, len(others))), columns=others)
                frame.assign(label=1, qid=1).to_csv(tmp_path / "t.csv", index=False)
                data = lmart.Dataset(frame, [1] * 6, [1] * 6)
                found = [outcome(partial(model.predict_letor, tmp_path / "t.csv"))]
                for given in (frame, data, lmart.read(tmp_path / "t.csv")):
                    found.append(outcome(partial(model.predict, given, strict=False)))
                assert found == found[:1] * 4, (columns, others)
                outcomes.add(type(found[0]))
    assert outcomes == {str, list}


def outcome(predict: Callable[[], Float64Array]) -> list[float] | str:
    """The scores, or how the sentence begins that says why there are none."""
    try:
        return list(predict())
    except DataError as refusal:
        return refusal.message[:20]


def test_validation_sets_are_matched_by_their_labels_and_arrays_by_their_order() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(DATA.to_numpy()[:, :3], columns=["7", "3", "4"])
    settings: Any = {"trees": 8, "early_stop": 2, "rankers": 1}
    judged = DATA.labels, DATA.qid

    def trained(valid: object) -> list[list[float]]:
        data = valid if isinstance(valid, lmart.Dataset) else (valid, *judged)
        model = lmart.train(frame, *judged, data, **settings)
        return [tree.thresholds.tolist() for tree in model.ensemble.trees]

    expected = trained(frame)
    assert trained(frame[["4", "7", "3"]]) == expected == trained(frame.to_numpy())
    assert trained(lmart.Dataset(frame.to_numpy(), *judged)) == expected
    given = frame.to_numpy()
    model = lmart.train(given, *judged, (given, *judged), feature_names=["7", "3", "4"], **settings)
    assert [tree.thresholds.tolist() for tree in model.ensemble.trees] == expected
    with pytest.raises(lmart.ArrayError, match="valid has 2 columns, where 3 are due"):
        trained(frame.to_numpy()[:, :2])
    with pytest.raises(DataError, match="no feature of the data is in the model"):
        trained(frame.set_axis(["8", "9", "10"], axis=1))


def test_categories_are_refused_by_name() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    numbers = pd.Series([3, 7, 1, 3])
    for given in (
        pd.DataFrame({"c": numbers.astype("category")}),
        pd.DataFrame({"c": numbers.astype(str).astype("category")}),
        pl.DataFrame({"c": ["3", "7", "1", "3"]}, schema={"c": pl.Categorical}),
        pl.DataFrame({"c": ["3", "7", "1", "3"]}, schema={"c": pl.Enum(["1", "3", "7"])}),
        pa.table({"c": pa.array([3, 7, 1, 3]).dictionary_encode()}),
        pa.record_batch({"c": pa.array([3, 7, 1, 3]).dictionary_encode()}),
        pd.DataFrame({"c": pd.array([3, 7, 1, 3], pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64())))}),
    ):
        with pytest.raises(lmart.ArrayError, match=r"column 'c' holds categories; .* by .astype\(float\), or drop the"):
            lmart.train(given, [0, 1, 0, 1], [1, 1, 2, 2], trees=1)
    plain = lmart.train(numbers.to_frame("c"), [0, 1, 0, 1], [1, 1, 2, 2], trees=1, min_docs=1)
    with pytest.raises(lmart.ArrayError, match="column 'c' holds categories"):
        plain.predict(numbers.astype("category").to_frame("c"))


def test_a_frame_of_sparse_columns_is_a_sparse_matrix(tmp_path: Path) -> None:
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.where(GAPS > 0.5, GAPS, 0.0))
    frame = pd.DataFrame.sparse.from_spmatrix(matrix, columns=NAMES)
    data = unbinned(lmart.Dataset(frame, DATA.labels, DATA.qid), "X")
    assert data.feature_names == tuple(NAMES) and len(data.features.between(0, len(DATA)).values) == matrix.nnz
    for absent in ("zero", "missing"):
        expected = saved(matrix, DATA.labels, DATA.qid, tmp_path, feature_names=NAMES, absent=absent)
        assert saved(frame, DATA.labels, DATA.qid, tmp_path, absent=absent) == expected
    model = lmart.load(tmp_path / "p.json")
    assert model.predict(frame[NAMES[::-1]]).tolist() == model.predict(matrix).tolist()


def test_other_sparse_columns_are_made_dense_piece_by_piece() -> None:
    pd = pytest.importorskip("pandas")
    dense = pd.DataFrame(np.where(GAPS > 0.5, GAPS, np.nan), columns=NAMES)
    for frame in (dense.astype(pd.SparseDtype(float)), dense.astype({"f3": pd.SparseDtype(float)})):
        rows = unbinned(lmart.Dataset(frame, DATA.labels, DATA.qid), "X").features
        assert np.array_equal(rows.between(5, 90).dense(20, 0.0), dense.to_numpy()[5:90], equal_nan=True)
    text = pd.DataFrame({"c": pd.array(["a", "b"], pd.SparseDtype(object))})
    with pytest.raises(lmart.ArrayError, match="column 'c' holds no numbers"):
        lmart.Dataset(text, [0, 1], [1, 1])


def test_arrays_of_arrow_are_labels_ids_and_weights(expected: bytes, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch(dict(zip(NAMES, GAPS.T, strict=True)))
    assert saved(batch, pa.array(DATA.labels), pa.array(DATA.qid.tolist()), tmp_path) == expected
    binary = pa.array(DATA.labels > 1)
    data = lmart.Dataset(batch, binary, pa.array(DATA.qid.tolist()), weights=pa.array([True] * DATA.n_queries))
    assert data.labels.tolist() == (DATA.labels > 1).tolist() and data.query_sizes.tolist() == DATA.query_sizes.tolist()
    with pytest.raises(lmart.ArrayError, match=r"qid of row 1 \(from 0\) is missing"):
        lmart.Dataset([[1.0]] * 2, [0, 1], pa.array(["a", None]))
    with pytest.raises(lmart.ArrayError, match=r"the label of row 0 \(from 0\) is nan"):
        lmart.Dataset([[1.0]] * 2, pa.array([None, 1]), [1, 1])
    with pytest.raises(lmart.ArrayError, match=r"weight 1 \(from 0\) is nan"):
        lmart.Dataset([[1.0]] * 2, [0, 1], [1, 1], weights=pa.array([1, None]))


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


@pytest.mark.parametrize("lazy", ["X", "y", "qid", "weights", "init_scores", "positions"])
def test_dask_is_refused_with_what_to_do(lazy: str) -> None:
    array = pytest.importorskip("dask.array")
    ones = np.ones(DATA.n_documents)
    given: dict[str, Any] = {"X": DATA.to_numpy(), "y": DATA.labels, "qid": DATA.qid}
    given |= {} if lazy in given else {lazy: ones}
    given[lazy] = array.from_array(given[lazy])
    refused = rf"^{lazy} is a Dask Array; write it as Parquet .*compute\(\)"
    with pytest.raises(lmart.ArrayError, match=refused):
        lmart.train(**given)
    with pytest.raises(lmart.ArrayError, match=refused):
        lmart.train(DATA, valid=lmart.Dataset(**given))


def test_dask_is_refused_where_models_score_and_scores_are_measured() -> None:
    array, dataframe = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    lazy, ones = array.from_array(DATA.to_numpy()), array.from_array(np.ones(DATA.n_documents))
    with pytest.raises(lmart.ArrayError, match=r"^features is a Dask Array; write it as Parquet"):
        lmart.train(DATA, trees=1).predict(lazy)
    with pytest.raises(lmart.ArrayError, match=r"^scores is a Dask Array; write it as Parquet"):
        lmart.evaluate(DATA, ones)
    frame = dataframe.from_dask_array(lazy[:, :1], columns=["a"])
    with pytest.raises(lmart.ArrayError, match=r"^scores of 'a' is a Dask Series; write it as Parquet"):
        lmart.evaluate(DATA, frame)
    estimator = pytest.importorskip("lmart.sklearn").LambdaMARTRanker(trees=1)
    for X, y, what in ((lazy, DATA.labels, "X"), (DATA.to_numpy(), ones, "y")):
        with pytest.raises(lmart.ArrayError, match=f"^{what} is a Dask Array; write it as Parquet"):
            estimator.fit(X, y, qid=DATA.qid)
