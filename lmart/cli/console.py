"""What is said to the user on standard error: progress, notices, warnings. Results never pass here."""

from __future__ import annotations

import sys

from lmart.errors import visible


class Console:
    """`notice` and `warning` write one plain line each; `quiet` silences both."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def notice(self, text: str) -> None:
        if not self.quiet:
            self._line(f"lmart: {text}")

    def warning(self, text: str) -> None:
        if not self.quiet:
            self._line(f"lmart: warning: {text}")

    def _line(self, text: str) -> None:
        line = visible(text) + "\n"
        sys.stderr.write(line.encode(sys.stderr.encoding or "ascii", "backslashreplace").decode(sys.stderr.encoding or "ascii"))
        sys.stderr.flush()
