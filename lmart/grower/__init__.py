"""One regression tree on packed gradients, in one of the forms of `settings.TREES`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.grower.best_first import grow_best_first
from lmart.grower.oblivious import grow_oblivious
from lmart.grower.tree import GrownTree, Histograms, Task, Units
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

__all__ = ["GrownTree", "Histograms", "Units", "grow_tree"]


def grow_tree(
    source: LeafSource,
    edges: BinEdges,
    units: Units,
    settings: TrainSettings,
    pool: WorkerPool,
    histograms: Histograms | None = None,
    signs: npt.NDArray[np.int8] | None = None,
    taken_features: npt.NDArray[np.bool_] | None = None,
) -> GrownTree | None:
    """Return a tree of at most `leaves` leaves, or None when no split gains.

    histograms : room to use, empty or from the tree before
    signs      : int8[m]: 1 where the score may only rise with the feature, -1 where it may only fall; None: no such,
                 as it must be for oblivious trees
    taken_features : bool[m], those to split on; None: all
    Leaf values are -G / (H + l2) times the learning rate, one Newton step (Burges 2010, section 7).
    """
    room = histograms or Histograms(edges.n_bins)
    task = Task(source, edges, units, settings, pool, room, signs, taken_features)
    return grow_oblivious(task) if settings.tree == "oblivious" else grow_best_first(task)
