"""The best split of a leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array
from lmart.binning.edges import BinEdges
from lmart.kernels.trees import split_search as kernels
from lmart.kernels.trees.histogram import complete_histogram, subtract_histogram
from lmart.kernels.trees.split_gain import Split, SplitFields
from lmart.threads import WorkerPool, chunks
from lmart.training.grower.tree import GrowParams, Leaf

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
        """Return the best split of the root, documents not counted."""
        histogram, search = leaf.known_histogram, self._search
        ranges = feature_ranges(self._edges, pool)
        if self._constrained:
            pool.run(complete_histogram, [(histogram, leaf.total, *self._bin_arrays, a, b) for a, b in ranges])
            return self._find_constrained(leaf, pool)
        split_gains = np.empty(self._edges.n_features)
        calls = [(histogram, leaf.total, search, a, b, split_gains) for a, b in ranges]
        return FoundSplit(leaf, split_gains, _best(pool.run(kernels.find_best_split, calls)))

    def find_both(self, larger: Leaf, smaller: Leaf, pool: WorkerPool) -> list[FoundSplit]:
        """Return the best splits of two children, documents not counted; of the smaller only if it may be split.

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

    def _find_constrained(self, leaf: Leaf, pool: WorkerPool) -> FoundSplit:
        """Return the best split of a leaf with a complete histogram that the constraints allow."""
        low, high = self.bounds_in_units(leaf)
        split_gains = np.empty(self._edges.n_features)
        ranges = feature_ranges(self._edges, pool)
        calls = [(leaf.known_histogram, leaf.total, self._search, low, high, a, b, split_gains) for a, b in ranges]
        return FoundSplit(leaf, split_gains, _best(pool.run(kernels.find_best_constrained_split, calls)))

    def bounds_in_units(self, leaf: Leaf) -> tuple[float, float]:
        """Return the bounds of a leaf's value as kernels take them."""
        if not self._constrained:
            return NO_BOUNDS
        ratio = self._units.hessian / self._units.gradient
        return leaf.low * ratio, leaf.high * ratio

    def in_full(self, split: SplitFields) -> Split | None:
        """Return a split with its gain no longer in units, None where it has none."""
        return Split(self._units.split_gain(split[0]), *split[1:]) if split[0] > -math.inf else None


def _best(splits: Sequence[SplitFields]) -> Split:
    """Return the split with the highest gain, the first of equal ones; one without gain when there are none."""
    return Split(*max(splits, key=itemgetter(0))) if splits else NO_SPLIT
