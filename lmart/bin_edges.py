"""BinEdges: where the values of each feature are cut into bins, and the sample of rows that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.dataset import RankingDataset, SparseRows
from lmart.growing import GrowingArray
from lmart.kernels import binning as kernels
from lmart.kernels import sampling
from lmart.threads import WorkerPool, chunks

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
CellArrays = tuple[Longs, Longs, Ints, Floats]

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
    absent_codes : uint8[m], the code of a document in which the index is not written
    zero_codes   : uint8[m], the code of zero
    """

    columns: Ints
    edges: Floats
    edge_offsets: Longs
    has_missing: Flags
    all_finite: Flags
    absent_codes: Codes
    zero_codes: Codes

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @cached_property
    def missing_codes(self) -> Codes:
        """uint8[m], the code of a missing value, whether or not the feature has a bin for it."""
        return (np.diff(self.edge_offsets) + 1).astype(np.uint8)

    @cached_property
    def bin_offsets(self) -> Longs:
        """int64[m + 1], where each feature's bins start when all are laid end to end."""
        widths = np.diff(self.edge_offsets) + 1 + self.has_missing
        return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)

    @property
    def n_bins(self) -> int:
        return int(self.bin_offsets[-1])

    def threshold(self, feature: int, code: int) -> float:
        """Return t such that x <= t iff bin(x) <= code; above every number when code is the last bin."""
        at = int(self.edge_offsets[feature]) + code
        return float(self.edges[at]) if at < self.edge_offsets[feature + 1] else float(np.finfo(np.float64).max)


class RowSample:
    """The rows that bin edges are chosen from, decided row by row by number and seed; it takes rows as they come.

    There are at most SAMPLE_LIMIT: while there are more, about half of them are dropped. Rows are kept like SparseRows,
    but a row with the same columns as the one before has no columns of its own.
    """

    def __init__(self, seed: int) -> None:
        self._key = np.uint64(sampling.mix(np.uint64(seed)))
        self._halvings = 0
        self._rows = GrowingArray(np.int64)
        self._offsets = GrowingArray(np.int64)
        self._column_starts = GrowingArray(np.int64)
        self._columns = GrowingArray(np.int32)
        self._values = GrowingArray(np.float64)
        self._offsets.extend(1)[0] = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def has_every_row(self) -> bool:
        """Whether the sample is all rows that it was given."""
        return not self._halvings

    @property
    def arrays(self) -> CellArrays:
        """offsets, column_starts, columns and values, as the kernels take rows."""
        return self._offsets.view, self._column_starts.view, self._columns.view, self._values.view

    def expect(self, n_rows: int) -> None:
        """Say how many rows there will be in all, about, so that room for the sample is taken at once."""
        if len(self):
            share = min(n_rows, SAMPLE_LIMIT + SAMPLE_LIMIT // 16) / len(self)
            for array in (self._rows, self._offsets, self._column_starts, self._columns, self._values):
                array.expect(int(len(array) * share * 1.1) + 1000)

    def add(self, parts: Sequence[SparseRows], first_row: int, pool: WorkerPool) -> None:
        """Take the rows of adjacent parts, of which the first one has the number `first_row`."""
        starts = np.cumsum([first_row, *map(len, parts)]).tolist()
        places = [np.empty(len(part), np.int64) for part in parts]
        calls = [
            (part.offsets, part.columns, start, self._key, self._halvings, place)
            for part, start, place in zip(parts, starts, places, strict=False)
        ]
        copies: list[tuple[Any, ...]] = []
        found = pool.run(sampling.choose_rows, calls)
        for part, start, place, counts in zip(parts, starts, places, found, strict=False):
            n_rows, n_cells, n_columns = counts
            copies.append((part, start, place[:n_rows], len(self._values), len(self._columns), counts))
            for array in (self._rows, self._offsets, self._column_starts):
                array.extend(n_rows)
            self._columns.extend(n_columns)
            self._values.extend(n_cells)
        rows, offsets, starts_of, columns, values = (
            array.view for array in (self._rows, self._offsets, self._column_starts, self._columns, self._values)
        )
        copying: list[tuple[Any, ...]] = []
        at = len(rows) - sum(counts[0] for *_, counts in copies)
        for part, start, place, cell, column, (n_rows, n_cells, n_columns) in copies:
            own = (rows[at : at + n_rows], offsets[at + 1 : at + n_rows + 1], starts_of[at : at + n_rows])
            more = (columns[column : column + n_columns], values[cell : cell + n_cells])
            copying.append((part.offsets, part.columns, part.values, place, start, cell, column, *own, *more))
            at += n_rows
        pool.run(sampling.copy_chosen, copying)
        while len(self) > SAMPLE_LIMIT:
            self._halvings += 1
            arrays = (self._rows.view, *self.arrays)
            n_rows, n_cells, n_columns = sampling.thin_rows(*arrays, self._key, self._halvings)
            for array in (self._rows, self._column_starts):
                array.shrink(n_rows)
            self._offsets.shrink(n_rows + 1)
            self._columns.shrink(n_columns)
            self._values.shrink(n_cells)


class ColumnCounts:
    """How many cells of each column are written: numbers, missing values, and infinite ones among the numbers."""

    def __init__(self) -> None:
        self._of_workers: list[Longs] = []

    def add(self, parts: Sequence[SparseRows], n_columns: int, pool: WorkerPool) -> None:
        """Count the cells of further parts; n_columns : number of columns known by now."""
        workers = self._of_workers
        workers += [np.zeros((3, 0), np.int64) for _ in range(pool.threads - len(workers))]
        for i, one in enumerate(workers):
            if one.shape[1] < n_columns:  # with room for more
                workers[i] = np.zeros((3, max(n_columns, 2 * one.shape[1])), np.int64)
                workers[i][:, : one.shape[1]] = one
        calls = [
            (part.columns[start:stop], part.values[start:stop])
            for part in parts
            for start, stop in chunks(len(part.values), 1 << 20)
        ]
        pool.run(_count_cells, calls, workers[: min(pool.threads, max(1, len(calls)))])

    def finish(self, n_columns: int) -> Longs:
        """Return int64[3, n_columns]: numbers, missing values, infinite values."""
        total = np.zeros((3, n_columns), np.int64)
        for one in self._of_workers:
            count = min(n_columns, one.shape[1])
            total[:, :count] += one[:, :count]
        return total


def _count_cells(counts: Longs, columns: Ints, values: Floats) -> None:
    kernels.count_cells(columns, values, counts[0], counts[1], counts[2])


def choose_bin_edges(
    sample: RowSample, counts: Longs, n: int, places: Ints, max_bins: int, absent: str, pool: WorkerPool
) -> BinEdges:
    """Choose the bin edges of each feature from a sample of n rows.

    counts   : int64[3, n_columns] of all rows, as ColumnCounts has them
    places   : int32[n_columns], the dataset's column of each column of the rows
    max_bins : 2..255, bins of numbers; missing values have their own besides. absent : 'zero' or 'missing'.
    A feature without two bins is left out.
    """
    n_columns = len(places)
    own = np.zeros((2, n_columns), np.int64)
    kernels.count_row_cells(*sample.arrays, own[0], own[1])
    order = np.argsort(places)  # features from here on
    numbers, missing = own[:, order]
    all_numbers, all_missing, infinite = counts[:, order]
    zeros = len(sample) - numbers - missing if absent == "zero" else np.zeros(n_columns, np.int64)
    if absent == "missing":
        all_missing = n - all_numbers
    groups = _groups(numbers, GATHERED)
    calls = [(sample.arrays, places, first, numbers[first:last], zeros[first:last], max_bins) for first, last in groups]
    found = [edges for group in pool.run(_edges_of, calls) for edges in group]
    used = [f for f in range(n_columns) if len(found[f]) + (all_missing[f] > 0) > 0 and numbers[f] + zeros[f] > 0]
    edges = [found[f] for f in used]
    zero_codes = np.array([np.searchsorted(e, 0.0) for e in edges], np.uint8)
    edge_offsets = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
    absent_codes = zero_codes if absent == "zero" else (np.diff(edge_offsets) + 1).astype(np.uint8)
    return BinEdges(
        np.array(used, np.int32),
        np.concatenate(edges) if edges else np.zeros(0),
        edge_offsets,
        all_missing[used] > 0,
        infinite[used] == 0,
        absent_codes,
        zero_codes,
    )


def _groups(sizes: Longs, wanted: int) -> list[tuple[int, int]]:
    """Return ranges of features that have together about so many cells."""
    ends = np.cumsum(sizes)
    marks = np.arange(wanted, int(ends[-1]) if len(ends) else 0, wanted)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(ends, marks) + 1, [len(sizes)]])).tolist()
    return list(pairwise(bounds))


def _edges_of(arrays: CellArrays, places: Ints, first: int, sizes: Longs, zeros: Longs, max_bins: int) -> list[Floats]:
    """Return the edges of the features first.. that have so many numbers in the sample."""
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = np.empty(starts[-1])
    kernels.gather_cells(*arrays, places, first, starts[:-1].copy(), cells)
    found = np.empty(max_bins)
    edges = []
    for f, (start, stop) in enumerate(pairwise(starts.tolist())):
        one = cells[start:stop]
        one.sort()
        edges.append(found[: kernels.fit_edges(one, int(zeros[f]), max_bins, found)].copy())
    return edges


def fit_bin_edges(dataset: RankingDataset, max_bins: int, absent: str, seed: int, pool: WorkerPool) -> BinEdges:
    """Choose the bin edges of each feature from a sample of rows that depends on row numbers and seed only.

    max_bins, absent : as in `choose_bin_edges`
    """
    rows, n = dataset.features, dataset.n_documents
    sample, counts = RowSample(seed), ColumnCounts()
    counts.add([rows], dataset.n_features, pool)
    sample.expect(n)
    for first, last in chunks(n, 8 * CHUNK):
        sample.add([rows.between(first + a, first + b) for a, b in chunks(last - first, CHUNK)], first, pool)
    places = np.arange(dataset.n_features, dtype=np.int32)
    return choose_bin_edges(sample, counts.finish(len(places)), n, places, max_bins, absent, pool)
