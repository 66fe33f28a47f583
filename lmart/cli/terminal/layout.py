"""Laying out text for standard output: facts, tables, bars and curves, as wide as the terminal.

Names are shortened, numbers never. Off a terminal the text is the same anywhere: ASCII, and nothing is shortened.
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import click

from lmart.cli.terminal import eval_report

GAP = 2  # blanks between columns
SHORTEST_NAME = 10  # to which names are cut on a narrow terminal
LONGEST_BAR, SHORTEST_BAR = 24, 4
LONGEST_CURVE, SHORTEST_CURVE = 48, 8
BAR = ("#", "█")
PARTS_OF_BAR = "▏▎▍▌▋▊▉"
NUMBER = re.compile(r"[-+]?[0-9.,e+-]+[;:]?")
LEVELS = (".:-=+*%#", "▁▂▃▄▅▆▇█")


@dataclass(frozen=True)
class Sheet:
    """Standard output as a place for text: how wide it is, and what it can show.

    width   : columns; None: as wide as it needs
    unicode : whether bars may be drawn with block characters, else with ASCII
    styled  : whether text may be bold or faint
    """

    width: int | None = None
    unicode: bool = False
    styled: bool = False

    def bold(self, text: str) -> str:
        """Return the text in bold, where that can be shown."""
        return click.style(text, bold=True) if self.styled else text

    def faint(self, text: str) -> str:
        """Return the text faint, where that can be shown."""
        return click.style(text, dim=True) if self.styled else text


def standard_output() -> Sheet:
    """Return the sheet of standard output: a terminal, or a file or pipe, to which the same bytes go anywhere."""
    if not eval_report.is_terminal():
        return Sheet()
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return Sheet(max(20, shutil.get_terminal_size().columns), encoding.startswith("utf"), True)


def facts(entries: Sequence[tuple[str, str]], sheet: Sheet) -> list[str]:
    """Return names with their values beside them; a value that is too long goes on below itself.

    entries : names and values
    sheet   : what they are written on
    """
    column = max(map(cells, (name for name, _ in entries)), default=0) + GAP
    lines = []
    for name, value in entries:
        first, *others = paragraph(value, sheet, column)
        lines += [sheet.faint(padded(name, column)) + first, *(" " * column + text for text in others)]
    return lines


def paragraph(text: str, sheet: Sheet, used: int = 0) -> list[str]:
    """Return a text in lines that fit, at least one; names that are wider than a line are shortened.

    text  : words
    sheet : what it is written on
    used  : columns that are taken on its left
    """
    if sheet.width is None:
        return [text]
    room = max(sheet.width - used, SHORTEST_NAME)
    words = [word if NUMBER.fullmatch(word) else shortened(word, room) for word in text.split(" ")]
    lines = textwrap.wrap(" ".join(words), room, break_on_hyphens=False, break_long_words=False)
    return lines or [""]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], sheet: Sheet, bars: Sequence[float] = ()) -> list[str]:
    """Return aligned lines, a header first: names to the left, numbers to the right, and bars where there is room.

    header : of the columns, the first one of names
    rows   : cells
    sheet  : what they are written on
    bars   : from 0 to 1, one a row; (): none
    """
    widths = [max(map(cells, column)) for column in zip(header, *rows, strict=True)]
    numbers = sum(widths[1:]) + GAP * (len(widths) - 1)
    if sheet.width is not None:
        widths[0] = min(widths[0], max(sheet.width - numbers, SHORTEST_NAME))
    room = LONGEST_BAR if sheet.width is None else sheet.width - numbers - widths[0] - GAP
    drawn = [""] * len(rows)
    if bars and room >= SHORTEST_BAR:
        drawn = ["  " + bar(share, min(room, LONGEST_BAR), sheet) for share in bars]
    lines = [sheet.bold(_row(header, widths))]
    lines += [(_row(row, widths) + end).rstrip() for row, end in zip(rows, drawn, strict=True)]
    return lines


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    first = padded(shortened(row[0], widths[0]), widths[0])
    others = (" " * (width - cells(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True))
    return (" " * GAP).join([first, *others])


def bar(share: float, length: int, sheet: Sheet) -> str:
    """Return a bar.

    share  : how much of it is filled, from 0 to 1; what is above 0 shows
    length : in columns
    sheet  : what it is drawn on
    """
    eighths = min(max(round(share * length * 8), int(share > 0)), length * 8)
    if not sheet.unicode:
        return BAR[0] * (-(-eighths // 8) if eighths < 8 else round(eighths / 8))
    return BAR[1] * (eighths // 8) + (PARTS_OF_BAR[eighths % 8 - 1] if eighths % 8 else "")


def curve(values: Sequence[float | None], length: int, sheet: Sheet) -> str:
    """Return values as a row of characters that rise with them; a blank where there is none.

    The highest is at the top. The bottom is twice as far below it as the lower quartile is, or the lowest value,
    so that a steep rise in the first rounds does not flatten all that follows.

    values : in their order; several of them share a character when there are more than `length`
    length : the most characters
    sheet  : what it is drawn on
    """
    levels = LEVELS[sheet.unicode]
    values = [None if value is None else math.ldexp(value, -60) for value in values]  # exact, and sums stay finite
    known = sorted(value for value in values if value is not None)
    high = known[-1] if known else 0.0
    low = max(known[0], high - 2 * (high - known[len(known) // 4])) if known else 0.0
    drawn = []
    for start, stop in spans(len(values), length):
        part = [value for value in values[start:stop] if value is not None]
        if not part:
            drawn.append(" ")
            continue
        mean = math.fsum(part) / len(part)
        share = min(max((mean - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        drawn.append(levels[min(int(share * len(levels)), len(levels) - 1)])
    return "".join(drawn)


def spans(n: int, length: int) -> list[tuple[int, int]]:
    """Return which of n values, from and up to, stand in each of at most `length` characters of a curve.

    n      : number of values
    length : the most characters
    """
    count = min(n, length)
    return [(k * n // count, (k + 1) * n // count) for k in range(count)]


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    text : without control characters
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """Return the text with blanks up to the width.

    text  : on the left
    width : in columns of a terminal
    """
    return text + " " * (width - cells(text))


def shortened(name: str, room: int) -> str:
    """Return the name in at most `room` columns of a terminal: its beginning and its end, where it is longer.

    name : to be shown
    room : in columns
    """
    first, last = name, ""
    while cells(first) + cells(last) + (3 if len(first) + len(last) < len(name) else 0) > room:
        kept = len(first) + len(last) - 1
        first, last = name[: (kept + 1) // 2], name[len(name) - kept // 2 :]
    return name if first == name else f"{first}...{last}"
