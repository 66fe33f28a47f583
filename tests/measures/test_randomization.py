"""Fisher's randomization test: all sign vectors by the twin, planted values, no influence of threads."""

from __future__ import annotations

import numpy as np
import pytest
import reference.resampling
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.measures.randomization import randomization_test
from lmart.measures.resampling import Resampling
from lmart.threads import WorkerPool

ONE = WorkerPool(1)
A = np.array([0.51, 0.62, 0.33, 0.78, 0.45, 0.90, 0.12, 0.57, 0.66, 0.41])
B = np.array([0.48, 0.55, 0.35, 0.70, 0.40, 0.86, 0.10, 0.50, 0.69, 0.38])
TENTHS = st.integers(-10, 10).map(lambda k: k / 10)


def test_worked_value() -> None:
    assert randomization_test(A - B, Resampling(), ONE) == (30 / 1024, 1024, True)


@settings(max_examples=60)
@given(st.lists(TENTHS | st.floats(-1, 1), max_size=9))
def test_p_of_all_sign_vectors_is_that_of_the_twin(differences: list[float]) -> None:
    assert randomization_test(np.array(differences), Resampling(), ONE).p == reference.resampling.exact_p(differences)


@given(st.lists(TENTHS, max_size=30), st.integers(0, 5))
def test_neither_the_sign_nor_ties_nor_the_unit_change_p(differences: list[float], seed: int) -> None:
    resampling = Resampling(seed, flips=300)
    d = np.array(differences)
    found = randomization_test(d, resampling, ONE)
    assert 0 < found.p <= 1
    assert randomization_test(-d, resampling, ONE) == found
    assert randomization_test(np.concatenate([[0.0], d, [0.0, 0.0]]), resampling, ONE) == found
    assert randomization_test(np.ldexp(d, 1000), resampling, ONE) == found
    assert randomization_test(np.ldexp(d, -900), resampling, ONE) == found


def test_no_difference_is_no_evidence() -> None:
    assert randomization_test(np.zeros(30), Resampling(), ONE).p == 1.0
    # In floating point 0.1 + 0.2 - 0.3 is above 0.
    assert randomization_test(np.array([0.1, 0.2, -0.3]), Resampling(), ONE).p == 1.0
    assert randomization_test(np.array([0.1, 0.2, -0.3] * 10), Resampling(), ONE).p == 1.0


def test_all_sign_vectors_up_to_twenty_that_differ() -> None:
    assert randomization_test(np.full(20, 0.1), Resampling(), ONE) == (2 / 2**20, 2**20, True)
    assert randomization_test(np.full(21, 0.1), Resampling(flips=99), ONE) == (1 / 100, 99, False)


def test_drawn_signs_come_near_to_all_of_them() -> None:
    d = np.random.default_rng(0).normal(0.2, 1, 26)
    every = randomization_test(d[:20], Resampling(), ONE).p
    # Six pairs of tiny opposite differences make the test draw, and change the sums by nothing that counts.
    drawn = randomization_test(np.concatenate([d[:20], [1e-9] * 6]), Resampling(flips=200_000), ONE)
    assert not drawn.exact
    assert drawn.p == pytest.approx(every, abs=5 * np.sqrt(every / 200_000))


def test_a_planted_difference_is_found_and_chance_is_not() -> None:
    noise = np.random.default_rng(1).normal(0, 1, 500)
    assert randomization_test(noise - noise.mean() + 0.2, Resampling(flips=9999), ONE).p < 0.001
    assert randomization_test(noise - noise.mean() + 0.02, Resampling(flips=9999), ONE).p > 0.3


def test_any_number_of_threads_gives_the_same_p() -> None:
    d = np.random.default_rng(2).normal(0.05, 1, 777)
    found = set()
    for threads in (1, 2, 3, 7):
        with WorkerPool(threads) as pool:
            found.add(randomization_test(d, Resampling(4, flips=20_001), pool))
    assert len(found) == 1
    assert found != {randomization_test(d, Resampling(5, flips=20_001), ONE)}


@pytest.mark.peers
@pytest.mark.parametrize("n", [3, 8, 12])
def test_p_of_all_sign_vectors_is_that_of_scipy(n: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    test = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    assert randomization_test(a - b, Resampling(), ONE).p == pytest.approx(test.pvalue, rel=1e-12)
