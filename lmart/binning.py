"""BinnedFeatures: features as small codes, the only form that training looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import CHUNK, BinEdges, CellArrays, Codes, Floats, Ints, Longs, fit_bin_edges
from lmart.dataset import Counted, RankingDataset, SparseRows
from lmart.kernels import binning as kernels
from lmart.threads import WorkerPool, chunks

CODED = 2_048  # rows whose codes are one piece of work


class Coder:
    """Turns rows into bin codes.

    columns : int32[n_columns], the training column of each column of the rows, -1: unknown there
    """

    def __init__(self, edges: BinEdges, columns: Ints, pool: WorkerPool) -> None:
        self._pool = pool
        self._edges = edges
        grid = np.full((edges.n_features, 256), np.inf)
        for f, (start, stop) in enumerate(pairwise(edges.edge_offsets)):
            grid[f, 1 : 1 + stop - start] = edges.edges[start:stop]
        self._grid = grid.ravel()
        self.set_columns(columns)

    def set_columns(self, columns: Ints) -> None:
        """Say anew what the columns of the rows are."""
        edges = self._edges
        place = np.full(int(edges.columns.max(initial=-1)) + 1, -1, np.int32)
        place[edges.columns] = np.arange(edges.n_features)
        known = (columns >= 0) & (columns < len(place))
        self._used = np.where(known, place[np.where(known, columns, 0)] if len(place) else -1, -1).astype(np.int32)

    def code(self, pieces: Sequence[tuple[CellArrays, int, int, int, Codes]]) -> None:
        """Write codes: of each piece (arrays, start, stop, shift, out) rows start..stop into out[:, start + shift ...].

        arrays : offsets, column_starts, columns and values; out : uint8[m, ...]
        """
        fixed = (self._used, self._grid, self._edges.missing_codes, self._edges.absent_codes)
        calls = [
            (*arrays, *fixed, a, b, shift, out)
            for arrays, start, stop, shift, out in pieces
            for a, b in pairwise([*range(start, stop, CODED), stop])
        ]
        self._pool.run(kernels.code_cells, calls)


def cell_arrays(rows: SparseRows) -> CellArrays:
    """Return the rows as the kernels take them."""
    return rows.offsets, rows.offsets[:-1], rows.columns, rows.values


def code_features(dataset: RankingDataset, edges: BinEdges, columns: Ints, pool: WorkerPool) -> Codes:
    """Return the bin codes of all documents, uint8[m, n], one feature after the other.

    columns : int32[dataset.n_features], the training column of each of the dataset's columns, -1: unknown there
    """
    codes = np.empty((edges.n_features, dataset.n_documents), np.uint8)
    Coder(edges, columns, pool).code([(cell_arrays(dataset.features), 0, dataset.n_documents, 0, codes)])
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


def lay_out(edges: BinEdges, codes: Codes, pool: WorkerPool) -> BinnedFeatures:
    """Lay the training documents' codes out for growing."""
    n = codes.shape[1]
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


def bin_features(dataset: RankingDataset, edges: BinEdges, pool: WorkerPool) -> BinnedFeatures:
    """Code the training documents and lay them out for growing."""
    return lay_out(edges, code_features(dataset, edges, np.arange(dataset.n_features, dtype=np.int32), pool), pool)


@dataclass(frozen=True)
class BinnedDataset(Counted):
    """A training set of which only the bins are left; see RankingDataset for what else there is.

    features : BinnedFeatures of n documents; `features.edges.columns` are positions in `feature_ids`
    """

    features: BinnedFeatures
    feature_ids: Longs
    labels: Floats
    query_offsets: Longs
    feature_names: tuple[str, ...] | None = None
    input_rows: Longs | None = None
    source: str = "data"
    table_features: Mapping[str, Longs] = field(default_factory=dict, compare=False)


def bin_dataset(dataset: RankingDataset, max_bins: int, absent: str, seed: int, pool: WorkerPool) -> BinnedDataset:
    """Choose bin edges for a training set in memory, as `fit_bin_edges`, and bin it."""
    edges = fit_bin_edges(dataset, max_bins, absent, seed, pool)
    return BinnedDataset(
        bin_features(dataset, edges, pool),
        dataset.feature_ids,
        dataset.labels,
        dataset.query_offsets,
        dataset.feature_names,
        dataset.input_rows,
        dataset.source,
        dataset.table_features,
    )
