"""A model with a linear ranker in the formats, explanations and reports of all models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.compiled_c import NEEDS_CC, c_scores, compiled

import lmart
from lmart.array_types import Float64Array
from lmart.scoring.ensemble import LINEAR, rankers_in_words
from lmart.settings import kinds

N_QUERIES, SIZE = 60, 12
FEW: dict[str, Any] = {"trees": 12, "rankers": 2, "leaves": 8, "linear": 0.4, "min_docs": 3}


def made(seed: int, missing: float = 0.0) -> tuple[Float64Array, Float64Array, list[int]]:
    """Return rows of float32 numbers, labels that follow a sum of functions of features, and queries."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N_QUERIES * SIZE, 5)).astype(np.float32).astype(np.float64)
    labels = np.clip(np.floor(rows[:, 0] + np.tanh(2 * rows[:, 1]) - rows[:, 2] + 1), 0, 4)
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows, labels, np.repeat(np.arange(N_QUERIES), SIZE).tolist()


MODEL = lmart.train(*made(1), **FEW)
WITH_MISSING = lmart.train(*made(2, 0.2), **FEW)
ROWS = np.concatenate([made(3)[0], made(4, 0.3)[0]])
BY_INDEX = np.concatenate([np.zeros((len(ROWS), 1)), ROWS], axis=1)  # feature 1 in column 1


@pytest.mark.parametrize(
    "form, most", [("lightgbm", 0.0), ("lightgbm-json", 0.0), ("xgboost", 1e-5), ("xgboost-ubj", 1e-5), ("solr", 1e-5)]
)
def test_written_models_score_alike(form: str, most: float, tmp_path: Path) -> None:
    for model in (MODEL, WITH_MISSING):
        model.save(tmp_path / "m.json")
        run("convert", tmp_path / "m.json", tmp_path / "n", "--to", form, "-qq")
        differences = lmart.load(tmp_path / "n").predict(ROWS) - model.predict(ROWS)
        assert np.abs(differences).max() <= most


@pytest.mark.peers
def test_lightgbm_scores_its_text_alike(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    WITH_MISSING.save(tmp_path / "m.json")
    run("convert", tmp_path / "m.json", tmp_path / "m.txt", "--to", "lightgbm", "-qq")
    booster = lightgbm.Booster(model_file=str(tmp_path / "m.txt"))
    assert np.array_equal(booster.predict(BY_INDEX), WITH_MISSING.predict(ROWS))
    explained, ours = booster.predict(BY_INDEX, pred_contrib=True), WITH_MISSING.explain(ROWS)
    assert explained[:, 1:-1] == pytest.approx(ours.contributions, abs=1e-12)
    assert explained[:, -1] == pytest.approx(ours.base, abs=1e-12)


@pytest.mark.peers
def test_xgboost_and_onnxruntime_score_what_is_written_for_them_alike(tmp_path: Path) -> None:
    xgboost, runtime = pytest.importorskip("xgboost"), pytest.importorskip("onnxruntime")
    expected = WITH_MISSING.predict(ROWS)
    WITH_MISSING.save(tmp_path / "m.json")
    for name, form in (("x.json", "xgboost"), ("m.onnx", "onnx")):
        run("convert", tmp_path / "m.json", tmp_path / name, "--to", form, "-qq")
    booster = xgboost.Booster(model_file=tmp_path / "x.json")
    assert booster.predict(xgboost.DMatrix(BY_INDEX), output_margin=True) == pytest.approx(expected, abs=1e-5)
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(["scores"], {"features": ROWS.astype(np.float32)})
    assert found.reshape(-1) == pytest.approx(expected, abs=1e-5)


@NEEDS_CC
def test_c_scores_to_the_last_bit(tmp_path: Path) -> None:
    library = compiled(WITH_MISSING.ensemble, tmp_path)
    assert c_scores(library, ROWS) == WITH_MISSING.predict(ROWS).tolist()


def test_contributions_add_up_and_those_of_a_sum_are_its_terms() -> None:
    found = WITH_MISSING.explain(ROWS)
    assert found.base + found.contributions.sum(axis=1) == pytest.approx(WITH_MISSING.predict(ROWS), abs=1e-9)
    linear = MODEL.ensemble.trees[-MODEL.ensemble.rankers[-1].trees :]
    assert all(len(set(tree.split_columns.tolist())) == 1 for tree in linear)
    assert len({int(tree.split_columns[0]) for tree in linear}) == len(linear)


def test_a_missing_value_adds_what_is_nearest_to_nothing() -> None:
    for tree in WITH_MISSING.ensemble.trees[-WITH_MISSING.ensemble.rankers[-1].trees :]:
        node = 0
        while node >= 0:
            node = int(tree.left[node] if tree.missing_left[node] else tree.right[node])
        assert abs(tree.leaf_values[~node]) == np.abs(tree.leaf_values).min()


def test_its_trees_are_not_counted_as_those_of_a_ranker_among_others(tmp_path: Path) -> None:
    assert kinds.LINEAR.name == LINEAR
    assert rankers_in_words(["leafwise", "oblivious", LINEAR]) == "2 rankers and a linear ranker"
    assert rankers_in_words([]) == "1 ranker"
    assert " of 2 rankers and a linear ranker, 5 features" in repr(MODEL)
    MODEL.save(tmp_path / "m.json")
    shown = run("show", tmp_path / "m.json").stdout
    assert re.search(r"^trees +\d+; the mean of 2 rankers and a linear ranker$", shown, re.MULTILINE)
    assert re.search(r"^3  listnet, linear +\d", shown, re.MULTILINE)


def test_a_search_keeps_its_weight() -> None:
    pytest.importorskip("optuna")
    found = lmart.tune(*made(5), folds=2, trials=2, trees=4, linear=0.3)
    assert found.settings["linear"] == 0.3
