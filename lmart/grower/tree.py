"""A tree while it grows: its leaves, what is known of them, and the nodes above."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.ensemble import Tree
from lmart.leaves import LeafSource
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

Longs = npt.NDArray[np.int64]

LOW_HALF = 0xFFFFFFFF
SHARED = 65_536  # documents from which on all workers help with one leaf; smaller leaves are worked on side by side
ONE_THREAD = WorkerPool(1)  # without workers, so it serves many callers at a time


class Units(NamedTuple):
    """What one unit of each half of a packed sum is worth, and the largest hessian of a document in units."""

    gradient: float
    hessian: float
    largest_hessian: int

    def limits(self, settings: TrainSettings) -> tuple[float, float]:
        """Return l2 and min_hessian in units of hessians, as `splitting.best_split` takes them."""
        return settings.l2 / self.hessian, settings.min_hessian / self.hessian

    def split_gain(self, gain: float) -> float:
        """Return what a gain that `splitting.best_split` found in units is worth."""
        return gain * self.gradient * (self.gradient / self.hessian)


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
class Leaf:
    """A leaf of the tree, or one that may become one.

    number : what the LeafSource calls it
    total  : its packed sum; depth : from 0 at the root
    histogram : int64[n_bins], its packed sums by bin, as long as they are needed
    split  : its best split, once its sums are known; sides : left and right, once it is parted
    low, high : bounds of its value, before the learning rate
    """

    number: int
    total: int
    depth: int
    histogram: Longs | None = None
    split: Split | None = None
    sides: tuple[Leaf, Leaf] | None = None
    low: float = -math.inf
    high: float = math.inf


class Histograms:
    """Room for histograms, kept from leaf to leaf and from tree to tree: fresh memory costs more than adding to it.

    For one caller at a time.
    """

    def __init__(self, n_bins: int) -> None:
        self._n_bins = n_bins
        self._free: list[Longs] = []

    def take(self) -> Longs:
        """Return int64[n_bins], of any content."""
        return self._free.pop() if self._free else np.empty(self._n_bins, np.int64)

    def give_back(self, leaf: Leaf) -> None:
        """Take a leaf's histogram from it, if it has one, to be used again."""
        if leaf.histogram is not None:
            self._free.append(leaf.histogram)
            leaf.histogram = None


@dataclass(frozen=True)
class Task:
    """What to grow a tree from, and how: the arguments of `grow_tree`."""

    source: LeafSource
    edges: BinEdges
    units: Units
    settings: TrainSettings
    pool: WorkerPool
    room: Histograms
    signs: npt.NDArray[np.int8] | None
    taken_features: npt.NDArray[np.bool_] | None


class GrowingTree:
    """The leaves of a tree by their final numbers, and its nodes: a split leaf hands its number to its left side."""

    def __init__(self, root: Leaf) -> None:
        self.leaves = [root]
        self._splits: list[Split] = []
        self._children: list[list[int]] = []
        self._above: list[tuple[int, int] | None] = [None]  # of each leaf: its place in the children

    def split(self, number: int) -> int:
        """Put a leaf's sides into its place; return the number of the right one."""
        leaf, new, node = self.leaves[number], len(self.leaves), len(self._splits)
        assert leaf.split is not None and leaf.sides is not None
        if (place := self._above[number]) is not None:
            self._children[place[0]][place[1]] = node
        self._splits.append(leaf.split)
        self._children.append([~number, ~new])
        self.leaves[number] = leaf.sides[0]
        self.leaves.append(leaf.sides[1])
        self._above[number] = node, 0
        self._above.append((node, 1))
        return new

    def finish(self, task: Task) -> GrownTree | None:
        """Return the tree, or None when it has no split; all histograms of its leaves go back to the room."""
        for leaf in self.leaves:
            for one in (leaf, *(leaf.sides or ())):
                task.room.give_back(one)
        splits, edges = self._splits, task.edges
        if not splits:
            return None
        both = np.array(self._children, np.int32)
        tree = Tree(
            split_columns=edges.columns[[split.feature for split in splits]],
            thresholds=np.array([edges.threshold(split.feature, split.code) for split in splits]),
            missing_left=np.array([_missing_side(edges, split) for split in splits], np.bool_),
            left=both[:, 0].copy(),
            right=both[:, 1].copy(),
            leaf_values=np.array([leaf_value(leaf, task) for leaf in self.leaves]),
            split_gains=np.array([split.gain for split in splits]),
            leaf_documents=np.array([task.source.n_documents(leaf.number) for leaf in self.leaves], np.int64),
        )
        features = np.array([split.feature for split in splits], np.int32)
        codes = np.array([split.code for split in splits], np.int32)
        return GrownTree(tree, features, codes, [leaf.number for leaf in self.leaves])


def _missing_side(edges: BinEdges, split: Split) -> bool:
    """Where a missing value goes: as found if training saw one, else with zero."""
    if edges.has_missing[split.feature]:
        return split.missing_left
    return bool(edges.zero_codes[split.feature] <= split.code)


def leaf_value(leaf: Leaf, task: Task) -> float:
    """Return the learning rate times `newton_step`; what was in order stays so, as all are rounded alike."""
    return task.settings.learning_rate * newton_step(leaf, task) + 0.0


def newton_step(leaf: Leaf, task: Task) -> float:
    """Return -G / (H + l2) of a leaf's packed sum, 0 where there is no curvature, cut to the leaf's bounds."""
    units = task.units
    gradient, hessian = (leaf.total >> 32) * units.gradient, (leaf.total & LOW_HALF) * units.hessian
    divisor = hessian + task.settings.l2
    return min(max(-(gradient / divisor) if divisor > 0 else 0.0, leaf.low), leaf.high)


def part(source: LeafSource, leaf: Leaf, left: int, right: int, pool: WorkerPool) -> tuple[Leaf, Leaf]:
    """Give a leaf its sides by its split, and return them; left, right : what the LeafSource calls them."""
    split, depth = leaf.split, leaf.depth + 1
    assert split is not None
    source.split(leaf.number, left, right, split.feature, split.code, split.missing_left, pool)
    leaf.sides = Leaf(left, split.left_total, depth), Leaf(right, leaf.total - split.left_total, depth)
    return leaf.sides


def hand_on_histogram(source: LeafSource, leaf: Leaf, spare: Longs, pool: WorkerPool) -> tuple[Leaf, Leaf]:
    """Return the larger and the smaller side of a leaf: the one with the leaf's histogram, from which that of the
    other, in `spare`, is still to be subtracted."""
    small, large = sorted(leaf.sides or (), key=lambda side: source.n_documents(side.number))
    large.histogram, leaf.histogram, small.histogram = leaf.histogram, None, spare
    source.histogram(small.number, spare, pool)
    return large, small


def run_by_size(
    function: Callable[..., None], calls: Sequence[tuple[Any, ...]], n_documents: Sequence[int], pool: WorkerPool
) -> None:
    """Call function(*call, pool that helps) for leaves of these sizes: large ones one by one, then the others side by
    side, the largest first so that the workers end together."""
    alone = []
    for n, call in sorted(zip(n_documents, calls, strict=True), key=itemgetter(0), reverse=True):
        if len(calls) == 1 or n >= SHARED:
            function(*call, pool)
        else:
            alone.append((*call, ONE_THREAD))
    pool.run(function, alone)
