"""Training against LightGBM and XGBoost: the same gradients, the same trees, models as good.

What may differ, and why:
- LightGBM reads the sigmoid from a table (errors up to 1.2e-5) and, like XGBoost, keeps gradients in float32;
- XGBoost's hessian has a factor 2, which Burges 2010 and LightGBM do not have;
- LightGBM estimates the documents of a leaf from hessians, lmart counts them, so trees part where min_docs decides;
- of thresholds with equal gain, those that part a leaf in the same way, lmart takes the lowest;
- more distinct values than bins are cut at other quantiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.datasets import dataset
from helpers.paths import SAMPLE
from helpers.real_sets import real_set
from helpers.score_data import score_dataset
from helpers.settings import prepare

from lmart.array_types import Float64Array
from lmart.data.dataset import RankingDataset
from lmart.data.metadata import Metadata, Positions
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.measures import Conventions, Evaluator, parse_measure
from lmart.measures.judgments import Judgments
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train

pytestmark = pytest.mark.peers

POOL = WorkerPool(2)


def judged(seed: int, sizes: Sequence[int]) -> tuple[RankingDataset, Float64Array]:
    """Queries with one feature, the row's number from 1, so that a tree can give every row a leaf; and scores."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    rows = np.arange(1.0, n + 1)[:, None]
    data = dataset(rng.integers(0, 5, n).tolist(), np.repeat(np.arange(len(sizes)), sizes).tolist(), rows)
    scores = rng.normal(size=n).round(1)  # with ties; coarse, so that no float32 changes the order
    scores[: sizes[0]] = 0.25  # a query in its first round
    return data, scores


CASES = [
    (truncation, sigma, normalize) for truncation in (2, 30) for sigma in (1.0, 2.0) for normalize in (True, False)
]
SIZES = (6, 1, 12, 25, 3, 40)


def lightgbm_params(settings: TrainSettings, **more: Any) -> dict[str, Any]:
    return {
        "objective": "lambdarank",
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.min_docs,
        "min_sum_hessian_in_leaf": settings.min_hessian,
        "lambdarank_truncation_level": settings.truncation,
        "lambdarank_norm": settings.normalize,
        "sigmoid": settings.sigma,
        "max_bin": 255,
        "min_data_in_bin": 1,
        "boost_from_average": False,
        "feature_pre_filter": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    } | more


def lightgbm_train(
    data: RankingDataset, settings: TrainSettings, scores: Float64Array | None = None, **more: Any
) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    dense = data.features.dense(data.n_features, 0.0)
    group = np.diff(data.query_offsets)
    lines = lightgbm.Dataset(dense, label=data.labels, group=group, init_score=scores, free_raw_data=False)
    return lightgbm.train(lightgbm_params(settings, **more), lines, settings.trees)


def nodes_of(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a tree as either library dumps it."""
    yield tree
    for child in (*tree.get("children", ()), *(tree[side] for side in ("left_child", "right_child") if side in tree)):
        yield from nodes_of(child)


@pytest.mark.parametrize(("truncation", "sigma", "normalize"), CASES)
def test_gradients_are_those_of_lightgbm(truncation: int, sigma: float, normalize: bool) -> None:
    data, scores = judged(1, SIZES)
    settings = TrainSettings(
        trees=1, leaves=200, learning_rate=1.0, min_hessian=0.0, truncation=truncation, sigma=sigma, normalize=normalize
    )
    # It stops at leaves without documents if it may try them, so rows of small hessians share leaves.
    booster = lightgbm_train(data, settings, scores, min_data_in_leaf=1, min_sum_hessian_in_leaf=1e-3)
    ours = prepare(data, settings, POOL).compute_gradients(scores)
    leaves = booster.predict(data.features.dense(1, 0.0), pred_leaf=True).ravel()
    tree = booster.dump_model()["tree_info"][0]["tree_structure"]
    found = {node["leaf_index"]: node for node in nodes_of(tree) if "leaf_value" in node}
    assert len(set(leaves.tolist())) > 20
    for leaf in set(leaves.tolist()):
        own = found[leaf]
        gradient, hessian = ours.gradients[leaves == leaf].sum(), ours.hessians[leaves == leaf].sum()
        assert own["leaf_weight"] == pytest.approx(hessian, rel=1e-4, abs=1e-5)
        assert -own["leaf_value"] * own["leaf_weight"] == pytest.approx(gradient, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:pairwise", "rank:map"])
@pytest.mark.parametrize(("truncation", "sigma", "normalize"), [case for case in CASES if case[1] == 1.0])
def test_gradients_are_those_of_xgboost(truncation: int, sigma: float, normalize: bool, objective: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    data, scores = judged(2, SIZES)
    if objective == "rank:map":
        np.minimum(data.labels, 1.0, out=data.labels)
    matrix = xgboost.DMatrix(data.features.dense(1, 0.0), label=data.labels, base_margin=scores.astype(np.float32))
    matrix.set_group(np.diff(data.query_offsets))
    params = {
        "objective": objective,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": truncation,
        "lambdarank_normalization": normalize,
        "lambdarank_score_normalization": normalize,
        "tree_method": "exact",
        "max_depth": 60,
        "learning_rate": 1.0,
        "reg_lambda": 0.0,
        "min_child_weight": 0.0,
        "nthread": 1,
    }
    booster = xgboost.train(params, matrix, 1)
    own = {"rank:ndcg": "lambdamart", "rank:pairwise": "ranknet", "rank:map": "map"}[objective]
    settings = TrainSettings(objective=own, truncation=truncation, sigma=sigma, normalize=normalize)
    ours = prepare(data, settings, POOL).compute_gradients(scores.astype(np.float32).astype(np.float64))
    leaf_of = booster.predict(matrix, pred_leaf=True).ravel().astype(int)
    tree = json.loads(booster.get_dump("", True, "json")[0])
    found = {node["nodeid"]: node for node in nodes_of(tree) if "leaf" in node}
    assert len(set(leaf_of.tolist())) > 15  # rows of equal gradients share one
    for leaf in set(leaf_of.tolist()):
        gradient, hessian = ours.gradients[leaf_of == leaf].sum(), 2 * ours.hessians[leaf_of == leaf].sum()
        assert found[leaf]["cover"] == pytest.approx(hessian, rel=1e-4, abs=1e-5)
        assert -found[leaf]["leaf"] * found[leaf]["cover"] == pytest.approx(gradient, rel=1e-4, abs=1e-4)


def grades(seed: int) -> RankingDataset:
    """Data in which every value has its bin in both libraries: whole numbers from 1 up, without zero."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 30, 40)
    n = int(sizes.sum())
    features = rng.integers(1, 100, (n, 5)).astype(np.float64)
    relevance = features[:, 0] / 30 + features[:, 1] / 60 + rng.normal(size=n)
    labels = np.clip(np.floor(relevance - 0.5), 0, 4)
    return dataset(labels.tolist(), np.repeat(np.arange(len(sizes)), sizes).tolist(), features, ids=range(5))


@pytest.mark.parametrize("normalize", [True, False])
def test_trees_are_those_of_lightgbm(normalize: bool) -> None:
    data = grades(3)
    settings = TrainSettings(trees=8, leaves=12, min_docs=1, min_hessian=1.0, normalize=normalize)
    ours = train(data, [], settings, POOL)
    booster = lightgbm_train(data, settings, min_data_in_leaf=0)
    equal: list[bool] = []
    for tree, other in zip(ours.ensemble.trees, booster.dump_model()["tree_info"], strict=True):
        inner = (node for node in nodes_of(other["tree_structure"]) if "split_index" in node)
        nodes = sorted(inner, key=lambda node: int(node["split_index"]))
        assert tree.split_columns.tolist() == [node["split_feature"] for node in nodes]
        assert tree.split_gains is not None
        np.testing.assert_allclose(tree.split_gains, [node["split_gain"] for node in nodes], rtol=1e-3)
        thresholds = np.array([node["threshold"] for node in nodes])
        assert (tree.thresholds <= thresholds + 1e-9).all()
        equal += np.isclose(tree.thresholds, thresholds, rtol=1e-12).tolist()
    assert np.mean(equal) > 0.7
    theirs_scored = booster.predict(data.features.dense(5, 0.0), raw_score=True)
    np.testing.assert_allclose(ours.scores, theirs_scored, rtol=1e-3, atol=1e-4)


def ndcg(data: RankingDataset, scores: Float64Array) -> float:
    measure = parse_measure("ndcg@10", Conventions(empty="skip"))
    value = Evaluator(Judgments(data.labels, data.query_offsets), [measure], POOL).evaluate(scores).values["ndcg@10"]
    assert value is not None
    return value


def both(parts: Sequence[Path], test: Path, settings: TrainSettings) -> tuple[float, float]:
    """Train lmart and LightGBM with equal settings; return the NDCG@10 of each on the test file."""
    data = read_dataset([str(part) for part in parts], ReadOptions(), POOL)
    judged = read_dataset([str(test)], ReadOptions(), POOL)
    assert data.feature_ids.tolist() == judged.feature_ids.tolist()
    ours = score_dataset(train(data, [], settings, POOL).ensemble, judged, POOL)
    booster = lightgbm_train(data, settings, min_data_in_bin=3)
    theirs = booster.predict(judged.features.dense(judged.n_features, 0.0), raw_score=True)
    return ndcg(judged, ours), ndcg(judged, theirs)


def test_models_of_the_sample_are_as_good() -> None:
    settings = TrainSettings(trees=100, leaves=15, min_docs=10, learning_rate=0.05)
    own, theirs = both([SAMPLE / "train.svm"], SAMPLE / "test.svm", settings)
    assert own == pytest.approx(theirs, abs=0.02)
    sampled = replace(settings, sample=0.6)
    assert both([SAMPLE / "train.svm"], SAMPLE / "test.svm", sampled)[0] == pytest.approx(theirs, abs=0.02)


def test_models_of_mq2008_are_as_good() -> None:
    folder = real_set("mq2008")
    settings = TrainSettings(trees=300, leaves=31, min_docs=20, learning_rate=0.05, truncation=30)
    own, theirs = both([folder / f"S{k}.svm.gz" for k in (1, 2, 3)], folder / "S5.svm.gz", settings)
    assert own == pytest.approx(theirs, abs=0.02)


def test_bias_of_positions_is_that_of_lightgbm() -> None:
    """LightGBM does not tell its bias, but its later trees depend on it."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(3)
    dense = rng.integers(0, 8, (720, 2)).astype(float)
    labels = np.clip(np.floor(dense[:, 0] / 2 + rng.normal(size=720)), 0, 4)
    data = dataset(labels.tolist(), np.repeat(np.arange(60), 12).tolist(), dense)
    codes = rng.integers(0, 4, 720).astype(np.int32)
    settings = TrainSettings(trees=12, leaves=4, learning_rate=0.2, min_docs=1, normalize=False, position_bias_reg=0.4)
    positions = Positions(("first", "second", "third", "fourth"), codes)
    found, plain = (train(data, [], settings, POOL, metadata=Metadata(positions=one)) for one in (positions, None))
    group = np.diff(data.query_offsets)
    lines = lightgbm.Dataset(dense, label=data.labels, group=group, position=codes, free_raw_data=False)
    parameters = lightgbm_params(settings, lambdarank_position_bias_regularization=settings.position_bias_reg)
    theirs = lightgbm.train(parameters, lines, settings.trees).predict(dense)
    np.testing.assert_allclose(found.scores, theirs, atol=1e-4)
    assert np.abs(plain.scores - theirs).max() > 0.05
