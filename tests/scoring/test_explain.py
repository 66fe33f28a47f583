"""Contributions are Shapley values: those of a plain sum over subsets, and those that can be seen without a sum."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
import reference.explaining
from helpers.trees import around, grow, plain, plain_scores, rows_for, sparse, with_bounds
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import ModelError
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.model import Model
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.explain import Explainer
from lmart.threads import WorkerPool

THRESHOLDS = [-1.5, -1.0, 0.0, 0.5, 1.0, 2.5]


def model(
    seed: int,
    sizes: list[tuple[int, str]],
    n_features: int,
    absent: str = "zero",
    base_score: float = 0.0,
    fewest: int = 0,
    bounded: bool = False,
) -> Ensemble:
    """Random trees whose leaves had `fewest` to 20 documents; `bounded`: some nodes have several bounds."""
    rng = random.Random(seed)
    trees = []
    for size, shape in sizes:
        tree = grow(rng, size, range(n_features), THRESHOLDS, shape)
        values = np.array([rng.gauss(0, 1) for _ in range(size)])
        documents = np.array([rng.randrange(fewest, 20) for _ in range(size)])
        tree = with_bounds(rng, tree) if bounded else tree
        trees.append(dataclasses.replace(tree, leaf_values=values, leaf_documents=documents))
    return Ensemble(tuple(trees), np.arange(n_features, dtype=np.int64), None, base_score, absent)


def explain(
    ensemble: Ensemble, rows: list[dict[int, float]], pool: WorkerPool | None = None
) -> tuple[float, list[list[float]]]:
    explainer = Explainer(ensemble)
    column_map = np.arange(ensemble.n_features, dtype=np.int32)
    return explainer.base, explainer.explain(sparse(rows), column_map, pool).tolist()


SHAPES = st.sampled_from(["random", "chain", "level"])


@given(st.data())
def test_contributions_are_those_of_the_sum_over_subsets(data: st.DataObject) -> None:
    n_features = data.draw(st.integers(1, 4))
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 9), SHAPES), max_size=3))
    ensemble = model(
        data.draw(st.integers(0, 2**32)),
        sizes,
        n_features,
        data.draw(st.sampled_from(["zero", "missing"])),
        data.draw(st.sampled_from([0.0, -0.75])),
        bounded=data.draw(st.booleans()),
    )
    rows = data.draw(st.lists(st.dictionaries(st.integers(0, n_features - 1), st.sampled_from(around(THRESHOLDS)))))
    absent = 0.0 if ensemble.absent == "zero" else math.nan
    trees = [
        (one, [] if tree.leaf_documents is None else tree.leaf_documents.tolist())
        for one, tree in zip(plain(ensemble), ensemble.trees, strict=True)
    ]
    base, contributions = explain(ensemble, rows)
    for row, found in zip(rows, contributions, strict=True):
        dense = [row.get(column, absent) for column in range(n_features)]
        value, shapley = reference.explaining.explain_row(ensemble.base_score, trees, dense)
        assert base == pytest.approx(value, abs=1e-12)
        assert found == pytest.approx(shapley, abs=1e-12)


@given(st.data())
def test_contributions_and_base_add_up_to_the_score(data: st.DataObject) -> None:
    n_features = data.draw(st.integers(1, 40))
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 100), SHAPES), max_size=4))
    ensemble = model(data.draw(st.integers(0, 2**32)), sizes, n_features, base_score=0.5)
    rows = data.draw(rows_for(n_features))
    base, contributions = explain(ensemble, rows)
    sums = [base + math.fsum(one) for one in contributions]
    assert sums == pytest.approx(plain_scores(ensemble, rows), abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("n_leaves", "n_features"), [(300, 250), (600, 520), (4096, 3)])
def test_long_paths_lose_no_digits(n_leaves: int, n_features: int) -> None:
    rng = random.Random(n_leaves)
    ensemble = model(1, [(n_leaves, "chain")], n_features, fewest=1)
    tree = dataclasses.replace(
        ensemble.trees[0],
        split_columns=np.arange(n_leaves - 1, dtype=np.int32) % n_features,
        # Nearly all documents go on at every node, so that even the last leaf counts.
        leaf_documents=np.ones(n_leaves, np.int64),
    )
    ensemble = dataclasses.replace(ensemble, trees=(tree,))
    rows = [{f: rng.choice(around(THRESHOLDS)) for f in range(n_features)} for _ in range(3)]
    base, contributions = explain(ensemble, rows)
    sums = [base + math.fsum(one) for one in contributions]
    assert sums == pytest.approx(plain_scores(ensemble, rows), abs=1e-11)


def test_one_split() -> None:
    """A stump: the whole way from the mean to the leaf is its feature's; other features contribute nothing."""
    tree = Tree(
        np.array([1], np.int32),
        np.array([0.5]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array([1.0, 5.0]),
        leaf_documents=np.array([30, 10]),
    )
    base, contributions = explain(Ensemble((tree,), np.arange(3), base_score=10.0), [{1: 1.0}, {1: math.nan, 0: 9.0}])
    assert base == 12.0
    assert contributions == [[0.0, 3.0, 0.0], [0.0, -1.0, 0.0]]


def test_two_features_of_one_effect_share_it() -> None:
    """1 where both features are above 0, else 0; a quarter of the documents each: symmetric, so equal halves."""
    tree = Tree(
        np.array([0, 1], np.int32),
        np.array([0.0, 0.0]),
        np.array([True, True]),
        np.array([-1, -2], np.int32),
        np.array([1, -3], np.int32),
        np.array([0.0, 0.0, 1.0]),
        leaf_documents=np.array([20, 10, 10]),
    )
    base, contributions = explain(Ensemble((tree,), np.arange(2)), [{0: 1.0, 1: 1.0}, {}])
    assert base == 0.25
    assert contributions == pytest.approx(np.array([[0.375, 0.375], [-0.125, -0.125]]))


def test_threads_and_company_change_nothing() -> None:
    rng = random.Random(7)
    ensemble = model(2, [(31, "random")] * 4, 6)
    rows = [{f: rng.choice(around(THRESHOLDS)) for f in range(6) if rng.random() < 0.8} for _ in range(200)]
    together = explain(ensemble, rows)[1]
    assert [explain(ensemble, [row])[1][0] for row in rows[:40]] == together[:40]
    with WorkerPool(3) as pool:
        assert explain(ensemble, rows, pool)[1] == together


def test_a_model_without_counts_is_refused() -> None:
    ensemble = model(3, [(1, "random"), (5, "random")], 2)
    without = tuple(dataclasses.replace(tree, leaf_documents=None) for tree in ensemble.trees)
    with pytest.raises(ModelError, match=r"^m\.json: does not say how many documents each leaf had"):
        Explainer(dataclasses.replace(ensemble, trees=without), "m.json")
    assert Explainer(dataclasses.replace(ensemble, trees=without[:1])).base == without[0].leaf_values[0]


def test_sums_beyond_float64_are_refused() -> None:
    tree = model(4, [(2, "random")], 1, fewest=1).trees[0]
    huge = dataclasses.replace(tree, leaf_values=np.array([1.7e308, -1.7e308]))
    with pytest.raises(ModelError, match="more than a number can hold"):
        explain(Ensemble((huge, huge), np.arange(1)), [{0: -9.0}, {0: 9.0}])


def test_from_python() -> None:
    ensemble = model(5, [(9, "random")] * 3, 3, fewest=1)
    rows = [[0.1, math.nan, 2.0], [9.0, -2.0, 0.0]]
    one = Model(ensemble)
    found = one.explain(rows)
    assert found.contributions.shape == (2, 3)
    assert found.base + found.contributions.sum(axis=1) == pytest.approx(one.predict(rows))
    with pytest.warns(UserWarning, match="no column: '1'; counted as 0"):
        narrow = one.explain([[2.0, 0.1]], feature_ids=[2, 0], threads=2)
    assert narrow.contributions[0].tolist() == one.explain([[0.1, 0.0, 2.0]]).contributions[0].tolist()
    with pytest.raises(ValueError, match="features has 2 columns, where 3 are due"):
        one.explain([[1.0, 2.0]])


def test_hessian_sums_stand_for_documents_that_are_not_counted() -> None:
    counted = model(3, [(9, "random"), (1, "random"), (5, "chain")], 4, fewest=1)
    trees = []
    for one in counted.trees:
        assert one.leaf_documents is not None
        trees.append(
            dataclasses.replace(one, leaf_documents=None, leaf_weights=one.leaf_documents.astype(np.float64) / 8)
        )
    weighted = dataclasses.replace(counted, trees=tuple(trees))
    rows = np.random.default_rng(1).choice([*THRESHOLDS, 3.0, np.nan], (20, 4))
    expected, found = Model(counted).explain(rows), Model(weighted).explain(rows)
    assert found.contributions.tobytes() == expected.contributions.tobytes()
    assert found.base == expected.base


@pytest.mark.peers
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_models_of_xgboost_are_explained_as_xgboost_does(booster: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(200, 3)), rng.integers(0, 4, 200)
    data = xgboost.DMatrix(rows, labels)
    data.set_group([20] * 10)
    parameters = {"objective": "rank:ndcg", "booster": booster, "base_score": 0.3, "nthread": 1}
    if booster == "dart":
        parameters["rate_drop"] = 0.5
    trained = xgboost.train(parameters, data, 5)
    expected = trained.predict(data, pred_contribs=True)
    found = Model(xgboost_json.read(bytes(trained.save_raw("json")), "file")).explain(rows)
    assert np.abs(found.contributions - expected[:, :3]).max() < 1e-6
    assert abs(found.base - expected[0, 3]) < 1e-6
