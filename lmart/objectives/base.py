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
from lmart.sidecars import Positions
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
    positions     : of the documents, or None
    """

    settings: TrainSettings
    query_offsets: Longs
    labels: Floats
    gains: Floats
    query_weights: Floats
    row_weights: Floats | None
    pool: WorkerPool
    positions: Positions | None = None

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

    position_bias : float64[n_positions], what is added to the scores of documents by their position while gradients are
    computed; whoever trains sets it after each round to `next_position_bias`.
    """

    worths: Floats
    position_bias: Floats

    def __init__(self, task: Task) -> None:
        self.task = task
        self.worths = task.gains
        self.position_bias = np.zeros(0 if task.positions is None else len(task.positions.names))

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

    def can_learn(self) -> bool:
        """Return whether any query of weight above 0 can teach something."""
        task = self.task
        starts = task.query_offsets[:-1][np.diff(task.query_offsets) > 0]
        if not len(starts):
            return False
        weights = task.query_weights[np.diff(task.query_offsets) > 0]
        if task.row_weights is not None:
            weights = weights * np.maximum.reduceat(task.row_weights, starts)
        differ = np.maximum.reduceat(self.worths, starts) > np.minimum.reduceat(self.worths, starts)
        return bool((differ & (weights > 0)).any())

    def compute_gradients(self, scores: Floats, round_number: int = 1) -> Gradients:
        """Return the gradients and hessians at the given scores, float64[n_documents].

        round_number : from 1; objectives that draw by chance draw anew each round
        """
        task = self.task
        out = Gradients(np.empty(len(scores)), np.empty(len(scores)))
        if task.positions is not None:
            scores = scores + self.position_bias[task.positions.codes]
        self._write(scores, round_number, out)
        if task.row_weights is not None:
            np.multiply(out.gradients, task.row_weights, out=out.gradients)
            np.multiply(out.hessians, task.row_weights, out=out.hessians)
        return out

    def next_position_bias(self, gradients: Gradients) -> Floats:
        """Return the bias after the round that had these gradients: see `improved_bias`."""
        task = self.task
        if task.positions is None:
            return self.position_bias
        settings = task.settings
        strengths = settings.learning_rate, settings.position_bias_reg
        return improved_bias(self.position_bias, task.positions, gradients, *strengths)


def improved_bias(
    bias: Floats, positions: Positions, gradients: Gradients, learning_rate: float, regularization: float
) -> Floats:
    """Return the bias of each position after one Newton step of its own, float64[n_positions].

    bias : float64[n_positions], before; 0 in the first round
    A click goes to a document that is good, or that stands where people look: its score is explained as the model's
    score plus the bias of its position, and both are fitted to the same cost.
    Equation: b_p += learning_rate (-G_p - r n_p b_p) / (H_p + r n_p + 0.001), G_p and H_p the sums of gradients and
    hessians over the n_p documents at p, r the regularization. Source: LightGBM's lambdarank with positions. Sums are
    taken in the order of the documents, by one thread: the same bits everywhere. A bias beyond what a number can be is
    not finite, without a warning: whoever trains refuses it.
    """
    n = len(bias)
    counts = np.bincount(positions.codes, minlength=n)
    slopes = np.bincount(positions.codes, gradients.gradients, n)
    curvatures = np.bincount(positions.codes, gradients.hessians, n)
    pull = regularization * counts
    with np.errstate(over="ignore", invalid="ignore"):
        result: Floats = bias + learning_rate * (-slopes - pull * bias) / (curvatures + pull + 0.001)
    return result
