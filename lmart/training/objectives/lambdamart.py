"""lambdamart: each pair weighs what swapping it would change NDCG (Burges 2010)."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.gains import discount_table
from lmart.kernels import ordering, pair_gradients
from lmart.kernels.gradient_arrays import RankedQueries
from lmart.training.objectives.base import Gradients, Objective, Task
from lmart.training.objectives.pairs import ndcg_tables, pair_settings


class LambdaMart(Objective):
    """The cost of LambdaMART; its equation is in kernels.pair_gradients.

    task : the training set, with the settings of the ranker

    A weighted sum over pairs, but no PairObjective: its kernel computes the weights itself, faster than from storage.
    The gradients of a query sum to exactly 0 unless rows have weights of their own.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._settings = pair_settings(task, min(task.settings.truncation, task.longest))
        self._ndcg = ndcg_tables(task, discount_table(task.longest), self._settings.truncation)
        self._order = np.arange(len(task.gains), dtype=np.int32)

    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        task, order = self.task, self._order
        offsets = task.query_offsets
        task.pool.run(ordering.order_documents, [(scores, offsets, *queries, order) for queries in task.ranges])
        ranked = RankedQueries(scores, task.query_weights, offsets, order)
        fixed = (ranked, self._ndcg, self._settings)
        task.pool.run(pair_gradients.lambda_gradients, [(*fixed, *queries, out) for queries in task.ranges])


OBJECTIVE = LambdaMart
