"""The best split of a leaf."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.grower.tree import LOW_HALF, Leaf, Split, Units, newton_step
from lmart.kernels import bounded, splitting
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]

SCANNED = 16_384  # least bins in one piece of work
NO_COUNTS = np.zeros(0, np.int64)


def feature_ranges(edges: BinEdges, pool: WorkerPool) -> list[tuple[int, int]]:
    """Return ranges of features whose bins are worth a piece of work each, one for each worker."""
    m = edges.n_features
    least = -(-m * SCANNED // max(1, edges.n_bins))
    return [(0, m)] if pool.threads == 1 else chunks(m, max(1, least, -(-m // pool.threads)))


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold."""

    def __init__(
        self,
        source: LeafSource,
        edges: BinEdges,
        units: Units,
        settings: TrainSettings,
        signs: Signs | None,
        taken_features: Flags | None,
    ) -> None:
        self._signs = signs
        self._left_out = None if taken_features is None else ~taken_features
        self._source = source
        self._units = units
        self._min_docs = settings.min_docs
        self._limits = (settings.l2 / units.hessian, settings.min_hessian / units.hessian)
        self._features = (edges.bin_offsets, source.common_codes, edges.has_missing, edges.all_finite)
        self._bins = edges.bin_offsets.tolist()
        self._kinds = list(zip(edges.has_missing.tolist(), edges.all_finite.tolist(), strict=True))
        self._edges = edges

    def find(self, leaf: Leaf, pool: WorkerPool) -> Split | None:
        """Return the best split of the root that leaves enough documents on each side, or None."""
        assert leaf.histogram is not None
        gains = np.empty(self._edges.n_features)
        fixed = (leaf.histogram, leaf.total, *self._features, *self._limits)
        pool.run(splitting.best_gains, [(*fixed, a, b, gains) for a, b in feature_ranges(self._edges, pool)])
        self._bound(leaf, gains, pool)
        return self._choose(leaf, gains)

    def find_both(self, large: Leaf, small: Leaf, pool: WorkerPool) -> None:
        """Give two children their best splits, likewise; the histogram of `large` is its parent's before, and its own
        after."""
        assert large.histogram is not None and small.histogram is not None
        gains = np.empty((2, self._edges.n_features))
        fixed = (large.histogram, small.histogram, large.total, small.total, *self._features, *self._limits)
        pool.run(
            splitting.best_gains_of_children, [(*fixed, a, b, gains) for a, b in feature_ranges(self._edges, pool)]
        )
        self._bound(large, gains[0], pool)
        self._bound(small, gains[1], pool)
        large.split, small.split = self._choose(large, gains[0]), self._choose(small, gains[1])

    def _bound(self, leaf: Leaf, gains: Floats, pool: WorkerPool) -> None:
        """Where there are constraints, write the gains that they leave."""
        if self._signs is None or not len(gains):
            return
        offsets, _, has_missing, all_finite = self._features
        fixed = (leaf.histogram, NO_COUNTS, leaf.total, offsets, has_missing, all_finite, *self._limits)
        bounds = (self._signs, *self._bounds_in_units(leaf))
        pool.run(
            bounded.best_bounded_gains, [(*fixed, *bounds, a, b, gains) for a, b in feature_ranges(self._edges, pool)]
        )

    def _bounds_in_units(self, leaf: Leaf) -> tuple[float, float]:
        ratio = self._units.hessian / self._units.gradient
        return leaf.low * ratio, leaf.high * ratio

    def _best_split(self, leaf: Leaf, feature: int, counts: Longs, min_docs: int) -> tuple[float, int, bool, int]:
        """Return what `splitting.best_split` returns, under the constraints if there are any."""
        assert leaf.histogram is not None
        start, stop = self._bins[feature : feature + 2]
        own = (leaf.histogram, counts, start, stop - start, *self._kinds[feature], leaf.total, *self._limits, min_docs)
        if self._signs is None:
            return splitting.best_split(*own)
        return bounded.best_bounded_split(*own, self._signs[feature], *self._bounds_in_units(leaf))

    def _choose(self, leaf: Leaf, gains: Floats) -> Split | None:
        """Return the best split by each feature's highest gain.

        The sums hold no counts. So features are tried from the highest gain down; only those that could win are
        counted.
        """
        units = self._units
        if self._left_out is not None:
            gains[self._left_out] = -np.inf
        if not len(gains) or self._source.n_documents(leaf.number) < 2 * self._min_docs:
            return None
        counted: dict[int, tuple[float, int, bool, int]] = {}
        while True:
            f = int(gains.argmax())
            if gains[f] == -np.inf:
                return None
            found = counted.get(f) or self._best_split(leaf, f, NO_COUNTS, 0)
            gain, code, missing_left, left_total = found
            if f in counted or self._has_enough(leaf, f, code, missing_left, left_total):
                worth = float(gain) * units.gradient * (units.gradient / units.hessian)
                return Split(worth, f, int(code), bool(missing_left), int(left_total))
            counts = self._source.code_counts(leaf.number, f)
            counted[f] = self._best_split(leaf, f, counts, self._min_docs)
            gains[f] = counted[f][0]

    def _has_enough(self, leaf: Leaf, feature: int, code: int, missing_left: bool, left_total: int) -> bool:
        """Whether both sides hold min_docs documents; the hessians may show it: none has more than the largest."""
        needed = self._min_docs * self._units.largest_hessian
        left = left_total & LOW_HALF
        if self._min_docs <= 1 or 0 < needed <= min(left, (leaf.total & LOW_HALF) - left):
            return True
        return self._source.has_enough(leaf.number, feature, code, missing_left, self._min_docs)


class Bounds:
    """Hands the bounds of leaf values down: the sides of a split on a constrained feature meet halfway.

    So no leaf on the one side ever gets a value beyond that of a leaf on the other (LightGBM's basic method).
    """

    def __init__(self, signs: Signs, units: Units, settings: TrainSettings) -> None:
        self._signs = signs.tolist()
        self._units, self._settings = units, settings

    def hand_down(self, leaf: Leaf) -> None:
        """Give the sides of a leaf their bounds."""
        assert leaf.split is not None and leaf.sides is not None
        for side in leaf.sides:
            side.low, side.high = leaf.low, leaf.high
        sign = self._signs[leaf.split.feature]
        if sign:
            lower, upper = leaf.sides[::sign]
            values = [newton_step(side, self._units, self._settings) for side in (lower, upper)]
            lower.high = upper.low = values[0] + (values[1] - values[0]) / 2
