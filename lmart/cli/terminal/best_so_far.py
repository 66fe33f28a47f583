"""The best measure of a ranker so far, beside the bar of rounds."""

from __future__ import annotations

from collections.abc import Callable

from lmart.training.rankers import RoundReport


class BestSoFar:
    """Follows the first validation set through the rounds of one ranker after the other.

    stops : whether a ranker stops early, so that the rounds since the best one matter
    """

    def __init__(self, stops: bool) -> None:
        self._stops = stops
        self._ranker = 0
        self._best: float | None = None
        self._best_round = self._round = 0

    def add(self, one: RoundReport) -> None:
        """Take a round, as training reports it."""
        if one.ranker != self._ranker:
            self._ranker, self._best = one.ranker, None
        self._round = one.round
        value = one.validation[0] if one.validation else None
        if value is not None and (self._best is None or value > self._best):
            self._best, self._best_round = value, one.round

    def before(self, text: Callable[[], str]) -> str:
        """Return what `text` does, behind the best value so far."""
        return ", ".join(filter(None, (self.text(), text())))

    def text(self) -> str:
        """Return the best value, its round and the rounds since; nothing without early stopping."""
        if self._best is None or not self._stops:
            return ""
        return f"best {self._best:.4f} at {self._best_round}, {self._round - self._best_round} since"
