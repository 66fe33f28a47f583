"""What stands beside a bar: several ways to say it, of which the longest is taken that fits the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SMALLEST_BAR, LARGEST_BAR = 4, 30
TIME = 7  # columns of the time left, such as 1:02:03
GAPS = 4  # columns between the parts, and one at the end


class Label(NamedTuple):
    """How good a result is by now.

    plain : as a line of its own says it
    forms : as it stands beside a bar, the longest first
    """

    plain: str
    forms: tuple[str, ...]


class Row(NamedTuple):
    """The parts of the row of a bar that fit together: how many units are done, columns of the bar, and the label."""

    done: str
    bar: int
    label: str


def fitted(width: int, counts: Sequence[str], forms: Sequence[str]) -> Row:
    """Return the parts of a row that leave room for the time: words go first, then the bar, numbers last.

    width  : of the terminal, in columns
    counts : how many units are done, the longest form first
    forms  : of the label, the longest first
    """
    room = width - TIME - GAPS
    for form in forms or ("",):
        for count in counts:
            bar = room - len(count) - len(form)
            if bar >= SMALLEST_BAR:
                return Row(count, min(bar, LARGEST_BAR), form)
    count, form = counts[-1], (forms or ("",))[-1]
    return Row(count, max(1, room - len(count) - len(form)), form)
