"""The best value so far, and rounds since."""

from __future__ import annotations

from typing import cast

from lmart.cli.terminal.best_so_far import BestSoFar
from lmart.scoring.ensemble import Tree
from lmart.training.rankers import RoundReport


def reports(values: list[tuple[int, float | None]]) -> list[RoundReport]:
    rounds: dict[int, int] = {}
    made = []
    for ranker, value in values:
        rounds[ranker] = rounds.get(ranker, 0) + 1
        made.append(RoundReport(rounds[ranker], ranker, cast(Tree, None), (value, 1.0), lambda: None))
    return made


def test_best_value_its_round_and_rounds_since_of_each_ranker() -> None:
    best = BestSoFar(stops=True)
    texts = []
    for one in reports([(1, None), (1, 0.5), (1, 0.75), (1, 0.75), (1, 0.25), (2, 0.1)]):
        best.add(one)
        texts.append(best.text())
    assert texts == [
        "",
        "best 0.5000 at 2, 0 since",
        "best 0.7500 at 3, 0 since",
        "best 0.7500 at 3, 1 since",
        "best 0.7500 at 3, 2 since",
        "best 0.1000 at 1, 0 since",
    ]
    assert best.before(lambda: "x") == "best 0.1000 at 1, 0 since, x"


def test_nothing_without_early_stopping() -> None:
    best = BestSoFar(stops=False)
    best.add(reports([(1, 0.5)])[0])
    assert best.before(lambda: "x") == "x"
