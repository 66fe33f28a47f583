"""Oblivious trees: growth level by level, with one split for all leaves of a level."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.kernels.trees import split_search as kernels
from lmart.kernels.trees.histogram import complete_histogram, subtract_histogram
from lmart.kernels.trees.split_gain import Split, split_gain_of
from lmart.threads import WorkerPool
from lmart.training.grower.split_finder import feature_ranges
from lmart.training.grower.tree import (
    LOW_HALF,
    GrowingTree,
    GrownTree,
    GrowParams,
    Leaf,
    hand_on_histogram,
    run_by_size,
    split_leaf,
)

Call = tuple[Leaf, int, int, Int64Array | None]  # a leaf, the numbers of its children, a buffer for a histogram


def grow_oblivious(params: GrowParams, level: Level | None = None) -> GrownTree | None:
    """Split all leaves of a level by the same threshold of the same feature: the one with the highest sum of gains.

    A leaf stays as it is where a child would have fewer than `min_documents` or less than `min_hessian`. Levels are
    added to `max_depth`, or until no split has a positive gain. Source: Kohavi 1994 (oblivious decision graphs);
    CatBoost, which splits every leaf. Ties: lowest feature, then lowest threshold, then missing right.
    """
    source = params.source
    root = Leaf(0, 0, 0, params.histograms.take())
    assert root.histogram is not None
    root.total = source.histogram(0, root.histogram, params.pool)
    features = (params.edges.bin_offsets, source.most_frequent_bins, 0, params.edges.n_features)
    complete_histogram(root.histogram, root.total, *features)
    tree = GrowingTree(root)
    level = level or Level(params)
    for left_over in reversed(range(params.settings.max_depth)):
        if not level.split(tree, last=left_over == 0):
            break
    return tree.finish(params)


class Level:
    """Splits the leaves of a tree, one level at a time. Leaves with a histogram are those that may be split."""

    def __init__(self, params: GrowParams) -> None:
        self._params, self._source, self._edges, self._pool = params, params.source, params.edges, params.pool
        self._min_documents = params.settings.min_documents
        self._search = params.search
        self._numbers = itertools.count(1)

    def split(self, tree: GrowingTree, last: bool) -> bool:
        """Split the leaves of the tree that can be; return whether there was one. The last ones need no histograms."""
        histograms = self._params.histograms
        leaves = [leaf for leaf in tree.leaves if leaf.histogram is not None]
        best = self._choose(leaves)
        if best is None:
            return False
        calls: list[Call] = []
        for leaf, split, allowed in self.allowed(leaves, best):
            if allowed:
                leaf.split = split
                calls.append((leaf, next(self._numbers), next(self._numbers), None if last else histograms.take()))
        self.split_leaves(calls)
        for number, leaf in enumerate(tree.leaves.copy()):
            if leaf.children is not None:
                histograms.give_back(leaf)
                tree.split(number)
                for child in leaf.children:
                    if self._source.n_documents(child.number) < 2 * self._min_documents:
                        histograms.give_back(child)
        return True

    def split_leaves(self, calls: Sequence[Call]) -> None:
        """Split leaves side by side, and give their children histograms where there is a buffer."""
        n_documents = [self._source.n_documents(leaf.number) for leaf, *_ in calls]
        run_by_size(self._split_leaf, calls, n_documents, self._pool)

    def _choose(self, leaves: list[Leaf]) -> tuple[int, int, bool] | None:
        """Return feature, bin and missing left of the split with the highest sum of gains over leaves.

        The sums ignore `min_documents` at first: the feature with the highest sum is summed again with counts of
        documents, until the best one is such a feature.
        """
        edges, search = self._edges, self._search
        split_gains = np.zeros((2, edges.n_bins))
        ranges = feature_ranges(edges, self._pool, max(1, len(leaves)))
        self._pool.run(self._add_split_gains, [(leaves, first, last, split_gains) for first, last in ranges])
        counted = set()
        while split_gains.size and split_gains.max() > 0.0:
            position = int(split_gains.max(axis=0).argmax())
            feature = int(np.searchsorted(edges.bin_offsets, position, side="right")) - 1
            start, stop = edges.bin_offsets[feature : feature + 2].tolist()
            best = (feature, position - start, bool(split_gains[1, position] > split_gains[0, position]))
            if feature in counted or all(allowed for *_, allowed in self.allowed(leaves, best)):
                return best
            split_gains[:, start:stop] = 0.0
            counts_of_leaves = self._source.bin_counts([(leaf.number, feature) for leaf in leaves])
            for leaf, counts in zip(leaves, counts_of_leaves, strict=True):
                limits = (search, self._min_documents, feature, feature + 1)
                kernels.add_split_gains(leaf.known_histogram, counts, leaf.total, *limits, split_gains)
            counted.add(feature)
        return None

    def _add_split_gains(self, leaves: list[Leaf], first: int, last: int, split_gains: Float64Array) -> None:
        """Add the gains of all leaves for each split of the features first..last - 1, without counts of documents."""
        no_counts = np.zeros(0, np.int64)
        for leaf in leaves:
            histogram, total = leaf.known_histogram, leaf.total
            kernels.add_split_gains(histogram, no_counts, total, self._search, 0, first, last, split_gains)

    def _split_of(self, leaf: Leaf, feature: int, split_bin: int, missing_left: bool) -> Split:
        """Return the split of a leaf at a bin, with its gain."""
        edges, histogram, search = self._edges, leaf.known_histogram, self._search
        start, stop = edges.bin_offsets[feature : feature + 2].tolist()
        left = int(histogram[start : start + split_bin + 1].sum())
        if missing_left and edges.has_missing[feature]:
            left += int(histogram[stop - 1])
        in_units = split_gain_of(left, leaf.total, search.l2, search.min_hessian)
        return Split(self._params.units.split_gain(in_units), feature, split_bin, missing_left, left)

    def allowed(self, leaves: list[Leaf], best: tuple[int, int, bool]) -> Iterable[tuple[Leaf, Split, bool]]:
        """Yield each leaf, its split, and whether both children have `min_hessian` and `min_documents`."""
        for leaf in leaves:
            split = self._split_of(leaf, *best)
            decided = self._known(leaf, split)
            enough = self._source.has_enough(leaf.number, split, self._min_documents) if decided is None else decided
            yield leaf, split, enough

    def _known(self, leaf: Leaf, split: Split) -> bool | None:
        """Return whether both children have `min_hessian` and `min_documents`; None: documents must be counted."""
        left = split.left_total & LOW_HALF
        if min(left, (leaf.total & LOW_HALF) - left) < self._search.min_hessian:
            return False
        return True if self._params.surely_enough(split.left_total, leaf.total) else None

    def _split_leaf(self, leaf: Leaf, left: int, right: int, buffer: Int64Array | None, pool: WorkerPool) -> None:
        source, offsets = self._source, self._edges.bin_offsets
        split_leaf(self._params, leaf, left, right, pool)
        if buffer is not None:
            larger, smaller = hand_on_histogram(source, leaf, buffer)
            source.histogram(smaller.number, buffer, pool)
            ranges = feature_ranges(self._edges, pool)
            histograms = (larger.known_histogram, buffer, smaller.total)
            calls = [(*histograms, offsets, source.most_frequent_bins, a, b) for a, b in ranges]
            pool.run(subtract_histogram, calls)
