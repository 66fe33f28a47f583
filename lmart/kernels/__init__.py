"""Numba kernels: bare arrays in, the caller's arrays out. They import nothing of lmart but their own decorator."""

from __future__ import annotations

import warnings
from collections.abc import Callable


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


class Messages:
    """Messages to the user from compiling and caching kernels; the same text is passed on only once.

    Without a listener, as when lmart is used from Python, warnings become Python warnings and notices are dropped.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._held: list[str] | None = None
        self._notice: Callable[[str], None] | None = None
        self._compiling: Callable[[float, float], None] | None = None
        self.expected = 0.0  # seconds that compiling is expected to take this command
        self._warning: Callable[[str], None] = _warn

    def hold(self) -> None:
        """Keep warnings until `listen` is called: the command line imports kernels before it knows about --quiet."""
        self._held = []
        self._warning = self._held.append

    def listen(
        self,
        notice: Callable[[str], None],
        warning: Callable[[str], None],
        compiling: Callable[[float, float], None] | None = None,
    ) -> None:
        """Pass all further messages to these functions, in place of earlier functions, and the warnings kept so far.

        compiling : gets the seconds of compiling so far, and those expected in all, before each kernel that is compiled
        """
        held, self._held = self._held or (), None
        self._said.clear()
        self._notice, self._warning, self._compiling = notice, warning, compiling
        for text in held:
            self.warning(text)

    def notice(self, text: str) -> None:
        """Pass on a notice."""
        if text not in self._said and self._notice is not None:
            self._said.add(text)
            self._notice(text)

    def compiling(self, seconds: float) -> None:
        """Pass on that a kernel is about to be compiled, and the seconds of compiling so far."""
        if self._compiling is not None:
            self._compiling(seconds, self.expected)

    def warning(self, text: str) -> None:
        """Pass on a warning of something that costs time, but changes no result."""
        if text not in self._said:
            self._said.add(text)
            self._warning(text)


messages = Messages()
