"""grow_tree: best-first growth of one regression tree on packed gradients."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.ensemble import Tree
from lmart.kernels import histogram as sums
from lmart.kernels import splitting
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks

LOW_HALF = 0xFFFFFFFF


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
    histogram: npt.NDArray[np.int64] | None
    depth: int
    parent: int  # the node above, -1 over the root
    is_left: bool


class SplitFinder:
    """Finds the best split of a leaf: the highest gain; ties go to the lowest feature, then the lowest threshold."""

    def __init__(
        self, source: LeafSource, edges: BinEdges, units: Units, settings: TrainSettings, pool: WorkerPool
    ) -> None:
        self._source = source
        self._edges = edges
        self._units = units
        self._settings = settings
        self._pool = pool
        m = edges.n_features
        self._gains = np.empty(m)
        self._codes = np.empty(m, np.int16)
        self._missing_left = np.empty(m, np.bool_)
        self._left_totals = np.empty(m, np.int64)
        self._ranges = chunks(m, m if pool.threads == 1 else -(-m // (2 * pool.threads))) if m else []

    def find(self, number: int, leaf: _Leaf) -> Split | None:
        """Return the best split that leaves enough documents on each side, or None.

        The sums hold no counts. So features are tried from the highest gain down; only those that could win are
        counted.
        """
        edges, units, settings, histogram = self._edges, self._units, self._settings, leaf.histogram
        if histogram is None or not edges.n_features:
            return None
        limits = (leaf.total, settings.l2 / units.hessian, settings.min_hessian / units.hessian)
        fixed = (histogram, edges.bin_offsets, edges.has_missing, edges.all_finite, *limits)
        found = (self._gains, self._codes, self._missing_left, self._left_totals)
        self._pool.run(splitting.best_splits, [(*fixed, a, b, *found) for a, b in self._ranges])
        counted = set()
        while True:
            f = int(np.argmax(self._gains))
            if self._gains[f] == -np.inf:
                return None
            if f in counted or self._surely_enough(leaf.total, int(self._left_totals[f])):
                left_total = int(self._left_totals[f])
                gain = float(self._gains[f]) * units.gradient * (units.gradient / units.hessian)
                return Split(gain, f, int(self._codes[f]), bool(self._missing_left[f]), left_total)
            start, stop = int(edges.bin_offsets[f]), int(edges.bin_offsets[f + 1])
            counts = self._source.code_counts(number, f)
            own = (histogram, counts, start, stop - start, bool(edges.has_missing[f]), bool(edges.all_finite[f]))
            best = splitting.best_counted_split(*own, *limits, settings.min_docs)
            self._gains[f], self._codes[f], self._missing_left[f], self._left_totals[f] = best
            counted.add(f)

    def _surely_enough(self, total: int, left_total: int) -> bool:
        """Whether the hessians alone show that both sides hold min_docs documents: none has more than the largest."""
        needed = self._settings.min_docs * self._units.largest_hessian
        left = left_total & LOW_HALF
        return self._settings.min_docs <= 1 or 0 < needed <= min(left, (total & LOW_HALF) - left)


def grow_tree(
    source: LeafSource, edges: BinEdges, units: Units, settings: TrainSettings, pool: WorkerPool
) -> GrownTree | None:
    """Split the leaf with the highest gain until there are `leaves`, or no split gains; None without a first split.

    Leaf values are -G / (H + l2) times the learning rate, one Newton step (Burges 2010, section 7).
    Equal gains: the older leaf first.
    """
    finder = SplitFinder(source, edges, units, settings, pool)
    leaves = [_Leaf(0, None, 0, -1, False)]
    waiting: list[tuple[float, int, Split]] = []
    nodes: list[tuple[Split, bool]] = []
    children: list[list[int]] = []

    def consider(number: int) -> None:
        leaf = leaves[number]
        split = finder.find(number, leaf)
        if split is None:
            leaf.histogram = None
        else:
            heapq.heappush(waiting, (-split.gain, number, split))

    def may_split(number: int) -> bool:
        deep = settings.max_depth and leaves[number].depth >= settings.max_depth
        return not deep and source.n_documents(number) >= 2 * settings.min_docs

    if may_split(0):
        leaves[0].histogram, leaves[0].total = source.histogram(0)
        consider(0)
    while waiting:
        _, number, split = heapq.heappop(waiting)
        leaf, new = leaves[number], len(leaves)
        node = len(nodes)
        if leaf.parent >= 0:
            children[leaf.parent][0 if leaf.is_left else 1] = node
        nodes.append((split, _missing_side(edges, split)))
        children.append([~number, ~new])
        source.split(number, new, split.feature, split.code, split.missing_left)
        above = leaf.histogram
        leaves[number] = _Leaf(split.left_total, None, leaf.depth + 1, node, True)
        leaves.append(_Leaf(leaf.total - split.left_total, None, leaf.depth + 1, node, False))
        if len(leaves) == settings.leaves:
            break
        pair = [one for one in (number, new) if may_split(one)]
        if not pair:
            continue
        small, large = sorted((number, new), key=source.n_documents)
        own, _ = source.histogram(small)
        if small in pair:
            leaves[small].histogram = own
        if large in pair:
            assert above is not None
            sums.subtract(above, own, above)
            leaves[large].histogram = above
        for one in pair:
            consider(one)
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
