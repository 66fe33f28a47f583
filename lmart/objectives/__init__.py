"""Objectives: the gradients and hessians that each tree is fitted to.

Each has its equations in the file of its name, which says so in `OBJECTIVE`, and a place in `settings.OBJECTIVES`.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from lmart.array_types import Float64Array
from lmart.dataset import Judged
from lmart.objectives.base import Gradients, Objective, Task
from lmart.settings import TrainSettings
from lmart.sidecars import Positions
from lmart.threads import WorkerPool

__all__ = ["Gradients", "Objective", "prepare"]


def prepare(
    dataset: Judged,
    settings: TrainSettings,
    pool: WorkerPool,
    weights: Float64Array | None = None,
    positions: Positions | None = None,
) -> Objective:
    """Return the objective that the settings name, with all that does not change from round to round computed.

    dataset   : labels and query offsets are read
    settings  : with one objective
    pool      : where ranges of queries are worked on side by side
    weights   : float64[n_queries] or float64[n_documents], finite, >= 0; None: all 1
    positions : of the documents, or None
    DataError when a label has no gain; SettingsError when there are positions and the objective is not in
    `settings.WITH_POSITIONS`.
    """
    if positions is not None:
        settings.check_positions()
    offsets = dataset.query_offsets
    n_queries = len(offsets) - 1
    gains = settings.gain.scaled(dataset.labels, offsets)
    by_query = weights is not None and len(weights) == n_queries
    query_weights = weights if weights is not None and by_query else np.ones(n_queries)
    row_weights = None if by_query else weights
    (name,) = settings.objectives
    chosen: type[Objective] = import_module(f"lmart.objectives.{name}").OBJECTIVE
    return chosen(Task(settings, offsets, dataset.labels, gains, query_weights, row_weights, pool, positions))
