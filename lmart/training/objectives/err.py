"""err: each pair weighs what swapping it would change expected reciprocal rank (Chapelle et al. 2009; Burges 2010)."""

from __future__ import annotations

from lmart.gains import stop_probabilities
from lmart.kernels.pair_weights import expected_reciprocal_rank_changes
from lmart.training.objectives.base import Task
from lmart.training.objectives.pairs import PairObjective


class ExpectedReciprocalRank(PairObjective):
    """The mean of 1 / rank where a reader stops, who stops at a document by its label, whatever its gain.

    task : the training set, with the settings of the ranker

    The largest label is that of the settings, the same for all data sets.
    """

    weigh_pairs = staticmethod(expected_reciprocal_rank_changes)

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.relevance = stop_probabilities(task.labels, task.settings.largest_label)


OBJECTIVE = ExpectedReciprocalRank
