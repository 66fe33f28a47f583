"""The trees of a run as they are grown: all that a run must keep to go on later, as the rest follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

import numpy as np

from lmart.array_types import Float64Array
from lmart.binning.edges import BinEdges
from lmart.errors import DataError
from lmart.training.grower import GrownTree


class LoggedRound(NamedTuple):
    """The result of a round.

    grown         : the tree; None: no split had a positive gain
    position_bias : float64[n_positions] after it
    """

    grown: GrownTree | None
    position_bias: Float64Array

    def fits(self, edges: BinEdges, n_positions: int) -> bool:
        """Return whether it can be a round on data in these bins: the kernels that add a tree check nothing."""
        if len(self.position_bias) != n_positions:
            return False
        if self.grown is None:
            return True
        features, bins = self.grown.split_features, self.grown.split_bins
        if not ((features >= 0) & (features < edges.n_features)).all():
            return False
        in_range = (bins >= 0) & (bins < np.diff(edges.bin_offsets)[features])
        return bool(in_range.all()) and np.array_equal(self.grown.tree.split_columns, edges.columns[features])


class TreeLog:
    """The rounds of one part of a run, in the order they were done.

    A run with the log of an interrupted one repeats its rounds with the logged trees, then grows further ones and adds
    them.

    on_added : called after each round that is added
    closed   : the run ends with the rounds of the log
    path     : of the file that the rounds were read from; None: they are of this process
    """

    def __init__(
        self,
        rounds: Iterable[LoggedRound] = (),
        on_added: Callable[[], None] = lambda: None,
        closed: bool = False,
        path: str | None = None,
    ) -> None:
        self.path, self.rounds = path, list(rounds)
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

    def refuse(self) -> NoReturn:
        """Raise DataError for a round that cannot be one of this run."""
        what = "a tree of this checkpoint does not fit the data: the file was changed"
        raise DataError(f"{what}; delete it to start anew", self.path)

    def add(self, done: LoggedRound) -> None:
        """Add a round that was done now."""
        self.rounds.append(done)
        self._taken += 1
        self._on_added()
