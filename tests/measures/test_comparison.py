"""Comparisons of systems: worked values, Holm, properties, queries that gained and lost."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import reference.resampling
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.measures.comparison import Comparison, System, compare, holm, paired_t
from lmart.measures.randomization import RandomizationTest
from lmart.measures.resampling import Resampling
from lmart.threads import WorkerPool

ONE = WorkerPool(1)
FEW = Resampling(resamples=500, flips=500)
A = [0.51, 0.62, 0.33, 0.78, 0.45, 0.90, 0.12, 0.57, 0.66, 0.41]
B = [0.48, 0.55, 0.35, 0.70, 0.40, 0.86, 0.10, 0.50, 0.69, 0.38]
NAN = math.nan


def system(name: str, *columns: list[float]) -> System:
    return System(name, {f"m{i}": np.array(column) for i, column in enumerate(columns)})


def one_pair(before: list[float], after: list[float], weights: list[float] | None = None) -> Comparison:
    given_weights = None if weights is None else np.array(weights)
    (found,) = compare([system("b", before), system("a", after)], given_weights, FEW, ONE)
    return found


def test_worked_values() -> None:
    found = one_pair(B, A)
    assert (found.measure, found.baseline, found.system) == ("m0", "b", "a")
    assert (found.queries, found.left_out, found.wins, found.ties, found.losses) == (10, 0, 8, 0, 2)
    assert found.difference == pytest.approx(0.034)
    assert (found.t, found.p_t) == pytest.approx((2.9154759474, 0.0171576592))
    assert found.randomization == RandomizationTest(30 / 1024, 1024, True)
    assert found.p_holm == 30 / 1024
    assert found.interval is not None
    assert found.interval == pytest.approx((0.011, 0.054), abs=0.003)
    assert [query for query, _ in found.gained] == [3, 1, 7, 4, 5]
    assert [query for query, _ in found.lost] == [8, 2]
    assert found.gained[0].difference == pytest.approx(0.08)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(*[st.integers(0, 10).map(lambda k: k / 10) | st.just(NAN)] * 2), min_size=1, max_size=30),
    st.booleans(),
)
def test_swapped_systems_change_signs_and_keep_p(pairs: list[tuple[float, float]], weighted: bool) -> None:
    before, after = ([pair[i] for pair in pairs] for i in range(2))
    weights = [0.5 + i % 3 for i in range(len(pairs))] if weighted else None
    there, back = one_pair(before, after, weights), one_pair(after, before, weights)
    assert (there.queries, there.left_out, there.ties) == (back.queries, back.left_out, back.ties)
    assert (there.wins, there.losses, there.randomization) == (back.losses, back.wins, back.randomization)
    assert (there.p_holm, there.p_t) == (back.p_holm, back.p_t)
    assert [query for query, _ in there.gained] == [query for query, _ in back.lost]
    if there.difference is None or back.difference is None:
        assert there.queries == 0
        return
    assert there.difference == -back.difference
    if there.interval is not None and back.interval is not None:
        low, high = back.interval
        assert there.interval == pytest.approx((-high, -low), abs=1e-12)


def test_a_system_is_no_better_than_itself() -> None:
    for queries in (A, [*A, *B, *A]):
        found = one_pair(queries, queries)
        assert found.randomization is not None
        assert (found.difference, found.interval, found.ties) == (0.0, (0.0, 0.0), len(queries))
        assert (found.randomization.p, found.p_t, found.p_holm, found.t) == (1.0, 1.0, 1.0, 0.0)
        assert found.gained == found.lost == ()


def test_rounding_is_a_tie() -> None:
    found = one_pair([0.3, 0.5], [0.1 + 0.2, 0.6])
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)


def test_queries_that_one_system_leaves_out_are_left_out_and_counted() -> None:
    found = one_pair([*B, NAN, 0.1, NAN], [*A, 0.9, NAN, NAN])
    assert (found.queries, found.left_out) == (10, 2)
    assert found == Comparison(**{**vars(one_pair(B, A)), "left_out": 2})


def test_too_few_queries_for_a_statement() -> None:
    none = one_pair([NAN, 0.5], [0.5, NAN])
    assert (none.queries, none.difference, none.interval, none.randomization, none.p_holm) == (
        0,
        None,
        None,
        None,
        None,
    )
    assert none.to_json(["1", "2"])["p_randomization"] is None
    one = one_pair([0.5], [0.7])
    assert one.randomization is not None
    assert (one.interval, one.t, one.randomization.p, one.wins) == (None, None, 1.0, 1)


def test_equal_weights_change_nothing_and_those_of_zero_leave_out() -> None:
    plain, weighted = one_pair(B, A), one_pair([*B, 0.0], [*A, 1.0], [0.25] * 10 + [0.0])
    assert weighted.difference == pytest.approx(plain.difference)
    assert weighted.interval == pytest.approx(plain.interval)
    assert (weighted.t, weighted.p_t) == pytest.approx((plain.t, plain.p_t))
    assert weighted.randomization == plain.randomization
    assert (weighted.queries, weighted.left_out) == (10, 0)


def test_a_weight_counts_in_means_and_tests() -> None:
    plain = one_pair([0.0, 0.0, 0.0], [0.3, -0.2, 0.1])
    found = one_pair([0.0, 0.0, 0.0], [0.3, -0.2, 0.1], [1.0, 4.0, 1.0])
    assert found.difference == pytest.approx(-0.4 / 6)
    assert found.randomization is not None
    assert plain.randomization is not None
    assert plain.randomization.p == 6 / 8  # 0.2 of 0.6, 0.4, 0.2 and 0
    assert found.randomization.p == 1.0  # 0.4 of 1.2, 1, 0.6 and 0.4


def test_holm_adjusts_over_the_systems_of_a_measure() -> None:
    rng = np.random.default_rng(0)
    base = rng.random((2, 40))
    systems = [system("base", *base.tolist())]
    systems += [system(f"s{k}", *(base + rng.normal(0.02 * k, 0.1, (2, 40))).tolist()) for k in range(3)]
    found = compare(systems, None, FEW, ONE)
    assert [(one.measure, one.baseline, one.system) for one in found] == [
        (measure, "base", name) for measure in ("m0", "m1") for name in ("s0", "s1", "s2")
    ]
    for three in (found[:3], found[3:]):
        assert [one.p_holm for one in three] == holm([one.randomization.p for one in three if one.randomization])
    pairs = compare(systems, None, FEW, ONE, all_pairs=True)
    assert len(pairs) == 2 * 6
    assert [(one.baseline, one.system) for one in pairs[:4]] == [
        ("base", "s0"), ("base", "s1"), ("base", "s2"), ("s0", "s1"),
    ]  # fmt: skip
    assert pairs[0].difference == found[0].difference


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.integers(0, 40).map(lambda k: k / 40), max_size=6))
def test_holm_is_that_of_its_steps(p_values: list[float]) -> None:
    assert holm(p_values) == reference.resampling.holm(p_values)


def test_t_of_equal_differences_is_infinite_and_json_stays_plain() -> None:
    found = one_pair([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])
    assert (found.t, found.p_t) == (math.inf, 0.0)
    content: dict[str, Any] = json.loads(json.dumps(found.to_json(["x", "y", "z"]), allow_nan=False))
    assert content["t"] is None
    assert content["gained"][0]["qid"] == "z"  # 0.4 - 0.3 is above 0.3 - 0.2 and 0.2 - 0.1 in floating point
    assert content["p_randomization"] == 0.25
    assert set(content) == {
        "measure", "baseline", "system", "queries", "left_out", "difference", "interval", "wins", "ties", "losses",
        "p_randomization", "flips", "exact", "t", "p_t", "p_holm", "gained", "lost",
    }  # fmt: skip


def test_large_values_do_not_overflow() -> None:
    before, after = [1e308, 1e307, 3e307], [1.5e308, 2e307, 1e307]
    large, small = one_pair(before, after), one_pair([v / 1e308 for v in before], [v / 1e308 for v in after])
    assert large.difference == pytest.approx((small.difference or 0.0) * 1e308)
    assert large.t == pytest.approx(small.t)
    assert large.randomization == small.randomization


def test_any_number_of_threads_gives_the_same_comparison() -> None:
    rng = np.random.default_rng(3)
    a = rng.random(600)
    systems = [System("a", {"m": a}), System("b", {"m": a + rng.normal(0, 0.2, 600)})]
    found = []
    for threads in (1, 2, 3, 7):
        with WorkerPool(threads) as pool:
            found.append(compare(systems, None, Resampling(resamples=3000, flips=9000), pool))
    assert all(one == found[0] for one in found)


@pytest.mark.peers
def test_t_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    for n in (2, 3, 10, 199, 200, 203, 5000):
        a, b = rng.random(n), rng.random(n)
        theirs = stats.ttest_rel(a, b)
        assert paired_t(a - b, None) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)
