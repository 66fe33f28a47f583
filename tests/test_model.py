"""The door for Python programs."""

from __future__ import annotations

import copy
import math
import pickle
import random
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.paths import SAMPLE
from helpers.trees import grow, plain_scores

import lmart
from lmart.errors import DataError, ModelError
from lmart.formats.models.model_files import write_model
from lmart.model import Model, load
from lmart.scoring.ensemble import Ensemble

TEST_FILE = SAMPLE / "test.svm"


def sample_model(names: tuple[str, ...] | None = None, absent: str = "zero") -> Ensemble:
    rng = random.Random(2)
    trees = tuple(grow(rng, 9, range(3), [0.5, 1.5, 2.5]) for _ in range(5))
    return Ensemble(trees, np.array([2, 5, 9]), names, absent=absent)


ROWS = [[0.0, 1.0, 2.0], [math.nan, 0.5, 9.0], [3.0, math.nan, -1.0]]


def expected(ensemble: Ensemble, rows: list[dict[int, float]]) -> list[float]:
    return plain_scores(ensemble, rows)


def test_columns_are_the_features_in_order(tmp_path: Path) -> None:
    ensemble = sample_model()
    write_model(ensemble, str(tmp_path / "m.json"))
    model = load(str(tmp_path / "m.json"))
    assert model.feature_ids == [2, 5, 9]
    assert model.feature_names is None
    scores = expected(ensemble, [dict(enumerate(row)) for row in ROWS])
    assert model.predict(ROWS).tolist() == scores
    assert model.predict(np.asfortranarray(ROWS), threads=2).tolist() == scores
    assert model.predict(np.array(ROWS, np.float32)).tolist() == scores
    assert model.predict(np.zeros((0, 3))).tolist() == []


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_columns_may_be_named(absent: str) -> None:
    ensemble = sample_model(("a", "b", "c"), absent)
    model = Model(ensemble)
    assert model.feature_names == ["a", "b", "c"]
    scores = expected(ensemble, [{2: row[0], 0: row[2]} for row in ROWS])
    counted = "counted as " + ("0" if absent == "zero" else "missing")
    with pytest.warns(UserWarning):
        assert model.predict(ROWS, feature_ids=[9, 4, 2]).tolist() == scores
    with pytest.warns(UserWarning) as told:
        assert model.predict(ROWS, feature_names=["c", "x", "a"]).tolist() == scores
    assert [str(one.message) for one in told] == [
        "features: 1 of 3 features is not in the model: 'x'; scored without",
        f"features: 1 of 3 features of the model has no column: 'b'; {counted}",
    ]
    assert told[0].filename == __file__
    with pytest.raises(DataError, match="1 of 3 features is not in the model: 'x'"):
        model.predict(ROWS, feature_names=["c", "x", "a"], strict=True)
    with pytest.raises(ValueError, match="the same feature"):
        model.predict(ROWS, feature_names=["c", "a", "a"])


def test_wrong_arrays_are_refused() -> None:
    model = Model(sample_model())
    with pytest.raises(ValueError, match="features has 1 dimension;"):
        model.predict([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="features has 2 columns, where 3 are due"):
        model.predict([[1.0, 2.0]])
    with pytest.raises(ValueError, match="2 columns are named, but features has 3 columns; name each"):
        model.predict(ROWS, feature_ids=[2, 5])
    with pytest.raises(ValueError, match="no feature names"):
        model.predict(ROWS, feature_names=["a", "b", "c"])
    with pytest.raises(DataError, match="no feature of the data is in the model"):
        model.predict(ROWS, feature_ids=[1, 3, 4])
    for wrong in (-1, 1.5, None, 2**63, np.ma.masked, ""):
        with pytest.raises(ValueError, match=r"feature_ids holds '.*'; give whole numbers from 0 up"):
            model.predict(ROWS, feature_ids=[wrong, 5, 9])  # type: ignore[list-item]


def test_threads_may_share_a_model() -> None:
    model = Model(sample_model())
    rows = np.random.default_rng(1).normal(1, 1, (500, 3))
    alone = model.predict(rows)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: model.predict(rows), range(40)):
            assert (scores == alone).all()


def test_files(tmp_path: Path) -> None:
    ensemble = Ensemble(sample_model().trees, np.array([1, 2, 20]))
    data = tmp_path / "d.svm"
    data.write_text("1:1 2:2 20:3\n\n7:1\n")
    scores = expected(ensemble, [{0: 1.0, 1: 2.0, 2: 3.0}, {}])
    with pytest.warns(UserWarning, match="d.svm: 1 of 4 features is not in the model: '7'; scored without"):
        assert Model(ensemble).predict_letor(str(data)).tolist() == scores
    with pytest.raises(DataError, match="'7'"):
        Model(ensemble).predict_letor(data, strict=True)
    sample = Model(Ensemble(ensemble.trees, np.arange(1, 21)))
    for threads in (None, 1, 2):
        assert len(sample.predict_letor(TEST_FILE, threads=threads)) == len(TEST_FILE.read_text().splitlines())
    with pytest.raises(ModelError):
        load(str(data))
    with pytest.raises(DataError, match="no such file"):
        Model(ensemble).predict_letor(str(tmp_path / "no"))


class Column:
    """A column of a DataFrame; `nulls` as pandas or as polars converts them."""

    def __init__(self, cells: Sequence[object], like_pandas: bool) -> None:
        self.cells = cells
        self.like_pandas = like_pandas

    def to_numpy(self, **how: object) -> np.ndarray:
        if how and not self.like_pandas:
            raise TypeError("unexpected keyword")
        if how:
            return np.array([how["na_value"] if cell is None else cell for cell in self.cells], np.float64)
        return np.array([math.nan if cell is None else cell for cell in self.cells])


class Frame:
    """What pandas and polars have in common."""

    def __init__(self, columns: Mapping[Any, Sequence[object]], like_pandas: bool = True) -> None:
        self.columns = list(columns)
        self._cells = columns
        self._like_pandas = like_pandas

    def __len__(self) -> int:
        return len(self._cells[self.columns[0]])

    def __getitem__(self, label: object) -> Column:
        return Column(self._cells[label], self._like_pandas)


BY_NAME: dict[str, Sequence[object]] = {"a": [1.0, None], "b": [2, 0], "c": [3.0, 0.7]}
NAMED_ROWS = [[1.0, 2.0, 3.0], [math.nan, 0.0, 0.7]]


@pytest.mark.parametrize("like_pandas", [True, False])
def test_columns_of_a_frame_go_by_name_in_any_order(like_pandas: bool) -> None:
    model = Model(sample_model(("a", "b", "c")))
    scores = model.predict(NAMED_ROWS).tolist()
    for order in ("abc", "cab", "bca"):
        frame = Frame({name: BY_NAME[name] for name in order}, like_pandas)
        assert model.predict(frame).tolist() == scores
    further = Frame({"title": ["red", "shoe"], **BY_NAME}, like_pandas)
    assert model.predict(further).tolist() == scores  # a column of text is surely no feature
    with pytest.warns(UserWarning, match="1 of 4 features is not in the model: 'price'"):
        assert model.predict(Frame({"price": [1.0, 2.0], **BY_NAME}, like_pandas)).tolist() == scores
    with pytest.raises(DataError, match="'title'; drop them"):
        model.predict(further, strict=True)


def test_a_frame_that_lacks_a_column_is_refused_unless_told_otherwise() -> None:
    model = Model(sample_model(("a", "b", "c")))
    frame = Frame({"c": [3.0], "a": [1.0]})
    for strict in (None, True):
        with pytest.raises(DataError, match="1 of 3 features of the model has no column: 'b'"):
            model.predict(frame, strict=strict)
    with pytest.warns(UserWarning, match="no column: 'b'; counted as 0"):
        assert model.predict(frame, strict=False).tolist() == model.predict([[1.0, 0.0, 3.0]]).tolist()
    with pytest.raises(DataError, match="no feature of the data is in the model"):
        model.predict(Frame({"x": [1.0], "y": [1.0]}), strict=False)
    renamed = Frame({"a": [1.0], "bb": [2.0], "c": [3.0]})
    with pytest.raises(DataError), pytest.warns(UserWarning, match="'bb'"):
        model.predict(renamed)


def test_frames_of_models_without_names() -> None:
    model = Model(sample_model())
    scores = model.predict(NAMED_ROWS).tolist()
    by_index = {"9": BY_NAME["c"], "2": BY_NAME["a"], "5": BY_NAME["b"]}
    assert model.predict(Frame(by_index)).tolist() == scores
    assert model.predict(Frame({int(name): cells for name, cells in by_index.items()})).tolist() == scores
    first = Model(Ensemble(sample_model().trees, np.array([1, 2, 3])))
    with pytest.warns(UserWarning, match="matched by number, not by name: only the data has names"):
        assert first.predict(Frame(BY_NAME)).tolist() == scores
    from_zero = Frame(dict(enumerate(BY_NAME.values())))
    assert Model(Ensemble(sample_model().trees, np.arange(3))).predict(from_zero).tolist() == scores
    with pytest.raises(DataError, match=r"numbers its features 0 to 2 and the model 1 to 3.*columns of an array go in"):
        first.predict(from_zero)
    assert model.predict(Frame(BY_NAME), feature_ids=[2, 5, 9]).tolist() == scores
    with pytest.warns(UserWarning, match="not in the model: 'x'"):
        assert model.predict(Frame(by_index | {"x": [1.0, 2.0]})).tolist() == scores
    with pytest.raises(DataError, match="no column: '9'"):
        model.predict(Frame({"2": [1], "5": [1]}))


def test_columns_with_numbers_go_by_name_when_the_model_has_some_of_them_as_names() -> None:
    model = Model(sample_model(("a", "9", "7")))
    frame = Frame({"7": BY_NAME["c"], "9": BY_NAME["b"]})
    expected = model.predict([[0.0, *row[1:]] for row in NAMED_ROWS]).tolist()
    with pytest.warns(UserWarning, match="no column: 'a'; counted as 0"):
        assert model.predict(frame, strict=False).tolist() == expected
    data = lmart.Dataset([[3.0, 2.0], [0.7, 0.0]], [0, 1], [1, 1], feature_names=["7", "9"])
    with pytest.warns(UserWarning, match="no column: 'a'; counted as 0"):
        assert model.predict(data, strict=False).tolist() == expected


def test_indices_off_by_one_are_refused() -> None:
    model = Model(Ensemble(sample_model().trees, np.array([0, 1, 2])))
    with pytest.raises(DataError, match="numbers its features 1 to 3 and the model 0 to 2"):
        model.predict(ROWS, feature_ids=[1, 2, 3])
    with pytest.raises(DataError, match="numbers its features 1 to 3"):
        model.predict(Frame({"1": [1], "2": [1], "3": [1]}))


class Csr:
    """A sparse matrix by what it has, as SciPy's."""

    def __init__(self, indptr: list[int], indices: list[float], data: list[float], shape: tuple[int, ...]) -> None:
        self.indptr, self.indices, self.data = np.array(indptr, np.int32), np.array(indices), np.array(data)
        self.shape = shape


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_cells_that_a_sparse_matrix_does_not_store_are_absent(absent: str) -> None:
    ensemble = sample_model(absent=absent)
    matrix = Csr([0, 2, 2, 3], [0, 2, 1], [3.0, 0.0, math.nan], (3, 3))
    scores = expected(ensemble, [{0: 3.0, 2: 0.0}, {}, {1: math.nan}])
    assert Model(ensemble).predict(matrix).tolist() == scores
    for wrong in (Csr([0, 2], [2, 0], [1, 1], (1, 3)), Csr([0, 1], [3], [1], (1, 3)), Csr([0, 2], [1], [1], (1, 3))):
        with pytest.raises(ValueError, match=r"do not ascend|no sound sparse matrix"):
            Model(ensemble).predict(wrong)
    with pytest.raises(ValueError, match="features has 4 columns, where 3 are due"):
        Model(ensemble).predict(Csr([0, 0], [], [], (1, 4)))


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([[1j, 2, 3]], "complex numbers"),
        (np.array([[1j, 2, 3]], object), "holds no numbers"),
        (np.zeros((1, 3), "M8[s]"), "dates"),
        ([["red", "2", "3"]], "holds no numbers"),
        (np.zeros(2, [("a", float), ("b", float)]), "records"),
    ],
)
def test_what_is_no_real_number_is_refused(features: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Model(sample_model()).predict(features)


def test_numbers_beyond_64_bits_and_rows_of_unequal_lengths_are_refused() -> None:
    model = Model(sample_model())
    for features in ([[10**400, 2, 3]], np.array([[10**400, None, 3]], object)):
        with pytest.raises(ValueError, match="too large for 64 bits"):
            model.predict(features)
    with pytest.raises(ValueError, match="features cannot be an array"):
        model.predict([[1, 2, 3], [1]])


def test_masked_cells_are_missing() -> None:
    model = Model(sample_model())
    masked = np.ma.masked_array([[0.5, 2.0, 3.0], [7.0, 0.0, 0.7]], [[False] * 3, [True, False, False]])
    assert model.predict(masked).tolist() == model.predict([[0.5, 2.0, 3.0], [math.nan, 0.0, 0.7]]).tolist()


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"b": [1.0]}, r"column 'b' of features has the shape \(1,\); give one number for each row"),
        ({"b": [[1.0, 2.0], [3.0, 4.0]]}, r"column 'b' of features has the shape \(2, 2\)"),
    ],
)
def test_columns_of_a_frame_that_do_not_fit_are_named(cells: dict[object, list[object]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Model(sample_model(("a", "b", "c"))).predict(Frame(BY_NAME | cells, like_pandas=False))


def test_a_table_that_is_not_computed_yet_is_refused() -> None:
    class LazyFrame(Frame):
        def collect(self) -> Frame:
            return self

    with pytest.raises(ValueError, match=r"features is a LazyFrame.*collect\(\)"):
        Model(sample_model(("a", "b", "c"))).predict(LazyFrame(BY_NAME))


def test_a_sparse_matrix_whose_parts_do_not_fit_is_refused() -> None:
    model = Model(sample_model())
    for wrong in (
        Csr([0, 1], [1], [1.0], (5, 3)),
        Csr([0, 2], [0, 1], [1.0], (1, 3)),
        Csr([0, 1, -1, 1], [1], [1.0], (3, 3)),
        Csr([0, 1], [1.5], [1.0], (1, 3)),
        Csr([], [], [], (0, 3)),
    ):
        with pytest.raises(ValueError, match="no sound sparse matrix"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="features has 1 dimension;"):
        model.predict(Csr([0, 1], [1], [1.0], (3,)))
    assert model.predict(Csr([0], [], [], (0, 3))).tolist() == []


def test_threads_are_all_or_a_number_from_one() -> None:
    model = Model(sample_model())
    rows = np.random.default_rng(1).normal(1, 1, (5000, 3))
    alone = model.predict(rows, threads=1)
    assert (model.predict(rows) == alone).all()
    assert (model.predict(rows, threads=99) == alone).all()
    for threads in (0, -1):
        with pytest.raises(ValueError, match="from 1 up"):
            model.predict(rows, threads=threads)
        with pytest.raises(ValueError, match="from 1 up"):
            model.predict_letor(TEST_FILE, threads=threads)


def test_a_model_shows_its_size() -> None:
    assert repr(Model(sample_model())) == "<lmart.Model: 5 trees of 1 ranker, 3 features>"


def test_explanations_of_a_frame_stand_by_the_features_of_the_model() -> None:
    ensemble = sample_model(("a", "b", "c"))
    trees = tuple(replace(tree, leaf_documents=np.arange(1, tree.n_leaves + 1)) for tree in ensemble.trees)
    model = Model(replace(ensemble, trees=trees))
    wanted = model.explain(NAMED_ROWS)
    found = model.explain(Frame({name: BY_NAME[name] for name in "cab"}))
    assert (found.base, found.contributions.tolist()) == (wanted.base, wanted.contributions.tolist())


def test_real_frames_and_matrices() -> None:
    model = Model(sample_model(("a", "b", "c")))
    scores = model.predict(NAMED_ROWS).tolist()
    numbered = Model(sample_model())
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"c": [3.0, 0.7], "b": [2, 0], "a": pandas.array([1, None], "Int64")})
    assert model.predict(frame).tolist() == scores
    assert numbered.predict(frame[["a", "b", "c"]].to_numpy()).tolist() == scores
    assert numbered.predict(pandas.DataFrame(NAMED_ROWS, columns=[2, 5, 9])).tolist() == scores
    with pytest.raises(ValueError, match="column 'a'"):
        model.predict(frame.assign(a=["x", "y"]))
    polars = pytest.importorskip("polars")
    assert model.predict(polars.DataFrame({"c": [3.0, 0.7], "a": [1, None], "b": [2, 0]})).tolist() == scores
    sparse = pytest.importorskip("scipy.sparse")
    plain = [[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array):
        assert numbered.predict(kind(plain)).tolist() == numbered.predict(plain).tolist()
    unsorted = sparse.csr_matrix((np.array([1.0, 1.0, 2.0]), np.array([2, 0, 0]), np.array([0, 3])), (1, 3))
    assert numbered.predict(unsorted).tolist() == numbered.predict([[3.0, 0.0, 1.0]]).tolist()
    assert unsorted.indices.tolist() == [2, 0, 0]  # the caller's stays as it is


def test_tables_of_arrow() -> None:
    arrow = pytest.importorskip("pyarrow")
    model = Model(sample_model(("a", "b", "c")))
    table = arrow.table({name: BY_NAME[name] for name in "cab"})
    assert model.predict(table).tolist() == model.predict(NAMED_ROWS).tolist()
    batch = arrow.record_batch({"c": [3, None], "b": [True, None], "a": arrow.array([None, 1], arrow.decimal128(9))})
    assert model.predict(batch).tolist() == model.predict([[math.nan, 1, 3], [1, math.nan, math.nan]]).tolist()


def test_rows_are_scored_and_explained_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = sample_model(("a", "b", "c"))
    trees = tuple(replace(tree, leaf_documents=np.arange(1, tree.n_leaves + 1)) for tree in ensemble.trees)
    model = Model(replace(ensemble, trees=trees))
    rows = np.random.default_rng(1).normal(1, 1, (100, 3)).astype(np.float32)
    frame = Frame({name: rows[:, i].tolist() for i, name in enumerate("abc")})
    matrix = Csr((np.arange(101) * 3).tolist(), [0, 1, 2] * 100, rows.reshape(-1).tolist(), (100, 3))
    scores, shares = model.predict(rows), model.explain(rows).contributions
    monkeypatch.setattr("lmart.data.dataset.PIECE_CELLS", 21)
    for features in (rows, np.asfortranarray(rows), frame, matrix):
        assert (model.predict(features) == scores).all()
        assert (model.explain(features).contributions == shares).all()


def test_no_copy_of_a_large_array_is_scored() -> None:
    import tracemalloc

    model = Model(sample_model())
    rows = np.asfortranarray(np.random.default_rng(1).random((200_000, 30), np.float32))
    ids = [2, 5, 9, *range(100, 127)]
    with pytest.warns(UserWarning, match="27 of 30 features are not in the model"):
        tracemalloc.start()
        model.predict(rows, ids, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < rows.nbytes / 2


def test_models_with_the_same_file_are_equal(tmp_path: Path) -> None:
    model = Model(sample_model(("a", "b", "c")))
    model.save(tmp_path / "m.json")
    same = (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), lmart.load(tmp_path / "m.json"), model)
    assert all(model == one and hash(model) == hash(one) for one in same) and len({model, *same}) == 1
    tree = model.ensemble.trees[0]
    changed = (replace(tree, leaf_values=tree.leaf_values + 1.0), *model.ensemble.trees[1:])
    assert model != Model(replace(model.ensemble, trees=changed)) and model != Model(sample_model(("a", "b", "d")))
    assert model != "model"


def test_importance_by_kind() -> None:
    model = Model(sample_model(("a", "b", "c")))
    assert model.ensemble.trees[0].split_gains is None
    splits = model.importance("splits")
    assert set(splits) == {"a", "b", "c"}
    assert sum(splits.values()) == sum(len(tree.thresholds) for tree in model.ensemble.trees)
    with pytest.raises(ModelError, match="does not say what its splits gained; give kind='splits'"):
        model.importance()
    trained = Model(
        replace(
            model.ensemble,
            trees=tuple(
                replace(
                    tree,
                    split_gains=np.ones(len(tree.thresholds)),
                    leaf_documents=np.ones(tree.n_leaves, np.int64),
                )
                for tree in model.ensemble.trees
            ),
        )
    )
    total = sum(splits.values())
    assert trained.importance() == pytest.approx({name: count / total for name, count in splits.items()})
    rows = [[0.5, -1.0, 2.0], [3.0, 1.0, math.nan]]
    means = np.abs(trained.explain(rows).contributions).mean(axis=0).tolist()
    found = trained.importance("contributions", rows)
    assert [found[name] for name in "abc"] == pytest.approx(means)
    for shown in (found, trained.importance(), splits):
        assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert type(splits["a"]) is int


@pytest.mark.parametrize("arguments", [("cover",), ("splits", [[1.0, 2.0, 3.0]]), ("contributions",)])
def test_other_importance_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="give"):
        Model(sample_model()).importance(*arguments)


def test_labels_that_are_no_grades_are_warned_of() -> None:
    rows, qid = [[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]], [1, 1, 1, 2, 2, 2]
    for largest, gain, metric, warned in (
        (40, "exp2", "ndcg@3", True),
        (31, "exp2", "ndcg@3", True),
        (30, "exp2", "ndcg@3", False),
        (40, "linear", "ndcg@3", False),
        (40, "exp2", "map", False),
    ):
        labels = [0, 1, largest, 0, 0, 1]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            objective = "lambdamart" if metric != "map" else "map"
            options: dict[str, Any] = {"objective": objective, "metric": metric, "gain": gain}
            model = lmart.train(rows, labels, qid, trees=1, rankers=1, min_docs=1, **options)
            model.evaluate(rows, labels, qid, metric=metric)
        found = [str(one.message) for one in told if "give gain linear" in str(one.message)]
        assert len(found) == 2 * warned, (largest, gain, metric)
        assert all(one.startswith(f"labels go up to {largest}, and with the gain exp2 each level") for one in found)


def test_evaluate_leaves_out_columns_as_predict_does() -> None:
    model = Model(sample_model(("a", "b", "c")))
    plain = model.evaluate(Frame(BY_NAME), [1, 0], [1, 1])
    assert model.evaluate(Frame({"title": ["red", "shoe"], **BY_NAME}), [1, 0], [1, 1]) == plain
    with pytest.warns(UserWarning, match="1 of 4 features is not in the model: 'price'") as told:
        assert model.evaluate(Frame({"price": [1.0, 2.0], **BY_NAME}), [1, 0], [1, 1]) == plain
    assert told[0].filename == __file__
    with pytest.raises(ValueError, match="y has 3 entries, but X has 2 rows"):
        model.evaluate(Frame(BY_NAME), [1, 0, 1], [1, 1])


def test_evaluate_takes_measures_in_a_list() -> None:
    data = lmart.read(SAMPLE / "vali.svm")
    model = lmart.train(data, trees=2)
    assert model.evaluate(data, metric=["ndcg@5", "map"]) == model.evaluate(data, metric="ndcg@5,map")


def test_what_a_model_says() -> None:
    model = lmart.train(lmart.read(SAMPLE / "train.svm"), trees=12, rankers=2)
    assert repr(model) == "<lmart.Model: 12 trees of 2 rankers, 20 features>"
    assert model.n_trees == 12
    assert model.settings["rankers"] == 2 and model.settings["learning_rate"] == 0.1
    model.settings.clear()
    assert model.settings


def test_models_can_be_pickled_and_copied() -> None:
    model, test = lmart.train(lmart.read(SAMPLE / "train.svm"), trees=3), lmart.read(TEST_FILE)
    base, expected = model.explain(test).base, model.predict(test).tolist()
    for made in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert made.predict(test).tolist() == expected
        assert made.explain(test).base == base
