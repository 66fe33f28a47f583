"""Progress of the rounds of a training, with the measure by now and the best one so far."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lmart.cli.terminal.label import Label

if TYPE_CHECKING:
    from lmart.cli.terminal.progress import Progress
    from lmart.settings.resolved import ResolvedSettings
    from lmart.training.rankers import RoundReport


class BestSoFar:
    """Keeps the best of the measures after each round, the first on ties.

    start : the measure before the first round; None: not known
    """

    def __init__(self, start: float | None = None) -> None:
        self.value = start
        self.round = 0

    def update(self, number: int, value: float | None) -> None:
        """Take the measure after a round; None is never better.

        number : of the round, from 1
        value  : the measure
        """
        if value is not None and (self.value is None or value > self.value):
            self.value, self.round = value, number

    def told(self, number: int, where: bool = True) -> str:
        """Return how good the best is and how long ago, after a comma; nothing when this round is the best.

        number : of this round
        where  : say the number of the best round too
        """
        if self.value is None or self.round == number:
            return ""
        at = f" at {self.round:,}" if where else ""
        return f", best {self.value:.6f}{at}, {number - self.round:,} since"


class RoundProgress:
    """Shows each round of a run: the bar tells of the validation set that decides, lines of all.

    progress : where it is shown
    settings : of the run
    valid    : the validation files
    start    : measure of the first of them before the first round; None: not known
    """

    def __init__(
        self, progress: Progress, settings: ResolvedSettings, valid: Sequence[str], start: float | None
    ) -> None:
        self._progress = progress
        self._settings = settings
        self._valid = valid
        self._start = start
        self._before = [sum(one.trees for one in settings.rankers[:k]) for k in range(len(settings.rankers))]
        self._ranker = 0
        self._best = BestSoFar()
        self._rounds = 0

    def on_round(self, one: RoundReport) -> None:
        """Take a round.

        one : the round
        """
        self._rounds += 1
        if one.ranker != self._ranker:
            self._ranker, self._best = one.ranker, BestSoFar(self._start)
        if one.validation:
            self._best.update(one.round, one.validation[0])
        best = self._best.told(one.round), self._best.told(one.round, where=False)
        done = self._rounds if self._settings.shares_trees else self._before[one.ranker - 1] + one.round
        self._progress.update(done, partial(round_label, one, self._settings, self._valid, best))


def round_label(
    one: RoundReport, settings: ResolvedSettings, valid: Sequence[str], best: tuple[str, str] = ("", "")
) -> Label:
    """Return the measures after a round, and which of several rankers it belongs to.

    one      : the round
    settings : of the run
    valid    : the validation files
    best     : what is said of the best round, with its number and without
    """
    n_rankers, measure = len(settings.rankers), str(settings.measure)
    most = f"up to {n_rankers}" if settings.shares_trees else n_rankers
    ranker = f"ranker {one.ranker} of {most}, " if n_rankers > 1 else ""
    if not valid:
        value = shown(one.measure_training())
        plain = f"{ranker}training {measure} {value}"
        return Label(plain, (plain, f"training {measure} {value}", f"{measure} {value}", value))
    value = shown(one.validation[0])
    measures = ", ".join(f"{shown(value)} on {path}" for value, path in zip(one.validation, valid, strict=True))
    of_set = f"{measure} {value} on {os.path.basename(valid[0])}"
    forms = (
        f"{ranker}{of_set}{best[0]}",
        f"{ranker}{measure} {value}{best[0]}",
        f"{measure} {value}{best[0]}",
        f"{measure} {value}{best[1]}",
        f"{value}{best[1]}",
        f"{measure} {value}",
        value,
    )
    return Label(f"{ranker}{measure} {measures}{best[0]}", forms)


def shown(value: float | None) -> str:
    """Return a measure with six digits; n/a for None.

    value : of the measure
    """
    return "n/a" if value is None else f"{value:.6f}"
