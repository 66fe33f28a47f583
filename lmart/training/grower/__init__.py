"""One regression tree on packed gradients, in one of the forms of `settings.TREE_FORMS`."""

from __future__ import annotations

from lmart.training.grower.expander import LocalExpander
from lmart.training.grower.leaves import LocalLeaves
from lmart.training.grower.oblivious import grow_oblivious
from lmart.training.grower.tree import GrownTree, GrowParams, Histograms, Units

__all__ = ["GrowParams", "GrownTree", "Histograms", "Units", "grow_tree"]


def grow_tree(params: GrowParams, leaves: LocalLeaves) -> GrownTree | None:
    """Return a tree of at most `max_leaves` leaves, or None when no split has a positive gain.

    leaves : the source of `params`

    Leaf values are -G / (H + l2) times the learning rate, one Newton step (Burges 2010, section 7).
    """
    if params.settings.form.oblivious:
        return grow_oblivious(params)
    return LocalExpander(params, leaves).grow()
