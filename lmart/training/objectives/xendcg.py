"""xendcg: cross entropy between labels and scores of a whole query (Bruch 2021); see kernels.listwise."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.kernels.ranking import listwise
from lmart.training.objectives.base import Gradients, Objective, Task, round_key


class CrossEntropy(Objective):
    """The cross entropy XE-NDCG, a bound of NDCG: -sum phi_i ln rho_i over the documents of a query.

    rho is the softmax of sigma x score. phi_i is (G_i + 1 - gamma_i) divided by its sum over the query, G the gain and
    gamma uniform in [0, 1), drawn anew each round. Both are distributions over the whole query, so truncation and
    normalisation do not apply.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        exponentials = np.empty(len(task.labels))
        self._queries = listwise.SoftmaxQueries(
            exponentials, task.gains, self._noise(task), task.query_weights, task.query_offsets, task.first_row
        )

    def _noise(self, task: Task) -> Float64Array:
        """Return the largest noise of each gain, float64[n]: 1, scaled as gains are."""
        return task.settings.gain.units(task.labels, task.query_offsets)

    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        task, sigma = self.task, float(self.task.settings.sigma)
        key = round_key(task.settings.seed, round_number)
        fixed = (scores, task.query_offsets, sigma)
        exponentials = self._queries.exponentials
        task.pool.run(listwise.write_softmax_numerators, [(*fixed, *queries, exponentials) for queries in task.ranges])
        task.pool.run(listwise.cross_entropy, [(self._queries, sigma, key, *queries, out) for queries in task.ranges])


OBJECTIVE = CrossEntropy
