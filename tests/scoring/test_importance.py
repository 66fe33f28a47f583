"""Importance of features: shares within each ranker, counts, and mean absolute contributions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.trees import sparse

from lmart.data.dataset import SparseRows
from lmart.formats.models.model_files import read_model
from lmart.scoring.ensemble import Ensemble, RankerPart, Tree
from lmart.scoring.explain import Explainer
from lmart.scoring.importance import ContributionMeans, split_importance
from lmart.threads import WorkerPool


def stump(column: int, gain: float | None, values: tuple[float, float] = (0.0, 4.0)) -> Tree:
    return Tree(
        np.array([column], np.int32),
        np.array([2.0]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array(values),
        None if gain is None else np.array([gain]),
        np.array([20, 20]),
    )


def leaf() -> Tree:
    none = np.zeros(0, np.int32)
    return Tree(none, np.zeros(0), np.zeros(0, np.bool_), none, none, np.array([1.0]))


def model(*trees: Tree, n_features: int = 3) -> Ensemble:
    return Ensemble(trees, np.arange(1, n_features + 1))


def part(trees: int) -> RankerPart:
    return RankerPart(trees, "lambdamart", "leafwise", 2, 1.0, 0)


def test_gains_and_splits_are_added_by_feature() -> None:
    found = split_importance(model(stump(0, 6.0), stump(1, 2.0), stump(0, 0.0), leaf()))
    assert found.splits.tolist() == [2, 1, 0]
    assert found.gain_shares is not None and found.gain_shares.tolist() == [0.75, 0.25, 0.0]


def test_gains_are_compared_within_each_ranker_only() -> None:
    trees = (stump(0, 6e9), stump(1, 2e9), stump(1, 1e-9), stump(2, 1e-9))
    found = split_importance(replace(model(*trees), rankers=(part(2), part(2))))
    assert found.gain_shares is not None and found.gain_shares.tolist() == [0.375, 0.375, 0.25]


def test_a_ranker_without_splits_does_not_count() -> None:
    trees = (stump(0, 6.0), stump(1, 2.0), leaf())
    found = split_importance(replace(model(*trees), rankers=(part(2), part(1), part(0))))
    assert found.gain_shares is not None and found.gain_shares.tolist() == [0.75, 0.25, 0.0]


def test_without_gains_there_are_counts_only() -> None:
    found = split_importance(model(stump(0, 6.0), stump(1, None)))
    assert found.gain_shares is None and found.splits.tolist() == [1, 1, 0]


def test_a_model_without_trees_has_no_importance() -> None:
    found = split_importance(model())
    assert found.gain_shares is not None and found.gain_shares.tolist() == [0.0, 0.0, 0.0]
    assert found.splits.tolist() == [0, 0, 0]


def test_huge_and_negative_gains() -> None:
    found = split_importance(model(stump(0, 1.7e308), stump(1, 1.7e308), stump(2, -1.0)))
    assert found.gain_shares is not None and found.gain_shares.tolist() == [0.5, 0.5, 0.0]


@pytest.fixture
def ensemble() -> Ensemble:
    return model(stump(0, 1.0), stump(1, 1.0, (0.0, -1.0)))


ROWS: list[dict[int, float]] = [{0: 3.0}, {0: 1.0, 1: 5.0}, {1: 2.0}, {}, {0: 9.0, 1: 2.5}] * 700
COLUMNS = np.array([0, 1], np.int32)


def test_means_are_of_absolute_contributions(ensemble: Ensemble) -> None:
    means = ContributionMeans(Explainer(ensemble))
    means.add(sparse(ROWS[:5]), COLUMNS)
    assert means.n_rows == 5
    # 2 or -2 of each row from feature 1, 0.5 or -0.5 from feature 2, as half of the documents are on each side
    assert means.means.tolist() == [2.0, 0.5, 0.0]


def test_means_depend_neither_on_blocks_nor_on_threads() -> None:
    rng = np.random.default_rng(0)
    trees = [stump(k % 3, 1.0, tuple(rng.normal(size=2).tolist())) for k in range(9)]
    explainer = Explainer(model(*trees))
    rows = sparse([{k: float(rng.normal(2.0)) for k in range(3)} for _ in range(3000)])
    columns = np.arange(3, dtype=np.int32)

    def means(sizes: list[int], pool: WorkerPool | None) -> bytes:
        found, start = ContributionMeans(explainer, pool), 0
        for size in sizes:
            found.add(between(rows, start, start + size), columns)
            start += size
        assert found.n_rows == len(rows)
        return found.means.tobytes()

    with WorkerPool(2) as pool:
        assert len({means(sizes, one) for sizes in ([3000], [1, 1030, 1969]) for one in (None, pool)}) == 1
    contributions = explainer.explain(rows, columns)
    exact = [math.fsum(column) / len(rows) for column in np.abs(contributions).T.tolist()]
    assert np.frombuffer(means([3000], None)).tolist() == pytest.approx(exact, rel=1e-12)


def between(rows: SparseRows, start: int, stop: int) -> SparseRows:
    return rows.between(start, stop)


def test_without_rows_means_are_0(ensemble: Ensemble) -> None:
    assert ContributionMeans(Explainer(ensemble)).means.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.peers
def test_importance_is_that_of_lightgbm_and_xgboost(tmp_path: Path) -> None:
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 5))
    labels = np.clip(np.round(rows[:, 0] + rows[:, 1] ** 2 / 2), 0, 3)
    sizes = [20] * 30
    options = {"objective": "lambdarank", "num_leaves": 7, "verbose": -1, "num_threads": 1, "seed": 0}
    theirs = lightgbm.train(options, lightgbm.Dataset(rows, labels, group=sizes), num_boost_round=10)
    theirs.save_model(str(tmp_path / "m.txt"))
    found = split_importance(read_model(str(tmp_path / "m.txt")))
    gains = theirs.feature_importance("gain")
    assert found.splits.tolist() == theirs.feature_importance("split").tolist()
    assert found.gain_shares is not None
    assert found.gain_shares.tolist() == pytest.approx(
        (gains / gains.sum()).tolist(), rel=1e-4
    )  # six digits in the file
    data = xgboost.DMatrix(rows, labels)
    data.set_group(sizes)
    booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1, "max_leaves": 7}, data, num_boost_round=10)
    booster.save_model(tmp_path / "m.json")
    found = split_importance(read_model(str(tmp_path / "m.json")))
    scores, counts = booster.get_score(importance_type="total_gain"), booster.get_score(importance_type="weight")
    assert found.gain_shares is not None
    for column in range(5):
        assert found.splits[column] == counts.get(f"f{column}", 0)
        share = scores.get(f"f{column}", 0.0) / sum(scores.values())
        assert found.gain_shares[column] == pytest.approx(share, rel=1e-5)
