"""What objectives have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.dataset import query_ranges
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


class Gradients(NamedTuple):
    """First and second derivatives of the cost by each document's score, float64[n_documents]; hessians >= 0."""

    gradients: Floats
    hessians: Floats


@dataclass(frozen=True)
class Task:
    """A training set as objectives see it.

    query_offsets : int64[n_queries + 1]
    labels        : float64[n]
    gains         : float64[n], scaled in each query by a power of two so that none is above 1
    query_weights : float64[n_queries]; row_weights : float64[n] or None
    """

    settings: TrainSettings
    query_offsets: Longs
    labels: Floats
    gains: Floats
    query_weights: Floats
    row_weights: Floats | None
    pool: WorkerPool

    @cached_property
    def longest(self) -> int:
        """The number of documents of the longest query."""
        return int(np.diff(self.query_offsets).max(initial=0))

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """Ranges of queries to work on side by side."""
        return query_ranges(self.query_offsets)


class Objective(ABC):
    """A cost of scores, summed over queries.

    A subclass works out in `__init__` what does not change from round to round, writes derivatives in `_write`, and
    says in `worths` what tells documents apart: of documents worth the same none should rank above another.
    """

    worths: Floats

    def __init__(self, task: Task) -> None:
        self.task = task
        self.worths = task.gains

    @abstractmethod
    def _write(self, scores: Floats, round_number: int, out: Gradients) -> None:
        """Write the derivatives of each query's cost times its weight; zeros where the weight is 0.

        scores : float64[n]; round_number : for what is drawn by chance
        The result may depend on these, the task and the seed alone: not on threads, nor on earlier calls.
        """

    def n_idle_queries(self) -> int:
        """Return how many queries cannot teach anything: one document, or all documents worth the same."""
        starts = self.task.query_offsets[:-1]
        filled = np.diff(self.task.query_offsets) > 0
        highest = np.maximum.reduceat(self.worths, starts[filled]) if filled.any() else np.zeros(0)
        lowest = np.minimum.reduceat(self.worths, starts[filled]) if filled.any() else np.zeros(0)
        return int(len(starts) - np.count_nonzero(highest > lowest))

    def compute_gradients(self, scores: Floats, round_number: int = 1) -> Gradients:
        """Return the gradients and hessians at the given scores, float64[n_documents].

        round_number : from 1; objectives that draw by chance draw anew each round
        """
        task = self.task
        out = Gradients(np.empty(len(scores)), np.empty(len(scores)))
        self._write(scores, round_number, out)
        if task.row_weights is not None:
            np.multiply(out.gradients, task.row_weights, out=out.gradients)
            np.multiply(out.hessians, task.row_weights, out=out.hessians)
        return out
