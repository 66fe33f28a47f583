"""The linear ranker: a weighted sum of simple functions of each feature, kept as one step function a feature.

Its functions are the value, its signed logarithm and its quantile in the training data, each shifted and scaled to mean
0 and variance 1. They are constant in each bin, so that all it needs of the data are sums of gradients by bin: the
histogram of a tree's root, which is exact for any number of threads and machines.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int8Array, Int64Array, UInt8Array
from lmart.binning.binned_features import BinnedFeatures
from lmart.binning.edges import BinEdges
from lmart.kernels.ranking import step_functions as kernels
from lmart.scoring.ensemble import Tree
from lmart.threads import WorkerPool, chunks
from lmart.training.grower import GrownTree, Units
from lmart.training.grower.leaves import LocalLeaves
from lmart.training.grower.tree import LOW_HALF
from lmart.training.objectives import Objective
from lmart.training.scores import LocalTrainingScores
from lmart.training.tree_round import CHUNK, pack_all

L2 = 0.03  # a document, for functions of variance 1
PRECISION = 1e-3  # the fit ends when the norm of the gradient is this share of what it was
MOST_SUMS = 50  # gradients that are summed at most
REMEMBERED = 8  # latest steps that the next one depends on
SLOPE_LEFT = 0.9  # of a step's direction, at its end, as a share of that at its start
# Measures of a validation set, as shares of that by the trees. On generated data of 60, 200, 700 and 2,000 queries they
# are 0.97, 0.92, 0.87 and 0.86, and a linear ranker of weight 0.4 adds +0.018, +0.004, -0.007 and -0.011 to NDCG@10.
NO_WEIGHT_BELOW, ALL_WEIGHT_FROM = 0.9, 0.96
# Its nodes and its trees are at most these shares of the nodes of all other trees, so that scoring takes hardly longer.
NODES, TREES = 0.15, 1 / 15


class GradientSums(NamedTuple):
    """Sums over the documents of each bin, float64[n_bins], of the cost of their queries.

    total : hessians of all documents
    """

    gradients: Float64Array
    hessians: Float64Array
    total: float


NO_SUMS = GradientSums(np.zeros(1), np.zeros(1), 0.0)  # where there is nothing to learn


def sums_of_root(
    histogram: Int64Array, total: int, units: Units, edges: BinEdges, most_frequent_bins: UInt8Array
) -> GradientSums:
    """Return the sums by bin that the histogram of all documents holds.

    histogram : int64[n_bins], packed sums; 0 in most frequent bins
    """
    packed = histogram.copy()
    packed[edges.bin_offsets[:-1] + most_frequent_bins] += total - np.add.reduceat(packed, edges.bin_offsets[:-1])
    gradients = (packed >> 32).astype(np.float64) * units.gradient
    hessians = (packed & LOW_HALF).astype(np.float64) * units.hessian
    return GradientSums(gradients, hessians, (total & LOW_HALF) * units.hessian)


class LinearSource(Protocol):
    """The documents that a linear ranker is fitted to."""

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        ...

    @property
    def edges(self) -> BinEdges:
        """BinEdges of m features."""
        ...

    @property
    def bin_counts(self) -> Int64Array:
        """int64[n_bins], documents in each bin."""
        ...

    def sum_gradients(self, values: Float64Array) -> GradientSums:
        """Return the sums at the scores to which each bin adds its value, float64[n_bins]."""
        ...


class LocalLinearSource:
    """A LinearSource over documents in this process's memory."""

    def __init__(
        self, objective: Objective, binned: BinnedFeatures, training: LocalTrainingScores, pool: WorkerPool
    ) -> None:
        self._objective, self._binned, self._training, self._pool = objective, binned, training, pool

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self._objective.task.query_offsets) - 1

    @property
    def edges(self) -> BinEdges:
        """BinEdges of m features."""
        return self._binned.edges

    @property
    def bin_counts(self) -> Int64Array:
        """int64[n_bins], documents in each bin."""
        return self._binned.bin_counts

    def sum_gradients(self, values: Float64Array) -> GradientSums:
        """Return the sums at the scores to which each bin adds its value."""
        binned, training, pool = self._binned, self._training, self._pool
        training.restart()
        add_bin_values(values, binned, training.scores, pool)
        gradients = self._objective.compute_gradients(training.scores)
        units, packed = pack_all(gradients, len(training.scores), pool)
        if units is None:
            return NO_SUMS
        documents = np.arange(len(packed), dtype=np.int32)
        leaves = LocalLeaves(binned, packed, documents, documents[:0], pool.threads)
        histogram = np.empty(binned.edges.n_bins, np.int64)
        total = leaves.histogram(0, histogram, pool)
        return sums_of_root(histogram, total, units, binned.edges, binned.most_frequent_bins)


def add_bin_values(values: Float64Array, binned: BinnedFeatures, scores: Float64Array, pool: WorkerPool) -> None:
    """Add to the scores of n documents, float64[n], the values of their bins, float64[n_bins]."""
    edges = binned.edges
    usual = values[edges.bin_offsets[:-1] + binned.most_frequent_bins]
    differences = values - np.repeat(usual, np.diff(edges.bin_offsets))
    fixed = (binned.row_offsets, binned.other_bins, float(usual.sum()), differences)
    pool.run(kernels.add_bin_values, [(*fixed, start, stop, scores) for start, stop in chunks(len(scores), CHUNK)])


class _Functions(NamedTuple):
    """The functions of each feature.

    values  : float64[n_bins, 3], value, logarithm and quantile of each bin; 0 for missing values
    feature : int64[n_bins], of each bin
    counts  : int64[n_bins], documents in each bin
    starts  : int64[m], the first bin of each feature
    """

    values: Float64Array
    feature: Int64Array
    counts: Int64Array
    starts: Int64Array

    def sums(self, of_bins: Float64Array | Int64Array) -> Float64Array:
        """Return sums over the bins of each feature, float64[m, k], of float64[n_bins, k], in a fixed order."""
        return np.add.reduceat(of_bins, self.starts, axis=0)


def fit_steps(source: LinearSource, directions: Int8Array | None) -> Float64Array:
    """Return what each bin adds to a score, float64[n_bins].

    directions : int8[m], 1 or -1 for features that the score may only rise or fall with, else 0; None: none

    The cost is that of the queries plus l2 / 2 times the sum of squares of the weights of the functions, l2 being L2 x
    the mean number of documents of a query x the hessians of all documents where all scores are equal, which are about
    as many as there are queries to learn from, or the sum of their weights. Weights whose sign is not that of
    `directions` are fixed at 0, and the others fitted again, until there are none.
    """
    if not source.edges.n_features:
        return np.zeros(0)
    functions = _functions(source.edges, source.bin_counts)
    weights = np.zeros((source.edges.n_features, 3))
    free = np.ones(weights.shape, np.bool_)
    of_first = source.bin_counts[: int(source.edges.bin_offsets[1])]  # each document is in one of them
    mean_length = int(of_first.sum()) / source.n_queries
    while True:
        weights = _fit(source, functions, weights, free, L2 * mean_length)
        wrong = np.zeros_like(free) if directions is None else weights * directions[:, None] < 0.0
        if not wrong.any():
            steps: Float64Array = (weights[functions.feature] * functions.values).sum(axis=1)
            return steps
        free &= ~wrong
        weights[wrong] = 0.0


def _functions(edges: BinEdges, bin_counts: Int64Array) -> _Functions:
    """Return the functions of features in bins."""
    widths, starts = np.diff(edges.bin_offsets), edges.bin_offsets[:-1]
    feature = np.repeat(np.arange(edges.n_features), widths)
    place = np.arange(edges.n_bins) - starts[feature]
    counts = bin_counts
    is_number = place < edges.missing_bins[feature]
    values = np.zeros((edges.n_bins, 3))
    values[is_number, 0] = _middles(edges)
    largest = np.maximum.reduceat(np.abs(values[:, 0]), starts)
    kernels.write_signed_logs(values[:, 0].copy(), logs := np.empty(edges.n_bins))
    values[:, 1] = logs
    values[:, 0] /= np.where(largest > 0.0, largest, 1.0)[feature]  # so that squares are numbers
    below = np.cumsum(counts) - counts
    values[:, 2] = below - below[starts][feature] + counts / 2
    values[~is_number] = 0.0
    found = _Functions(values, feature, counts, starts)
    of_numbers = np.where(is_number, counts, 0)[:, None]
    values -= (found.sums(values * of_numbers) / np.maximum(found.sums(of_numbers), 1))[feature]
    values[~is_number] = 0.0
    deviation = np.sqrt(found.sums(values * values * of_numbers) / found.sums(counts[:, None]))
    values /= np.where(deviation > 0.0, deviation, np.inf)[feature]
    return found


def _middles(edges: BinEdges) -> Float64Array:
    """Return the middle of each bin of numbers, those of all features end to end.

    The first and the last bin, which have no edge on their outer side, count as wide as their neighbours; but where
    zero is in the first one and no edge is below zero, that one is zero.
    """
    offsets = edges.edge_offsets
    n_edges = np.diff(offsets)
    first, last = offsets[:-1][n_edges > 0], offsets[1:][n_edges > 0] - 1
    all_edges, m = edges.edges, edges.n_features
    second, last_but_one = np.minimum(first + 1, last), np.maximum(last - 1, first)
    half = all_edges / 2.0  # halves and their differences are finite
    low, high = np.zeros(m), np.zeros(m)
    single = np.where(first == last, np.maximum(np.abs(all_edges[first]), 1.0) / 2.0, 0.0)
    low[n_edges > 0] = 2.0 * (half[first] - (half[second] - half[first]) / 2.0 - single / 2.0)
    high[n_edges > 0] = 2.0 * (half[last] + (half[last] - half[last_but_one]) / 2.0 + single / 2.0)
    at_zero = (edges.zero_bins == 0) & (n_edges > 0)
    low[at_zero] = 0.0
    middles = np.empty(len(all_edges) + m)
    bin_starts = offsets[:-1] + np.arange(m)
    inner = np.ones(len(middles), np.bool_)
    inner[bin_starts] = inner[bin_starts + n_edges] = False
    neighbours = np.flatnonzero(np.diff(np.repeat(np.arange(m), n_edges)) == 0)  # edges whose next is of the feature
    middles[inner] = half[neighbours] + half[neighbours + 1]
    middles[bin_starts + n_edges] = high
    middles[bin_starts] = low
    return np.clip(middles, -np.finfo(np.float64).max, np.finfo(np.float64).max)


def _fit(
    source: LinearSource, functions: _Functions, weights: Float64Array, free: BoolArray, l2_of_hessian: float
) -> Float64Array:
    """Return the weights with the least cost, float64[m, 3], by L-BFGS (Liu and Nocedal 1989).

    free          : bool[m, 3], the weights that are fitted
    l2_of_hessian : l2 for a sum of hessians of 1

    The cost is convex, so that the slope along a direction tells how long a step is; costs are never summed.
    """

    def gradient(at: Float64Array) -> tuple[Float64Array, GradientSums]:
        """Return the gradient of the cost of queries by each weight, and the sums behind it."""
        sums = source.sum_gradients((at[functions.feature] * functions.values).sum(axis=1))
        slopes = functions.sums(sums.gradients[:, None] * functions.values)
        return np.where(free, slopes, 0.0), sums

    slopes, sums = gradient(weights)
    l2 = l2_of_hessian * sums.total
    if not l2 > 0.0:
        return weights
    curvature = functions.sums(sums.hessians[:, None] * functions.values * functions.values) + l2
    slopes = slopes + l2 * weights
    first_norm = _dot(slopes, slopes / curvature)
    steps: list[tuple[Float64Array, Float64Array, float]] = []  # what weights and gradient changed by; 1 / product
    n_sums = 1
    while n_sums < MOST_SUMS and _dot(slopes, slopes / curvature) > PRECISION * PRECISION * first_norm:
        direction = _direction(slopes, curvature, steps)
        old_slope, length = _dot(slopes, direction), 1.0
        while True:
            ahead = weights + length * direction
            new_slopes = gradient(ahead)[0] + l2 * ahead
            n_sums += 1
            slope = _dot(new_slopes, direction)
            if abs(slope) <= SLOPE_LEFT * abs(old_slope) or n_sums >= MOST_SUMS:
                break
            length *= old_slope / (old_slope - slope) if slope > 0.0 else 4.0
        change, turned = ahead - weights, new_slopes - slopes
        product = _dot(change, turned)
        if slope > -old_slope or not product > 0.0:  # the last sum, of a step that is too long
            break
        steps = [*steps[1 - REMEMBERED :], (change, turned, 1.0 / product)]
        weights, slopes = ahead, new_slopes
    return weights


def _dot(a: Float64Array, b: Float64Array) -> float:
    """Return the sum of products, always added in the same order, as BLAS does not."""
    return float((a * b).sum())


def _direction(
    slopes: Float64Array, curvature: Float64Array, steps: list[tuple[Float64Array, Float64Array, float]]
) -> Float64Array:
    """Return the direction of the next step: the two loops of L-BFGS, which starts from the diagonal `curvature`."""
    result = -slopes
    factors = []
    for change, turned, inverse in reversed(steps):
        factors.append(inverse * _dot(change, result))
        result = result - factors[-1] * turned
    scale = 1.0
    if steps:
        _, turned, inverse = steps[-1]
        scale = 1.0 / (inverse * _dot(turned, turned / curvature))
    result = result / curvature * scale
    for (change, turned, inverse), factor in zip(steps, reversed(factors), strict=True):
        result = result + change * (factor - inverse * _dot(turned, result))
    return result


def guarded_weight(weight: float, own: float | None, of_trees: float | None) -> float:
    """Return the weight in the mean that a validation set leaves of that which is given, at least 0.

    own      : measure by the linear ranker alone; None: no query counts
    of_trees : measure by the mean of the others
    """
    if own is None or of_trees is None or of_trees <= 0.0:
        return weight
    return weight * min(1.0, max(0.0, (own / of_trees - NO_WEIGHT_BELOW) / (ALL_WEIGHT_FROM - NO_WEIGHT_BELOW)))


def linear_factors(weight: float, spreads: Sequence[float], with_init_scores: bool) -> tuple[float, float]:
    """Return what the scores of the mean of the others and those of the linear ranker are multiplied by.

    with_init_scores : the scores start from initial ones, which stay as they are; then spreads do not count
    Equation: (1 - weight) others + weight linear x spread of others / spread, divided by 1 - weight without initial
    scores, so that the leaf values of the others stay as they are.
    """
    if with_init_scores:
        return 1.0 - weight, weight
    others, own = spreads
    return 1.0, weight / (1.0 - weight) * others / own if own > 0.0 else 0.0


class Room(NamedTuple):
    """How large a linear ranker may be.

    nodes, trees : most of all together
    """

    nodes: int
    trees: int


def room_beside(n_nodes: int, n_trees: int) -> Room:
    """Return how large a linear ranker may be, given the nodes and the trees of the other rankers together."""
    return Room(math.ceil(NODES * n_nodes), min(math.ceil(TREES * n_nodes), n_trees))


class _Segment(NamedTuple):
    """Adjacent bins of a feature, first..stop - 1, best cut in two before bin `cut`.

    loss : minus what the cut takes off the sum of squared errors, so that the first of a heap gains most
    """

    loss: float
    feature: int
    first: int
    stop: int
    cut: int


def step_trees(steps: Float64Array, source: LinearSource, room: Room) -> list[GrownTree]:
    """Return trees of one feature each, which together add to a score about what `steps` do.

    steps  : float64[n_bins], as `fit_steps` returns them
    source : the documents
    room   : for all trees together

    The features whose steps spread the scores most have trees. Cuts are added one by one, each where it takes most off
    the sum of squared errors over the documents. A leaf is the mean of its documents, and what is constant is left out.
    """
    edges, counts = source.edges, source.bin_counts
    starts = edges.bin_offsets[:-1]
    spread = np.add.reduceat(steps * steps * counts, starts)
    most_spread = np.sort(np.argsort(-spread, kind="stable")[: min(room)])
    cuts: dict[int, list[int]] = {}

    def push(feature: int, first: int, stop: int) -> None:
        """Put adjacent bins on the heap, if a cut of them gains."""
        of_segment = slice(starts[feature] + first, starts[feature] + stop)
        gain, n_before = _best_cut(steps[of_segment], counts[of_segment])
        if gain > 0.0:
            heapq.heappush(heap, _Segment(-gain, feature, first, stop, first + n_before))

    heap: list[_Segment] = []
    for f in most_spread.tolist():
        push(f, 0, int(edges.missing_bins[f]))
    for _ in range(room.nodes):
        if not heap:
            break
        best = heapq.heappop(heap)
        cuts.setdefault(best.feature, []).append(best.cut)
        push(best.feature, best.first, best.cut)
        push(best.feature, best.cut, best.stop)
    return [_step_tree(f, sorted(cuts[f]), steps[starts[f] :], source) for f in sorted(cuts)]


def _best_cut(values: Float64Array, counts: Int64Array) -> tuple[float, int]:
    """Return the gain of the best cut of adjacent bins, 0 if there is none, and how many bins are before it."""
    if len(values) < 2:
        return 0.0, 0
    n_left, left = np.cumsum(counts)[:-1], np.cumsum(values * counts)
    total, n = left[-1], int(counts.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        gains = (left[:-1] * n - total * n_left) ** 2 / (n_left * (n - n_left)) / n
    gains[(n_left == 0) | (n_left == n)] = 0.0
    best = int(gains.argmax())
    return float(gains[best]), best + 1


def _step_tree(feature: int, cuts: list[int], steps: Float64Array, source: LinearSource) -> GrownTree:
    """Return a balanced tree of a step function; missing values are in the leaf whose value is nearest to 0, theirs.

    cuts  : its bins that a leaf starts with, ascending, but for the first
    steps : float64[>= its bins], what each adds to a score
    """
    edges = source.edges
    n_numbers = int(edges.missing_bins[feature])
    counts = source.bin_counts[edges.bin_offsets[feature] :]
    ends = list(zip([0, *cuts], [*cuts, n_numbers], strict=True))
    documents = np.array([counts[a:b].sum() for a, b in ends], np.int64)
    means = [float((steps[a:b] * counts[a:b]).sum() / counts[a:b].sum()) for a, b in ends]
    values = np.clip(means, [steps[a:b].min() for a, b in ends], [steps[a:b].max() for a, b in ends]) + 0.0
    of_missing = int(np.abs(values).argmin())
    n_missing = int(counts[n_numbers]) if edges.has_missing[feature] else 0
    nodes: list[tuple[int, int, int]] = []  # the leaves of each: first, first of the right child, stop
    children: list[list[int]] = []

    def grow(first: int, stop: int) -> int:
        """Return the node of leaves first..stop - 1, or ~ the only one."""
        if stop - first == 1:
            return ~first
        node, middle = len(nodes), (first + stop) // 2
        nodes.append((first, middle, stop))
        children.append([])
        children[node] += [grow(first, middle), grow(middle, stop)]
        return node

    grow(0, len(ends))
    splits = np.array([cuts[middle - 1] - 1 for _, middle, _ in nodes], np.int32)
    tree = Tree(
        split_columns=np.full(len(nodes), edges.columns[feature], np.int32),
        thresholds=np.array([edges.threshold(feature, split) for split in splits.tolist()]),
        missing_left=np.array([of_missing < middle for _, middle, _ in nodes]),
        left=np.array([left for left, _ in children], np.int32),
        right=np.array([right for _, right in children], np.int32),
        leaf_values=values,
        split_gains=np.array([_gain(values * documents, documents, *node) for node in nodes]),
        leaf_documents=documents + (np.arange(len(ends)) == of_missing) * n_missing,
    )
    return GrownTree(tree, np.full(len(nodes), feature, np.int32), splits, [])


def _gain(sums: Float64Array, documents: Int64Array, first: int, middle: int, stop: int) -> float:
    """Return what the split of leaves first..stop - 1 before `middle` takes off the sum of squared errors."""
    n_left, n_right = documents[first:middle].sum(), documents[middle:stop].sum()
    apart = sums[first:middle].sum() / n_left - sums[middle:stop].sum() / n_right
    return float(apart * apart * n_left * n_right / (n_left + n_right))
