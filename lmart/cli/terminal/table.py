"""Tables of results on standard output: with rules on a terminal, else plain lines that are the same anywhere.

On a terminal that is too narrow the columns stand in several blocks, one below the other; numbers are never cut.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import click

from lmart.cli.terminal.eval_report import is_terminal


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned lines, a header first, numbers to the right; never wrapped."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    return ["  ".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)) for cells in (columns, *rows)]


def blocks(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """Return the numbers of the columns of each block of a table; every block begins with column 0.

    columns : their names
    rows    : of cells
    width   : that a block may have, if its columns allow; 1 column before it and 3 between columns are empty
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    made = [[0]]
    for number in range(1, len(columns)):
        if len(made[-1]) > 1 and sum(widths[one] + 3 for one in (*made[-1], number)) - 1 > width:
            made.append([0])
        made[-1].append(number)
    return made


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output."""
    if not is_terminal():
        click.echo("\n".join(table_lines(columns, rows)))
        return
    for block in blocks(columns, rows, shutil.get_terminal_size().columns):
        _print_block([columns[number] for number in block], [[cells[number] for number in block] for cells in rows])


def _print_block(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
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
