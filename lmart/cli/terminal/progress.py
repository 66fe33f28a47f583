"""Progress on standard error: a line at the bottom of a terminal, elsewhere plain lines. Nothing here changes a result.

The line fits any width: it takes a shorter form of its text, or cuts the text, then leaves out the bar; the work done
and the time left stay.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TextIO, cast

from lmart.errors import visible
from lmart.threads import threads_can_start

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from lmart.formats.read_options import ReadState

LONGEST_BAR, SHORTEST_BAR = 30, 5  # characters
SHORTEST_TEXT = 40  # characters of text that a bar leaves room for
REDRAWS = 8  # a second
FIRST_SECONDS = 1.0  # after which the time left is shown
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between plain lines; in between a tenth of the time gone by
BAR_PAUSE = 0.2  # seconds between texts next to the bar
QUIET_SECONDS = 1.0  # of reading before its progress is shown


class Label(NamedTuple):
    """How good a result is by now.

    plain : as a line of its own says it
    forms : as it stands next to a bar, the longest first
    """

    plain: str
    forms: tuple[str, ...]


class Shown(NamedTuple):
    """The state of the work as a line shows it.

    done  : the work done
    share : of the work, from 0 to 1; negative: unknown, so there is no bar
    left  : the time left
    short : the work done in fewer characters; '': there is no such form
    """

    done: str
    share: float
    left: str
    short: str = ""


class TimeLeft:
    """Estimates the time left from the share done since the first report."""

    def __init__(self) -> None:
        self._began = self._now = time.monotonic()
        self._first = self._share = 0.0

    def update(self, share: float, now: float) -> None:
        """Take the share that is done, from 0 to 1, and the time in seconds."""
        if self._share == 0.0 and share > 0.0:  # what came before may have been something else, such as compiling
            self._first, self._began_first = share, now
        self._share, self._now = share, now

    def seconds(self) -> float | None:
        """Return how many seconds are left; None when that is not known yet."""
        if self._share <= 0.0:
            return None
        gone, done = self._now - self._began, self._share
        if self._share > self._first and self._now - self._began_first >= FIRST_SECONDS:
            gone, done = self._now - self._began_first, self._share - self._first
        left = gone * max(1.0 - self._share, 0.0) / done
        return max(left - (time.monotonic() - self._now), 0.0) if self._share < 1.0 else 0.0

    def text(self) -> str:
        """Return the time left as a clock shows it; the time it took once it is done."""
        left = self.seconds()
        if left is None:
            return "-:--"
        seconds = round(self._now - self._began if self._share >= 1.0 else left)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Parts(NamedTuple):
    """The parts of a line: the work done, characters of the bar, the filled ones among them, and the rest."""

    done: str
    bar: int
    filled: int
    rest: str


def composed(shown: Shown, forms: Sequence[str], width: int) -> Parts:
    """Return the parts of a line: the first form that leaves room for a bar, else the last one, cut if need be."""
    for form in forms if len(forms) > 1 and shown.share >= 0.0 else ():
        for done in (shown.done, shown.short or shown.done):
            bar = width - len(done) - len(shown.left) - len(form) - 3
            if bar >= SHORTEST_BAR:
                bar = min(LONGEST_BAR, bar)
                return Parts(done, bar, min(int(bar * shown.share), bar), f"{shown.left} {form}")
    text = forms[-1]
    done = shown.short if len(forms) > 1 and shown.short else shown.done
    room = width - len(done) - len(shown.left) - 3
    bar = min(LONGEST_BAR, room - min(len(text) + 1 if text else 0, SHORTEST_TEXT))
    bar = bar if bar >= SHORTEST_BAR and shown.share >= 0.0 else 0
    rest = " ".join(filter(None, (shown.left, text)))
    space = width - len(done) - (bar + 1 if bar else 0) - 1
    if len(rest) > space:
        rest = rest[: max(space - 1, len(shown.left))].rstrip(" ,") + ("…" if space > len(shown.left) + 1 else "")
    return Parts(done, bar, min(int(bar * shown.share), bar) if bar else 0, rest)


class _Screen(io.TextIOBase):
    """Standard error, which loses what cannot be written: a terminal may be closed while the work goes on."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of standard error."""
        return sys.stderr.encoding

    def write(self, text: str) -> int:
        """Write, if it can be written."""
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what waits, if it can be written."""
        with suppress(OSError, ValueError):
            sys.stderr.flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return sys.stderr.isatty()

    def fileno(self) -> int:
        """Return the number of its descriptor."""
        return sys.stderr.fileno()


class TerminalLine:
    """The line, from `start` to `stop`."""

    def __init__(self, shown: Callable[[], Shown], stays: bool = True) -> None:
        self.forms: tuple[str, ...] = ("",)
        self._shown = shown
        self._stays = stays
        self._live: Live | None = None

    def start(self) -> None:
        """Show it."""
        from rich.console import Console
        from rich.live import Live

        console = Console(file=cast(TextIO, _Screen()), highlight=False)
        # Rich draws the line again from a thread of its own; where none can be started, each new text does.
        self._live = Live(
            console=console,
            auto_refresh=threads_can_start(),
            refresh_per_second=REDRAWS,
            transient=not self._stays,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: self._render(console),
        )
        self._live.start()

    def _render(self, console: Console) -> Text:
        from rich.text import Text

        done, bar, filled, rest = composed(self._shown(), self.forms, console.width - 1)
        line = Text(f"{done} ", no_wrap=True, overflow="crop")
        if bar:
            line.append("━" * filled, "cyan")
            line.append("━" * (bar - filled) + " ", "bright_black")
        line.append(rest)
        return line

    def show(self, *forms: str) -> None:
        """Show another text, in the first of its forms that fits."""
        self.forms = tuple(map(visible, forms))
        if self._live is not None and not self._live.auto_refresh:
            self._live.refresh()

    def print_above(self, text: str) -> bool:
        """Print a line over it; False, without printing, when it is not shown."""
        if self._live is None:
            return False
        from rich.text import Text

        self._live.console.print(Text(text), soft_wrap=True)
        return True

    def stop(self) -> None:
        """Show it no longer, or leave its last state behind."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


LabelLike = str | Label | Callable[[], str | Label]


class Progress(Protocol):
    """Shows how far the work is, and keeps it: `done` of `total` units."""

    total: int
    unit: str
    done: int

    def update(self, done: int, text: LabelLike = "", part: float = 0.0) -> None:
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

    def update(self, done: int, text: LabelLike = "", part: float = 0.0) -> None:
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
        self._unwritten: tuple[int, LabelLike] | None = None

    def update(self, done: int, text: LabelLike = "", part: float = 0.0) -> None:
        """Write a line when one is due."""
        self.done = done
        now = self._clock()
        if now < self._next and done < self.total:
            self._unwritten = done, text
            return
        self._say(done, text)
        self._unwritten = None
        self._next = now + min(max(SHORTEST_PAUSE, (now - self._start) / 10), LONGEST_PAUSE)

    def _say(self, done: int, text: LabelLike) -> None:
        shown = _made(text).plain
        self._write(f"{done}/{self.total} {self.unit}" + (f", {shown}" if shown else ""))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is None and self._unwritten is not None:  # stopped early
            self._say(*self._unwritten)


class TerminalProgress(_Context):
    """A bar with the units done, the time left and the text. Rich is imported only for it."""

    def __init__(self, total: int, unit: str) -> None:
        super().__init__(total, unit)
        self._line: TerminalLine | None = None
        self._next = 0.0
        self._unwritten: LabelLike = ""
        self._left = TimeLeft()

    def __enter__(self) -> Self:
        self._line = TerminalLine(self._shown)
        self._line.start()
        return self

    def _shown(self) -> Shown:
        done = f"{self.done}/{self.total}"
        return Shown(f"{done} {self.unit}", self.done / max(self.total, 1), self._left.text(), done)

    def update(self, done: int, text: LabelLike = "", part: float = 0.0) -> None:
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


def _made(text: LabelLike) -> Label:
    made = text() if callable(text) else text
    return Label(made, (made,)) if isinstance(made, str) else made


class ReadingProgress:
    """Takes the states of readers, as `ReadOptions.telling` hands them on, and shows one line at a time."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._line: TerminalLine | None = None
        self.rows = 0  # of the inputs that have ended
        self._state: ReadState | None = None
        self._passes: Counter[str] = Counter()
        self._began = 0.0
        self._left = TimeLeft()

    def __call__(self, state: ReadState) -> None:
        """Take how far the reading of an input is."""
        now = time.monotonic()
        if self._state is None:
            self._began = now
            self._left = TimeLeft()
            self._passes[state.path] += 1
        self._state = state
        self._left.update(state.share, now)
        if state.ended:
            self.rows += state.rows
            self.close()
        elif self._line is None and now - self._began >= QUIET_SECONDS:
            self._line = TerminalLine(self._shown, stays=False)
            self._line.start()
            self._line.show("standard input" if state.path == "-" else os.path.basename(state.path))
        elif self._line is not None:
            self._line.show(*self._line.forms)

    def _shown(self) -> Shown:
        state = self._state
        if state is None:
            return Shown("", -1.0, "")
        what = self._what + (" again" if self._passes[state.path] > 1 else "")
        if state.share > 0.0:
            return Shown(f"{what} {state.share:.0%}", state.share, self._left.text())
        speed = state.taken / 1e6 / max(time.monotonic() - self._began, 1e-3)
        return Shown(f"{what} {state.rows:,} rows, {speed:.0f} MB/s", -1.0, "")

    def print_above(self, text: str) -> bool:
        """Print a line over the progress; False, without printing, when none is shown."""
        return self._line is not None and self._line.print_above(text)

    def close(self) -> None:
        """Take the line off the screen."""
        line, self._line = self._line, None
        if line is not None:
            line.stop()
        self._state = None
