"""Summaries of values by query, and bootstrap intervals, against definitions."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
import reference.random_numbers
import reference.resampling
from hypothesis import given
from hypothesis import strategies as st

from lmart.measures.resampling import Resampling
from lmart.measures.summary import (
    BITS,
    Summary,
    bootstrap_intervals,
    counted_values,
    histogram,
    quantile,
    standard_deviation,
    summarize,
    value_range,
    weighted_median,
    whole_numbers,
)
from lmart.threads import WorkerPool

ONE = WorkerPool(1)
NAN = math.nan
FEW = Resampling(resamples=200)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_median_and_standard_deviation_are_those_of_the_standard_library(values: list[float]) -> None:
    every = np.array(values)
    assert weighted_median(every, None) == pytest.approx(statistics.median(values), abs=1e-12)
    spread = standard_deviation(every, None, math.fsum(values) / len(values))
    if len(values) == 1:
        assert spread is None
    else:
        assert spread == pytest.approx(statistics.stdev(values), abs=1e-9)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=10))
def test_a_whole_weight_is_so_many_queries_to_the_median(pairs: list[tuple[int, int]]) -> None:
    repeated = [value for value, weight in pairs for _ in range(weight)]
    values, weights = (np.array([pair[i] for pair in pairs], float) for i in range(2))
    assert weighted_median(values, weights) == statistics.median(repeated)


def test_standard_deviation_with_weights_by_hand() -> None:
    # Mean 2; squares 4 and 1 of weights 1 and 4: 8 / 5 of two queries.
    values = np.array([4.0, 1.5])
    assert standard_deviation(values, np.array([1.0, 4.0]), 2.0) == pytest.approx(math.sqrt((4 + 4 * 0.25) / 5 * 2))
    assert standard_deviation(np.array([1e300, 3e300]), None, 2e300) == pytest.approx(math.sqrt(2) * 1e300)


def test_a_summary_is_of_the_queries_that_count() -> None:
    per_query = {"ndcg": np.array([0.2, NAN, 0.6, 0.7]), "dcg": np.array([1.0, 0.0, 2.0, 9.0]), "map": np.full(4, NAN)}
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    found = summarize(per_query, {"ndcg": 0.4, "dcg": 1.0, "map": None}, weights, FEW, ONE)
    values = np.array([0.2, 0.6])
    interval = bootstrap_intervals([values], np.ones(2), FEW, ONE)[0]
    assert found["ndcg"] == Summary(0.4, 0.4, 2, found["ndcg"].std, interval)
    assert found["ndcg"].std == pytest.approx(0.08**0.5)
    assert (found["dcg"].count, found["dcg"].median) == (3, 1.0)
    assert found["map"] == Summary(None, None, 0, None, None)
    assert found["ndcg"].to_json()["interval"] == list(interval)
    assert found["map"].to_json() == {"mean": None, "median": None, "count": 0, "std": None, "interval": None}


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 0.7, 1e-9, 1e9])
@pytest.mark.parametrize("n", [1, 2, 6, 9, 10, 12, 58])
def test_equal_weights_leave_the_median_where_it_is(weight: float, n: int) -> None:
    values = np.arange(float(n))
    assert weighted_median(values, np.full(n, weight)) == weighted_median(values, None) == (n - 1) / 2


def test_a_single_query_has_no_interval() -> None:
    found = summarize({"p": np.array([0.5, NAN])}, {"p": 0.5}, None, FEW, ONE)
    assert found == {"p": Summary(0.5, 0.5, 1, None, None)}


def test_measures_of_the_same_queries_share_the_draws() -> None:
    a = np.random.default_rng(0).random(40)
    found = summarize({"a": a, "half": a / 2}, {"a": 0.5, "half": 0.25}, None, FEW, ONE)
    low, high = found["a"].interval or (NAN, NAN)
    assert found["half"].interval == (low / 2, high / 2)


def test_histograms_by_hand() -> None:
    values = np.array([0.0, 0.05, 0.1, 0.95, 1.0, NAN, 0.5])
    assert histogram(values, 0.0, 1.0, 10).tolist() == [2, 1, 0, 0, 0, 1, 0, 0, 0, 2]
    assert histogram(np.array([]), 0.0, 1.0, 2).tolist() == [0, 0]


def test_ranges_by_hand() -> None:
    assert value_range(np.array([NAN, 0.2])) == value_range(np.array([NAN])) == value_range(np.array([])) == (0.0, 1.0)
    assert value_range(np.array([-0.5, 0.5])) == (-1.0, 1.0)
    assert value_range(np.array([3.5, 0.5])) == (0.0, 3.5)


def test_queries_without_weight_do_not_count() -> None:
    values = np.array([0.5, NAN, 0.25])
    assert counted_values(values, None).tolist() == [0.5, 0.25]
    assert counted_values(values, np.array([0.0, 1.0, 2.0])).tolist() == [0.25]


A = [0.51, 0.62, 0.33, 0.78, 0.45, 0.90, 0.12, 0.57, 0.66, 0.41]
B = [0.48, 0.55, 0.35, 0.70, 0.40, 0.86, 0.10, 0.50, 0.69, 0.38]


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
    close = max(max(map(abs, values)) * 1e-12, 1e-300)  # the smallest numbers have no digits to spare
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


VALUES = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=12)


@given(VALUES, st.booleans())
def test_values_are_rounded_to_the_unit_and_sums_fit(values: list[float], bound_sum: bool) -> None:
    whole, exponent = whole_numbers(np.array(values), bound_sum)
    unit = Fraction(2) ** exponent
    for value, number in zip(values, whole.tolist(), strict=True):
        assert abs(Fraction(value) - number * unit) <= unit / 2
    absolute = [abs(number) for number in whole.tolist()]
    assert max(absolute, default=0) <= 2**BITS
    if bound_sum:
        assert sum(absolute) <= 2**BITS + len(values)


def test_short_numbers_are_exact_at_any_size() -> None:
    for scale in (-1000, 0, 900):
        values = np.ldexp(np.array([0.5, -3.25, 1024.0]), scale)
        whole, exponent = whole_numbers(values, bound_sum=True)
        assert [math.ldexp(number, exponent) for number in whole.tolist()] == values.tolist()
    assert whole_numbers(np.zeros(3), True)[0].tolist() == [0, 0, 0]
    assert whole_numbers(np.array([]), True)[0].tolist() == []


def test_the_summary_of_a_geometric_mean_is_that_of_the_values() -> None:
    logarithms = np.log([0.5, 0.125, 0.25])
    mean = float(np.exp(logarithms.mean()))
    with WorkerPool(1) as pool:
        (made,) = summarize({"gmap": logarithms}, {"gmap": mean}, None, Resampling(), pool).values()
        (plain,) = summarize({"map": logarithms}, {"map": float(logarithms.mean())}, None, Resampling(), pool).values()
    assert made.mean == mean and made.interval is not None and plain.interval is not None
    assert (made.median, made.std) == pytest.approx((0.25, plain.std))
    assert made.interval == pytest.approx(tuple(np.exp(plain.interval)))
