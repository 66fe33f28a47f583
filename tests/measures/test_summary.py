"""Summaries of values by query."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.measures.bootstrap import bootstrap_intervals
from lmart.measures.resampling import Resampling
from lmart.measures.summary import (
    Summary,
    counted_values,
    histogram,
    standard_deviation,
    summarize,
    value_range,
    weighted_median,
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
