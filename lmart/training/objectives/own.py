"""An objective that a function of a Python program computes."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.functions import FunctionError, described, failing_as, in_round
from lmart.measures.own import numbers_of, readable
from lmart.training.objectives.base import Gradients, Objective, Task

LARGEST = 1e100  # of a derivative, far from where sums of them end


class OwnObjective(Objective):
    """The cost whose derivatives a function returns; it learns from whatever queries the function learns from.

    The function is called once a round, with scores and labels, float64[n], query_offsets, int64[n_queries + 1], and
    weights, float64[n], which it counts itself; all are to be read alone. It returns the gradients and the hessians of
    the cost, n numbers each.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.relevance = task.labels
        weights = task.row_weights
        sizes = np.diff(task.query_offsets)
        self._weights = np.repeat(task.query_weights, sizes) if weights is None else weights
        self._name = described("objective", task.settings.objective.name)

    def compute_gradients(self, scores: Float64Array, round_number: int = 1) -> Gradients:
        """Return the gradients and hessians that the function returns; FunctionError when they are of no use."""
        with in_round(round_number):
            return self._called(scores)

    def _called(self, scores: Float64Array) -> Gradients:
        task, function = self.task, self.task.settings.objective.function
        assert function is not None
        with failing_as(self._name):
            found = function(*map(readable, (scores, task.labels, task.query_offsets, self._weights)))
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise FunctionError(f"{self._name} returned a {type(found).__name__}; return (gradients, hessians)")
        gradients, hessians = (
            self._checked(part, f"{self._name} returned {name}", lowest)
            for part, name, lowest in zip(found, ("gradients", "hessians"), (-LARGEST, 0.0), strict=True)
        )
        return Gradients(gradients, hessians)

    def _checked(self, found: object, what: str, lowest: float) -> Float64Array:
        """Return the derivatives, float64[n]."""
        values, n = numbers_of(found, self._name), len(self.task.labels)
        if values.shape != (n,):
            raise FunctionError(f"{what} of shape {values.shape}; return {n} numbers, one a document")
        wrong = ~((values >= lowest) & (values <= LARGEST))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise FunctionError(f"{what} with {values[row]} in row {row} (from 0); use {lowest:g} to {LARGEST:g}")
        return values

    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        out.gradients[:], out.hessians[:] = self.compute_gradients(scores, round_number)

    def n_queries_without_pairs(self) -> int:
        """Return 0: which queries the function learns from is not known."""
        return 0

    def can_learn(self) -> bool:
        """Return whether there is a weight above 0."""
        return bool(self._weights.any())


OBJECTIVE = OwnObjective
