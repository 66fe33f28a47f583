"""Several objectives: the model is the mean of their rankers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import training_runs
from helpers.commands import run
from helpers.datasets import random_dataset
from helpers.paths import SAMPLE
from helpers.score_data import score_dataset
from helpers.training_runs import learnable

from lmart.data.metadata import Sidecars
from lmart.measures import Conventions, Evaluator, parse_measures
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.rankers import RoundReport
from lmart.training.train_result import TrainResult

POOL = WorkerPool(1)
SMALL = TrainSettings(trees=8, leaves=6, min_docs=3)


def fit(objective: str, trees: int, **changed: object) -> TrainResult:
    chosen = replace(SMALL, objective=objective, trees=trees, **changed)  # type: ignore[arg-type]
    return train(random_dataset(31, n_queries=60), [], chosen, POOL)


def test_each_objective_grows_its_own_trees_and_the_scores_are_their_mean() -> None:
    names = ("lambdamart", "ranknet")
    together = fit("+".join(names), 9)
    alone = [fit(name, count) for name, count in zip(names, (5, 4), strict=True)]
    for turn, one in enumerate(alone):
        own = together.ensemble.trees[5 * turn : 5 + 4 * turn]
        assert len(own) == len(one.ensemble.trees)
        for half, whole in zip(own, one.ensemble.trees, strict=True):
            assert (half.leaf_values * 2 == whole.leaf_values).all()
            assert (half.thresholds == whole.thresholds).all() and (half.split_columns == whole.split_columns).all()
    np.testing.assert_allclose(together.scores, sum(one.scores for one in alone) / 2, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("objective", ["lambdamart+yetirank", "ranknet+err+map"])
def test_predict_reproduces_the_training_scores_bit_for_bit(objective: str) -> None:
    data = random_dataset(31, n_queries=60)
    result = fit(objective, 7, sample=0.5)
    assert (score_dataset(result.ensemble, data) == result.scores).all()
    with WorkerPool(3) as pool:
        again = train(data, [], replace(SMALL, objective=objective, trees=7, sample=0.5), pool)
    assert (again.scores == result.scores).all()


def test_a_later_objective_goes_on_behind_the_best_round() -> None:
    data, other, third = (random_dataset(seed, n_queries=60) for seed in (31, 32, 33))
    both = replace(SMALL, objective="lambdamart+err", trees=80, early_stop=7, sample=0.6)
    rounds: list[RoundReport] = []

    def watch(one: RoundReport) -> None:
        rounds[one.round - 1 :] = [one]

    together = train(data, [other, third], both, POOL, watch)
    first = train(data, [other, third], replace(both, objective="lambdamart"), POOL)
    second = train(data, [], replace(both, objective="err", early_stop=0), POOL)
    kept = first.best_round
    measured = [one.validation[0] or 0.0 for one in rounds]
    assert 0 < kept < together.best_round == len(together.ensemble.trees) == measured.index(max(measured)) + 1
    assert together.stopped == "early" and together.rounds == len(rounds) == together.best_round + 7
    assert together.validation == rounds[together.best_round - 1].validation
    assert together.validation[0] is not None and together.validation[0] > (first.validation[0] or 0.0)
    own = [*first.ensemble.trees, *second.ensemble.trees[: together.best_round - kept]]
    for half, whole in zip(together.ensemble.trees, own, strict=True):
        assert (half.leaf_values * 2 == whole.leaf_values).all()
    assert (score_dataset(together.ensemble, data) == together.scores).all()
    for dataset, value in zip((data, other, third), (together.training, *together.validation), strict=True):
        measures = parse_measures("ndcg@10", Conventions())
        evaluator = Evaluator(dataset.labels, dataset.query_offsets, measures)
        assert evaluator.evaluate(score_dataset(together.ensemble, dataset)).values["ndcg@10"] == value


def test_an_objective_that_makes_nothing_better_adds_nothing() -> None:
    data, other = random_dataset(31, n_queries=60), random_dataset(32, n_queries=30)
    chosen = replace(SMALL, objective="lambdamart+mrr", trees=400, early_stop=3)
    alone = train(data, [other], replace(chosen, objective="lambdamart"), POOL)
    together = train(data, [other], chosen, POOL)
    assert together.rounds == together.best_round + 3
    assert together.best_round == alone.best_round and together.scores.tolist() == alone.scores.tolist()
    assert together.validation == alone.validation and together.training == alone.training


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_initial_scores_and_measures_of_every_round(start: float) -> None:
    """The measures that are told are those of models of so many trees."""
    data, other = random_dataset(31, n_queries=60), random_dataset(32, n_queries=60)
    starts = [start * np.linspace(-1, 1, one.n_documents) for one in (data, other)]
    chosen = replace(SMALL, objective="ranknet+err", trees=14)
    told: list[float | None] = []
    sidecars = Sidecars(init_scores=starts[0])
    train(
        data,
        [other],
        chosen,
        POOL,
        lambda one: told.append(one.validation[0]),
        sidecars,
        [Sidecars(init_scores=starts[1])],
    )
    for trees in range(8, 15):
        first = train(data, [], replace(chosen, objective="ranknet", trees=7), POOL, sidecars=sidecars).ensemble
        second = train(data, [], replace(chosen, objective="err", trees=trees - 7), POOL, sidecars=sidecars).ensemble
        scores = starts[1] + (score_dataset(first, other) + score_dataset(second, other)) / 2
        measures = parse_measures("ndcg@10", Conventions())
        found = Evaluator(other.labels, other.query_offsets, measures).evaluate(scores).values["ndcg@10"]
        assert told[trees - 1] == pytest.approx(found, rel=1e-12)


def test_initial_scores_count_once() -> None:
    data = random_dataset(31, n_queries=60)
    start = np.linspace(-1, 1, data.n_documents)
    result = train(data, [], replace(SMALL, objective="ranknet+err"), POOL, sidecars=Sidecars(init_scores=start))
    np.testing.assert_allclose(result.scores - start, score_dataset(result.ensemble, data), rtol=1e-9, atol=1e-12)


def test_one_tree_is_that_of_the_first_objective() -> None:
    assert fit("lambdamart+err", 1).scores.tolist() == fit("lambdamart", 1).scores.tolist()


def test_what_the_command_line_makes_of_it(tmp_path: Path) -> None:
    valid, model = SAMPLE / "vali.svm", tmp_path / "m.json"
    fixed = ("train", "--data", SAMPLE / "train.svm", "--trees", "12", "--out", model)
    for options, expected in (
        (("--valid", valid, "--early-stop", "3"), "lambdamart+yetirank"),
        (("--valid", valid), "lambdamart"),
        (("--objective", "err+mrr"), "err+mrr"),
        (("--folds", "3", "--early-stop", "3"), "lambdamart"),
    ):
        run(*fixed, *options)
        assert json.loads(model.read_text())["settings"]["objective"] == expected
    for text, told in (("err+ndcg", "'ndcg' is not one of"), ("err+err", "'err+err' names one twice")):
        assert told in run(*fixed, "--objective", text, status=2).stderr
    for options in (("--folds", "3"), ("--valid", valid, "--tune-trials", "2")):
        assert "a single --objective" in run(*fixed, "--objective", "err+mrr", *options, status=2).stderr


def test_it_is_told_whose_trees_are_whose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = learnable(3)
    both = ("--objective", "lambdamart+yetirank", *training_runs.SMALL)
    shared = training_runs.fit(text, *both, "--trees", "7")
    assert shared.report["rankers"] == [
        {"objective": "lambdamart", "first_tree": 1, "trees": 4},
        {"objective": "yetirank", "first_tree": 5, "trees": 3},
    ]
    assert any("7/7 trees, ranker 2 of 2, training ndcg@10" in line for line in shared.said)
    none_left = training_runs.fit(text, *both, "--trees", "1")
    assert none_left.report["rankers"][1] == {"objective": "yetirank", "first_tree": None, "trees": 0}
    assert none_left.warnings == ["lmart: warning: yetirank added no tree: --trees is used up"]
    alone = training_runs.fit(text, *training_runs.SMALL, "--objective", "lambdamart")
    assert alone.report["rankers"] == [{"objective": "lambdamart", "first_tree": 1, "trees": 10}]


def test_a_first_objective_that_takes_all_trees_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.svm").write_text(learnable(4))
    done = training_runs.fit(
        learnable(3),
        *training_runs.SMALL,
        "--valid",
        "v.svm",
        "--early-stop",
        "20",
        "--learning-rate",
        "0.01",
        "--trees",
        "20",
    )
    assert "lmart: objective lambdamart+yetirank (auto: 20 queries)" in done.said
    kept = done.report["rankers"][0]["trees"]
    assert len(done.model["trees"]) == kept + done.report["rankers"][1]["trees"]
    assert any("more --trees" in line or "did not end the run" in line for line in done.said)
    assert (kept < 20) or "lmart: warning: yetirank added no tree: --trees is used up" in done.said
