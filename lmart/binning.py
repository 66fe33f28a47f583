"""BinEdges and BinnedFeatures: features as small codes, the only form that training looks at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lmart.dataset import RankingDataset
from lmart.kernels import binning as kernels
from lmart.kernels import sampling
from lmart.threads import WorkerPool, chunks

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

SAMPLE_LIMIT = 200_000  # rows that bin edges are chosen from
CHUNK = 16_384  # rows in one piece of work


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


def fit_bin_edges(dataset: RankingDataset, max_bins: int, absent: str, seed: int, pool: WorkerPool) -> BinEdges:
    """Choose the bin edges of each feature from a sample of rows that depends on row numbers and seed only.

    max_bins : 2..255, bins of numbers; missing values have their own besides. absent : 'zero' or 'missing'.
    A feature without two bins is left out.
    """
    rows, n_columns = dataset.features, dataset.n_features
    n = dataset.n_documents
    sample = np.empty(min(n, SAMPLE_LIMIT), np.int64)
    sample = sample[: sampling.sample_rows(n, SAMPLE_LIMIT, seed, sample)]
    all_counts, all_missing = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
    kernels.count_cells(np.arange(n), rows.offsets, rows.columns, rows.values, all_counts, all_missing)
    counts = np.zeros(n_columns, np.int64)
    missing = np.zeros(n_columns, np.int64)
    kernels.count_cells(sample, rows.offsets, rows.columns, rows.values, counts, missing)
    starts = np.concatenate([[0], np.cumsum(counts)])
    cells = np.empty(starts[-1])
    kernels.gather_cells(sample, rows.offsets, rows.columns, rows.values, starts[:-1].copy(), cells)

    zeros = len(sample) - counts - missing if absent == "zero" else np.zeros(n_columns, np.int64)
    if absent == "missing":
        all_missing = n - all_counts
    found = [np.empty(max_bins) for _ in range(n_columns)]
    own = [cells[starts[c] : starts[c + 1]] for c in range(n_columns)]
    pool.run(np.ndarray.sort, [(one,) for one in own])
    n_edges = pool.run(kernels.fit_edges, [(own[c], int(zeros[c]), max_bins, found[c]) for c in range(n_columns)])
    columns = [c for c in range(n_columns) if n_edges[c] + (all_missing[c] > 0) > 0 and len(own[c]) + zeros[c] > 0]
    edges = [found[c][: n_edges[c]] for c in columns]
    zero_codes = np.array([np.searchsorted(e, 0.0) for e in edges], np.uint8)
    edge_offsets = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
    absent_codes = zero_codes if absent == "zero" else (np.diff(edge_offsets) + 1).astype(np.uint8)
    infinite = np.bincount(rows.columns[np.isinf(rows.values)], minlength=n_columns)
    return BinEdges(
        np.array(columns, np.int32),
        np.concatenate(edges) if edges else np.zeros(0),
        edge_offsets,
        all_missing[columns] > 0,
        infinite[columns] == 0,
        absent_codes,
        zero_codes,
    )


def code_features(dataset: RankingDataset, edges: BinEdges, columns: Ints, pool: WorkerPool) -> Codes:
    """Return the bin codes of all documents, uint8[m, n], one feature after the other.

    columns : int32[dataset.n_features], the training column of each of the dataset's columns, -1: unknown there
    """
    place = np.full(int(edges.columns.max(initial=-1)) + 1, -1, np.int32)
    place[edges.columns] = np.arange(edges.n_features)
    known = (columns >= 0) & (columns < len(place))
    used = np.where(known, place[np.where(known, columns, 0)] if len(place) else -1, -1).astype(np.int32)
    codes = np.empty((edges.n_features, dataset.n_documents), np.uint8)
    rows = dataset.features
    grid = np.full((edges.n_features, 256), np.inf)
    for f, (start, stop) in enumerate(pairwise(edges.edge_offsets)):
        grid[f, 1 : 1 + stop - start] = edges.edges[start:stop]
    arrays = (rows.offsets, rows.columns, rows.values, used, grid.ravel(), edges.missing_codes, edges.absent_codes)
    pool.run(kernels.code_cells, [(*arrays, start, stop, codes) for start, stop in chunks(dataset.n_documents, CHUNK)])
    return codes


@dataclass(frozen=True)
class BinnedFeatures:
    """The training documents in bins, twice: feature by feature to part them, row by row to add them up.

    edges        : BinEdges of m features
    codes        : uint8[m, n]
    code_counts  : int64[m, 256], documents with each code
    common_codes : uint8[m], each feature's most frequent code; a histogram gets that bin from the leaf's total
    row_offsets  : int64[n + 1]
    uncommon     : uint16 or uint32[...], row by row bin_offsets[f] + code where the code is not the common one
    """

    edges: BinEdges
    codes: Codes
    code_counts: Longs
    common_codes: Codes
    row_offsets: Longs
    uncommon: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

    @property
    def n_documents(self) -> int:
        return int(self.codes.shape[1])


def bin_features(dataset: RankingDataset, edges: BinEdges, pool: WorkerPool) -> BinnedFeatures:
    """Code the training documents and lay them out for growing."""
    codes = code_features(dataset, edges, np.arange(dataset.n_features, dtype=np.int32), pool)
    n = dataset.n_documents
    code_counts = np.zeros((edges.n_features, 256), np.int64)
    pool.run(kernels.count_codes, list(zip(codes, code_counts, strict=True)))
    common_codes = code_counts.argmax(axis=1).astype(np.uint8)
    row_offsets = np.zeros(n + 1, np.int64)
    ranges = chunks(n, CHUNK)
    pool.run(kernels.count_uncommon, [(codes, common_codes, start, stop, row_offsets[1:]) for start, stop in ranges])
    np.cumsum(row_offsets, out=row_offsets)
    uncommon: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    uncommon = np.empty(row_offsets[-1], np.uint16 if edges.n_bins <= 1 << 16 else np.uint32)
    arrays = (codes, common_codes, edges.bin_offsets, row_offsets)
    pool.run(kernels.list_uncommon, [(*arrays, start, stop, uncommon) for start, stop in ranges])
    return BinnedFeatures(edges, codes, code_counts, common_codes, row_offsets, uncommon)
