"""What writers for other tools share: columns and names that the tools take, plain nodes, and the least score."""

from __future__ import annotations

import json
import math
import random
import tracemalloc
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers.float32_rows import models, planted, scores
from helpers.foreign_models import column_scores, planted_rows, random_tree, scores_of
from helpers.trees import THRESHOLDS, grow, rows_for, sparse
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import ModelError
from lmart.formats.models import quickrank, ranklib, solr
from lmart.formats.models.lightgbm import json as lightgbm_json
from lmart.formats.models.lightgbm import text as lightgbm_text
from lmart.formats.models.lightgbm.writing import TARGET as LIGHTGBM
from lmart.formats.models.model_files import content_of, parse_model
from lmart.formats.models.targets import (
    Target,
    expand_bounds,
    fit_names,
    least_score,
    list_columns,
    one_leaf,
    raise_scores,
)
from lmart.formats.models.xgboost import dump as xgboost_dump
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.formats.models.xgboost import ubjson as xgboost_ubj
from lmart.formats.models.xgboost.reading import category_edges32
from lmart.formats.models.xgboost.writing import TARGET as XGBOOST
from lmart.formats.registry import MODEL_FORMATS
from lmart.scoring.ensemble import Ensemble, Tree, flatten, structure_fault
from lmart.scoring.scorer import Scorer

# ---- columns and names -----------------------------------------------------------------------------------------------


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


# ---- plain nodes -----------------------------------------------------------------------------------------------------


def with_bounds(tree: Tree, further: list[list[float]]) -> Tree:
    """The tree with further bounds at each node."""
    offsets = np.cumsum([0, *map(len, further)]).astype(np.int64)
    return replace(tree, bound_offsets=offsets, bounds=np.array([b for bounds in further for b in bounds]))


def some_bounds(rng: random.Random, tree: Tree, most: int) -> list[list[float]]:
    above = [[bound for bound in THRESHOLDS if bound > t] for t in tree.thresholds.tolist()]
    return [sorted(rng.sample(bounds, rng.randint(0, min(most, len(bounds))))) for bounds in above]


@given(st.data())
def test_scores_stay_the_same(data: st.DataObject) -> None:
    n_features = data.draw(st.integers(1, 4))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    trees = [grow(rng, rng.randint(1, 9), range(n_features), THRESHOLDS) for _ in range(3)]
    trees = [with_bounds(tree, some_bounds(rng, tree, 3)) for tree in trees[:2]] + trees[2:]
    absent = data.draw(st.sampled_from(["zero", "missing"]))
    ensemble = Ensemble(tuple(trees), np.arange(n_features), None, 0.5, absent)
    plain = expand_bounds(ensemble)
    assert all(tree.bounds is None and tree.bound_offsets is None for tree in plain.trees)
    assert structure_fault(flatten(plain.trees), n_features) is None
    rows = sparse(data.draw(rows_for(n_features)))
    columns = np.arange(n_features, dtype=np.int32)
    before, after = Scorer(ensemble).score(rows, columns), Scorer(plain).score(rows, columns)
    assert before.tobytes() == after.tobytes()


def test_a_chain_by_hand() -> None:
    stump = replace(grow(random.Random(1), 2, [0], [1.0], missing_left=False), leaf_documents=np.array([3, 4]))
    stump = replace(stump, left=np.array([-1], np.int32), right=np.array([-2], np.int32))
    plain = expand_bounds(Ensemble((with_bounds(stump, [[2.0, 5.0]]),), np.arange(1))).trees[0]
    assert plain.thresholds.tolist() == [1.0, 2.0, 5.0]
    assert plain.missing_left.tolist() == [False, True, False]
    assert (plain.left.tolist(), plain.right.tolist()) == ([-1, -2, -3], [1, 2, -4])
    assert plain.leaf_values.tolist() == [stump.leaf_values[i] for i in (0, 1, 0, 1)]
    assert plain.leaf_documents is None


def test_models_without_such_nodes_are_returned_as_they_are() -> None:
    ensemble = Ensemble((grow(random.Random(1), 5, [0], THRESHOLDS),), np.arange(1))
    assert expand_bounds(ensemble) is ensemble


@pytest.mark.parametrize("format_", [quickrank, ranklib, solr])
def test_formats_without_such_nodes_take_the_chains(format_: ModuleType) -> None:
    rng = random.Random(5)
    trees = [grow(rng, 6, range(2), [-3.5, 0.0, 1.0, 2.5]) for _ in range(3)]
    trees = [replace(tree, leaf_values=np.arange(tree.n_leaves, dtype=float)) for tree in trees]
    further = [[[t + 1.5, t + 2.25] for t in tree.thresholds.tolist()] for tree in trees]
    ensemble = Ensemble(tuple(map(with_bounds, trees, further)), np.array([1, 2]))
    back = format_.read(format_.write(ensemble).content, "m")
    values = np.array([[a / 4, b / 4] for a in range(-24, 24) for b in range(-24, 24)])
    assert scores(back, values, [1, 2]) == scores(ensemble, values)


@pytest.mark.parametrize(("n_leaves", "size"), [(15, r"[\d,]+"), (3000, r"more than 10\^15")])
def test_growth_without_end_is_refused(n_leaves: int, size: str) -> None:
    chain = grow(random.Random(1), n_leaves, [0], [0.0], "chain")
    tree = with_bounds(chain, [[1.0, 2.0, 3.0, 4.0, 5.0]] * (n_leaves - 1))
    with pytest.raises(
        ModelError, match=f"sets of values.*from {n_leaves:,} leaves to {size}, and 100,000 are allowed"
    ):
        expand_bounds(Ensemble((tree,), np.arange(1)))


# ---- the least score -------------------------------------------------------------------------------------------------


READ_BACK = [one.name for one in MODEL_FORMATS.values() if one.reader and one.writer and one.is_ordered]


@given(models(), st.sampled_from(READ_BACK), st.floats(-9, 9), st.booleans(), st.integers(0, 2**32))
def test_the_least_possible_score_is_zero_and_the_order_stays(
    ensemble: Ensemble, form: str, base: float, average: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    trees = tuple(replace(tree, leaf_values=rng.normal(-1, 1, tree.n_leaves)) for tree in ensemble.trees)
    ensemble = replace(ensemble, trees=trees, base_score=base, average=average)
    raised, offset = raise_scores(ensemble, "m", form)
    before, after = (parse_model(content_of(one, "m", form).content, "m", form) for one in (ensemble, raised))
    values = planted(ensemble)
    ids = ensemble.feature_ids.tolist()
    was, now = (np.array(scores(one, values, ids)) for one in (before, after))
    if not offset:
        assert raised is ensemble
        assert was.min() >= 0 or average
    else:
        assert least_score(after) == 0
        assert now.min() >= 0
    if not average:  # the mean is divided in the leaves, and so rounds otherwise
        order = np.argsort(was, kind="stable")
        assert (np.diff(now[order]) >= 0).all()


@pytest.mark.parametrize("form", READ_BACK)
def test_a_model_without_a_score_below_zero_stays_as_it_is(form: str) -> None:
    ensemble = Ensemble((one_leaf(0.5),), np.array([1]))
    assert raise_scores(ensemble, "m", form) == (ensemble, 0.0)
