"""BinEdges: where the values of each feature are cut into bins, chosen from a sample of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.dataset import RankingDataset, SparseRows
from lmart.growing import GrowableArray
from lmart.kernels import bin_edges as kernels
from lmart.kernels import row_sample
from lmart.kernels.bit_mixing import mix_bits
from lmart.kernels.row_arrays import RowArrays, SharedColumnRows
from lmart.threads import WorkerPool, chunks

SAMPLE_LIMIT = 200_000  # rows that bin edges are chosen from
CHUNK = 16_384  # rows in one piece of work
GATHERED = 1 << 21  # cells whose values are sorted as one piece of work


@dataclass(frozen=True)
class BinEdges:
    """The bins of the m features that can be split. Value x is in bin b iff edges[b-1] < x <= edges[b].

    columns      : int32[m], their columns in the dataset
    edges        : float64[all edges], of all features end to end, ascending in a feature
    edge_offsets : int64[m + 1]
    has_missing  : bool[m], some document's value is missing; its bin comes after those of the numbers
    all_finite   : bool[m], no value is infinite
    absent_bins  : uint8[m], the bin of a document in which the index is not written
    zero_bins    : uint8[m], the bin of zero
    """

    columns: Int32Array
    edges: Float64Array
    edge_offsets: Int64Array
    has_missing: BoolArray
    all_finite: BoolArray
    absent_bins: UInt8Array
    zero_bins: UInt8Array

    @property
    def n_features(self) -> int:
        """The number of features that can be split."""
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

    @property
    def n_bins(self) -> int:
        """The number of bins of all features."""
        return int(self.bin_offsets[-1])

    def threshold(self, feature: int, split_bin: int) -> float:
        """Return t such that x <= t iff bin(x) <= split_bin; above every number when it is the last bin of numbers."""
        edge = int(self.edge_offsets[feature]) + split_bin
        return float(self.edges[edge]) if edge < self.edge_offsets[feature + 1] else float(np.finfo(np.float64).max)


class _ChosenRows(NamedTuple):
    """The rows of one block that are in the sample.

    block      : SparseRows
    first_row  : number of the block's first row
    chosen     : int64[n_rows], places in the block
    n_rows, n_cells, n_columns : as `row_sample.choose_rows` counted
    """

    block: SparseRows
    first_row: int
    chosen: Int64Array
    n_rows: int
    n_cells: int
    n_columns: int


class RowSample:
    """The rows that bin edges are chosen from, decided row by row by number and seed; it takes rows as they come.

    There are at most SAMPLE_LIMIT: while there are more, about half of them are dropped. Rows are kept like SparseRows,
    but a row with the same columns as the one before has no columns of its own.
    seed : of the training
    """

    def __init__(self, seed: int) -> None:
        self._key = np.uint64(mix_bits(np.uint64(seed)))
        self._halvings = 0
        self._row_numbers = GrowableArray(np.int64)
        self._offsets = GrowableArray(np.int64)
        self._column_starts = GrowableArray(np.int64)
        self._columns = GrowableArray(np.int32)
        self._values = GrowableArray(np.float64)
        self._offsets.extend(1)[0] = 0

    def __len__(self) -> int:
        return len(self._row_numbers)

    @property
    def has_every_row(self) -> bool:
        """Whether the sample is all rows that it was given."""
        return not self._halvings

    @property
    def rows(self) -> SharedColumnRows:
        """The rows of the sample, as the kernels take them; valid until rows are added."""
        return SharedColumnRows(self._offsets.view, self._column_starts.view, self._columns.view, self._values.view)

    def expect(self, n_rows: int) -> None:
        """Prepare for about so many rows in all, of which the sample keeps what it can."""
        if len(self):
            share = min(n_rows, SAMPLE_LIMIT + SAMPLE_LIMIT // 16) / len(self)
            for array in (self._row_numbers, self._offsets, self._column_starts, self._columns, self._values):
                array.expect(int(len(array) * share * 1.1) + 1000)

    def add(self, blocks: Sequence[SparseRows], first_row: int, pool: WorkerPool) -> None:
        """Take the rows of adjacent blocks, of which the first one has the number `first_row`."""
        chosen = self._choose(blocks, first_row, pool)
        first_column, first_cell = len(self._columns), len(self._values)
        n_rows = sum(picked.n_rows for picked in chosen)
        row_numbers, ends, column_starts = (
            array.extend(n_rows) for array in (self._row_numbers, self._offsets, self._column_starts)
        )
        columns = self._columns.extend(sum(picked.n_columns for picked in chosen))
        values = self._values.extend(sum(picked.n_cells for picked in chosen))
        calls = []
        row = column = cell = 0
        for picked in chosen:
            slices = row_sample.SampleSlices(
                row_numbers[row : row + picked.n_rows],
                ends[row : row + picked.n_rows],
                column_starts[row : row + picked.n_rows],
                columns[column : column + picked.n_columns],
                values[cell : cell + picked.n_cells],
                first_column + column,
                first_cell + cell,
            )
            block = RowArrays(picked.block.offsets, picked.block.columns, picked.block.values)
            calls.append((block, picked.chosen, picked.first_row, slices))
            row, column, cell = row + picked.n_rows, column + picked.n_columns, cell + picked.n_cells
        pool.run(row_sample.copy_chosen, calls)
        while len(self) > SAMPLE_LIMIT:
            self._halve()

    def _choose(self, blocks: Sequence[SparseRows], first_row: int, pool: WorkerPool) -> list[_ChosenRows]:
        """Return which rows of adjacent blocks are in the sample."""
        first_rows = np.cumsum([first_row, *map(len, blocks)]).tolist()[:-1]
        chosen = [np.empty(len(block), np.int64) for block in blocks]
        calls = [
            (block.offsets, block.columns, first, self._key, self._halvings, places)
            for block, first, places in zip(blocks, first_rows, chosen, strict=True)
        ]
        counts = pool.run(row_sample.choose_rows, calls)
        return [
            _ChosenRows(block, first, places[:n_rows], n_rows, n_cells, n_columns)
            for block, first, places, (n_rows, n_cells, n_columns) in zip(
                blocks, first_rows, chosen, counts, strict=True
            )
        ]

    def _halve(self) -> None:
        """Drop about half of the rows."""
        self._halvings += 1
        kept = row_sample.thin_rows(self._row_numbers.view, self.rows, self._key, self._halvings)
        n_rows, n_cells, n_columns = kept
        self._row_numbers.shrink(n_rows)
        self._column_starts.shrink(n_rows)
        self._offsets.shrink(n_rows + 1)
        self._columns.shrink(n_columns)
        self._values.shrink(n_cells)


class ColumnCounts:
    """How many cells of each column are written: numbers, missing values, and infinite ones among the numbers."""

    def __init__(self) -> None:
        self._of_workers: list[Int64Array] = []

    def add(self, blocks: Sequence[SparseRows], n_columns: int, pool: WorkerPool) -> None:
        """Count the cells of further rows; n_columns : number of columns known by now."""
        workers = self._of_workers
        workers += [np.zeros((3, 0), np.int64) for _ in range(pool.threads - len(workers))]
        for i, counts in enumerate(workers):
            if counts.shape[1] < n_columns:  # and further columns fit, too
                workers[i] = np.zeros((3, max(n_columns, 2 * counts.shape[1])), np.int64)
                workers[i][:, : counts.shape[1]] = counts
        calls = [
            (block.columns[start:stop], block.values[start:stop])
            for block in blocks
            for start, stop in chunks(len(block.values), 1 << 20)
        ]
        pool.run(_count_cells, calls, workers[: min(pool.threads, max(1, len(calls)))])

    def finish(self, n_columns: int) -> Int64Array:
        """Return int64[3, n_columns]: numbers, missing values, infinite values."""
        total = np.zeros((3, n_columns), np.int64)
        for counts in self._of_workers:
            known = min(n_columns, counts.shape[1])
            total[:, :known] += counts[:, :known]
        return total


def _count_cells(counts: Int64Array, columns: Int32Array, values: Float64Array) -> None:
    kernels.count_cells(columns, values, counts[0], counts[1], counts[2])


def choose_bin_edges(
    sample: RowSample,
    counts: Int64Array,
    n: int,
    features: Int32Array,
    max_bins: int,
    absent: str,
    pool: WorkerPool,
) -> BinEdges:
    """Return the bin edges of each feature, chosen from a sample of n rows. A feature without two bins is left out.

    sample   : RowSample of the rows
    counts   : int64[3, n_columns] of all rows, as ColumnCounts has them
    n        : number of all rows
    features : int32[n_columns], the dataset's column of each column of the rows
    max_bins : 2..255, bins of numbers; missing values have their own besides
    absent   : 'zero' or 'missing', what a cell that is not written means
    """
    n_columns = len(features)
    sample_counts = np.zeros((2, n_columns), np.int64)
    kernels.count_row_cells(sample.rows, sample_counts[0], sample_counts[1])
    order = np.argsort(features)  # features from here on
    numbers, missing = sample_counts[:, order]
    all_numbers, all_missing, infinite = counts[:, order]
    n_zeros = len(sample) - numbers - missing if absent == "zero" else np.zeros(n_columns, np.int64)
    if absent == "missing":
        all_missing = n - all_numbers
    calls = [
        (sample.rows, features, first, numbers[first:last], n_zeros[first:last], max_bins)
        for first, last in _groups(numbers, GATHERED)
    ]
    all_edges = [edges for group in pool.run(_edges_of, calls) for edges in group]
    has_two_bins = [len(all_edges[f]) > 0 or all_missing[f] > 0 for f in range(n_columns)]
    used = [f for f in range(n_columns) if has_two_bins[f] and numbers[f] + n_zeros[f] > 0]
    edges = [all_edges[f] for f in used]
    zero_bins = np.array([np.searchsorted(feature_edges, 0.0) for feature_edges in edges], np.uint8)
    edge_offsets = np.concatenate([[0], np.cumsum([len(feature_edges) for feature_edges in edges])]).astype(np.int64)
    absent_bins = zero_bins if absent == "zero" else (np.diff(edge_offsets) + 1).astype(np.uint8)
    return BinEdges(
        np.array(used, np.int32),
        np.concatenate(edges) if edges else np.zeros(0),
        edge_offsets,
        all_missing[used] > 0,
        infinite[used] == 0,
        absent_bins,
        zero_bins,
    )


def _groups(sizes: Int64Array, target: int) -> list[tuple[int, int]]:
    """Return ranges of features that have about `target` cells together; sizes : int64[m], cells of each feature."""
    ends = np.cumsum(sizes)
    marks = np.arange(target, int(ends[-1]) if len(ends) else 0, target)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(ends, marks) + 1, [len(sizes)]])).tolist()
    return list(pairwise(bounds))


def _edges_of(
    rows: SharedColumnRows, features: Int32Array, first: int, sizes: Int64Array, n_zeros: Int64Array, max_bins: int
) -> list[Float64Array]:
    """Return the edges of adjacent features.

    rows     : of the sample
    features : int32[n_columns], the feature of each column
    first    : the first of the features
    sizes    : int64[k], how many numbers each of the features has in the sample
    n_zeros  : int64[k], and how many zeros that are not written
    max_bins : 2..255, bins of numbers
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = np.empty(starts[-1])
    kernels.gather_cells(rows, features, first, starts[:-1].copy(), cells)
    buffer = np.empty(max_bins)
    edges = []
    for f, (start, stop) in enumerate(pairwise(starts.tolist())):
        feature_cells = cells[start:stop]
        feature_cells.sort()
        n_edges = kernels.fit_edges(feature_cells, int(n_zeros[f]), max_bins, buffer)
        edges.append(buffer[:n_edges].copy())
    return edges


def fit_bin_edges(dataset: RankingDataset, max_bins: int, absent: str, seed: int, pool: WorkerPool) -> BinEdges:
    """Return the bin edges of each feature, chosen from a sample of rows that depends on row numbers and seed only.

    max_bins : 2..255, bins of numbers; missing values have their own besides
    absent   : 'zero' or 'missing', what a cell that is not written means
    seed     : of the sample
    """
    rows, n = dataset.features, dataset.n_documents
    sample, counts = RowSample(seed), ColumnCounts()
    counts.add([rows], dataset.n_features, pool)
    sample.expect(n)
    for first, last in chunks(n, 8 * CHUNK):
        sample.add([rows.between(first + a, first + b) for a, b in chunks(last - first, CHUNK)], first, pool)
    features = np.arange(dataset.n_features, dtype=np.int32)
    return choose_bin_edges(sample, counts.finish(len(features)), n, features, max_bins, absent, pool)
