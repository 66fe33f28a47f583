"""Growth leaf by leaf: the leaf with the highest gain of all, or of its level, is next."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import numpy.typing as npt

from lmart.grower.split_finder import SplitFinder
from lmart.grower.tree import GrowingTree, GrownTree, Leaf, Task, hand_on_histogram, newton_step, part, run_by_size
from lmart.threads import WorkerPool

Longs = npt.NDArray[np.int64]

AHEAD = 4  # leaves expanded at a time for each worker, where there is more than one


class Expander:
    """Parts leaves and finds the best splits of both sides, on several leaves at a time.

    What a leaf becomes does not depend on when that happens, so leaves that will be wanted soon are taken along.
    """

    def __init__(self, task: Task) -> None:
        self._task, self._source, self._room = task, task.source, task.room
        self._finder = SplitFinder(task)
        self._numbers = itertools.count(1)

    def find_root(self) -> Leaf:
        """Return the leaf of all documents, with its best split."""
        root = Leaf(0, 0, 0)
        if self._may_split(root):
            root.histogram = self._room.take()
            root.total = self._source.histogram(0, root.histogram, self._task.pool)
            root.split = self._finder.find(root, self._task.pool)
        return root

    def expand(self, leaves: list[Leaf]) -> None:
        """Give leaves their sides, and these their best splits."""
        # Numbers and room are taken here, since the leaves are worked on side by side.
        calls = [(leaf, *self._new_numbers(), self._room.take()) for leaf in leaves]
        run_by_size(self._expand, calls, [self._source.n_documents(leaf.number) for leaf in leaves], self._task.pool)
        for leaf in leaves:
            self._room.give_back(leaf)
            for side in leaf.sides or ():
                if side.split is None:
                    self._room.give_back(side)

    def part(self, leaf: Leaf) -> None:
        """Give a leaf its sides, which are not to be split."""
        self._part(leaf, *self._new_numbers(), self._task.pool)
        self._room.give_back(leaf)

    def _new_numbers(self) -> tuple[int, int]:
        return next(self._numbers), next(self._numbers)

    def _may_split(self, leaf: Leaf) -> bool:
        settings = self._task.settings
        deep = settings.max_depth and leaf.depth >= settings.max_depth
        return not deep and self._source.n_documents(leaf.number) >= 2 * settings.min_docs

    def _part(self, leaf: Leaf, left: int, right: int, pool: WorkerPool) -> tuple[Leaf, Leaf]:
        sides = part(self._source, leaf, left, right, pool)
        if self._task.signs is not None:
            hand_down_bounds(leaf, self._task)
        return sides

    def _expand(self, leaf: Leaf, left: int, right: int, spare: Longs, pool: WorkerPool) -> None:
        sides = self._part(leaf, left, right, pool)
        if any(map(self._may_split, sides)):
            self._finder.find_both(*hand_on_histogram(self._source, leaf, spare, pool), pool)
        else:
            sides[0].histogram = spare  # from where it is given back


def hand_down_bounds(leaf: Leaf, task: Task) -> None:
    """Give the sides of a leaf their bounds: those of a split on a constrained feature meet halfway.

    So no leaf on the one side ever gets a value beyond that of a leaf on the other (LightGBM's basic method).
    """
    assert leaf.split is not None and leaf.sides is not None and task.signs is not None
    for side in leaf.sides:
        side.low, side.high = leaf.low, leaf.high
    sign = int(task.signs[leaf.split.feature])
    if sign:
        lower, upper = leaf.sides[::sign]
        values = newton_step(lower, task), newton_step(upper, task)
        lower.high = upper.low = values[0] + (values[1] - values[0]) / 2


def grow_best_first(task: Task) -> GrownTree | None:
    """Split the leaf with the highest gain until there are `leaves`, or no split gains; None without a first split.

    Depthwise: one of the lowest depth, and of these the one with the highest gain. Equal gains: the older leaf first.
    """
    settings = task.settings
    expander = Expander(task)
    tree = GrowingTree(expander.find_root())
    waiting: list[tuple[int, float, int, Leaf]] = []

    def wait(number: int) -> None:
        leaf = tree.leaves[number]
        if leaf.split is not None:
            level = leaf.depth if settings.tree == "depthwise" else 0
            heapq.heappush(waiting, (level, -leaf.split.gain, number, leaf))

    assert settings.leaves is not None  # for_queries
    ahead = AHEAD * task.pool.threads if task.pool.threads > 1 else 1
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
    return tree.finish(task)
