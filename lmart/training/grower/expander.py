"""The next leaves of a tree: each split, with the best splits of its children, several leaves at a time."""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from lmart.array_types import Int64Array
from lmart.kernels.trees.histogram import complete_histogram
from lmart.kernels.trees.leaf_expansion import choose_split, expand_leaf
from lmart.threads import WorkerPool
from lmart.training.grower.leaves import LocalLeaves
from lmart.training.grower.split_finder import FoundSplit, SplitFinder
from lmart.training.grower.tree import (
    GrowParams,
    Leaf,
    divide,
    hand_on_histogram,
    run_by_size,
    split_leaf,
)

AHEAD = 4  # leaves expanded at a time for each worker, where there is more than one


class Expander(ABC):
    """Splits leaves and finds the best split of each child, several leaves per call.

    The result does not depend on the order of expansion, so likely next leaves are expanded speculatively. How children
    get their splits is up to the class that extends this.
    """

    def __init__(self, params: GrowParams) -> None:
        self._params, self._source, self._histograms = params, params.source, params.histograms
        self._finder = SplitFinder(params)
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
            self.choose([self._finder.find(root, self._params.pool)])
        return root

    @abstractmethod
    def choose(self, found: Sequence[FoundSplit]) -> None:
        """Give leaves their best splits that leave enough documents on each side, or None."""

    @abstractmethod
    def expand(self, leaves: list[Leaf]) -> None:
        """Give leaves their children, and these their best splits."""

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
        split_leaf(self._params, leaf, *self.new_numbers(), self._params.pool)
        self._histograms.give_back(leaf)

    def new_numbers(self) -> tuple[int, int]:
        """Return numbers for two children."""
        return next(self._numbers), next(self._numbers)

    def keep_histograms(self, leaf: Leaf) -> None:
        """Note the histograms of the children of a leaf; take those that no split needs."""
        self._histograms.give_back(leaf)
        for child in leaf.children or ():
            if child.split is None:
                self._histograms.give_back(child)
            else:
                heapq.heappush(self._open, (child.split.split_gain, child.number, child))

    def _sum_again(self, leaf: Leaf, pool: WorkerPool) -> None:
        histogram, edges = leaf.known_histogram, self._params.edges
        self._source.histogram(leaf.number, histogram, pool)
        features = (edges.bin_offsets, self._source.most_frequent_bins, 0, edges.n_features)
        complete_histogram(histogram, leaf.total, *features)

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

    A leaf is expanded by one worker, in one call of a kernel; the largest are taken one by one, each by all workers,
    with a kernel for each step.
    """

    def __init__(self, params: GrowParams, leaves: LocalLeaves) -> None:
        super().__init__(params)
        self._leaves = leaves

    def choose(self, found: Sequence[FoundSplit]) -> None:
        """Give leaves their best splits that leave enough documents on each side, or None."""
        for leaf, split_gains, _ in found:
            bounds = self._finder.bounds_in_units(leaf)
            inputs = (leaf.known_histogram, leaf.total, self._params.search, bounds, split_gains)
            chosen = choose_split(self._leaves.rows, self._leaves.place(leaf.number), *inputs)
            leaf.split = self._finder.in_full(chosen)

    def expand(self, leaves: list[Leaf]) -> None:
        """Give leaves their children, and these their best splits."""
        self.restore(leaves, 1)
        # Numbers and buffers are taken here, since the leaves are worked on side by side.
        calls = [(leaf, *self.new_numbers(), self._histograms.take()) for leaf in leaves]
        n_documents = [self._source.n_documents(leaf.number) for leaf in leaves]
        run_by_size(self._expand, calls, n_documents, self._params.pool)
        for leaf in leaves:
            self.keep_histograms(leaf)

    def _expand(self, leaf: Leaf, left: int, right: int, buffer: Int64Array, pool: WorkerPool) -> None:
        """Split a leaf and find the best splits of its children; buffer : int64[n_bins] for one of their histograms."""
        split, leaves, deepest = leaf.known_split, self._leaves, self._params.settings.max_depth
        if pool.threads > 1 or leaf.depth + 1 == deepest:
            self.expand_by_histograms(leaf, left, right, buffer, pool)
            return
        children = divide(leaf, left, right, self._params)
        n_left, n_left_unsampled, *found = expand_leaf(
            leaves.rows,
            self._params.search,
            leaves.place(leaf.number),
            (split.feature, split.bin, split.missing_left, split.left_total, leaf.total),
            (self._finder.bounds_in_units(children[0]), self._finder.bounds_in_units(children[1])),
            leaf.known_histogram,
            buffer,
        )
        leaves.set_children(leaf.number, left, right, n_left, n_left_unsampled)
        for child, fields in zip(children, found, strict=True):
            child.split = self._finder.in_full(fields)
        hand_on_histogram(leaves, leaf, buffer)
