"""Growth leaf by leaf: the next leaf is the one with the highest split gain of all, or of its level."""

from __future__ import annotations

import heapq

from lmart.training.grower.expander import Expander
from lmart.training.grower.tree import GrowingTree, GrownTree, GrowParams, Leaf


class Candidates:
    """The leaves of a tree that have a split, the next to be split first.

    The highest gain comes first, then the older leaf.
    """

    def __init__(self, by_level: bool) -> None:
        self._by_level = by_level
        self._heap: list[tuple[int, float, int, Leaf]] = []  # level, or 0; minus the gain; number; leaf

    def add(self, number: int, leaf: Leaf) -> None:
        """Add a leaf, unless it has no split."""
        if leaf.split is not None:
            level = leaf.depth if self._by_level else 0
            heapq.heappush(self._heap, (level, -leaf.split.split_gain, number, leaf))

    def first(self) -> tuple[int, Leaf] | None:
        """Return the number of the next leaf, and the leaf; None when there is none."""
        return self._heap[0][-2:] if self._heap else None

    def likely(self, n: int) -> list[Leaf]:
        """Return those of the first n leaves that have no children yet."""
        return [leaf for *_, leaf in heapq.nsmallest(n, self._heap) if leaf.children is None]

    def renew(self) -> None:
        """Place all leaves again, after some got other splits."""
        previous, self._heap = self._heap, []
        for *_, number, leaf in previous:
            self.add(number, leaf)

    def take_first(self) -> None:
        """Leave out the leaf that `first` returned."""
        heapq.heappop(self._heap)


def grow_best_first(params: GrowParams, expander: Expander) -> GrownTree | None:
    """Split the leaf with the highest gain up to `max_leaves` leaves or no positive gain; None without a split.

    By level: of the leaves of the lowest depth, the one with the highest gain. Ties: the older leaf first.
    """
    settings = params.settings
    tree = GrowingTree(expander.find_root())
    candidates = Candidates(settings.form.by_level)
    candidates.add(0, tree.leaves[0])
    ahead = expander.leaves_ahead(params.pool.threads)
    while len(tree.leaves) < settings.max_leaves and (first := candidates.first()) is not None:
        number, leaf = first
        left_over = settings.max_leaves - len(tree.leaves) - 1
        if leaf.children is not None:  # expanded in an earlier turn, perhaps ahead of its own
            candidates.take_first()
            for place in (number, tree.split(number)):
                candidates.add(place, tree.leaves[place])
            continue
        # Expanding the next likely leaves too keeps all workers busy; those that never win are dropped with the tree.
        leaves = candidates.likely(min(left_over, ahead)) if left_over else [leaf]
        if left_over:
            expander.expand(leaves)
        else:  # the last split: its children need neither histograms nor splits
            expander.split(leaf)
        if any(leaf.children is None for leaf in leaves):  # the expander has given it another split instead
            candidates.renew()
    return tree.finish(params)
