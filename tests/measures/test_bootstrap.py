"""Bootstrap intervals: the twin, planted values, no influence of threads."""

from __future__ import annotations

import numpy as np
import pytest
import reference.random_numbers
import reference.resampling
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.measures.bootstrap import bootstrap_intervals, quantile
from lmart.measures.resampling import Resampling
from lmart.threads import WorkerPool

ONE = WorkerPool(1)
A = [0.51, 0.62, 0.33, 0.78, 0.45, 0.90, 0.12, 0.57, 0.66, 0.41]
B = [0.48, 0.55, 0.35, 0.70, 0.40, 0.86, 0.10, 0.50, 0.69, 0.38]


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.01, 4.0)), min_size=1, max_size=12),
    st.integers(0, 2**63 - 1),
    st.booleans(),
)
def test_intervals_are_those_of_the_twin(pairs: list[tuple[float, float]], seed: int, weighted: bool) -> None:
    values, weights = ([pair[i] for pair in pairs] for i in range(2))
    if not weighted:
        weights = [1.0] * len(values)
    means = reference.resampling.weighted_means(values, weights, reference.random_numbers.mix(seed), 21)
    given_weights = np.array(weights) if weighted else None
    (low, high), (low_of_minus, high_of_minus) = bootstrap_intervals(
        [np.array(values), -np.array(values)], given_weights, Resampling(seed, 0.9, 21), ONE
    )
    close = max(map(abs, values)) * 1e-12
    assert [low, high] == pytest.approx([means[1], means[19]], abs=close)  # 21 means: one is below 0.05
    assert [low_of_minus, high_of_minus] == pytest.approx([-high, -low], abs=close)


def test_worked_interval() -> None:
    # numpy's own draws give 0.011 to 0.054.
    differences = np.array(A) - np.array(B)
    low, high = bootstrap_intervals([differences], None, Resampling(), ONE)[0]
    assert (low, high) == pytest.approx((0.011, 0.054), abs=0.0015)


def test_interval_is_that_of_the_normal_distribution_for_many_queries() -> None:
    values = np.random.default_rng(0).random(3000)
    low, high = bootstrap_intervals([values], None, Resampling(level=0.9), ONE)[0]
    margin = 1.6449 * values.std() / np.sqrt(3000)
    assert (low, high) == pytest.approx((values.mean() - margin, values.mean() + margin), abs=0.04 * margin)


def test_equal_weights_and_large_values_change_nothing() -> None:
    values = np.array(A)
    plain = bootstrap_intervals([values], None, Resampling(), ONE)[0]
    assert bootstrap_intervals([values], np.full(10, 0.25), Resampling(), ONE)[0] == pytest.approx(plain, rel=1e-14)
    large = bootstrap_intervals([np.ldexp(values, 1020)], None, Resampling(), ONE)[0]
    assert large == (np.ldexp(plain[0], 1020), np.ldexp(plain[1], 1020))
    small = bootstrap_intervals([np.ldexp(values, -900)], None, Resampling(), ONE)[0]
    assert small == (np.ldexp(plain[0], -900), np.ldexp(plain[1], -900))
    assert bootstrap_intervals([np.zeros(4)], None, Resampling(), ONE) == [(0.0, 0.0)]
    assert bootstrap_intervals([np.full(7, 0.1)], None, Resampling(), ONE) == [(0.1, 0.1)]


def test_any_number_of_threads_gives_the_same_digits() -> None:
    values = np.random.default_rng(1).random((3, 5000))
    found = set()
    for threads in (1, 2, 3, 7):
        with WorkerPool(threads) as pool:
            found.add(tuple(bootstrap_intervals(list(values), None, Resampling(5, 0.95, 2000), pool)))
    assert len(found) == 1


def test_seeds_and_levels_count() -> None:
    values = [np.array(A)]
    plain = bootstrap_intervals(values, None, Resampling(), ONE)
    assert plain == bootstrap_intervals(values, None, Resampling(), ONE)
    assert plain != bootstrap_intervals(values, None, Resampling(seed=1), ONE)
    low, high = bootstrap_intervals(values, None, Resampling(level=0.5), ONE)[0]
    assert plain[0][0] < low < high < plain[0][1]


def test_quantiles_lie_on_lines_between_values() -> None:
    assert [quantile([1.0, 2.0, 4.0], share) for share in (0, 0.25, 0.5, 0.75, 1)] == [1.0, 1.5, 2.0, 3.0, 4.0]
    assert quantile([3.0], 0.975) == 3.0


@pytest.mark.peers
def test_intervals_agree_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(2).beta(2, 5, 60)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    ours = bootstrap_intervals([values], None, Resampling(resamples=20_000), ONE)[0]
    spread = values.std() / np.sqrt(60)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.1 * spread)
