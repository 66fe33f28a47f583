"""What eval prints: the report as a table, for people and pipes, and the lines of single queries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lmart.cli.terminal.console import takes_colours
from lmart.errors import counted, input_name, visible
from lmart.gains import GAIN_MEANINGS
from lmart.measures.conventions import CHOICES, Conventions, level_text

if TYPE_CHECKING:
    from lmart.measures import EvaluationReport
    from lmart.measures.summary import Summary
    from lmart.measures.system_evaluation import EvaluationResult, SystemEvaluation
    from lmart.measures.system_statistics import SystemStatistics

NOT_DEFINED = "n/a"
FILES_NAMED = 3  # of the data, in a line of the report


def print_result(result: EvaluationResult, statistics: SystemStatistics | None = None) -> None:
    """Print the measures to standard output: with rules and colours on a terminal, else the same bytes anywhere.

    result     : what was measured
    statistics : with the intervals of the means; None: there are none
    """
    from lmart.cli.terminal.systems_table import print_groups, print_systems

    facts = _facts(result)
    if len(result.systems) > 1:
        print_systems(result, facts)
    else:
        _print_one(result, facts, statistics)
    if result.groups:
        print_groups(result)


def _print_one(result: EvaluationResult, facts: list[tuple[str, str]], statistics: SystemStatistics | None) -> None:
    """Print the measures of one system."""
    report = result.systems[0].report
    rows = _rows(report, None if statistics is None else statistics.summaries[0])
    if statistics is not None and any(interval for *_, interval in rows):
        resampled = f"{statistics.resamples} bootstrap resamples of the queries, seed {statistics.resampling.seed}"
        facts.append(("interval", f"{100 * statistics.resampling.level:.6g}% ({resampled})"))
    if not is_terminal():
        click.echo(format_report(facts, rows), nl=False)
        return
    from lmart.cli.terminal.bars import are_shown, bars

    shown_bars = are_shown() and statistics is not None
    drawn = [bars(values, result.weights) for values in report.per_query.values()] if shown_bars else []
    _print_on_terminal(facts, rows, drawn)


def format_report(facts: Sequence[tuple[str, str]], rows: Sequence[tuple[str, str, str]]) -> str:
    """Return aligned lines, never wrapped: the facts, an empty line, the measures with their means and intervals."""
    width = max(len(one[0]) for one in (*facts, *rows))
    digits, ends = (max(len(row[i]) for row in rows) for i in (1, 2))
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    lines += ["", *(f"{name:<{width}}  {value:>{digits}}  {ends_of:>{ends}}".rstrip() for name, value, ends_of in rows)]
    return "\n".join(lines) + "\n"


def _facts(result: EvaluationResult) -> list[tuple[str, str]]:
    """Return what the numbers depend on, as names and values."""
    report = result.systems[0].report
    conventions = report.conventions
    lacks = any(system.counts.get("missing_queries") for system in result.systems)
    facts: list[tuple[str, str]] = [
        (result.data_kind, _shown_files(result.data)),
        *((one.kind, _shown_file(one.path) + _coverage(one, len(result.query_ids))) for one in result.systems),
    ]
    if conventions.like is not None:
        facts.append(("like", conventions.like))
    facts += [
        ("queries", str(report.n_queries)),
        ("documents", str(report.n_documents)),
        ("empty queries", f"{report.n_empty_queries} ({_no_label(conventions)})"),
        ("gain", f"{conventions.gain} ({GAIN_MEANINGS[conventions.gain.kind]})"),
    ]
    for name, meanings in CHOICES.items():
        value = getattr(conventions, name)
        if name in ("empty", "ties") or value != next(iter(meanings)) or (name == "missing" and lacks):
            meaning = meanings[value]
            if name == "ties" and result.systems[0].kind == "run":
                meaning = meaning.replace("of the data", "of the run")
            facts.append((name.replace("_", " "), f"{value} ({meaning})"))
    if conventions.relevant is not None:
        facts.append(("relevant", conventions.relevance))
    if report.grade_scales:
        facts.append(("err", f"stops with probability {report.stopping}"))
    if result.weights_per is not None:
        facts.append(("weights", f"one a {result.weights_per}"))
    return facts


def _no_label(conventions: Conventions) -> str:
    """Return what an empty query lacks."""
    level = conventions.relevant
    return "no label above 0" if level is None else f"no label of {level_text(level)} or more"


def _coverage(system: SystemEvaluation, n_queries: int) -> str:
    """Return in brackets how many documents and queries, of those that are judged, a run has; '' for other systems."""
    if system.kind != "run":
        return ""
    counts = system.counts
    documents = counted(counts["retrieved"], "document")
    if counts["unjudged"]:
        documents += f", {counts['unjudged']:,} of them unjudged"
    if counts["missing_queries"]:
        documents += f"; {n_queries - counts['missing_queries']:,} of {counted(n_queries, 'query', 'queries')}"
    return f" ({documents})"


def _shown_files(paths: Sequence[str]) -> str:
    """Return the names of files, of many the first ones and how many more there are."""
    named = ", ".join(map(_shown_file, paths[:FILES_NAMED]))
    return named if len(paths) <= FILES_NAMED else f"{named} and {len(paths) - FILES_NAMED} more"


def _shown_file(path: str) -> str:
    return visible(input_name(path))


def _rows(report: EvaluationReport, summaries: dict[str, Summary] | None) -> list[tuple[str, str, str]]:
    """Return each measure, its mean and its interval."""
    intervals = {} if summaries is None else {name: one.interval for name, one in summaries.items()}
    return [(name, shown(value), _interval(intervals.get(name))) for name, value in report.values.items()]


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else "..".join(f"{end:.4f}" if abs(end) < 1e6 else f"{end:.7g}" for end in interval)


def shown(value: float | None) -> str:
    """Return the mean of a measure as tables show it; None: no query counts."""
    if value is None:
        return NOT_DEFINED
    return f"{value:.6f}" if abs(value) < 1e9 else f"{value:.9g}"


def is_terminal() -> bool:
    """Return whether standard output may get colours and rules."""
    return takes_colours(sys.stdout)


def _print_on_terminal(
    entries: Sequence[tuple[str, str]], rows: Sequence[tuple[str, str, str]], bars: Sequence[str]
) -> None:
    """Print the measures of one system with bars; columns that do not fit stand in further tables."""
    from lmart.cli.terminal.layout import facts, standard_output
    from lmart.cli.terminal.systems_table import Grid, in_width

    sheet = standard_output()
    has_intervals = any(interval for *_, interval in rows)
    header = ["measure", "mean", *(["interval"] if has_intervals else []), *(["queries by value"] if bars else [])]
    cells = [
        [name, value, *([interval] if has_intervals else []), *bars[place : place + 1]]
        for place, (name, value, interval) in enumerate(rows)
    ]
    table = Grid(header, cells, best={(place, 1) for place in range(len(rows))})
    lines = facts(entries, sheet)
    for grid in in_width(table, sheet.width):
        lines += ["", *grid.lines(sheet.styled)]
    click.echo("\n".join(lines))
