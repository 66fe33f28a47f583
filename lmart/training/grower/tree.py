"""A tree while it grows: its leaves, what is known of them, and the nodes above."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, TypeVarTuple

import numpy as np

from lmart.array_types import BoolArray, Int8Array, Int32Array, Int64Array
from lmart.binning.binned_features import ONE_THREAD
from lmart.binning.edges import BinEdges
from lmart.kernels.trees.split_gain import Split, SplitSearch
from lmart.scoring.ensemble import Tree
from lmart.settings.resolved import TreeSettings
from lmart.threads import WorkerPool
from lmart.training.grower.leaves import LeafSource

Arguments = TypeVarTuple("Arguments")

LOW_HALF = 0xFFFFFFFF  # mask of a packed sum: the sum of hessians
HISTOGRAM_MEMORY = 512 << 20  # bytes of histograms of leaves, where there are more than the fewest
FEWEST_HISTOGRAMS = 8
SHARED = 65_536  # least documents of a leaf that all workers process together; smaller leaves get one worker each


class Units(NamedTuple):
    """The units of packed sums.

    gradient        : the gradient that is 1 in the high half
    hessian         : the hessian that is 1 in the low half
    largest_hessian : of a document, in units
    """

    gradient: float
    hessian: float
    largest_hessian: int

    def split_gain(self, in_units: float) -> float:
        """Return a split gain that kernels found in units."""
        return in_units * self.gradient * (self.gradient / self.hessian)


@dataclass(frozen=True)
class GrownTree:
    """A tree, and its splits in bins.

    split_features : int32[n_nodes], binned feature of each node
    split_bins     : int32[n_nodes], its thresholds as bins: a document goes left when its bin <= split_bins[node]
    leaves         : numbers of the leaves in the LeafSource, in the order of the tree's leaf values
    """

    tree: Tree
    split_features: Int32Array
    split_bins: Int32Array
    leaves: list[int]


@dataclass(eq=False)
class Leaf:
    """A leaf of the tree, or one that may become one.

    number    : of the leaf in the LeafSource
    total     : its packed sum
    depth     : from 0 at the root
    histogram : int64[n_bins], its packed sums by bin, as long as they are needed
    split     : its best split, once it was searched for
    children  : left and right, once it is split
    low, high : bounds of its value, before the learning rate
    """

    number: int
    total: int
    depth: int
    histogram: Int64Array | None = None
    split: Split | None = None
    children: tuple[Leaf, Leaf] | None = None
    low: float = -math.inf
    high: float = math.inf

    @property
    def known_histogram(self) -> Int64Array:
        """The histogram of a leaf that has one."""
        assert self.histogram is not None
        return self.histogram

    @property
    def known_split(self) -> Split:
        """The best split of a leaf that has one."""
        assert self.split is not None
        return self.split


class Histograms:
    """Buffers for histograms, reused from leaf to leaf and from tree to tree, since allocation costs more than summing.

    memory : bytes of all buffers; a caller who can do with fewer asks for what is `lacking`

    For one caller at a time.
    """

    def __init__(self, n_bins: int, memory: int = HISTOGRAM_MEMORY) -> None:
        self._n_bins = n_bins
        self._free: list[Int64Array] = []
        self._n_made = 0
        self.most = max(FEWEST_HISTOGRAMS, memory // (8 * max(1, n_bins)))

    def take(self) -> Int64Array:
        """Return int64[n_bins], of any content."""
        if self._free:
            return self._free.pop()
        self._n_made += 1
        return np.empty(self._n_bins, np.int64)

    def lacking(self, n: int) -> int:
        """Return how many buffers must be given back for n more to be taken within the memory."""
        return max(0, self._n_made - len(self._free) + n - self.most)

    def give_back(self, leaf: Leaf) -> None:
        """Take a leaf's histogram from it, if it has one, to be used again."""
        if leaf.histogram is not None:
            self.take_back(leaf.histogram)
            leaf.histogram = None

    def take_back(self, buffer: Int64Array) -> None:
        """Take a buffer that no leaf has, to be used again."""
        self._free.append(buffer)


@dataclass(frozen=True)
class GrowParams:
    """What to grow a tree from, and how.

    histograms       : buffers to use, empty or from the tree before
    directions       : int8[m]: 1 where the score may only rise with the feature, -1 where it may only fall, 0
                       elsewhere; None: no constraints, as it must be for oblivious trees
    allowed_features : bool[m], those to split on; None: all
    """

    source: LeafSource
    edges: BinEdges
    units: Units
    settings: TreeSettings
    pool: WorkerPool
    histograms: Histograms
    directions: Int8Array | None = None
    allowed_features: BoolArray | None = None

    def surely_enough(self, left_total: int, total: int) -> bool:
        """Return whether the sums of hessians show, without a count, that both sides hold `min_documents`."""
        left = left_total & LOW_HALF
        return 0 < self.search.sure_hessian <= min(left, (total & LOW_HALF) - left)

    @cached_property
    def search(self) -> SplitSearch:
        """The inputs of the split search that are the same for all leaves."""
        edges, settings, unit, m = self.edges, self.settings, self.units.hessian, self.edges.n_features
        allowed = np.ones(m, np.bool_) if self.allowed_features is None else self.allowed_features
        directions = np.zeros(m, np.int8) if self.directions is None else self.directions
        return SplitSearch(
            edges.bin_offsets,
            self.source.most_frequent_bins,
            edges.has_missing,
            edges.all_finite,
            allowed,
            directions,
            self.directions is not None,
            settings.l2 / unit,
            settings.min_hessian / unit,
            settings.min_documents,
            settings.min_documents * self.units.largest_hessian,
        )


class GrowingTree:
    """The leaves of a tree by their final numbers, and its nodes: a split leaf hands its number to its left child."""

    def __init__(self, root: Leaf) -> None:
        self.leaves = [root]
        self._splits: list[Split] = []
        self._children: list[list[int]] = []
        self._parents: list[tuple[int, int] | None] = [None]  # of each leaf: node, and 0 for left or 1 for right

    def split(self, number: int) -> int:
        """Put a leaf's children in its place; return the number of the right one."""
        leaf, new, node = self.leaves[number], len(self.leaves), len(self._splits)
        assert leaf.split is not None and leaf.children is not None
        if (parent := self._parents[number]) is not None:
            self._children[parent[0]][parent[1]] = node
        self._splits.append(leaf.split)
        self._children.append([~number, ~new])
        self.leaves[number] = leaf.children[0]
        self.leaves.append(leaf.children[1])
        self._parents[number] = node, 0
        self._parents.append((node, 1))
        return new

    def finish(self, params: GrowParams) -> GrownTree | None:
        """Return the tree, or None when it has no split; all histograms of its leaves are given back."""
        for leaf in self.leaves:
            for holder in (leaf, *(leaf.children or ())):
                params.histograms.give_back(holder)
        splits, edges = self._splits, params.edges
        if not splits:
            return None
        children = np.array(self._children, np.int32)
        tree = Tree(
            split_columns=edges.columns[[split.feature for split in splits]],
            thresholds=np.array([edges.threshold(split.feature, split.bin) for split in splits]),
            missing_left=np.array([_missing_left(edges, split) for split in splits], np.bool_),
            left=children[:, 0].copy(),
            right=children[:, 1].copy(),
            leaf_values=np.array([leaf_value(leaf, params) for leaf in self.leaves]),
            split_gains=np.array([split.split_gain for split in splits]),
            leaf_documents=np.array([params.source.n_documents(leaf.number) for leaf in self.leaves], np.int64),
        )
        features = np.array([split.feature for split in splits], np.int32)
        bins = np.array([split.bin for split in splits], np.int32)
        return GrownTree(tree, features, bins, [leaf.number for leaf in self.leaves])


def _missing_left(edges: BinEdges, split: Split) -> bool:
    """Return whether a missing value goes left: as the split says if training saw one, else with zero."""
    if edges.has_missing[split.feature]:
        return split.missing_left
    return bool(edges.zero_bins[split.feature] <= split.bin)


def leaf_value(leaf: Leaf, params: GrowParams) -> float:
    """Return the learning rate times `newton_step`; values that were in order stay so, as all are rounded alike."""
    return params.settings.learning_rate * newton_step(leaf, params) + 0.0


def newton_step(leaf: Leaf, params: GrowParams) -> float:
    """Return -G / (H + l2) of a leaf's packed sum, 0 where that divisor is 0, clipped to the leaf's bounds."""
    units = params.units
    gradient, hessian = (leaf.total >> 32) * units.gradient, (leaf.total & LOW_HALF) * units.hessian
    divisor = hessian + params.settings.l2
    return min(max(-(gradient / divisor) if divisor > 0 else 0.0, leaf.low), leaf.high)


def divide(leaf: Leaf, left: int, right: int, params: GrowParams) -> tuple[Leaf, Leaf]:
    """Return the children by the leaf's split; left, right : their numbers in the LeafSource.

    Bounds of the children by a split on a constrained feature meet halfway, so that no leaf on the one side ever gets a
    value beyond that of a leaf on the other (LightGBM's basic method).
    """
    split, depth = leaf.known_split, leaf.depth + 1
    totals = split.left_total, leaf.total - split.left_total
    children = Leaf(left, totals[0], depth), Leaf(right, totals[1], depth)
    if params.directions is not None:
        for child in children:
            child.low, child.high = leaf.low, leaf.high
        direction = int(params.directions[split.feature])
        if direction:
            lower, upper = children[::direction]
            values = newton_step(lower, params), newton_step(upper, params)
            lower.high = upper.low = values[0] + (values[1] - values[0]) / 2
    return children


def split_leaf(params: GrowParams, leaf: Leaf, left: int, right: int, pool: WorkerPool) -> tuple[Leaf, Leaf]:
    """Split the documents of a leaf, and return its children; left, right : their numbers in the LeafSource."""
    params.source.split(leaf.number, left, right, leaf.known_split, pool)
    leaf.children = divide(leaf, left, right, params)
    return leaf.children


def hand_on_histogram(source: LeafSource, leaf: Leaf, buffer: Int64Array) -> tuple[Leaf, Leaf]:
    """Return the larger child of a leaf, which gets the leaf's histogram, and the smaller, which gets a buffer."""
    smaller, larger = sorted(leaf.children or (), key=lambda child: source.cost(child.number))
    larger.histogram, leaf.histogram, smaller.histogram = leaf.histogram, None, buffer
    return larger, smaller


def run_by_size(
    function: Callable[[*Arguments, WorkerPool], None],
    calls: Sequence[tuple[*Arguments]],
    n_documents: Sequence[int],
    pool: WorkerPool,
) -> None:
    """Call function(*call, pool that helps) for leaves of these sizes.

    Large leaves are processed one by one, each by all workers; then the others in parallel, each by one worker, the
    largest first for an even load.
    """
    side_by_side = []
    for n, call in sorted(zip(n_documents, calls, strict=True), key=itemgetter(0), reverse=True):
        if len(calls) == 1 or n >= SHARED:
            function(*call, pool)
        else:
            side_by_side.append((*call, ONE_THREAD))
    pool.run(function, side_by_side)
