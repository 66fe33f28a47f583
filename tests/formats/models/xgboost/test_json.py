"""XGBoost's models, JSON and binary: read as XGBoost scores them, refused by name, written for XGBoost."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.formats.models.xgboost import ubjson as xgboost_ubj
from lmart.formats.models.xgboost.reading import category_edges32
from lmart.formats.models.xgboost.ubjson import decode, encode
from lmart.scoring.ensemble import Ensemble, Tree

NAN = math.nan
FORMATS = [xgboost_json, xgboost_ubj]


def tree(**fields: Any) -> dict[str, Any]:
    """A split of feature 1 at 0.5: the left leaf is 1, the right one 2."""
    plain = {
        **{"left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [1, 0, 0]},
        **{"split_conditions": [0.5, 1.0, 2.0], "default_left": [0, 0, 0], "loss_changes": [3.0, 0.0, 0.0]},
        **{"base_weights": [0.0, 1.0, 2.0], "sum_hessian": [2.0, 1.0, 1.0], "parents": [2147483647, 0, 0]},
        "tree_param": {"num_deleted": "0", "num_feature": "2", "num_nodes": "3", "size_leaf_vector": "1"},
    }
    return {**plain, **fields}


def document(*trees: dict[str, Any], **changes: Any) -> dict[str, Any]:
    booster: dict[str, Any] = {"name": "gbtree", "model": {"tree_info": [0] * len(trees), "trees": list(trees)}}
    parameters = {"base_score": "0E0", "num_class": "0", "num_feature": "2", "num_target": "1"}
    learner = {
        **{"attributes": {}, "feature_names": [], "feature_types": [], "gradient_booster": booster},
        **{"learner_model_param": parameters, "objective": {"name": "rank:ndcg"}},
    }
    parameters.update(changes.pop("parameters", {}))
    learner.update(changes)
    return {"learner": learner, "version": [2, 0, 1]}


def text(whole: dict[str, Any]) -> bytes:
    return json.dumps(whole).encode()


def sides(values: list[float], **fields: Any) -> list[float]:
    ensemble = xgboost_json.read(text(document(tree(**fields))), "file")
    check_sound(ensemble)
    return column_scores(ensemble, values)


def test_splits_are_on_float32_values() -> None:
    below = math.nextafter(0.5 - 2.0**-26, 0)  # the largest value that does not round to 0.5
    assert sides([NAN, below, 0.5 - 2.0**-26, 0.5, 0.0]) == [2, 1, 2, 2, 1]
    assert sides([NAN, 0.5, 0.0], default_left=[1, 0, 0]) == [1, 2, 1]
    assert sides([NAN, 0.5, 0.0], default_left=[True, False, False]) == [1, 2, 1]
    assert sides([-1e-50, 0.0, 1e-50, -1e-30], split_conditions=[0.0, 1.0, 2.0]) == [2, 2, 2, 1]


def test_categories_go_right() -> None:
    fields = {
        **{"split_type": [1, 0, 0], "split_conditions": [NAN, 1.0, 2.0], "categories": [3, 0, 4, 32]},
        **{"categories_nodes": [0], "categories_segments": [0], "categories_sizes": [4]},
    }
    values = [NAN, -1.0, -0.5, 0.0, 0.9, 1.0, 2.9999, 3.0, 4.5, 5.0, 32.9, 33.0, 1e10]
    assert sides(values, **fields) == [2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 2, 1, 1]
    assert sides([-1e-50, 2.99999999999], **fields) == [2, 2]  # 0 and 3 as float32


def test_what_a_model_says() -> None:
    whole = document(tree(), parameters={"base_score": "[3.7E-1]"}, feature_names=["a", "b c"])
    ensemble = xgboost_json.read(text(whole), "file")
    assert xgboost_json.looks_like(text(whole)[:100])
    assert not xgboost_ubj.looks_like(text(whole)[:100])
    assert (ensemble.feature_ids.tolist(), ensemble.feature_names) == ([0, 1], ("a", "b c"))
    assert (ensemble.absent, ensemble.sums, ensemble.base_score) == ("missing", "float32", float(np.float32(0.37)))
    assert ensemble.settings == {"source": "XGBoost 2.0.1", "objective": "rank:ndcg"}
    assert ensemble.trees[0].split_gains is not None and ensemble.trees[0].split_gains.tolist() == [3.0]
    assert xgboost_json.read(text(document(tree())), "file").feature_ids.tolist() == [1]
    huge = document(tree(), parameters={"num_feature": "4294967295"})
    assert xgboost_json.read(text(huge), "file").feature_ids.tolist() == [1]


def test_names_like_those_of_version_1() -> None:
    whole = document(tree(), feature_names=["f0", "f1"])
    assert xgboost_json.read(text(whole), "file").feature_names == ("f0", "f1")  # of a DataFrame
    whole["version"] = [1, 5, 2]  # which also names columns of arrays so
    assert xgboost_json.read(text(whole), "file").feature_names is None
    whole["learner"]["feature_names"] = ["0", "1"]
    whole["version"] = [2, 0, 1]
    assert xgboost_json.read(text(whole), "file").feature_names is None


@pytest.mark.parametrize("spelling", ["0.25", "2.5E-1", "[2.5E-1]", "[0.25]", 0.25])
def test_base_scores(spelling: Any) -> None:
    whole = document(tree(), parameters={"base_score": spelling})
    assert column_scores(xgboost_json.read(text(whole), "file"), [0.0]) == [1.25]


def test_weights_of_dart_and_parallel_trees() -> None:
    whole = document(tree(), tree())
    booster = whole["learner"]["gradient_booster"]
    assert column_scores(xgboost_json.read(text(whole), "file"), [0.0, 1.0]) == [2, 4]
    whole["learner"]["gradient_booster"] = {"name": "dart", "gbtree": booster, "weight_drop": [0.1, 1]}
    tenth = xgboost_json.read(text(whole), "file").trees[0].leaf_values  # rounded to float32 before they are added
    assert tenth.tolist() == [float(np.float32(0.1)), float(np.float32(0.1) * np.float32(2))]
    whole["learner"]["gradient_booster"]["weight_drop"] = [0.7, 0.7]
    booster["model"]["trees"][0]["split_conditions"] = [0.5, 0.3, 0.9]
    rounded = xgboost_json.read(text(whole), "file").trees[0].leaf_values
    assert rounded.tolist() == [float(np.float32(0.7) * np.float32(leaf)) for leaf in (0.3, 0.9)]
    whole["learner"]["gradient_booster"]["weight_drop"] = [0.1, 1]
    booster["model"]["trees"][0]["split_conditions"] = [0.5, 1.0, 2.0]
    first = float(np.float32(np.float32(0.1) * np.float32(2)))
    assert column_scores(xgboost_json.read(text(whole), "file"), [1.0]) == [float(np.float32(first + 2))]


def test_deleted_nodes_are_left_out() -> None:
    pruned = tree(
        left_children=[3, -1, -1, -1, -1],
        right_children=[4, -1, -1, -1, -1],
        split_indices=[1, 2147483647, 2147483647, 0, 0],
        split_conditions=[0.5, NAN, 9.0, 1.0, 2.0],
        default_left=[0] * 5,
        loss_changes=[0.0] * 5,
    )
    del pruned["tree_param"]
    ensemble = xgboost_json.read(text(document(pruned)), "file")
    assert column_scores(ensemble, [0.0, 1.0]) == [1, 2]
    assert ensemble.trees[0].n_leaves == 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"left_children": [1, -1]}, "has 3 entries, 2 are due"),
    ({"left_children": [0, -1, -1]}, "a node is the child of two nodes, or of itself"),
    ({"left_children": [2, -1, -1]}, "a node is the child of two nodes"),
    ({"left_children": [3, -1, -1]}, "a child is none of its nodes"),
    ({"left_children": [-1, -1, -1]}, "a node has only one child"),
    ({"left_children": [1.0, -1, -1]}, "'left_children' is not there or no list of numbers of its kind"),
    ({"left_children": []}, "has no node"),
    ({"split_indices": [2, 0, 0]}, "a split is on column 2, and the model has 2"),
    ({"split_conditions": [NAN, 1.0, 2.0]}, "a split condition or leaf value is nan"),
    ({"split_conditions": [0.5, 1e39, 2.0]}, "a leaf value is not finite"),
    ({"split_conditions": ["1", 1, 1]}, "'split_conditions' is not there"),
    ({"split_type": [2, 0, 0]}, "split_type is 2"),
    ({"split_type": [1, 0, 0]}, "'categories' is not there"),
    ({"tree_param": {"size_leaf_vector": "3"}}, "vectors in its leaves (multi-output)"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
@pytest.mark.parametrize("form", FORMATS)
def test_refused_trees(fields: dict[str, Any], words: str, form: Any) -> None:
    if form is xgboost_json:
        assert words in refusal(form.read, text(document(tree(**fields))))
    elif not any(isinstance(item, str) for entries in fields.values() for item in entries):
        arrays = {key: np.array(entries) for key, entries in fields.items() if isinstance(entries, list)}
        one = {key: np.array(entries) for key, entries in tree().items() if isinstance(entries, list)}
        rest = {key: entries for key, entries in {**tree(), **fields}.items() if isinstance(entries, dict)}
        assert words in refusal(form.read, encode(document({**one, **arrays, **rest})))


SAME = [1.0, 2.0, 2.0]  # what the model of one tree gives rows whose column 1 is 0, 1, nan
LEARNER, BOOSTER, TREES = "learner", "learner/gradient_booster", "learner/gradient_booster/model"
PARAMETERS, OBJECTIVE, TREE = "learner/learner_model_param", "learner/objective", f"{TREES}/trees/0"
RANKING = {"name": "rank:ndcg", "lambdarank_param": {"lambdarank_unbiased": "1", "lambdarank_pair_method": "mean"}}
KEYS: list[tuple[str, Any, list[float] | str]] = [  # a key, its value, and then the scores or the refusal
    ("version", [9, 0, 0], SAME),
    (f"{LEARNER}/attributes", {"best_iteration": "0", "best_score": "1", "scikit_learn": "{}"}, SAME),
    (f"{LEARNER}/feature_names", ["a"], "there are 1 feature_names, and num_feature is 2"),
    (f"{LEARNER}/feature_types", ["q", "i"], SAME),
    (f"{OBJECTIVE}/name", "binary:logistic", "'binary:logistic', whose predictions are not the sums"),
    (f"{OBJECTIVE}/name", "count:poisson", "'count:poisson', whose predictions are not the sums"),
    (OBJECTIVE, {"name": "rank:map", "lambda_rank_param": {"num_pairsample": "9"}}, SAME),
    (OBJECTIVE, RANKING, SAME),
    (OBJECTIVE, {"name": "binary:logitraw", "reg_loss_param": {"scale_pos_weight": "9"}}, SAME),
    (f"{PARAMETERS}/base_score", "[5E0]", [6.0, 7.0, 7.0]),
    (f"{PARAMETERS}/boost_from_average", "1", SAME),
    (f"{PARAMETERS}/num_class", "3", "several outputs"),
    (f"{PARAMETERS}/num_feature", "1", "a split is on column 1, and the model has 1"),
    (f"{PARAMETERS}/num_target", "2", "several outputs"),
    (f"{BOOSTER}/name", "gblinear", "'gblinear', and lmart reads trees only"),
    (f"{BOOSTER}/weight_drop", [9.0], SAME),  # of dart alone, see test_weights_of_dart_and_parallel_trees
    (f"{TREES}/gbtree_model_param", {"num_parallel_tree": "1", "num_trees": "1"}, SAME),
    (f"{TREES}/iteration_indptr", [0, 1], SAME),
    (f"{TREES}/tree_info", [1], "the trees belong to several outputs (tree_info)"),
    (f"{TREES}/trees", [], "the trees belong to several outputs (tree_info)"),  # which has 1
    (f"{TREES}/cats", {"enc": [], "feature_segments": [], "sorted_idx": []}, SAME),
    (f"{TREE}/base_weights", [9.0, 9.0, 9.0], SAME),
    (f"{TREE}/categories", [1], SAME),  # without a categorical split
    (f"{TREE}/categories_nodes", [], SAME),
    (f"{TREE}/categories_segments", [], SAME),
    (f"{TREE}/categories_sizes", [], SAME),
    (f"{TREE}/default_left", [1, 0, 0], [1.0, 2.0, 1.0]),
    (f"{TREE}/id", 9, SAME),
    (f"{TREE}/left_children", [2, -1, -1], "a node is the child of two nodes"),
    (f"{TREE}/loss_changes", [9.0, 0.0, 0.0], SAME),
    (f"{TREE}/parents", [9, 9, 9], SAME),
    (f"{TREE}/right_children", [1, -1, -1], "a node is the child of two nodes"),
    (f"{TREE}/split_conditions", [2.0, 1.0, 7.0], [1.0, 1.0, 7.0]),
    (f"{TREE}/split_indices", [0, 0, 0], [1.0, 1.0, 1.0]),
    (f"{TREE}/split_type", [2, 0, 0], "split_type is 2"),
    (f"{TREE}/sum_hessian", [9.0, 1.0, 1.0], SAME),
    (f"{TREE}/tree_param", {"size_leaf_vector": "3"}, "vectors in its leaves"),
    (f"{TREE}/tree_param", {"num_deleted": "9", "num_feature": "9", "num_nodes": "9"}, SAME),
]


@pytest.mark.parametrize(("place", "value", "expected"), KEYS)
def test_keys(place: str, value: Any, expected: list[float] | str) -> None:
    whole: Any = document(tree(), feature_names=[])
    owner = whole
    *owners, key = place.split("/")
    for name in owners:
        owner = owner[int(name)] if isinstance(owner, list) else owner[name]
    owner[key] = value
    if isinstance(expected, str):
        assert expected in refusal(xgboost_json.read, text(whole))
    else:
        assert column_scores(xgboost_json.read(text(whole), "file"), [0.0, 1.0, NAN]) == expected


def test_rounds_after_the_best_are_told() -> None:
    whole = document(tree(), tree(), tree(), tree(), attributes={"best_iteration": "2"})
    assert xgboost_json.read(text(whole), "file").remarks == (
        "lmart uses all 4 rounds, as XGBoost's Booster does; its XGBRanker uses 3, up to best_iteration (save"
        " booster[:3] to use only these)",
    )
    parameters = {"num_parallel_tree": "2", "num_trees": "4"}
    whole["learner"]["gradient_booster"]["model"]["gbtree_model_param"] = parameters
    assert xgboost_json.read(text(whole), "file").remarks == ()
    whole["learner"]["attributes"]["best_iteration"] = "0"
    assert "all 2 rounds" in xgboost_json.read(text(whole), "file").remarks[0]
    for other in ({"best_iteration": "x"}, {"best_iteration": 0}, {"best": "0"}, None):
        whole["learner"]["attributes"] = other
        assert xgboost_json.read(text(whole), "file").remarks == ()


@pytest.mark.peers
def test_xgboost_saves_no_other_keys() -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(1)
    data = xgboost.DMatrix(rng.normal(size=(200, 3)), rng.integers(0, 3, 200))
    data.set_group([20] * 10)
    known = {part for place, *_ in KEYS for part in place.split("/")} | {"gbtree"}  # where dart has its trees
    leaves = {"attributes", "cats", "gbtree_model_param", "objective", "tree_param"}
    for booster in ("gbtree", "dart"):
        trained = xgboost.train({"objective": "rank:ndcg", "booster": booster, "nthread": 1}, data, 2)
        waiting = [json.loads(trained.save_raw("json"))]
        while waiting:
            for key, value in waiting.pop().items():
                assert key in known
                if isinstance(value, dict) and key not in leaves:
                    waiting.append(value)
                waiting += value if key == "trees" else []


def test_refused_models() -> None:
    def words(whole: Any) -> str:
        return refusal(xgboost_json.read, text(whole))

    assert "gbtree and dart" in words(document(gradient_booster={"name": "gblinear", "model": {}}))
    settings = {"gradient_booster": {"name": "gbtree"}, "learner_train_param": {"booster": "gbtree"}}
    assert "these are settings without a model, as save_config gives them" in words(document(**settings))
    assert "several outputs" in words(document(tree(), parameters={"num_class": "3"}))
    assert "several outputs" in words(document(tree(), parameters={"num_target": "2"}))
    assert "not one number" in words(document(tree(), parameters={"base_score": "[1.0,2.0]"}))
    assert "'binary:logistic'" in words(document(tree(), objective={"name": "binary:logistic"}))
    assert "has no tree" in words(document())
    assert "without an object 'learner'" in words({"a": 1})
    assert "without an object 'learner'" in words({"learner": 1})
    assert "feature_names" in words(document(tree(), feature_names=["a"]))
    several = document(tree(), tree())
    several["learner"]["gradient_booster"]["model"]["tree_info"] = [0, 1]
    assert "several outputs (tree_info)" in words(several)
    coded = document(
        tree(split_type=[1, 0, 0], categories=[0], categories_nodes=[0], categories_segments=[0], categories_sizes=[1])
    )
    encoding: dict[str, Any]
    for encoding in ({"values": [5, 5]}, {"values": [1.5]}):
        coded["learner"]["gradient_booster"]["model"]["cats"] = {"enc": [{"values": []}, encoding]}
        assert "categories of a DataFrame" in words(coded)
    for encoding in ({"values": [97], "offsets": [0, 2]}, {"values": {"a": 1}}):
        coded["learner"]["gradient_booster"]["model"]["cats"] = {"enc": [{"values": []}, encoding]}
        assert "'cats' is of a wrong kind" in words(coded)


@pytest.mark.parametrize("form", FORMATS)
def test_other_ways_to_keep_models_are_named(form: Any) -> None:
    old = b"\x00\x00\x00\x3f\x04\x00\x00\x00" + b"\x00" * 128 + b"\x09\x00\x00\x00\x00\x00\x00\x00rank:ndcg\x06gbtree"
    for start in (b"binf" + old, old, b"\x80\x04\x95\x00xgboost.core"):
        assert xgboost_json.looks_like(start)
        assert "old binary format, or pickled; load it in an XGBoost from 1.0 to 3.0" in refusal(form.read, start)
    assert "text dump" in refusal(form.read, b"booster[0]:\n0:[f1<0.5] yes=1\n")
    assert refusal(form.read, b"") == "file: the file is empty"


UBJ_REFUSED = [
    (b"{", "ends in the middle"),
    (b"{i\x01a", "ends in the middle"),
    (b"{i\x01a[$T#l\x7f\xff\xff\xff", "items of type 'T'"),
    (b"{i\x01a[$d#L\x40\x00\x00\x00\x00\x00\x00\x00", "a length is 4611686018427387904"),
    (b"{i\x01a[$d#i\x03\x00\x00\x00\x00", "ends in the middle"),
    (b"{i\xffa", "a length is -1"),
    (b"{i\x01a[$d", "has no length"),
    (b"{Sa", "a length is due"),
    (b"{i\x01aX}", "'X' is no type"),
    (b"{i\x01a" + b"[" * 100, "nested more than 64 deep"),
    (b"{}{}", "more after the end"),
    (b"{i\x01\xffZ}", "not UTF-8"),
]


@pytest.mark.parametrize(("content", "words"), UBJ_REFUSED)
def test_damaged_binary_documents(content: bytes, words: str) -> None:
    assert words in refusal(decode, content)


def test_a_signalling_nan_is_read_without_a_warning() -> None:
    gains = np.array([0x7FA00000, 0, 0], np.uint32).view(np.float32)
    one = {key: np.array(entries) if isinstance(entries, list) else entries for key, entries in tree().items()}
    content = encode(document({**one, "loss_changes": gains}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xgboost_ubj.read(content, "file")


def test_binary_documents() -> None:
    arrays: dict[str, Any] = {
        "i": np.array([-1, 5], np.int8),
        "d": np.array([0.5], np.float32),
        "L": np.zeros(0, np.int64),
    }
    whole = {"a": {"b": [1, "é", {}]}, **arrays}
    again = decode(encode(whole), "file")
    assert isinstance(again, dict)
    assert again["a"] == whole["a"]
    for key, array in arrays.items():
        found = again[key]
        assert isinstance(found, np.ndarray)
        assert found.tolist() == array.tolist() and found.dtype == array.dtype
    assert decode(b"{i\x01a[TFZCxU\xffI\x01\x00l\x00\x01\x00\x00]i\x01b[$S#i\x02i\x01xi\x01y}", "file") == {
        "a": [True, False, None, "x", 255, 256, 65536],
        "b": ["x", "y"],
    }


def some_model(seed: int, **fields: object) -> Ensemble:
    """A model whose numbers are float32, with categorical splits."""
    rng = np.random.default_rng(seed)
    trees: list[Tree] = [random_tree(rng, n_leaves, 3, True) for n_leaves in (8, 1, 2, 12)]
    edges = {1: (category_edges32(np.array([0, 3, 4, 40])), True), 5: (category_edges32(np.array([2])), False)}
    trees[0] = with_bounds(trees[0], edges)
    ensemble = Ensemble(tuple(trees), np.array([1, 2, 4]), None, float(np.float32(0.3)), "missing", sums="float32")
    return replace(ensemble, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_written_models_read_back(form: Any, seed: int) -> None:
    ensemble = some_model(seed)
    content, notes, _ = form.write(ensemble)
    assert form.looks_like(content[:4096])
    again = form.read(content, "file")
    rows = planted_rows(np.random.default_rng(seed), ensemble, 500, is_float32=True)
    assert scores_of(again, rows).tobytes() == scores_of(ensemble, rows).tobytes()
    assert all("rounded to float32" in note for note in notes)  # thresholds of this test are not XGBoost's
    assert form.write(again).notes == ()
    assert form.write(form.read(form.write(again).content, "file")).content == form.write(again).content


def test_written_json_is_what_xgboost_needs() -> None:
    whole = json.loads(xgboost_json.write(some_model(1, feature_names=("a", "b[x]", "c"))).content)
    assert whole["learner"]["feature_names"] == ["a", "b_x_", "c"]
    assert whole["learner"]["learner_model_param"]["base_score"] == "0.300000012"
    for one in whole["learner"]["gradient_booster"]["model"]["trees"]:
        left, right = np.array(one["left_children"]), np.array(one["right_children"])
        assert (right[left >= 0] == left[left >= 0] + 1).all()  # siblings follow each other
        for key in ("base_weights", "loss_changes", "split_conditions", "sum_hessian"):
            assert {type(number) for number in one[key]} == {float}  # "0" would stop XGBoost
        assert set(one) >= {"categories", "categories_nodes", "parents", "split_type", "tree_param"}


def test_notes() -> None:
    ensemble = some_model(1, absent="zero", sums="float64", base_score=0.3)
    notes = " ".join(xgboost_json.write(ensemble).notes)
    assert "rounded to float32" in notes
    assert "XGBoost adds up in float32" in notes
    assert "is 0 to this model and missing to XGBoost" in notes
    average = some_model(1, average=True)
    rows = planted_rows(np.random.default_rng(1), average, 100, is_float32=True)
    found = scores_of(xgboost_json.read(xgboost_json.write(average).content, "file"), rows)
    assert np.abs(found - scores_of(average, rows)).max() < 1e-7


@pytest.mark.parametrize("form", FORMATS)
def test_gains(form: Any) -> None:
    for gain, objective in (("exp2", "rank:ndcg"), ("linear", "rank:ndcg"), (None, "rank:pairwise")):
        written = form.write(some_model(1, gain=gain))
        again = form.read(written.content, "file")
        assert (again.gain, again.settings["objective"]) == (gain, objective)
        assert not any("gain" in note for note in written.notes)
    table = form.write(some_model(1, gain="0,1,5"))
    assert "the table of gains is not written: XGBoost knows exp2 and linear only" in table.notes
    assert form.read(table.content, "file").gain is None


@pytest.mark.parametrize("form", FORMATS)
def test_hessian_sums_of_leaves_are_kept(form: Any) -> None:
    first = xgboost_json.read(text(document(tree(sum_hessian=[4.0, 1.5, 2.5]), tree(sum_hessian=[0.0] * 3))), "file")
    assert first.trees[0].leaf_weights is not None and first.trees[0].leaf_weights.tolist() == [1.5, 2.5]
    assert first.trees[1].leaf_weights is None  # as of a model that does not know them
    both = replace(first, trees=first.trees[:1] * 2)
    again = form.read(form.write(both).content, "file")
    assert [one.leaf_weights.tolist() for one in again.trees] == [[1.5, 2.5]] * 2
    written = json.loads(xgboost_json.write(both).content)["learner"]["gradient_booster"]["model"]["trees"]
    assert written[1]["sum_hessian"] == [4.0, 1.5, 2.5]
    for wrong in ([4.0, -1.0, 5.0], [4.0, math.inf, 1.0]):
        assert xgboost_json.read(text(document(tree(sum_hessian=wrong))), "file").trees[0].leaf_weights is None


def test_other_ranges_become_chains() -> None:
    one = with_bounds(random_tree(np.random.default_rng(1), 3, 1, True), {0: (np.array([0.25, 0.5, 1.5]), False)})
    ensemble = Ensemble((one,), np.array([1]), sums="float32")
    content, notes, _ = xgboost_json.write(ensemble)
    rows = planted_rows(np.random.default_rng(1), ensemble, 300, is_float32=True)
    found = scores_of(xgboost_json.read(content, "file"), rows)
    assert found.tobytes() == scores_of(ensemble, rows).tobytes()
    assert any("became chains" in note for note in notes)


def test_numbers_beyond_float32_are_refused() -> None:
    one = replace(random_tree(np.random.default_rng(1), 2, 1), leaf_values=np.array([1e39, 0.0]))
    with pytest.raises(ModelError, match="too large for float32"):
        xgboost_json.write(Ensemble((one,), np.array([1])))


@pytest.mark.peers
@pytest.mark.parametrize("name", ["m.json", "m.ubj"])
@pytest.mark.parametrize("seed", range(3))
def test_xgboost_scores_written_models_alike(tmp_path: Path, name: str, seed: int) -> None:
    xgboost = pytest.importorskip("xgboost")
    ensemble = some_model(seed)
    form = xgboost_json if name == "m.json" else xgboost_ubj
    (tmp_path / name).write_bytes(form.write(ensemble).content)
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(tmp_path / name)
    rows = planted_rows(np.random.default_rng(seed), ensemble, 500, is_float32=True)
    matrix = xgboost.DMatrix(rows, feature_types=booster.feature_types, enable_categorical=True)
    assert booster.predict(matrix).astype(float).tolist() == scores_of(ensemble, rows).tolist()


@pytest.mark.peers
@pytest.mark.parametrize("booster_kind", ["gbtree", "dart"])
def test_xgboosts_own_models_score_alike(tmp_path: Path, booster_kind: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.normal(size=(400, 3)), rng.integers(0, 40, 400)])
    rows[rng.random(rows.shape) < 0.2] = np.nan
    labels = (np.nan_to_num(rows[:, 0]) + np.nan_to_num(rows[:, 3]) % 3 > 1).astype(int)
    types = ["q", "q", "q", "c"]
    data = xgboost.DMatrix(rows, labels, feature_types=types, enable_categorical=True)
    data.set_group([20] * 20)
    parameters = {"objective": "rank:ndcg", "booster": booster_kind, "max_cat_to_onehot": 1}
    if booster_kind == "dart":
        parameters["rate_drop"] = 0.3
    booster = xgboost.train({**parameters, "nthread": 1}, data, 10)
    expected = booster.predict(data).astype(float)
    for name, form in (("m.json", xgboost_json), ("m.ubj", xgboost_ubj)):
        booster.save_model(tmp_path / name)
        ensemble = form.read((tmp_path / name).read_bytes(), name)
        assert scores_of(ensemble, rows).tolist() == expected.tolist()
