"""Small training sets whose models can be worked out by hand or in the head, through `lmart train`."""

from __future__ import annotations

import math
import re
from itertools import permutations
from pathlib import Path

import pytest
from helpers.evaluation import close
from helpers.training_runs import PLAIN, SMALL, evaluated, features_used, fit, learnable, refused, scores

DATA = learnable()
BY_HAND = "0 qid:1 1:0\n1 qid:1 1:1\n2 qid:1 1:2\n"
pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.mark.parametrize(
    ("order", "expected"),
    [("012", [-0.2, 0.033985, 0.2]), ("210", [0.2, -0.139738, -0.2])],  # no mirror image: ties are in file order
)
def test_the_first_tree_has_the_values_worked_by_hand(order: str, expected: list[float]) -> None:
    fit("".join(f"{y} qid:1 1:{y}\n" for y in order), *PLAIN, "--leaves", "3")
    assert scores() == [close(s) for s in expected]


def test_queries_with_equal_labels_teach_nothing() -> None:
    for text in ("1 qid:1 1:0\n1 qid:1 1:1\n1 qid:1 1:2\n", "0 qid:1 1:0\n0 qid:1 1:1\n3 qid:2 1:0\n3 qid:2 1:1\n"):
        idle = fit(text, *PLAIN)
        assert idle.model["trees"] == [] and set(scores()) == {0.0}
        assert len(idle.warnings) == 1 and "nothing to learn" in idle.warnings[0]
    alone = fit(BY_HAND, *PLAIN, "--leaves", "3")
    mixed = fit("1 qid:0 1:0\n1 qid:0 1:9\n" + BY_HAND + "0 qid:2 1:4\n0 qid:2 1:1\n", *PLAIN, "--leaves", "3")
    assert [tree["leaf_values"] for tree in mixed.model["trees"]] == [t["leaf_values"] for t in alone.model["trees"]]
    assert mixed.warnings == []
    assert "lmart: 2 of 3 queries have no pair of documents with different labels" in mixed.said


def test_queries_of_one_document_teach_nothing() -> None:
    single = fit("0 qid:1 1:0\n1 qid:2 1:1\n2 qid:3 1:2\n", *PLAIN)
    assert set(scores()) == {0.0}
    assert len(single.warnings) == 1 and "no query has two documents, so check the qid column" in single.warnings[0]
    assert evaluated("d.svm", "--metric", "ndcg", "--empty", "skip") == 1.0


def test_labels_of_31_and_above_have_their_gain() -> None:
    text = "".join(f"{y} qid:1 1:{place}\n" for place, y in enumerate((30, 0, 72, 31)))
    for gain in ("exp2", "linear"):
        fit(text, *PLAIN, "--leaves", "4", "--gain", gain)
        by_label = dict(zip((30, 0, 72, 31), scores(), strict=True))
        assert max(by_label, key=by_label.__getitem__) == 72
    assert sorted(by_label.values()) == [by_label[y] for y in (0, 30, 31, 72)]
    Path("d.svm").write_text("1 qid:1 1:0\n30 qid:1 1:1\n")
    assert "d.svm:2: label 30 has no entry in the gain table, which covers 0 to 2" in refused("--gain", "0,1,3")


def test_fractional_labels_have_gains_of_their_own() -> None:
    fit("0.5 qid:1 1:0\n1.5 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN, "--leaves", "3")
    exponential = scores()
    fit("0.5 qid:1 1:0\n1.5 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN, "--leaves", "3", "--gain", "linear")
    linear = scores()
    fit("0 qid:1 1:0\n1 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN, "--leaves", "3")
    assert exponential != linear != scores() != exponential


def test_negative_labels_are_refused() -> None:
    Path("d.svm").write_text("-1 qid:1 1:0\n1 qid:1 1:1\n")
    assert refused().startswith("lmart: error: d.svm:1: label '-1' is negative")


@pytest.mark.parametrize("n", [10_001, 20_000])
def test_a_query_may_have_more_than_ten_thousand_documents(n: int) -> None:
    def label(row: int) -> int:
        return int(row == 7) if n == 10_001 else row % 2

    fit("".join(f"{label(row)} qid:1 1:{label(row) + row % 5}\n" for row in range(n)), "--trees", "3")
    # Of 10,001 only row 7 is relevant, and row 3 before it has its value.
    assert evaluated("d.svm", "--metric", "ndcg@5") == (close(1 / math.log2(3)) if n == 10_001 else 1.0)


def test_constant_features_give_no_trees_and_a_warning() -> None:
    flat = fit("1 qid:1 1:1 2:1\n0 qid:1 1:1 2:1\n", *PLAIN)
    assert set(scores()) == {0.0}
    assert len(flat.warnings) == 1 and "every feature is constant" in flat.warnings[0]
    assert features_used(fit(DATA, *SMALL).model) <= {1, 2, 3}
    one = fit(BY_HAND, *PLAIN, "--leaves", "3", "--threads", "16")
    assert len(one.model["trees"]) == 1


def test_weights_of_queries_have_the_effect_worked_by_hand() -> None:
    text = "1 qid:1 1:1\n0 qid:1 1:0\n1 qid:2 1:0\n0 qid:2 1:1\n"
    assert fit(text, *PLAIN).model["trees"] == []
    for weights in ("3\n1\n", "3\n3\n1\n1\n", "\ufeff3\r\n# none\r\n1"):
        Path("w").write_text(weights, newline="")
        fit(text, *PLAIN, "--weights", "w")
        assert scores() == [close(0.1), close(-0.1), close(-0.1), close(0.1)]
    Path("w").write_text("3\n1\n1\n")
    assert "w: there are 3 weights, but the data has 2 queries and 4 rows" in refused("--weights", "w")


def test_early_stopping_keeps_exactly_the_best_trees() -> None:
    Path("v.svm").write_text(learnable(2))
    slow = ("--trees", "200", "--leaves", "8", "--learning-rate", "0.05", "--min-docs", "9", "--rankers", "1")
    run_ = fit(DATA, "--valid", "v.svm", *slow, "--early-stop", "5", "--metric", "NDCG")
    seen = [one["validation"][0] for one in run_.report["rounds"]]
    best = seen.index(max(seen)) + 1
    assert len(run_.model["trees"]) == run_.report["best_round"] == best == len(seen) - 5 < 200
    assert run_.report["stopped"] == "early" and run_.report["metric"] == "ndcg"
    assert run_.report["files"] == {"data": ["d.svm"], "validation": ["v.svm"]}
    assert evaluated("v.svm", "--metric", "ndcg") == max(seen) == run_.report["validation"][0]
    assert evaluated("d.svm", "--metric", "ndcg") == run_.report["training"] != run_.report["rounds"][-1]["training"]
    assert f"best of {len(seen)} rounds" in run_.said[-1] and "on v.svm" in run_.said[-1]


def test_one_gain_counts_everywhere_and_ideals_are_by_file() -> None:
    Path("v.svm").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")  # the same query id, other labels
    run_ = fit("50 qid:1 1:2\n0 qid:1 1:0\n20 qid:1 1:1\n", *PLAIN, "--gain", "linear", "--valid", "v.svm")
    assert run_.report["validation"] == [1.0]
    assert run_.model["gain"] == "linear"
    assert evaluated("d.svm", "--metric", "ndcg@10") == run_.report["training"]


def test_thresholds_keep_the_digits_that_part_close_values() -> None:
    close_by = "".join(f"{y} qid:{q} 1:0.1234567{8 + y}\n" for q in range(3) for y in (0, 1))
    model = fit(close_by, *PLAIN).model
    low, high = scores()[:2]
    assert low < high and model["trees"][0]["thresholds"] == [pytest.approx(0.123456785, abs=1e-12)]


def test_the_order_of_queries_and_the_names_of_columns_do_not_matter() -> None:
    fit(DATA, *SMALL)
    rows, expected = DATA.splitlines(keepends=True), scores()
    before = evaluated("d.svm", "--metric", "ndcg@10")
    blocks = [range(start, start + 10) for start in range(0, len(rows), 10)]
    moved = [row for block in blocks[7:] + blocks[:7] for row in block]
    fit("".join(rows[row] for row in moved), *SMALL)
    assert scores() == [pytest.approx(expected[row], abs=1e-9) for row in moved]
    assert evaluated("d.svm", "--metric", "ndcg@10") == pytest.approx(before, abs=1e-12)
    names = {"7:": "90:", "3:": "31:", "2:": "12:", "1:": "5:"}
    renamed = [re.sub(r" (\d:)", lambda found: " " + names[found[1]], row) for row in rows]
    fit("".join(renamed), *SMALL)
    assert scores() == expected
    # equal gains: the lowest feature, whatever the order in the row
    for order in permutations(("2:{y}", "4:{y}", "9:{y}"), 3):
        text = "".join(f"{y} qid:1 {' '.join(order).format(y=y)}\n" for y in (0, 1, 2))
        assert features_used(fit(text, *PLAIN, "--leaves", "3").model) == {2}
    # and the lowest threshold, here on either side of a query that teaches nothing
    idle = fit("0 qid:1 1:1\n1 qid:1 1:2\n1 qid:2 1:1.5\n1 qid:2 1:1.5\n", *PLAIN)
    assert idle.model["trees"][0]["thresholds"] == [1.25]
