"""grow_tree: best-first growth of one regression tree on packed gradients."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.ensemble import Tree
from lmart.kernels import splitting
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LOW_HALF = 0xFFFFFFFF
SCANNED = 16_384  # least bins in one piece of work
NO_COUNTS = np.zeros(0, np.int64)


class Units(NamedTuple):
    """What one unit of each half of a packed sum is worth, and the largest hessian of a document in units."""

    gradient: float
    hessian: float
    largest_hessian: int


class Split(NamedTuple):
    """The best split of a leaf: codes up to `code` of a feature go left, missing values where missing_left says.

    left_total : packed sum of the left side
    """

    gain: float
    feature: int
    code: int
    missing_left: bool
    left_total: int


@dataclass(frozen=True)
class GrownTree:
    """A tree, and in `split_codes` its thresholds as bin codes: a document goes left when its code <=
    split_codes[node].
    """

    tree: Tree
    split_features: npt.NDArray[np.int32]
    split_codes: npt.NDArray[np.int32]


@dataclass
class _Leaf:
    """A leaf that may be split further."""

    total: int
    histogram: Longs | None
    depth: int
    parent: int  # the node above, -1 over the root
    is_left: bool


class Histograms:
    """Room for histograms, kept from leaf to leaf and from tree to tree: fresh memory costs more than adding to it."""

    def __init__(self, n_bins: int) -> None:
        self._n_bins = n_bins
        self._free: list[Longs] = []

    def take(self) -> Longs:
        """Return int64[n_bins], of any content."""
        return self._free.pop() if self._free else np.empty(self._n_bins, np.int64)

    def give_back(self, leaf: _Leaf) -> None:
        """Take a leaf's histogram, if it has one, to be used again."""
        if leaf.histogram is not None:
            self._free.append(leaf.histogram)
            leaf.histogram = None


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold."""

    def __init__(
        self, source: LeafSource, edges: BinEdges, units: Units, settings: TrainSettings, pool: WorkerPool
    ) -> None:
        self._source = source
        self._units = units
        self._min_docs = settings.min_docs
        self._limits = (settings.l2 / units.hessian, settings.min_hessian / units.hessian)
        self._features = (edges.bin_offsets, source.common_codes, edges.has_missing, edges.all_finite)
        self._bins = edges.bin_offsets.tolist()
        self._kinds = list(zip(edges.has_missing.tolist(), edges.all_finite.tolist(), strict=True))
        self._pool = pool
        self._gains = np.empty((2, edges.n_features))
        m, least = edges.n_features, -(-edges.n_features * SCANNED // max(1, edges.n_bins))
        self._ranges = [(0, m)] if pool.threads == 1 else chunks(m, max(1, least, -(-m // pool.threads)))

    def find(self, number: int, leaf: _Leaf) -> Split | None:
        """Return the best split of the root that leaves enough documents on each side, or None."""
        assert leaf.histogram is not None
        fixed = (leaf.histogram, leaf.total, *self._features, *self._limits)
        self._pool.run(splitting.best_gains, [(*fixed, a, b, self._gains[0]) for a, b in self._ranges])
        return self._choose(number, leaf, self._gains[0])

    def find_both(self, larger: int, large: _Leaf, smaller: int, small: _Leaf) -> tuple[Split | None, Split | None]:
        """Return the best splits of two children, likewise; the histogram of `large` is its parent's before, and its
        own after."""
        assert large.histogram is not None and small.histogram is not None
        fixed = (large.histogram, small.histogram, large.total, small.total, *self._features, *self._limits)
        self._pool.run(splitting.best_gains_of_children, [(*fixed, a, b, self._gains) for a, b in self._ranges])
        return self._choose(larger, large, self._gains[0]), self._choose(smaller, small, self._gains[1])

    def _choose(self, number: int, leaf: _Leaf, gains: Floats) -> Split | None:
        """Return the best split by each feature's highest gain.

        The sums hold no counts. So features are tried from the highest gain down; only those that could win are
        counted.
        """
        units, histogram = self._units, leaf.histogram
        assert histogram is not None
        if not len(gains) or self._source.n_documents(number) < 2 * self._min_docs:
            return None
        counted: dict[int, tuple[float, int, bool, int]] = {}
        while True:
            f = int(gains.argmax())
            if gains[f] == -np.inf:
                return None
            start, stop = self._bins[f : f + 2]
            own = (start, stop - start, *self._kinds[f], leaf.total, *self._limits)
            found = counted.get(f) or splitting.best_split(histogram, NO_COUNTS, *own, 0)
            gain, code, missing_left, left_total = found
            if f in counted or self._has_enough(number, leaf.total, f, code, missing_left, left_total):
                worth = float(gain) * units.gradient * (units.gradient / units.hessian)
                return Split(worth, f, int(code), bool(missing_left), int(left_total))
            counts = self._source.code_counts(number, f)
            counted[f] = splitting.best_split(histogram, counts, *own, self._min_docs)
            gains[f] = counted[f][0]

    def _has_enough(
        self, number: int, total: int, feature: int, code: int, missing_left: bool, left_total: int
    ) -> bool:
        """Whether both sides hold min_docs documents; the hessians may show it: none has more than the largest."""
        needed = self._min_docs * self._units.largest_hessian
        left = left_total & LOW_HALF
        if self._min_docs <= 1 or 0 < needed <= min(left, (total & LOW_HALF) - left):
            return True
        return self._source.has_enough(number, feature, code, missing_left, self._min_docs)


def grow_tree(
    source: LeafSource,
    edges: BinEdges,
    units: Units,
    settings: TrainSettings,
    pool: WorkerPool,
    histograms: Histograms | None = None,
) -> GrownTree | None:
    """Split the leaf with the highest gain until there are `leaves`, or no split gains; None without a first split.

    histograms : room to use, empty or from the tree before
    Leaf values are -G / (H + l2) times the learning rate, one Newton step (Burges 2010, section 7).
    Equal gains: the older leaf first.
    """
    finder = SplitFinder(source, edges, units, settings, pool)
    room = histograms or Histograms(edges.n_bins)
    leaves = [_Leaf(0, None, 0, -1, False)]
    waiting: list[tuple[float, int, Split]] = []
    nodes: list[tuple[Split, bool]] = []
    children: list[list[int]] = []

    def keep(number: int, split: Split | None) -> None:
        if split is None:
            room.give_back(leaves[number])
        else:
            heapq.heappush(waiting, (-split.gain, number, split))

    def may_split(number: int) -> bool:
        deep = settings.max_depth and leaves[number].depth >= settings.max_depth
        return not deep and source.n_documents(number) >= 2 * settings.min_docs

    if may_split(0):
        root = leaves[0]
        root.histogram = room.take()
        root.total = source.histogram(0, root.histogram)
        keep(0, finder.find(0, root))
    while waiting:
        _, number, split = heapq.heappop(waiting)
        leaf, new = leaves[number], len(leaves)
        node = len(nodes)
        if leaf.parent >= 0:
            children[leaf.parent][0 if leaf.is_left else 1] = node
        nodes.append((split, _missing_side(edges, split)))
        children.append([~number, ~new])
        source.split(number, new, split.feature, split.code, split.missing_left)
        leaves[number] = _Leaf(split.left_total, None, leaf.depth + 1, node, True)
        leaves.append(_Leaf(leaf.total - split.left_total, None, leaf.depth + 1, node, False))
        if len(leaves) == settings.leaves:
            room.give_back(leaf)
            break
        if not (may_split(number) or may_split(new)):
            room.give_back(leaf)
            continue
        smaller, larger = sorted((number, new), key=source.n_documents)
        small, large = leaves[smaller], leaves[larger]
        large.histogram, small.histogram = leaf.histogram, room.take()
        source.histogram(smaller, small.histogram)
        for one, found in zip((larger, smaller), finder.find_both(larger, large, smaller, small), strict=True):
            keep(one, found)
    for leaf in leaves:
        room.give_back(leaf)
    return _assemble(source, edges, units, settings, leaves, nodes, children) if nodes else None


def _missing_side(edges: BinEdges, split: Split) -> bool:
    """Where a missing value goes: as found if training saw one, else with zero."""
    if edges.has_missing[split.feature]:
        return split.missing_left
    return bool(edges.zero_codes[split.feature] <= split.code)


def _assemble(
    source: LeafSource,
    edges: BinEdges,
    units: Units,
    settings: TrainSettings,
    leaves: list[_Leaf],
    nodes: list[tuple[Split, bool]],
    children: list[list[int]],
) -> GrownTree:
    splits = [split for split, _ in nodes]
    both = np.array(children, np.int32)
    tree = Tree(
        split_columns=edges.columns[[split.feature for split in splits]],
        thresholds=np.array([edges.threshold(split.feature, split.code) for split in splits]),
        missing_left=np.array([side for _, side in nodes], np.bool_),
        left=both[:, 0].copy(),
        right=both[:, 1].copy(),
        leaf_values=np.array([leaf_value(leaf.total, units, settings) for leaf in leaves]),
        split_gains=np.array([split.gain for split in splits]),
        leaf_documents=np.array([source.n_documents(number) for number in range(len(leaves))], np.int64),
    )
    features = np.array([split.feature for split in splits], np.int32)
    return GrownTree(tree, features, np.array([split.code for split in splits], np.int32))


def leaf_value(total: int, units: Units, settings: TrainSettings) -> float:
    """Return -learning_rate * G / (H + l2) of a packed sum; 0 where there is no curvature."""
    gradient, hessian = (total >> 32) * units.gradient, (total & LOW_HALF) * units.hessian
    divisor = hessian + settings.l2
    return -settings.learning_rate * (gradient / divisor) + 0.0 if divisor > 0 else 0.0
