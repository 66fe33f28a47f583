"""Measures of several systems side by side: one aligned table for pipes, and one that fits the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from lmart.cli.terminal import eval_report
from lmart.cli.terminal.layout import facts, standard_output
from lmart.errors import counted, visible
from lmart.measures.system_evaluation import best_places

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


def print_systems(result: EvaluationResult, entries: Sequence[tuple[str, str]]) -> None:
    """Print what the numbers depend on, then a table of measures, a column a system.

    result  : what was measured
    entries : names and values
    """
    sheet = standard_output()
    click.echo("\n".join(facts(entries, sheet)))
    tables = grids(result, sheet.width)
    least = 0 if sheet.styled else max(len(name) for name, _ in entries)
    for grid in tables:
        click.echo("\n".join(["", *grid.lines(sheet.styled, least)]))
    if sheet.styled and tables[0].rows[0][0] == _numbered(1)[0]:
        click.echo(click.style("\n#1, #2, ...: the systems as listed above", dim=True))


def print_groups(result: EvaluationResult) -> None:
    """Print the measures of each group of queries: a line a group, or of several systems a table a group.

    result : what was measured
    """
    sheet = standard_output()
    is_terminal, width = sheet.styled, sheet.width
    lines: list[str] = []
    if len(result.systems) == 1:
        labels = ["queries", *result.measures]
        reports = [one.reports[0] for one in result.groups]
        means = [[report.values[name] for name in result.measures] for report in reports]
        cells = [
            [str(report.n_queries), *map(eval_report.shown, row)] for report, row in zip(reports, means, strict=True)
        ]
        names = [visible(one.name) for one in result.groups]
        for grid in _by_rows("group", names, names, labels, cells, set(), width):
            lines += ["", *grid.lines(styled=is_terminal)]
    else:
        names = [visible(system.name) for system in result.systems]
        for group in result.groups:
            of_empty = f", {group.reports[0].n_empty_queries} of them empty" if group.reports[0].n_empty_queries else ""
            queries = counted(group.reports[0].n_queries, "query", "queries")
            title = f"group {visible(group.name)} ({queries}{of_empty})"
            lines += ["", click.style(title, bold=True) if is_terminal else title]
            values = [[report.values[name] for report in group.reports] for name in result.measures]
            for grid in _grids(names, result.measures, values, width):
                lines += grid.lines(styled=is_terminal)
    click.echo("\n".join(lines))


def grids(result: EvaluationResult, width: int | None) -> list[Grid]:
    """Return the tables of the means: of measures by systems, or when that is too wide of systems by measures.

    result : what was measured
    width  : of the terminal; None: one table as wide as it needs
    Names of systems are shortened where they must be, numbers never; measures that do not fit stand in further tables.
    """
    values = [[system.report.values[name] for system in result.systems] for name in result.measures]
    return _grids([visible(system.name) for system in result.systems], result.measures, values, width)


def _grids(
    names: Sequence[str], labels: Sequence[str], values: Sequence[Sequence[float | None]], width: int | None
) -> list[Grid]:
    """Return the tables of `grids`: values by label, then by name."""
    cells = [[eval_report.shown(value) for value in row] for row in values]
    best = {(i, j + 1) for i, row in enumerate(values) for j in best_places(row)}
    digits = max(len(cell) for row in cells for cell in row)
    rows = [[label, *row] for label, row in zip(labels, cells, strict=True)]
    if width is None:
        return [Grid(["", *names], rows, best)]
    room = (width - max(map(len, labels))) // len(names) - GAP
    if room >= digits and (fitting := shortened(names, room)):
        return [Grid(["", *fitting], rows, best)]
    turned = [list(column) for column in zip(*cells, strict=True)]
    # Names stand above the table, so that those which differ in the middle only may become their places there.
    return _by_rows("", names, _numbered(len(names)), labels, turned, {(j - 1, i + 1) for i, j in best}, width)


def _by_rows(
    title: str,
    names: Sequence[str],
    otherwise: Sequence[str],
    labels: Sequence[str],
    cells: Sequence[Sequence[str]],
    best: set[tuple[int, int]],
    width: int | None,
) -> list[Grid]:
    """Return tables of a line a name, as many as the labels need at this width.

    title     : of the names
    names     : of the lines
    otherwise : what stands for names that would no longer be distinct when they are shortened
    labels    : of the columns
    cells     : by name, then by label
    best      : as in Grid
    width     : of the terminal; None: one table as wide as it needs
    """
    widths = [max(map(len, column)) for column in zip(labels, *cells, strict=True)]
    needed = sum(widths) + GAP * len(widths)
    room = (width or 0) - needed
    if room < SHORTEST_NAME:  # there will be further tables anyway
        room = max(SHORTEST_NAME, (width or 0) // 3)
    fitting = list(names) if width is None else shortened(names, room) or list(otherwise)
    return in_width(
        Grid([title, *labels], [[name, *row] for name, row in zip(fitting, cells, strict=True)], best), width
    )


def in_width(grid: Grid, width: int | None) -> list[Grid]:
    """Return a table as several, each with the first column and as many others as fit.

    grid  : the whole table
    width : of the terminal; None: one table as wide as it needs
    """
    first, *widths = [max(map(len, column)) for column in zip(grid.header, *grid.rows, strict=True)]
    found: list[Grid] = []
    start = 0
    while start < len(widths):
        stop, used = start + 1, first + GAP + widths[start]
        while stop < len(widths) and (width is None or used + GAP + widths[stop] <= width):
            used += GAP + widths[stop]
            stop += 1
        rows = [row[:1] + row[start + 1 : stop + 1] for row in grid.rows]
        marks = {(i, j - start) for i, j in grid.best if start < j <= stop}
        found.append(Grid(grid.header[:1] + grid.header[start + 1 : stop + 1], rows, marks))
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


def _numbered(n: int) -> list[str]:
    """Return what stands for names that cannot be shortened: #1, #2, ..."""
    return [f"#{i}" for i in range(1, n + 1)]
