"""Growth of a tree leaf by leaf: leaves are split, with the best splits of their children, several at a time."""

from __future__ import annotations

import heapq
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from lmart.array_types import Int64Array
from lmart.binning.binned_features import ONE_THREAD
from lmart.kernels.trees.histogram import complete_histogram
from lmart.kernels.trees.leaf_expansion import choose_split, expand_leaf
from lmart.threads import WorkerPool
from lmart.training.grower.best_first import Growth
from lmart.training.grower.leaves import LocalLeaves
from lmart.training.grower.split_finder import FoundSplit, SplitFinder
from lmart.training.grower.tree import (
    SHARED,
    GrownTree,
    GrowParams,
    Leaf,
    divide,
    hand_on_histogram,
    split_leaf,
)


class Expander(ABC):
    """Grows a tree leaf by leaf: splits leaves and finds the best split of each child.

    The tree does not depend on the order of expansion, so likely next leaves are expanded speculatively. How many at a
    time, and how children get their splits, is up to the class that extends this.
    """

    def __init__(self, params: GrowParams) -> None:
        self._params, self._source, self._histograms = params, params.source, params.histograms
        self._finder = SplitFinder(params)
        self._numbers = itertools.count(1)
        self._growth = Growth(self._find_root(), params.settings)

    def grow(self) -> GrownTree | None:
        """Split the leaf with the highest gain up to `max_leaves` leaves or no positive gain; None without a split.

        By level: of the leaves of the lowest depth, the one with the highest gain. Ties: the older leaf first.
        """
        self.expand_all()
        return self._growth.tree.finish(self._params)

    def _find_root(self) -> Leaf:
        """Return the leaf of all documents, with its best split."""
        root = Leaf(0, 0, 0)
        if self._may_split(root):
            root.histogram = self._histograms.take()
            root.total = self._source.histogram(0, root.histogram, self._params.pool)
            self.choose([self._finder.find(root, self._params.pool)])
        return root

    @abstractmethod
    def choose(self, found: Sequence[FoundSplit]) -> None:
        """Give leaves their best splits that leave enough documents on each side, or None."""

    @abstractmethod
    def expand_all(self) -> None:
        """Take leaves, give them their children, and these their best splits, until the tree has all its leaves."""

    def reserve(self, leaf: Leaf, n_more: int) -> bool:
        """Make room for `n_more` histograms, and for that of a leaf; return whether the leaf had lost it.

        Idle leaves lose theirs, those of the lowest gains first, where there is no memory for all. Sums are exact, so
        that the tree does not depend on it.
        """
        has_lost = leaf.histogram is None
        if lacking := self._histograms.lacking(n_more + has_lost):
            holders = [idle for idle in self._growth.idle() if idle.histogram is not None]
            n_taken = max(lacking, self._histograms.most // 8)  # not to look for the lowest each time
            for holder in heapq.nsmallest(n_taken, holders, key=lambda idle: idle.known_split.split_gain):
                self._histograms.give_back(holder)
        if has_lost:
            leaf.histogram = self._histograms.take()
        return has_lost

    def restore(self, leaf: Leaf, pool: WorkerPool) -> None:
        """Sum the histogram of a leaf again."""
        histogram, edges = leaf.known_histogram, self._params.edges
        self._source.histogram(leaf.number, histogram, pool)
        features = (edges.bin_offsets, self._source.most_frequent_bins, 0, edges.n_features)
        complete_histogram(histogram, leaf.total, *features)

    def new_numbers(self) -> tuple[int, int]:
        """Return numbers for two children."""
        return next(self._numbers), next(self._numbers)

    def put(self, leaf: Leaf) -> None:
        """Put back a leaf that was expanded; take the histograms that no split needs."""
        if leaf.children is not None:
            for holder in (leaf, *leaf.children):
                if holder is leaf or holder.split is None:
                    self._histograms.give_back(holder)
        self._growth.put(leaf)

    def _may_split(self, leaf: Leaf) -> bool:
        settings = self._params.settings
        shallow = leaf.depth < settings.max_depth
        return shallow and self._source.n_documents(leaf.number) >= 2 * settings.min_documents

    def expand_by_histograms(self, leaf: Leaf, left: int, right: int, buffer: Int64Array, pool: WorkerPool) -> None:
        """Split a leaf and find the best splits of its children, with the help of all workers of a pool."""
        children = split_leaf(self._params, leaf, left, right, pool)
        larger, smaller = hand_on_histogram(self._source, leaf, buffer)
        if any(map(self._may_split, children)):
            self._source.histogram(smaller.number, buffer, pool)
            self.choose(self._finder.find_both(larger, smaller, pool))


class LocalExpander(Expander):
    """Expands leaves whose documents are in this process's memory.

    A small leaf is expanded by one worker, in one call of a kernel, while others expand the next likely ones. A large
    one is expanded by all workers, with a kernel for each step.
    """

    def __init__(self, params: GrowParams, leaves: LocalLeaves) -> None:
        self._leaves = leaves
        super().__init__(params)
        # Guards the growth and the histograms, which workers share. Taken directly: an interrupt within the condition's
        # own code, which is Python, would leave it locked for ever.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._failed = False
        # More than a worker's share of all documents keeps the others waiting.
        self._most_alone = max(SHARED, leaves.n_documents(0) // params.pool.threads)

    def choose(self, found: Sequence[FoundSplit]) -> None:
        """Give leaves their best splits that leave enough documents on each side, or None."""
        for leaf, split_gains, _ in found:
            bounds = self._finder.bounds_in_units(leaf)
            inputs = (leaf.known_histogram, leaf.total, self._params.search, bounds, split_gains)
            chosen = choose_split(self._leaves.rows, self._leaves.place(leaf.number), *inputs)
            leaf.split = self._finder.in_full(chosen)

    def expand_all(self) -> None:
        """Take leaves, give them their children, and these their best splits, until the tree has all its leaves."""
        growth, pool = self._growth, self._params.pool
        # Each needs two histograms; as many are left for leaves that wait.
        n_workers = min(pool.threads, self._histograms.most // 4)
        while growth.is_open:
            while (leaf := growth.take(self._is_large, anywhere=True)) is not None:
                self._expand(leaf, pool)
            pool.run(self._expand_small, [()] * n_workers)

    def _is_large(self, leaf: Leaf) -> bool:
        return self._leaves.n_documents(leaf.number) > self._most_alone

    def _is_small(self, leaf: Leaf) -> bool:
        return not self._is_large(leaf)

    def _expand_small(self) -> None:
        """Expand leaves together with other workers until the next one is large, or none is left."""
        try:
            while (leaf := self._take_small()) is not None:
                self._expand(leaf, ONE_THREAD)
        except BaseException:
            with self._lock:
                self._failed = True
                self._changed.notify_all()
            raise

    def _take_small(self) -> Leaf | None:
        """Take the next leaf; None when it is large, or there is none. Wait for those in work, which may change it.

        A worker that took a leaf wakes another where there may be one more, and the last one wakes all.
        """
        growth = self._growth
        with self._lock:
            while not self._failed:
                if (leaf := growth.take(self._is_small)) is not None:
                    self._changed.notify(int(growth.is_open))
                    return leaf
                if not growth.in_work():
                    self._changed.notify_all()
                    break
                self._changed.wait()
        return None

    def _expand(self, leaf: Leaf, pool: WorkerPool) -> None:
        """Split a leaf that was taken, and find the best splits of its children."""
        params, leaves = self._params, self._leaves
        with self._lock:
            left, right = self.new_numbers()
            are_searched = self._growth.n_left > 1 and leaf.depth + 1 < params.settings.max_depth
            has_lost = are_searched and self.reserve(leaf, 1)
            buffer = self._histograms.take() if are_searched else None
        if has_lost:
            self.restore(leaf, pool)
        if buffer is not None and pool.threads > 1:  # nobody else is at work
            self.expand_by_histograms(leaf, left, right, buffer, pool)
            self.put(leaf)
            return
        children = divide(leaf, left, right, params)
        if buffer is None:
            leaves.split(leaf.number, left, right, leaf.known_split, pool)
        else:
            self._expand_alone(leaf, children, buffer)
        with self._lock:
            leaf.children = children
            if buffer is not None:
                hand_on_histogram(leaves, leaf, buffer)
            self.put(leaf)

    def _expand_alone(self, leaf: Leaf, children: tuple[Leaf, Leaf], buffer: Int64Array) -> None:
        """Split the documents of a leaf, and give its children their best splits.

        buffer : int64[n_bins], the histogram of the smaller child, out; that of the leaf becomes the larger child's
        """
        split, leaves, (left, right) = leaf.known_split, self._leaves, children
        n_left, n_left_unsampled, of_left, of_right = expand_leaf(
            leaves.rows,
            self._params.search,
            leaves.place(leaf.number),
            (split.feature, split.bin, split.missing_left, split.left_total, leaf.total),
            (self._finder.bounds_in_units(left), self._finder.bounds_in_units(right)),
            leaf.known_histogram,
            buffer,
        )
        leaves.set_children(leaf.number, left.number, right.number, n_left, n_left_unsampled)
        left.split, right.split = self._finder.in_full(of_left), self._finder.in_full(of_right)
