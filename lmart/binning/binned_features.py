"""BinnedFeatures: features as bins of one byte, the only form that training uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array
from lmart.binning.edge_sample import CHUNK
from lmart.binning.edges import BinEdges, fit_bin_edges
from lmart.data.categories import Categories
from lmart.data.dataset import Counted, SparseRows, Unbinned
from lmart.kernels.row_arrays import SharedColumnRows
from lmart.kernels.trees import bin_codes as kernels
from lmart.threads import WorkerPool, chunks

CODED = 2_048  # rows binned in one piece of work


class RowsToCode(NamedTuple):
    """Rows start:stop of some rows, and where their bins go.

    shift       : the bins of row r go to column r + shift of `bins`
    """

    rows: SharedColumnRows
    start: int
    stop: int
    shift: int
    bins: UInt8Array


class Coder:
    """Finds the bins of rows.

    columns : int32[n_columns], the training column of each column of the rows, -1 where training did not have it
    """

    def __init__(self, edges: BinEdges, columns: Int32Array, pool: WorkerPool) -> None:
        self._pool = pool
        self._edges = edges
        grid = np.full((edges.n_features, 256), np.inf)
        for f, (start, stop) in enumerate(pairwise(edges.edge_offsets)):
            grid[f, 1 : 1 + stop - start] = edges.edges[start:stop]
        self._grid = grid.ravel()
        self.set_columns(columns)

    def set_columns(self, columns: Int32Array) -> None:
        """Set the training column of each column of the rows, as in the constructor."""
        edges = self._edges
        features = np.full(int(edges.columns.max(initial=-1)) + 1, -1, np.int32)
        features[edges.columns] = np.arange(edges.n_features)
        has_feature = (columns >= 0) & (columns < len(features))
        features_of = features[np.where(has_feature, columns, 0)] if len(features) else -1
        self._features = np.where(has_feature, features_of, -1).astype(np.int32)

    def code(self, pieces: Sequence[RowsToCode]) -> None:
        """Write the bins of all pieces, in parallel."""
        edges = self._edges
        bin_grid = kernels.BinGrid(self._features, self._grid, edges.missing_bins, edges.absent_bins)
        calls = [
            (piece.rows, bin_grid, start, stop, piece.shift, piece.bins)
            for piece in pieces
            for start, stop in pairwise([*range(piece.start, piece.stop, CODED), piece.stop])
        ]
        self._pool.run(kernels.code_cells, calls)


def row_arrays(rows: SparseRows) -> SharedColumnRows:
    """Return the rows as the kernels of bins take them."""
    return SharedColumnRows(rows.offsets, rows.offsets[:-1], rows.columns, rows.values)


def code_features(dataset: Unbinned, edges: BinEdges, pool: WorkerPool) -> UInt8Array:
    """Return the bins of all documents of the training set, uint8[m, n], one feature after the other."""
    rows, n = dataset.features, len(dataset.labels)
    bins = np.empty((edges.n_features, n), np.uint8)
    coder = Coder(edges, np.arange(len(dataset.feature_ids), dtype=np.int32), pool)
    for first, last in chunks(n, 8 * CHUNK):
        parts = [(first + a, first + b) for a, b in chunks(last - first, CHUNK)]
        coder.code([RowsToCode(row_arrays(rows.between(a, b)), 0, b - a, a, bins) for a, b in parts])
    return bins


@dataclass(frozen=True)
class BinnedFeatures:
    """The training documents in bins, twice: feature by feature to split leaves, row by row to sum histograms.

    bins               : uint8[m, n]
    bin_counts         : int64[m, 256], documents in each bin
    most_frequent_bins : uint8[m], left out of `other_bins`; a histogram recovers them from the leaf's total
    row_offsets        : int64[n + 1], the other bins of row r are other_bins[row_offsets[r]:row_offsets[r + 1]]
    other_bins         : uint16 or uint32[...], bin_offsets[f] + bin where the bin is not the most frequent one of f
    """

    edges: BinEdges
    bins: UInt8Array
    bin_counts: Int64Array
    most_frequent_bins: UInt8Array
    row_offsets: Int64Array
    other_bins: UInt16Array | UInt32Array

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return int(self.bins.shape[1])


def count_bins(bins: UInt8Array, pool: WorkerPool) -> Int64Array:
    """Return the documents in each bin of each feature, int64[m, 256]."""
    bin_counts = np.zeros((len(bins), 256), np.int64)
    pool.run(kernels.count_bins, list(zip(bins, bin_counts, strict=True)))
    return bin_counts


def can_be_split(bin_counts: Int64Array, min_documents: int) -> BoolArray:
    """Return whether enough documents are not in a feature's most frequent bin, bool[m].

    bin_counts    : int64[m, 256], documents in each bin
    min_documents : fewest on each side of a split
    """
    enough: BoolArray = bin_counts.sum(axis=1) - bin_counts.max(axis=1) >= min_documents
    return enough


def lay_out(
    edges: BinEdges, bins: UInt8Array, min_documents: int, pool: WorkerPool, counts_of_all: Int64Array | None = None
) -> BinnedFeatures:
    """Return the training documents laid out for growing trees, in the features that can be split.

    bins          : uint8[m, n], overwritten
    min_documents : fewest on each side of a split
    counts_of_all : int64[m, 256], of the whole data if this is a part of it: all parts leave out the same bins
    """
    n = bins.shape[1]
    bin_counts = count_bins(bins, pool)
    counts_of_all = bin_counts if counts_of_all is None else counts_of_all
    most_frequent = counts_of_all.argmax(axis=1).astype(np.uint8)
    kept = can_be_split(counts_of_all, min_documents)
    if not kept.all():
        for place, f in enumerate(np.flatnonzero(kept).tolist()):
            bins[place] = bins[f]
        edges, bins = edges.only(kept), bins[: kept.sum()]
        bin_counts, most_frequent = bin_counts[kept], most_frequent[kept]
    row_offsets = np.zeros(n + 1, np.int64)
    ranges = chunks(n, CHUNK)
    pool.run(kernels.count_other_bins, [(bins, most_frequent, start, stop, row_offsets[1:]) for start, stop in ranges])
    np.cumsum(row_offsets, out=row_offsets)
    other_bins: UInt16Array | UInt32Array
    other_bins = np.empty(row_offsets[-1], np.uint16 if edges.n_bins <= 1 << 16 else np.uint32)
    calls = [(bins, most_frequent, edges.bin_offsets, row_offsets, start, stop, other_bins) for start, stop in ranges]
    pool.run(kernels.list_other_bins, calls)
    return BinnedFeatures(edges, bins, bin_counts, most_frequent, row_offsets, other_bins)


def bin_features(dataset: Unbinned, edges: BinEdges, min_documents: int, pool: WorkerPool) -> BinnedFeatures:
    """Return the training set in bins, laid out for growing trees."""
    return lay_out(edges, code_features(dataset, edges, pool), min_documents, pool)


@dataclass(frozen=True)
class BinnedDataset(Counted):
    """A training set of which only the bins are left; see RankingDataset for what else there is.

    features   : of n documents; `features.edges.columns` are positions in `feature_ids`
    categories : the features that are categories
    model_bins : by feature in bins that is a category, the bins that the model gives the documents, uint8[n], where
                 `features` has others for training
    """

    features: BinnedFeatures
    feature_ids: Int64Array
    labels: Float64Array
    query_offsets: Int64Array
    feature_names: tuple[str, ...] | None = None
    input_rows: Int64Array | None = None
    source: str = "data"
    table_features: Mapping[str, Int64Array] = field(default_factory=dict, compare=False)
    categories: tuple[Categories, ...] = ()
    model_bins: Mapping[int, UInt8Array] = field(default_factory=dict, compare=False)


def bin_dataset(
    dataset: Unbinned, max_bins: int, absent: str, min_documents: int, seed: int, pool: WorkerPool
) -> BinnedDataset:
    """Choose bin edges for a training set in memory, and return it in bins; `min_documents` as in `lay_out`."""
    edges = fit_bin_edges(dataset, max_bins, absent, min_documents, seed, pool)
    return BinnedDataset(
        bin_features(dataset, edges, min_documents, pool),
        dataset.feature_ids,
        dataset.labels,
        dataset.query_offsets,
        dataset.feature_names,
        dataset.input_rows,
        dataset.source,
        dataset.table_features,
    )
