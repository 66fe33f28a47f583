"""Columns and names of models written for LightGBM and XGBoost, and that these tools have the same."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from helpers.foreign_models import column_scores, planted_rows, random_tree, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.errors import ModelError
from lmart.formats.models.lightgbm import json as lightgbm_json
from lmart.formats.models.lightgbm import text as lightgbm_text
from lmart.formats.models.lightgbm.writing import TARGET as LIGHTGBM
from lmart.formats.models.targets import Target, fit_names, list_columns
from lmart.formats.models.xgboost import dump as xgboost_dump
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.formats.models.xgboost import ubjson as xgboost_ubj
from lmart.formats.models.xgboost.reading import category_edges32
from lmart.formats.models.xgboost.writing import TARGET as XGBOOST
from lmart.scoring.ensemble import Ensemble, Tree

KEEPING = [lightgbm_text, lightgbm_json, xgboost_json, xgboost_ubj, xgboost_dump]
SOUND = ("bm25", "a_b", "f0", "x\u00a0y", "tab\there", "e=f", "d'", "back\\slash", "ünï", "😀", "#", "0.5", "7")
HOSTILE = ("a b", "a_b", "a  b", " a", "b ", "c,d", 'e"f', "[g]", "h<i", "{j}", "k:l", "m\nn", "", "Column_0", "f0")


def model(names: tuple[str, ...] | None, ids: list[int] | None = None, **fields: Any) -> Ensemble:
    """A model whose trees split on all of its features, with float32 numbers."""
    n = len(names) if names is not None else 3
    rng = np.random.default_rng(n)
    trees = tuple(random_tree(rng, 3 * n + 2, n, True) for _ in range(3))
    return Ensemble(
        trees, np.array(ids or range(1, n + 1)), names, **{"absent": "missing", "sums": "float32", **fields}
    )


@pytest.mark.parametrize("form", KEEPING)
def test_columns_are_the_features_in_order_where_they_have_names(form: Any) -> None:
    ensemble = model(SOUND, [3 * j + 1 for j in range(len(SOUND))])
    again = form.read(form.write(ensemble).content, "file")
    assert set(again.feature_names) == set(SOUND)
    if form is not xgboost_dump:  # which names features where trees split on them
        assert again.feature_names == SOUND
    rows = planted_rows(np.random.default_rng(1), ensemble, 200, is_float32=True)
    place = [ensemble.feature_ids[SOUND.index(name)] for name in again.feature_names]
    moved = np.zeros((len(rows), int(again.feature_ids[-1]) + 1))
    moved[:, again.feature_ids] = rows[:, place]
    assert np.abs(scores_of(again, moved) - scores_of(ensemble, rows)).max() < 1e-6


@pytest.mark.parametrize("target", [LIGHTGBM, XGBOOST])
def test_columns_are_numbers_where_features_have_no_names(target: Target) -> None:
    columns = list_columns(model(None, [1, 2, 4]), target)
    assert (columns.numbers.tolist(), columns.total, columns.names, columns.notes) == ([1, 2, 4], 5, None, [])
    with pytest.raises(ModelError, match="needs a column for each number up to it"):
        list_columns(Ensemble((), np.array([2**40])), target)
    assert list_columns(Ensemble((), np.array([2**40]), ("a",)), target).total == 1


def test_names_that_need_no_change_come_first() -> None:
    assert fit_names(["a b", "a_b"], LIGHTGBM) == ["a_b_", "a_b"]
    assert fit_names(["a b", "a,b", "a_b", "a_b_"], LIGHTGBM) == ["a_b_2", "a_b_3", "a_b", "a_b_"]
    assert fit_names(["", "f0", "[x", "x]", "\f"], XGBOOST) == ["f0_", "f0", "_x", "x_", "_"]
    notes = list_columns(model(("c", "a b", "a_b")), LIGHTGBM).notes
    assert notes == [
        "1 feature name got '_' in place of blanks and of the marks of JSON, which LightGBM does not take: 'a b' is"
        " 'a_b_'"
    ]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.sampled_from("a_ ,[2"), max_size=4), unique=True, max_size=12))
def test_fitted_names_are_distinct_and_taken(names: list[str]) -> None:
    for target in (LIGHTGBM, XGBOOST):
        fitted = fit_names(names, target)
        assert len(set(fitted)) == len(names) and all(fitted)
        assert not any(target.refused.search(name) for name in fitted)
        assert fit_names(fitted, target) == fitted
        kept = {name for name in names if name and not target.refused.search(name)}
        assert {name for name, fit in zip(names, fitted, strict=True) if name == fit} == kept


def test_many_names_that_become_equal_take_no_longer() -> None:
    blanks = [" " * (j % 2) + "".join(",["[(j >> b) & 1] for b in range(16)) for j in range(40_000)]
    names = list(dict.fromkeys(blanks))
    assert len(set(fit_names(names, LIGHTGBM))) == len(names) > 39_000


@pytest.mark.parametrize("form", KEEPING)
def test_half_of_a_character_is_refused_instead_of_changed(form: Any) -> None:
    with pytest.raises(UnicodeEncodeError):
        form.write(model(("a", "b\ud800", "c")))


@pytest.mark.peers
@pytest.mark.parametrize("names", [SOUND, HOSTILE, HOSTILE[::-1]])
def test_lightgbm_has_the_columns_of_the_features(names: tuple[str, ...]) -> None:
    lightgbm, pandas = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    ensemble = model(names, absent="zero", sums="float64", base_score=0.3, gain="linear")
    booster = lightgbm.Booster(model_str=lightgbm_text.write(ensemble).content.decode())
    assert booster.feature_name() == fit_names(names, LIGHTGBM)
    if names is SOUND:
        assert booster.feature_name() == list(SOUND)
    rows = planted_rows(np.random.default_rng(1), ensemble, 200)
    frame = pandas.DataFrame(rows[:, 1:], columns=booster.feature_name())
    found = booster.predict(frame, num_threads=1, validate_features=True)
    assert found.tobytes() == scores_of(ensemble, rows).tobytes()
    assert booster.params["label_gain"] == list(range(32))
    again = lightgbm_text.read(booster.model_to_string().encode(), "file")
    assert (again.feature_names, again.gain) == (tuple(booster.feature_name()), "linear")


@pytest.mark.peers
@pytest.mark.parametrize("names", [SOUND, HOSTILE, HOSTILE[::-1]])
@pytest.mark.parametrize("form", [xgboost_json, xgboost_ubj])
def test_xgboost_has_the_columns_of_the_features(names: tuple[str, ...], form: Any) -> None:
    xgboost, pandas = pytest.importorskip("xgboost"), pytest.importorskip("pandas")
    ensemble = model(names, base_score=float(np.float32(0.3)), gain="linear")
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(form.write(ensemble).content))
    assert booster.feature_names == fit_names(names, XGBOOST)
    if names is SOUND:
        assert booster.feature_names == list(SOUND)
    rows = planted_rows(np.random.default_rng(1), ensemble, 200, is_float32=True)
    frame = pandas.DataFrame(rows[:, 1:], columns=booster.feature_names)
    found = booster.predict(xgboost.DMatrix(frame), validate_features=True).astype(float)
    assert found.tolist() == scores_of(ensemble, rows).tolist()
    assert json.loads(booster.save_config())["learner"]["objective"]["lambdarank_param"]["ndcg_exp_gain"] == "0"
    saved = xgboost_json.read(bytes(booster.save_raw("json")), "file")
    assert saved.gain == "linear"
    assert saved.feature_names == tuple(booster.feature_names)


def ranged(*edges: float) -> Ensemble:
    """A model of one split whose test holds in ranges of numbers."""
    one, no = np.zeros(1, np.int32), np.zeros(1, np.bool_)
    bounds = np.array(edges[1:])
    tree = Tree(
        *(one, np.array(edges[:1]), ~no, one - 1, one - 2, np.array([0.25, 0.5]), None, None),
        *(np.array([0, len(bounds)]), bounds),
    )
    return Ensemble((tree,), np.array([1]))


def test_long_ranges_of_categories_take_little_memory() -> None:
    below = float(np.nextafter(2.0**23, 0))
    for form, edges in (
        (lightgbm_text, (-1.0, below)),
        (lightgbm_json, (-1.0, below)),
        (xgboost_json, category_edges32(np.array([0, 2**23 - 1])).tolist()[::3]),
        (xgboost_ubj, category_edges32(np.array([0, 2**23 - 1])).tolist()[::3]),
    ):
        ensemble = ranged(*edges)
        tracemalloc.start()
        content = form.write(ensemble).content
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60e6
        again = form.read(content, "file")
        values = [-1.0, -0.5, 0.0, 5.0, 2.0**23 - 1, below, 2.0**23, 1e9, math.nan]
        assert column_scores(again, values) == column_scores(ensemble, values)


@pytest.mark.parametrize("end", [2**25, 2**25 + 1])
def test_the_largest_sets_of_lightgbm_are_read_back(end: int) -> None:
    ensemble = ranged(float(np.nextafter(end - 1, 0)), float(np.nextafter(end, 0)))
    content = lightgbm_text.write(ensemble).content
    assert (b"num_cat=1" in content) == (end == 2**25)
    values = [end - 2.0, end - 1.0, end - 0.5, end, math.nan]
    assert column_scores(lightgbm_text.read(content, "file"), values) == column_scores(ensemble, values)
