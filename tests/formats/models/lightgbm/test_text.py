"""LightGBM's text models: read as LightGBM scores them, refused by name where lmart cannot, written for LightGBM."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.foreign_models import (
    check_sound,
    column_scores,
    planted_rows,
    random_tree,
    refusal,
    scores_of,
    with_bounds,
)

from lmart.errors import ModelError
from lmart.formats.models.lightgbm.conditions import BELOW_ZERO, ZERO, range_edges
from lmart.formats.models.lightgbm.text import looks_like, read, write
from lmart.formats.models.nodes import category_ranges
from lmart.scoring.ensemble import Ensemble

NAN = math.nan
HEAD = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=lambdarank
feature_names=Column_0 Column_1 Column_2
feature_infos=none [0:5] none
"""


def stump(threshold: str, decision_type: int, more: str = "num_cat=0") -> str:
    """A model of one split on column 1: the left leaf is 1, the right one 2."""
    return (
        f"{HEAD}\nTree=0\nnum_leaves=2\n{more}\nsplit_feature=1\nsplit_gain=3.5\nthreshold={threshold}\n"
        f"decision_type={decision_type}\nleft_child=-1\nright_child=-2\nleaf_value=1 2\nleaf_count=30 12\n"
        "is_linear=0\nshrinkage=0.1\n\n\nend of trees\n"
    )


def sides(model: str, values: list[float]) -> list[float]:
    ensemble = read(model.encode(), "file")
    check_sound(ensemble)
    return column_scores(ensemble, values)


def test_what_a_model_says() -> None:
    ensemble = read(stump("0.5", 2).encode(), "file")
    assert looks_like(HEAD.encode())
    assert ensemble.feature_ids.tolist() == [1, 2]  # column 0 is not used and has no name
    assert ensemble.feature_names is None
    assert ensemble.settings == {"source": "LightGBM v4", "objective": "lambdarank"}
    assert (ensemble.absent, ensemble.sums, ensemble.average, ensemble.base_score) == ("zero", "float64", False, 0.0)
    assert ensemble.trees[0].split_gains is not None and ensemble.trees[0].split_gains.tolist() == [3.5]
    assert ensemble.trees[0].leaf_documents is not None and ensemble.trees[0].leaf_documents.tolist() == [30, 12]


def test_missing_types() -> None:
    values = [NAN, 0.0, 0.5, 0.6, -3.0]
    assert sides(stump("0.5", 0), values) == [1, 1, 1, 2, 1]  # None: nan is 0
    assert sides(stump("-0.5", 2), values) == [2, 2, 2, 2, 1]  # None: the default side means nothing
    assert sides(stump("0.5", 8), values) == [2, 1, 1, 2, 1]  # NaN, right
    assert sides(stump("-0.5", 10), values) == [1, 2, 2, 2, 1]  # NaN, left
    assert sides(stump("0.5", 4), values) == [2, 2, 1, 2, 1]  # Zero, right
    assert sides(stump("-0.5", 6), values) == [1, 1, 2, 2, 1]  # Zero, left
    assert sides(stump("0.5", 6), values) == [1, 1, 1, 2, 1]
    assert sides(stump("-0.5", 4), values) == [2, 2, 2, 2, 1]
    assert sides(stump("0", 4), values) == [2, 2, 2, 2, 1]
    assert sides(stump("-1e-40", 6), values) == [1, 1, 2, 2, 1]


def test_values_up_to_1e_35_are_0() -> None:
    values = [-2e-35, BELOW_ZERO, -ZERO, -1e-300, 0.0, 1e-300, ZERO, math.nextafter(ZERO, 1), 2e-35]
    assert sides(stump("0", 8), values) == [1, 1, 1, 1, 1, 1, 1, 2, 2]
    assert sides(stump("1e-40", 8), values) == [1, 1, 1, 1, 1, 1, 1, 2, 2]
    assert sides(stump("-1.0000000180025095e-35", 8), values) == [1, 1, 2, 2, 2, 2, 2, 2, 2]
    assert sides(stump("-1e-40", 8), values) == [1, 1, 2, 2, 2, 2, 2, 2, 2]
    assert sides(stump("1.5e-35", 4), values) == [1, 1, 2, 2, 2, 2, 2, 1, 2]  # Zero, right
    assert sides(stump("-1.5e-35", 6), values) == [1, 2, 1, 1, 1, 1, 1, 2, 2]  # Zero, left


def test_categories() -> None:
    model = stump("0", 1, "num_cat=1\ncat_boundaries=0 2\ncat_threshold=25 1")  # 0, 3, 4, 32
    values = [NAN, -1.0, -0.5, 0.0, 0.9, 1.0, 2.99, 3.0, 4.5, 5.0, 32.9, 33.0, 1e10, -1e10]
    assert sides(model, values) == [2, 2, 1, 1, 1, 2, 2, 1, 1, 2, 1, 2, 2, 2]
    assert sides(stump("0", 9, "num_cat=1\ncat_boundaries=0 1\ncat_threshold=0"), [NAN, 0.0, -1.0]) == [2, 2, 2]


def test_infinite_thresholds() -> None:
    assert sides(stump("inf", 8), [NAN, -1e300, 1e300]) == [2, 1, 1]
    assert sides(stump("-inf", 10), [NAN, -1e300, 1e300]) == [1, 2, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("v4", "v2").replace("end of trees\n", "\nfeature importances:\nColumn_1=1\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("feature_infos=", "tree_sizes=7\nfeature_infos="),
        lambda text: text.replace("objective=lambdarank\n", ""),
        lambda text: text.replace("feature_infos=none [0:5] none\n", ""),
        lambda text: text.replace("v4", "v2").replace("is_linear=0\n", ""),
        lambda text: "\ufeff" + text,
        lambda text: text.partition("end of trees")[0],
        lambda text: text + "\nparameters:\n[anything: =[]\n",
    ],
)
def test_what_may_differ(change: object) -> None:
    assert sides(change(stump("0.5", 8)), [0.5, 0.6, NAN]) == [1, 2, 2]  # type: ignore[operator]


def test_names() -> None:
    def names(line: str, rest: str = "") -> tuple[str, ...] | None:
        text = stump("0.5", 8).replace("Column_0 Column_1 Column_2", line) + rest
        return read(text.encode(), "file").feature_names

    assert names("a=b c:d é") == ("a=b", "c:d", "é")
    assert names("Column_0 price Column_2") == ("Column_0", "price", "Column_2")
    assert names("0 1 2") is None
    assert names("a title match b", "feature_importances:\ntitle match=3\n") == ("a", "title match", "b")
    for line in ("a title match b", "a b"):
        with pytest.raises(ModelError, match=r"feature_names has . words, max_feature_idx says 3"):
            names(line)
    with pytest.raises(ModelError, match="two features have the name 'a'"):
        names("a b a")


def test_average_and_trees_of_one_leaf() -> None:
    second = "Tree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=4\n"
    text = stump("0.5", 8).replace("end of trees", second + "end of trees")
    assert sides(text, [0.0, 1.0]) == [5, 6]
    assert sides(text.replace("label_index", "average_output\nlabel_index"), [0.0, 1.0]) == [2.5, 3]


def test_label_gain() -> None:
    def gain(lines: str, model: str = stump("0.5", 8)) -> str | None:
        return read((model + lines).encode(), "file").gain

    tables = {"": "exp2", "0,1,3,7": "exp2", "0,1,2": "linear", "0,1,2.5": "0,1,2.5", "0,2": "0,2", "x,y": None}
    for table, meant in tables.items():
        assert gain(f"\nparameters:\n[label_gain: {table}]\n") == meant
    assert gain("\nparameters:\n[objective: lambdarank]\n") == "exp2"  # LightGBM's own
    assert gain("") is None
    assert gain("\nparameters:\n[label_gain: ]\n", stump("0.5", 8).replace("lambdarank", "regression")) is None


REFUSED = [
    ("num_class=1", "num_class=3", "3 outputs (multiclass)"),
    ("num_tree_per_iteration=1", "num_tree_per_iteration=2", "2 outputs (multiclass)"),
    ("version=v4", "version=v5", "version 'v5'; this lmart knows v2 to v4"),
    ("objective=lambdarank", "objective=binary sigmoid:1", "'binary sigmoid:1', whose predictions are not the raw"),
    ("objective=lambdarank", "objective=regression sqrt", "remove its line 'objective=...'"),
    ("num_cat=0\n", "", "older than LightGBM 2.1"),
    ("is_linear=0", "is_linear=1", "linear_tree"),
    ("threshold=0.5", "threshold=nan", "a threshold is nan"),
    ("threshold=0.5", "threshold=1_0", "threshold holds '1_0', which is not a number"),
    ("threshold=0.5", "threshold=0.5 1", "threshold has 2 numbers, 1 are due"),
    ("split_feature=1", "split_feature=3", "a split is on column 3, and the model has 3"),
    ("split_feature=1", "split_feature=-1", "a split is on column -1"),
    ("split_feature=1", "split_feature=99999999999999999999", "which is not a whole number in range"),
    ("decision_type=8", "decision_type=12", "12 is no decision_type"),
    ("decision_type=8", "decision_type=9", "num_cat is 0"),
    ("left_child=-1", "left_child=0", "a left child is node 0"),
    ("right_child=-2", "right_child=-1", "a leaf is the child of two nodes"),
    ("leaf_value=1 2", "leaf_value=1 inf", "a leaf value is not finite"),
    ("num_leaves=2", "num_leaves=1000000000", "1000000000 leaves"),
    ("num_leaves=2", "", "the tree has no num_leaves"),
    ("Tree=0", "Tree=1", "this is 'Tree=1' where tree 0 is due"),
    ("shrinkage=0.1", "leaf_value=7 8", "'leaf_value' is given twice"),
    ("shrinkage=0.1", "what", "this is 'what' where KEY=VALUE is due"),
    ("max_feature_idx=2", "max_feature_idx=-2", "max_feature_idx is '-2', not a whole number"),
]


@pytest.mark.parametrize(("old", "new", "words"), REFUSED)
def test_refusals(old: str, new: str, words: str) -> None:
    text = stump("0.5", 8)
    assert old in text
    assert words in refusal(read, text.replace(old, new))


TWO = stump("0.5", 8).replace(
    "end of trees",
    "Tree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=4\nis_linear=0\nshrinkage=0.1\n\n\nend of trees\n\nparameters:\n"
    "[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null",
)
SAME = [5.0, 6.0, 6.0]  # what the model above gives rows whose column 1 is 0.5, 1.0, nan
KEYS: list[tuple[str, str, str, list[float] | str]] = [
    # key, a line of the model, what it becomes, and then the scores or the refusal
    ("tree", "tree\n", "", SAME),
    ("version", "version=v4", "version=v9", "the format of the model is version 'v9'"),
    ("num_class", "num_class=1", "num_class=3", "3 outputs (multiclass)"),
    ("num_tree_per_iteration", "num_tree_per_iteration=1", "num_tree_per_iteration=2", "2 outputs (multiclass)"),
    ("label_index", "label_index=0", "label_index=2", SAME),
    ("max_feature_idx", "max_feature_idx=2", "max_feature_idx=1", "max_feature_idx says 2 columns"),
    ("objective", "objective=lambdarank", "objective=poisson", "whose predictions are not the raw scores"),
    ("objective", "objective=lambdarank", "objective=lambdarank sigmoid:9", SAME),
    ("average_output", "label_index=0", "label_index=0\naverage_output", [2.5, 3.0, 3.0]),
    ("feature_names", "feature_names=Column_0 Column_1", "feature_names=Column_0", "feature_names has 2 words"),
    ("feature_infos", "feature_infos=none [0:5]", "feature_infos=[7:9] none", SAME),
    ("monotone_constraints", "label_index=0", "label_index=0\nmonotone_constraints=1 -1 0", SAME),
    ("boost_from_average", "label_index=0", "label_index=0\nboost_from_average", SAME),  # its tree is among the others
    ("tree_sizes", "label_index=0", "label_index=0\ntree_sizes=9 9 9", "2 of the 3 trees that tree_sizes lists"),
    ("label_index", "label_index=0", "label_index=0\nlabel_index=0", "'label_index' is given twice"),
    ("num_leaves", "num_leaves=2", "num_leaves=3", "leaf_value has 2 numbers, 3 are due"),
    ("num_cat", "num_cat=0\n", "", "older than LightGBM 2.1"),
    ("split_feature", "split_feature=1", "split_feature=0", [5.0, 5.0, 5.0]),
    ("split_gain", "split_gain=3.5", "split_gain=7", SAME),
    ("threshold", "threshold=0.5", "threshold=2", [5.0, 5.0, 6.0]),
    ("decision_type", "decision_type=8", "decision_type=10", [5.0, 6.0, 5.0]),
    ("left_child", "left_child=-1\nright_child=-2", "left_child=-2\nright_child=-1", [6.0, 5.0, 5.0]),
    ("right_child", "right_child=-2", "right_child=-1", "a leaf is the child of two nodes"),
    ("leaf_value", "leaf_value=1 2", "leaf_value=1 3", [5.0, 7.0, 7.0]),
    ("leaf_weight", "leaf_count=30 12", "leaf_weight=9 9", SAME),
    ("leaf_count", "leaf_count=30 12", "leaf_count=1 1", SAME),
    ("leaf_parent", "leaf_count=30 12", "leaf_parent=0 0", SAME),
    ("internal_value", "leaf_count=30 12", "internal_value=9", SAME),
    ("internal_weight", "leaf_count=30 12", "internal_weight=9", SAME),
    ("internal_count", "leaf_count=30 12", "internal_count=9", SAME),
    ("cat_boundaries", "leaf_count=30 12", "cat_boundaries=0", SAME),  # without a categorical split
    ("cat_threshold", "leaf_count=30 12", "cat_threshold=", SAME),
    ("is_linear", "is_linear=0", "is_linear=1", "has linear models in its leaves (linear_tree)"),
    ("leaf_const", "leaf_count=30 12", "leaf_const=9 9", SAME),  # with is_linear=0
    ("leaf_features", "leaf_count=30 12", "leaf_features=0 0", SAME),
    ("leaf_coeff", "leaf_count=30 12", "leaf_coeff=9 9", SAME),
    ("num_features", "leaf_count=30 12", "num_features=1 1", SAME),
    ("shrinkage", "shrinkage=0.1", "shrinkage=7", SAME),  # leaf values are multiplied already
    (
        "parameters",
        "parameters:\n[boosting: gbdt]",
        "parameters:\n[boosting: rf]\n[zero_as_missing: 1]\n[num_class: 3]\n[linear_tree: 1]",
        SAME,
    ),
    (
        "parameters",
        "parameters:\n[boosting: gbdt]",
        "parameters:\n[start_iteration_predict: 1]\n[num_iteration_predict: 1]",
        SAME,
    ),
    ("pandas_categorical", "pandas_categorical:null", 'pandas_categorical:[["a", "b"]]', SAME),
]


@pytest.mark.parametrize(("key", "old", "new", "expected"), KEYS)
def test_keys(key: str, old: str, new: str, expected: list[float] | str) -> None:
    assert TWO.count(old) and key in old + new
    model = TWO.replace(old, new, 1)
    if isinstance(expected, str):
        assert expected in refusal(read, model)
    else:
        assert sides(model, [0.5, 1.0, NAN]) == expected


@pytest.mark.peers
def test_lightgbm_does_the_same_by_each_key_and_writes_no_other() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rows = np.zeros((3, 3))
    rows[:, 1] = [0.5, 1.0, NAN]
    for key, old, new, expected in KEYS:
        if isinstance(expected, list) and key != "tree":
            booster = lightgbm.Booster(model_str=TWO.replace(old, new, 1))
            assert booster.predict(rows, num_threads=1).tolist() == expected, new
    rng = np.random.default_rng(1)
    features, labels = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    features[:, 2] = rng.integers(0, 9, 200)
    known = {key for key, *_ in KEYS}
    for given in ({"linear_tree": True}, {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, {}):
        parameters = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_per_group": 1, **given}
        categorical = [] if "linear_tree" in given else [2]
        data = lightgbm.Dataset(features, labels, group=[20] * 10, categorical_feature=categorical, params=parameters)
        text = lightgbm.train(parameters, data, 2).model_to_string().partition("\nend of trees")[0]
        words = {line.partition("=")[0] for line in text.splitlines() if line and line != "end of trees"}
        assert words <= known | {"Tree"}


def test_more_refusals() -> None:
    assert refusal(read, "") == "file: the file is empty"
    assert "does not say num_class" in refusal(read, "tree\nhello\n")
    assert "the model has no tree" in refusal(read, HEAD)
    assert "file:2: this is no UTF-8" in refusal(read, HEAD.encode().replace(b"version", b"\xff"))
    model = stump("0", 1, "num_cat=1\ncat_boundaries=0 1\ncat_threshold=25")
    assert "cat_boundaries" in refusal(read, model.replace("=0 1\n", "=0 2000000000\n"))
    assert "has set 1 of 1" in refusal(read, model.replace("threshold=0\n", "threshold=1\n"))
    assert "beyond 32 bits" in refusal(read, model.replace("=25", "=4294967296"))
    assert "lists 2 where" in refusal(read, model + '\npandas_categorical:[["a", "b"], ["c"]]\n')
    assert "not just texts or whole numbers" in refusal(read, model + "\npandas_categorical:[[1.5]]\n")
    assert read((model + "\npandas_categorical:[[0, 1, 2]]\n").encode(), "file").n_features == 2


def some_model(seed: int, **fields: object) -> Ensemble:
    """A model with every kind of split that LightGBM holds as it is."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_leaves, 3) for n_leaves in (8, 1, 2, 12)]
    trees[0] = with_bounds(
        trees[0],
        {
            1: (range_edges(category_ranges(np.array([0, 3, 4, 40]))), True),
            3: (np.array([-0.5, BELOW_ZERO, ZERO]), True),
            4: (np.array([BELOW_ZERO, ZERO, 0.75]), False),
            6: (range_edges(category_ranges(np.array([2]))), True),
        },
    )
    return replace(Ensemble(tuple(trees), np.array([1, 2, 4])), **fields)  # type: ignore[arg-type]


def test_written_models_read_back() -> None:
    ensemble = some_model(3, base_score=0.3, feature_names=("a b", "c,d", "e"))
    content, notes, _ = write(ensemble)
    again = read(content, "file")
    assert again.feature_names == ("a_b", "c_d", "e")
    assert again.feature_ids.tolist() == [0, 1, 2]
    rows = planted_rows(np.random.default_rng(1), ensemble, 500)
    assert scores_of(again, rows[:, [1, 2, 4]]).tobytes() == scores_of(ensemble, rows).tobytes()
    assert again.trees[0].leaf_values.tolist() == [0.3]  # the base score, before all others
    first = again.trees[1]
    assert first.leaf_documents is not None and ensemble.trees[0].leaf_documents is not None
    assert first.leaf_documents.tolist() == ensemble.trees[0].leaf_documents.tolist()
    assert [note.split(":")[0] for note in notes] == [
        "1 threshold between -1e-35 and 1e-35",
        "2 feature names got '_' in place of blanks and of the marks of JSON, which LightGBM does not take",
    ]


def test_written_averages_and_tables() -> None:
    ensemble = some_model(4, base_score=0.3, average=True, gain="0,1,5")
    again = read(write(ensemble).content, "file")
    rows = planted_rows(np.random.default_rng(1), ensemble, 200)
    assert len(again.trees) == len(ensemble.trees)
    assert (again.average, again.gain) == (True, "0,1,5")
    assert scores_of(again, rows).tobytes() == scores_of(ensemble, rows).tobytes()


@pytest.mark.parametrize(
    "gain", ["exp2", "linear", None, ",".join(str(2**j - 2) for j in range(1, 40)), "0,0.1,1e+300"]
)
def test_gains_keep_all_their_digits(gain: str | None) -> None:
    content = write(some_model(4, gain=gain)).content
    assert read(content, "file").gain == gain
    assert (b"parameters:" in content) == (gain is not None)


def test_notes() -> None:
    ensemble = some_model(5, absent="missing", sums="float32")
    ensemble = replace(ensemble, trees=(replace(ensemble.trees[3], leaf_documents=None),))
    notes = " ".join(write(ensemble).notes)
    assert "is missing to this model and 0 to LightGBM" in notes
    assert "adds up in float32 and LightGBM in float64" in notes
    assert "pred_contrib has no meaning" in notes


def test_other_ranges_become_chains() -> None:
    tree = with_bounds(random_tree(np.random.default_rng(1), 3, 1), {0: (np.array([0.25, 0.5, 1.5]), False)})
    ensemble = Ensemble((tree, some_model(1).trees[0]), np.array([1, 2, 4]))
    content, notes, _ = write(ensemble)
    rows = planted_rows(np.random.default_rng(1), ensemble, 300)
    assert scores_of(read(content, "file"), rows).tobytes() == scores_of(ensemble, rows).tobytes()
    assert any("became chains of plain splits" in note for note in notes)
    assert b"num_cat=2" in content  # those that are LightGBM's own stay


def test_models_without_trees_and_with_huge_ids() -> None:
    empty = Ensemble((), np.array([1]), None, 0.25)
    assert column_scores(read(write(empty).content, "file"), [1.0]) == [0.25]
    with pytest.raises(ModelError, match="LightGBM needs a column for each number"):
        write(Ensemble((), np.array([2**40])))


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(4))
def test_lightgbm_scores_written_models_alike(seed: int) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    ensemble = some_model(seed, base_score=[0.0, 0.3][seed % 2], average=seed > 1)
    booster = lightgbm.Booster(model_str=write(ensemble).content.decode())
    rows = planted_rows(np.random.default_rng(seed), ensemble, 1000)
    assert booster.predict(rows, num_threads=1).tobytes() == scores_of(ensemble, rows).tobytes()


@pytest.mark.peers
@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
@pytest.mark.parametrize("zero_as_missing", [False, True])
def test_lightgbms_own_models_score_alike(boosting: str, zero_as_missing: bool) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.normal(size=(400, 3)).round(1), rng.integers(-1, 40, 400)])
    rows[rng.random(rows.shape) < 0.2] = np.nan
    labels = (np.nan_to_num(rows[:, 0]) + np.nan_to_num(rows[:, 3]) % 3 > 1).astype(int)
    parameters = {
        **{"objective": "lambdarank", "boosting": boosting, "zero_as_missing": zero_as_missing, "verbosity": -1},
        **{"min_data_in_leaf": 5, "num_threads": 1, "bagging_fraction": 0.7, "bagging_freq": 1, "max_cat_to_onehot": 1},
        **{"min_data_per_group": 5, "cat_smooth": 1.0},
    }
    data = lightgbm.Dataset(rows, labels, group=[20] * 20, categorical_feature=[3], params={"verbosity": -1})
    booster = lightgbm.train(parameters, data, 10)
    ensemble = read(booster.model_to_string().encode(), "file")
    planted = planted_rows(rng, ensemble, 1000)
    planted[::7] = rng.choice([1e-35, -1e-35, ZERO, -ZERO, 3.7, -0.5, 1e10], planted[::7].shape)
    assert booster.predict(planted, num_threads=1).tobytes() == scores_of(ensemble, planted).tobytes()


def test_a_file_that_was_cut_between_or_inside_trees_is_refused() -> None:
    tree = "num_leaves=2\nnum_cat=0\nsplit_feature=1\nthreshold=0.5\nleft_child=-1\nright_child=-2\nleaf_value=1 2.25\n"
    model = f"{HEAD}tree_sizes=90 90\n\nTree=0\n{tree}\n\nTree=1\n{tree}"
    assert len(read(model.encode(), "file").trees) == 2
    assert "1 of the 2 trees that tree_sizes lists" in refusal(read, model[: model.index("Tree=1")])
    assert "the last line has no end" in refusal(read, model[:-2])
    by_hand = model.replace("tree_sizes=90 90\n", "")
    assert len(read(by_hand[:-1].encode(), "file").trees) == 2
