"""The best split of a leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.binning.binned_features import can_be_split
from lmart.binning.edges import BinEdges
from lmart.kernels.trees import split_search as kernels
from lmart.kernels.trees.histogram import complete_histogram, subtract_histogram
from lmart.kernels.trees.split_gain import Split, SplitFields
from lmart.threads import WorkerPool, chunks
from lmart.training.grower.tree import GrowParams, Leaf

FEW = 2  # features of a leaf that are counted one by one before all are counted together
SCANNED = 16_384  # least bins in one piece of work
NO_BOUNDS = (-math.inf, math.inf)
NO_SPLIT = Split(-np.inf, -1, -1, False, 0)


def feature_ranges(edges: BinEdges, pool: WorkerPool, n_leaves: int = 1) -> list[tuple[int, int]]:
    """Return ranges of features, one for each worker, as long as each has enough bins to be a piece of work."""
    m = edges.n_features
    if pool.threads == 1:
        return [(0, m)]
    least = -(-m * SCANNED // max(1, edges.n_bins * n_leaves))
    return chunks(m, max(1, least, -(-m // (pool.threads * min(n_leaves, 4)))))


class FoundSplit(NamedTuple):
    """The best split of a leaf before documents are counted.

    split_gains : float64[m], the highest gain of each feature, in units
    split       : the split with the highest of them
    """

    leaf: Leaf
    split_gains: Float64Array
    split: Split


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold."""

    def __init__(self, params: GrowParams) -> None:
        self._params, self._constrained = params, params.directions is not None
        self._source, self._edges, self._units = params.source, params.edges, params.units
        self._min_documents = params.settings.min_documents
        self._search = params.search
        self._bin_arrays = (params.edges.bin_offsets, params.source.most_frequent_bins)

    def find(self, leaf: Leaf, pool: WorkerPool) -> FoundSplit:
        """Return the best split of the root, for `choose`."""
        histogram, search = leaf.known_histogram, self._search
        ranges = feature_ranges(self._edges, pool)
        if self._constrained:
            pool.run(complete_histogram, [(histogram, leaf.total, *self._bin_arrays, a, b) for a, b in ranges])
            return self._find_constrained(leaf, pool)
        split_gains = np.empty(self._edges.n_features)
        calls = [(histogram, leaf.total, search, a, b, split_gains) for a, b in ranges]
        return FoundSplit(leaf, split_gains, _best(pool.run(kernels.find_best_split, calls)))

    def find_both(self, larger: Leaf, smaller: Leaf, pool: WorkerPool) -> list[FoundSplit]:
        """Return the best splits of two children, for `choose`; of the smaller only if it has enough documents for one.

        The histogram of `larger` is its parent's when this is called, and its own afterwards.
        """
        histograms, ranges = (larger.known_histogram, smaller.known_histogram), feature_ranges(self._edges, pool)
        searched = [larger, smaller]
        if self._source.n_documents(smaller.number) < 2 * self._min_documents:
            searched.pop()
        if self._constrained:
            subtractions = [(*histograms, smaller.total, *self._bin_arrays, a, b) for a, b in ranges]
            pool.run(subtract_histogram, subtractions)
            return [self._find_constrained(leaf, pool) for leaf in searched]
        split_gains = np.empty((len(searched), self._edges.n_features))
        calls = [(*histograms, larger.total, smaller.total, self._search, a, b, split_gains) for a, b in ranges]
        splits = pool.run(kernels.find_best_splits_of_children, calls)
        return [
            FoundSplit(leaf, split_gains[place], _best([of_range[place] for of_range in splits]))
            for place, leaf in enumerate(searched)
        ]

    def choose(self, found: Sequence[FoundSplit]) -> None:
        """Give leaves their best splits that leave enough documents on each side, or None."""
        for candidate in found:
            candidate.leaf.split = self.best_with_enough(candidate)

    def _find_constrained(self, leaf: Leaf, pool: WorkerPool) -> FoundSplit:
        """Return the best split of a leaf with a complete histogram that the constraints allow."""
        low, high = self._bounds_in_units(leaf)
        split_gains = np.empty(self._edges.n_features)
        ranges = feature_ranges(self._edges, pool)
        calls = [(leaf.known_histogram, leaf.total, self._search, low, high, a, b, split_gains) for a, b in ranges]
        return FoundSplit(leaf, split_gains, _best(pool.run(kernels.find_best_constrained_split, calls)))

    def _bounds_in_units(self, leaf: Leaf) -> tuple[float, float]:
        if not self._constrained:
            return NO_BOUNDS
        ratio = self._units.hessian / self._units.gradient
        return leaf.low * ratio, leaf.high * ratio

    def best_with_enough(self, found: FoundSplit) -> Split | None:
        """Return the best split that leaves enough documents on each side, its gain no longer in units."""
        leaf, _, split = found
        if self._source.n_documents(leaf.number) < 2 * self._min_documents or split.split_gain == -np.inf:
            return None
        return self._in_full(split) if self._has_enough(leaf, split) else self.next_best(found)

    def next_best(self, found: FoundSplit) -> Split | None:
        """Return the best split with enough documents where the split that was found has too few.

        The documents of its feature are counted by bin, which may leave another split of this feature. Then the feature
        of the highest gain is looked at, and so on: only features that could win are counted.
        """
        leaf, split_gains, split = found
        limits = (self._search, self._min_documents, self._bounds_in_units(leaf))
        counted: dict[int, Split] = {}
        every: Int64Array | None = None
        while split.split_gain > -np.inf:
            feature = split.feature
            if len(counted) == FEW and (every := self._source.every_bin_count(leaf.number)) is not None:
                split_gains[~can_be_split(self._edges, every, self._min_documents)] = -np.inf
            counts = self._bin_counts(found, feature) if every is None else self._of_feature(every, feature)
            of_feature, best = kernels.count_feature(
                leaf.known_histogram, counts, feature, leaf.total, *limits, split_gains
            )
            counted[feature], split = Split(*of_feature), Split(*best)
            if split.feature in counted:
                split = counted[split.feature]
                break
            if split.split_gain > -np.inf and self._has_enough(leaf, split, every):
                break
        return self._in_full(split) if split.split_gain > -np.inf else None

    def _of_feature(self, every: Int64Array, feature: int) -> Int64Array:
        """Return the documents in each bin of a feature, of those in the bins of all features end to end."""
        first, last = self._edges.bin_offsets[feature : feature + 2].tolist()
        return every[first:last]

    def _bin_counts(self, found: FoundSplit, feature: int) -> Int64Array:
        """Return the documents of a leaf by bin of a feature."""
        (counts,) = self._source.bin_counts([(found.leaf.number, feature)])
        return counts

    def _in_full(self, split: Split) -> Split:
        """Return a split with its gain no longer in units."""
        return Split(self._units.split_gain(split.split_gain), *split[1:])

    def _has_enough(self, leaf: Leaf, split: Split, every: Int64Array | None = None) -> bool:
        """Return whether both sides hold `min_documents`; sums of hessians may show it without a count.

        every : int64[n_bins], the documents of the leaf in each bin of all features, where that is known
        """
        if self._min_documents <= 1 or self._params.surely_enough(split.left_total, leaf.total):
            return True
        if every is not None:
            counts = self._of_feature(every, split.feature)
            of_missing = counts[-1] if split.missing_left and self._edges.has_missing[split.feature] else 0
            n_left = int(counts[: split.bin + 1].sum() + of_missing)
            return min(n_left, int(counts.sum()) - n_left) >= self._min_documents
        return self._source.has_enough(leaf.number, split, self._min_documents)


def _best(splits: Sequence[SplitFields]) -> Split:
    """Return the split with the highest gain, the first of equal ones; one without gain when there are none."""
    return Split(*max(splits, key=itemgetter(0))) if splits else NO_SPLIT
