"""mrr: each pair weighs what swapping it would change the reciprocal rank (Burges 2010, with that measure)."""

from __future__ import annotations

from lmart.kernels.pair_weights import reciprocal_rank_changes
from lmart.training.objectives.base import Task
from lmart.training.objectives.pairs import PairObjective, binary_relevance


class ReciprocalRank(PairObjective):
    """1 / rank of the first relevant document; a document is relevant when its label is above 0, whatever its gain.

    task : the training set, with the settings of the ranker
    """

    weigh_pairs = staticmethod(reciprocal_rank_changes)

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.relevance = binary_relevance(task)


OBJECTIVE = ReciprocalRank
