"""The best split of a leaf."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.bin_edges import BinEdges
from lmart.grower.tree import LOW_HALF, GrowParams, Leaf
from lmart.kernels import split_gain as kernels
from lmart.kernels.split_gain import Split
from lmart.threads import WorkerPool, chunks

SCANNED = 16_384  # least bins in one piece of work
NO_COUNTS = np.zeros(0, np.int64)


def feature_ranges(edges: BinEdges, pool: WorkerPool) -> list[tuple[int, int]]:
    """Return ranges of features, one for each worker, as long as each has enough bins to be a piece of work."""
    m = edges.n_features
    least = -(-m * SCANNED // max(1, edges.n_bins))
    return [(0, m)] if pool.threads == 1 else chunks(m, max(1, least, -(-m // pool.threads)))


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold."""

    def __init__(self, params: GrowParams) -> None:
        self._constrained = params.directions is not None
        self._left_out = None if params.allowed_features is None else ~params.allowed_features
        self._source, self._edges, self._units = params.source, params.edges, params.units
        self._min_documents = params.settings.min_docs
        self._search = params.search

    def find(self, leaf: Leaf, pool: WorkerPool) -> Split | None:
        """Return the best split of the root that leaves enough documents on each side, or None."""
        histogram, search = leaf.histogram, self._search
        assert histogram is not None
        split_gains = np.empty(self._edges.n_features)
        ranges = feature_ranges(self._edges, pool)
        if self._constrained:
            pool.run(kernels.complete_histogram, [(histogram, leaf.total, search, a, b) for a, b in ranges])
            self._find_constrained(leaf, split_gains, pool)
        else:
            pool.run(kernels.best_split_gains, [(histogram, leaf.total, search, a, b, split_gains) for a, b in ranges])
        return self._choose(leaf, split_gains)

    def find_both(self, larger: Leaf, smaller: Leaf, pool: WorkerPool) -> None:
        """Give two children their best splits, likewise.

        The histogram of `larger` is its parent's when this is called, and its own afterwards.
        """
        search = self._search
        assert larger.histogram is not None and smaller.histogram is not None
        split_gains = np.empty((2, self._edges.n_features))
        histograms, ranges = (larger.histogram, smaller.histogram), feature_ranges(self._edges, pool)
        if self._constrained:
            subtractions = [(*histograms, smaller.total, search, a, b) for a, b in ranges]
            pool.run(kernels.subtract_histogram, subtractions)
            self._find_constrained(larger, split_gains[0], pool)
            self._find_constrained(smaller, split_gains[1], pool)
        else:
            calls = [(*histograms, larger.total, smaller.total, search, a, b, split_gains) for a, b in ranges]
            pool.run(kernels.best_split_gains_of_children, calls)
        larger.split, smaller.split = self._choose(larger, split_gains[0]), self._choose(smaller, split_gains[1])

    def _find_constrained(self, leaf: Leaf, split_gains: Float64Array, pool: WorkerPool) -> None:
        """Write the gains of the best splits that the constraints allow."""
        low, high = self._bounds_in_units(leaf)
        ranges = feature_ranges(self._edges, pool)
        calls = [(leaf.histogram, leaf.total, self._search, low, high, a, b, split_gains) for a, b in ranges]
        pool.run(kernels.best_constrained_gains, calls)

    def _bounds_in_units(self, leaf: Leaf) -> tuple[float, float]:
        ratio = self._units.hessian / self._units.gradient
        return leaf.low * ratio, leaf.high * ratio

    def _best_split(self, leaf: Leaf, feature: int, counts: Int64Array, min_documents: int) -> Split:
        """Return the best split of a feature, its gain in units."""
        assert leaf.histogram is not None
        bounds = self._bounds_in_units(leaf)
        return kernels.best_split(leaf.histogram, counts, feature, leaf.total, self._search, min_documents, *bounds)

    def _choose(self, leaf: Leaf, split_gains: Float64Array) -> Split | None:
        """Return the best split by each feature's highest gain, which does not count documents yet.

        Features are tried from the highest gain down; only those that could win are counted.
        """
        if self._left_out is not None:
            split_gains[self._left_out] = -np.inf
        if not len(split_gains) or self._source.n_documents(leaf.number) < 2 * self._min_documents:
            return None
        counted: dict[int, Split] = {}
        while True:
            feature = int(split_gains.argmax())
            if split_gains[feature] == -np.inf:
                return None
            split = counted.get(feature) or self._best_split(leaf, feature, NO_COUNTS, 0)
            if feature in counted or self._has_enough(leaf, split):
                return split._replace(split_gain=self._units.split_gain(split.split_gain))
            counts = self._source.bin_counts(leaf.number, feature)
            counted[feature] = self._best_split(leaf, feature, counts, self._min_documents)
            split_gains[feature] = counted[feature].split_gain

    def _has_enough(self, leaf: Leaf, split: Split) -> bool:
        """Return whether both sides hold min_docs documents; sums of hessians may show it without a count."""
        needed = self._min_documents * self._units.largest_hessian
        left = split.left_total & LOW_HALF
        if self._min_documents <= 1 or 0 < needed <= min(left, (leaf.total & LOW_HALF) - left):
            return True
        return self._source.has_enough(leaf.number, split, self._min_documents)
