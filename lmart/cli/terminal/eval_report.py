"""What eval prints: the report as a table, for people and pipes, and the lines of single queries."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lmart.errors import input_name, visible

if TYPE_CHECKING:
    from lmart.measures import EvaluationReport
    from lmart.measures.system_evaluation import EvaluationResult

NOT_DEFINED = "n/a"
FILES_NAMED = 3  # of the data, in a line of the report
_IN_A_CELL = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})
_EMPTY = {
    "zero": "an empty query counts 0 in every measure but dcg",
    "one": "an empty query counts 1 in every measure but dcg",
    "skip": "empty queries are left out of every mean but that of dcg",
}
_TIES = {
    "input": "documents of equal score in the order of the data",
    "average": "mean over all orders of documents of equal score",
}
_GAINS = {"exp2": "2^label - 1", "linear": "the label", "table": "by label, from 0 up"}


def print_result(result: EvaluationResult) -> None:
    """Print the measures to standard output: with rules and colours on a terminal, else the same bytes anywhere.

    result : what was measured
    """
    facts = _facts(result)
    if len(result.systems) > 1:
        from lmart.cli.terminal.systems_table import print_systems

        print_systems(result, facts)
        return
    rows = _rows(result.systems[0].report)
    if is_terminal():
        _print_on_terminal(facts, rows)
    else:
        click.echo(format_report(facts, rows), nl=False)


def format_report(facts: Sequence[tuple[str, str]], rows: Sequence[tuple[str, str]]) -> str:
    """Return aligned lines, never wrapped: the facts, an empty line, the measures."""
    width = max(len(name) for name, _ in (*facts, *rows))
    digits = max(len(value) for _, value in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    lines += ["", *(f"{name:<{width}}  {value:>{digits}}" for name, value in rows)]
    return "\n".join(lines) + "\n"


def per_query_lines(result: EvaluationResult) -> Iterator[str]:
    """Yield a header, then a line a query: its id and each measure, every digit, tab-separated.

    result : what was measured; of several systems there are the lines of each, which begin with its name
    """
    several = len(result.systems) > 1
    yield "\t".join((*(["system"] if several else []), "qid", *result.measures)) + "\n"
    query_ids = [one.translate(_IN_A_CELL) for one in result.query_ids]
    for system in result.systems:
        start = system.name.translate(_IN_A_CELL) + "\t" if several else ""
        columns = [values.tolist() for values in system.report.per_query.values()]
        for query_id, *values in zip(query_ids, *columns, strict=True):
            cells = (NOT_DEFINED if math.isnan(value) else repr(value) for value in values)
            yield start + "\t".join((query_id, *cells)) + "\n"


def _facts(result: EvaluationResult) -> list[tuple[str, str]]:
    """Return what the numbers depend on, as names and values."""
    report = result.systems[0].report
    conventions = report.conventions
    empty, kind = conventions.empty, conventions.gain.kind
    facts = [
        (result.data_kind, _shown_files(result.data)),
        *((system.kind, _shown_file(system.path)) for system in result.systems),
        ("queries", str(report.n_queries)),
        ("documents", str(report.n_documents)),
        ("empty queries", f"{report.n_empty_queries} (no label above 0)"),
        ("gain", f"{conventions.gain} ({_GAINS[kind]})"),
        ("empty", f"{empty} ({_EMPTY[empty]})"),
        ("ties", f"{conventions.ties} ({_TIES[conventions.ties]})"),
    ]
    if report.grade_scales:
        facts.append(("err", f"stops with probability {report.stopping}"))
    if result.weights_per is not None:
        facts.append(("weights", f"one a {result.weights_per}"))
    return facts


def _shown_files(paths: Sequence[str]) -> str:
    """Return the names of files, of many the first ones and how many more there are."""
    named = ", ".join(map(_shown_file, paths[:FILES_NAMED]))
    return named if len(paths) <= FILES_NAMED else f"{named} and {len(paths) - FILES_NAMED} more"


def _shown_file(path: str) -> str:
    return visible(input_name(path))


def _rows(report: EvaluationReport) -> list[tuple[str, str]]:
    return [(name, shown(value)) for name, value in report.values.items()]


def shown(value: float | None) -> str:
    """Return the mean of a measure as tables show it; None: no query counts."""
    if value is None:
        return NOT_DEFINED
    return f"{value:.6f}" if abs(value) < 1e9 else f"{value:.9g}"


def is_terminal() -> bool:
    """Return whether standard output may get colours and rules."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    return sys.stdout.isatty()


def _print_on_terminal(facts: Sequence[tuple[str, str]], rows: Sequence[tuple[str, str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    for name, value in rows:
        table.add_row(Text(name), Text(value, style="bold"))
    console = Console(highlight=False)
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        console.print(Text.assemble((f"{name:<{width}}  ", "dim"), value), soft_wrap=True)
    Console(highlight=False, width=10_000).print(table, soft_wrap=True)  # rich would cut numbers
