"""lambdamart: each pair weighs what swapping it would change NDCG (Burges 2010); the equation is in kernels.ranking."""

from __future__ import annotations

import numpy as np

from lmart.gains import discount_table
from lmart.kernels import ranking as kernels
from lmart.objectives.base import Floats, Gradients, Objective, Task


class LambdaMart(Objective):
    """The cost of LambdaMART.

    The gradients of a query sum to exactly 0 unless rows have weights of their own.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._discount = discount_table(task.longest)
        self._truncation = min(task.settings.truncation, len(self._discount))
        self._order = np.arange(len(task.gains), dtype=np.int32)
        self._inverse_ideal_dcg = self._inverse_of_ideal()

    def _inverse_of_ideal(self) -> Floats:
        """Return 1 / ideal DCG of each query, float64[n_queries], 0 for a query that teaches nothing."""
        task, ideal = self.task, np.empty(len(self.task.query_offsets) - 1)
        fixed = (task.gains, task.query_offsets)
        task.pool.run(kernels.order_documents, [(*fixed, *queries, self._order) for queries in task.ranges])
        rest = (self._discount, self._order, self._truncation)
        task.pool.run(kernels.ideal_dcg, [(*fixed, *rest, *queries, ideal) for queries in task.ranges])
        inverse: Floats = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        return inverse

    def _write(self, scores: Floats, query_weights: Floats, round_number: int, out: Gradients) -> None:
        task, settings, order = self.task, self.task.settings, self._order
        offsets = task.query_offsets
        task.pool.run(kernels.order_documents, [(scores, offsets, *queries, order) for queries in task.ranges])
        fixed = (scores, task.gains, self._inverse_ideal_dcg, query_weights, self._discount, offsets, order)
        chosen = (self._truncation, settings.sigma, settings.normalize)
        task.pool.run(kernels.lambda_gradients, [(*fixed, *chosen, *queries, *out) for queries in task.ranges])


OBJECTIVE = LambdaMart
