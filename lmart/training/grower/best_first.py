"""Growth leaf by leaf: the next leaf is the one with the highest split gain of all, or of its level."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence

from lmart.array_types import Int64Array
from lmart.kernels.trees.histogram import complete_histogram
from lmart.threads import WorkerPool
from lmart.training.grower.split_finder import SplitFinder
from lmart.training.grower.tree import (
    GrowingTree,
    GrownTree,
    GrowParams,
    Leaf,
    hand_on_histogram,
    newton_step,
    run_by_size,
    split_leaf,
)

AHEAD = 4  # leaves expanded at a time for each worker, where there is more than one


class Expander:
    """Splits leaves and finds the best split of each child, several leaves per call.

    The result does not depend on the order of expansion, so likely next leaves are expanded speculatively.
    """

    def __init__(self, params: GrowParams, finder: SplitFinder | None = None) -> None:
        self._params, self._source, self._histograms = params, params.source, params.histograms
        self._finder = finder or SplitFinder(params)
        self._numbers = itertools.count(1)
        self._open: list[tuple[float, int, Leaf]] = []  # a heap of leaves that got histograms: split gain, number, leaf

    def leaves_ahead(self, threads: int) -> int:
        """Return how many leaves are best expanded at a time."""
        return min(AHEAD * threads, self._histograms.most // 4) if threads > 1 else 1

    def find_root(self) -> Leaf:
        """Return the leaf of all documents, with its best split."""
        root = Leaf(0, 0, 0)
        if self._may_split(root):
            root.histogram = self._histograms.take()
            root.total = self._source.histogram(0, root.histogram, self._params.pool)
            self._finder.choose([self._finder.find(root, self._params.pool)])
        return root

    def expand(self, leaves: list[Leaf]) -> None:
        """Give leaves their children, and these their best splits."""
        self.restore(leaves, 1)
        # Numbers and buffers are taken here, since the leaves are worked on side by side.
        self.expand_all([(leaf, *self.new_numbers(), self._histograms.take()) for leaf in leaves])

    def expand_all(self, calls: Sequence[tuple[Leaf, int, int, Int64Array]]) -> None:
        """Expand leaves side by side.

        calls : of each leaf: the leaf, the numbers of its children, and a buffer for the histogram of one of them
        """
        n_documents = [self._source.n_documents(leaf.number) for leaf, *_ in calls]
        run_by_size(self._expand, calls, n_documents, self._params.pool)
        for leaf, *_ in calls:
            self._histograms.give_back(leaf)
            for child in leaf.children or ():
                if child.split is None:
                    self._histograms.give_back(child)
                else:
                    heapq.heappush(self._open, (child.split.split_gain, child.number, child))

    def restore(self, leaves: list[Leaf], n_more: int) -> None:
        """Give leaves the histograms that were taken from them, and make room for `n_more` for each.

        Those of other leaves are taken, of the lowest gains first, where there is no memory for all. Sums are exact, so
        that the tree does not depend on it.
        """
        without = [leaf for leaf in leaves if leaf.histogram is None]
        lacking = self._histograms.lacking(len(without) + n_more * len(leaves))
        busy: list[tuple[float, int, Leaf]] = []
        while lacking and self._open:
            entry = heapq.heappop(self._open)
            if entry[-1] in leaves:
                busy.append(entry)
            elif entry[-1].histogram is not None:
                self._histograms.give_back(entry[-1])
                lacking -= 1
        for entry in busy:
            heapq.heappush(self._open, entry)
        for leaf in without:
            leaf.histogram = self._histograms.take()
            heapq.heappush(self._open, (-math.inf if leaf.split is None else leaf.split.split_gain, leaf.number, leaf))
        n_documents = [self._source.n_documents(leaf.number) for leaf in without]
        run_by_size(self._sum_again, [(leaf,) for leaf in without], n_documents, self._params.pool)

    def split(self, leaf: Leaf) -> None:
        """Give a leaf its children, which are not to be split."""
        self._split(leaf, *self.new_numbers(), self._params.pool)
        self._histograms.give_back(leaf)

    def new_numbers(self) -> tuple[int, int]:
        """Return numbers for two children."""
        return next(self._numbers), next(self._numbers)

    def _sum_again(self, leaf: Leaf, pool: WorkerPool) -> None:
        histogram, edges = leaf.known_histogram, self._params.edges
        self._source.histogram(leaf.number, histogram, pool)
        features = (edges.bin_offsets, self._source.most_frequent_bins, 0, edges.n_features)
        complete_histogram(histogram, leaf.total, *features)

    def _may_split(self, leaf: Leaf) -> bool:
        settings = self._params.settings
        shallow = leaf.depth < settings.max_depth
        return shallow and self._source.n_documents(leaf.number) >= 2 * settings.min_documents

    def _split(self, leaf: Leaf, left: int, right: int, pool: WorkerPool) -> tuple[Leaf, Leaf]:
        children = split_leaf(self._source, leaf, left, right, pool)
        if self._params.directions is not None:
            hand_down_bounds(leaf, self._params)
        return children

    def _expand(self, leaf: Leaf, left: int, right: int, buffer: Int64Array, pool: WorkerPool) -> None:
        """Split a leaf and find the best splits of its children."""
        children = self._split(leaf, left, right, pool)
        if any(map(self._may_split, children)):
            self._finder.choose(self._finder.find_both(*hand_on_histogram(self._source, leaf, buffer, pool), pool))
        else:
            children[0].histogram = buffer  # from where it is given back


def hand_down_bounds(leaf: Leaf, params: GrowParams) -> None:
    """Give the children of a leaf their bounds: those of a split on a constrained feature meet halfway.

    So no leaf on the one side ever gets a value beyond that of a leaf on the other (LightGBM's basic method).
    """
    assert leaf.split is not None and leaf.children is not None and params.directions is not None
    for child in leaf.children:
        child.low, child.high = leaf.low, leaf.high
    direction = int(params.directions[leaf.split.feature])
    if direction:
        lower, upper = leaf.children[::direction]
        values = newton_step(lower, params), newton_step(upper, params)
        lower.high = upper.low = values[0] + (values[1] - values[0]) / 2


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


def grow_best_first(params: GrowParams, expander: Expander | None = None) -> GrownTree | None:
    """Split the leaf with the highest gain up to `max_leaves` leaves or no positive gain; None without a split.

    By level: of the leaves of the lowest depth, the one with the highest gain. Ties: the older leaf first.
    """
    settings = params.settings
    expander = expander or Expander(params)
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
