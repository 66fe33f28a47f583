"""Which documents are in which leaf while a tree grows, and their sums: all that the grower asks of its data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from lmart.array_types import BoolArray, Int32Array, Int64Array, UInt8Array
from lmart.binning.binned_features import BinnedFeatures
from lmart.kernels.trees import histogram as histograms
from lmart.kernels.trees import row_partition
from lmart.kernels.trees.histogram import NarrowedRows
from lmart.kernels.trees.leaf_expansion import GrowingRows, Range
from lmart.kernels.trees.split_gain import Split
from lmart.threads import WorkerPool, chunks

PARTITIONED = 16_384  # least documents in one piece of work when a leaf is split
ADDED = 2_048  # least documents in one piece of work when a histogram is summed; for fewer, one worker is faster
MOST_NARROWED = 0.75  # share of bins up to which copying them pays
MERGED = 32_768  # least bins, of all workers together, in one piece of work when their histograms are added


class LeafSource(Protocol):
    """The documents of a growing tree. Sums are integers, so they may be taken piece by piece and added in any order.

    Leaf 0 is the root; `split` gives its children new numbers, and the old leaf still covers the documents of both.
    Calls for different leaves may run in parallel, each with its own pool.
    """

    @property
    def most_frequent_bins(self) -> UInt8Array:
        """uint8[m], the bin of each feature that may be 0 in histograms: the leaf's total less all others is added."""
        ...

    def cost(self, leaf: int) -> int:
        """Return the cost of summing the histogram of a leaf, in any unit."""
        ...

    def histogram(self, leaf: int, out: Int64Array, pool: WorkerPool) -> int:
        """Write the packed sums by bin to out, int64[n_bins], and return the packed sum over the leaf."""
        ...

    def n_documents(self, leaf: int) -> int:
        """Return the number of documents, also of those that are not in the sums."""
        ...

    def has_enough(self, leaf: int, split: Split, min_documents: int) -> bool:
        """Return whether a split would leave at least min_documents on each side."""
        ...

    def bin_counts(self, leaf_features: Sequence[tuple[int, int]]) -> Sequence[Int64Array]:
        """Return, for each leaf and binned feature, the number of its documents in each bin, int64[256]."""
        ...

    def split(self, leaf: int, left: int, right: int, split: Split, pool: WorkerPool) -> None:
        """Give the documents of a leaf to the new leaves `left` and `right`."""
        ...


class Partition:
    """Rows in the order of their leaves: leaf l has documents[slice(*bounds[l])], ascending until it is split."""

    def __init__(self, documents: Int32Array) -> None:
        self.documents = documents
        self.bounds = {0: (0, len(documents))}
        self.buffer = np.empty(len(documents), np.int32)

    def of(self, leaf: int) -> Int32Array:
        """Return the rows of a leaf, a view."""
        return self.documents[slice(*self.bounds[leaf])]

    def split(
        self, leaf: int, left: int, right: int, bins: UInt8Array, split: Split, missing_bin: int, pool: WorkerPool
    ) -> None:
        """Split the rows of a leaf between two new leaves.

        bins : uint8[n_rows], the bin of each row in the split's feature
        """
        first, last = self.bounds[leaf]
        documents, right_documents = self.documents[first:last], self.buffer[first:last]
        pieces = shares(len(documents), PARTITIONED, pool.threads)
        calls = [
            (bins, split.bin, missing_bin, split.missing_left, documents, start, stop, right_documents)
            for start, stop in pieces
        ]
        counts = pool.run(row_partition.partition_rows, calls)
        middle = sum(counts)
        end = 0  # of the documents that are in place
        for (start, _), count in zip(pieces, counts, strict=True):
            if start != end:
                documents[end : end + count] = documents[start : start + count]
            end += count
        for (start, stop), count in zip(pieces, counts, strict=True):
            documents[end : end + stop - start - count] = right_documents[start : stop - count]
            end += stop - start - count
        self.set_children(leaf, left, right, middle)

    def set_children(self, leaf: int, left: int, right: int, n_left: int) -> None:
        """Give the first n_left rows of a leaf, as they are ordered now, to its left child, the others to the right."""
        first, last = self.bounds[leaf]
        self.bounds[left] = (first, first + n_left)
        self.bounds[right] = (first + n_left, last)


class RowNarrowing:
    """Leaves features that a tree may not split on out of the rows that histograms are summed from.

    Its buffers are used again from tree to tree. Pages that nothing is written to take no memory.
    """

    def __init__(self, binned: BinnedFeatures) -> None:
        self._binned = binned
        self._buffers: NarrowedRows | None = None

    def narrow(self, documents: Int32Array, allowed: BoolArray, pool: WorkerPool) -> NarrowedRows | None:
        """Return the rows of documents, None where all their bins cost less than copying some of them.

        documents : int32[k], rows, ascending
        """
        binned = self._binned
        most = binned.bin_counts[binned.edges.bin_offsets[:-1] + binned.most_frequent_bins]
        in_feature = binned.n_documents - most  # other bins
        if in_feature[allowed].sum() > MOST_NARROWED * in_feature.sum():
            return None
        if self._buffers is None:
            starts, stops = np.empty((2, binned.n_documents), np.int64)
            self._buffers = NarrowedRows(starts, stops, np.empty_like(binned.other_bins))
        allowed_bins = np.repeat(allowed, np.diff(binned.edges.bin_offsets))
        fixed = (documents, binned.row_offsets, binned.other_bins, allowed_bins)
        pieces = shares(len(documents), ADDED, pool.threads)
        pool.run(histograms.narrow_rows, [(*fixed, start, stop, self._buffers) for start, stop in pieces])
        return self._buffers


class LocalLeaves:
    """A LeafSource over the binned documents in this process's memory.

    packed    : int64[n], packed gradient and hessian of each document
    sampled   : int32[k], the rows that are in the sums
    unsampled : int32[n - k], those that only follow and are counted
    narrowed  : the sampled rows in the features that the tree may split on; the sums of others are not defined then.
                None: all
    """

    def __init__(
        self,
        binned: BinnedFeatures,
        packed: Int64Array,
        sampled: Int32Array,
        unsampled: Int32Array,
        threads: int,
        narrowed: NarrowedRows | None = None,
    ) -> None:
        self._binned = binned
        offsets = binned.row_offsets
        self._rows = narrowed or NarrowedRows(offsets[:-1], offsets[1:], binned.other_bins)
        self._packed = packed
        self._sampled, self._unsampled = Partition(sampled), Partition(unsampled)
        self._worker_histograms = np.zeros((threads - 1, binned.edges.n_bins), np.int64)  # 0 between calls
        self.partitions = (self._sampled, self._unsampled) if len(unsampled) else (self._sampled,)
        self._n_documents = {0: len(sampled) + len(unsampled)}

    @property
    def most_frequent_bins(self) -> UInt8Array:
        """uint8[m], each feature's most frequent bin."""
        return self._binned.most_frequent_bins

    @cached_property
    def rows(self) -> GrowingRows:
        """The documents as kernels take them that process whole leaves."""
        binned, partitions = self._binned, (self._sampled, self._unsampled)
        return GrowingRows(
            binned.bins,
            binned.places,
            binned.bin_counts,
            binned.edges.missing_bins,
            self._packed,
            *self._rows,
            binned.row_offsets,
            binned.other_bins,
            *[array for partition in partitions for array in (partition.documents, partition.buffer)],
        )

    def place(self, leaf: int) -> Range:
        """Return where the documents of a leaf are in `rows`."""
        return (*self._sampled.bounds[leaf], *self._unsampled.bounds[leaf])

    def cost(self, leaf: int) -> int:
        """Return the sampled documents of a leaf."""
        first, last = self._sampled.bounds[leaf]
        return last - first

    def histogram(self, leaf: int, out: Int64Array, pool: WorkerPool) -> int:
        """Write the packed sums by bin to out, int64[n_bins], and return the packed sum over the leaf."""
        documents = self._sampled.of(leaf)
        out.fill(0)
        pieces = shares(len(documents), ADDED, pool.threads)
        others = self._worker_histograms[: max(0, len(pieces) - 1)]
        calls = [(documents, self._packed, *self._rows, start, stop) for start, stop in pieces]
        totals = pool.run(histograms.add_documents, calls, [out, *others])
        if len(others):
            ranges = shares(len(out), -(-MERGED // len(others)), pool.threads)
            merges = [(out, others, first, last) for first, last in ranges]
            pool.run(histograms.merge_histograms, merges)
        return sum(totals)

    def n_documents(self, leaf: int) -> int:
        """Return the number of documents, also of those that are not in the sums."""
        return self._n_documents[leaf]

    def has_enough(self, leaf: int, split: Split, min_documents: int) -> bool:
        """Return whether a split would leave min_documents on each side."""
        return min(self.count_children(leaf, split, min_documents)) >= min_documents

    def count_children(self, leaf: int, split: Split, enough: int) -> tuple[int, int]:
        """Return the documents on each side of a split, counted until both are enough."""
        n_left = n_right = 0
        missing_bin = int(self._binned.edges.missing_bins[split.feature])
        for partition in self.partitions:
            documents = partition.of(leaf)
            bins = self._binned.bins_of_rows(split.feature, documents)
            n_left, n_right = row_partition.count_children(
                bins, split.bin, missing_bin, split.missing_left, documents, enough, n_left, n_right
            )
        return n_left, n_right

    def bin_counts(self, leaf_features: Sequence[tuple[int, int]]) -> Sequence[Int64Array]:
        """Return, for each leaf and binned feature, the number of its documents in each bin, int64[256]."""
        return [self._bin_counts(*leaf_feature) for leaf_feature in leaf_features]

    def _bin_counts(self, leaf: int, feature: int) -> Int64Array:
        binned, counts = self._binned, np.zeros(256, np.int64)
        if leaf == 0 and self.n_documents(0) == binned.n_documents:
            first, last = binned.edges.bin_offsets[feature : feature + 2].tolist()
            counts[: last - first] = binned.bin_counts[first:last]
            return counts
        for partition in self.partitions:
            documents = partition.of(leaf)
            bins = binned.bins_of_rows(feature, documents)
            row_partition.count_leaf_bins(bins, documents, 0, len(documents), counts)
        return counts

    def split(self, leaf: int, left: int, right: int, split: Split, pool: WorkerPool) -> None:
        """Give the documents of a leaf to the new leaves `left` and `right`."""
        missing_bin = int(self._binned.edges.missing_bins[split.feature])
        for partition in (self._sampled, self._unsampled):
            bins = self._binned.bins_of_rows(split.feature, partition.of(leaf), pool)
            partition.split(leaf, left, right, bins, split, missing_bin, pool)
        self._count(left, right)

    def set_children(self, leaf: int, left: int, right: int, n_left: int, n_left_unsampled: int) -> None:
        """Note the new leaves whose documents a kernel has put in order; n_left : sampled ones that went left."""
        self._sampled.set_children(leaf, left, right, n_left)
        self._unsampled.set_children(leaf, left, right, n_left_unsampled)
        self._count(left, right)

    def _count(self, *leaves: int) -> None:
        for leaf in leaves:
            first, last, first_unsampled, last_unsampled = self.place(leaf)
            self._n_documents[leaf] = last - first + last_unsampled - first_unsampled


def shares(n: int, least: int, threads: int) -> list[tuple[int, int]]:
    """Return ranges that cover range(n): about eight a thread, but none shorter than `least`.

    One where there is one thread or hardly more than one range.
    """
    if threads == 1 or n < 2 * least:
        return [(0, n)] if n else []
    return chunks(n, max(least, -(-n // (8 * threads))))
