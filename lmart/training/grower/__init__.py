"""One regression tree on packed gradients, in one of the forms of `settings.TREE_FORMS`."""

from __future__ import annotations

from lmart.array_types import BoolArray, Int8Array
from lmart.binning.edges import BinEdges
from lmart.settings.resolved import TreeSettings
from lmart.threads import WorkerPool
from lmart.training.grower.best_first import grow_best_first
from lmart.training.grower.expander import LocalExpander
from lmart.training.grower.leaves import LocalLeaves
from lmart.training.grower.oblivious import grow_oblivious
from lmart.training.grower.tree import GrownTree, GrowParams, Histograms, Units

__all__ = ["GrowParams", "GrownTree", "Histograms", "Units", "grow_tree"]


def grow_tree(
    source: LocalLeaves,
    edges: BinEdges,
    units: Units,
    settings: TreeSettings,
    pool: WorkerPool,
    histograms: Histograms | None = None,
    directions: Int8Array | None = None,
    allowed_features: BoolArray | None = None,
) -> GrownTree | None:
    """Return a tree of at most `max_leaves` leaves, or None when no split has a positive gain.

    histograms : buffers to use, empty or from the tree before; None: new ones
    directions : int8[m]: 1 where the score may only rise with the feature, -1 where it may only fall, 0 elsewhere;
                 None: no constraints, as it must be for oblivious trees

    Leaf values are -G / (H + l2) times the learning rate, one Newton step (Burges 2010, section 7).
    """
    buffers = histograms or Histograms(edges.n_bins)
    params = GrowParams(source, edges, units, settings, pool, buffers, directions, allowed_features)
    if settings.form.oblivious:
        return grow_oblivious(params)
    return grow_best_first(params, LocalExpander(params, source))
