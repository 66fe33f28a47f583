"""Progress of rounds and other units on standard error. Nothing here may change a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from lmart.cli.terminal.label import Label
from lmart.cli.terminal.line import Shown, TerminalLine, TimeLeft

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between plain lines; in between a tenth of the time gone by
BAR_PAUSE = 0.2  # seconds between texts next to the bar

Text = str | Label | Callable[[], str | Label]


class Progress(Protocol):
    """Shows how far the work is, and keeps it: `done` of `total` units."""

    total: int
    unit: str
    done: int

    def update(self, done: int, text: Text = "", part: float = 0.0) -> None:
        """Show that `done` units are done, and `part` of the next one, from 0 to 1, which only the time left tells.

        `text` says how good the result is by now, and is only made when shown.
        """


class _Context:
    def __init__(self, total: int, unit: str) -> None:
        self.total = total
        self.unit = unit
        self.done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        pass


class NoProgress(_Context):
    """Says nothing."""

    def update(self, done: int, text: Text = "", part: float = 0.0) -> None:
        """Note how many units are done."""
        self.done = done


class PlainProgress(_Context):
    """The first unit, the last one, and in between a line at growing intervals; no control characters."""

    def __init__(
        self, total: int, unit: str, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(total, unit)
        self._write = write
        self._clock = clock
        self._start = self._next = clock()
        self._unwritten: tuple[int, Text] | None = None

    def update(self, done: int, text: Text = "", part: float = 0.0) -> None:
        """Write a line when one is due."""
        self.done = done
        now = self._clock()
        if now < self._next and done < self.total:
            self._unwritten = done, text
            return
        self._say(done, text)
        self._unwritten = None
        self._next = now + min(max(SHORTEST_PAUSE, (now - self._start) / 10), LONGEST_PAUSE)

    def _say(self, done: int, text: Text) -> None:
        shown = _made(text).plain
        self._write(f"{done}/{self.total} {self.unit}" + (f", {shown}" if shown else ""))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is None and self._unwritten is not None:  # stopped early
            self._say(*self._unwritten)


class TerminalProgress(_Context):
    """A bar with the units done, the time left and the text, whose words go first. Rich is imported only for it."""

    def __init__(self, total: int, unit: str) -> None:
        super().__init__(total, unit)
        self._line: TerminalLine | None = None
        self._next = 0.0
        self._unwritten: Text = ""
        self._left = TimeLeft()

    def __enter__(self) -> Self:
        self._line = TerminalLine(self._shown)
        self._line.start()
        return self

    def _shown(self) -> Shown:
        done = f"{self.done}/{self.total}"
        return Shown(f"{done} {self.unit}", self.done / max(self.total, 1), self._left.text(), done)

    def update(self, done: int, text: Text = "", part: float = 0.0) -> None:
        """Move the bar, and show the text when it may change again."""
        self.done = done
        if self._line is None:
            return
        now = time.monotonic()
        self._left.update((done + part) / max(self.total, 1), now)
        self._unwritten = text
        if now >= self._next or done >= self.total:
            self._line.show(*_made(text).forms)
            self._next = now + BAR_PAUSE

    def print_above(self, text: str) -> bool:
        """Print a line over the bar; False, without printing, when no bar is shown."""
        return self._line is not None and self._line.print_above(text)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        line, self._line = self._line, None
        if line is None:
            return
        if kind is None:
            line.show(*_made(self._unwritten).forms)
        line.stop()


def _made(text: Text) -> Label:
    made = text() if callable(text) else text
    return Label(made, (made,)) if isinstance(made, str) else made
