"""One line at the bottom of a terminal that tells how far work is: what is done, a bar, the time left, and a text.

It fits any width: a shorter form of the text is taken, or the text cut, then the bar goes; what is done and the time
left stay.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmart.errors import visible
from lmart.threads import threads_can_start

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

LONGEST_BAR, SHORTEST_BAR = 30, 5  # characters
SHORTEST_TEXT = 40  # characters of text that a bar leaves room for
REDRAWS = 8  # a second
FIRST_SECONDS = 1.0  # from which on the time left is told


class Shown(NamedTuple):
    """What a line tells.

    done  : what is done
    share : of it, from 0 to 1; negative: unknown, so there is no bar
    left  : the time left
    short : what is done in fewer characters; '': there is no such form
    """

    done: str
    share: float
    left: str
    short: str = ""


class TimeLeft:
    """How long work will still take: as long for what is left as for what was done since the first report of it."""

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
    """The parts of a line: what is done, characters of the bar, those of them that are filled, and the rest."""

    done: str
    bar: int
    filled: int
    rest: str


def composed(shown: Shown, forms: Sequence[str], width: int) -> Parts:
    """Return the parts of a line: the first form that leaves room for a bar, else the last one, cut if need be.

    shown : what the line tells
    forms : of the text, the longest first
    width : characters that the line may have
    """
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


class TerminalLine:
    """The line, from `start` to `stop`.

    shown : returns what it tells at the moment
    stays : whether its last state stays on the screen
    """

    def __init__(self, shown: Callable[[], Shown], stays: bool = True) -> None:
        self.forms: tuple[str, ...] = ("",)
        self._shown = shown
        self._stays = stays
        self._live: Live | None = None

    def start(self) -> None:
        """Show it."""
        from rich.console import Console
        from rich.live import Live

        console = Console(file=sys.stderr, highlight=False)
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
