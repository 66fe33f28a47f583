"""Comparisons of systems on standard output: a table a measure, with the queries that differ most.

It fits 80 columns, or a terminal of fewer. Names of systems are shortened where they must be, numbers never.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from lmart.cli.terminal import eval_report
from lmart.cli.terminal.bars import are_shown, bars
from lmart.cli.terminal.layout import Sheet, paragraph, standard_output
from lmart.cli.terminal.systems_table import GAP, Grid, in_width, shortened
from lmart.errors import visible

if TYPE_CHECKING:
    from lmart.measures.comparison import Comparison, QueryDifference
    from lmart.measures.system_evaluation import EvaluationResult
    from lmart.measures.system_statistics import SystemStatistics

WIDTH = 80
SHORTEST_NAME = 8
HOLM = "p holm"
HEADER = ("difference", "interval", "win/tie/loss", "p rand", HOLM, "p t")
CUT_ID = 24  # characters of a query id


def print_comparisons(result: EvaluationResult, statistics: SystemStatistics) -> None:
    """Print what is compared and how, then each measure.

    result     : what was measured
    statistics : with comparisons
    """
    sheet = standard_output()
    lines = ["", *textwrap.wrap(explanation(result, statistics), min(sheet.width or WIDTH, WIDTH))]
    for measure, group in groupby(statistics.comparisons, key=lambda one: one.measure):
        lines += ["", *measure_lines(measure, list(group), result, statistics.all_pairs, sheet)]
    click.echo("\n".join(lines))


def explanation(result: EvaluationResult, statistics: SystemStatistics) -> str:
    """Return what is compared, and by which tests.

    result     : what was measured
    statistics : with comparisons
    """
    resampling, tests = statistics.resampling, [one.randomization for one in statistics.comparisons]
    if all(one is None or one.exact for one in tests):
        flips = "all choices of signs"
    else:
        drawn = f"{resampling.flips} choices of signs"
        some = any(one is not None and one.exact for one in tests)
        flips = drawn + (", all where at most 20 queries differ" if some else "")
    number = len(statistics.comparisons) // len(result.measures)
    holm = f" p holm: the same adjusted for the {number} comparisons of a measure (Holm)." if number > 1 else ""
    of_what = "of each two systems" if statistics.all_pairs else f"to {visible(result.systems[0].name)}"
    return (
        f"Differences {of_what}, query by query, with {100 * resampling.level:.6g}% intervals ({statistics.resamples} "
        f"bootstrap resamples of the queries). p rand: Fisher's randomization test, two-sided, {flips}.{holm} p t: "
        f"paired t test. Seed {resampling.seed}."
    )


def measure_lines(
    measure: str, comparisons: Sequence[Comparison], result: EvaluationResult, all_pairs: bool, sheet: Sheet
) -> list[str]:
    """Return the table of one measure, and under each of its lines the queries that gained and lost most.

    measure     : its name
    comparisons : in this measure
    result      : what was measured
    all_pairs   : name the baseline of each comparison too
    sheet       : what they are written on
    """
    width = min(sheet.width or WIDTH, WIDTH)
    headings, *cells = [
        _without_holm(row) if len(comparisons) == 1 else row for row in (HEADER, *map(_cells, comparisons))
    ]
    digits = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    room = max(SHORTEST_NAME, width - sum(digits) - GAP * len(digits))
    names = _names(comparisons, [one.name for one in result.systems], all_pairs, room)
    header = [measure if len(measure) <= room else "", *headings]
    table = Grid(header, [[name, *row] for name, row in zip(names, cells, strict=True)], set())
    *earlier, (first, *others) = [grid.lines(sheet.styled) for grid in in_width(table, sheet.width)]
    shown = [] if header[0] else [measure]
    for lines in earlier:
        shown += [*lines, ""]
    shown.append(first)
    if are_shown():
        shown += _bars_of_systems(measure, result, width)
    for comparison, line in zip(comparisons, others, strict=True):
        shown.append(line)
        shown += _queries("gained", comparison.gained, result.query_ids, width)
        shown += _queries("lost", comparison.lost, result.query_ids, width)
        if comparison.left_out:
            queries = "query that counts" if comparison.left_out == 1 else "queries that count"
            left_out = f"{comparison.left_out} {queries} in one of the two only"
            shown += ["  left out  " + part for part in paragraph(left_out, sheet, len("  left out  "))]
    return shown


def _bars_of_systems(measure: str, result: EvaluationResult, width: int) -> list[str]:
    """Return lines with the name of each system and how many queries have which value."""
    names = [visible(one.name) for one in result.systems]
    names = shortened(names, width // 4) or [f"#{i}" for i in range(1, len(names) + 1)]
    items = [
        f"{name}  {bars(one.report.per_query[measure], result.weights)}"
        for name, one in zip(names, result.systems, strict=True)
    ]
    lines = [f"  values  {items[0]}"]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 3 <= width:
            lines[-1] += f"   {item}"
        else:
            lines.append(f"{'':10}{item}")
    return lines


def _names(comparisons: Sequence[Comparison], systems: Sequence[str], all_pairs: bool, room: int) -> list[str]:
    """Return what stands for each comparison: its system, and of all pairs the baseline too."""
    room = (room - len(" - ")) // 2 if all_pairs else room
    every = [visible(name) for name in systems]
    # Where cut names would no longer differ, places on the command line, at which the names stand above.
    short = shortened(every, room) or [f"#{i}" for i in range(1, len(systems) + 1)]
    called = dict(zip(systems, short, strict=True))
    if all_pairs:
        return [f"{called[one.system]} - {called[one.baseline]}" for one in comparisons]
    return [called[one.system] for one in comparisons]


def _cells(one: Comparison) -> list[str]:
    undefined = eval_report.NOT_DEFINED
    return [
        undefined if one.difference is None else _signed(one.difference, 6),
        undefined if one.interval is None else "..".join(_signed(end, 4) for end in one.interval),
        f"{one.wins}/{one.ties}/{one.losses}",
        p_shown(None if one.randomization is None else one.randomization.p),
        p_shown(one.p_holm),
        p_shown(one.p_t),
    ]


def _without_holm(row: Sequence[str]) -> list[str]:
    """Return a row without the adjusted p, which a single comparison does not need."""
    return [cell for place, cell in enumerate(row) if HEADER[place] != HOLM]


def p_shown(p: float | None) -> str:
    """Return a p value as tables show it.

    p : from 0 to 1; None: there is none
    """
    if p is None:
        return eval_report.NOT_DEFINED
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}" if abs(value) < 1e6 else f"{value:+.6g}"


def _queries(what: str, differences: Sequence[QueryDifference], query_ids: Sequence[str], width: int) -> list[str]:
    """Return a line of the queries with the largest differences, as many as fit."""
    line = f"  {what:<6} "
    for place, (query, difference) in enumerate(differences):
        name = visible(query_ids[query])
        name = name if len(name) <= CUT_ID else name[: CUT_ID - 2] + ".."
        item = f"{', ' if place else ' '}{name} {_signed(difference, 4)}"
        if place and len(line) + len(item) > width:
            break
        line += item
    return [line] if differences else []
