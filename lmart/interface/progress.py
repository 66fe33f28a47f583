"""Progress of a training that a Python program has started."""

from __future__ import annotations

import sys
import time

from lmart.settings.resolved import ResolvedSettings
from lmart.training.rankers import RoundReport

EVERY = 1.0  # seconds between lines


class VerboseProgress:
    """Writes a line to standard error about once a second, and after the last round of each ranker.

    settings : of the run
    """

    def __init__(self, settings: ResolvedSettings) -> None:
        self._settings = settings
        self._shown = time.monotonic()

    def __call__(self, one: RoundReport) -> None:
        """Show a round, if the last one shown is old enough.

        one : the round
        """
        settings = self._settings
        total = settings.rankers[one.ranker - 1].trees
        now = time.monotonic()
        if now - self._shown < EVERY and one.round < total:
            return
        self._shown = now
        several = f"ranker {one.ranker} of {len(settings.rankers)}, " if len(settings.rankers) > 1 else ""
        measured = one.validation or (one.measure_training(),)
        values = ", ".join("n/a" if value is None else f"{value:.6f}" for value in measured)
        where = "valid" if one.validation else "training"
        print(f"lmart: {several}{one.round}/{total} trees, {settings.measure} {values} on {where}", file=sys.stderr)
