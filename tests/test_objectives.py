"""The objective over a whole training set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from build import dataset, random_dataset

from lmart.boosting import train
from lmart.objectives import prepare
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

SETTINGS = TrainSettings(truncation=4)
POOL = WorkerPool(1)


def test_queries_are_independent() -> None:
    data = random_dataset(1)
    scores = np.random.default_rng(1).normal(size=data.n_documents)
    g, h = prepare(data, SETTINGS, POOL).compute_gradients(scores)
    for start, stop in zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True):
        gains = [2.0**y - 1 for y in data.labels[start:stop]]
        expected = reference.pair_lambdas(gains, scores[start:stop].tolist(), 4, 1.0, True)
        np.testing.assert_allclose(g[start:stop], expected[0], rtol=1e-7, atol=1e-11)
        np.testing.assert_allclose(h[start:stop], expected[1], rtol=1e-7, atol=1e-11)
        assert g[start:stop].sum() == 0


def test_bits_do_not_depend_on_threads_or_on_earlier_rounds() -> None:
    data = random_dataset(2, n_queries=3000)
    scores = np.random.default_rng(2).normal(size=data.n_documents)
    one = prepare(data, SETTINGS, POOL).compute_gradients(scores)
    with WorkerPool(3) as pool:
        objective = prepare(data, SETTINGS, pool)
        objective.compute_gradients(-scores)
        other = objective.compute_gradients(scores)
    assert (one.gradients == other.gradients).all() and (one.hessians == other.hessians).all()


def test_weights_of_queries_and_of_rows() -> None:
    data = dataset([1, 0, 2, 0, 1], ["a", "a", "b", "b", "b"], [[0.0]] * 5)
    plain = prepare(data, SETTINGS, POOL).compute_gradients(np.zeros(5))
    by_query = prepare(data, SETTINGS, POOL, np.array([3.0, 0.5])).compute_gradients(np.zeros(5))
    factors = np.array([3, 3, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(by_query.gradients, plain.gradients * factors, rtol=1e-12)
    np.testing.assert_allclose(by_query.hessians, plain.hessians * factors, rtol=1e-12)
    assert by_query.gradients[:2].sum() == 0 == by_query.gradients[2:].sum()
    rows = np.array([1.0, 2, 3, 4, 5])
    by_row = prepare(data, SETTINGS, POOL, rows).compute_gradients(np.zeros(5))
    assert (by_row.gradients == plain.gradients * rows).all()


def test_a_huge_query_takes_memory_by_its_documents() -> None:
    n = 20_000
    data = dataset([1, 0] * (n // 2), ["q"] * n, np.zeros((n, 1)))
    g, h = prepare(data, TrainSettings(), POOL).compute_gradients(np.zeros(n))
    assert g.sum() == 0 and (h > 0).all()


def test_idle_queries_are_counted() -> None:
    data = dataset([1, 1, 2, 0, 5, 0, 0, 0], ["a", "a", "b", "b", "c", "d", "d", "d"], [[0.0]] * 8)
    assert prepare(data, SETTINGS, POOL).n_idle_queries() == 3


@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_labels_of_any_size(gain: str) -> None:
    data = dataset([0, 31, 72, 1500, 1501.5, 2000], ["q"] * 6, [[0.0]] * 6)
    settings = replace(SETTINGS, gain=type(SETTINGS.gain).parse(gain), truncation=0)
    g, h = prepare(data, settings, POOL).compute_gradients(np.zeros(6))
    assert np.isfinite(g).all() and np.isfinite(h).all() and g[5] < 0


RANKNET = TrainSettings(objective="ranknet", truncation=0, normalize=False)


@pytest.mark.parametrize(
    ("settings", "gradients", "hessians"),
    [
        (
            RANKNET,
            [-2.1192668527, 2.0819914741, -1.8999433381, 0.4621979041, 1.4750208125],
            [0.9200023222, 0.6075144603, 0.7775380065, 0.8861407050, 0.7069445211],
        ),
        (
            replace(RANKNET, sigma=2.0),
            [-4.4221181558, 4.8604976364, -4.8802202048, 1.5415087188, 2.9003320054],
            [2.9703087815, 1.6548987685, 1.8320439877, 2.7181824536, 2.4132218160],
        ),
        (  # XGBoost's rank:pairwise, whose hessians are twice these
            replace(RANKNET, truncation=32, normalize=True),
            [-1.3648858413, 0.6460780776, -0.3518065340, -0.1150889090, 1.1857032067],
            [1.3152040100 / 2, 0.4583161831 / 2, 0.3714188673 / 2, 0.7051044537 / 2, 1.2009519163 / 2],
        ),
    ],
)
def test_ranknet_by_hand(settings: TrainSettings, gradients: list[float], hessians: list[float]) -> None:
    data = dataset([3, 0, 2, 1, 0], ["q"] * 5, [[0.0]] * 5)
    g, h = prepare(data, settings, POOL).compute_gradients(np.array([0.2, 1.0, -0.5, 0.7, 0.1]))
    np.testing.assert_allclose(g, gradients, atol=1e-7)
    np.testing.assert_allclose(h, hessians, atol=1e-7)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("truncation", [0, 3])
def test_ranknet_against_its_twin(truncation: int, normalize: bool) -> None:
    data = random_dataset(3, n_queries=200)
    scores = np.clip(np.random.default_rng(3).normal(size=data.n_documents).round(1), -3.4, 3.4)
    scores[: data.n_documents // 2] *= 100  # some lie too far apart for one exponential a document
    weights = np.linspace(0.0, 2.0, data.n_queries)
    settings = replace(RANKNET, truncation=truncation, normalize=normalize)
    g, h = prepare(data, settings, POOL, weights).compute_gradients(scores)
    for q, (start, stop) in enumerate(zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True)):
        own = data.labels[start:stop].tolist(), scores[start:stop].tolist()
        expected = reference.pair_lambdas(*own, truncation, 1.0, normalize, alike=True)
        np.testing.assert_allclose(g[start:stop], np.multiply(expected[0], weights[q]), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(h[start:stop], np.multiply(expected[1], weights[q]), rtol=1e-7, atol=1e-9)
        assert g[start:stop].sum() == 0


def test_ranknet_in_parts_and_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(4, n_queries=2000)
    scores = np.random.default_rng(4).normal(size=data.n_documents)
    whole = prepare(data, RANKNET, POOL).compute_gradients(scores)
    monkeypatch.setattr("lmart.objectives.pairs.WEIGHTS", 1)  # the pairs of one rank at a time
    with WorkerPool(3) as pool:
        parts = prepare(data, RANKNET, pool).compute_gradients(scores)
    assert (whole.gradients == parts.gradients).all() and (whole.hessians == parts.hessians).all()


def test_ranknet_learns() -> None:
    data = random_dataset(5)
    first = train(data, [], replace(RANKNET, trees=1), POOL).training
    result = train(data, [], replace(RANKNET, trees=30), POOL)
    assert first is not None and result.training is not None and result.training > first > 0.75
    assert result.ensemble.settings is not None and result.ensemble.settings["objective"] == "ranknet"
