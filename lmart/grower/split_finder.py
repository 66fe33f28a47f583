"""The best split of a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.grower.tree import LOW_HALF, Leaf, Split, Task
from lmart.kernels import bounded, splitting
from lmart.threads import WorkerPool, chunks

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SCANNED = 16_384  # least bins in one piece of work
NO_COUNTS = np.zeros(0, np.int64)


def feature_ranges(edges: BinEdges, pool: WorkerPool) -> list[tuple[int, int]]:
    """Return ranges of features whose bins are worth a piece of work each, one for each worker."""
    m = edges.n_features
    least = -(-m * SCANNED // max(1, edges.n_bins))
    return [(0, m)] if pool.threads == 1 else chunks(m, max(1, least, -(-m // pool.threads)))


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold."""

    def __init__(self, task: Task) -> None:
        edges, source = task.edges, task.source
        self._signs = task.signs
        self._left_out = None if task.taken_features is None else ~task.taken_features
        self._source, self._edges, self._units = source, edges, task.units
        self._min_docs = task.settings.min_docs
        self._limits = task.units.limits(task.settings)
        self._places = (edges.bin_offsets, source.common_codes)
        self._kinds = (edges.has_missing, edges.all_finite)
        self._bins = edges.bin_offsets.tolist()
        self._kind_of = list(zip(edges.has_missing.tolist(), edges.all_finite.tolist(), strict=True))

    def find(self, leaf: Leaf, pool: WorkerPool) -> Split | None:
        """Return the best split of the root that leaves enough documents on each side, or None."""
        assert leaf.histogram is not None
        gains = np.empty(self._edges.n_features)
        fixed = (leaf.histogram, leaf.total, *self._places)
        if self._signs is None:
            self._run(splitting.best_gains, (*fixed, *self._kinds, *self._limits), pool, gains)
        else:
            self._run(splitting.complete, fixed, pool)
            self._find_bounded(leaf, gains, pool)
        return self._choose(leaf, gains)

    def find_both(self, large: Leaf, small: Leaf, pool: WorkerPool) -> None:
        """Give two children their best splits, likewise; the histogram of `large` is its parent's before, and its own
        after."""
        assert large.histogram is not None and small.histogram is not None
        gains = np.empty((2, self._edges.n_features))
        if self._signs is None:
            fixed = (large.histogram, small.histogram, large.total, small.total, *self._places)
            self._run(splitting.best_gains_of_children, (*fixed, *self._kinds, *self._limits), pool, gains)
        else:
            self._run(splitting.subtract, (large.histogram, small.histogram, small.total, *self._places), pool)
            self._find_bounded(large, gains[0], pool)
            self._find_bounded(small, gains[1], pool)
        large.split, small.split = self._choose(large, gains[0]), self._choose(small, gains[1])

    def _find_bounded(self, leaf: Leaf, gains: Floats, pool: WorkerPool) -> None:
        """Write the gains that the constraints leave."""
        fixed = (leaf.histogram, NO_COUNTS, leaf.total, self._edges.bin_offsets, *self._kinds, *self._limits)
        bounds = (self._signs, *self._bounds_in_units(leaf))
        self._run(bounded.best_bounded_gains, (*fixed, *bounds), pool, gains)

    def _run(self, function: Callable[..., None], fixed: tuple[Any, ...], pool: WorkerPool, *out: Floats) -> None:
        """Call function(*fixed, first feature, last feature, *out) for ranges of features."""
        pool.run(function, [(*fixed, a, b, *out) for a, b in feature_ranges(self._edges, pool)])

    def _bounds_in_units(self, leaf: Leaf) -> tuple[float, float]:
        ratio = self._units.hessian / self._units.gradient
        return leaf.low * ratio, leaf.high * ratio

    def _best_split(self, leaf: Leaf, feature: int, counts: Longs, min_docs: int) -> tuple[float, int, bool, int]:
        """Return what `splitting.best_split` returns, under the constraints if there are any."""
        assert leaf.histogram is not None
        start, stop = self._bins[feature : feature + 2]
        own = (
            leaf.histogram,
            counts,
            start,
            stop - start,
            *self._kind_of[feature],
            leaf.total,
            *self._limits,
            min_docs,
        )
        if self._signs is None:
            return splitting.best_split(*own)
        return bounded.best_bounded_split(*own, self._signs[feature], *self._bounds_in_units(leaf))

    def _choose(self, leaf: Leaf, gains: Floats) -> Split | None:
        """Return the best split by each feature's highest gain.

        The sums hold no counts. So features are tried from the highest gain down; only those that could win are
        counted.
        """
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
                return Split(self._units.split_gain(float(gain)), f, int(code), bool(missing_left), int(left_total))
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
