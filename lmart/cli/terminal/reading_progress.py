"""Progress of reading inputs on a terminal: a bar by bytes of a file, rows and speed of a pipe, from one second on."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING

from lmart.cli.terminal.line import Shown, TerminalLine, TimeLeft

if TYPE_CHECKING:
    from lmart.formats.read_options import ReadState

QUIET_SECONDS = 1.0  # of reading that nobody needs to be told of


class ReadingProgress:
    """Takes the states of readers, as `ReadOptions.telling` hands them on, and shows one line at a time.

    what : what is done with the rows, such as 'reading'
    """

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
