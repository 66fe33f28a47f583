"""What is said to the user on standard error: notices, warnings, errors, progress. Results never pass here."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager

import lmart.kernels
from lmart.cli.progress import NoProgress, PlainProgress, Progress, TerminalProgress
from lmart.errors import visible

lmart.kernels.messages.hold()  # until there is a Console


def write_line(text: str) -> None:
    """Write one line to standard error, escaped where it could not be shown; never fails.

    Losing its log does not stop the work: results go elsewhere.
    """
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    line = visible(text) + "\n"
    try:
        sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def error(text: str) -> None:
    """Write `lmart: error: TEXT`."""
    write_line(f"lmart: error: {text}")


def on_terminal() -> bool:
    """Return whether standard error may get colours, control characters and bars."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    try:
        return sys.stderr.isatty()
    except ValueError:  # closed
        return False


class Console:
    """`notice` and `warning` write one plain line each, `progress` shows rounds going by; `quiet` silences all three.

    The newest console also passes on what compiling kernels has to tell.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bar: TerminalProgress | None = None
        lmart.kernels.messages.listen(self.notice, self.warning)

    def notice(self, text: str) -> None:
        """Say something worth knowing."""
        self._line(f"lmart: {text}")

    def warning(self, text: str) -> None:
        """Say something that may be wrong."""
        self._line(f"lmart: warning: {text}")

    def progress(self, total: int, unit: str = "trees") -> AbstractContextManager[Progress]:
        """Return a context whose `update(done, text)` shows progress: a bar on a terminal, else a few lines."""
        if self.quiet:
            return NoProgress()
        if not on_terminal():
            return PlainProgress(total, unit, self.notice)
        self._bar = TerminalProgress(total, unit)
        return self._bar

    def _line(self, text: str) -> None:
        if self.quiet:
            return
        if self._bar is None or not self._bar.print_above(visible(text)):
            write_line(text)
