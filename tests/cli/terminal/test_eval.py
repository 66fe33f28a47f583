"""Reports of eval as text: names are shortened, numbers never; comparisons fit 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.evaluation import call

from lmart.cli.terminal import eval
from lmart.cli.terminal.eval import distinct, p_shown, system_tables, value_bars
from lmart.cli.terminal.layout import Sheet, Table

pytestmark = pytest.mark.usefixtures("in_folder")


def many_queries(names: list[str], id_of: str = "{}", n: int = 300) -> list[str]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (n, 4))
    rows = [f"{label} qid:{id_of.format(q)}\n" for q in range(n) for label in labels[q]]
    Path("d.svm").write_text("".join(rows))
    for name in names:
        scores = labels + rng.normal(0, 1 + 0.1 * len(name), labels.shape)
        Path(name).write_text("".join(f"{score:.3f}\n" for score in scores.ravel()))
    return ["--data", "d.svm", "--scores", *names]


def table_of(shown: str) -> list[str]:
    return shown[shown.index("Differences") :].splitlines()


def test_long_names_and_ids_are_cut_but_no_number() -> None:
    names = ["a_system_with_a_very_long_name_indeed_that_ends_in_one.txt", "a_system_with_a_rather_long_name_two.txt"]
    given = many_queries(names, "query_with_an_identifier_of_its_own_{}")
    shown = table_of(call(*given, "--metric", "ndcg@10,rbp(0.95)@100,map").stdout)
    assert max(map(len, shown)) <= 80
    rows = [line for line in shown if re.search(r"\d+/\d+/\d+", line)]
    assert len(rows) == 3
    for row in rows:
        assert re.search(r"[+-]0\.\d{6}  [+-]0\.\d{4}\.\.[+-]0\.\d{4} +\d+/\d+/\d+ +[<\d.]+ +[<\d.]+$", row)
    assert any("query_with_an_identifi.. +" in line for line in shown)


def test_systems_whose_cut_names_are_alike_become_numbers() -> None:
    names = [f"a_system_with_a_very_{middle}_long_name_indeed_that_ends.txt" for middle in ("x", "y", "z")]
    shown = table_of(call(*many_queries(names), "--metric", "map", "--all-pairs").stdout)
    assert [line.split("  ")[0] for line in shown if " - #" in line] == ["#2 - #1", "#3 - #1", "#3 - #2"]


def test_a_long_measure_has_a_line_of_its_own() -> None:
    shown = table_of(call(*many_queries(["a.txt", "b.txt"]), "--metric", "rbp(0.12345678901234)@100").stdout)
    assert "rbp(0.12345678901234)@100" in shown
    assert max(map(len, shown)) <= 80


def test_few_queries_take_all_choices_of_signs() -> None:
    shown = call(*many_queries(["a.txt", "b.txt"], n=8), "--metric", "map").stdout
    assert "all choices of signs" in " ".join(shown.split())
    assert "holm" not in shown.lower()


def test_p_values() -> None:
    shown = [p_shown(p) for p in (None, 0.0, 0.00099, 0.001, 0.05, 0.9996, 1.0)]
    assert shown == ["n/a", "<0.001", "<0.001", "0.001", "0.050", "1.000", "1.000"]


def test_bars_by_hand() -> None:
    values = np.array([0.05] * 8 + [0.15] * 4 + [0.95] + [np.nan])
    assert value_bars(values) == "0 \u2588\u2584       \u2581 1"
    assert value_bars(np.array([-1.0, 1.0])) == "-1 \u2588        \u2588 1"
    assert value_bars(np.array([0.0, 12.345])) == "0 \u2588        \u2588 12.35"  # or 12.34: the last digit is rounded
    assert value_bars(np.array([np.nan])) == "0            1"
    assert value_bars(np.array([0.05, 12.0]), np.array([2.0, 0.0])) == value_bars(np.array([0.05]))


def test_bars_are_for_terminals_that_can_show_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [*many_queries(["a.txt", "b.txt"]), "--metric", "map"]
    assert "\u2588" not in call(*given).stdout
    for unicode in (True, False):
        monkeypatch.setattr(eval, "standard_output", lambda unicode=unicode: Sheet(80, unicode, styled=True))
        for arguments in (given, given[:-3] + given[-2:]):  # two systems, one
            text = call(*arguments).stdout
            assert "\u2588" in text if unicode else text.isascii()


@pytest.mark.parametrize(
    ("names", "room", "short"),
    [
        (["a.txt", "b.txt"], 5, ["a.txt", "b.txt"]),
        (["first-run.txt", "b.txt"], 8, ["fir..txt", "b.txt"]),
        (["first-run.txt", "final-run.txt"], 9, ["firs..txt", "fina..txt"]),
        (["run-1-of-a.txt", "run-2-of-a.txt"], 9, []),
        (["abc", "abd"], 2, []),
    ],
)
def test_names_are_cut_in_the_middle_while_they_differ(names: list[str], room: int, short: list[str]) -> None:
    assert distinct(names, room) == short


def widest(tables: list[Table]) -> int:
    return max(len(line) for table in tables for line in table.lines(Sheet()))


@pytest.mark.parametrize("n", [2, 3, 7, 20])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_number_stands_whole_in_a_table_that_fits(n: int, width: int) -> None:
    names = [f"runs/of-system-{i}-{'x' * 20}.txt" for i in range(n)]
    labels = ["ndcg@1", "ndcg@10", "map", "mrr", "rbp(0.95)@20", "recall@1000"]
    values = [[0.5 + i / 100 + j / 1000 for i in range(n)] for j in range(len(labels))]
    tables = system_tables(names, labels, values, width)
    assert widest(tables) <= width
    text = "\n".join(line for table in tables for line in table.lines(Sheet()))
    for row in values:
        for value in row:
            assert f"{value:.6f}" in text
    for label in labels:
        assert label in text


def test_a_pipe_gets_one_table_with_full_names() -> None:
    names = ["a" * 50, "b" * 50]
    (table,) = system_tables(names, ["map"], [[0.25, None]], None)
    assert table.header == ["", *names]
    assert table.rows == [["map", "0.250000", "n/a"]]


def test_the_best_of_each_measure_is_marked_in_either_direction() -> None:
    values: list[list[float | None]] = [[0.1, 0.3], [0.7, 0.7], [0.2, None]]
    (across,) = system_tables(["a", "b"], ["map", "mrr", "p@5"], values, 80)
    assert across.styles == {(0, 2): "bold"}
    (down,) = system_tables(["a", "b"], ["map", "mrr", "a long name of a measure"], values, 38)[:1]
    assert down.rows == [["a", "0.100000", "0.700000"], ["b", "0.300000", "0.700000"]]
    assert down.styles == {(1, 1): "bold"}
    _, first, second = down.lines(Sheet(38, styled=True))
    assert "\x1b[1m" in second and "\x1b[1m" not in first
