"""The trees of a run as they are grown: all that a run must keep to go on later, as the rest follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lmart.array_types import Float64Array
from lmart.training.grower import GrownTree


class LoggedRound(NamedTuple):
    """The result of a round.

    grown         : the tree; None: no split had a positive gain
    position_bias : float64[n_positions] after it
    """

    grown: GrownTree | None
    position_bias: Float64Array


class TreeLog:
    """The rounds of one part of a run, in the order they were done.

    A run with the log of an interrupted one repeats its rounds with the logged trees, then grows further ones and adds
    them.

    on_added : called after each round that is added
    closed   : the run ends with the rounds of the log
    """

    def __init__(
        self,
        rounds: Iterable[LoggedRound] = (),
        on_added: Callable[[], None] = lambda: None,
        closed: bool = False,
    ) -> None:
        self.rounds = list(rounds)
        self._on_added, self._closed = on_added, closed
        self._taken = 0

    @property
    def at_end(self) -> bool:
        """Whether the run ends here."""
        return self._closed and self._taken == len(self.rounds)

    def take(self) -> LoggedRound | None:
        """Return the next round of the interrupted run; None when there is none left."""
        if self._taken == len(self.rounds):
            return None
        self._taken += 1
        return self.rounds[self._taken - 1]

    def add(self, done: LoggedRound) -> None:
        """Add a round that was done now."""
        self.rounds.append(done)
        self._taken += 1
        self._on_added()
