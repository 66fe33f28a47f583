"""Measures of several systems side by side: one aligned table for pipes, and one that fits the width of a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from lmart.cli.terminal import eval_report
from lmart.errors import visible

if TYPE_CHECKING:
    from lmart.measures.system_evaluation import EvaluationResult

GAP = 2  # blanks between columns
SHORTEST_NAME = 8  # of a system with a line of its own, on a terminal
CUT = ".."  # stands in a name for what is left out


class Grid(NamedTuple):
    """Cells of a table; the first column stands to the left, the others, which hold numbers, to the right.

    header : one a column
    rows   : lists of as many cells
    best   : the places of the best number, (row, column)
    """

    header: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]]

    def lines(self, styled: bool = False, least: int = 0) -> list[str]:
        """Return aligned lines, the header first.

        styled : with the styles of a terminal
        least  : the least width of the first column
        """
        widths = [max(map(len, cells)) for cells in zip(self.header, *self.rows, strict=True)]
        widths[0] = max(widths[0], least)
        found = []
        for number, cells in enumerate((self.header, *self.rows), -1):
            padded = [
                f"{cell:>{w}}" if i else f"{cell:<{w}}" for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
            ]
            if styled:
                padded = [
                    click.style(one, dim=number < 0 or None, bold=(number, i) in self.best or None)
                    for i, one in enumerate(padded)
                ]
            found.append((" " * GAP).join(padded).rstrip())
        return found


def print_systems(result: EvaluationResult, facts: Sequence[tuple[str, str]]) -> None:
    """Print what the numbers depend on, then a table of measures, a column a system.

    result : what was measured
    facts  : names and values
    """
    width = max(len(name) for name, _ in facts)
    if not eval_report.is_terminal():
        (grid,) = grids(result, None)
        lines = [f"{name:<{width}}  {value}" for name, value in facts]
        click.echo("\n".join([*lines, "", *grid.lines(least=width)]))
        return
    for name, value in facts:
        click.echo(click.style(f"{name:<{width}}  ", dim=True) + value)
    for grid in grids(result, shutil.get_terminal_size().columns):
        click.echo("\n".join(["", *grid.lines(styled=True)]))


def grids(result: EvaluationResult, width: int | None) -> list[Grid]:
    """Return the tables of the means: of measures by systems, or when that is too wide of systems by measures.

    result : what was measured
    width  : of the terminal; None: one table as wide as it needs
    Names of systems are shortened where they must be, numbers never; measures that do not fit stand in further tables.
    """
    names = [visible(system.name) for system in result.systems]
    values = [[system.report.values[name] for system in result.systems] for name in result.measures]
    cells = [[eval_report.shown(value) for value in row] for row in values]
    best = {(i, j + 1) for i, row in enumerate(values) for j in _best_of(row)}
    labels = list(result.measures)
    digits = max(len(cell) for row in cells for cell in row)
    rows = [[label, *row] for label, row in zip(labels, cells, strict=True)]
    if width is None:
        return [Grid(["", *names], rows, best)]
    room = (width - max(map(len, labels))) // len(names) - GAP
    if room >= digits and (fitting := shortened(names, room)):
        return [Grid(["", *fitting], rows, best)]
    turned = [list(column) for column in zip(*cells, strict=True)]
    by_system = {(j - 1, i + 1) for i, j in best}
    return _by_systems(names, labels, turned, by_system, width)


def _by_systems(
    names: list[str], labels: list[str], cells: list[list[str]], best: set[tuple[int, int]], width: int
) -> list[Grid]:
    """Return tables of a line a system, as many as the measures need at this width."""
    widths = [
        max(len(label), *map(len, column)) for label, column in zip(labels, zip(*cells, strict=True), strict=True)
    ]
    room = max(SHORTEST_NAME, width - sum(widths) - GAP * len(widths))
    # Names are at hand above the table, so that those which differ in the middle only may become numbers.
    fitting = shortened(names, room) or [f"#{i}" for i in range(1, len(names) + 1)]
    first = max(map(len, fitting))
    found: list[Grid] = []
    start = 0
    while start < len(labels):
        stop, used = start + 1, first + GAP + widths[start]
        while stop < len(labels) and used + GAP + widths[stop] <= width:
            used += GAP + widths[stop]
            stop += 1
        rows = [[name, *row[start:stop]] for name, row in zip(fitting, cells, strict=True)]
        marks = {(i, j - start) for i, j in best if start < j <= stop}
        found.append(Grid(["", *labels[start:stop]], rows, marks))
        start = stop
    return found


def shortened(names: Sequence[str], room: int) -> list[str]:
    """Return the names, each cut in its middle to `room` characters; empty when they would no longer be distinct.

    names : distinct
    room  : the greatest length
    """
    short = []
    for name in names:
        if len(name) <= room:
            short.append(name)
            continue
        end = (room - len(CUT)) // 2
        short.append(name[: room - len(CUT) - end] + CUT + name[len(name) - end :])
    return short if len(set(short)) == len(short) and room > len(CUT) else []


def _best_of(values: Sequence[float | None]) -> list[int]:
    """Return the places of the greatest value, none when all are equal."""
    known = [value for value in values if value is not None]
    if not known or min(known) == max(known):
        return []
    return [i for i, value in enumerate(values) if value == max(known)]
