"""Solr's models: read as Solr scores them, written with thresholds that are right once Solr has added to them."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.float32_rows import leaf_values, models, planted, scores
from helpers.trees import grow
from hypothesis import assume, given

from lmart.errors import ModelError
from lmart.formats.models import solr
from lmart.formats.models.thresholds import next32, previous32
from lmart.scoring.ensemble import Ensemble

ROOT = {
    "feature": "price",
    "threshold": "0.1",
    "left": {"value": "-1.5"},
    "right": {"feature": "title match", "threshold": -0.0025, "left": {"value": 0.25}, "right": {"value": "7"}},
}
MODEL = {
    "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
    "store": "s",
    "name": "m",
    "features": [{"name": "title match"}, {"name": "unused"}, {"name": "price", "norm": None}],
    "params": {"trees": [{"weight": "0.1", "root": ROOT}, {"weight": 0.7, "root": {"value": "0.3"}}]},
}
SLACK = np.float32(1e-6)
NEAR = float(np.float32(0.1) + SLACK)


def read(model: Any) -> Ensemble:
    return solr.read(json.dumps(model).encode(), "m")


def twin(model: Any, rows: list[dict[str, float]]) -> list[float]:
    """The scores as Solr makes them, where features that may have no value have the default value NaN."""
    found, has_nulls = [], model["params"].get("isNullSameAsZero") is False
    for row in rows:
        total = np.float32(0)
        for tree in model["params"]["trees"]:
            node = tree["root"]
            while "feature" in node:
                x = np.float32(row.get(node["feature"], math.nan))
                side = node.get("missing") if has_nulls else None
                x = np.float32(0) if np.isnan(x) and side is None else x
                goes_left = side == "left" if np.isnan(x) else x <= np.float32(float(node["threshold"])) + SLACK
                node = node["left" if goes_left else "right"]
            total = total + np.float32(float(tree["weight"])) * np.float32(float(node["value"]))
        found.append(float(total))
    return found


def test_a_model_scores_as_in_solr() -> None:
    model = read(MODEL)
    assert model.feature_names == ("title match", "unused", "price")
    assert model.feature_ids.tolist() == [1, 2, 3]
    assert (model.sums, model.absent) == ("float32", "zero")
    values = [[0.0, 0.1], [0.0, NEAR], [0.0, math.nextafter(NEAR, 1)], [-0.0025, 0.2], [-0.0024, 0.2], [9.0, math.nan]]
    rows = [{"title match": a, "price": b} for a, b in values]
    assert scores(model, np.array(values), [1, 3]) == twin(MODEL, rows)
    above = float(next32(np.array([NEAR], np.float32))[0])
    assert scores(model, np.array([[0.0, NEAR]]), [1, 3]) == scores(model, np.array([[0.0, 0.1]]), [1, 3])
    assert scores(model, np.array([[0.0, above]]), [1, 3]) == scores(model, np.array([[0.0, 0.2]]), [1, 3])


def test_features_named_by_their_number_keep_it() -> None:
    text = json.dumps(MODEL).replace("title match", "f12").replace("price", "f3").replace("unused", "f0")
    model = solr.read(text.encode(), "m")
    assert (model.feature_ids.tolist(), model.feature_names) == ([0, 3, 12], ("f0", "f3", "f12"))  # as not in order
    assert scores(model, np.array([[9.0, 0.2]]), [12, 3]) == scores(read(MODEL), np.array([[9.0, 0.2]]), [1, 3])


def test_names_that_say_other_numbers_are_kept_or_told() -> None:
    tree = grow(random.Random(1), 4, [0, 1], [0.5])
    swapped = Ensemble((tree,), np.array([1, 2]), ("f2", "f1"))
    written = solr.write(swapped)
    assert "lmart reads the feature 'f2' back as number 2, where it is 1" in written.notes
    back = solr.read(written.content, "m")
    by_name = [back.feature_names.index(name) for name in ("f2", "f1")] if back.feature_names else []
    values = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert scores(back, values[:, by_name]) == [float(np.float32(score)) for score in scores(swapped, values)]
    for names in (("f1", "f2"), ("f1", "b"), None):
        assert not any("reads the feature" in note for note in solr.write(replace(swapped, feature_names=names)).notes)


def test_other_layouts_of_the_same_model() -> None:
    text = json.dumps([{**MODEL, "extra": 1}], indent=2)
    again = solr.read(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), "m")
    assert scores(again, np.array([[9.0, 0.2]]), [1, 3]) == scores(read(MODEL), np.array([[9.0, 0.2]]), [1, 3])
    assert solr.looks_like(text.encode())
    assert not solr.looks_like(b'{"format": "lmart"}')
    assert solr.looks_like(b'{"class": "org.apache.solr.ltr.model.LinearModel"}')


def test_missing_values_go_where_the_model_says() -> None:
    root = {**ROOT, "missing": "right", "right": {**ROOT["right"], "missing": "left"}}  # type: ignore[dict-item]
    params = {"isNullSameAsZero": False, "trees": [{"weight": "1", "root": root}]}
    values = [[math.nan, math.nan], [0.0, math.nan], [0.0, 0.1], [0.0, 0.2], [math.nan, 0.2]]
    rows = [{"title match": a, "price": b} for a, b in values]
    model = {**MODEL, "params": params}
    found = read(model)
    assert found.absent == "missing"
    assert scores(found, np.array(values), [1, 3]) == twin(model, rows) == [0.25, 7.0, -1.5, 7.0, 0.25]
    written = solr.write(found)
    assert json.loads(written.content)["params"]["isNullSameAsZero"] is False
    assert twin(json.loads(written.content), rows) == twin(model, rows)
    # The keys of the nodes alone change nothing, as in Solr.
    old = {**MODEL, "params": {"trees": params["trees"]}}
    assert scores(read(old), np.array(values), [1, 3]) == twin(old, rows) == [-1.5, -1.5, -1.5, 7.0, 7.0]


def test_a_side_that_no_node_names_is_that_of_zero() -> None:
    model = {**MODEL, "params": {**MODEL["params"], "isNullSameAsZero": False}}  # type: ignore[dict-item]
    values = np.array([[math.nan, math.nan], [0.0, 0.0]])
    assert len(set(scores(read(model), values, [1, 3]))) == 1
    again = json.loads(solr.write(read(model)).content)
    assert (again["params"]["isNullSameAsZero"], again["name"], again["store"]) == (False, "m", "s")


def test_numbers_may_have_the_letter_of_their_type() -> None:
    text = json.dumps(MODEL).replace('"0.1"', '"0.1f"').replace('"-1.5"', '"-1.5D"').replace('"7"', '" 7F "')
    rows = np.array([[0.0, 0.1], [9.0, 0.2]])
    assert scores(solr.read(text.encode(), "m"), rows, [1, 3]) == scores(read(MODEL), rows, [1, 3])


def changed(old: str, new: str) -> bytes:
    text = json.dumps(MODEL)
    assert old in text
    return text.replace(old, new, 1).encode()


REFUSED = {
    "linear": (changed("MultipleAdditiveTreesModel", "LinearModel"), "a model of class '.*LinearModel' is not read"),
    "two models": (json.dumps([MODEL, MODEL]).encode(), "no single model of Solr"),
    "other JSON": (b'{"learner": 1}', 'no "class"'),
    "cut": (json.dumps(MODEL).encode()[:300], "m:1: the model ends in the middle"),
    "damaged": (changed('"trees": [', '"trees": [,'), "m:1: this is not valid JSON, at column"),
    "deep": (b'{"a":' * 100_000, "nested too deep"),
    "long number": (changed("-0.0025", "1" * 5000), "a number is too long"),
    "not UTF-8": (changed("title", "title").replace(b"price", b"pri\xff"), "m:1: this is not UTF-8"),
    "no trees": (changed('"trees"', '"tree"'), "'params' has no list of 'trees'"),
    "no weight": (changed('"weight"', '"wait"'), "tree 1: there is no 'weight'"),
    "unknown feature": (changed('"feature": "price"', '"feature": "prize"'), "tree 1: a node is on feature 'prize'"),
    "no left": (changed('"left": {"value": "-1.5"}', '"left": null'), "tree 1: a node has no 'left'"),
    "key of a node": (changed('"left"', '"lift"'), "tree 1: a node has the key 'lift', which Solr does not know"),
    "key of a tree": (changed('"root"', '"bias": 1, "root"'), "tree 1 has the key 'bias', which Solr"),
    "key of params": (changed('"trees"', '"bias": 1, "trees"'), "'params' has the key 'bias', which Solr"),
    "side": (changed('"feature": "price"', '"feature": "price", "missing": "up"'), "tree 1: 'missing' is '\"up\"'"),
    "letter": (changed('"0.1"', '"0.1g"'), "a 'weight' is '\"0.1g\"'"),
    "leaf with left": (changed('"feature": "price", ', ""), "a node has 'left' or 'right' and no 'feature'"),
    "no object": (changed('{"value": "-1.5"}', "[]"), "a node is not an object"),
    "no number": (changed('"0.1"', '"0x1"'), "a 'weight' is '\"0x1\"', not a finite number"),
    "true": (changed("0.25", "true"), "a 'value' is 'true', not a finite number"),
    "key twice": (changed('"weight"', '"root": 1, "weight"'), "the key 'root' is given twice"),
    "nan": (changed("-0.0025", "NaN"), "'NaN' is no JSON number"),
    "infinite": (changed('"-1.5"', '"Infinity"'), "a 'value' is '\"Infinity\"'"),
    "too large": (changed("0.25", "1e39"), "too large for float32"),
    "twice": (changed('"unused"', '"price"'), "two features have the name 'price'"),
    "normalizer": (
        changed('"norm": null', '"norm": {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer"}'),
        "'price'",
    ),
    "no name": (changed('{"name": "unused"}', "{}"), "'features' is not a list of objects"),
    "nulls": (changed('"trees"', '"isNullSameAsZero": "false", "trees"'), "'isNullSameAsZero' is '\"false\"', not"),
    "norm": (changed('"norm": null', '"norm": {}'), "'price' has a normalizer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_in_one_line(case: str) -> None:
    content, words = REFUSED[case]
    with pytest.raises(ModelError, match=words) as refused:
        solr.read(content, "m")
    assert "\n" not in str(refused.value)


def test_thresholds_before_what_solr_adds() -> None:
    rng = np.random.default_rng(1)
    sizes = 10 ** rng.uniform(-12, 6, 20_000)
    thresholds = np.concatenate([sizes, -sizes, [0.0, 1e-6, 2e-6, -1e-6]]).astype(np.float32)
    stored, reached = solr.before_slack(thresholds)
    assert np.array_equal(stored + SLACK, reached)
    assert (reached <= thresholds).all()
    missed = reached < thresholds
    assert ((next32(stored) + SLACK)[missed] > thresholds[missed]).all()  # nothing between
    assert 0 < missed[np.abs(thresholds) > 2e-6].mean() < 0.01


@given(models())
def test_rows_of_float32_numbers_come_to_the_same_leaves(ensemble: Ensemble) -> None:
    written = solr.write(ensemble)
    back = solr.read(written.content, "m")
    assert back.feature_ids.tolist() == ensemble.feature_ids.tolist()
    values, ids = planted(ensemble, with_nan=True), ensemble.feature_ids.tolist()
    rows = [{f"f{f}": x for f, x in zip(ids, row, strict=True)} for row in values.tolist()]
    assert twin(json.loads(written.content), rows) == scores(back, values)
    again = solr.write(back)
    assert again.content == written.content
    assume(not any("cannot be stored" in note for note in written.notes))
    values = planted(ensemble)
    for t in range(len(ensemble.trees)):
        before = np.array(leaf_values(ensemble, t, values, ids)).astype(np.float32)
        assert np.array_equal(before, np.array(leaf_values(back, t, values, ids)))


def test_what_gets_lost_is_said_with_counts() -> None:
    tree = grow(random.Random(1), 4, [0, 1], [1e-20], missing_left=False)
    tree = replace(tree, leaf_values=np.array([0.1, 0.2, 0.25, 0.3]))
    ensemble = Ensemble((tree, tree), np.array([1, 7]), ("a", 'b "c"'), 0.5, average=True)
    written = solr.write(ensemble)
    assert [note.split(":")[0] for note in written.notes] == [
        "6 of 6 thresholds are finer than float32, in which Solr compares",
        "6 of 6 thresholds cannot be stored exactly, as Solr adds 1e-6",
        "6 of 9 leaf values are rounded to float32, by at most 6.0e-09, and scores are float32 sums in Solr",
    ]
    assert written.needs == (solr.NULL_NEEDS,)
    back = solr.read(written.content, "m")
    assert back.feature_names == ensemble.feature_names
    values = np.array([[0.5, -1.0]])
    assert scores(back, values, [1, 2]) == pytest.approx(scores(ensemble, values), rel=1e-6)
    assert solr.write(replace(back, feature_names=None)).content.count(b'"f2"') > 0


def test_a_threshold_just_below_a_power_of_two() -> None:
    one = float(previous32(np.array([1.0], np.float32))[0])
    tree = grow(random.Random(1), 2, [0], [one])
    back = solr.read(solr.write(Ensemble((tree,), np.array([1]))).content, "m")
    values = np.array([[one], [1.0]])
    before = scores(Ensemble((tree,), np.array([1])), values)
    assert scores(back, values) == [float(np.float32(score)) for score in before]
