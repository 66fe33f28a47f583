"""Growth level by level, all leaves of a level split alike."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.grower.split_finder import NO_COUNTS, feature_ranges
from lmart.grower.tree import LOW_HALF, GrowingTree, GrownTree, Leaf, Split, Task, hand_on_histogram, part, run_by_size
from lmart.kernels import splitting
from lmart.threads import WorkerPool

Longs = npt.NDArray[np.int64]


def grow_oblivious(task: Task) -> GrownTree | None:
    """Split all leaves of a level by the same threshold of the same feature: the one with the highest sum of gains.

    A leaf stays as it is where a side would have fewer than min_docs documents or less than min_hessian. Levels are
    added until there might be more than `leaves` leaves, to `max_depth`, or until nothing gains. Source of the form:
    Kohavi 1994 (oblivious decision graphs); CatBoost, which splits every leaf. Ties: lowest feature, then lowest
    threshold, then missing right.
    """
    settings, source, edges = task.settings, task.source, task.edges
    assert settings.leaves is not None  # for_queries
    root = Leaf(0, 0, 0, task.room.take())
    assert root.histogram is not None
    root.total = source.histogram(0, root.histogram, task.pool)
    splitting.complete(root.histogram, root.total, edges.bin_offsets, source.common_codes, 0, edges.n_features)
    tree = GrowingTree(root)
    levels = settings.leaves.bit_length() - 1
    if settings.max_depth:
        levels = min(levels, settings.max_depth)
    level = _Level(task)
    for left_over in reversed(range(levels)):
        if not level.split(tree, last=left_over == 0):
            break
    return tree.finish(task)


class _Level:
    """Splits the leaves of a tree, one level at a time. Leaves with a histogram are those that may be split."""

    def __init__(self, task: Task) -> None:
        bins, taken = np.diff(task.edges.bin_offsets), task.taken_features
        self._left_out = None if taken is None else np.repeat(~taken, bins)
        self._task, self._source, self._edges, self._pool = task, task.source, task.edges, task.pool
        self._min_docs = task.settings.min_docs
        self._limits = task.units.limits(task.settings)
        self._numbers = itertools.count(1)

    def split(self, tree: GrowingTree, last: bool) -> bool:
        """Split the leaves that can be; return whether there was one. The last time needs no histograms."""
        room = self._task.room
        leaves = [leaf for leaf in tree.leaves if leaf.histogram is not None]
        best = self._choose(leaves)
        if best is None:
            return False
        calls = []
        for leaf in leaves:
            split = self._split_of(leaf, *best)
            if self._may(leaf, split):
                leaf.split = split
                calls.append((leaf, next(self._numbers), next(self._numbers), None if last else room.take()))
        sizes = [self._source.n_documents(leaf.number) for leaf, *_ in calls]
        run_by_size(self._part, calls, sizes, self._pool)
        for number, leaf in enumerate(tree.leaves.copy()):
            if leaf.sides is not None:
                room.give_back(leaf)
                tree.split(number)
                for side in leaf.sides:
                    if self._source.n_documents(side.number) < 2 * self._min_docs:
                        room.give_back(side)
        return True

    def _choose(self, leaves: list[Leaf]) -> tuple[int, int, bool] | None:
        """Return feature, code and missing left of the cut with the highest sum of gains over leaves.

        The sums hold no counts, so the features with the highest sums are counted until one is the best so.
        """
        edges = self._edges
        gains = np.zeros((2, edges.n_bins))
        for leaf in leaves:
            fixed = (*self._cuts_of(leaf), NO_COUNTS, 0)
            self._pool.run(splitting.add_gains, [(*fixed, a, b, gains) for a, b in feature_ranges(edges, self._pool)])
        if self._left_out is not None:
            gains[:, self._left_out] = 0.0
        counted = set()
        while gains.size and gains.max() > 0.0:
            at = int(gains.max(axis=0).argmax())
            feature = int(np.searchsorted(edges.bin_offsets, at, side="right")) - 1
            start, stop = edges.bin_offsets[feature : feature + 2].tolist()
            best = (feature, at - start, bool(gains[1, at] > gains[0, at]))
            if feature in counted or all(self._may(leaf, self._split_of(leaf, *best)) for leaf in leaves):
                return best
            gains[:, start:stop] = 0.0
            for leaf in leaves:
                counts = self._source.code_counts(leaf.number, feature)
                own = (*self._cuts_of(leaf), counts, self._min_docs, feature, feature + 1, gains)
                self._pool.run(splitting.add_gains, [own])
            counted.add(feature)
        return None

    def _cuts_of(self, leaf: Leaf) -> tuple[Any, ...]:
        edges = self._edges
        return leaf.histogram, leaf.total, edges.bin_offsets, edges.has_missing, edges.all_finite, *self._limits

    def _split_of(self, leaf: Leaf, feature: int, code: int, missing_left: bool) -> Split:
        edges, histogram = self._edges, leaf.histogram
        assert histogram is not None
        start, stop = edges.bin_offsets[feature : feature + 2].tolist()
        left = int(histogram[start : start + code + 1].sum())
        if missing_left and edges.has_missing[feature]:
            left += int(histogram[stop - 1])
        gain = splitting.gain_of(left, leaf.total, *self._limits)
        return Split(self._task.units.split_gain(gain), feature, code, missing_left, left)

    def _may(self, leaf: Leaf, split: Split) -> bool:
        least, left = self._limits[1], split.left_total & LOW_HALF
        if min(left, (leaf.total & LOW_HALF) - left) < least:
            return False
        number, side = leaf.number, (split.feature, split.code, split.missing_left)
        return self._source.has_enough(number, *side, self._min_docs)

    def _part(self, leaf: Leaf, left: int, right: int, spare: Longs | None, pool: WorkerPool) -> None:
        source, edges = self._source, self._edges
        part(source, leaf, left, right, pool)
        if spare is not None:
            large, small = hand_on_histogram(source, leaf, spare, pool)
            fixed = (large.histogram, spare, small.total, edges.bin_offsets, source.common_codes)
            pool.run(splitting.subtract, [(*fixed, a, b) for a, b in feature_ranges(edges, pool)])
