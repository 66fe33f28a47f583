"""Tables of several systems: names are shortened, numbers never."""

from __future__ import annotations

import pytest

from lmart.cli.terminal.systems_table import Grid, _grids, shortened


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
    assert shortened(names, room) == short


def widest(grids: list[Grid]) -> int:
    return max(len(line) for grid in grids for line in grid.lines())


@pytest.mark.parametrize("n", [2, 3, 7, 20])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_number_stands_whole_in_a_table_that_fits(n: int, width: int) -> None:
    names = [f"runs/of-system-{i}-{'x' * 20}.txt" for i in range(n)]
    labels = ["ndcg@1", "ndcg@10", "map", "mrr", "rbp(0.95)@20", "recall@1000"]
    values = [[0.5 + i / 100 + j / 1000 for i in range(n)] for j in range(len(labels))]
    grids = _grids(names, labels, values, width)
    assert widest(grids) <= width
    text = "\n".join(line for grid in grids for line in grid.lines())
    for row in values:
        for value in row:
            assert f"{value:.6f}" in text
    for label in labels:
        assert label in text


def test_a_pipe_gets_one_table_with_full_names() -> None:
    names = ["a" * 50, "b" * 50]
    (grid,) = _grids(names, ["map"], [[0.25, None]], None)
    assert grid.header == ["", *names]
    assert grid.rows == [["map", "0.250000", "n/a"]]


def test_the_best_of_each_measure_is_marked_in_either_direction() -> None:
    values: list[list[float | None]] = [[0.1, 0.3], [0.7, 0.7], [0.2, None]]
    (across,) = _grids(["a", "b"], ["map", "mrr", "p@5"], values, 80)
    assert across.best == {(0, 2)}
    (down,) = _grids(["a", "b"], ["map", "mrr", "a long name of a measure"], values, 38)[:1]
    assert down.rows == [["a", "0.100000", "0.700000"], ["b", "0.300000", "0.700000"]]
    assert down.best == {(1, 1)}
    assert "\x1b[1m" in down.lines(styled=True)[2] and "\x1b[1m" not in down.lines(styled=True)[1]
