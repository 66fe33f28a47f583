"""lmart.Dataset and lmart.read: what they hold, and what they take."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.paths import SAMPLE

import lmart
from lmart.data.python_dataset import training_metadata
from lmart.errors import ArrayError, DataError

ROWS = [[1.0, math.nan], [0.0, 2.0], [3.0, 0.5]]


def test_what_a_dataset_says() -> None:
    data = lmart.Dataset(ROWS, [2, 0, 1], qid=["b", "b", "a"])
    assert (len(data), data.n_documents, data.n_queries, data.n_features) == (3, 3, 2, 2)
    assert data.labels.tolist() == [2.0, 0.0, 1.0]
    assert data.qid.tolist() == ["b", "b", "a"] and data.query_sizes.tolist() == [2, 1]
    assert data.feature_ids == [1, 2] and data.feature_names is None and data.document_ids is None
    assert np.array_equal(data.to_numpy(), ROWS, equal_nan=True)
    named = lmart.Dataset(ROWS, [2, 0, 1], group=[1, 2], feature_names=["x", "y"], weights=[1, 2])
    assert named.feature_names == ["x", "y"] and named.qid.tolist() == ["1", "2", "2"]
    assert repr(named) == "<lmart.Dataset: 3 documents of 2 queries, 2 features, weights>"


def test_what_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "d.svm"
    path.write_text("1 qid:7 3:0.5 9:nan # docid = A\n0 qid:7 4:2\n2 qid:8 3:1\n")
    data = lmart.read(path)
    assert data.feature_ids == [3, 4, 9] and data.qid.tolist() == ["7", "7", "8"]
    assert data.document_ids == ["A", "", ""]
    expected = [[0.5, 0.0, math.nan], [0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]
    assert np.array_equal(data.to_numpy(), expected, equal_nan=True)
    assert np.isnan(data.to_numpy(absent=math.nan)).sum() == 6


def test_options_of_reading(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("grade,q,a,b,c\n1,1,2,3,inf\n0,2,1,1,1\n1,1,5,5,5\n")
    with pytest.raises(DataError, match="no column for the label"):
        lmart.read(table)
    columns = {"label_column": "grade", "query_column": "q"}
    with pytest.raises(DataError, match="inf"):
        lmart.read(table, label_column="grade", query_column="q", group_by_qid=True)
    data = lmart.read(table, group_by_qid=True, allow_inf=True, ignore_columns=["b"], threads=1, **columns)  # type: ignore[arg-type]
    assert data.feature_names == ["a", "c"] and data.labels.tolist() == [1, 1, 0]
    assert lmart.read(table, group_by_qid=True, ignore_columns="c", **columns).feature_names == ["a", "b"]  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"read\(\) has no option 'label_colum'; perhaps 'label_column'"):
        lmart.read(table, label_colum="grade")  # type: ignore[call-arg]
    sizes, rows = tmp_path / "sizes", tmp_path / "r.svm"
    sizes.write_text("2\n1\n")
    rows.write_text("1 1:1\n0 1:2\n0 1:3\n")
    assert lmart.read(rows, query_sizes=sizes).query_sizes.tolist() == [2, 1]
    with pytest.raises(DataError, match="no such file"):
        lmart.read(tmp_path / "none")


def test_what_readers_say_becomes_a_warning(tmp_path: Path) -> None:
    rows = tmp_path / "r.svm"
    rows.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    with pytest.warns(UserWarning, match="no row has the feature to ignore '9'") as told:
        lmart.read(rows, ignore_columns=["9"])
    assert told[0].filename == __file__


@pytest.mark.parametrize("names", [["a", "a"], ["a", ""], ["a", "b\n"], ["7", "7"]])
def test_names_that_are_refused(names: list[str]) -> None:
    with pytest.raises(ArrayError):
        lmart.Dataset(ROWS, [2, 0, 1], qid=[1, 1, 1], feature_names=names)


def test_metadata_follow_collected_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.svm"
    path.write_text("1 qid:a 1:1\n0 qid:b 1:2\n2 qid:a 1:3\n")
    data = lmart.read(path, group_by_qid=True).with_metadata(init_scores=[0.1, 0.2, 0.3], positions=[5, 6, 5])
    metadata = training_metadata(data)
    assert data.labels.tolist() == [1, 2, 0]
    assert metadata.init_scores is not None and metadata.init_scores.tolist() == [0.1, 0.3, 0.2]
    assert metadata.positions is not None and metadata.positions.names == ("5", "6")
    assert metadata.positions.codes.tolist() == [0, 0, 1]


def test_a_model_scores_and_evaluates_datasets(tmp_path: Path) -> None:
    data, test = lmart.read(SAMPLE / "train.svm"), lmart.read(SAMPLE / "test.svm")
    model = lmart.train(data, trees=20)
    scores = model.predict(test)
    assert scores.tolist() == model.predict_letor(SAMPLE / "test.svm").tolist()
    assert scores.tolist() == model.predict(lmart.Dataset(test.to_numpy(), test.labels, test.qid)).tolist()
    with pytest.raises(ArrayError, match="features has 3 columns, where 20 are due"):
        model.predict(lmart.Dataset(test.to_numpy()[:, :3], test.labels, test.qid))
    with pytest.raises(ArrayError, match="a Dataset has its own features"):
        model.predict(test, feature_ids=[1])
    assert model.explain(test).contributions.shape == (600, 20)


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (SAMPLE / "vali.svm", {"duplicates": "first"}, "duplicates is 'first'; give 'error' or 'last'"),
        (SAMPLE / "vali.svm", {"max_errors": 0}, "max_errors is 0; give a number from 1 up"),
        ([], {}, "path is an empty list; give one file or more"),
    ],
)
def test_what_read_does_not_take_is_refused(path: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lmart.read(path, **options)


def test_a_dataset_can_be_pickled() -> None:
    labels, qid = [2, 0, 1], [1, 1, 2]
    table: Any = {"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}
    features: list[Any] = [ROWS, np.array(ROWS, np.float32)]
    features.append(pytest.importorskip("pandas").DataFrame(table))
    features.append(pytest.importorskip("scipy.sparse").csr_matrix(np.array(ROWS)))
    for X in features:
        data = lmart.Dataset(X, labels, qid, weights=[1, 2])
        again = pickle.loads(pickle.dumps(data))
        assert repr(again) == repr(data)
        assert np.array_equal(again.to_numpy(), data.to_numpy(), equal_nan=True)
