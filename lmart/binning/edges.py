"""BinEdges: where the values of each feature are cut into bins, chosen from a sample of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.binning.edge_sample import CHUNK, ColumnCounts, RowSample
from lmart.data.dataset import Unbinned
from lmart.kernels.row_arrays import SharedColumnRows
from lmart.kernels.trees import bin_edges as kernels
from lmart.threads import WorkerPool, chunks

WIDE = 8  # bytes of columns of bins for each cell from which bins are kept row by row
GATHERED = 1 << 21  # cells whose values are sorted as one piece of work


@dataclass(frozen=True)
class BinEdges:
    """The bins of the m features that trees can split on. Value x is in bin b iff edges[b-1] < x <= edges[b].

    varying      : int32[k], columns in the dataset of all features with two bins, ascending
    columns      : int32[m], those of the m features: no split of the others leaves `min_docs` documents on each side
    edges        : float64[all edges], of all features end to end, ascending in a feature
    edge_offsets : int64[m + 1]
    has_missing  : bool[m], some document's value is missing; its bin comes after those of the numbers
    all_finite   : bool[m], no value is infinite
    absent_bins  : uint8[m], the bin of a document in which the index is not written
    zero_bins    : uint8[m], the bin of zero
    in_rows      : bool[m], its bins are kept row by row alone, as `kept_in_rows` says
    """

    varying: Int32Array
    columns: Int32Array
    edges: Float64Array
    edge_offsets: Int64Array
    has_missing: BoolArray
    all_finite: BoolArray
    absent_bins: UInt8Array
    zero_bins: UInt8Array
    in_rows: BoolArray

    @property
    def n_features(self) -> int:
        """The number of features that trees can split on."""
        return len(self.columns)

    @cached_property
    def missing_bins(self) -> UInt8Array:
        """uint8[m], the bin of a missing value, whether or not the feature has a bin for it."""
        return (np.diff(self.edge_offsets) + 1).astype(np.uint8)

    @cached_property
    def bin_offsets(self) -> Int64Array:
        """int64[m + 1], where each feature's bins start when all are laid end to end."""
        widths = np.diff(self.edge_offsets) + 1 + self.has_missing
        return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)

    @cached_property
    def code_starts(self) -> Int64Array:
        """int64[m + 1], where each feature's codes start, as `code_row_cells` writes them; missing bins have one."""
        return self.edge_offsets + 2 * np.arange(len(self.edge_offsets))

    @property
    def n_bins(self) -> int:
        """The number of bins of all features."""
        return int(self.bin_offsets[-1])

    def only(self, kept: BoolArray) -> BinEdges:
        """Return the bins of some of the features; kept : bool[m]."""
        widths = np.diff(self.edge_offsets)
        return BinEdges(
            self.varying,
            self.columns[kept],
            self.edges[np.repeat(kept, widths)],
            np.concatenate([[0], np.cumsum(widths[kept])]).astype(np.int64),
            self.has_missing[kept],
            self.all_finite[kept],
            self.absent_bins[kept],
            self.zero_bins[kept],
            self.in_rows[kept],
        )

    def bins_of(self, feature: int, values: Float64Array) -> UInt8Array:
        """Return the bin of each value of a feature, uint8[n]; nan is missing."""
        edges = self.edges[self.edge_offsets[feature] : self.edge_offsets[feature + 1]]
        return np.where(np.isnan(values), self.missing_bins[feature], np.searchsorted(edges, values)).astype(np.uint8)

    def threshold(self, feature: int, split_bin: int) -> float:
        """Return t such that x <= t iff bin(x) <= split_bin; above every number when it is the last bin of numbers."""
        edge = int(self.edge_offsets[feature]) + split_bin
        return float(self.edges[edge]) if edge < self.edge_offsets[feature + 1] else float(np.finfo(np.float64).max)


def choose_bin_edges(
    sample: RowSample,
    counts: Int64Array,
    n: int,
    features: Int32Array,
    max_bins: int,
    absent: str,
    min_documents: int,
    pool: WorkerPool,
) -> BinEdges:
    """Return the bin edges of features, chosen from a sample of n rows, but of those that `join_edges` leaves out.

    features : int32[n_columns], the dataset's column of each column of the rows
    min_documents : fewest on each side of a split
    """
    order = np.argsort(features)  # features from here on
    counts, sample_counts = counts[:, order], count_sample(sample, len(features))[:, order]
    rare = most_others(counts, absent) < min_documents
    numbers, n_zeros = sample_counts[0], count_zeros(sample_counts, len(sample), absent)
    calls = [
        (sample.rows, features, first, numbers[first:last], n_zeros[first:last], max_bins, rare[first:last])
        for first, last in feature_groups(numbers, GATHERED)
    ]
    all_edges = [edges for group in pool.run(_edges_of, calls) for edges in group]
    return join_edges(all_edges, numbers + n_zeros, counts, n, absent, min_documents)


def count_sample(sample: RowSample, n_columns: int) -> Int64Array:
    """Return the cells of each column in a sample of rows, int64[2, n_columns]: numbers, missing values."""
    counts = np.zeros((2, n_columns), np.int64)
    kernels.count_row_cells(sample.rows, counts[0], counts[1])
    return counts


def count_zeros(counts: Int64Array, n_rows: int, absent: str) -> Int64Array:
    """Return how many zeros of each feature are not written, int64[m]."""
    return n_rows - counts[0] - counts[1] if absent == "zero" else np.zeros(counts.shape[1], np.int64)


def most_others(counts: Int64Array, absent: str) -> Int64Array:
    """Return how many documents at most are not in the bin of those in which the index is not written, int64[m].

    counts : int64[3, m] of all rows, as ColumnCounts has them
    absent : 'zero' or 'missing', what a cell that is not written means
    """
    numbers, missing, _ = counts
    most: Int64Array = numbers + missing if absent == "zero" else numbers
    return most


def join_edges(
    all_edges: Sequence[Float64Array],
    n_sampled: Int64Array,
    counts: Int64Array,
    n: int,
    absent: str,
    min_documents: int,
) -> BinEdges:
    """Return the bins of all features but those without two bins, and those that have too few documents for a split.

    all_edges : of each feature; of those with too few documents, it only counts whether there are any
    n_sampled : int64[m], its numbers in the sample, those that are not written included
    counts    : int64[3, m] of all rows, as ColumnCounts has them
    min_documents : fewest on each side of a split
    """
    all_numbers, all_missing, infinite = counts
    if absent == "missing":
        all_missing = n - all_numbers
    n_edges = np.array(list(map(len, all_edges)), np.int64)
    varies = ((n_edges > 0) | (all_missing > 0)) & (n_sampled > 0)
    others = most_others(counts, absent)
    used = np.flatnonzero(varies & (others >= min_documents))
    edges = [all_edges[f] for f in used.tolist()]
    zero_bins = np.array([np.searchsorted(feature_edges, 0.0) for feature_edges in edges], np.uint8)
    edge_offsets = np.concatenate([[0], np.cumsum([len(feature_edges) for feature_edges in edges])]).astype(np.int64)
    absent_bins = zero_bins if absent == "zero" else (np.diff(edge_offsets) + 1).astype(np.uint8)
    return BinEdges(
        np.flatnonzero(varies).astype(np.int32),
        used.astype(np.int32),
        np.concatenate(edges) if edges else np.zeros(0),
        edge_offsets,
        all_missing[used] > 0,
        infinite[used] == 0,
        absent_bins,
        zero_bins,
        kept_in_rows(others[used], n),
    )


def kept_in_rows(written: Int64Array, n: int) -> BoolArray:
    """Return which features have so few cells that their bins are kept row by row alone, bool[m].

    written : int64[m], cells of each that are written      n : rows

    A column of bins takes a byte a row and is faster. So none of them, if columns of all take at most WIDE bytes for
    each cell; else those that would take more than that by themselves. The most frequent bin of these is surely that of
    the cells that are not written.
    """
    if len(written) * n <= WIDE * int(written.sum()):
        return np.zeros(len(written), np.bool_)
    in_rows: BoolArray = written * WIDE < n
    return in_rows


def feature_groups(sizes: Int64Array, target: int) -> list[tuple[int, int]]:
    """Return ranges of features that have about `target` cells together."""
    ends = np.cumsum(sizes)
    marks = np.arange(target, int(ends[-1]) if len(ends) else 0, target)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(ends, marks) + 1, [len(sizes)]])).tolist()
    return list(pairwise(bounds))


def _edges_of(
    rows: SharedColumnRows,
    features: Int32Array,
    first: int,
    sizes: Int64Array,
    n_zeros: Int64Array,
    max_bins: int,
    rare: BoolArray,
) -> list[Float64Array]:
    """Return the edges of adjacent features."""
    return edges_of_cells(gather_cells(rows, features, first, sizes), sizes, n_zeros, max_bins, rare)


def gather_cells(rows: SharedColumnRows, features: Int32Array, first: int, sizes: Int64Array) -> Float64Array:
    """Return the numbers of adjacent features in a sample, feature by feature, float64[sum of sizes]."""
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = np.empty(starts[-1])
    kernels.gather_cells(rows, features, first, starts[:-1].copy(), cells)
    return cells


def edges_of_cells(
    cells: Float64Array, sizes: Int64Array, n_zeros: Int64Array, max_bins: int, rare: BoolArray
) -> list[Float64Array]:
    """Return the edges of features.

    cells    : float64[sum of sizes], the numbers of each in a sample, feature by feature; sorted in place
    n_zeros  : int64[k], and how many zeros that are not written
    rare     : bool[k], features that are not split on: one edge stands for all
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    buffer = np.empty(max_bins)
    edges = [buffer[: int(several)] for several in _have_several(cells, starts, n_zeros).tolist()]
    for f in np.flatnonzero(~rare).tolist():
        feature_cells = cells[starts[f] : starts[f + 1]]
        feature_cells.sort()
        n_edges = kernels.fit_edges(feature_cells, int(n_zeros[f]), max_bins, buffer)
        edges[f] = buffer[:n_edges].copy()
    return edges


def _have_several(cells: Float64Array, starts: Int64Array, n_zeros: Int64Array) -> BoolArray:
    """Return whether a feature has several values, bool[k]; starts : int64[k + 1], of its cells."""
    lowest, highest = np.full((2, len(n_zeros)), np.nan)
    written = np.flatnonzero(np.diff(starts))
    if len(written):
        lowest[written] = np.minimum.reduceat(cells, starts[written])
        highest[written] = np.maximum.reduceat(cells, starts[written])
    with_zero = n_zeros > 0
    several: BoolArray = (lowest < highest) | (with_zero & ((lowest < 0.0) | (highest > 0.0)))
    return several


def fit_bin_edges(
    dataset: Unbinned, max_bins: int, absent: str, min_documents: int, seed: int, pool: WorkerPool
) -> BinEdges:
    """Return the bin edges of features, chosen from a sample of rows that depends on row numbers and seed only."""
    rows, n = dataset.features, len(dataset.labels)
    sample, counts = RowSample(seed), ColumnCounts()
    sample.expect(n)
    features = np.arange(len(dataset.feature_ids), dtype=np.int32)
    for first, last in chunks(n, 8 * CHUNK):
        parts = [rows.between(first + a, first + b) for a, b in chunks(last - first, CHUNK)]
        counts.add(parts, len(features), pool)
        sample.add(parts, first, pool)
    return choose_bin_edges(sample, counts.finish(len(features)), n, features, max_bins, absent, min_documents, pool)
