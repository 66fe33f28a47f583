"""The order of documents, and the gradients of pairs, against their plain twins and worked values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import reference.gradients
import reference.measures
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Float64Array
from lmart.gains import Gain, discount_table
from lmart.kernels.measures import query_measures
from lmart.kernels.ranking import ordering, pairs
from lmart.kernels.ranking.gradient_arrays import Gradients, PairSettings, RankedQueries
from lmart.kernels.ranking.pair_weights import NDCG, PairWeighting

grades = st.integers(0, 4)
steps = st.integers(-40, 40).map(lambda step: step / 16)  # ties on purpose


def lambdas(
    labels: Any, scores: Any, truncation: int = 0, sigma: float = 1.0, normalize: bool = False, gain: str = "exp2"
) -> tuple[Float64Array, Float64Array]:
    """Run the kernel on one query."""
    y, s = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    offsets = np.array([0, len(y)])
    gains = Gain.parse(gain).scaled(y, offsets)
    discount = discount_table(len(y))
    ideal = np.empty(1)
    order = np.arange(len(y), dtype=np.int32)
    ordering.order_documents(gains, offsets, 0, 1, order)
    best = query_measures.RankedDocuments(order, gains, gains, offsets)
    query_measures.discounted_sums(best, discount, 0, 1, truncation or len(y), False, ideal)
    inverse = np.array([1 / ideal[0] if ideal[0] > 0 else 0.0])
    ordering.order_documents(s, offsets, 0, 1, order)
    g, h = np.empty(len(y)), np.empty(len(y))
    queries = RankedQueries(s, np.ones(1), offsets, order)
    chosen = PairSettings(truncation or len(y), sigma, normalize)
    weighting = PairWeighting(NDCG, gains, inverse, discount, np.zeros(0), 1.0)
    pairs.pair_gradients(queries, weighting, chosen, 0, 1, Gradients(g, h))
    return g, h


@given(st.lists(steps, min_size=1, max_size=ordering.MOST_COUNTED + 40), st.randoms(use_true_random=False))
def test_order_is_that_of_a_stable_sort_from_any_start(scores: list[float], random: Any) -> None:
    order = np.arange(len(scores), dtype=np.int32)
    random.shuffle(order)
    ordering.order_documents(np.array(scores), np.array([0, len(scores)]), 0, 1, order)
    assert order.tolist() == reference.measures.ranked_rows(scores)


@pytest.mark.parametrize("n", [2, 3, 100, ordering.MOST_COUNTED, ordering.MOST_COUNTED + 1, 5000])
def test_order_is_that_of_a_stable_sort_however_it_is_found(n: int) -> None:
    random = np.random.default_rng(n)
    scores = random.integers(0, max(2, n // 3), n).astype(np.float64)
    scores[:2] = 0.0, -0.0
    order = np.arange(n, dtype=np.int32)
    for step in (0.0, 1e-3, 1.0):  # from the order of the data, from nearly the right one, and from another
        scores = scores + np.round(step * random.normal(size=n), 2)
        ordering.order_documents(scores, np.array([0, n]), 0, 1, order)
        assert (order == np.argsort(-scores, kind="stable")).all()


def test_only_the_queries_of_the_range_are_sorted() -> None:
    order = np.arange(4, dtype=np.int32)
    ordering.order_documents(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 2, 4]), 1, 2, order)
    assert order.tolist() == [0, 1, 3, 2]


@given(
    st.lists(st.tuples(grades, steps), min_size=2, max_size=20),
    st.integers(0, 8),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.booleans(),
)
def test_lambdas_are_those_of_the_definition(
    pairs: list[tuple[int, float]], truncation: int, sigma: float, normalize: bool
) -> None:
    labels, scores = zip(*pairs, strict=True)
    g, h = lambdas(labels, scores, truncation, sigma, normalize)
    expected = reference.gradients.pair_lambdas([2.0**y - 1 for y in labels], scores, truncation, sigma, normalize)
    np.testing.assert_allclose(g, expected[0], rtol=1e-7, atol=1e-11)
    np.testing.assert_allclose(h, expected[1], rtol=1e-7, atol=1e-11)


@given(st.lists(st.tuples(grades, st.floats(-1e3, 1e3)), min_size=2, max_size=40), st.booleans())
def test_gradients_of_a_query_sum_to_exactly_zero(pairs: list[tuple[int, float]], normalize: bool) -> None:
    labels, scores = zip(*pairs, strict=True)
    g, h = lambdas(labels, scores, 5, 1.0, normalize)
    assert math.fsum(g) == 0 == g.sum() == g[::-1].sum()
    assert (h >= 0).all()


@given(st.lists(st.tuples(grades, steps), min_size=2, max_size=20))
def test_adding_a_constant_to_all_scores_changes_nothing(pairs: list[tuple[int, float]]) -> None:
    labels, scores = zip(*pairs, strict=True)
    g, h = lambdas(labels, scores)
    moved = lambdas(labels, np.array(scores) + 8.0)
    assert (g == moved[0]).all() and (h == moved[1]).all()


@given(st.permutations(range(9)))
def test_permuting_the_documents_permutes_the_gradients(places: list[int]) -> None:
    labels, scores = np.array([0, 1, 2, 3, 4, 0, 1, 2, 0.5]), np.linspace(-1, 1, 9) ** 3
    g, h = lambdas(labels, scores, 3, 1.0, True)
    moved = lambdas(labels[places], scores[places], 3, 1.0, True)
    np.testing.assert_allclose(moved[0], g[places], rtol=0, atol=1e-14)
    assert (moved[1] == h[places]).all()


@pytest.mark.parametrize("truncation", [0, 1, 2])
def test_the_swap_value_is_the_change_of_ndcg(truncation: int) -> None:
    for relevant in range(5):  # with one relevant document, each other one has a single pair, of rho 1/2
        labels = [3 if k == relevant else 0 for k in range(5)]
        g, _ = lambdas(labels, [0.0] * 5, truncation)
        for other in range(5):
            if other != relevant and min(other, relevant) < (truncation or 5):
                change = reference.measures.swapped_ndcg_change(
                    [2.0**y - 1 for y in labels], range(5), relevant, other, 0
                )
                assert g[other] == pytest.approx(change / 2, rel=1e-12)
            elif other != relevant:
                assert g[other] == 0


@pytest.mark.parametrize("labels", [[0, 0, 0], [2, 2], [5]])
def test_a_query_without_a_pair_gets_zeros(labels: list[int]) -> None:
    for normalize in (False, True):
        g, h = lambdas(labels, list(range(len(labels))), 0, 1.0, normalize)
        assert not g.any() and not h.any()


def test_worked_values_of_one_query() -> None:
    labels, scores = [3, 0, 2, 1, 0], [0.2, 1.0, -0.5, 0.7, 0.1]
    g, h = lambdas(labels, scores)
    expected = [-0.3496923338, 0.4397842532, -0.1931002127, 0.0618752249, 0.0411330685]
    np.testing.assert_allclose(g, expected, rtol=1e-8)
    np.testing.assert_allclose(h, [0.1229300232, 0.1185220259, 0.0523390170, 0.0433833642, 0.0209635880], rtol=1e-8)
    g, h = lambdas(labels, scores, 2, 2.0)
    np.testing.assert_allclose(g, [-0.7840888079, 1.1025924919, -0.4947283036, 0.1657996224, 0.0104249972], rtol=1e-8)
    g, h = lambdas(labels, scores, 30, 1.0, True)
    np.testing.assert_allclose(g, [-0.5479218571, 0.4088180644, -0.1081977625, 0.0411014248, 0.2062001304], rtol=1e-7)
    np.testing.assert_allclose(h, [0.2216985439, 0.1225279657, 0.0389498469, 0.0701564103, 0.1073993978], rtol=1e-7)


# What the tools and the paper give for one query, from their sources in exact arithmetic; XGBoost's hessians halved.
OF_OTHERS: dict[str, tuple[tuple[int, float, bool, str], list[float], list[float]]] = {
    "LightGBM, normalized": (
        (3, 1.0, True, "exp2"),
        [0.0733886658, 0.0875864657, -0.107638923, 0.288630693, 0.0745398025, -0.416506704],
        [0.0546855368, 0.0643109644, 0.0341144539, 0.170441274, 0.0789972657, 0.259509334],
    ),
    "LightGBM, sigma 2": (
        (3, 2.0, False, "exp2"),
        [0.0648793246, 0.0764057014, -0.217222928, 0.225778573, 0.0907033843, -0.240544056],
        [0.115544512, 0.134233468, 0.0665389176, 0.179499485, 0.156234071, 0.372757713],
    ),
    "LightGBM, all pairs": (
        (30, 2.0, True, "exp2"),
        [0.654915968, 0.294981042, -1.00613411, 0.279224604, 0.0649498305, -0.287937338],
        [0.663523126, 0.315182284, 0.911516934, 0.293926937, 0.116118473, 0.376228913],
    ),
    "XGBoost, normalized": (
        (3, 1.0, True, "exp2"),
        [0.0733886658, 0.0875864657, -0.107638923, 0.288630693, 0.0745398025, -0.416506704],
        [0.0546855368, 0.0643109644, 0.0341144539, 0.170441274, 0.0789972657, 0.259509334],
    ),
    "XGBoost, linear gain": (
        (3, 1.0, False, "linear"),
        [0.0904378663, 0.10492971, -0.0499934971, 0.0252519318, 0.0170274538, -0.187653465],
        [0.0683503546, 0.0785420475, 0.0145107114, 0.0528051557, 0.0385808564, 0.137242034],
    ),
    "Burges 2010": (
        (0, 1.0, False, "exp2"),
        [0.0969248291, 0.0967410612, -0.109088349, 0.0815297869, 0.053249062, -0.219356391],
        [0.0689363237, 0.0712069577, 0.0370176791, 0.0580110247, 0.0487365615, 0.156045251],
    ),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_gradients_of_other_tools_for_one_query(name: str) -> None:
    chosen, gradients, hessians = OF_OTHERS[name]
    g, h = lambdas([0, 0, 3, 2, 2, 3], [-0.51, -0.51, -0.53, 0.57, -0.06, 0.75], *chosen)
    np.testing.assert_allclose(g, gradients, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(h, hessians, rtol=1e-6, atol=1e-12)
    assert g.sum() == 0


@given(st.floats(0, 60))
def test_the_sigmoid_is_within_a_billionth(difference: float) -> None:
    # two documents in the wrong order: gradient = rho * delta
    g, _ = lambdas([0, 1], [difference, 0.0])
    delta = 1 - 1 / math.log2(3)
    assert g[0] / delta == pytest.approx(1 / (1 + math.exp(-difference)), abs=1e-9)
    g, _ = lambdas([1, 0], [difference, 0.0])
    assert -g[0] / delta == pytest.approx(1 / (1 + math.exp(difference)), abs=1e-9)


def test_extreme_scores_and_labels_stay_finite() -> None:
    g, h = lambdas([0, 1000, 1023, 5], [1e300, -1e300, 0.0, 1.0], 0, 1.0, True)
    assert np.isfinite(g).all() and np.isfinite(h).all() and g.sum() == 0
    g, h = lambdas([0, 1, 0], [5e-324, 0.0, -5e-324], 0, 1e6, True)
    assert np.isfinite(g).all() and g[1] < 0
