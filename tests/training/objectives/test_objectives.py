"""The objective over a whole training set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference.gradients
from helpers.datasets import dataset, random_dataset
from helpers.settings import prepare

from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

SETTINGS = TrainSettings(truncation=4, rankers=1)
POOL = WorkerPool(1)


def test_queries_are_independent() -> None:
    data = random_dataset(1)
    scores = np.random.default_rng(1).normal(size=data.n_documents)
    g, h = prepare(data, SETTINGS, POOL).compute_gradients(scores)
    for start, stop in zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True):
        gains = [2.0**y - 1 for y in data.labels[start:stop]]
        expected = reference.gradients.pair_lambdas(gains, scores[start:stop].tolist(), 4, 1.0, True)
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
    g, h = prepare(data, TrainSettings(rankers=1), POOL).compute_gradients(np.zeros(n))
    assert g.sum() == 0 and (h > 0).all()


def test_queries_without_a_pair_are_counted() -> None:
    data = dataset([1, 1, 2, 0, 5, 0, 0, 0], ["a", "a", "b", "b", "c", "d", "d", "d"], [[0.0]] * 8)
    assert prepare(data, SETTINGS, POOL).n_queries_without_pairs() == 3


@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_labels_of_any_size(gain: str) -> None:
    data = dataset([0, 31, 72, 1500, 1501.5, 2000], ["q"] * 6, [[0.0]] * 6)
    settings = replace(SETTINGS, gain=type(SETTINGS.gain).parse(gain), truncation=0)
    g, h = prepare(data, settings, POOL).compute_gradients(np.zeros(6))
    assert np.isfinite(g).all() and np.isfinite(h).all() and g[5] < 0
