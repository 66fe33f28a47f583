"""Progress of training rounds on standard error. Nothing here may change a result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from lmart.errors import visible

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between plain lines; in between a tenth of the time gone by


class Progress(Protocol):
    """Something that can be told how far the work is."""

    def update(self, done: int, text: str = "") -> None:
        """Show that `done` units are done; `text` says how good the result is by now."""


class _Context:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        pass


class NoProgress(_Context):
    """Says nothing."""

    def update(self, done: int, text: str = "") -> None:
        pass


class PlainProgress(_Context):
    """The first unit, the last one, and in between a line at growing intervals; no control characters."""

    def __init__(
        self, total: int, unit: str, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = total
        self.unit = unit
        self._write = write
        self._clock = clock
        self._start = self._next = clock()
        self._unwritten: str | None = None

    def update(self, done: int, text: str = "") -> None:
        line = f"{done}/{self.total} {self.unit}" + (f", {text}" if text else "")
        now = self._clock()
        if now < self._next and done < self.total:
            self._unwritten = line
            return
        self._write(line)
        self._unwritten = None
        self._next = now + min(max(SHORTEST_PAUSE, (now - self._start) / 10), LONGEST_PAUSE)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is None and self._unwritten is not None:  # stopped early
            self._write(self._unwritten)


class TerminalProgress(_Context):
    """A bar with the units done, the text and the time left. Rich is imported only for it."""

    def __init__(self, total: int, unit: str) -> None:
        self.total = total
        self.unit = unit
        self._bar: RichProgress | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.completed}/{task.total} {task.fields[unit]}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        )
        console = Console(file=sys.stderr, highlight=False)
        bar = Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False)
        bar.add_task("", total=self.total, unit=self.unit)
        bar.start()
        self._bar = bar
        return self

    def update(self, done: int, text: str = "") -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, description=visible(text))

    def print_above(self, text: str) -> bool:
        """Print a line over the bar; False, without printing, when no bar is shown."""
        if self._bar is None:
            return False
        from rich.text import Text

        self._bar.console.print(Text(text), soft_wrap=True)
        return True

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()
