"""Objectives that weigh pairs: worked values, twins, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference.gradients
import reference.measures
from helpers.datasets import dataset, random_dataset
from helpers.settings import prepare
from helpers.training_runs import PLAIN as BY_HAND
from helpers.training_runs import fit
from hypothesis import given
from hypothesis import strategies as st

from lmart.gains import Gain
from lmart.settings import OBJECTIVES, TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.objectives.pairs import WEIGHTINGS

POOL = WorkerPool(1)
PLAIN = TrainSettings(truncation=0, normalize=False)

Relevance = list[float]
Weights = Callable[[list[int], int, int], float]


def stops(labels: Relevance) -> Relevance:
    return [(2.0**label - 1) / 2.0**4 for label in labels]


def relevant(labels: Relevance) -> Relevance:
    return [float(label > 0) for label in labels]


def gains(labels: Relevance) -> Relevance:
    return [2.0**label - 1 for label in labels]


# Relevance from labels, and what pairs weigh, from relevance and truncation.
TWINS: dict[str, tuple[Callable[[Relevance], Relevance], Callable[[Relevance, int], Weights]]] = {
    "ranknet": (gains, lambda relevance, truncation: lambda order, better, other: 1.0),
    "lambdaloss": (
        gains,
        lambda relevance, truncation: reference.gradients.distance_weights(relevance, truncation, 1.0, 10.0),
    ),
    "map": (
        relevant,
        lambda relevance, truncation: reference.gradients.swap_weights(reference.measures.average_precision, relevance),
    ),
    "mrr": (
        relevant,
        lambda relevance, truncation: reference.gradients.swap_weights(reference.measures.reciprocal_ranks, relevance),
    ),
    "err": (
        stops,
        lambda relevance, truncation: reference.gradients.swap_weights(
            reference.measures.expected_reciprocal_ranks, relevance
        ),
    ),
}
ALL = pytest.mark.parametrize("name", [*TWINS, "lambdamart"])


def settings_of(name: str, truncation: int = 0, normalize: bool = False) -> TrainSettings:
    return replace(PLAIN, objective=name, truncation=truncation, normalize=normalize)


WORKED = {
    "ranknet": (
        PLAIN,
        [3, 0, 2, 1, 0],
        [-2.1192668527, 2.0819914741, -1.8999433381, 0.4621979041, 1.4750208125],
        [0.9200023222, 0.6075144603, 0.7775380065, 0.8861407050, 0.7069445211],
    ),
    "ranknet sigma=2": (
        replace(PLAIN, sigma=2.0),
        [3, 0, 2, 1, 0],
        [-4.4221181558, 4.8604976364, -4.8802202048, 1.5415087188, 2.9003320054],
        [2.9703087815, 1.6548987685, 1.8320439877, 2.7181824536, 2.4132218160],
    ),
    "ranknet as XGBoost's rank:pairwise": (  # whose hessians are twice these
        replace(PLAIN, truncation=32, normalize=True),
        [3, 0, 2, 1, 0],
        [-1.3648858413, 0.6460780776, -0.3518065340, -0.1150889090, 1.1857032067],
        [1.3152040100 / 2, 0.4583161831 / 2, 0.3714188673 / 2, 0.7051044537 / 2, 1.2009519163 / 2],
    ),
    "lambdaloss": (
        PLAIN,
        [3, 0, 2, 1, 0],
        [-3.9819928684, 1.4531834434, -0.9970598344, 1.3677036334, 2.1581656259],
        [1.6952249161, 0.4441769072, 0.4927838994, 0.7516274361, 1.0084529724],
    ),
    "map": (
        PLAIN,
        [1, 0, 1, 0, 0],
        [-0.3016556385, 0.6115262493, -0.5803312740, 0.2183853140, 0.0520753492],
        [0.1012775432, 0.1409049098, 0.1195846851, 0.0581274382, 0.0218298804],
    ),
    "map as XGBoost's rank:map": (  # whose hessians are twice these
        replace(PLAIN, truncation=32, normalize=True),
        [1, 0, 1, 0, 0],
        [-0.4466700185, 0.4237915247, -0.3500262708, 0.1890068008, 0.1838979637],
        [0.3488952662 / 2, 0.2118475449 / 2, 0.1527399966 / 2, 0.1109662276 / 2, 0.1788214903 / 2],
    ),
    "mrr": (
        PLAIN,
        [3, 0, 2, 1, 0],
        [-0.3449872406, 1.0409957371, -0.4087872381, -0.3462785407, 0.0590572823],
        [0.1069548483, 0.3037572301, 0.0745732260, 0.1603598626, 0.0381307067],
    ),
    "err": (
        PLAIN,
        [3, 0, 2, 1, 0],
        [-0.2636070453, 0.3274280248, -0.1274173013, 0.0394390360, 0.0241572858],
        [0.0915553337, 0.0893730926, 0.0337517874, 0.0307543843, 0.0127081051],
    ),
}
"""Settings, labels, gradients and hessians at the scores 0.2, 1, -0.5, 0.7 and 0.1."""


@pytest.mark.parametrize("case", WORKED)
def test_worked_values(case: str) -> None:
    settings, labels, gradients, hessians = WORKED[case]
    data = dataset(labels, ["q"] * 5, [[0.0]] * 5)
    objective = prepare(data, replace(settings, objective=case.split(maxsplit=1)[0]), POOL)
    g, h = objective.compute_gradients(np.array([0.2, 1.0, -0.5, 0.7, 0.1]))
    np.testing.assert_allclose(g, gradients, atol=1e-9)
    np.testing.assert_allclose(h, hessians, atol=1e-9)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("truncation", [0, 3])
@pytest.mark.parametrize("name", TWINS)
def test_twins(name: str, truncation: int, normalize: bool) -> None:
    data = random_dataset(3, n_queries=100)
    scores = np.clip(np.random.default_rng(3).normal(size=data.n_documents).round(1), -3.4, 3.4)
    scores[: data.n_documents // 2] *= 100  # some lie too far apart for one exponential a document
    weights = np.linspace(0.0, 2.0, data.n_queries)
    g, h = prepare(data, settings_of(name, truncation, normalize), POOL, weights).compute_gradients(scores)
    relevance_of, weights_of = TWINS[name]
    for q, (start, stop) in enumerate(zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True)):
        relevance = relevance_of(data.labels[start:stop].tolist())
        own = relevance, scores[start:stop].tolist()
        expected = reference.gradients.pair_gradients(
            *own, truncation, 1.0, normalize, weights_of(relevance, truncation)
        )
        np.testing.assert_allclose(g[start:stop], np.multiply(expected[0], weights[q]), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(h[start:stop], np.multiply(expected[1], weights[q]), rtol=1e-7, atol=1e-9)
        assert g[start:stop].sum() == 0


@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 2.5, 4]), st.floats(-9, 9)), min_size=1, max_size=12),
    name=st.sampled_from([*TWINS, "lambdamart"]),
    truncation=st.integers(0, 5),
    normalize=st.booleans(),
)
def test_the_best_are_pushed_up_and_the_worst_down(
    rows: list[tuple[float, float]], name: str, truncation: int, normalize: bool
) -> None:
    labels, scores = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    data = dataset(labels.tolist(), ["q"] * len(rows), np.zeros((len(rows), 1)))
    objective = prepare(data, settings_of(name, truncation, normalize), POOL)
    g, h = objective.compute_gradients(scores)
    assert g.sum() == 0 and (h >= 0).all()
    best, worst = objective.relevance.max(), objective.relevance.min()
    if best > worst:
        assert (g[objective.relevance == best] <= 0).all() and (g[objective.relevance == worst] >= 0).all()
    else:
        assert not g.any() and not h.any() and objective.n_queries_without_pairs() == 1


def test_each_objective_of_pairs_has_its_weights() -> None:
    assert set(WEIGHTINGS) == {kind.name for kind in OBJECTIVES.values() if kind.module == "pairs"}


@ALL
def test_every_pair_that_changes_the_measure_counts(name: str) -> None:
    """With two documents, the worse above, the better must be pushed up."""
    data = dataset([0, 1], ["q"] * 2, [[0.0]] * 2)
    g, _ = prepare(data, settings_of(name, 1, True), POOL).compute_gradients(np.array([1.0, 0.0]))
    assert g[1] < 0 < g[0]


@ALL
def test_bits_do_not_depend_on_threads_ranges_or_earlier_rounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(4, n_queries=500)
    scores = np.random.default_rng(4).normal(size=data.n_documents)
    whole = prepare(data, settings_of(name), POOL).compute_gradients(scores)
    ranges = [(q, min(q + 7, data.n_queries)) for q in range(0, data.n_queries, 7)]
    monkeypatch.setattr("lmart.training.objectives.base.even_ranges", lambda offsets: ranges)
    with WorkerPool(3) as pool:
        objective = prepare(data, settings_of(name), pool)
        objective.compute_gradients(-scores)
        parts = objective.compute_gradients(scores)
    assert (whole.gradients == parts.gradients).all() and (whole.hessians == parts.hessians).all()


@ALL
def test_weights_of_queries_and_of_rows(name: str) -> None:
    data = dataset([1, 0, 2, 0, 1], ["a", "a", "b", "b", "b"], [[0.0]] * 5)
    scores = np.array([0.0, 0.5, 0.1, 0.3, 0.2])
    plain = prepare(data, settings_of(name), POOL).compute_gradients(scores)
    by_query = prepare(data, settings_of(name), POOL, np.array([0.0, 0.5])).compute_gradients(scores)
    np.testing.assert_allclose(by_query.gradients, plain.gradients * [0, 0, 0.5, 0.5, 0.5], rtol=1e-12)
    np.testing.assert_allclose(by_query.hessians, plain.hessians * [0, 0, 0.5, 0.5, 0.5], rtol=1e-12)
    rows = np.array([1.0, 2, 3, 4, 5])
    by_row = prepare(data, settings_of(name), POOL, rows).compute_gradients(scores)
    assert plain.gradients.any() and (by_row.gradients == plain.gradients * rows).all()


@pytest.mark.parametrize("gain", ["exp2", "linear"])
@ALL
def test_labels_of_any_size(name: str, gain: str) -> None:
    data = dataset([0, 31, 72, 1500, 1501.5, 2000, 0], ["q"] * 6 + ["r"], [[0.0]] * 7)
    settings = replace(settings_of(name), gain=Gain.parse(gain))
    g, h = prepare(data, settings, POOL).compute_gradients(np.zeros(7))
    assert np.isfinite(g).all() and np.isfinite(h).all() and g[0] > 0 >= g[5]


@pytest.mark.parametrize("name", ["map", "mrr", "err"])
def test_measures_of_labels_do_not_go_by_gains(name: str) -> None:
    data = random_dataset(6)
    scores = np.random.default_rng(6).normal(size=data.n_documents)
    found = [
        prepare(data, replace(settings_of(name), gain=Gain.parse(gain)), POOL).compute_gradients(scores)
        for gain in ("exp2", "0,0,1,1,1")
    ]
    assert (found[0].gradients == found[1].gradients).all()


@ALL
def test_training_makes_the_measure_better(name: str) -> None:
    data = random_dataset(5)
    metric = name if name in ("map", "mrr", "err") else "ndcg@10"
    settings = TrainSettings(objective=name, metric=metric, min_docs=5)
    first = train(data, [], replace(settings, trees=1), POOL).training
    result = train(data, [], replace(settings, trees=30), POOL)
    assert first is not None and result.training is not None and result.training > first > 0
    assert result.ensemble.settings is not None and result.ensemble.settings["objective"] == name


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(1, "a", 0), (0, "a", 1), (1, "b", 3), (2, "b", 4), (0, "c", 3), (0, "c", 0)]
    text = "".join(f"{label} qid:{query} 1:{value}\n" for label, query, value in rows)
    trained = fit(text, *BY_HAND, "--leaves", "2", "--objective", "map", "--metric", "err@3")
    assert trained.report["settings"]["objective"] == "map" and trained.report["metric"] == "err@3"
    assert len(trained.model["trees"]) == 1
    assert trained.warnings == []
    assert "lmart: 2 of 3 queries have no pair of a relevant document and another" in trained.said
    graded = fit(text, *BY_HAND, "--leaves", "2")
    assert "lmart: 1 of 3 queries has no pair of documents with different labels" in graded.said
