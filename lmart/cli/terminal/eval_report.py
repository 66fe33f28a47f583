"""What eval prints: the report as a table, for people and pipes, and the lines of single queries."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lmart.measures.conventions import CHOICES, Conventions, level_text

if TYPE_CHECKING:
    from lmart.measures import EvaluationReport

NOT_DEFINED = "n/a"
_IN_A_CELL = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})
_GAINS = {"exp2": "2^label - 1", "linear": "the label", "table": "by label, from 0 up"}


def print_report(report: EvaluationReport, weights: str | None = None) -> None:
    """Print the report to standard output: with rules and colours on a terminal, else the same bytes anywhere.

    report  : what was measured
    weights : what had a weight each, 'query' or 'row'; None: there were no weights
    """
    facts, rows = _facts(report, weights), _rows(report)
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


def per_query_lines(report: EvaluationReport, query_ids: Sequence[str]) -> Iterator[str]:
    """Yield a header, then a line a query: its id and each measure, every digit, tab-separated."""
    yield "\t".join(("qid", *report.per_query)) + "\n"
    columns = [values.tolist() for values in report.per_query.values()]
    for query_id, *values in zip(query_ids, *columns, strict=True):
        cells = (NOT_DEFINED if math.isnan(value) else repr(value) for value in values)
        yield "\t".join((query_id.translate(_IN_A_CELL), *cells)) + "\n"


def _facts(report: EvaluationReport, weights: str | None) -> list[tuple[str, str]]:
    """Return what the numbers depend on, as names and values."""
    conventions = report.conventions
    facts = [("like", conventions.like)] if conventions.like is not None else []
    facts += [
        ("queries", str(report.n_queries)),
        ("documents", str(report.n_documents)),
        ("empty queries", f"{report.n_empty_queries} ({_no_label(conventions)})"),
        ("gain", f"{conventions.gain} ({_GAINS[conventions.gain.kind]})"),
    ]
    for name, meanings in CHOICES.items():
        value = getattr(conventions, name)
        if name in ("empty", "ties") or value != next(iter(meanings)):
            facts.append((name.replace("_", " "), f"{value} ({meanings[value]})"))
    if conventions.relevant is not None:
        facts.append(("relevant", conventions.relevance))
    if report.grade_scales:
        facts.append(("err", f"stops with probability {report.stopping}"))
    if weights is not None:
        facts.append(("weights", f"one a {weights}"))
    return facts


def _no_label(conventions: Conventions) -> str:
    """Return what an empty query lacks."""
    level = conventions.relevant
    return "no label above 0" if level is None else f"no label of {level_text(level)} or more"


def _rows(report: EvaluationReport) -> list[tuple[str, str]]:
    return [(name, NOT_DEFINED if value is None else _shown(value)) for name, value in report.values.items()]


def _shown(value: float) -> str:
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
