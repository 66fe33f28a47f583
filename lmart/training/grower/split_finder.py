"""The best split of a leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.binning.edges import BinEdges
from lmart.kernels import split_search as kernels
from lmart.kernels.histogram import complete_histogram, subtract_histogram
from lmart.kernels.split_gain import Split, SplitFields
from lmart.threads import WorkerPool, chunks
from lmart.training.grower.growing_tree import GrowParams, Leaf

COUNTED = 16  # features whose documents are counted in one message
SCANNED = 16_384  # least bins in one piece of work
NO_BOUNDS = (-math.inf, math.inf)
NO_SPLIT = Split(-np.inf, -1, -1, False, 0)


def feature_ranges(edges: BinEdges, pool: WorkerPool, n_leaves: int = 1) -> list[tuple[int, int]]:
    """Return ranges of features, one for each worker, as long as each has enough bins to be a piece of work.

    edges    : the bins of the features
    pool     : the workers
    n_leaves : leaves in whose histograms a piece of work goes through its features; for several, ranges are shorter
    """
    m = edges.n_features
    if pool.threads == 1:
        return [(0, m)]
    least = -(-m * SCANNED // max(1, edges.n_bins * n_leaves))
    return chunks(m, max(1, least, -(-m // (pool.threads * min(n_leaves, 4)))))


class FoundSplit(NamedTuple):
    """The best split of a leaf before documents are counted.

    leaf        : the leaf
    split_gains : float64[m], the highest gain of each feature, in units
    split       : the split with the highest of them
    """

    leaf: Leaf
    split_gains: Float64Array
    split: Split


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold.

    params : of the tree
    """

    def __init__(self, params: GrowParams) -> None:
        self._params, self._constrained = params, params.directions is not None
        self._source, self._edges, self._units = params.source, params.edges, params.units
        self._min_documents = params.settings.min_documents
        self._search = params.search
        self._bin_arrays = (params.edges.bin_offsets, params.source.most_frequent_bins)
        self._assumed: dict[int, FoundSplit] = {}

    def find(self, leaf: Leaf, pool: WorkerPool) -> FoundSplit:
        """Return the best split of the root, for `choose`.

        leaf : the root, with its histogram
        pool : the workers
        """
        histogram, search = leaf.known_histogram, self._search
        ranges = feature_ranges(self._edges, pool)
        if self._constrained:
            pool.run(complete_histogram, [(histogram, leaf.total, *self._bin_arrays, a, b) for a, b in ranges])
            return self._find_constrained(leaf, pool)
        split_gains = np.empty(self._edges.n_features)
        calls = [(histogram, leaf.total, search, a, b, split_gains) for a, b in ranges]
        return FoundSplit(leaf, split_gains, _best(pool.run(kernels.find_best_split, calls)))

    def find_both(self, larger: Leaf, smaller: Leaf, pool: WorkerPool) -> list[FoundSplit]:
        """Return the best splits of two children, for `choose`.

        larger, smaller : the children, each with a histogram
        pool            : the workers

        The histogram of `larger` is its parent's when this is called, and its own afterwards.
        """
        histograms, ranges = (larger.known_histogram, smaller.known_histogram), feature_ranges(self._edges, pool)
        if self._constrained:
            subtractions = [(*histograms, smaller.total, *self._bin_arrays, a, b) for a, b in ranges]
            pool.run(subtract_histogram, subtractions)
            return [self._find_constrained(larger, pool), self._find_constrained(smaller, pool)]
        split_gains = np.empty((2, self._edges.n_features))
        calls = [(*histograms, larger.total, smaller.total, self._search, a, b, split_gains) for a, b in ranges]
        splits = pool.run(kernels.find_best_splits_of_children, calls)
        return [
            FoundSplit(larger, split_gains[0], _best([of_range[0] for of_range in splits])),
            FoundSplit(smaller, split_gains[1], _best([of_range[1] for of_range in splits])),
        ]

    def choose(self, found: Sequence[FoundSplit]) -> None:
        """Give leaves their best splits that leave enough documents on each side, or None.

        found : of each leaf

        Where the documents are far away, a split is assumed to leave enough of them until `confirm` is called.
        """
        for one in found:
            if self._source.is_far and not self._is_known(one):
                self._assumed[one.leaf.number] = one
                one.leaf.split = self._in_full(one.split)
            else:
                one.leaf.split = self._choose(one)

    def confirm(self, leaf: Leaf, n_left: int, n_right: int) -> bool:
        """Return whether the split of a leaf leaves enough documents on each side; if not, give it its next best split.

        leaf            : with a split that is assumed
        n_left, n_right : documents on each side
        """
        found = self._assumed.pop(leaf.number)
        if min(n_left, n_right) >= self._min_documents:
            return True
        leaf.split = self._choose(found, enough=False)
        return False

    def is_assumed(self, leaf: Leaf) -> bool:
        """Return whether the split of a leaf was not confirmed yet."""
        return leaf.number in self._assumed

    def _is_known(self, found: FoundSplit) -> bool:
        """Return whether no document has to be counted to know whether a split leaves enough of them."""
        leaf, split = found.leaf, found.split
        few = self._source.n_documents(leaf.number) < 2 * self._min_documents
        sure = self._min_documents <= 1 or self._params.surely_enough(split.left_total, leaf.total)
        return few or sure or split.split_gain == -np.inf

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

    def _choose(self, found: FoundSplit, enough: bool | None = None) -> Split | None:
        """Return the best split that leaves enough documents on each side, its gain no longer in units.

        found  : of the leaf to split
        enough : whether the split that was found does; None: it is not known

        Features are tried from the highest gain down; only those that could win are counted.
        """
        leaf, split_gains, split = found
        if self._source.n_documents(leaf.number) < 2 * self._min_documents:
            return None
        counted: dict[int, Split] = {}
        counts_of: dict[int, Int64Array] = {}
        while split.split_gain > -np.inf:
            feature = split.feature
            if feature in counted:
                return self._in_full(split)
            if feature not in counts_of:
                if self._has_enough(leaf, split) if enough is None else enough:
                    return self._in_full(split)
                counts_of |= self._counts(leaf, split_gains, feature)
            counts = counts_of[feature]
            limits = (self._search, self._min_documents, self._bounds_in_units(leaf))
            of_feature, best = kernels.count_feature(
                leaf.known_histogram, counts, feature, leaf.total, *limits, split_gains
            )
            counted[feature], split, enough = Split(*of_feature), Split(*best), None
            split = counted.get(split.feature, split)
        return None

    def _counts(self, leaf: Leaf, split_gains: Float64Array, feature: int) -> dict[int, Int64Array]:
        """Return the documents of a leaf by bin of a feature; where messages cost, of those likely next too."""
        features = [feature]
        if self._source.is_far:
            likely = np.argsort(-split_gains, kind="stable")[:COUNTED]
            features += [one for one in likely.tolist() if one != feature and split_gains[one] > -np.inf]
        return dict(zip(features, self._source.bin_counts([(leaf.number, one) for one in features]), strict=True))

    def _in_full(self, split: Split) -> Split:
        """Return a split with its gain no longer in units."""
        return Split(self._units.split_gain(split.split_gain), *split[1:])

    def _has_enough(self, leaf: Leaf, split: Split) -> bool:
        """Return whether both sides hold `min_documents`; sums of hessians may show it without a count."""
        if self._min_documents <= 1 or self._params.surely_enough(split.left_total, leaf.total):
            return True
        return self._source.has_enough(leaf.number, split, self._min_documents)


def _best(splits: Sequence[SplitFields]) -> Split:
    """Return the split with the highest gain, the first of equal ones; one without gain when there are none."""
    return Split(*max(splits, key=itemgetter(0))) if splits else NO_SPLIT
