"""What a page says of the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from lmart.reports.pages.verdict import is_best_beyond_chance, main_measure, verdict


def system(name: str, mean: float | None, interval: Any = (0.4, 0.6)) -> dict[str, Any]:
    summary = {"ndcg@10": {"interval": interval, "count": 40}, "map": {"interval": None, "count": 40}}
    return {"name": name, "metrics": {"map": 0.5, "ndcg@10": mean}, "summary": summary}


def comparison(
    difference: float | None, p: float | None, wins: int = 9, losses: int = 5, **names: str
) -> dict[str, Any]:
    one = {"measure": "ndcg@10", "baseline": "old", "system": "new", "wins": wins, "losses": losses} | names
    interval = None if difference is None else (difference - 0.01, difference + 0.01)
    return one | {"difference": difference, "interval": interval, "p_holm": p}


def evaluation(*comparisons: dict[str, Any], systems: Any = None) -> dict[str, Any]:
    every = systems or [system("old", 0.5), system("new", 0.51)]
    return {"systems": every, "resampling": {"level": 0.95}, "comparisons": list(comparisons)}


def test_the_measure_that_is_seen_first() -> None:
    assert main_measure(["map", "ndcg@10"]) == "ndcg@10" and main_measure(["map", "mrr"]) == "map"


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (comparison(0.01, 0.004), "new gains 0.0100 ndcg@10 over old (95% interval +0.0000 to +0.0200, p 0.004): "
         "better, by more than chance explains."),
        (comparison(0.01, 0.09), "p 0.09): not shown to be better; this may be chance."),
        (comparison(-0.02, 0.00001), "new loses 0.0200 ndcg@10 against old (95% interval -0.0300 to -0.0100, p below "
         "0.0001): worse, by more than chance explains."),
        (comparison(-0.02, 0.5), "not shown to be worse"),
        (comparison(0.0, 1.0, 0, 0), "new and old have the same ndcg@10 in every query."),
        (comparison(None, None, 0, 0), "No query counts in both new and old."),
    ],
)  # fmt: skip
def test_a_comparison_is_a_sentence(one: dict[str, Any], said: str) -> None:
    first, second = verdict(evaluation(one))
    assert first == "new has the highest mean ndcg@10, 0.5100 (95% interval 0.4000 to 0.6000), over 40 queries."
    assert said in second


def test_one_system_equal_systems_and_none_that_counts() -> None:
    alone = evaluation(systems=[system("only", 0.25, None)])
    assert list(verdict(alone)) == ["only has a mean ndcg@10, 0.2500, over 40 queries."]
    same = evaluation(systems=[system("a", 0.5), system("b", 0.5)])
    assert next(iter(verdict(same))).startswith("a has a mean ndcg@10, 0.5000")
    assert list(verdict(evaluation(systems=[system("a", None)]))) == ["No query counts in ndcg@10."]


def test_many_comparisons_are_counted() -> None:
    many = [comparison(0.01, 0.01 if k < 3 else 0.5) for k in range(9)]
    assert (
        list(verdict(evaluation(*many)))[1]
        == "Of 9 pairs of systems, 3 differ in ndcg@10 by more than chance explains."
    )


def test_the_best_stands_out_only_when_no_comparison_may_be_chance() -> None:
    clear, unclear = comparison(0.01, 0.004), comparison(0.01, 0.4, baseline="other")
    assert is_best_beyond_chance(evaluation(clear), "ndcg@10", "new")
    assert not is_best_beyond_chance(evaluation(clear), "ndcg@10", "old")
    assert not is_best_beyond_chance(evaluation(clear, unclear), "ndcg@10", "new")
    assert is_best_beyond_chance(evaluation(), "ndcg@10", "new")
