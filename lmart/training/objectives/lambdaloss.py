"""lambdaloss: NDCG-Loss2++, which also weighs pairs by their rank distance (Wang et al. 2018, LambdaLoss)."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.gains import discount_table
from lmart.kernels.gradient_arrays import PairBlock, RankedQueries
from lmart.kernels.pair_weights import ndcg_loss_weights
from lmart.training.objectives.base import Task
from lmart.training.objectives.pairs import PairObjective, ndcg_tables

MU = 10.0  # factor of the weight that depends on the rank distance, as in the paper


class LambdaLoss(PairObjective):
    """A mixture of LambdaMART's weights and of NDCG-Loss2's; gains are divided by the ideal DCG at the truncation.

    task : the training set, with the settings of the ranker
    """

    LARGEST_WEIGHT = 1.0 + MU

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        discount = discount_table(task.longest)
        self._ndcg = ndcg_tables(task, discount, self._settings.truncation)
        self._distance_weights = np.append(0.0, MU * (discount[:-1] - discount[1:]))

    def _weigh(self, queries: RankedQueries, block: PairBlock, out: Float64Array) -> None:
        ndcg_loss_weights(self._ndcg, self._distance_weights, queries, block, out)


OBJECTIVE = LambdaLoss
