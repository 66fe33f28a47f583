"""The interface of objectives, and the bias of positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import even_ranges
from lmart.data.metadata import Positions
from lmart.kernels.exact import bit_mixing
from lmart.kernels.ranking.gradient_arrays import Gradients
from lmart.settings.resolved import RankerSettings
from lmart.threads import WorkerPool

__all__ = ["Gradients", "Objective", "Task", "improved_bias", "round_key"]


@dataclass(frozen=True)
class Task:
    """A training set as objectives see it.

    query_offsets : int64[n_queries + 1]
    labels        : float64[n]
    gains         : float64[n], scaled in each query by a power of two so that none is above 1
    query_weights : float64[n_queries]; row_weights : float64[n] or None
    positions     : of the documents, or None
    first_row     : number of row 0 in the whole data, of which this may be a part; what is drawn depends on it
    """

    settings: RankerSettings
    query_offsets: Int64Array
    labels: Float64Array
    gains: Float64Array
    query_weights: Float64Array
    row_weights: Float64Array | None
    pool: WorkerPool
    positions: Positions | None = None
    first_row: int = 0

    @cached_property
    def longest(self) -> int:
        """The number of documents of the longest query."""
        return int(np.diff(self.query_offsets).max(initial=0))

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """Ranges of queries to work on side by side."""
        return even_ranges(self.query_offsets)


class Objective(ABC):
    """A cost of scores, summed over queries.

    A subclass computes in `__init__` what does not change from round to round, writes derivatives in `_write`, and
    sets `relevance`.

    relevance     : float64[n], by which documents are to be ordered; documents of equal relevance form no pair
    position_bias : float64[n_positions], added to the scores of documents by their position when gradients are
                    computed; the training loop sets it to `next_position_bias` after each round
    """

    relevance: Float64Array
    position_bias: Float64Array

    def __init__(self, task: Task) -> None:
        self.task = task
        self.relevance = task.gains
        self.position_bias = np.zeros(0 if task.positions is None else len(task.positions.names))

    @abstractmethod
    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        """Write the derivatives of each query's cost times its weight; zeros where the weight is 0.

        The result may depend on these, the task and the seed alone: not on threads, nor on earlier calls.
        """

    def n_queries_without_pairs(self) -> int:
        """Return how many queries have no pair to learn from: fewer than two documents, or all equally relevant."""
        starts = self.task.query_offsets[:-1]
        filled = np.diff(self.task.query_offsets) > 0
        highest = np.maximum.reduceat(self.relevance, starts[filled]) if filled.any() else np.zeros(0)
        lowest = np.minimum.reduceat(self.relevance, starts[filled]) if filled.any() else np.zeros(0)
        return int(len(starts) - np.count_nonzero(highest > lowest))

    def can_learn(self) -> bool:
        """Return whether any query of weight above 0 has two documents of different relevance."""
        task = self.task
        starts = task.query_offsets[:-1][np.diff(task.query_offsets) > 0]
        if not len(starts):
            return False
        weights = task.query_weights[np.diff(task.query_offsets) > 0]
        if task.row_weights is not None:
            weights = weights * np.maximum.reduceat(task.row_weights, starts)
        differ = np.maximum.reduceat(self.relevance, starts) > np.minimum.reduceat(self.relevance, starts)
        return bool((differ & (weights > 0)).any())

    def compute_gradients(self, scores: Float64Array, round_number: int = 1) -> Gradients:
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

    def next_position_bias(self, gradients: Gradients) -> Float64Array:
        """Return the bias after the round that had these gradients: see `improved_bias`."""
        task = self.task
        if task.positions is None:
            return self.position_bias
        settings = task.settings
        strengths = settings.tree.learning_rate, settings.position_bias_reg
        return improved_bias(self.position_bias, task.positions, gradients, *strengths)


def improved_bias(
    bias: Float64Array, positions: Positions, gradients: Gradients, learning_rate: float, regularization: float
) -> Float64Array:
    """Return the bias of each position after one Newton step of its own, float64[n_positions].

    bias           : float64[n_positions], before the step; 0 in the first round
    regularization : r, >= 0, which pulls the bias towards 0

    A document is clicked because it is relevant, or because it was shown at a prominent position: its score is modelled
    as the model's score plus the bias of its position, and both are fitted to the same cost.
    Equation: b_p += learning_rate (-G_p - r n_p b_p) / (H_p + r n_p + 0.001), G_p and H_p the sums of gradients and
    hessians over the n_p documents at p. Source: LightGBM's lambdarank with positions. Sums are taken in the order of
    the documents, by one thread, so they are the same for any number of threads. A bias that overflows is not finite,
    without a warning; the training loop refuses it.
    """
    n = len(bias)
    counts = np.bincount(positions.codes, minlength=n)
    slopes = np.bincount(positions.codes, gradients.gradients, n)
    curvatures = np.bincount(positions.codes, gradients.hessians, n)
    pull = regularization * counts
    with np.errstate(over="ignore", invalid="ignore"):
        result: Float64Array = bias + learning_rate * (-slopes - pull * bias) / (curvatures + pull + 0.001)
    return result


def round_key(seed: int, round_number: int) -> np.uint64:
    """Return the 64-bit key of a round's random numbers, which differs from that of the row sample of its tree."""
    return np.uint64(bit_mixing.mix_bits(np.uint64(bit_mixing.round_key(seed, round_number))))
