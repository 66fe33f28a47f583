"""What `verbose=True` shows: the words of the command line on standard error, and in a notebook a bar."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from lmart.data.dataset import DataSize
from lmart.errors import with_arguments
from lmart.kernels import messages
from lmart.reports import narration
from lmart.reports.run_report import stopping_probability
from lmart.settings import TrainSettings
from lmart.settings.resolved import ResolvedSettings
from lmart.training.boosting import BoostingRun
from lmart.training.cross_validation import CrossValidation
from lmart.training.rankers import RoundReport
from lmart.training.remarks import Remark, after_folds
from lmart.training.train_result import TrainResult

PAUSE = 1.0  # seconds between lines
BAR_PAUSE = 0.2  # between states of a bar


class Telling:
    """Tells how a run goes; without `verbose` nothing is told.

    valid : what each validation set is called
    """

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self.valid: Sequence[str] = ()
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Write a line; options are named as arguments."""
        if self._verbose:
            print(f"lmart: {with_arguments(text)}", file=sys.stderr)

    def remarks(self, found: Iterable[Remark]) -> list[str]:
        """Say what is good to know, and return what to warn of."""
        warnings_ = []
        for remark in found:
            if remark.is_warning:
                warnings_.append(remark.text)
            else:
                self.say(remark.text)
        return warnings_

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Tell when machine code is compiled meanwhile."""
        if not self._verbose:
            yield
            return
        seen: list[float] = []

        def compiling(seconds: float, expected: float) -> None:
            """Say it once."""
            if not seen:
                self.say("compiling, which the next run need not do again")
            seen.append(seconds)

        messages.listen(self.say, _warn, compiling)
        try:
            yield
        finally:
            messages.listen(lambda text: None, _warn)

    def read(self, dataset: DataSize, requested: TrainSettings, settings: ResolvedSettings) -> None:
        """Say what was read, and what the data decided."""
        self.say(narration.describe(dataset, settings.sampling_rate))
        for text in narration.automatic_choices(requested, settings):
            self.say(text)
        if settings.recorded.largest_label is not None:
            self.say(f"err stops with probability {stopping_probability(settings)} in all of the data")

    def folds(self, found: CrossValidation, settings: ResolvedSettings) -> None:
        """Say what folds found."""
        self.say(narration.crossed(found, settings))
        remark = after_folds(found, settings)
        if remark is not None:
            self.say(remark)

    def start(self, run: BoostingRun, with_init_scores: bool) -> None:
        """Tell from where a run starts."""
        for text in narration.starting(run, with_init_scores, self.valid):
            self.say(text)

    def rounds(self, run: BoostingRun) -> Progress | None:
        """Return what shows the rounds of a run."""
        if not self._verbose:
            return None
        start = run.start.validation[0] if run.start is not None and run.start.validation else None
        return Progress(self, run.settings, start)

    def trained(self, result: TrainResult) -> None:
        """Say what the model is."""
        self.say(narration.summary(result, self.valid, None, time.monotonic() - self._began))


class Progress:
    """Shows the rounds of a run: a bar in a notebook, else a line about once a second, and the last round."""

    def __init__(self, telling: Telling, settings: ResolvedSettings, start: float | None) -> None:
        self._telling, self._settings = telling, settings
        self._count = narration.RoundCount(settings, start)
        self._bar = NotebookBar() if in_notebook() else None
        self._shown = time.monotonic()
        self._waiting: str | None = None  # the latest round, if it is not shown

    def __call__(self, report: RoundReport) -> None:
        """Take a round, and show it if what was shown is old enough."""
        settings = self._settings
        self._done = self._count.take(report)
        round_text = narration.round_text(report, settings, self._telling.valid, self._count.best)
        self._waiting = f"{self._done:,}/{settings.trees:,} trees, {round_text}"
        if time.monotonic() - self._shown >= (PAUSE if self._bar is None else BAR_PAUSE):
            self._show()

    def close(self) -> None:
        """Show the last round."""
        self._show()

    def _show(self) -> None:
        if self._waiting is None:
            return
        if self._bar is None:
            self._telling.say(self._waiting)
        else:
            self._bar.show(self._done, self._settings.trees, self._waiting)
        self._waiting, self._shown = None, time.monotonic()


class NotebookBar:
    """A bar with a line beside it in the output of a notebook's cell, which is drawn anew in its place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, done: int, total: int, text: str) -> None:
        """Draw the bar."""
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        drawn = HTML(f'<progress value="{done}" max="{total}"></progress> {escape(text)}')
        if self._handle is None:
            self._handle = display(drawn, display_id=True)
        else:
            self._handle.update(drawn)


def in_notebook() -> bool:
    """Return whether the program runs in a notebook, whose output can be drawn anew."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)
