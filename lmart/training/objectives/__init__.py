"""Objectives: the gradients and hessians that each tree is fitted to.

Each has a record in `settings.kinds`, which names the file here whose class `OBJECTIVE` computes it.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from lmart.array_types import Float64Array
from lmart.data.dataset import Judged
from lmart.data.metadata import Positions
from lmart.settings.kinds import check_positions
from lmart.settings.resolved import RankerSettings
from lmart.threads import WorkerPool
from lmart.training.objectives.base import Gradients, Objective, Task

__all__ = ["Gradients", "Objective", "prepare"]


def prepare(
    dataset: Judged,
    settings: RankerSettings,
    pool: WorkerPool,
    weights: Float64Array | None = None,
    positions: Positions | None = None,
    first_row: int = 0,
) -> Objective:
    """Return the objective of a ranker, with all that does not change from round to round computed.

    weights   : float64[n_queries] or float64[n_documents], finite, >= 0; None: all 1
    first_row : number of row 0 in the whole data, of which the data set may be a part
    DataError when a label has no gain; SettingsError when there are positions and the objective cannot learn
    their bias.
    """
    if positions is not None:
        check_positions(settings.objective.name)
    offsets = dataset.query_offsets
    n_queries = len(offsets) - 1
    gains = settings.gain.scaled(dataset.labels, offsets)
    by_query = weights is not None and len(weights) == n_queries
    query_weights = weights if weights is not None and by_query else np.ones(n_queries)
    row_weights = None if by_query else weights
    module = import_module(f"lmart.training.objectives.{settings.objective.module}")
    chosen: type[Objective] = module.OBJECTIVE
    task = Task(settings, offsets, dataset.labels, gains, query_weights, row_weights, pool, positions, first_row)
    return chosen(task)
