"""grow_tree: best-first growth of one regression tree on packed gradients."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.ensemble import Tree
from lmart.kernels import bounded, splitting
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]

LOW_HALF = 0xFFFFFFFF
SCANNED = 16_384  # least bins in one piece of work
SHARED = 65_536  # documents from which on all workers help with one leaf; smaller leaves are expanded side by side
AHEAD = 2  # leaves expanded at a time for each worker, where there is more than one
NO_COUNTS = np.zeros(0, np.int64)
ONE_THREAD = WorkerPool(1)


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
    leaves: list[int]  # what the LeafSource calls them, in the order of the tree's leaf values


@dataclass(eq=False)
class _Leaf:
    """A leaf of the tree, or one that may become one.

    number : what the LeafSource calls it
    split  : its best split, once its sums are known; sides : left and right, once it is parted
    low, high : bounds of its value, before the learning rate
    """

    number: int
    total: int
    depth: int
    histogram: Longs | None = None
    split: Split | None = None
    sides: tuple[_Leaf, _Leaf] | None = None
    low: float = -math.inf
    high: float = math.inf


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
        self, source: LeafSource, edges: BinEdges, units: Units, settings: TrainSettings, signs: Signs | None
    ) -> None:
        self._signs = signs
        self._source = source
        self._units = units
        self._min_docs = settings.min_docs
        self._limits = (settings.l2 / units.hessian, settings.min_hessian / units.hessian)
        self._features = (edges.bin_offsets, source.common_codes, edges.has_missing, edges.all_finite)
        self._bins = edges.bin_offsets.tolist()
        self._kinds = list(zip(edges.has_missing.tolist(), edges.all_finite.tolist(), strict=True))
        self._n_features = edges.n_features
        self._least = -(-edges.n_features * SCANNED // max(1, edges.n_bins))

    def _ranges(self, pool: WorkerPool) -> list[tuple[int, int]]:
        m = self._n_features
        return [(0, m)] if pool.threads == 1 else chunks(m, max(1, self._least, -(-m // pool.threads)))

    def find(self, leaf: _Leaf, pool: WorkerPool) -> Split | None:
        """Return the best split of the root that leaves enough documents on each side, or None."""
        assert leaf.histogram is not None
        gains = np.empty(self._n_features)
        fixed = (leaf.histogram, leaf.total, *self._features, *self._limits)
        pool.run(splitting.best_gains, [(*fixed, a, b, gains) for a, b in self._ranges(pool)])
        self._bound(leaf, gains, pool)
        return self._choose(leaf, gains)

    def find_both(self, large: _Leaf, small: _Leaf, pool: WorkerPool) -> None:
        """Give two children their best splits, likewise; the histogram of `large` is its parent's before, and its own
        after."""
        assert large.histogram is not None and small.histogram is not None
        gains = np.empty((2, self._n_features))
        fixed = (large.histogram, small.histogram, large.total, small.total, *self._features, *self._limits)
        pool.run(splitting.best_gains_of_children, [(*fixed, a, b, gains) for a, b in self._ranges(pool)])
        self._bound(large, gains[0], pool)
        self._bound(small, gains[1], pool)
        large.split, small.split = self._choose(large, gains[0]), self._choose(small, gains[1])

    def _bound(self, leaf: _Leaf, gains: Floats, pool: WorkerPool) -> None:
        """Where there are constraints, write the gains that they leave."""
        if self._signs is None or not len(gains):
            return
        offsets, _, has_missing, all_finite = self._features
        fixed = (leaf.histogram, NO_COUNTS, leaf.total, offsets, has_missing, all_finite, *self._limits)
        bounds = (self._signs, *self._bounds_in_units(leaf))
        pool.run(bounded.best_bounded_gains, [(*fixed, *bounds, a, b, gains) for a, b in self._ranges(pool)])

    def _bounds_in_units(self, leaf: _Leaf) -> tuple[float, float]:
        ratio = self._units.hessian / self._units.gradient
        return leaf.low * ratio, leaf.high * ratio

    def _best_split(self, leaf: _Leaf, feature: int, counts: Longs, min_docs: int) -> tuple[float, int, bool, int]:
        """Return what `splitting.best_split` returns, under the constraints if there are any."""
        assert leaf.histogram is not None
        start, stop = self._bins[feature : feature + 2]
        own = (leaf.histogram, counts, start, stop - start, *self._kinds[feature], leaf.total, *self._limits, min_docs)
        if self._signs is None:
            return splitting.best_split(*own)
        return bounded.best_bounded_split(*own, self._signs[feature], *self._bounds_in_units(leaf))

    def _choose(self, leaf: _Leaf, gains: Floats) -> Split | None:
        """Return the best split by each feature's highest gain.

        The sums hold no counts. So features are tried from the highest gain down; only those that could win are
        counted.
        """
        units = self._units
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

    def _has_enough(self, leaf: _Leaf, feature: int, code: int, missing_left: bool, left_total: int) -> bool:
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

    def hand_down(self, leaf: _Leaf) -> None:
        """Give the sides of a leaf their bounds."""
        assert leaf.split is not None and leaf.sides is not None
        for side in leaf.sides:
            side.low, side.high = leaf.low, leaf.high
        sign = self._signs[leaf.split.feature]
        if sign:
            lower, upper = leaf.sides[::sign]
            values = [newton_step(side, self._units, self._settings) for side in (lower, upper)]
            lower.high = upper.low = values[0] + (values[1] - values[0]) / 2


class Expander:
    """Parts leaves and finds the best splits of both sides, on several leaves at a time.

    What a leaf becomes does not depend on when that happens, so leaves that will be wanted soon are taken along.
    """

    def __init__(
        self,
        source: LeafSource,
        finder: SplitFinder,
        room: Histograms,
        bounds: Bounds | None,
        settings: TrainSettings,
        pool: WorkerPool,
    ) -> None:
        self._source, self._finder, self._room, self._pool = source, finder, room, pool
        self._bounds = bounds
        self._max_depth, self._min_docs = settings.max_depth, settings.min_docs
        self._numbers = itertools.count(1)

    def find_root(self) -> _Leaf:
        """Return the leaf of all documents, with its best split."""
        root = _Leaf(0, 0, 0)
        if self._may_split(root):
            root.histogram = self._room.take()
            root.total = self._source.histogram(0, root.histogram, self._pool)
            root.split = self._finder.find(root, self._pool)
        return root

    def expand(self, leaves: list[_Leaf]) -> None:
        """Give leaves their sides, and these their best splits."""
        alone = []
        for leaf in leaves:
            call = (leaf, *self._new_numbers(), self._room.take())
            if len(leaves) == 1 or self._source.n_documents(leaf.number) >= SHARED:
                self._expand(*call, self._pool)
            else:
                alone.append((*call, ONE_THREAD))
        self._pool.run(self._expand, alone)
        for leaf in leaves:
            self._room.give_back(leaf)
            for side in leaf.sides or ():
                if side.split is None:
                    self._room.give_back(side)

    def part(self, leaf: _Leaf) -> None:
        """Give a leaf its sides, which are not to be split."""
        self._part(leaf, *self._new_numbers(), self._pool)

    def _new_numbers(self) -> tuple[int, int]:
        return next(self._numbers), next(self._numbers)

    def _may_split(self, leaf: _Leaf) -> bool:
        deep = self._max_depth and leaf.depth >= self._max_depth
        return not deep and self._source.n_documents(leaf.number) >= 2 * self._min_docs

    def _part(self, leaf: _Leaf, left: int, right: int, pool: WorkerPool) -> tuple[_Leaf, _Leaf]:
        split = leaf.split
        assert split is not None
        self._source.split(leaf.number, left, right, split.feature, split.code, split.missing_left, pool)
        depth = leaf.depth + 1
        leaf.sides = _Leaf(left, split.left_total, depth), _Leaf(right, leaf.total - split.left_total, depth)
        if self._bounds is not None:
            self._bounds.hand_down(leaf)
        return leaf.sides

    def _expand(self, leaf: _Leaf, left: int, right: int, spare: Longs, pool: WorkerPool) -> None:
        sides = self._part(leaf, left, right, pool)
        small, large = sorted(sides, key=lambda side: self._source.n_documents(side.number))
        small.histogram = spare
        if any(map(self._may_split, sides)):
            large.histogram, leaf.histogram = leaf.histogram, None
            self._source.histogram(small.number, spare, pool)
            self._finder.find_both(large, small, pool)


def grow_tree(
    source: LeafSource,
    edges: BinEdges,
    units: Units,
    settings: TrainSettings,
    pool: WorkerPool,
    histograms: Histograms | None = None,
    signs: Signs | None = None,
) -> GrownTree | None:
    """Split the leaf with the highest gain until there are `leaves`, or no split gains; None without a first split.

    histograms : room to use, empty or from the tree before
    signs      : int8[m]: 1 where the score may only rise with the feature, -1 where it may only fall; None: no such
    Leaf values are -G / (H + l2) times the learning rate, one Newton step (Burges 2010, section 7).
    Equal gains: the older leaf first.
    """
    room = histograms or Histograms(edges.n_bins)
    bounds = None if signs is None else Bounds(signs, units, settings)
    expander = Expander(source, SplitFinder(source, edges, units, settings, signs), room, bounds, settings, pool)
    leaves = [expander.find_root()]
    waiting: list[tuple[float, int, _Leaf]] = []
    nodes: list[tuple[Split, bool]] = []
    children: list[list[int]] = []
    above: list[tuple[int, int] | None] = [None]  # of each leaf: its place in children

    def wait(number: int) -> None:
        leaf = leaves[number]
        if leaf.split is not None:
            heapq.heappush(waiting, (-leaf.split.gain, number, leaf))

    assert settings.leaves is not None  # for_queries
    ahead = AHEAD * pool.threads if pool.threads > 1 else 1
    wait(0)
    while waiting and len(leaves) < settings.leaves:
        left_over = settings.leaves - len(leaves) - 1
        if waiting[0][2].sides is None:
            if left_over:
                soon = heapq.nsmallest(min(left_over, ahead), waiting)
                expander.expand([leaf for _, _, leaf in soon if leaf.sides is None])
            else:
                expander.part(waiting[0][2])
        _, number, leaf = heapq.heappop(waiting)
        assert leaf.split is not None and leaf.sides is not None
        new, node = len(leaves), len(nodes)
        if (place := above[number]) is not None:
            children[place[0]][place[1]] = node
        nodes.append((leaf.split, _missing_side(edges, leaf.split)))
        children.append([~number, ~new])
        leaves[number] = leaf.sides[0]
        leaves.append(leaf.sides[1])
        above[number] = node, 0
        above.append((node, 1))
        wait(number)
        wait(new)
    for leaf in leaves:
        room.give_back(leaf)
        for side in leaf.sides or ():
            room.give_back(side)
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
        leaf_values=np.array([leaf_value(leaf, units, settings) for leaf in leaves]),
        split_gains=np.array([split.gain for split in splits]),
        leaf_documents=np.array([source.n_documents(leaf.number) for leaf in leaves], np.int64),
    )
    features = np.array([split.feature for split in splits], np.int32)
    codes = np.array([split.code for split in splits], np.int32)
    return GrownTree(tree, features, codes, [leaf.number for leaf in leaves])


def leaf_value(leaf: _Leaf, units: Units, settings: TrainSettings) -> float:
    """Return the learning rate times `newton_step`; what was in order stays so, as all are rounded alike."""
    return settings.learning_rate * newton_step(leaf, units, settings) + 0.0


def newton_step(leaf: _Leaf, units: Units, settings: TrainSettings) -> float:
    """Return -G / (H + l2) of a leaf's packed sum, 0 where there is no curvature, cut to the leaf's bounds."""
    gradient, hessian = (leaf.total >> 32) * units.gradient, (leaf.total & LOW_HALF) * units.hessian
    divisor = hessian + settings.l2
    return min(max(-(gradient / divisor) if divisor > 0 else 0.0, leaf.low), leaf.high)
