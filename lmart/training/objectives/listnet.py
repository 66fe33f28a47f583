"""listnet: the objective of the linear ranker, cross entropy without noise (Cao et al. 2007)."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.training.objectives.base import Task
from lmart.training.objectives.xendcg import CrossEntropy


class ListNet(CrossEntropy):
    """The cross entropy -sum phi_i ln rho_i of a query: rho the softmax of scores, phi_i the share of its gain."""

    def _noise(self, task: Task) -> Float64Array:
        return np.zeros(len(task.labels))


OBJECTIVE = ListNet
