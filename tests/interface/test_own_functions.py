"""Objectives and measures that are functions of the program: what they get, what they must return, what is recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE
from reference.gradients import pair_lambdas

import lmart
from lmart.array_types import Float64Array, Int64Array
from lmart.formats.models.lmart_json import model_to_json
from lmart.functions import FunctionError

DATA, VALID = lmart.read(SAMPLE / "train.svm"), lmart.read(SAMPLE / "vali.svm")
FEW: Any = {"trees": 8, "rankers": 1}
Derivatives = tuple[Any, Any]


def squared(scores: Float64Array, labels: Float64Array, offsets: Int64Array, weights: Float64Array) -> Derivatives:
    return weights * (scores - labels), weights


def lambdas(scores: Float64Array, labels: Float64Array, offsets: Int64Array, weights: Float64Array) -> Derivatives:
    """LambdaMART by its definition, a query after the other."""
    parts = []
    for a, b in pairwise(offsets.tolist()):
        gains = (2 ** labels[a:b] - 1).tolist()
        parts.append(pair_lambdas(gains, scores[a:b].tolist(), 30, 1.0, True) if any(gains) else ([0.0] * (b - a),) * 2)
    gradients, hessians = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return gradients * weights, hessians * weights


def first_is_relevant(
    scores: Float64Array, labels: Float64Array, offsets: Int64Array, weights: Float64Array
) -> list[float]:
    return [float(labels[a:b][np.argmax(scores[a:b])] > 0) for a, b in pairwise(offsets.tolist())]


def bytes_of(model: lmart.Model) -> str:
    return model_to_json(model.ensemble)


@pytest.mark.parametrize("per", [None, "query", "row"])
def test_lambdamart_by_hand_grows_the_trees_of_lambdamart(per: str | None) -> None:
    counts = {None: None, "query": DATA.n_queries, "row": len(DATA)}[per]
    weights = None if counts is None else np.arange(counts) % 4 / 2
    own, known = (
        lmart.train(DATA, objective=objective, weights=weights, sample=0.7, **FEW)
        for objective in (lambdas, "lambdamart")
    )
    for tree, expected in zip(own.ensemble.trees, known.ensemble.trees, strict=True):
        assert tree.split_columns.tolist() == expected.split_columns.tolist()
        assert tree.thresholds.tolist() == expected.thresholds.tolist()
        assert tree.leaf_values == pytest.approx(expected.leaf_values, rel=1e-6)


def test_one_function_gives_one_model_which_says_so(tmp_path: Path) -> None:
    models = [lmart.train(DATA, valid=VALID, objective=squared, threads=threads, **FEW) for threads in (1, 2)]
    assert bytes_of(models[0]) == bytes_of(models[1])
    model = models[0]
    assert model.settings["objective"] == "python:squared"
    assert model.history is not None
    assert model.history.rankers[0].objective == "python:squared" == model.history.content["settings"]["objective"]
    model.save(tmp_path / "m")
    assert lmart.load(tmp_path / "m").predict(VALID).tolist() == model.predict(VALID).tolist()
    with pytest.raises(
        lmart.SettingsError, match="'python:squared' is a function of a Python program; give objective="
    ):
        lmart.train(DATA, **model.settings)
    again: Any = {**model.settings, "objective": squared}
    assert bytes_of(lmart.train(DATA, **again)) == bytes_of(model)
    command = ("train", "--data", SAMPLE / "train.svm", "-o", tmp_path / "c")
    refused = run(*command, "--settings", tmp_path / "m", status=2).stderr
    assert "objective 'python:squared' is a function of a Python program" in refused
    said = run(*command, "--continue-from", tmp_path / "m", "--trees", "1").stderr
    assert "objective is lambdamart, in the model python:squared" in said
    longer = lmart.train(DATA, continue_from=model, objective=squared, trees=4)
    assert (
        longer.predict(DATA).tolist()
        == lmart.train(DATA, objective=squared, rankers=1, trees=12).predict(DATA).tolist()
    )


def test_a_function_and_an_objective_share_a_model() -> None:
    model = lmart.train(DATA, objective=[squared, "yetirank"], trees=6)
    assert [part.objective for part in model.ensemble.rankers] == ["python:squared", "yetirank"]


def test_a_measure_by_hand_decides_as_the_measure_does() -> None:
    stopping: Any = {"valid": VALID, "trees": 60, "early_stop": 5, "rankers": 2}
    own = lmart.train(DATA, metric=[first_is_relevant, "map"], **stopping)
    known = lmart.train(DATA, metric="p@1,map", **stopping)
    assert own.predict(DATA).tolist() == known.predict(DATA).tolist()
    assert own.history is not None and known.history is not None
    assert own.settings["metric"] == "python:first_is_relevant,map" and list(own.history.further) == ["map"]
    assert [ranker.curves for ranker in own.history.rankers] == [ranker.curves for ranker in known.history.rankers]


def test_folds_and_trials_go_by_functions() -> None:
    own, known = (lmart.cross_validate(DATA, folds=3, metric=metric, **FEW) for metric in (first_is_relevant, "p@1"))
    assert (own.mean, own.folds, own.standard_error) == (known.mean, known.folds, known.standard_error)
    pytest.importorskip("optuna")
    found = lmart.tune(
        DATA, folds=2, trials=2, trees=6, objective=squared, metric=[first_is_relevant, "rbp(0.9,rel=1)"]
    )
    assert (found.settings["objective"], found.settings["metric"]) == (
        [squared],
        [first_is_relevant, "rbp(0.9,rel=1)"],
    )
    assert lmart.train(DATA, **found.settings).n_trees == found.best.trees


def test_scores_from_anywhere_are_measured_by_functions() -> None:
    systems = {"a": DATA.to_numpy()[:, 0], "b": DATA.to_numpy()[:, 1]}
    weights = np.arange(DATA.n_queries) % 3
    found = lmart.evaluate(DATA.labels, systems, DATA.qid, [first_is_relevant, "p@1"], weights=weights)
    assert found["python:first_is_relevant"] == found["p@1"]
    (compared,) = lmart.compare(DATA.labels, systems, DATA.qid, metric=first_is_relevant)
    assert compared.measure == "python:first_is_relevant"

    def mean_label(scores: Any, labels: Any, offsets: Any, given: Any) -> float:
        assert given.tolist() == weights.tolist()
        return float(labels.mean()) * 1000

    whole = lmart.evaluate(DATA.labels, systems["a"], DATA.qid, mean_label, weights=weights)
    assert whole["python:mean_label"] == pytest.approx(DATA.labels.mean() * 1000)


def test_queries_that_a_function_leaves_out_do_not_count() -> None:
    def halves(scores: Any, labels: Any, offsets: Any, weights: Any) -> Any:
        return np.where(np.arange(len(offsets) - 1) % 2, np.nan, 3.0)

    assert lmart.evaluate(DATA, DATA.labels, metric=halves)["python:halves"] == 3.0


def test_the_estimator_takes_functions() -> None:
    base = pytest.importorskip("sklearn.base")
    from lmart.sklearn import LambdaMARTRanker

    ranker = base.clone(LambdaMARTRanker(objective=squared, metric=first_is_relevant, **FEW))
    ranker.fit(DATA.to_numpy(), DATA.labels, qid=DATA.qid)
    assert bytes_of(ranker.model_) == bytes_of(lmart.train(DATA, objective=squared, metric=first_is_relevant, **FEW))
    assert list(ranker.evals_result_["training"]) == ["python:first_is_relevant"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda s, y, q, w: 1 / 0, "'lambda' raised ZeroDivisionError: division by zero"),
        (lambda s, y: (s, y), "'lambda' raised TypeError: "),
        (lambda s, y, q, w: s, r"'lambda' returned a ndarray; return \(gradients, hessians\)"),
        (lambda s, y, q, w: (s[1:], w), r"gradients of shape \(1759,\); return 1760 numbers, one a document"),
        (lambda s, y, q, w: (s, 1.0), r"hessians of shape \(\); return 1760 numbers"),
        (lambda s, y, q, w: (s + np.nan, w), r"gradients with nan in row 0 \(from 0\); use -1e\+100 to 1e\+100"),
        (lambda s, y, q, w: (s, w - 2 * (np.arange(1760) == 7)), r"hessians with -1.0 in row 7 \(from 0\); use 0 to"),
        (lambda s, y, q, w: ("a", "b"), "'lambda' returned no numbers: could not convert"),
        (lambda s, y, q, w: s.sort(), "ValueError: sort array is read-only"),
    ],
)
def test_objectives_of_no_use_are_named_with_the_round(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(FunctionError, match=rf"^round 1: objective {said}|^round 1: objective 'lambda' .*{said}"):
        lmart.train(DATA, objective=function, **FEW)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda s, y, q, w: 1 / 0, "raised ZeroDivisionError"),
        (lambda s, y, q, w: s, r"returned an array of shape \(1760,\); return 120 numbers, one a query"),
        (lambda s, y, q, w: float("inf"), "returned inf for query 0"),
        (lambda s, y, q, w: {}, "returned no numbers"),
    ],
)
def test_measures_of_no_use_are_named_with_the_round(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(FunctionError, match=f"^round 1: metric 'lambda' {said}"):
        lmart.train(DATA, metric=function, **FEW)


def test_a_fault_in_a_later_round_keeps_its_cause() -> None:
    def failing(scores: Any, labels: Any, offsets: Any, weights: Any) -> Derivatives:
        if scores.any():
            raise KeyError("later")
        return scores - labels, weights

    with pytest.raises(FunctionError, match=r"^round 2: objective 'failing' raised KeyError: 'later'") as caught:
        lmart.train(DATA, objective=failing, **FEW)
    assert isinstance(caught.value.__cause__, KeyError)


def test_names_of_functions() -> None:
    def other() -> Callable[..., Any]:
        def squared(*arrays: Any) -> Derivatives:
            return arrays[0], arrays[3]

        return squared

    with pytest.raises(lmart.SettingsError, match="two functions of objective are named 'python:squared'; rename one"):
        lmart.train(DATA, objective=[squared, other()], **FEW)
    partial = functools.partial(squared)
    assert lmart.train(DATA, objective=partial, **FEW).settings["objective"] == "python:squared"
    with pytest.raises(lmart.SettingsError, match="objective python:squared knows no positions"):
        lmart.train(DATA, objective=squared, positions=[0] * len(DATA), **FEW)
    with pytest.raises(lmart.SettingsError, match="metric 'python:hits' is a function of a Python program"):
        lmart.train(DATA, metric="python:hits", **FEW)


def test_settings_that_a_function_does_not_know_are_told() -> None:
    with pytest.warns(UserWarning, match="sigma has no effect on objective python:squared"):
        lmart.train(DATA, objective=squared, sigma=2.0, **FEW)
