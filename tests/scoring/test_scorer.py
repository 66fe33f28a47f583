"""Scores have the bits of a plain walk over raw values, whatever the model's shape, the threads and the company."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.score_data import score_dataset
from helpers.trees import THRESHOLDS, around, ensembles, grow, plain_scores, rows_for, sparse
from hypothesis import given
from hypothesis import strategies as st

from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, ModelError
from lmart.kernels.scoring.bit_vectors import FEW_ROWS
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.feature_matching import FeatureMatcher, match_dataset, missing_columns
from lmart.scoring.scorer import Scorer, first_step_tree
from lmart.threads import WorkerPool


def scores(ensemble: Ensemble, rows: list[dict[int, float]], pool: WorkerPool | None = None) -> list[float]:
    """Scores of rows {the model's column: value}, which few rows and many must have alike."""
    scorer, columns = Scorer(ensemble), np.arange(ensemble.n_features, dtype=np.int32)
    found: list[float] = scorer.score(sparse(rows), columns, pool).tolist()
    if 0 < len(rows) <= FEW_ROWS:
        many = scorer.score(sparse(rows * (FEW_ROWS + 1)), columns, pool).tolist()
        assert bits(many) == bits(found * (FEW_ROWS + 1))
    else:
        few = [scorer.score(sparse([row]), columns, pool).item() for row in rows[:FEW_ROWS]]
        assert bits(few) == bits(found[:FEW_ROWS])
    return found


def bits(numbers: list[float]) -> list[str]:
    return [number.hex() for number in numbers]


@given(st.data())
def test_scores_are_those_of_the_plain_walk(data: st.DataObject) -> None:
    ensemble = data.draw(ensembles())
    rows = data.draw(rows_for(ensemble.n_features))
    assert bits(scores(ensemble, rows)) == bits(plain_scores(ensemble, rows))


@given(ensembles(), st.integers(0, 2**32), st.data())
def test_trees_of_one_feature_each_score_as_they_are_walked(start: Ensemble, seed: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    columns = rng.sample(range(start.n_features), rng.randint(1, start.n_features))
    steps = tuple(grow(rng, rng.choice([2, 12, 60]), [column], THRESHOLDS) for column in columns)
    ensemble = replace(start, trees=(*steps[:1], *start.trees, *steps))
    assert first_step_tree(ensemble.trees) <= len(ensemble.trees) - len(steps)
    rows = data.draw(rows_for(start.n_features))
    assert bits(scores(ensemble, rows)) == bits(plain_scores(ensemble, rows))
    halves = scores(replace(ensemble, average=True), rows)
    assert halves == [total / len(ensemble.trees) for total in plain_scores(ensemble, rows)]


def test_trees_of_one_feature_are_those_at_the_end_that_share_none() -> None:
    rng = random.Random(1)
    first, second = (grow(rng, 5, [column], THRESHOLDS) for column in (0, 1))
    both, leaf, wide = grow(rng, 30, [0, 1], THRESHOLDS), grow(rng, 1, [0], THRESHOLDS), grow(rng, 256, [2], THRESHOLDS)
    for trees, expected in (
        ((), 0),
        ((first, second), 0),
        ((first, second, first), 1),
        ((both, first), 1),
        ((first, leaf), 2),
        ((first, wide), 2),
        ((wide, first), 1),
    ):
        assert first_step_tree(trees) == expected
    rows = [{0: value, 1: value} for value in around(THRESHOLDS)]
    in_float32 = Ensemble((both, first, second), np.arange(3), sums="float32")
    sums = np.zeros(len(rows), np.float32)
    for tree in in_float32.trees:
        sums = (sums + np.array(scores(Ensemble((tree,), np.arange(3)), rows))).astype(np.float32)
    assert scores(in_float32, rows) == sums.tolist()


def large(
    n_leaves: int, shape: str, n_features: int = 3, n_thresholds: int = 40, n_trees: int = 2
) -> tuple[Ensemble, list[dict[int, float]]]:
    rng = random.Random(n_leaves)
    thresholds = [rng.gauss(0, 1) for _ in range(n_thresholds)]
    trees = tuple(grow(rng, n_leaves, range(n_features), thresholds, shape) for _ in range(n_trees))
    values = around(thresholds)
    rows = [{f: rng.choice(values) for f in range(n_features) if rng.random() < 0.8} for _ in range(50)]
    return Ensemble(trees, np.arange(n_features, dtype=np.int64)), rows


@pytest.mark.parametrize("shape", ["random", "chain", "level"])
@pytest.mark.parametrize("n_leaves", [1, 2, 255, 4096])
def test_trees_of_any_size_and_shape(n_leaves: int, shape: str) -> None:
    ensemble, rows = large(n_leaves, shape)
    assert scores(ensemble, rows) == plain_scores(ensemble, rows)


@pytest.mark.parametrize("n_thresholds", [255, 256, 257, 511, 2000])
def test_more_thresholds_than_a_byte_can_count(n_thresholds: int) -> None:
    ensemble, rows = large(3 * n_thresholds, "random", n_features=1, n_thresholds=n_thresholds, n_trees=3)
    assert scores(ensemble, rows) == plain_scores(ensemble, rows)


def test_thousands_of_features_and_short_rows() -> None:
    rng = random.Random(5)
    ensemble, _ = large(200, "random", n_features=5000, n_trees=5)
    rows = [{rng.randrange(5000): rng.gauss(0, 1) for _ in range(rng.randrange(6))} for _ in range(100)]
    assert scores(ensemble, rows) == plain_scores(ensemble, rows)


def test_a_chain_deeper_than_the_recursion_limit_is_walked_to_its_end() -> None:
    n = 4095
    tree = Tree(
        np.zeros(n, np.int32),
        np.arange(n, dtype=np.float64),
        np.zeros(n, np.bool_),
        ~np.arange(n, dtype=np.int32),
        np.append(np.arange(1, n, dtype=np.int32), ~n).astype(np.int32),
        np.arange(n + 1, dtype=np.float64),
    )
    ensemble = Ensemble((tree,), np.array([7]))
    assert scores(ensemble, [{0: float(x)} for x in (-1, 0, 0.5, 1, 4093.5, 4094, 4095)]) == [
        0,
        0,
        1,
        1,
        4094,
        4094,
        4095,
    ]


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_what_absent_means(absent: str) -> None:
    tree = Tree(
        np.zeros(1, np.int32),
        np.array([-0.5]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array([1.0, 2.0]),
    )
    ensemble = Ensemble((tree,), np.array([7]), absent=absent)
    assert scores(ensemble, [{}, {0: 0.0}, {0: math.nan}]) == [2.0 if absent == "zero" else 1.0, 2.0, 1.0]


def test_equality_at_the_threshold() -> None:
    tree = Tree(
        np.zeros(1, np.int32),
        np.array([0.5]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array([-1.0, 1.0]),
    )
    assert scores(Ensemble((tree,), np.array([1])), [{0: 0.5}, {0: 0.4999999}, {0: 0.5000001}]) == [-1.0, -1.0, 1.0]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 3000])
def test_threads_and_company_change_nothing(n: int) -> None:
    ensemble, few = large(31, "random")
    rows = [few[i % len(few)] for i in range(n)]
    alone = scores(ensemble, rows)
    once = scores(ensemble, few)
    assert alone == [once[i % len(few)] for i in range(n)]
    for threads in (2, 3):
        with WorkerPool(threads) as pool:
            assert scores(ensemble, rows, pool) == alone


def test_no_tree_gives_the_base_score() -> None:
    assert scores(Ensemble((), np.array([1]), base_score=0.25), [{}, {0: 3.0}]) == [0.25, 0.25]
    assert scores(Ensemble((), np.zeros(0, np.int64), base_score=0.25), [{}]) == [0.25]


def test_sums_beyond_float64_are_refused() -> None:
    none = np.zeros(0, np.int32)
    leaf = Tree(none, np.zeros(0), np.zeros(0, np.bool_), none, none, np.array([1.7e308]))
    with pytest.raises(ModelError, match="more than a number can hold"):
        scores(Ensemble((leaf, leaf), np.array([1])), [{}])


# ---- features of the model and of the data --------------------------------------------------------------------------


def stump(ids: list[int], names: tuple[str, ...] | None = None) -> Ensemble:
    """1 where the last feature is above 0, else 0."""
    tree = Tree(
        np.array([len(ids) - 1], np.int32),
        np.array([0.0]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array([0.0, 1.0]),
    )
    return Ensemble((tree,), np.array(ids), names)


def dataset(rows: list[dict[int, float]], ids: list[int], names: tuple[str, ...] | None = None) -> RankingDataset:
    n = len(rows)
    return RankingDataset(
        sparse(rows), np.array(ids, np.int64), np.zeros(n), np.array([0, n]), ["1"], names, source="d.svm"
    )


def test_features_match_by_id_wherever_they_stand() -> None:
    data = dataset([{0: 5.0, 1: -1.0}, {1: 2.0}], [3, 7])
    assert score_dataset(stump([1, 7]), data).tolist() == [0.0, 1.0]


def test_features_match_by_name_when_both_have_names() -> None:
    data = dataset([{0: 5.0, 1: -1.0}, {0: -1.0, 1: 2.0}], [1, 2], ("b", "a"))
    assert score_dataset(stump([1, 2], ("a", "b")), data).tolist() == [1.0, 0.0]
    assert score_dataset(stump([1, 2]), data).tolist() == [0.0, 1.0]


def test_names_that_are_numbers_of_the_model_go_by_them() -> None:
    data = dataset([{0: 5.0, 1: -1.0, 2: 4.0}], [1, 2, 3], ("x", "7", "3"))
    matcher = match_dataset(stump([3, 7]), data)
    assert matcher.known_columns.tolist() == [-1, 1, 0] and matcher.unknown == ["x"] and matcher.half_named is None
    assert matcher.matched_by_number is None
    with pytest.raises(DataError, match="the data numbers its features 0 to 2 and the model 1 to 3"):
        match_dataset(stump([1, 2, 3]), dataset([{0: 1.0}], [1, 2, 3, 4], ("0", "1", "2", "x"))).refuse("d")


def test_unknown_features_are_counted_and_narrow_data_is_fine() -> None:
    matcher = FeatureMatcher(stump([1, 7, 9]))
    assert matcher.column_map([7]).tolist() == [1]
    assert matcher.column_map([7, 2, 9, 5, 6, 8]).tolist() == [1, -1, 2, -1, -1, -1]
    assert matcher.unknown == ["2", "5", "6", "8"]
    assert matcher.describe_unknown() == "4 of 6 features are not in the model: '2', '5', '6' and 1 more"
    with pytest.raises(DataError, match=r"^d: 4 of 6 features are not in the model"):
        matcher.refuse("d", strict=True)


def test_data_without_any_feature_of_the_model_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"^d.svm: no feature of the data is in the model: the data has '3', the model has '1'"
    ):
        score_dataset(stump([1, 7]), dataset([{0: 1.0}], [3]))
    assert score_dataset(stump([1, 7]), dataset([{}, {}], [])).tolist() == [0.0, 0.0]


def warnings_of(ensemble: Ensemble, data: RankingDataset, **tables: list[int]) -> list[str]:
    matcher = match_dataset(ensemble, replace(data, table_features={k: np.array(v) for k, v in tables.items()}))
    matcher.refuse(data.source)
    return matcher.warnings(data.source)


def test_columns_that_a_table_lacks_are_named_those_that_trees_use_first() -> None:
    model = replace(stump([1, 2, 3]), feature_names=("a", "b", "c"))  # its tree uses c
    data = dataset([{0: 1.0}], [1, 2, 3], ("c", "b", "x"))
    assert warnings_of(model, data) == ["d.svm: 1 of 3 features is not in the model: 'x'; scored without"]
    assert warnings_of(model, data, one=[1, 2, 3], two=[2, 3], three=[1, 3])[1:] == [
        "one: 1 of 3 features of the model has no column: 'a'; counted as 0; no tree splits on it",
        "two: 2 of 3 features of the model have no column: 'c', 'a'; counted as 0",
        "three: 2 of 3 features of the model have no column: 'a', 'b'; counted as 0; no tree splits on them",
    ]
    by_number = dataset([{0: 1.0}], [3, 1])
    missing = warnings_of(replace(stump([1, 2, 3]), absent="missing"), by_number, one=[3, 1])
    assert missing == ["one: 1 of 3 features of the model has no column: '2'; counted as missing; no tree splits on it"]
    strict = match_dataset(model, replace(data, table_features={"two": np.array([2])}))
    strict.unknown = []
    with pytest.raises(DataError, match=r"^two: 2 of 3 .* no column: 'c', 'a'; add them, or do without --strict"):
        strict.refuse("d.svm", strict=True)


def test_a_table_without_any_column_of_the_model_is_refused() -> None:
    with pytest.raises(DataError, match="the data has none, the model has '1'"):
        warnings_of(stump([1, 7]), dataset([{}], []), one=[])


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        ([0, 1, 2], [1, 2, 3], "the data numbers its features 1 to 3 and the model 0 to 2"),
        ([0, 1, 4], [5, 2, 1], "the data numbers its features 1 to 5 and the model 0 to 4"),
        ([1, 2, 3], [0, 1, 2], "the data numbers its features 0 to 2 and the model 1 to 3"),
        ([1, 2, 3], [0, 1], "the data numbers its features 0 to 1 and the model 1 to 3"),
        ([1, 2, 3], [3, 0, 1, 2], "the data numbers its features 0 to 3 and the model 1 to 3"),
        ([1, 2, 3], [0, 1, 2, 3, 4, 5], "the data numbers its features 0 to 5 and the model 1 to 3"),
        ([0, 1, 2], [1, 2, 3, 4], "the data numbers its features 1 to 4 and the model 0 to 2"),
    ],
)
def test_the_same_features_numbered_from_0_and_from_1_are_refused(
    model: list[int], data: list[int], words: str
) -> None:
    with pytest.raises(DataError, match=words + ", so that each would be taken for its neighbour") as refusal:
        score_dataset(stump(model), dataset([{0: 1.0}], data))
    if (
        len(new := set(data) - set(model)) == 1
    ):  # no fault when it is new and the other is 0 in all rows: say the way out
        assert str(refusal.value).endswith(f"or leave out '{new.pop()}' if it is new (--ignore-columns)")


@pytest.mark.parametrize(
    ("model", "data", "hint"),
    [
        ([0, 1, 2], [1, 2], None),  # a first feature that is zero in all rows
        ([0, 1, 2], [1, 3], "does the data number its features from 1, the model from 0?"),
        ([0, 1, 2], [0, 1, 2, 3], None),
        ([1, 2, 3], [0, 1, 3], "does the data number its features from 0, the model from 1?"),
        ([1, 2, 3], [1, 2, 4], None),
        ([2, 3, 4], [3, 4, 5], None),  # neither counts from 0
        ([1, 3], [0, 1], "does the data number its features from 0, the model from 1?"),
    ],
)
def test_sparse_rows_that_only_look_off_by_one_are_scored(model: list[int], data: list[int], hint: str | None) -> None:
    told = warnings_of(stump(model), dataset([{0: 1.0}], data))
    assert [text.partition("scored without; ")[2] for text in told if "scored without; " in text] == [hint] * bool(hint)


def test_names_count_from_1_so_they_do_not_fit_numbers_from_0() -> None:
    for names in (("a", "b"), ("a", "b", "c", "d")):
        ids = list(range(1, len(names) + 1))
        with pytest.raises(DataError, match="the data by the order of its names"):
            score_dataset(stump([0, 1, 2]), dataset([{0: 1.0}], ids, names))
        with pytest.raises(DataError, match="the model by the order of its names"):
            score_dataset(stump(ids, names), dataset([{0: 1.0}], [0, 1, 2]))


def test_tables_of_one_data_set_that_differ_in_columns() -> None:
    data = dataset([{0: 1.0}], [1, 2], ("a", "b"))
    tables = {"one": np.array([2, 1]), "two": np.array([1])}
    assert missing_columns(replace(data, table_features=tables)) == {
        "two": "1 of 2 features of the data has no column: 'b'"
    }
    numbered = dataset([{0: 1.0}], [0, 1, 2, 3])
    for two in ([1, 2], [1, 2, 3]):
        tables = {"one": np.array([1, 0]), "two": np.array(two)}
        with pytest.raises(DataError, match=rf"^two: the features are numbered 1 to {two[-1]}, but 0 to 1 in one"):
            missing_columns(replace(numbered, table_features=tables))
    tables = {"one": np.array([0, 1, 2, 3]), "two": np.array([1, 2])}
    assert list(missing_columns(replace(numbered, table_features=tables))) == ["two"]
