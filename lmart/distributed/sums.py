"""What shards know of a tree and of measures, as values that the driver adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt32Array
from lmart.kernels.trees.packed_sums import restore_sums, shorten_sums
from lmart.kernels.trees.split_gain import Split
from lmart.measures import Evaluator
from lmart.measures.results import exact_sum
from lmart.training.scores import LocalScores

MOST_LONG = 8  # sums travel in 5 bytes each unless more than 1 in 8 is larger


class PlannedSplit(NamedTuple):
    """A leaf that is to be split.

    summed : the child whose histogram is likely to be asked for; None: neither
    """

    leaf: int
    left: int
    right: int
    split: Split
    summed: int | None


class DrawnRows(NamedTuple):
    """What a tree is to be grown from in a shard, or in several.

    magnitudes : sums of |gradient| and of hessian
    """

    n_sampled: int
    magnitudes: tuple[float, float]

    def plus(self, other: DrawnRows) -> DrawnRows:
        """Return those of both; the order of adding changes last digits of the magnitudes."""
        (gradients, hessians), others = self.magnitudes, other.magnitudes
        return DrawnRows(self.n_sampled + other.n_sampled, (gradients + others[0], hessians + others[1]))


class PackedRoot(NamedTuple):
    """The root of a tree in a shard, or in several."""

    largest_hessian: int
    total: int
    histogram: Int64Array

    def plus(self, other: PackedRoot) -> PackedRoot:
        """Return that of both; the histogram is overwritten."""
        np.add(self.histogram, other.histogram, out=self.histogram)
        return PackedRoot(max(self.largest_hessian, other.largest_hessian), self.total + other.total, self.histogram)


@dataclass(frozen=True, eq=False)
class SplitsDone:
    """What became of several splits in a shard, or in several.

    counts     : int64[n_splits, 2], documents on the left and right side of each
    totals     : int64[n_summed], the packed sums of the children that were asked for
    histograms : int64[n_summed, n_bins], their packed sums by bin
    """

    counts: Int64Array
    totals: Int64Array
    histograms: Int64Array

    def plus(self, other: SplitsDone) -> SplitsDone:
        """Return that of both; the arrays are overwritten."""
        np.add(self.counts, other.counts, out=self.counts)
        np.add(self.totals, other.totals, out=self.totals)
        np.add(self.histograms, other.histograms, out=self.histograms)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Say how it is written for another process: in fewer bytes where the sums allow it."""
        sums = self.histograms.reshape(-1)
        low, high = np.empty(len(sums), np.uint32), np.empty(len(sums), np.uint8)
        most = len(sums) // MOST_LONG
        places, long_sums = np.empty(most, np.int32), np.empty(most, np.int64)
        n_long = shorten_sums(sums, low, high, places, long_sums)
        if n_long < 0:
            return SplitsDone, (self.counts, self.totals, self.histograms)
        short = low, high, places[:n_long], long_sums[:n_long]
        return _restored, (self.counts, self.totals, self.histograms.shape, *short)


class Counts(NamedTuple):
    """Numbers of documents in a shard, or in several: int64 of any shape."""

    counts: Int64Array

    def plus(self, other: Counts) -> Counts:
        """Return those of both."""
        return Counts(self.counts + other.counts)


def _restored(
    counts: Int64Array,
    totals: Int64Array,
    shape: tuple[int, int],
    low: UInt32Array,
    high: UInt8Array,
    long_places: Int32Array,
    long_sums: Int64Array,
) -> SplitsDone:
    """Return what was written for another process; the arrays are those of `shorten_sums`."""
    sums = np.empty(len(low), np.int64)
    restore_sums(low, high, long_places, long_sums, sums)
    return SplitsDone(counts, totals, sums.reshape(shape))


OVERFLOW_SHIFT = -64  # power of two that values are multiplied by when their sum is too large for a number


class MeasureSums(NamedTuple):
    """The sums behind the mean of a measure: numbers whose sum is exact, as `exact_sum` returns them.

    values  : of value times weight over the queries that count, times a power of two; None: too large for a number
    """

    values: list[float] | None
    weights: list[float]


class QueriesFound(NamedTuple):
    """What a set is like, as far as its measure goes.

    nothing_relevant : no query has a relevant document
    nothing_counts   : there are weights, and no query with one above 0 has a relevant document
    """

    nothing_relevant: bool
    nothing_counts: bool


def weight_exponent(weights: Float64Array | None) -> int:
    """Return the power of two that weights are below, as `Evaluator` scales them by."""
    return 0 if weights is None else int(np.frexp(weights.max(initial=0.0))[1])


def measure_sums(
    watched: LocalScores, evaluator: Evaluator, exponents: tuple[int, int], shift: int
) -> dict[str, MeasureSums]:
    """Return the sums behind the mean of each measure over a shard's queries, its values multiplied by 2^shift.

    exponents : powers of two that the largest weight is below, of the shard and of all shards
    """
    per_query = evaluator.evaluate(watched.scores).per_query
    return {name: _sums(values, evaluator.weights, exponents, shift) for name, values in per_query.items()}


def _sums(values: Float64Array, given: Float64Array | None, exponents: tuple[int, int], shift: int) -> MeasureSums:
    """Return the sums of the values of queries, float64[n_queries], with the weights that are given."""
    counts = ~np.isnan(values)
    weights = np.ones(len(values)) if given is None else given
    weights = np.ldexp(weights, exponents[0] - exponents[1])[counts]
    products = values[counts] * weights if given is not None else values[counts]
    try:
        of_values = exact_sum(np.ldexp(products, shift).tolist())
    except OverflowError:
        of_values = None
    return MeasureSums(of_values, exact_sum(weights.tolist()))
