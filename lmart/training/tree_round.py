"""One round of boosting: which documents and features a tree is grown from, and what it adds to the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int8Array, Int32Array, Int64Array
from lmart.binning.binned_features import BinnedFeatures
from lmart.binning.edges import BinEdges
from lmart.kernels.exact.bit_mixing import round_key
from lmart.kernels.trees import gradient_sampling, row_partition
from lmart.kernels.trees import histogram as kernels
from lmart.kernels.trees.gradient_sampling import RowDraw
from lmart.settings.resolved import RankerSettings
from lmart.threads import WorkerPool, chunks
from lmart.training.grower import GrownTree, GrowParams, Histograms, Units, grow_tree
from lmart.training.grower.leaves import LocalLeaves, Partition, RowNarrowing
from lmart.training.objectives import Gradients

CHUNK = 32_768  # rows in one piece of work


class GrowingSetup(NamedTuple):
    """What growing a tree needs that is the same in every round.

    directions : int8[m], the monotone constraints, as in `grow_tree`; None: none
    narrowing  : leaves features that a tree may not split on out of rows
    """

    binned: BinnedFeatures
    pool: WorkerPool
    histograms: Histograms
    directions: Int8Array | None
    narrowing: RowNarrowing


def grow_round(
    setup: GrowingSetup,
    gradients: Gradients,
    settings: RankerSettings,
    round_number: int,
    scores: Float64Array,
) -> GrownTree | None:
    """Grow one tree on a sample of the documents and add its leaf values to the scores of all; None without a split.

    scores : float64[n], to which the leaf values are added
    """
    binned, pool, histograms, directions, _ = setup
    sampled, unsampled = _draw_rows(gradients, settings.sampling_rate, settings.seed, round_number, pool)
    units, packed = pack_all(gradients, len(sampled), pool)
    if units is None:
        return None
    features = draw_features(binned.edges, settings, round_number)
    narrowed = None if features is None else setup.narrowing.narrow(sampled, features, pool)
    leaves = LocalLeaves(binned, packed, sampled, unsampled, pool.threads, narrowed)
    params = GrowParams(leaves, binned.edges, units, settings.tree, pool, histograms, directions, features)
    grown = grow_tree(params, leaves)
    if grown is not None:
        for partition in leaves.partitions:
            add_values(partition, grown.leaves, grown.tree.leaf_values, scores, pool)
    return grown


def draw_features(edges: BinEdges, settings: RankerSettings, round_number: int) -> BoolArray | None:
    """Return the features that a tree may split on, bool[m], None for all: those with the least mixed bits.

    Drawn from all features with two bins, so that it does not depend on `min_docs`.
    """
    if settings.feature_rate >= 1.0:
        return None
    varying = edges.varying
    mixed = np.empty(len(varying), np.uint64)
    gradient_sampling.mix_each(varying, ~np.uint64(round_key(settings.seed, round_number)), mixed)
    drawn = np.zeros(len(varying), np.bool_)
    drawn[mixed.argsort(kind="stable")[: max(1, round(settings.feature_rate * len(varying)))]] = True
    allowed: BoolArray = drawn[np.searchsorted(varying, edges.columns)]
    return allowed


def add_values(
    partition: Partition, leaves: Sequence[int], values: Float64Array, scores: Float64Array, pool: WorkerPool
) -> None:
    """Add the leaf values of a tree, float64[n_leaves], to the scores of the partition's documents, float64[n]."""
    bounds = np.array([partition.bounds[leaf] for leaf in leaves], np.int64)
    starts, stops = bounds[:, 0].copy(), bounds[:, 1].copy()
    ranges = chunks(len(values), -(-len(values) // (4 * pool.threads)))  # of leaves, which share no document
    calls = [(partition.documents, starts[a:b], stops[a:b], values[a:b], scores) for a, b in ranges]
    pool.run(row_partition.add_leaf_values, calls)


def _draw_rows(
    gradients: Gradients, sampling_rate: float, seed: int, round_number: int, pool: WorkerPool
) -> tuple[Int32Array, Int32Array]:
    """Return (sampled, unsampled) row indices, ascending.

    In place: divide gradients and hessians of sampled rows by their sampling probability, zero the others.
    Minimal variance sampling (Ibragimov and Gusev 2019): the probability of a row is size / mu, at most 1, with size
    sqrt(g^2 + h^2 / 10), and mu such that about `sampling_rate` of the rows are drawn.
    """
    n = len(gradients.gradients)
    all_rows = np.arange(n, dtype=np.int32)
    if sampling_rate >= 1.0:
        return all_rows, np.empty(0, np.int32)
    threshold = threshold_of([some_sizes(gradients, 0, n)], sampling_rate)
    draw = RowDraw(threshold, np.uint64(round_key(seed, round_number)), 0)
    return draw_rows(gradients, draw, pool) if threshold > 0.0 else (all_rows, np.empty(0, np.int32))


def some_sizes(gradients: Gradients, first_row: int, n: int) -> Float64Array:
    """Return the sampling weights of some documents, every so many of the whole data: mu need not be exact."""
    step = max(1, n >> 16)
    some = np.arange(-first_row % step, len(gradients.gradients), step)
    sizes = np.empty(len(some))
    gradient_sampling.gradient_sizes(gradients.gradients[some], gradients.hessians[some], 0, len(some), sizes)
    return sizes


def threshold_of(sizes: Sequence[Float64Array], sampling_rate: float) -> float:
    """Return mu, such that about this share of the documents are drawn; 0 when all are to be kept."""
    return gradient_sampling.threshold_for(np.sort(np.concatenate(sizes)), sampling_rate)


def draw_rows(gradients: Gradients, draw: RowDraw, pool: WorkerPool) -> tuple[Int32Array, Int32Array]:
    """Return (sampled, unsampled) row indices, ascending, and change the gradients as `_draw_rows` says."""
    n = len(gradients.gradients)
    sampled, unsampled = np.empty(n, np.int32), np.empty(n, np.int32)
    pieces = chunks(n, CHUNK)
    calls = [(*gradients, draw, start, stop, sampled, unsampled) for start, stop in pieces]
    counts = pool.run(gradient_sampling.draw_rows, calls)
    return (
        np.concatenate([sampled[start : start + k] for (start, _), k in zip(pieces, counts, strict=True)]),
        np.concatenate([unsampled[start : stop - k] for (start, stop), k in zip(pieces, counts, strict=True)]),
    )


def pack_all(gradients: Gradients, n_sampled: int, pool: WorkerPool) -> tuple[Units | None, Int64Array]:
    """Return the units, powers of two in which all sums fit 32 bits, and the packed gradients, int64[n].

    No units when all gradients are 0.
    """
    gradient, hessian = join_magnitudes(sum_magnitudes(gradients, pool))
    if gradient == 0.0:
        return None, np.empty(0, np.int64)
    scales = scale_for(gradient, n_sampled), scale_for(hessian, n_sampled)
    largest_hessian, packed = pack(gradients, scales, pool)
    return Units(1.0 / scales[0], 1.0 / scales[1], largest_hessian), packed


def sum_magnitudes(gradients: Gradients, pool: WorkerPool) -> list[tuple[float, float]]:
    """Return the sums of |gradient| and of hessian of each CHUNK documents."""
    pieces = chunks(len(gradients.gradients), CHUNK)
    return pool.run(kernels.sum_magnitudes, [(*gradients, start, stop) for start, stop in pieces])


def join_magnitudes(magnitudes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the sums of `sum_magnitudes` over all pieces."""
    return math.fsum(sums[0] for sums in magnitudes), math.fsum(sums[1] for sums in magnitudes)


def scale_for(total: float, n_sampled: int) -> float:
    """Return how many units are 1, a power of two such that all sums fit 32 bits."""
    largest_sum = 2.0**31 - 1 - n_sampled / 2  # rounding adds up to half a unit a document
    return float(2.0 ** (math.frexp(largest_sum / total)[1] - 1)) if total > 0 else 1.0


def pack(gradients: Gradients, scales: tuple[float, float], pool: WorkerPool) -> tuple[int, Int64Array]:
    """Return the largest hessian in units and the packed gradients, int64[n]; `scales` are the units that are 1."""
    n = len(gradients.gradients)
    packed = np.empty(n, np.int64)
    calls = [(*gradients, *scales, start, stop, packed) for start, stop in chunks(n, CHUNK)]
    return max(pool.run(kernels.pack_gradients, calls), default=0), packed
