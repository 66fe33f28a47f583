"""Measures: worked values, conventions, properties, and other tools' answers."""

from __future__ import annotations

import doctest
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference.measures
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import DataError
from lmart.gains import Gain
from lmart.measures import Conventions, Evaluator, evaluation, parse_measures
from lmart.measures.judgments import Judgments, docid_order
from lmart.threads import WorkerPool

EVERYTHING = "ndcg,ndcg@1,ndcg@3,dcg,dcg@2,map,map@2,mrr,mrr@2,p@1,p@3,recall@2,err,err@3,rbp,rbp(0.95)@4"


def evaluate(
    metric: str,
    labels: Sequence[float],
    scores: Sequence[float],
    sizes: Sequence[int] | None = None,
    weights: Any = None,
    **conventions: Any,
) -> dict[str, float | None]:
    measures = parse_measures(metric, Conventions(**conventions))
    offsets = np.cumsum([0, *(sizes or [len(labels)])])
    weights = None if weights is None else np.array(weights, float)
    return (
        Evaluator(Judgments(np.array(labels, float), offsets), measures, weights=weights)
        .evaluate(np.array(scores, float))
        .values
    )


def in_order(metric: str, *queries: list[float], **conventions: Any) -> float | None:
    """One measure of queries whose labels are given in ranked order."""
    labels = [label for query in queries for label in query]
    (value,) = evaluate(
        metric, labels, [-float(i) for i in range(len(labels))], [len(query) for query in queries], **conventions
    ).values()
    return value


# ---- worked values: ranked labels 1 3 0 2 0, as labels 3 0 2 1 0 with three documents tied

LABELS = [3, 0, 2, 1, 0]
SCORES = [0.5, 0.5, 0.5, 0.9, 0.1]


@pytest.mark.parametrize(
    ("metric", "gain", "value"),
    [
        ("ndcg@1", "exp2", 0.1428571429), ("ndcg@2", "exp2", 0.6090899173), ("ndcg@3", "exp2", 0.5766666455),
        ("ndcg@4", "exp2", 0.7142221297), ("ndcg@5", "exp2", 0.7142221297), ("ndcg@99", "exp2", 0.7142221297),
        ("ndcg", "exp2", 0.7142221297), ("dcg@5", "exp2", 6.7085379492), ("dcg", "exp2", 6.7085379492),
        ("ndcg@1", "linear", 0.3333333333), ("ndcg@2", "linear", 0.6787622295), ("ndcg@3", "linear", 0.6074915180),
        ("ndcg@4", "linear", 0.7883773915), ("ndcg@3", "0,1,3,7", 0.5766666455), ("ndcg@3", "0,1,2,3", 0.6074915180),
        ("map", "exp2", 0.9166666667), ("map@2", "exp2", 0.6666666667), ("map@3", "exp2", 0.6666666667),
        ("mrr", "exp2", 1.0), ("p@3", "exp2", 2 / 3), ("p@10", "exp2", 0.3), ("recall@3", "exp2", 2 / 3),
        ("recall@10", "exp2", 1.0), ("rbp", "exp2", 0.4624), ("rbp(0.95)", "exp2", 0.14036875),
        ("err", "exp2", 0.2922973633), ("err@3", "exp2", 0.2675781250), ("err", "linear", 0.2922973633),
    ],
)  # fmt: skip
def test_worked_values(metric: str, gain: str, value: float) -> None:
    (got,) = evaluate(metric, LABELS, SCORES, gain=Gain.parse(gain)).values()
    assert got == pytest.approx(value, abs=6e-11)


@pytest.mark.parametrize(
    ("metric", "gain", "value"),
    [("ndcg@3", "linear", 0.6058311713), ("ndcg@3", "exp2", 0.5078114405), ("ndcg", "linear", 0.7565693991),
     ("ndcg", "exp2", 0.6606508674)],
)  # fmt: skip
def test_worked_values_with_ties_averaged(metric: str, gain: str, value: float) -> None:
    (got,) = evaluate(metric, LABELS, SCORES, gain=Gain.parse(gain), ties="average").values()
    assert got == pytest.approx(value, abs=6e-11)


def test_what_lightgbm_and_xgboost_print_with_a_query_without_relevant_documents() -> None:
    both: dict[str, Any] = {"labels": [*LABELS, 0, 0, 0], "scores": [*SCORES, 1, 2, 3], "sizes": [5, 3]}
    one = evaluate("ndcg@1,ndcg@3,ndcg@10,map", **both, empty="one")
    assert list(one.values()) == pytest.approx([0.5714285714, 0.7883333228, 0.8571110648, 0.9583333333], abs=6e-11)
    zero = evaluate("ndcg,ndcg@3,map,p@3", **both)
    assert list(zero.values()) == pytest.approx([0.3571110648, 0.2883333228, 0.4583333333, 0.3333333333], abs=6e-11)


def test_what_trec_eval_prints() -> None:
    # judged but not retrieved documents stand at the end
    labels, scores = [3, 0, 2, 1, 2, 0], [2, 3, 4, 5, -1, 1]
    values = evaluate("map@5,p@3,recall@5,mrr,ndcg@1,ndcg@3,ndcg@5", labels, scores, gain=Gain("linear"))
    assert list(values.values()) == pytest.approx([0.6875, 0.6667, 0.75, 1, 0.3333, 0.4299, 0.6243], abs=5e-5)
    assert evaluate("ndcg@5", labels, scores)["ndcg@5"] == pytest.approx(0.5458, abs=5e-5)


def test_what_ranklib_prints_for_tied_documents() -> None:
    values = evaluate("ndcg@10,map,err@10,mrr@10", [0, 3, 1, 2], [1, 1, 1, 1])
    assert list(values.values()) == pytest.approx([0.6609898058, 0.6388888889, 0.2551879883, 0.5], abs=6e-11)


def test_err_takes_its_scale_from_labels_above_four() -> None:
    assert in_order("err", [3]) == 7 / 16
    assert in_order("err", [6, 3]) == pytest.approx(63 / 64 + 1 / 64 * 7 / 64 / 2)
    assert in_order("err", [4.5]) == pytest.approx((2**4.5 - 1) / 32, rel=1e-14)
    assert in_order("err", [5000, 0]) == 1.0


# ---- conventions, by worked values


@pytest.mark.parametrize(("empty", "value"), [("skip", 0.815465), ("one", 0.876977), ("zero", 0.543643)])
def test_queries_with_nothing_relevant(empty: str, value: float) -> None:
    assert in_order("ndcg", [0, 1], [1, 0], [0, 0], empty=empty) == pytest.approx(value, abs=5e-7)


def test_no_query_counts() -> None:
    for empty, value in (("zero", 0.0), ("one", 1.0), ("skip", None)):
        values = evaluate(EVERYTHING, [0, 0, 0], [1, 2, 3], [1, 2], empty=empty)
        assert {v for name, v in values.items() if not name.startswith("dcg")} == {value}
        assert values["dcg"] == 0.0


@pytest.mark.parametrize(
    ("labels", "scores", "given", "average"),
    [([0, 0, 1], [0, 0, 0], 0.5, 0.710310), ([2, 0, 1], [5, 5, 1], 0.963940, 0.811471)],
)
def test_ties(labels: list[float], scores: list[float], given: float, average: float) -> None:
    assert evaluate("ndcg", labels, scores)["ndcg"] == pytest.approx(given, abs=5e-7)
    assert evaluate("ndcg", labels, scores, ties="average")["ndcg"] == pytest.approx(average, abs=5e-7)


def test_negative_zero_is_tied_with_zero() -> None:
    assert evaluate("ndcg", [0, 1], [-0.0, 0.0])["ndcg"] == pytest.approx(0.630930, abs=5e-7)


def test_cutoffs_beyond_the_list_and_single_documents() -> None:
    assert in_order("ndcg@10", [0, 1]) == pytest.approx(0.630930, abs=5e-7)
    assert in_order("ndcg@5", [1]) == 1.0
    assert in_order("ndcg@2147483647", [1]) == 1.0


def test_each_value_stands_by_its_own_cutoff() -> None:
    wanted = {"ndcg@1": 0.333333, "ndcg@2": 0.275412, "ndcg@4": 0.631251}
    for metric in ("ndcg@4,ndcg@1,ndcg@2", "ndcg@1,ndcg@2,ndcg@4"):
        values = evaluate(metric, [1, 0, 0, 2], [4, 3, 2, 1])
        assert list(values) == metric.split(",")
        assert values == pytest.approx(wanted, abs=5e-7)


def test_gains() -> None:
    assert in_order("ndcg@3", [0, 1, 2]) == pytest.approx(0.586883, abs=5e-7)
    assert in_order("ndcg@3", [0, 1, 2], gain=Gain("linear")) == pytest.approx(0.619906, abs=5e-7)


def test_labels_of_any_size() -> None:
    assert in_order("ndcg", [0, 72]) == pytest.approx(0.630930, abs=5e-7)
    assert in_order("ndcg", [0, 5000, 3]) == pytest.approx(0.630930, abs=5e-7)
    assert in_order("ndcg", [0, 0.5]) == pytest.approx(0.630930, abs=5e-7)
    assert in_order("dcg", [0, 1000]) == pytest.approx(2.0**1000 / math.log2(3))
    with pytest.raises(DataError, match="label 1100"):
        in_order("dcg", [0, 1100])
    assert in_order("ndcg", [0, 1e300]) == pytest.approx(0.630930, abs=5e-7)
    with pytest.raises(DataError, match=r"label 1e\+300"):
        in_order("dcg", [0, 1e300])


def test_the_mean_of_enormous_dcgs() -> None:
    assert in_order("dcg@1", [1023], [1023], [1023]) == 2.0**1023


def test_queries_count_alike_unless_weighted() -> None:
    big = [1.0] * 50 + [0.0] * 50
    labels, scores, sizes = [0, 1, *big], [-float(i) for i in range(102)], [2, 100]
    assert evaluate("ndcg", labels, scores, sizes)["ndcg"] == pytest.approx(0.815465, abs=5e-7)
    assert evaluate("ndcg", labels, scores, sizes, weights=[3, 1])["ndcg"] == pytest.approx(0.723197, abs=5e-7)
    by_row = [2, 4] + [1] * 100
    assert evaluate("ndcg", labels, scores, sizes, weights=by_row)["ndcg"] == pytest.approx(0.723197, abs=5e-7)
    huge = evaluate("ndcg", labels, scores, sizes, weights=[1.5e308, 0.5e308])["ndcg"]
    assert huge == pytest.approx(0.723197, abs=5e-7)


def test_weights_that_leave_nothing() -> None:
    assert evaluate("ndcg", [0, 1, 0, 0], [1, 2, 3, 4], [2, 2], weights=[0, 5], empty="skip")["ndcg"] is None
    assert evaluate("ndcg", [0, 1, 0, 0], [1, 2, 3, 4], [2, 2], weights=[0, 0])["ndcg"] is None


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, 1], "3 weights, but 2 queries and 4 documents"),
        ([1, -1], "weight 2 is -1.0"),
        ([math.nan, 1], "weight 1 is nan"),
    ],
)
def test_wrong_weights(weights: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate("ndcg", [0, 1, 0, 1], [1, 2, 3, 4], [2, 2], weights=weights)


def test_a_gain_table_that_is_too_short_matters_to_dcg_only() -> None:
    table = Gain.parse("0,1,3")
    with pytest.raises(DataError, match="label 3"):
        evaluate("map,ndcg", LABELS, SCORES, gain=table)
    assert evaluate("map", LABELS, SCORES, gain=table)["map"] == pytest.approx(11 / 12)


def test_relevant_documents_that_are_worth_nothing() -> None:
    table = Gain.parse("0,0,1")
    assert in_order("ndcg", [1, 0], [2, 0], gain=table) == 0.5
    assert in_order("ndcg", [1, 0], [2, 0], gain=table, empty="skip") == 1.0
    assert in_order("map", [0, 1], [0, 2], gain=table, empty="skip") == 0.5


def test_a_table_in_which_irrelevant_documents_are_worth_something() -> None:
    assert in_order("ndcg", [0, 0], gain=Gain.parse("1,2")) == 0.0
    assert in_order("ndcg", [0, 1], gain=Gain.parse("2,1")) == 1.0


# ---- judged or not, retrieved or not


def trec(metric: str, gain: str = "exp2", **arrays: Any) -> dict[str, float | None]:
    """One query: d0 3 not retrieved, d1 unjudged on top, d2 0, d3 2, d4 unjudged with a label that must not matter."""
    labels = np.array([3.0, 0.0, 0.0, 2.0, 9.0])
    given: dict[str, Any] = {
        "judged": np.array([True, False, True, True, False]),
        "retrieved": np.array([False, True, True, True, True]),
    }
    measures = parse_measures(metric, Conventions(Gain.parse(gain)))
    evaluator = Evaluator(Judgments(labels, np.array([0, 5]), **given | arrays), measures)
    return evaluator.evaluate(np.array([np.nan, 5.0, 4.0, 3.0, 3.0])).values


def test_unjudged_and_unretrieved_documents() -> None:
    """By hand: ranked d1 (unjudged), d2 (0), d3 (2), d4 (unjudged)."""
    values = trec("map,recall@9,p@2,mrr,judged,judged@1,judged@2,judged@9,bpref,ndcg,err,kendall,p@3(rel=3),map(rel=3)")
    ideal = 7 + 3 / math.log2(3)
    wanted = [1 / 6, 0.5, 0, 1 / 3, 0.5, 0, 0.5, 0.5, 0.0, 3 / 2 / ideal, 3 / 16 / 3, -1.0, 0, 0]
    assert list(values.values()) == pytest.approx(wanted, rel=1e-15)
    assert trec("judged@3", judged=None, retrieved=np.array([False, True, True, True, True]))["judged@3"] == 1.0


def test_an_unjudged_document_has_no_gain_where_label_0_has_one() -> None:
    values = trec("ndcg,dcg", gain="0.5,1,2,3")
    dcg, ideal = 0.5 / math.log2(3) + 2 / 2, 3 + 2 / math.log2(3) + 0.5 / 2
    assert values == pytest.approx({"ndcg": dcg / ideal, "dcg": dcg}, rel=1e-15)


def test_equal_scores_stand_in_the_tie_order() -> None:
    labels, offsets, scores = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 3, 4]), np.array([1.0, 1.0, 1.0, 1.0])
    for places, rank in (([0, 1, 2], 2), ([5, 4, 3], 2), ([1, 0, 2], 1), ([0, 7, 3], 3)):
        order = np.array([*places, 0])
        report = Evaluator(Judgments(labels, offsets, tie_order=order), parse_measures("mrr")).evaluate(scores)
        assert report.per_query["mrr"].tolist() == [1 / rank, 1.0]
        backward = parse_measures("mrr", Conventions(ties="reverse"))
        report = Evaluator(Judgments(labels, offsets, tie_order=order), backward).evaluate(scores)
        assert report.per_query["mrr"].tolist() == [1 / (4 - rank), 1.0]
    assert evaluate("mrr", [1, 0, 0], [1, 1, 0], ties="reverse") == {"mrr": 0.5}
    ids = ["a10", "a9", "b", "x"]
    assert docid_order(ids, offsets).tolist() == [2, 1, 0, 0]
    with pytest.raises(ValueError, match="tie_order"):
        evaluate("mrr", [1, 0], [1, 1], ties="docid")
    with pytest.raises(ValueError, match="judged has 2 entries for 4 documents"):
        Evaluator(Judgments(labels, offsets, judged=np.array([True, False])), parse_measures("mrr"))


# ---- the evaluator


def test_the_report_states_its_conventions() -> None:
    measures = parse_measures("ndcg@10,err", Conventions(Gain("linear"), "skip", "average"))
    report = Evaluator(Judgments(np.array([0.0, 6.0, 0.0]), np.array([0, 2, 3])), measures).evaluate(
        np.array([1.0, 0.0, 0.0])
    )
    shown = report.to_json()
    assert (shown["queries"], shown["documents"], shown["empty_queries"]) == (2, 3, 1)
    assert shown["conventions"] == {
        "gain": "linear", "empty": "skip", "ties": "average", "relevant": "label > 0", "err": "(2^label - 1) / 2^6",
        "discount": "log2", "short": "whole", "p_divisor": "k", "map_divisor": "relevant", "ideal": "gain",
        "empty_ndcg": "label", "empty_p": "empty", "empty_weight": "query", "missing": "zero", "unjudged": "count",
        "precision": "double", "like": None,
    }  # fmt: skip
    assert list(shown["metrics"]) == ["ndcg@10", "err"]
    assert np.isnan(report.per_query["ndcg@10"]).tolist() == [False, True]


def test_the_example_of_the_evaluator() -> None:
    names = {"np": np, "parse_measures": parse_measures, "Evaluator": Evaluator}
    assert doctest.testmod(evaluation, extraglobs=names) == (0, 2)


def test_wrong_arguments() -> None:
    evaluator = Evaluator(Judgments(np.array([0.0, 1.0]), np.array([0, 2])), parse_measures("map"))
    with pytest.raises(DataError, match="document 2 is nan"):
        evaluator.evaluate(np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="3 scores for 2 documents"):
        evaluator.evaluate(np.zeros(3))
    mixed = (*parse_measures("map"), *parse_measures("map", Conventions(empty="one")))
    for measures in ((), mixed):
        with pytest.raises(ValueError, match="measure"):
            Evaluator(Judgments(np.array([0.0, 1.0]), np.array([0, 2])), measures)


def test_infinite_scores_rank_first_and_last() -> None:
    assert evaluate("mrr", [0, 1, 0], [0.0, math.inf, -math.inf])["mrr"] == 1.0


def test_nothing_is_remembered_from_call_to_call() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 40, 30)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = rng.integers(0, 5, offsets[-1]).astype(float)
    used = Evaluator(Judgments(labels, offsets), parse_measures(EVERYTHING))
    for _ in range(4):
        scores = rng.integers(0, 9, offsets[-1]).astype(float)
        fresh = Evaluator(Judgments(labels, offsets), parse_measures(EVERYTHING)).evaluate(scores)
        assert used.evaluate(scores).values == fresh.values


@pytest.mark.parametrize("ties", ["input", "average"])
def test_threads_and_the_order_of_queries_change_no_bit(ties: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmart.measures.query_kernels.DOCUMENTS_A_CALL", 50)
    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 40, 60)
    labels = [rng.integers(0, 5, size) * rng.integers(0, 2) for size in sizes]
    scores = [rng.integers(0, 9, size) / 7 for size in sizes]
    weights = rng.random(60)
    measures = parse_measures(EVERYTHING, Conventions(ties=ties))
    seen = []
    for threads, queries in ((1, range(60)), (2, range(60)), (3, range(60)), (2, rng.permutation(60))):
        offsets = np.concatenate(([0], np.cumsum(sizes[list(queries)])))
        with WorkerPool(threads) as pool:
            evaluator = Evaluator(
                Judgments(np.concatenate([labels[q] for q in queries]).astype(float), offsets),
                measures,
                pool,
                weights[list(queries)],
            )
            seen.append(evaluator.evaluate(np.concatenate([scores[q] for q in queries])).values)
    assert all(values == seen[0] for values in seen)


# ---- properties

GRADES = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.5])
RELATIVE = "ndcg,ndcg@1,ndcg@3,map,map@2,mrr,mrr@2,p@1,p@3,recall@2,err,err@3,rbp,rbp(0.95)@4"


@given(
    rows=st.lists(st.tuples(GRADES, st.sampled_from([0.0, 1.0, 2.5])), min_size=1, max_size=9),
    gain=st.sampled_from(["exp2", "linear", "0.5,1,2,2,9"]),
    ties=st.sampled_from(["input", "average"]),
)
def test_bounds_best_order_and_shift(rows: list[tuple[float, float]], gain: str, ties: str) -> None:
    if "," in gain:
        rows = [(float(int(label)), score) for label, score in rows]
    labels, scores = [row[0] for row in rows], [row[1] for row in rows]
    conventions: dict[str, Any] = {"gain": Gain.parse(gain), "ties": ties}
    values = evaluate(RELATIVE, labels, scores, **conventions)
    assert all(value is not None and 0 <= value <= 1 + 1e-15 for value in values.values())
    assert values == evaluate(RELATIVE, labels, [score * 4 - 3 for score in scores], **conventions)
    if any(labels):
        best = [Gain.parse(gain).of_labels(np.array([label]))[0] for label in labels]
        assert evaluate("ndcg,ndcg@3", labels, best, gain=Gain.parse(gain)) == {"ndcg": 1.0, "ndcg@3": 1.0}
        assert evaluate("map,mrr", labels, labels, ties=ties) == pytest.approx({"map": 1.0, "mrr": 1.0}, rel=1e-14)


@pytest.mark.slow
@given(rows=st.lists(st.tuples(GRADES, st.sampled_from([0.0, 1.0])), min_size=1, max_size=5))
def test_averaged_ties_are_the_mean_over_all_orders(rows: list[tuple[float, float]]) -> None:
    labels, scores = [row[0] for row in rows], [row[1] for row in rows]
    orders = reference.measures.tied_orders(scores)
    sums: dict[str, Fraction] = {}
    for order in orders:
        ranks = [0.0] * len(order)
        for place, row in enumerate(order):
            ranks[row] = -float(place)
        for name, value in evaluate(EVERYTHING, labels, ranks).items():
            sums[name] = sums.get(name, Fraction(0)) + Fraction(value or 0.0)
    means = {name: float(total / len(orders)) for name, total in sums.items()}
    assert evaluate(EVERYTHING, labels, scores, ties="average") == pytest.approx(means, rel=1e-12, abs=1e-14)


# ---- other tools


@pytest.mark.peers
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_scikit_learn_agrees(k: int | None) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(8)
    for n in (2, 7, 30):
        labels, scores = rng.integers(0, 5, n).astype(float), rng.integers(0, 6, n).astype(float)
        labels[0] = 2.0
        for gain in (Gain("exp2"), Gain("linear")):
            wanted = metrics.ndcg_score([gain.of_labels(labels)], [scores], k=k)
            name = "ndcg" if k is None else f"ndcg@{k}"
            got = evaluate(name, labels.tolist(), scores.tolist(), gain=gain, ties="average")[name]
            assert got == pytest.approx(wanted, rel=1e-12)
    relevant = (labels > 0).astype(float)
    distinct = rng.permutation(len(labels)).astype(float)
    wanted = metrics.average_precision_score(relevant, distinct)
    assert evaluate("map", labels.tolist(), distinct.tolist())["map"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.peers
def test_lightgbm_agrees() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(9)
    sizes = rng.integers(2, 15, 25)
    n = int(sizes.sum())
    labels = rng.integers(0, 5, n).astype(float)
    features = rng.normal(size=(n, 3))
    parameters = {
        "objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 3, 10], "verbosity": -1, "num_threads": 1,
        "min_data_in_leaf": 3,
    }  # fmt: skip
    data = lightgbm.Dataset(features, labels, group=sizes)
    seen: dict[str, Any] = {}
    booster = lightgbm.train(parameters, data, 5, valid_sets=[data], callbacks=[lightgbm.record_evaluation(seen)])
    scores = booster.predict(features).tolist()
    values = evaluate("ndcg@1,ndcg@3,ndcg@10", labels.tolist(), scores, sizes.tolist(), empty="one")
    for name, value in values.items():
        assert value == pytest.approx(seen["training"][name][-1], rel=1e-9)
