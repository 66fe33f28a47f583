"""One round of boosting: which documents and features a tree is grown from, and what it adds to the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.binning import BinnedFeatures
from lmart.grower import GrownTree, Histograms, Units, grow_tree
from lmart.kernels import histogram as sums
from lmart.kernels import parting, sampling
from lmart.leaves import LocalLeaves, Partition
from lmart.objectives import Gradients
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Signs = npt.NDArray[np.int8]

CHUNK = 32_768  # rows in one piece of work


def grow_round(
    binned: BinnedFeatures,
    gradients: Gradients,
    settings: TrainSettings,
    share: float,
    round_number: int,
    pool: WorkerPool,
    scores: Sequence[Floats],
    histograms: Histograms,
    signs: Signs | None,
) -> GrownTree | None:
    """Grow one tree on a sample of the documents and add its leaf values to scores of all."""
    taken, rest = _draw(gradients, share, settings.seed, round_number, pool)
    units, packed = _pack(gradients, len(taken), pool)
    if units is None:
        return None
    leaves = LocalLeaves(binned, packed, taken, rest, pool.threads)
    features = _draw_features(binned.edges, settings, round_number)
    grown = grow_tree(leaves, binned.edges, units, settings, pool, histograms, signs, features)
    if grown is not None:
        for part in leaves.partitions:
            for one in scores:
                _add_values(part, grown, one, pool)
    return grown


def _draw_features(edges: BinEdges, settings: TrainSettings, round_number: int) -> Flags | None:
    """Return the features that a tree may split on, bool[m], None for all: those with the least numbers drawn."""
    if settings.features >= 1.0:
        return None
    numbers = np.empty(edges.n_features, np.uint64)
    sampling.mix_each(edges.columns, ~np.uint64(sampling.round_key(settings.seed, round_number)), numbers)
    taken = np.zeros(edges.n_features, np.bool_)
    taken[numbers.argsort(kind="stable")[: max(1, round(settings.features * edges.n_features))]] = True
    return taken


def _add_values(part: Partition, grown: GrownTree, scores: Floats, pool: WorkerPool) -> None:
    values = grown.tree.leaf_values
    bounds = np.array([part.bounds[leaf] for leaf in grown.leaves], np.int64)
    starts, stops = bounds[:, 0].copy(), bounds[:, 1].copy()
    ranges = chunks(len(values), -(-len(values) // (4 * pool.threads)))  # of leaves, which share no document
    calls = [(part.documents, starts[a:b], stops[a:b], values[a:b], scores) for a, b in ranges]
    pool.run(parting.add_leaf_values, calls)


def _draw(gradients: Gradients, share: float, seed: int, round_number: int, pool: WorkerPool) -> tuple[Ints, Ints]:
    """Return the rows that a tree is grown from and the rest, ascending; the gradients of the former make up for those
    of the rest, which become 0.

    Minimal variance sampling (Ibragimov and Gusev 2019): the chance of a row is size / mu, at most 1, with size
    sqrt(g^2 + h^2 / 10), and mu such that about `share` of the rows are drawn.
    """
    n = len(gradients.gradients)
    everything = np.arange(n, dtype=np.int32)
    if share >= 1.0:
        return everything, np.empty(0, np.int32)
    some = everything[:: max(1, n >> 16)]  # mu need not be exact, only the same everywhere
    sizes = np.empty(len(some))
    sampling.sizes(gradients.gradients[some], gradients.hessians[some], 0, len(some), sizes)
    threshold = sampling.threshold_for(np.sort(sizes), share)
    if threshold <= 0.0:
        return everything, np.empty(0, np.int32)
    key = np.uint64(sampling.round_key(seed, round_number))
    taken, rest = np.empty(n, np.int32), np.empty(n, np.int32)
    pieces = chunks(n, CHUNK)
    counts = pool.run(sampling.draw, [(*gradients, threshold, key, a, b, taken, rest) for a, b in pieces])
    return (
        np.concatenate([taken[a : a + k] for (a, _), k in zip(pieces, counts, strict=True)]),
        np.concatenate([rest[a : b - k] for (a, b), k in zip(pieces, counts, strict=True)]),
    )


def _pack(gradients: Gradients, n_taken: int, pool: WorkerPool) -> tuple[Units | None, Longs]:
    """Return the units, powers of two in which all sums fit 32 bits, and the packed gradients, int64[n].

    No units when there is nothing to learn from.
    """
    n = len(gradients.gradients)
    pieces = chunks(n, CHUNK)
    parts = pool.run(sums.sum_sizes, [(*gradients, a, b) for a, b in pieces])
    gradient = math.fsum(part[0] for part in parts)
    hessian = math.fsum(part[1] for part in parts)
    packed = np.empty(n, np.int64)
    if gradient == 0.0:
        return None, packed
    room = 2.0**31 - 1 - n_taken / 2  # rounding adds up to half a unit a document
    scales = [2.0 ** (math.frexp(room / total)[1] - 1) if total > 0 else 1.0 for total in (gradient, hessian)]
    largest = max(pool.run(sums.pack, [(*gradients, *scales, a, b, packed) for a, b in pieces]))
    return Units(1.0 / scales[0], 1.0 / scales[1], largest), packed
