"""lambdamart: each pair weighs what swapping it would change NDCG (Burges 2010); the equation is in kernels.ranking."""

from __future__ import annotations

import numpy as np

from lmart.gains import discount_table
from lmart.kernels import ordering
from lmart.kernels import ranking as kernels
from lmart.objectives.base import Floats, Gradients, Objective, Task
from lmart.objectives.pairs import inverse_ideal_dcg


class LambdaMart(Objective):
    """The cost of LambdaMART, a PairObjective with a kernel of its own, as weights that need not be stored are faster.

    The gradients of a query sum to exactly 0 unless rows have weights of their own.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._discount = discount_table(task.longest)
        self._truncation = min(task.settings.truncation, task.longest)
        self._inverse_ideal_dcg = inverse_ideal_dcg(task, self._discount, self._truncation)
        self._order = np.arange(len(task.gains), dtype=np.int32)

    def _write(self, scores: Floats, round_number: int, out: Gradients) -> None:
        task, settings, order = self.task, self.task.settings, self._order
        offsets = task.query_offsets
        task.pool.run(ordering.order_documents, [(scores, offsets, *queries, order) for queries in task.ranges])
        fixed = (scores, task.gains, self._inverse_ideal_dcg, task.query_weights, self._discount, offsets, order)
        chosen = (self._truncation, settings.sigma, settings.normalize)
        task.pool.run(kernels.lambda_gradients, [(*fixed, *chosen, *queries, *out) for queries in task.ranges])


OBJECTIVE = LambdaMart
