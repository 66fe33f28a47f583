"""XGBoost's JSON dumps: read as the tests in them say, written as Elasticsearch and OpenSearch LTR take them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from helpers.foreign_models import column_scores, planted_rows, random_tree, refusal, scores_of

from lmart.formats.models.lightgbm import json as lightgbm_json
from lmart.formats.models.lightgbm import text as lightgbm_text
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.formats.models.xgboost import ubjson as xgboost_ubj
from lmart.formats.models.xgboost.dump import looks_like, read, write
from lmart.scoring.ensemble import Ensemble

NAN = math.nan


def split(**fields: Any) -> dict[str, Any]:
    """A split of f1 at 0.5: the left leaf is 1, the right one 2."""
    plain = {
        **{"nodeid": 0, "depth": 0, "split": "f1", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 2},
        "children": [{"nodeid": 1, "leaf": 1}, {"nodeid": 2, "leaf": 2.0}],
    }
    return {**plain, **fields}


def text(*trees: Any) -> bytes:
    return json.dumps(trees).encode()


def sides(values: list[float], **fields: Any) -> list[float]:
    return column_scores(read(text(split(**fields)), "file"), values)


def test_splits() -> None:
    below = math.nextafter(0.5 - 2.0**-26, 0)
    assert sides([NAN, below, 0.5 - 2.0**-26, 0.5]) == [2, 1, 2, 2]
    assert sides([NAN, 0.0, 0.5], missing=1) == [1, 1, 2]
    assert sides([0.0, 0.5], yes=2, no=1) == [2, 1]
    assert sides([NAN, -1.0, 0.0, 3.5, 4.0], split_condition=[0, 3], yes=2, no=1, missing=1) == [1, 1, 2, 2, 1]
    without = split()
    del without["missing"]
    assert column_scores(read(text(without), "file"), [NAN]) == [2]


def test_what_a_dump_says() -> None:
    ensemble = read(text(split(gain=4.5), split(split="f12", gain=1)), "file")
    assert looks_like(text(split())[:100])
    assert looks_like(b'{"objective": "rank:ndcg", "splits": [{"nodeid": 0')
    assert (ensemble.feature_ids.tolist(), ensemble.feature_names) == ([1, 12], None)
    assert (ensemble.base_score, ensemble.absent, ensemble.sums) == (0.0, "missing", "float32")
    assert ensemble.settings == {"source": "XGBoost dump", "base_score": "not in a dump, taken as 0"}
    assert ensemble.trees[0].split_gains is not None and ensemble.trees[0].split_gains.tolist() == [4.5]
    named = read(text(split(split="price"), split(split="f1"), split(split="price")), "file")
    assert (named.feature_ids.tolist(), named.feature_names) == ([1, 2], ("price", "f1"))
    numbered = read(text(split(split="46"), split(split="7")), "file")
    assert (numbered.feature_ids.tolist(), numbered.feature_names) == ([7, 46], None)
    wrapped = json.dumps({"objective": "rank:ndcg", "splits": [split()]}).encode()
    assert column_scores(read(wrapped, "file"), [0.0]) == [1]


def as_request(definition: Any, **fields: Any) -> bytes:
    """What creates a model in Elasticsearch or OpenSearch."""
    inner = {"type": "model/xgboost+json", "definition": definition, **fields}
    return json.dumps({"model": {"name": "mine", "model": inner}}).encode()


def test_the_ways_in_which_dumps_are_kept() -> None:
    listed = [split(), split()]
    texts = [json.dumps(one, indent=1) for one in listed]
    whole = {"objective": "rank:ndcg", "splits": listed}
    ways = [text(*listed), json.dumps(texts).encode(), json.dumps(texts, indent=2).encode(), json.dumps(whole).encode()]
    ways += [as_request(listed), as_request(json.dumps(listed)), as_request(json.dumps(whole)), as_request(whole)]
    ways += [json.dumps(json.loads(as_request(listed))["model"]).encode()]
    for content in ways:
        assert looks_like(content[:4096])
        assert column_scores(read(content, "file"), [0.0, 1.0]) == [2, 4]
    for content, words in (
        (as_request("## LambdaMART", type="model/ranklib"), "the model is of type 'model/ranklib'"),
        (as_request(listed, feature_normalizers={}), "the model has the key 'feature_normalizers', which lmart does"),
        (b'{"model": {"model": {"definition": []}}, "more": 1}', "the request has the key 'more'"),
        (as_request("x"), "not valid JSON"),
        (as_request(None), "no list of trees"),
        (b'["0:[f1<0.5] yes=1"]', "tree 1 is a text such as '0:[f1<0.5] yes=1', which is for reading by eye"),
        (b"booster[0]:\n0:leaf=1\n", "this is a text dump of XGBoost"),
    ):
        assert looks_like(content)
        assert words in refusal(read, content)
    for other in (b"[1, 2]", b'["a"]', b'[{"a": 1}]', b'{"model": 1}', b'{"splits": 1}'):
        assert not looks_like(other)


def test_missing_values_may_be_0() -> None:
    def scores(missing_as_zero: bool, **fields: Any) -> list[float]:
        content = json.dumps({"missing_as_zero": missing_as_zero, "splits": [split(**fields)]}).encode()
        return column_scores(read(content, "file"), [0.0, 1.0, NAN])

    assert scores(False) == [1, 2, 2]
    assert scores(True) == [1, 2, 1]
    assert scores(True, split_condition=-0.5, missing=1) == [2, 2, 2]
    assert scores(False, split_condition=-0.5, missing=1) == [2, 2, 1]
    assert scores(True, split_condition=[0, 3], yes=2, no=1, missing=1) == [2, 1, 2]
    assert scores(True, split_condition=[1, 3], yes=2, no=1, missing=2) == [1, 2, 1]


SAME = [1.0, 2.0, 2.0]  # what the split gives rows whose f1 is 0, 1, nan
KEYS: list[tuple[str, Any, list[float] | str]] = [  # a key of a node, its value, and then the scores or the refusal
    ("nodeid", 7, SAME),
    ("depth", 9, SAME),
    ("split", "f0", [1.0, 1.0, 1.0]),
    ("split_condition", 2, [1.0, 1.0, 2.0]),
    ("yes", 2, "are not its children"),
    ("no", 1, "are not its children"),
    ("missing", 1, [1.0, 2.0, 1.0]),
    ("gain", 9, SAME),
    ("cover", 9, SAME),
    ("children", [{"nodeid": 1, "leaf": 7, "cover": 9, "depth": 1}, {"nodeid": 2, "leaf": 2}], [7.0, 2.0, 2.0]),
    ("children", [{"nodeid": 1, "leaf": 7, "weight": 9}, {"nodeid": 2, "leaf": 2}], "node 1 of tree 1 has the key"),
    ("leaf", 1, "node 0 of tree 1 has the key 'split', which lmart does not know"),
    ("weight", 9, "node 0 of tree 1 has the key 'weight', which lmart does not know"),
]
OBJECT_KEYS: list[tuple[str, Any, list[float] | str]] = [
    ("objective", "rank:map", SAME),
    ("objective", "reg:logistic", "whose predictions are not the sums"),
    ("missing_as_zero", True, [1.0, 2.0, 1.0]),
    ("missing_as_zero", 1, "missing_as_zero is '1', neither true nor false"),
    ("splits", [], "no list of trees"),
    ("base_score", 0.5, "the object with 'splits' has the key 'base_score', which lmart does not know"),
]


@pytest.mark.parametrize(("key", "value", "expected"), KEYS)
def test_keys_of_nodes(key: str, value: Any, expected: list[float] | str) -> None:
    if isinstance(expected, str):
        assert expected in refusal(read, text(split(**{key: value})))
    else:
        assert column_scores(read(text(split(**{key: value})), "file"), [0.0, 1.0, NAN]) == expected


@pytest.mark.parametrize(("key", "value", "expected"), OBJECT_KEYS)
def test_keys_of_objects(key: str, value: Any, expected: list[float] | str) -> None:
    content = json.dumps({"splits": [split()], key: value}).encode()
    if isinstance(expected, str):
        assert expected in refusal(read, content)
    else:
        assert column_scores(read(content, "file"), [0.0, 1.0, NAN]) == expected


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nodeid": -1}, "nodeid is '-1'"),
    ({"nodeid": 1}, "two nodes have the same nodeid"),
    ({"children": []}, "node 0 has not two children"),
    ({"children": [{"nodeid": 1, "leaf": 1}, 5]}, "a node is not an object"),
    ({"children": [{"nodeid": 1, "leaf": [1, 2]}, {"nodeid": 2, "leaf": 1}]}, "(multi-output)"),
    ({"yes": 3}, "'yes', 'no' and 'missing' of node 0 are not its children"),
    ({"missing": 3}, "'yes', 'no' and 'missing' of node 0 are not its children"),
    ({"split": None}, "node 0 has no 'split'"),
    ({"split_condition": None}, "an indicator feature"),
    ({"split_condition": "x"}, "split_condition of node 0 is 'x'"),
    ({"split_condition": [-1]}, "a category is not a whole number"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_refusals(fields: dict[str, Any], words: str) -> None:
    assert words in refusal(read, text(split(**fields)))


def test_refused_files() -> None:
    assert "no list of trees" in refusal(read, b"[]")
    assert "'binary:logistic'" in refusal(read, b'{"objective": "binary:logistic", "splits": []}')
    assert "text dump" in refusal(read, b"booster[0]:\n")
    assert refusal(read, b"\n") == "file: the file is empty"
    assert "nested more than" in refusal(read, b"[" * 100_000)
    assert "the file was cut" in refusal(read, text(split())[:50])


def some_model(**fields: Any) -> Ensemble:
    rng = np.random.default_rng(1)
    trees = tuple(random_tree(rng, n_leaves, 3, True) for n_leaves in (8, 1, 12))
    return Ensemble(trees, np.array([1, 2, 4]), base_score=0.25, absent="missing", sums="float32", **fields)


def test_written_dumps() -> None:
    ensemble = some_model(feature_names=("title match", "b]", "f0"))
    content, _, _ = write(ensemble)
    assert looks_like(content[:100])
    trees = json.loads(content)
    assert trees[0] == {"nodeid": 0, "leaf": 0.25}  # the base score
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        if "leaf" in node:
            assert set(node) == {"nodeid", "leaf"}
            continue
        assert set(node) == {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
        assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
        assert node["split"] in ("title match", "b]", "f0")
        waiting += node["children"]


def test_written_dumps_read_back() -> None:
    ensemble = some_model()
    rows = planted_rows(np.random.default_rng(1), ensemble, 500, is_float32=True)
    again = read(write(ensemble).content, "file")
    assert scores_of(again, rows).tobytes() == scores_of(ensemble, rows).tobytes()


def test_each_format_knows_its_own_files_only() -> None:
    forms: list[Any] = [lightgbm_text, lightgbm_json, xgboost_json, xgboost_ubj]
    ensemble = some_model(feature_names=("learner", "splits", "nodeid"))
    files = [form.write(ensemble).content for form in forms] + [write(ensemble).content]
    answers = [form.looks_like for form in forms] + [looks_like]
    for i, content in enumerate(files):
        assert [answer(content[:4096]) for answer in answers] == [i == j for j in range(len(files))]
    for other in (
        b"",
        b"{",
        b'{"format": "lmart", "version": 1}',
        b"1 qid:1 1:2\n",
        b"a,b\n1,2\n",
        b"<ranker>",
        b"\xff",
    ):
        assert not any(answer(other) for answer in answers)


@pytest.mark.peers
def test_dumps_of_xgboost_have_its_leaves() -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(400, 3))
    rows[rng.random(rows.shape) < 0.2] = np.nan
    data = xgboost.DMatrix(rows, np.nan_to_num(rows[:, 0]) > rng.normal(size=400))
    booster = xgboost.train({"objective": "reg:squarederror", "base_score": 0.0, "nthread": 1}, data, 10)
    dumped = booster.get_dump(dump_format="json", with_stats=True)
    for content in (f"[{','.join(dumped)}]".encode(), json.dumps(dumped).encode()):
        ensemble = read(content, "file")
        assert scores_of(ensemble, rows).tolist() == booster.predict(data).astype(float).tolist()
        assert all(tree.leaf_weights is not None for tree in ensemble.trees)
