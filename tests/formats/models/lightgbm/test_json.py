"""LightGBM's JSON models: the same as its text models, and what Vespa makes of written ones."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from helpers.foreign_models import column_scores, planted_rows, random_tree, refusal, scores_of, with_bounds

from lmart.formats.models.lightgbm import text as lightgbm_text
from lmart.formats.models.lightgbm.conditions import BELOW_ZERO, ZERO, range_edges
from lmart.formats.models.lightgbm.json import looks_like, read, write
from lmart.formats.models.nodes import category_ranges
from lmart.scoring.ensemble import Ensemble

NAN = math.nan


def leaf(index: int, value: float) -> dict[str, Any]:
    return {"leaf_index": index, "leaf_value": value, "leaf_count": 7}


def split(**fields: Any) -> dict[str, Any]:
    """A split on column 1: the left leaf is 1, the right one 2."""
    plain = {
        **{"split_index": 0, "split_feature": 1, "split_gain": 2, "threshold": 0.5, "decision_type": "<="},
        **{"default_left": False, "missing_type": "NaN", "left_child": leaf(0, 1), "right_child": leaf(1, 2)},
    }
    return {**plain, **fields}


def model(structure: Any, **fields: Any) -> bytes:
    document = {
        **{"name": "tree", "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "max_feature_idx": 1},
        **{"objective": "lambdarank", "average_output": False, "feature_names": ["Column_0", "Column_1"]},
        **{"tree_info": [{"tree_index": 0, "tree_structure": structure}], "pandas_categorical": None},
    }
    return json.dumps({**document, **fields}).encode()


def sides(values: list[float], **fields: Any) -> list[float]:
    return column_scores(read(model(split(**fields)), "file"), values)


def test_splits() -> None:
    values = [NAN, 0.0, 0.5, 0.6, -3.0]
    assert sides(values) == [2, 1, 1, 2, 1]
    assert sides(values, default_left=True, threshold=-0.5) == [1, 2, 2, 2, 1]
    assert sides(values, missing_type="None") == [1, 1, 1, 2, 1]
    assert sides(values, missing_type="Zero") == [2, 2, 1, 2, 1]
    assert sides(values, missing_type="Zero", default_left=True, threshold=-0.5) == [1, 1, 2, 2, 1]
    assert sides(values, decision_type="<") == [2, 1, 2, 2, 1]
    assert sides([NAN, -1.0, 0.0, 3.7, 4.0], decision_type="==", threshold="0||3", missing_type="None") == [
        2,
        2,
        1,
        1,
        2,
    ]
    assert sides([NAN, 1e301, -1e301], threshold=1e300) == [2, 1, 1]
    assert sides([-1e-40, 1e-40], threshold=0, decision_type="<=") == [1, 1]
    assert sides([-1e-40, 0.0, 1e-40], threshold=0, decision_type="<") == [1, 2, 2]  # as Vespa, which has no such rule


def test_what_a_model_says() -> None:
    assert looks_like(model(split())[:200])
    ensemble = read(model(split()), "file")
    assert ensemble.feature_ids.tolist() == [1]
    assert ensemble.settings == {"source": "LightGBM v4", "objective": "lambdarank"}
    tree = ensemble.trees[0]
    assert tree.split_gains is not None and tree.leaf_documents is not None
    assert (tree.split_gains.tolist(), tree.leaf_documents.tolist()) == ([2.0], [7, 7])
    one_leaf = read(model({"leaf_value": 3}), "file")
    assert column_scores(one_leaf, [0.0]) == [3]
    assert read(model(split(), average_output=True), "file").average


def test_numbers_of_nodes_and_leaves_are_kept() -> None:
    inner = split(split_index=2, threshold=0.25, left_child=leaf(2, 1), right_child=leaf(0, 2))
    other = split(split_index=1, threshold=0.75, left_child=leaf(1, 3), right_child=leaf(3, 4))
    tree = read(model(split(left_child=inner, right_child=other)), "file").trees[0]
    assert tree.thresholds.tolist() == [0.5, 0.75, 0.25]
    assert tree.leaf_values.tolist() == [2, 3, 1, 4]
    assert (tree.left.tolist(), tree.right.tolist()) == ([2, -2, -3], [1, -4, -1])


def deep(levels: int) -> bytes:
    """A tree that has a leaf and a split on each of many levels."""
    start = json.dumps(split(split_index=None))
    start = start[: start.index('"right_child": ') + len('"right_child": ')]
    text = start * levels + json.dumps(leaf(0, 2)) + "}" * levels
    return model(None).replace(b'"tree_structure": null', b'"tree_structure": ' + text.encode())


@pytest.mark.slow
def test_deep_trees() -> None:
    assert read(deep(3000), "file").trees[0].n_leaves == 3001
    assert "nested more than 20,000 deep" in refusal(read, deep(30_000))


def test_deep_nesting_where_a_number_is_due_is_refused_in_one_line() -> None:
    deep = "[" * 10_000 + "]" * 10_000
    names = '"feature_names": ["a"]'
    split = '{"split_index": 0, "split_feature": 0, "decision_type": "==", "threshold": ' + deep + "}"
    for text, words in (
        (f'{{"tree_info": [{{"tree_structure": {split}}}], {names}}}', "the categories a list are not whole numbers"),
        (f'{{"tree_info": [{{"tree_structure": {{"leaf_value": {deep}}}}}], {names}}}', "leaf_value is a list"),
        (
            f'{{"tree_info": [{{"tree_structure": {{"leaf_value": 1}}}}], {names}, "max_feature_idx": {deep}}}',
            "max_feature_idx is a list",
        ),
    ):
        assert words in refusal(read, text)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"decision_type": "is"}, "decision_type is 'is'"),
    ({"missing_type": "None", "decision_type": "<"}, "missing_type is 'None' where decision_type is '<'"),
    ({"missing_type": []}, "missing_type is a list"),
    ({"threshold": "x", "decision_type": "=="}, "the categories 'x' are not whole numbers"),
    ({"threshold": "9999999999", "decision_type": "=="}, "category 9999999999 is too large"),
    ({"threshold": NAN}, "threshold is 'NaN'"),
    ({"split_feature": 2}, "a split is on column 2, and the model has 2"),
    ({"split_feature": True}, "split_feature is 'true'"),
    ({"left_child": None}, "a node is not an object"),
    ({"left_child": {"leaf_value": "1"}}, "leaf_value is '1'"),
    ({"left_child": {"leaf_value": 1, "leaf_const": 2}}, "linear_tree"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_refused_splits(fields: dict[str, Any], words: str) -> None:
    assert words in refusal(read, model(split(**fields)))


def test_refused_models() -> None:
    assert "3 outputs" in refusal(read, model(split(), num_class=3))
    assert "v5" in refusal(read, model(split(), version="v5"))
    assert "remove its key 'objective'" in refusal(read, model(split(), objective="binary sigmoid:1"))
    assert "max_feature_idx is '7'" in refusal(read, model(split(), max_feature_idx=7))
    assert "no tree" in refusal(read, model(split(), tree_info=[]))
    assert "'tree_structure'" in refusal(read, model([]))
    categorical = model(split(threshold="1", decision_type="=="), pandas_categorical=[["a"], ["b"], ["c"]])
    assert "lists 3 where 1 column" in refusal(read, categorical)
    assert "the file was cut" in refusal(read, model(split())[:300])
    assert "column" in refusal(read, model(split()).replace(b":", b";", 1))
    assert "too long" in refusal(read, b'{"a": ' + b"1" * 10_000 + b"}")


SAME = [1.0, 2.0, 2.0]  # what a model of the split above gives rows whose column 1 is 0.5, 0.6, nan
HEAD_KEYS: list[tuple[str, Any, list[float] | str]] = [
    ("name", "forest", SAME),
    ("version", "v9", "version 'v9'"),
    ("num_class", 3, "3 outputs"),
    ("num_tree_per_iteration", 2, "2 outputs"),
    ("label_index", 2, SAME),
    ("max_feature_idx", 7, "max_feature_idx is '7'"),
    ("objective", "poisson", "whose predictions are not the raw scores"),
    ("objective", "lambdarank sigmoid:9", SAME),
    ("average_output", True, SAME),  # of one tree
    ("average_output", "yes", "average_output is neither true nor false"),
    ("feature_names", ["a"], "max_feature_idx is '1'"),
    ("monotone_constraints", [1, -1], SAME),
    ("feature_infos", {"Column_1": {"min_value": 7, "max_value": 9, "values": []}}, SAME),
    ("tree_info", [], "no tree"),
    ("feature_importances", {"Column_0": 9}, SAME),
    ("pandas_categorical", [["a", "b"]], SAME),  # without a categorical split
]
NODE_KEYS: list[tuple[str, Any, list[float] | str]] = [
    ("split_index", 7, SAME),
    ("split_feature", 0, [1.0, 1.0, 1.0]),
    ("split_gain", 9, SAME),
    ("threshold", 0.6, [1.0, 1.0, 2.0]),
    ("decision_type", "<", [2.0, 2.0, 2.0]),
    ("default_left", True, [1.0, 2.0, 1.0]),
    ("missing_type", "None", [1.0, 2.0, 1.0]),
    ("internal_value", 9, SAME),
    ("internal_weight", 9, SAME),
    ("internal_count", 9, SAME),
    ("left_child", leaf(0, 7), [7.0, 2.0, 2.0]),
    ("right_child", leaf(1, 7), [1.0, 7.0, 7.0]),
    ("left_child", {"leaf_index": 5, "leaf_value": 1, "leaf_weight": 9, "leaf_count": 0}, SAME),
    (
        "left_child",
        {"leaf_index": 0, "leaf_value": 1, "leaf_const": 1, "leaf_features": [], "leaf_coeff": []},
        "linear",
    ),
]


@pytest.mark.parametrize(("key", "value", "expected"), HEAD_KEYS)
def test_keys_of_the_head(key: str, value: Any, expected: list[float] | str) -> None:
    content = model(split(), **{key: value})
    if isinstance(expected, str):
        assert expected in refusal(read, content)
    else:
        assert column_scores(read(content, "file"), [0.5, 0.6, NAN]) == expected


@pytest.mark.parametrize(("key", "value", "expected"), NODE_KEYS)
def test_keys_of_nodes(key: str, value: Any, expected: list[float] | str) -> None:
    if isinstance(expected, str):
        assert expected in refusal(read, model(split(**{key: value})))
    else:
        assert sides([0.5, 0.6, NAN], **{key: value}) == expected


@pytest.mark.peers
@pytest.mark.parametrize("linear_tree", [False, True])
def test_lightgbm_dumps_no_other_keys(linear_tree: bool) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    parameters = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "linear_tree": linear_tree}
    data = lightgbm.Dataset(rng.normal(size=(200, 3)), rng.integers(0, 3, 200), group=[20] * 10, params=parameters)
    dumped = lightgbm.train(parameters, data, 2).dump_model()
    assert set(dumped) <= {key for key, *_ in HEAD_KEYS}
    known = {key for key, *_ in NODE_KEYS}
    for key, value, _ in NODE_KEYS:
        known |= set(value) if key.endswith("_child") else set()
    waiting = [tree["tree_structure"] for tree in dumped["tree_info"]]
    while waiting:
        node = waiting.pop()
        assert set(node) <= known
        waiting += [node[side] for side in ("left_child", "right_child") if side in node]


def some_model(seed: int) -> Ensemble:
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_leaves, 3) for n_leaves in (8, 1, 12)]
    edges = {
        1: (range_edges(category_ranges(np.array([0, 3, 4, 40]))), True),
        3: (np.array([-0.5, BELOW_ZERO, ZERO]), True),
    }
    return Ensemble((with_bounds(trees[0], edges), *trees[1:]), np.array([0, 1, 2]), ("a", "b", "c"), 0.3)


@pytest.mark.parametrize("seed", range(3))
def test_written_models_read_back(seed: int) -> None:
    ensemble = some_model(seed)
    content, notes, _ = write(ensemble)
    assert looks_like(content[:500])
    rows = planted_rows(np.random.default_rng(seed), ensemble, 500)
    assert scores_of(read(content, "file"), rows).tobytes() == scores_of(ensemble, rows).tobytes()
    assert any("became chains" in note for note in notes)  # zeros of their own side are unknown to Vespa
    assert any("categorical split" in note for note in notes)


def vespa_score(document: dict[str, Any], row: dict[str, float]) -> float:
    """The score that Vespa's import gives: x < threshold, or not x >= threshold on the default side."""
    total = 0.0
    for tree in document["tree_info"]:
        node = tree["tree_structure"]
        while "leaf_value" not in node:
            value, number = row[document["feature_names"][node["split_feature"]]], node["threshold"]
            if node["decision_type"] == "==":
                goes_left = value in [float(word) for word in number.split("||")]
            else:
                goes_left = not value >= number if node["default_left"] else value < number
            node = node["left_child" if goes_left else "right_child"]
        total += node["leaf_value"]
    return total


@pytest.mark.parametrize("seed", range(3))
def test_vespa_scores_written_models_alike(seed: int) -> None:
    ensemble = some_model(seed)
    document = json.loads(write(ensemble).content)
    assert {"tree_info", "objective", "feature_names", "pandas_categorical"} <= set(document)
    rows = planted_rows(np.random.default_rng(seed), ensemble, 300)
    column = rows[:, 1]  # of the categorical split in one of the models: Vespa compares whole numbers only
    column[column < 0] = -1
    rows = np.where(np.isin(rows, [0, 3, 4, 40]), 5, rows)
    used = {ensemble.feature_ids[c] for c in ensemble.trees[0].split_columns[[1]]}
    for index in used:
        rows[:, index] = np.where(np.isnan(rows[:, index]), np.nan, np.floor(np.abs(rows[:, index])))
    expected = scores_of(ensemble, rows)
    names = document["feature_names"]
    found = [vespa_score(document, {name: float(row[j]) for j, name in enumerate(names)}) for row in rows]
    assert found == expected.tolist()


@pytest.mark.peers
def test_dump_model_is_read_as_the_text_model() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_str=lightgbm_text.write(some_model(1)).content.decode())
    dumped = read(json.dumps(booster.dump_model()).encode(), "file")
    saved = lightgbm_text.read(booster.model_to_string().encode(), "file")
    rows = planted_rows(np.random.default_rng(1), saved, 500)
    assert scores_of(dumped, rows).tobytes() == scores_of(saved, rows).tobytes()
    for one, other in zip(dumped.trees, saved.trees, strict=True):
        assert one.left.tolist() == other.left.tolist()
        assert one.leaf_values.tolist() == other.leaf_values.tolist()
