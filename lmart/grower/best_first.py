"""Growth leaf by leaf: the leaf with the highest gain of all, or of its level, is next."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.grower.split_finder import Bounds, SplitFinder
from lmart.grower.tree import GrowingTree, GrownTree, Histograms, Leaf, Units, run_by_size
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

Longs = npt.NDArray[np.int64]
Signs = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]

AHEAD = 2  # leaves expanded at a time for each worker, where there is more than one


class Expander:
    """Parts leaves and finds the best splits of both sides, on several leaves at a time.

    What a leaf becomes does not depend on when that happens, so leaves that will be wanted soon are taken along.
    """

    def __init__(
        self,
        source: LeafSource,
        finder: SplitFinder,
        room: Histograms,
        bounds: Bounds | None,
        settings: TrainSettings,
        pool: WorkerPool,
    ) -> None:
        self._source, self._finder, self._room, self._pool = source, finder, room, pool
        self._bounds = bounds
        self._max_depth, self._min_docs = settings.max_depth, settings.min_docs
        self._numbers = itertools.count(1)

    def find_root(self) -> Leaf:
        """Return the leaf of all documents, with its best split."""
        root = Leaf(0, 0, 0)
        if self._may_split(root):
            root.histogram = self._room.take()
            root.total = self._source.histogram(0, root.histogram, self._pool)
            root.split = self._finder.find(root, self._pool)
        return root

    def expand(self, leaves: list[Leaf]) -> None:
        """Give leaves their sides, and these their best splits."""
        calls = [(leaf, *self._new_numbers(), self._room.take()) for leaf in leaves]
        run_by_size(self._expand, calls, [self._source.n_documents(leaf.number) for leaf in leaves], self._pool)
        for leaf in leaves:
            self._room.give_back(leaf)
            for side in leaf.sides or ():
                if side.split is None:
                    self._room.give_back(side)

    def part(self, leaf: Leaf) -> None:
        """Give a leaf its sides, which are not to be split."""
        self._part(leaf, *self._new_numbers(), self._pool)

    def _new_numbers(self) -> tuple[int, int]:
        return next(self._numbers), next(self._numbers)

    def _may_split(self, leaf: Leaf) -> bool:
        deep = self._max_depth and leaf.depth >= self._max_depth
        return not deep and self._source.n_documents(leaf.number) >= 2 * self._min_docs

    def _part(self, leaf: Leaf, left: int, right: int, pool: WorkerPool) -> tuple[Leaf, Leaf]:
        split = leaf.split
        assert split is not None
        self._source.split(leaf.number, left, right, split.feature, split.code, split.missing_left, pool)
        depth = leaf.depth + 1
        leaf.sides = Leaf(left, split.left_total, depth), Leaf(right, leaf.total - split.left_total, depth)
        if self._bounds is not None:
            self._bounds.hand_down(leaf)
        return leaf.sides

    def _expand(self, leaf: Leaf, left: int, right: int, spare: Longs, pool: WorkerPool) -> None:
        sides = self._part(leaf, left, right, pool)
        small, large = sorted(sides, key=lambda side: self._source.n_documents(side.number))
        small.histogram = spare
        if any(map(self._may_split, sides)):
            large.histogram, leaf.histogram = leaf.histogram, None
            self._source.histogram(small.number, spare, pool)
            self._finder.find_both(large, small, pool)


def grow_best_first(
    source: LeafSource,
    edges: BinEdges,
    units: Units,
    settings: TrainSettings,
    pool: WorkerPool,
    room: Histograms,
    signs: Signs | None,
    taken_features: Flags | None,
) -> GrownTree | None:
    """Split the leaf with the highest gain until there are `leaves`, or no split gains; None without a first split.

    Depthwise: one of the lowest depth, and of these the one with the highest gain.

    The arguments are those of `grow_tree`. Equal gains: the older leaf first.
    """
    bounds = None if signs is None else Bounds(signs, units, settings)
    finder = SplitFinder(source, edges, units, settings, signs, taken_features)
    expander = Expander(source, finder, room, bounds, settings, pool)
    tree = GrowingTree(expander.find_root())
    waiting: list[tuple[int, float, int, Leaf]] = []

    def wait(number: int) -> None:
        leaf = tree.leaves[number]
        if leaf.split is not None:
            level = leaf.depth if settings.tree == "depthwise" else 0
            heapq.heappush(waiting, (level, -leaf.split.gain, number, leaf))

    assert settings.leaves is not None  # for_queries
    ahead = AHEAD * pool.threads if pool.threads > 1 else 1
    wait(0)
    while waiting and len(tree.leaves) < settings.leaves:
        left_over = settings.leaves - len(tree.leaves) - 1
        *_, number, leaf = waiting[0]
        if leaf.sides is None:
            if left_over:
                soon = heapq.nsmallest(min(left_over, ahead), waiting)
                expander.expand([one for *_, one in soon if one.sides is None])
            else:
                expander.part(leaf)
        heapq.heappop(waiting)
        new = tree.split(number)
        wait(number)
        wait(new)
    return tree.finish(source, edges, units, settings, room)
