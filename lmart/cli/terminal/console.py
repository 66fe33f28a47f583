"""Messages on standard error: notices, warnings, errors, progress. Results never pass here."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, TextIO

import lmart.kernels
from lmart.cli.terminal.progress import NoProgress, PlainProgress, Progress, ReadingProgress, TerminalProgress
from lmart.errors import visible

if TYPE_CHECKING:
    from lmart.formats.read_options import ReadState

SHORT_COMPILING = 1.0  # seconds below which it is not worth a line
USUAL_WIDTH = 80  # of a terminal that does not report its own
LONG_COMPILING = 2.0  # seconds after which it is worth a line even where nobody may watch

lmart.kernels.messages.hold()  # until there is a Console


def write_line(text: str) -> None:
    """Write one line to standard error, escaped where it could not be shown; never fails.

    Losing its log does not stop the work: results go elsewhere.
    """
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    line = _stamp() + visible(text) + "\n"
    try:
        sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _stamp() -> str:
    """Return the time that a line of the log begins with; nothing unless it is asked for."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} " if Console.shows_time else ""


def error(text: str) -> None:
    """Write `lmart: error: TEXT`."""
    write_line(f"lmart: error: {text}")


def in_lines(text: str) -> list[str]:
    """Return a message in lines that a terminal does not break inside words; elsewhere in a single line."""
    text = visible(text)
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return [text]
    room = (width or USUAL_WIDTH) - len(_stamp())
    return textwrap.wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False)


def on_terminal() -> bool:
    """Return whether standard error may get colours, control characters and bars."""
    return takes_colours(sys.stderr)


def takes_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that may get colours and control characters."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


class Console:
    """`notice` and `warning` write one plain line each, `progress` shows rounds going by.

    quiet  : 1 silences notices and progress, 2 warnings too
    speaks : whether the command reports its progress even where nobody watches, as train does
    `warnings` holds every warning of the run, shown or silenced.
    With `shows_time`, which is of the process, each line begins with the time.
    The newest console also passes on messages of compiling, and says how far the work was when it ends early.
    """

    newest: ClassVar[Console | None] = None
    shows_time: ClassVar[bool] = False

    def __init__(self, quiet: int = 0, speaks: bool = False) -> None:
        self.quiet = quiet
        self._speaks = speaks
        self._announced_compiling = False
        self.warnings: list[str] = []
        self.kept = ""  # a clause that says where the work so far stands even when it is interrupted
        self._started = time.monotonic()
        self._bar: TerminalProgress | ReadingProgress | None = None
        self._progress: Progress | None = None
        lmart.kernels.messages.listen(self._of_compiling, self._warn, self._compiling)
        Console.newest = self

    def notice(self, text: str) -> None:
        """Report something the user may want to know."""
        if not self.quiet:
            self._line(f"lmart: {text}")

    def _compiling(self, seconds: float, expected: float) -> None:
        """Say once that kernels are compiled: on a terminal at once if it takes long, elsewhere only when it does."""
        if not self._announced_compiling and (
            seconds >= LONG_COMPILING or (on_terminal() and expected >= SHORT_COMPILING)
        ):
            self._announced_compiling = True
            about = f", about {math.ceil(expected)} s" if expected >= SHORT_COMPILING else ""
            self._of_compiling(f"compiling for this command{about}")

    def _of_compiling(self, text: str) -> None:
        """Report on compiling, on a terminal or where the command reports its progress anyway."""
        if self._speaks or on_terminal():
            self.notice(text)

    def warning(self, text: str) -> None:
        """Report something that may be wrong."""
        self.warnings.append(text)
        self._warn(text)

    def progress(self, total: int, unit: str = "trees", plain: bool = True) -> AbstractContextManager[Progress]:
        """Return a context whose `update(done, text)` shows progress: a bar on a terminal, else a few lines.

        plain : whether there are lines elsewhere; else there is nothing
        """
        shown: NoProgress | PlainProgress | TerminalProgress
        if self.quiet or not (plain or on_terminal()):
            shown = NoProgress(total, unit)
        elif not on_terminal():
            shown = PlainProgress(total, unit, self.notice)
        else:
            shown = self._bar = TerminalProgress(total, unit)
        self._progress = shown
        return shown

    def reading(self, what: str = "reading", prints: bool = False) -> Callable[[ReadState], None] | None:
        """Return what shows how far the reading of inputs is, on a terminal; None elsewhere."""
        if self.quiet or not on_terminal() or (prints and sys.stdout.isatty()):
            return None
        self._bar = ReadingProgress(what)
        return self._bar

    @property
    def rows_read(self) -> int:
        """The rows of all inputs that `reading` has shown."""
        return self._bar.rows if isinstance(self._bar, ReadingProgress) else 0

    def done(self, text: str, path: str) -> None:
        """Report on a terminal a file that was written, but not standard output, with the seconds it took."""
        if on_terminal() and path != "-":
            self.notice(f"{text} to {path} in {self.seconds:,.1f} s")

    @property
    def seconds(self) -> float:
        """How long the command has taken."""
        return time.monotonic() - self._started

    def close(self) -> None:
        """Take progress of reading off the screen."""
        if isinstance(self._bar, ReadingProgress):
            self._bar.close()

    def how_far(self) -> str:
        """Return how far the newest progress is, such as `3 of 300 trees`; nothing before its first unit."""
        shown = self._progress
        return f"{shown.done:,} of {shown.total:,} {shown.unit}" if shown is not None and shown.done else ""

    def _warn(self, text: str) -> None:  # also for messages of compiling, which are not about the run
        if self.quiet < 2:
            self._line(f"lmart: warning: {text}")

    def _line(self, text: str) -> None:
        for line in in_lines(text):
            if self._bar is None or not self._bar.print_above(_stamp() + line):
                write_line(line)
