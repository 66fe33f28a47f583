"""ONNX: onnxruntime comes to lmart's leaf for every row of float32 numbers, and to its score within float32 sums."""

from __future__ import annotations

import json
import math
import random
import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.float32_rows import leaf_values, models, planted, scores
from helpers.trees import THRESHOLDS, grow, sparse
from hypothesis import given

from lmart.array_types import Float64Array
from lmart.data.categories import Categories
from lmart.errors import ModelError
from lmart.formats.models import onnx as onnx_model
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.scorer import Scorer


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match="ONNX needs the package onnx: pip install onnx"):
        onnx_model.write(Ensemble((), np.array([1])))


def run(content: bytes, values: Float64Array, **texts: Any) -> list[float]:
    """The scores that onnxruntime gives, to values and to lists of texts."""
    runtime: Any = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    cells = {name: np.array(listed, object).reshape(-1, 1) for name, listed in texts.items()}
    cells["features"] = values.astype(np.float32)
    found: list[float] = session.run(["scores"], cells)[0].reshape(-1).tolist()
    return found


@pytest.mark.peers
@given(models())
def test_rows_of_float32_numbers_come_to_the_same_leaves(ensemble: Ensemble) -> None:
    pytest.importorskip("onnx")
    values, ids = planted(ensemble, with_nan=True), ensemble.feature_ids.tolist()
    for t in range(len(ensemble.trees)):
        one = replace(ensemble, trees=ensemble.trees[t : t + 1])
        leaves = np.array(leaf_values(ensemble, t, values, ids)).astype(np.float32).tolist()
        assert run(onnx_model.write(one).content, values) == leaves


@pytest.mark.peers
def test_scores_differ_by_no_more_than_is_said() -> None:
    onnx: Any = pytest.importorskip("onnx")
    rng = random.Random(1)
    trees = [grow(rng, rng.choice((1, 2, 31)), range(3), THRESHOLDS) for _ in range(50)]
    trees = [replace(tree, leaf_values=np.array([rng.gauss(0, 1) for _ in range(tree.n_leaves)])) for tree in trees]
    plain = Ensemble(tuple(trees), np.array([1, 4, 9]), ("a", "b", "c d"), 0.3)
    for ensemble in (plain, replace(plain, average=True), replace(plain, trees=()), replace(plain, base_score=0.0)):
        written = onnx_model.write(ensemble)
        values = planted(plain, with_nan=True)
        found, expected = np.array(run(written.content, values)), np.array(scores(ensemble, values))
        most = float(re.findall(r"by at most ([-+.0-9e]+)", written.notes[-1])[-1])
        assert np.abs(found - expected).max() <= most < 1e-3
        model = onnx.load_from_string(written.content)
        onnx.checker.check_model(model, full_check=True)
        said = {prop.key: prop.value for prop in model.metadata_props}
        assert said == {"feature_ids": "[1, 4, 9]", "feature_names": json.dumps(["a", "b", "c d"]), "absent": "zero"}
        assert onnx_model.write(ensemble).content == written.content


@pytest.mark.peers
def test_thresholds_that_are_finer_than_float32_are_counted() -> None:
    pytest.importorskip("onnx")
    tree = replace(grow(random.Random(1), 5, [0], [0.1]), leaf_values=np.arange(5.0))
    notes = onnx_model.write(Ensemble((tree,), np.array([1]))).notes
    assert [note.split(",")[0] for note in notes] == [
        "4 of 4 thresholds are finer than float32",
        "scores are float32 sums in ONNX: a score can differ by at most 2.4e-07",
    ]


def chain(column: int, thresholds: list[float], first: float) -> Tree:
    """A tree of one feature, whose missing values go left at every other node."""
    n = len(thresholds)
    right = np.array([*range(1, n), ~n], np.int32)
    values = 2.0 ** np.arange(first, first + n + 1)
    sides = np.arange(n) % 2 > 0
    return Tree(np.full(n, column, np.int32), np.array(thresholds), sides, ~np.arange(n, dtype=np.int32), right, values)


@pytest.mark.peers
def test_categories_are_numbered_from_their_values_and_texts() -> None:
    onnx: Any = pytest.importorskip("onnx")
    categories = (
        Categories(0, (4, 0, 7, -3), 2),
        Categories(1, ("b", "features", "ünï", "NA"), 1),
        Categories(2, (1,), 0),
    )
    trees = chain(0, [-1.5, 0.5, 1.5], -9), chain(1, [-0.5, 0.5, 2.5], -5), chain(3, [0.25], 0)
    ensemble = Ensemble(trees, np.arange(4), ("id", "features", "idle", "x"), categories=categories)
    written = onnx_model.write(ensemble)
    onnx.checker.check_model(onnx.load_from_string(written.content), full_check=True)
    assert "category 'features_' are an input of that name" in written.notes[-1]
    ids = [4, 0, -0.0, 7, -3, 5, 2.5, math.nan, math.inf, -math.inf, 1e30, 16777216]
    texts = ["b", "features", "ünï", "NA", "new", "", "na", "nAn", "null", "NULL", "B", " b"]
    held = [0, 1, 2, 3, -1, *[math.nan] * 5, -1, -1]
    values = np.column_stack([ids, np.full(12, 7), np.full(12, 1), np.linspace(0, 1, 12).astype(np.float32)])
    found = run(written.content, values, features_=texts)
    values[:, 1] = held
    assert (
        found
        == Scorer(ensemble)
        .score(sparse([dict(enumerate(row)) for row in values.tolist()]), np.arange(4, dtype=np.int32))
        .tolist()
    )
    large = replace(ensemble, categories=(Categories(0, (2**24 + 1,), 0), *categories[1:]))
    with pytest.raises(ModelError, match="category 'id' has the value 16777217, which float32 does not hold"):
        onnx_model.write(large)
