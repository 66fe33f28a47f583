"""xendcg: cross entropy between labels and scores of a whole query (Bruch 2021); see kernels.listwise."""

from __future__ import annotations

import numpy as np

from lmart.kernels import listwise
from lmart.objectives.base import Floats, Gradients, Objective, Task
from lmart.objectives.chance import round_key


class CrossEntropy(Objective):
    """The cross entropy XE-NDCG, a bound of NDCG: -sum phi ln rho, phi shares of gains, rho shares of exp(sigma s).

    phi_i is (G_i + 1 - gamma_i) divided by its sum over the query, G the gain and gamma uniform in [0, 1), drawn anew
    each round. Neither truncation nor normalising changes it: both shares are of the whole query and add up to 1.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._units = task.settings.gain.units(task.labels, task.query_offsets)
        self._heights = np.empty(len(task.labels))

    def _write(self, scores: Floats, round_number: int, out: Gradients) -> None:
        task, sigma, heights = self.task, self.task.settings.sigma, self._heights
        key = round_key(task.settings.seed, round_number)
        offsets = task.query_offsets
        task.pool.run(listwise.write_heights, [(scores, offsets, sigma, *queries, heights) for queries in task.ranges])
        fixed = (heights, task.gains, self._units, task.query_weights, offsets, sigma, key)
        task.pool.run(listwise.cross_entropy, [(*fixed, *queries, *out) for queries in task.ranges])


OBJECTIVE = CrossEntropy
