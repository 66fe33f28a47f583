"""Objectives of whole queries: worked values, twins, chance, and what holds for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, fsum, log, log2
from typing import Any

import numpy as np
import pytest
import reference.gradients
import reference.random_numbers
from helpers.datasets import dataset, random_dataset
from helpers.settings import prepare
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Float64Array
from lmart.gains import Gain
from lmart.kernels.ranking import listwise, neighbour_pairs
from lmart.kernels.ranking.gradient_arrays import PairSettings, RankedQueries
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.objectives.base import Gradients, round_key

POOL = WorkerPool(1)
BOTH = pytest.mark.parametrize("name", ["xendcg", "yetirank"])
LABELS = [3.0, 0.0, 2.0, 1.0, 0.0]
SCORES = [0.2, 1.0, -0.5, 0.7, 0.1]


def settings_of(name: str, truncation: int = 0, normalize: bool = False, sigma: float = 1.0) -> TrainSettings:
    return TrainSettings(objective=name, truncation=truncation, normalize=normalize, sigma=sigma)


def gradients_of(
    settings: TrainSettings, labels: list[float], scores: list[float], weight: float = 1.0, round_number: int = 1
) -> Gradients:
    data = dataset(labels, ["q"] * len(labels), [[0.0]] * len(labels))
    return prepare(data, settings, POOL, np.array([weight])).compute_gradients(np.array(scores), round_number)


@pytest.mark.parametrize(
    ("gamma", "cost", "gradients"),
    [
        (0.0, 1.9054326298, [-0.3406548428, 0.2921291690, -0.1708715367, 0.1377157500, 0.0816814606]),
        (0.5, 1.9366826298, [-0.3962103984, 0.3175921320, -0.1801307960, 0.1516046389, 0.1071444235]),
    ],
)
def test_the_twin_of_xendcg_has_the_worked_values(gamma: float, cost: float, gradients: list[float]) -> None:
    gains = [2.0**label - 1 for label in LABELS]
    found = reference.gradients.cross_entropy(gains, SCORES, [gamma] * 5, 1.0)
    assert found[0] == pytest.approx(cost, abs=1e-9)
    np.testing.assert_allclose(found[1], gradients, atol=1e-9)


def test_the_twin_of_xendcg_has_the_derivative_of_its_cost() -> None:
    fixed = ([7.0, 0.0, 3.0, 1.0, 0.0], [0.1, 0.9, 0.3, 0.5, 0.7], 1.7)
    gains, gammas, sigma = fixed
    _, gradients, _ = reference.gradients.cross_entropy(gains, SCORES, gammas, sigma)
    for i in range(5):
        above, below = list(SCORES), list(SCORES)
        above[i] += 1e-6
        below[i] -= 1e-6
        costs = [reference.gradients.cross_entropy(gains, scores, gammas, sigma)[0] for scores in (above, below)]
        assert (costs[0] - costs[1]) / 2e-6 == pytest.approx(gradients[i], abs=1e-8)


def test_hessians_of_xendcg_by_hand() -> None:
    _, h = gradients_of(settings_of("xendcg"), LABELS, SCORES)
    np.testing.assert_allclose(h, [0.1339542780, 0.2288673215, 0.0728671496, 0.1936961847, 0.1233931670], atol=1e-9)


@pytest.mark.parametrize("gain", ["exp2", "linear", "0,3,5,40,41"])
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_xendcg_against_its_twin(gain: str, sigma: float) -> None:
    data = random_dataset(1, n_queries=200)
    scores = np.random.default_rng(1).normal(size=data.n_documents)
    weights = np.linspace(0.0, 2.0, data.n_queries)
    settings = replace(settings_of("xendcg", sigma=sigma), gain=Gain.parse(gain), seed=5)
    g, h = prepare(data, settings, POOL, weights).compute_gradients(scores, 3)
    key = reference.random_numbers.round_key(5, 3)
    known: dict[str, Callable[[float], float]] = {"exp2": lambda label: 2.0**label - 1, "linear": float}
    gain_of = known.get(gain) or (lambda label: (0.0, 3.0, 5.0, 40.0, 41.0)[int(label)])
    for q, (start, stop) in enumerate(zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True)):
        gains = [gain_of(label) for label in data.labels[start:stop]]
        gammas = [reference.random_numbers.uniform(row, key) for row in range(start, stop)]
        _, gradients, hessians = reference.gradients.cross_entropy(gains, scores[start:stop].tolist(), gammas, sigma)
        weight = weights[q] if len(set(gains)) > 1 else 0.0
        np.testing.assert_allclose(g[start:stop], np.multiply(gradients, weight), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(h[start:stop], np.multiply(hessians, weight), rtol=1e-9, atol=1e-12)


def noises(start: int, stop: int, key: int) -> list[list[float]]:
    """What yetirank adds to the scores of rows in each order: ln(r / (1 - r)), r from 21 bits of a hash and a half."""

    def noise(row: int, turn: int) -> float:
        bits = (
            reference.random_numbers.mix(row ^ reference.random_numbers.mix(key ^ (turn - turn % 3))) >> 21 * (turn % 3)
            & 0x1FFFFF
        )
        r = (bits + 0.5) / 2**21
        return log(r) - log(1 - r)

    return [[noise(row, turn) for row in range(start, stop)] for turn in range(10)]


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("truncation", "sigma"), [(0, 1.0), (3, 2.0)])
def test_yetirank_against_its_twin(truncation: int, sigma: float, normalize: bool) -> None:
    data = random_dataset(2, n_queries=200)
    scores = np.random.default_rng(2).normal(size=data.n_documents).round(1)
    scores[: data.n_documents // 2] *= 20
    weights = np.linspace(0.0, 2.0, data.n_queries)
    settings = replace(settings_of("yetirank", truncation, normalize, sigma), seed=7)
    g, h = prepare(data, settings, POOL, weights).compute_gradients(scores, 4)
    key = reference.random_numbers.round_key(7, 4)
    for q, (start, stop) in enumerate(zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True)):
        own = data.labels[start:stop].tolist(), scores[start:stop].tolist(), noises(start, stop, key)
        gradients, hessians = reference.gradients.neighbour_lambdas(*own, truncation, sigma, normalize)
        np.testing.assert_allclose(g[start:stop], np.multiply(gradients, weights[q]), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(h[start:stop], np.multiply(hessians, weights[q]), rtol=1e-7, atol=1e-9)
        assert g[start:stop].sum() == 0


def test_yetirank_of_a_long_query() -> None:
    rng = np.random.default_rng(8)
    labels, scores = rng.integers(0, 5, 600).astype(float).tolist(), rng.normal(size=600).tolist()
    g, h = gradients_of(settings_of("yetirank"), labels, scores)
    expected = reference.gradients.neighbour_lambdas(
        labels, scores, noises(0, 600, reference.random_numbers.round_key(0, 1)), 0, 1.0, False
    )
    np.testing.assert_allclose(g, expected[0], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(h, expected[1], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("normalize", [False, True])
def test_two_documents_are_neighbours_in_any_order(normalize: bool) -> None:
    g, h = gradients_of(settings_of("yetirank", normalize=normalize, sigma=2.0), [1.0, 4.0], [0.3, 0.1], weight=3.0)
    rho = 1 / (1 + exp(2 * (0.1 - 0.3)))
    size = 0.75 * rho
    factor = 3 * log2(1 + 4 * size) / (4 * size) if normalize else 3.0
    np.testing.assert_allclose(g, [2 * size * factor, -2 * size * factor], rtol=1e-10)
    np.testing.assert_allclose(h, [4 * size * (1 - rho) * factor] * 2, rtol=1e-10)


@pytest.mark.parametrize("apart", [100.0, 1e4, 1e200])
def test_yetirank_far_apart_is_without_chance(apart: float) -> None:
    scores = [3 * apart, apart, 4 * apart, 2 * apart]  # their order: 2, 0, 3, 1
    settings = settings_of("yetirank")
    # (2, 0) and (3, 1) stand wrong, (0, 3) right
    g, h = gradients_of(settings, [4.0, 1.0, 0.0, 0.0], scores)
    np.testing.assert_allclose(g, [-1.0, -(0.85**2) / 4, 1.0, 0.85**2 / 4], rtol=1e-10)
    np.testing.assert_allclose(h, np.zeros(4), atol=1e-12)
    # (2, 0) and (0, 3) stand wrong, and would be no neighbours in the order of the rows
    g, _ = gradients_of(settings, [1.0, 0.0, 0.0, 3.0], scores)
    np.testing.assert_allclose(g, [-1 / 3 + 0.85 * 2 / 3, 0.0, 1 / 3, -0.85 * 2 / 3], rtol=1e-10, atol=1e-12)
    first, _ = gradients_of(replace(settings, truncation=2), [4.0, 1.0, 0.0, 0.0], scores)
    np.testing.assert_allclose(first, [-1.0, 0.0, 1.0, 0.0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("step", "truncation"), [(0.05, 30), (5.0, 30), (100.0, 7), (2000.0, 30)])
def test_yetirank_of_a_long_query_with_scores_far_apart(step: float, truncation: int) -> None:
    rng = np.random.default_rng(9)
    labels, scores = rng.integers(0, 5, 300).astype(float).tolist(), (rng.permutation(300) * step).tolist()
    g, h = gradients_of(settings_of("yetirank", truncation), labels, scores)
    own = labels, scores, noises(0, 300, reference.random_numbers.round_key(0, 1))
    expected = reference.gradients.neighbour_lambdas(*own, truncation, 1.0, False)
    np.testing.assert_allclose(g, expected[0], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(h, expected[1], rtol=1e-7, atol=1e-12)


def test_pairs_of_neighbours_cancel_exactly() -> None:
    rng = np.random.default_rng(6)
    n = 500
    scores, rank_weights = rng.normal(size=n), np.full(n - 1, 0.01)
    exponentials, offsets = np.empty(n), np.array([0, n])
    listwise.write_softmax_numerators(scores, offsets, 1.0, 0, 1, exponentials)
    g, h = out = Gradients(np.empty(n), np.empty(n))
    queries = RankedQueries(scores, np.ones(1), offsets, np.arange(n, dtype=np.int32))
    orders = neighbour_pairs.RandomOrders(np.uint64(5), 3, rank_weights, 0)
    chosen = PairSettings(n, 1.0, False)
    neighbour_pairs.neighbour_gradients(queries, exponentials, rng.random(n), orders, chosen, 0, 1, out)
    assert fsum(g) == 0 and fsum(np.abs(g)) > 1
    assert (np.concatenate([g, h]) * 2.0**45 % 1 == 0).all()


def test_yetirank_prefers_no_row_when_scores_are_equal() -> None:
    labels = [1.0] + [0.0] * 9  # its gradient is the same in the mean wherever its row stands
    means = []
    for place in range(10):
        rolled = labels[-place:] + labels[:-place] if place else labels
        draws = [gradients_of(settings_of("yetirank"), rolled, [0.0] * 10, 1.0, turn)[0] for turn in range(1, 101)]
        means.append(float(np.mean([g[place] for g in draws])))
    # Both neighbours count, of each place 0.85^k: on average (2 sum over 9 places) / 10 documents, times rho = 1/2.
    expected = -sum(0.85**k for k in range(9)) / 10
    np.testing.assert_allclose(means, expected, atol=0.06)


@BOTH
def test_chance_goes_by_seed_round_and_row(name: str) -> None:
    data = random_dataset(3)
    scores = np.random.default_rng(3).normal(size=data.n_documents)

    def draw(seed: int, round_number: int) -> Float64Array:
        settings = replace(settings_of(name), seed=seed)
        return prepare(data, settings, POOL).compute_gradients(scores, round_number).gradients

    assert (draw(1, 2) == draw(1, 2)).all()
    assert (draw(1, 2) != draw(2, 2)).any() and (draw(1, 2) != draw(1, 3)).any() and (draw(1, 2) != draw(2, 1)).any()
    assert int(round_key(3, 8)) == reference.random_numbers.round_key(3, 8)


@BOTH
def test_bits_do_not_depend_on_threads_ranges_or_earlier_rounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(4, n_queries=500)
    scores = np.random.default_rng(4).normal(size=data.n_documents)
    one = prepare(data, settings_of(name), POOL).compute_gradients(scores, 2)
    ranges = [(q, min(q + 7, data.n_queries)) for q in range(0, data.n_queries, 7)]
    monkeypatch.setattr("lmart.training.objectives.base.even_ranges", lambda offsets: ranges)
    with WorkerPool(3) as pool:
        objective = prepare(data, settings_of(name), pool)
        objective.compute_gradients(-scores, 1)
        other = objective.compute_gradients(scores, 2)
    assert (one.gradients == other.gradients).all() and (one.hessians == other.hessians).all()


@BOTH
def test_weights_of_queries_and_of_rows(name: str) -> None:
    data = dataset([1, 0, 2, 0, 1], ["a", "a", "b", "b", "b"], [[0.0]] * 5)
    scores = np.array([0.1, 0.4, 0.2, 0.0, 0.3])
    plain = prepare(data, settings_of(name), POOL).compute_gradients(scores)
    by_query = prepare(data, settings_of(name), POOL, np.array([3.0, 0.0])).compute_gradients(scores)
    factors = np.array([3, 3, 0, 0, 0])
    np.testing.assert_allclose(by_query.gradients, plain.gradients * factors, rtol=1e-10)
    np.testing.assert_allclose(by_query.hessians, plain.hessians * factors, rtol=1e-10)
    rows = np.array([1.0, 2, 3, 4, 5])
    by_row = prepare(data, settings_of(name), POOL, rows).compute_gradients(scores)
    assert (by_row.gradients == plain.gradients * rows).all() and (by_row.hessians == plain.hessians * rows).all()


@BOTH
def test_nothing_is_learned_from_queries_without_a_pair(name: str) -> None:
    data = dataset([1, 1, 5, 0, 0, 0], ["a", "a", "c", "d", "d", "d"], [[0.0]] * 6)
    objective = prepare(data, settings_of(name, normalize=True), POOL)
    g, h = objective.compute_gradients(np.arange(6.0))
    assert objective.n_queries_without_pairs() == 3 and not g.any() and not h.any()


@BOTH
@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_labels_of_any_size(name: str, gain: str) -> None:
    for labels in ([0, 31, 72, 1500, 1501.5, 2000], [0, 1e-322, 0, 2e-322, 0, 3e-322], [1e300, 0, 0, 0, 0, 1e308]):
        settings = replace(settings_of(name), gain=Gain.parse(gain))
        g, h = gradients_of(settings, [float(label) for label in labels], [0.0] * 6)
        assert np.isfinite(g).all() and np.isfinite(h).all() and (h >= 0).all()
        assert g.sum() == pytest.approx(0.0, abs=1e-12)
        assert name == "xendcg" or g[5] < 0


@pytest.mark.slow
@BOTH
@given(
    pairs=st.lists(st.tuples(st.integers(0, 4), st.floats(-1e300, 1e300)), min_size=1, max_size=20),
    sigma=st.sampled_from([1e-6, 1.0, 1e6]),
    normalize=st.booleans(),
)
def test_any_scores_give_numbers(name: str, pairs: list[tuple[int, float]], sigma: float, normalize: bool) -> None:
    labels, scores = [float(label) for label, _ in pairs], [score for _, score in pairs]
    g, h = gradients_of(settings_of(name, 5, normalize, sigma), labels, scores)
    assert np.isfinite(g).all() and np.isfinite(h).all() and (h >= 0).all()
    assert g.sum() == pytest.approx(0.0, abs=1e-10 * sigma)


@pytest.mark.parametrize("option", [{"truncation": 1}, {"normalize": True}])
def test_xendcg_knows_neither_truncation_nor_normalising(option: dict[str, Any]) -> None:
    plain = settings_of("xendcg")
    one, other = (gradients_of(settings, LABELS, SCORES) for settings in (plain, replace(plain, **option)))
    assert (one.gradients == other.gradients).all() and (one.hessians == other.hessians).all()


def test_yetirank_knows_no_gain() -> None:
    plain = settings_of("yetirank")
    one, other = (gradients_of(replace(plain, gain=Gain.parse(gain)), LABELS, SCORES) for gain in ("exp2", "0,1,2,30"))
    assert (one.gradients == other.gradients).all()


@BOTH
def test_it_learns(name: str) -> None:
    data = random_dataset(5)
    settings = replace(settings_of(name, 30, True), trees=30)
    first = train(data, [], replace(settings, trees=1), POOL).training
    result = train(data, [], settings, POOL)
    assert first is not None and result.training is not None and result.training > first > 0.7
    sampled = train(data, [], replace(settings, sample=0.7), POOL)
    assert sampled.training is not None and sampled.training > 0.7
