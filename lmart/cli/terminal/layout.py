"""Text for standard output: facts, tables, bars and curves, as wide as the terminal.

Names are shortened, numbers never. Off a terminal the text is the same anywhere: ASCII, and nothing is shortened.
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click

from lmart.cli.terminal.console import takes_colours

GAP = 2  # blanks between columns
SHORTEST_NAME = 10  # to which names are cut on a narrow terminal
LONGEST_BAR, SHORTEST_BAR = 24, 4
LONGEST_CURVE, SHORTEST_CURVE = 48, 8
BAR = ("#", "█")
PARTS_OF_BAR = "▏▎▍▌▋▊▉"
NUMBER = re.compile(r"[-+]?[0-9.,e+-]+[;:]?")
LEVELS = (".:-=+*%#", "▁▂▃▄▅▆▇█")
CUT = ".."  # stands in a name for the characters that are left out


@dataclass(frozen=True)
class Sheet:
    """Standard output: how wide it is, and which characters and styles it can show.

    width   : in columns; None: unlimited
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

    def style(self, text: str, style: str | None) -> str:
        """Return the text in a style of `Table`, where that can be shown; None: as it is."""
        if style is None or not self.styled:
            return text
        return click.style(text, bold=True) if style == "bold" else click.style(text, fg=style)


def is_terminal() -> bool:
    """Return whether standard output may get colours."""
    return takes_colours(sys.stdout)


def standard_output() -> Sheet:
    """Return the sheet of standard output: a terminal, or a file or pipe, to which the same bytes go anywhere."""
    if not is_terminal():
        return Sheet()
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return Sheet(max(20, shutil.get_terminal_size().columns), encoding.startswith("utf"), True)


def facts(entries: Sequence[tuple[str, str]], sheet: Sheet, least: int = 0) -> list[str]:
    """Return names, each with its value on the same line; a value that is too long continues below itself."""
    column = max(least, *map(cells, (name for name, _ in entries)), 0) + GAP
    lines = []
    for name, value in entries:
        first, *others = paragraph(value, sheet, column)
        lines += [sheet.faint(padded(name, column)) + first, *(" " * column + text for text in others)]
    return lines


def paragraph(text: str, sheet: Sheet, used: int = 0) -> list[str]:
    """Return a text in lines that fit, at least one; names that are wider than a line are shortened."""
    if sheet.width is None:
        return [text]
    room = max(sheet.width - used, SHORTEST_NAME)
    words = [word if NUMBER.fullmatch(word) else shortened(word, room) for word in text.split(" ")]
    lines = textwrap.wrap(" ".join(words), room, break_on_hyphens=False, break_long_words=False)
    return lines or [""]


@dataclass(frozen=True)
class Table:
    """Cells: names on the left of the first column, numbers on the right of the others.

    header : names of the columns; (): there are none
    rows   : cells, as many in each
    styles : of cells, by row and column: "bold", "green" or "red", which only a terminal shows
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    styles: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def widths(self) -> list[int]:
        """Return how many columns of a terminal each column takes."""
        lines = [self.header, *self.rows] if self.header else self.rows
        return [max(map(cells, column)) for column in zip(*lines, strict=True)]

    def lines(self, sheet: Sheet, bars: Sequence[float] = (), least: int = 0) -> list[str]:
        """Return aligned lines, the header first: names are shortened to fit; bars from 0 to 1 where there is room."""
        widths = self.widths()
        numbers = sum(widths[1:]) + GAP * (len(widths) - 1)
        widths[0] = max(widths[0], least)
        if sheet.width is not None:
            widths[0] = min(widths[0], max(sheet.width - numbers, SHORTEST_NAME))
        room = LONGEST_BAR if sheet.width is None else sheet.width - numbers - widths[0] - GAP
        lines = [sheet.bold(_joined(_aligned(self.header, widths)))] if self.header else []
        for i, row in enumerate(self.rows):
            styled = [sheet.style(cell, self.styles.get((i, j))) for j, cell in enumerate(_aligned(row, widths))]
            if bars and room >= SHORTEST_BAR:
                styled.append(bar(bars[i], min(room, LONGEST_BAR), sheet))
            lines.append(_joined(styled))
        return lines

    def in_width(self, width: int | None) -> list[Table]:
        """Return tables, each with the first column and as many others as fit."""
        first, *widths = self.widths()
        tables: list[Table] = []
        start = 0
        while start < len(widths):
            stop, used = start + 1, first + GAP + widths[start]
            while stop < len(widths) and (width is None or used + GAP + widths[stop] <= width):
                used += GAP + widths[stop]
                stop += 1
            header, *rows = [[*row[:1], *row[start + 1 : stop + 1]] for row in (self.header, *self.rows)]
            styles = {(i, j - start): style for (i, j), style in self.styles.items() if start < j <= stop}
            tables.append(Table(header, rows, styles))
            start = stop
        return tables


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the cells of a row, each as wide as its column."""
    others = (" " * (width - cells(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True))
    return [padded(shortened(row[0], widths[0]), widths[0]), *others]


def _joined(row: Sequence[str]) -> str:
    return (" " * GAP).join(row).rstrip()


def bar(share: float, length: int, sheet: Sheet) -> str:
    """Return a bar of which a share is filled; above 0 there is always a mark."""
    eighths = min(max(round(share * length * 8), int(share > 0)), length * 8)
    if not sheet.unicode:
        return BAR[0] * (-(-eighths // 8) if eighths < 8 else round(eighths / 8))
    return BAR[1] * (eighths // 8) + (PARTS_OF_BAR[eighths % 8 - 1] if eighths % 8 else "")


def curve(values: Sequence[float | None], length: int, sheet: Sheet) -> str:
    """Return values as a row of characters that rise with them; a blank where there is none.

    The highest is at the top. The bottom is twice as far below it as the lower quartile is, or the lowest value,
    so that a steep rise in the first rounds does not flatten all that follows.

    Several values share a character when there are more than `length`.
    """
    levels = LEVELS[sheet.unicode]
    values = [None if value is None else math.ldexp(value, -60) for value in values]  # exact, and sums stay finite
    numbers = sorted(value for value in values if value is not None)
    high = numbers[-1] if numbers else 0.0
    low = max(numbers[0], high - 2 * (high - numbers[len(numbers) // 4])) if numbers else 0.0
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
    """Return which of n values, from and up to, stand in each of at most `length` characters of a curve."""
    count = min(n, length)
    return [(k * n // count, (k + 1) * n // count) for k in range(count)]


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """Return the text with blanks up to the width."""
    return text + " " * (width - cells(text))


def shortened(name: str, room: int) -> str:
    """Return the name in at most `room` columns of a terminal: its beginning and its end, where it is longer."""
    first, last = name, ""
    while cells(first) + cells(last) + (len(CUT) if len(first) + len(last) < len(name) else 0) > room:
        kept = len(first) + len(last) - 1
        first, last = name[: (kept + 1) // 2], name[len(name) - kept // 2 :]
    return name if first == name else f"{first}{CUT}{last}"
