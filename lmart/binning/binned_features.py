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
from lmart.data.growable_array import GrowableArray
from lmart.kernels.row_arrays import SharedColumnRows
from lmart.kernels.trees import bin_codes as kernels
from lmart.kernels.trees import row_bins as row_kernels
from lmart.threads import WorkerPool, chunks

CODED = 2_048  # rows binned in one piece of work
ONE_THREAD = WorkerPool(1)  # without workers, so it serves many callers at a time
COUNTED = 1_024  # features whose documents are counted at a time


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
        self._features = features_of_columns(self._edges, columns)

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


def features_of_columns(edges: BinEdges, columns: Int32Array) -> Int32Array:
    """Return the feature in bins of each column of rows, int32[n_columns], -1 where there is none.

    columns : int32[n_columns], the training column of each column of the rows, -1 where training did not have it
    """
    features = np.full(int(edges.columns.max(initial=-1)) + 1, -1, np.int32)
    features[edges.columns] = np.arange(edges.n_features)
    has_feature = (columns >= 0) & (columns < len(features))
    found = features[np.where(has_feature, columns, 0)] if len(features) else -1
    return np.where(has_feature, found, -1).astype(np.int32)


def row_arrays(rows: SparseRows) -> SharedColumnRows:
    """Return the rows as the kernels of bins take them."""
    return SharedColumnRows(rows.offsets, rows.offsets[:-1], rows.columns, rows.values)


class CodedRows(NamedTuple):
    """The bins of n rows row by row, but for those of cells that are not written, as `code_row_cells` writes them.

    offsets : int64[n + 1], the codes of row r are codes[offsets[r]:offsets[r + 1]], ascending
    codes   : uint32[...]
    """

    offsets: Int64Array
    codes: UInt32Array


class RowCoder:
    """Finds the bins of rows, and keeps them row by row."""

    def __init__(self, edges: BinEdges, pool: WorkerPool) -> None:
        self._edges, self._pool = edges, pool
        self._lengths, self._codes = GrowableArray(np.int64), GrowableArray(np.uint32)
        self._lengths.extend(1)[0] = 0
        self.set_columns(np.zeros(0, np.int32))

    def set_columns(self, columns: Int32Array) -> None:
        """Set the training column of each column of the rows, int32[n_columns], -1 where training did not have it."""
        edges = self._edges
        features = features_of_columns(edges, columns)
        self._coding = row_kernels.RowCoding(features, edges.edges, edges.edge_offsets, edges.absent_bins)

    def add(self, parts: Sequence[SharedColumnRows]) -> None:
        """Append the rows of adjacent parts."""
        first_row, end = len(self._lengths), len(self._codes)
        self._lengths.extend(sum(len(rows.column_starts) for rows in parts))
        self._codes.extend(sum(int(rows.offsets[-1] - rows.offsets[0]) for rows in parts))
        lengths, codes = self._lengths.view[first_row:], self._codes.view
        calls, starts, row, start = [], [], 0, end
        for rows in parts:
            for first, last in chunks(len(rows.column_starts), CODED):
                n, n_cells = last - first, int(rows.offsets[last] - rows.offsets[first])
                calls.append((rows, self._coding, first, last, lengths[row : row + n], codes[start : start + n_cells]))
                starts.append(start)
                row, start = row + n, start + n_cells
        for start, count in zip(starts, self._pool.run(row_kernels.code_row_cells, calls), strict=True):
            codes[end : end + count] = codes[start : start + count]
            end += count
        self._codes.shrink(end)

    def finish(self) -> CodedRows:
        """Return all rows."""
        return CodedRows(np.cumsum(self._lengths.finish()), self._codes.finish())


class CodedBins(NamedTuple):
    """The bins of the training documents before they are laid out.

    columns : uint8[k, n], of the features whose bins are not kept row by row alone, one feature after the other
    rows    : those of the other features; None: there are none
    """

    columns: UInt8Array
    rows: CodedRows | None


class TrainingCoder:
    """Finds the bins of n training documents, which are added in their order.

    columns : int32[n_columns], the training column of each column of the rows
    """

    def __init__(self, edges: BinEdges, columns: Int32Array, n: int, pool: WorkerPool) -> None:
        is_column = ~edges.in_rows
        self._bins = np.empty((int(is_column.sum()), n), np.uint8)
        of_columns = edges if is_column.all() else edges.only(is_column)
        self._coder = Coder(of_columns, columns, pool) if len(self._bins) else None
        self._rows = None if is_column.all() else RowCoder(edges, pool)
        if self._rows is not None:
            features = features_of_columns(edges, columns)
            self._rows.set_columns(np.where(edges.in_rows[features] & (features >= 0), columns, -1).astype(np.int32))
        self._n = 0

    def add(self, parts: Sequence[SharedColumnRows]) -> None:
        """Append the rows of adjacent parts."""
        pieces = []
        for rows in parts:
            n = len(rows.column_starts)
            pieces.append(RowsToCode(rows, 0, n, self._n, self._bins))
            self._n += n
        if self._coder is not None:
            self._coder.code(pieces)
        if self._rows is not None:
            self._rows.add(parts)

    def finish(self) -> CodedBins:
        """Return the bins of all documents."""
        return CodedBins(self._bins, None if self._rows is None else self._rows.finish())


def code_features(dataset: Unbinned, edges: BinEdges, pool: WorkerPool) -> CodedBins:
    """Return the bins of all documents of the training set."""
    rows, n = dataset.features, len(dataset.labels)
    coder = TrainingCoder(edges, np.arange(len(dataset.feature_ids), dtype=np.int32), n, pool)
    for first, last in chunks(n, 8 * CHUNK):
        coder.add([row_arrays(rows.between(first + a, first + b)) for a, b in chunks(last - first, CHUNK)])
    return coder.finish()


@dataclass(frozen=True)
class BinnedFeatures:
    """The training documents in bins: row by row to sum histograms, and feature by feature to split leaves.

    Features that few rows have are split by their bins in rows; see `kept_in_rows`.
    bins               : uint8[k, n], of the other features
    places             : int32[m], the place of a feature in `bins`, -1 where it has none
    bin_counts         : int64[n_bins], documents in each bin, the bins of all features end to end
    most_frequent_bins : uint8[m], left out of `other_bins`; a histogram recovers them from the leaf's total
    row_offsets        : int64[n + 1], the other bins of row r are other_bins[row_offsets[r]:row_offsets[r + 1]]
    other_bins         : uint16 or uint32[...], bin_offsets[f] + bin where the bin is not the most frequent one of f,
                         ascending in a row
    """

    edges: BinEdges
    bins: UInt8Array
    places: Int32Array
    bin_counts: Int64Array
    most_frequent_bins: UInt8Array
    row_offsets: Int64Array
    other_bins: UInt16Array | UInt32Array

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return int(self.bins.shape[1])

    def bins_of_rows(self, feature: int, documents: Int32Array, pool: WorkerPool = ONE_THREAD) -> UInt8Array:
        """Return the bins of a feature, uint8[n], of which those of `documents` hold.

        documents : int32[k], rows
        """
        place = int(self.places[feature])
        if place >= 0:
            column: UInt8Array = self.bins[place]
            return column
        found = np.empty(self.n_documents, np.uint8)
        first, last = self.edges.bin_offsets[feature : feature + 2].tolist()
        codes = (first, last, int(self.most_frequent_bins[feature]))
        fixed = (documents, self.row_offsets, self.other_bins, codes)
        pieces = chunks(len(documents), CHUNK)
        pool.run(row_kernels.find_bins, [(*fixed, start, stop, found) for start, stop in pieces])
        return found


def most_frequent_of(edges: BinEdges, bin_counts: Int64Array) -> UInt8Array:
    """Return the bin of each feature that most documents are in, uint8[m], the first of equal ones.

    bin_counts : int64[n_bins], documents in each bin, those of all features end to end
    """
    starts = edges.bin_offsets[:-1]
    if not len(starts):
        return np.zeros(0, np.uint8)
    largest = np.repeat(np.maximum.reduceat(bin_counts, starts), np.diff(edges.bin_offsets))
    places = np.flatnonzero(bin_counts == largest)
    return (places[np.searchsorted(places, starts)] - starts).astype(np.uint8)


def can_be_split(edges: BinEdges, bin_counts: Int64Array, min_documents: int) -> BoolArray:
    """Return whether enough documents are not in a feature's most frequent bin, bool[m].

    bin_counts    : int64[n_bins], documents in each bin, those of all features end to end
    min_documents : fewest on each side of a split
    """
    starts = edges.bin_offsets[:-1]
    if not len(starts):
        return np.zeros(0, np.bool_)
    others = np.add.reduceat(bin_counts, starts) - np.maximum.reduceat(bin_counts, starts)
    enough: BoolArray = others >= min_documents
    return enough


def count_bins(edges: BinEdges, coded: CodedBins, pool: WorkerPool) -> Int64Array:
    """Return the documents in each bin, int64[n_bins], those of all features end to end."""
    counts = np.zeros(edges.n_bins, np.int64)
    widths, starts = np.diff(edges.bin_offsets), edges.bin_offsets[:-1]
    for first, last in chunks(len(coded.columns), COUNTED):
        of_columns = np.zeros((last - first, 256), np.int64)
        pool.run(kernels.count_bins, list(zip(coded.columns[first:last], of_columns, strict=True)))
        for f, own in zip(np.flatnonzero(~edges.in_rows)[first:last].tolist(), of_columns, strict=True):
            counts[starts[f] : starts[f] + widths[f]] = own[: widths[f]]
    if coded.rows is not None:
        offsets, codes = coded.rows
        of_codes = [np.zeros(int(edges.code_starts[-1]), np.int64) for _ in range(pool.threads)]
        calls = [(codes, start, stop) for start, stop in chunks(len(codes), 1 << 20)]
        pool.run(row_kernels.count_codes, calls, of_codes[: min(pool.threads, max(1, len(calls)))])
        places = places_of_codes(edges)
        has_place = places >= 0
        counts[places[has_place]] = np.sum(of_codes, axis=0)[has_place]
        absent = starts + edges.absent_bins
        of_absent = len(offsets) - 1 - np.add.reduceat(counts, starts)
        counts[absent[edges.in_rows]] = of_absent[edges.in_rows]
    return counts


def places_of_codes(edges: BinEdges) -> Int32Array:
    """Return where the bin of each code is in a histogram, int32[n_codes], -1 where features kept in rows have none."""
    feature = np.repeat(np.arange(edges.n_features), np.diff(edges.code_starts))
    bins = np.arange(len(feature)) - edges.code_starts[feature]
    widths = np.diff(edges.bin_offsets)
    is_bin = edges.in_rows[feature] & (bins < widths[feature])
    return np.where(is_bin, edges.bin_offsets[feature] + bins, -1).astype(np.int32)


def lay_out(
    edges: BinEdges, coded: CodedBins, min_documents: int, pool: WorkerPool, counts_of_all: Int64Array | None = None
) -> BinnedFeatures:
    """Return the training documents laid out for growing trees, in the features that can be split.

    coded         : overwritten
    min_documents : fewest on each side of a split
    counts_of_all : int64[n_bins], of the whole data if this is a part of it: all parts leave out the same bins
    """
    bins, rows = coded
    bin_counts = count_bins(edges, coded, pool)
    counts_of_all = bin_counts if counts_of_all is None else counts_of_all
    most_frequent = most_frequent_of(edges, counts_of_all)
    kept = can_be_split(edges, counts_of_all, min_documents)
    left = edges
    if not kept.all():
        is_kept_column = kept[~edges.in_rows]
        for place, column in enumerate(np.flatnonzero(is_kept_column).tolist()):
            bins[place] = bins[column]
        left, bins = edges.only(kept), bins[: is_kept_column.sum()]
        bin_counts = bin_counts[np.repeat(kept, np.diff(edges.bin_offsets))]
        most_frequent = most_frequent[kept]
    places = np.where(left.in_rows, -1, np.cumsum(~left.in_rows) - 1).astype(np.int32)
    if rows is None:
        listed = _list_columns(left, bins, most_frequent, pool)
    else:
        listed = _list_mixed((edges, left), kept, (bins, most_frequent), rows, pool)
    return BinnedFeatures(left, bins, places, bin_counts, most_frequent, *listed)


def _list_columns(
    edges: BinEdges, bins: UInt8Array, most_frequent: UInt8Array, pool: WorkerPool
) -> tuple[Int64Array, UInt16Array | UInt32Array]:
    """Return `row_offsets` and `other_bins` where all features have columns."""
    n = bins.shape[1]
    row_offsets = np.zeros(n + 1, np.int64)
    ranges = chunks(n, CHUNK)
    pool.run(kernels.count_other_bins, [(bins, most_frequent, start, stop, row_offsets[1:]) for start, stop in ranges])
    np.cumsum(row_offsets, out=row_offsets)
    other_bins = _room(edges, row_offsets)
    calls = [(bins, most_frequent, edges.bin_offsets, row_offsets, start, stop, other_bins) for start, stop in ranges]
    pool.run(kernels.list_other_bins, calls)
    return row_offsets, other_bins


def _list_mixed(
    before_and_after: tuple[BinEdges, BinEdges],
    kept: BoolArray,
    columns: tuple[UInt8Array, UInt8Array],
    rows: CodedRows,
    pool: WorkerPool,
) -> tuple[Int64Array, UInt16Array | UInt32Array]:
    """Return `row_offsets` and `other_bins` where some features have no columns.

    before_and_after : edges of the coded features, and of those that are left
    kept    : bool[m], whether a feature is left
    columns : bins, uint8[k, n], of features that are left, and most frequent bins, uint8[m left]
    """
    edges, left = before_and_after
    places = np.full(int(edges.code_starts[-1]), -1, np.int32)
    places[np.repeat(kept, np.diff(edges.code_starts))] = places_of_codes(left)
    bins, most_frequent = columns
    is_column = ~left.in_rows
    mixed = row_kernels.MixedBins(bins, most_frequent[is_column], left.bin_offsets[:-1][is_column], *rows, places)
    n = bins.shape[1]
    row_offsets = np.zeros(n + 1, np.int64)
    ranges = chunks(n, CHUNK)
    pool.run(row_kernels.count_mixed_bins, [(mixed, start, stop, row_offsets[1:]) for start, stop in ranges])
    np.cumsum(row_offsets, out=row_offsets)
    other_bins = _room(left, row_offsets)
    pool.run(row_kernels.list_mixed_bins, [(mixed, start, stop, row_offsets, other_bins) for start, stop in ranges])
    return row_offsets, other_bins


def _room(edges: BinEdges, row_offsets: Int64Array) -> UInt16Array | UInt32Array:
    """Return room for `other_bins`."""
    return np.empty(row_offsets[-1], np.uint16 if edges.n_bins <= 1 << 16 else np.uint32)


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
