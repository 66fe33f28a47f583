"""Tables of results on standard output: with rules on a terminal, else plain lines that are the same anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lmart.cli.terminal.eval_report import is_terminal


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned lines, a header first, numbers to the right; never wrapped."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    return ["  ".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)) for cells in (columns, *rows)]


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output."""
    if not is_terminal():
        click.echo("\n".join(table_lines(columns, rows)))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for cells in rows:
        table.add_row(*map(Text, cells))
    # As wide as it needs: a narrow terminal breaks lines, rich would cut numbers.
    Console(highlight=False, width=10_000).print(table, soft_wrap=True)
