"""The rows that bin edges are chosen from, and counts of the cells of each column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.data.growable_array import GrowableArray
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.row_arrays import RowArrays, SharedColumnRows
from lmart.kernels.trees import bin_edges as kernels
from lmart.kernels.trees import edge_sample
from lmart.threads import WorkerPool, chunks

SAMPLE_LIMIT = 200_000  # rows that bin edges are chosen from
CHUNK = 16_384  # rows in one piece of work


class _ChosenRows(NamedTuple):
    """The rows of one block that are in the sample.

    block      : SparseRows
    first_row  : number of the block's first row
    chosen     : int64[n_rows], places in the block
    n_rows, n_cells, n_columns : as `edge_sample.choose_rows` counted
    """

    block: SparseRows
    first_row: int
    chosen: Int64Array
    n_rows: int
    n_cells: int
    n_columns: int


def least_halvings(n_rows: int) -> int:
    """Return a number of halvings that is practically certain to happen.

    Each halving keeps a row with probability 1/2: more than 12 standard deviations above the limit is too many rows.
    """
    halvings = 0
    while n_rows / 2**halvings > SAMPLE_LIMIT + 12 * math.sqrt(SAMPLE_LIMIT):
        halvings += 1
    return halvings


class RowSample:
    """The rows that bin edges are chosen from. Whether a row is in it depends on the row number and the seed alone.

    When it has more rows than its limit, about half of them are dropped. Rows are stored like SparseRows, but a row
    with the same columns as the row before shares them.
    seed     : of the training
    halvings : how often it is halved before the first row is added
    limit    : the largest number of rows; None: SAMPLE_LIMIT
    """

    def __init__(self, seed: int, halvings: int = 0, limit: int | None = None) -> None:
        self._limit = SAMPLE_LIMIT if limit is None else limit
        self._key = np.uint64(mix_bits(np.uint64(seed)))
        self._halvings = halvings
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
    def halvings(self) -> int:
        """How often about half of the rows were dropped."""
        return self._halvings

    def move(self, first_row: int) -> None:
        """Add to the number of each row, of a sample that has every row."""
        self._row_numbers.view[:] += first_row

    def halve_to(self, halvings: int) -> None:
        """Drop rows until the sample was halved so often."""
        while self._halvings < halvings:
            self._halve()

    @property
    def rows(self) -> SharedColumnRows:
        """The rows of the sample, as the kernels take them; valid until rows are added."""
        return SharedColumnRows(self._offsets.view, self._column_starts.view, self._columns.view, self._values.view)

    def to_rows(self) -> SparseRows:
        """Return the rows of the sample as rows of their own."""
        rows = self.rows
        sizes = np.diff(rows.offsets)
        places = np.arange(len(rows.values)) + np.repeat(rows.column_starts - rows.offsets[:-1], sizes)
        return SparseRows(rows.offsets.copy(), rows.columns[places], rows.values.copy())

    def expect(self, n_rows: int) -> None:
        """Reserve memory for the sample of about `n_rows` rows in all."""
        if len(self):
            share = min(n_rows, self._limit + self._limit // 16) / len(self)
            for array in (self._row_numbers, self._offsets, self._column_starts, self._columns, self._values):
                array.expect(int(len(array) * share * 1.1) + 1000)

    def add(self, blocks: Sequence[SparseRows], first_row: int, pool: WorkerPool) -> None:
        """Add the rows of adjacent blocks."""
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
            slices = edge_sample.SampleSlices(
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
        pool.run(edge_sample.copy_chosen, calls)
        while len(self) > self._limit:
            self._halve()

    def _choose(self, blocks: Sequence[SparseRows], first_row: int, pool: WorkerPool) -> list[_ChosenRows]:
        """Return which rows of adjacent blocks are in the sample."""
        first_rows = np.cumsum([first_row, *map(len, blocks)]).tolist()[:-1]
        chosen = [np.empty(len(block), np.int64) for block in blocks]
        calls = [
            (block.offsets, block.columns, first, self._key, self._halvings, places)
            for block, first, places in zip(blocks, first_rows, chosen, strict=True)
        ]
        counts = pool.run(edge_sample.choose_rows, calls)
        return [
            _ChosenRows(block, first, places[:n_rows], n_rows, n_cells, n_columns)
            for block, first, places, (n_rows, n_cells, n_columns) in zip(
                blocks, first_rows, chosen, counts, strict=True
            )
        ]

    def _halve(self) -> None:
        """Drop about half of the rows."""
        self._halvings += 1
        kept = edge_sample.thin_rows(self._row_numbers.view, self.rows, self._key, self._halvings)
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
        """Count the cells of further rows."""
        workers = self._of_workers
        workers += [np.zeros((3, 0), np.int64) for _ in range(pool.threads - len(workers))]
        for i, counts in enumerate(workers):
            if counts.shape[1] < n_columns:  # twice as many, so that this is rarely done
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
            n_counted = min(n_columns, counts.shape[1])
            total[:, :n_counted] += counts[:, :n_counted]
        return total


def _count_cells(counts: Int64Array, columns: Int32Array, values: Float64Array) -> None:
    kernels.count_cells(columns, values, counts[0], counts[1], counts[2])
