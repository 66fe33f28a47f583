"""Comparisons of systems and their tests, against definitions and by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference.resampling
from hypothesis import given
from hypothesis import strategies as st

from lmart.measures import Evaluator, parse_measures
from lmart.measures.comparing import (
    Comparison,
    RandomizationTest,
    System,
    compare,
    holm,
    paired_t,
    randomization_test,
    statistics_of,
)
from lmart.measures.judgments import Judgments
from lmart.measures.resampling import Resampling
from lmart.measures.results import EvaluationResult, SystemEvaluation
from lmart.measures.summary import summarize
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


DIFFERENCES = np.array(A) - np.array(B)
TENTHS = st.integers(-10, 10).map(lambda k: k / 10)


def test_worked_value() -> None:
    assert randomization_test(DIFFERENCES, Resampling(), ONE) == (30 / 1024, 1024, True)


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


FEWER = Resampling(3, 0.9, 100, 200)


def evaluated(n_systems: int, weights: np.typing.NDArray[np.float64] | None = None) -> EvaluationResult:
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 241, 8)
    labels = rng.integers(0, 3, 240).astype(np.float64)
    evaluator = Evaluator(Judgments(labels, offsets), parse_measures("ndcg@5,map"), weights=weights)
    reports = [evaluator.evaluate(labels + rng.normal(0, 2, 240)) for _ in range(n_systems)]
    systems = tuple(SystemEvaluation(f"s{i}", "scores", f"s{i}.txt", one) for i, one in enumerate(reports))
    return EvaluationResult([f"q{q}" for q in range(30)], systems, ("d.svm",), weights=weights)


def test_one_system_has_a_summary_and_no_comparison() -> None:
    result = evaluated(1)
    found = statistics_of(result, FEWER, ONE)
    report = result.systems[0].report
    assert found.summaries == (summarize(report.per_query, report.values, None, FEWER, ONE),)
    assert found.comparisons == ()
    content = result.to_json()
    found.add_to(content, result)
    assert content["resampling"] == {"seed": 3, "level": 0.9, "resamples": 100}
    assert "comparisons" not in content
    assert content["systems"][0]["summary"]["map"] == found.summaries[0]["map"].to_json()


def test_several_systems_are_compared_unless_not_asked_for() -> None:
    result = evaluated(3)
    systems = [System(one.name, one.report.per_query) for one in result.systems]
    found = statistics_of(result, FEWER, ONE)
    assert found.comparisons == compare(systems, None, FEWER, ONE)
    content = result.to_json()
    found.add_to(content, result)
    assert content["resampling"]["flips"] == 200
    assert [one["system"] for one in content["comparisons"]] == ["s1", "s2", "s1", "s2"]
    assert all(one["qid"].startswith("q") for one in content["comparisons"][0]["gained"])
    assert statistics_of(result, FEWER, ONE, compared=False).comparisons == ()
    assert len(statistics_of(result, FEWER, ONE, all_pairs=True).comparisons) == 6


def test_the_size_of_weights_does_not_count() -> None:
    weights = np.random.default_rng(1).random(30)
    result = evaluated(2, weights)
    found = statistics_of(result, FEWER, ONE)
    large = statistics_of(replace(result, weights=weights * 2.0**900), FEWER, ONE)
    assert large == found
    plain = statistics_of(evaluated(2), FEWER, ONE)
    assert found.comparisons[0].difference != pytest.approx(plain.comparisons[0].difference, abs=1e-6)
    assert found.summaries[0]["map"].mean == result.systems[0].report.values["map"]
