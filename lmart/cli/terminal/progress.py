"""Progress of training rounds on standard error. Nothing here may change a result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from lmart.cli.terminal.label import SMALLEST_BAR, Label, fitted
from lmart.errors import visible
from lmart.threads import threads_can_start

if TYPE_CHECKING:
    from rich.progress import BarColumn
    from rich.progress import Progress as RichProgress

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between plain lines; in between a tenth of the time gone by
BAR_PAUSE = 0.2  # seconds between texts next to the bar
SPEED_PERIOD = 120.0  # seconds by which the time left is estimated

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
    """A bar with the units done, the text and the time left, which is never cut. Rich is imported only for it."""

    def __init__(self, total: int, unit: str) -> None:
        super().__init__(total, unit)
        self._bar: RichProgress | None = None
        self._column: BarColumn
        self._next = 0.0
        self._unwritten: Text = ""

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._column = BarColumn(bar_width=SMALLEST_BAR)
        columns = (
            TextColumn("{task.fields[count]}", markup=False),
            self._column,
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        )
        console = Console(file=sys.stderr, highlight=False)
        # Rich draws the bar again from a thread of its own; where none can be started, each new text does.
        threads = threads_can_start()
        bar = Progress(
            *columns,
            console=console,
            redirect_stdout=False,
            redirect_stderr=False,
            auto_refresh=threads,
            speed_estimate_period=SPEED_PERIOD,
        )
        bar.add_task("", total=self.total, count="")
        self._show_text(bar)
        bar.start()
        self._bar = bar
        return self

    def update(self, done: int, text: Text = "", part: float = 0.0) -> None:
        """Move the bar, and show the text when it may change again."""
        self.done = done
        if self._bar is None:
            return
        self._bar.update(self._bar.task_ids[0], completed=done + part)
        self._unwritten = text
        now = time.monotonic()
        if now >= self._next or done >= self.total:
            self._show_text(self._bar)
            self._next = now + BAR_PAUSE

    def _show_text(self, bar: RichProgress) -> None:
        counts = f"{self.done}/{self.total} {self.unit}", f"{self.done}/{self.total}"
        forms = [visible(form) for form in _made(self._unwritten).forms]
        row = fitted(bar.console.width, counts, forms)
        self._column.bar_width = row.bar
        refresh = not bar.live.auto_refresh and bar.live.is_started
        bar.update(bar.task_ids[0], description=row.label, count=row.done, refresh=refresh)

    def print_above(self, text: str) -> bool:
        """Print a line over the bar; False, without printing, when no bar is shown."""
        if self._bar is None:
            return False
        from rich.text import Text as RichText

        self._bar.console.print(RichText(text), soft_wrap=True)
        return True

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        bar, self._bar = self._bar, None
        if bar is None:
            return
        if kind is None:
            self._show_text(bar)
        bar.stop()


def _made(text: Text) -> Label:
    made = text() if callable(text) else text
    return Label(made, (made,)) if isinstance(made, str) else made
