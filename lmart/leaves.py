"""Which documents are in which leaf while a tree grows, and their sums: all that the grower asks of its data."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from lmart.binning import BinnedFeatures
from lmart.kernels import histogram as sums
from lmart.kernels import parting
from lmart.threads import WorkerPool, chunks

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

PARTED = 16_384  # least documents in one piece of work when a leaf is parted
ADDED = 2_048  # and when it is added up; where there are not two of them, another worker's histogram does not pay
MERGED = 32_768  # bins in one piece of work


class LeafSource(Protocol):
    """The documents of a growing tree. Sums are integers, so they may be taken in parts and added in any order.

    Leaf 0 is the root; `split` gives its two sides new numbers, and leaves the documents of both to the old one too.
    Calls for different leaves may be made side by side, each with a pool of its own to help it.
    common_codes : uint8[m], the bin of each feature that histograms may leave out, where they hold 0: it is the leaf's
        sum less the other bins
    """

    @property
    def common_codes(self) -> npt.NDArray[np.uint8]: ...

    def histogram(self, leaf: int, out: Longs, pool: WorkerPool) -> int:
        """Write the packed sums by bin, int64[n_bins], and return the packed sum over the leaf."""
        ...

    def n_documents(self, leaf: int) -> int:
        """Return the number of documents, also of those that are not in the sums."""
        ...

    def has_enough(self, leaf: int, feature: int, code: int, missing_left: bool, min_docs: int) -> bool:
        """Return whether a split would leave min_docs documents on each side."""
        ...

    def code_counts(self, leaf: int, feature: int) -> Longs:
        """Return the number of documents with each code of a feature, int64[256]."""
        ...

    def split(
        self, leaf: int, left: int, right: int, feature: int, code: int, missing_left: bool, pool: WorkerPool
    ) -> None:
        """Give the documents with codes up to `code` to the new leaf `left`, and the others to `right`."""
        ...


class Partition:
    """Rows in the order of their leaves: leaf l has documents[slice(*bounds[l])], ascending until it is split."""

    def __init__(self, documents: Ints) -> None:
        self.documents = documents
        self.bounds = {0: (0, len(documents))}
        self._right = np.empty(len(documents), np.int32)

    def of(self, leaf: int) -> Ints:
        return self.documents[slice(*self.bounds[leaf])]

    def split(
        self,
        leaves: tuple[int, int, int],
        codes: npt.NDArray[np.uint8],
        code: int,
        missing: int,
        missing_left: bool,
        pool: WorkerPool,
    ) -> None:
        """Part the first of three leaves into the others. The other arguments are those of `part_documents`."""
        leaf, left, new = leaves
        first, last = self.bounds[leaf]
        own, right = self.documents[first:last], self._right[first:last]
        pieces = shares(len(own), PARTED, pool.threads)
        fixed = (codes, code, missing, missing_left, own)
        counts = pool.run(parting.part_documents, [(*fixed, a, b, right) for a, b in pieces])
        middle = sum(counts)
        at = 0
        for (start, _), count in zip(pieces, counts, strict=True):
            if start != at:
                own[at : at + count] = own[start : start + count]
            at += count
        for (start, stop), count in zip(pieces, counts, strict=True):
            own[at : at + stop - start - count] = right[start : stop - count]
            at += stop - start - count
        self.bounds[left] = (first, first + middle)
        self.bounds[new] = (first + middle, last)


class LocalLeaves:
    """A LeafSource over the binned documents in this process's memory.

    packed  : int64[n], packed gradient and hessian of each document
    taken   : int32[k], the rows that are in the sums; rest : int32[n - k], those that only follow and are counted
    threads : of the largest pool that helps
    """

    def __init__(self, binned: BinnedFeatures, packed: Longs, taken: Ints, rest: Ints, threads: int) -> None:
        self._binned = binned
        self._packed = packed
        self._taken = Partition(taken)
        self._others = np.zeros((threads - 1, binned.edges.n_bins), np.int64)  # 0 between calls
        self.partitions = (self._taken, Partition(rest)) if len(rest) else (self._taken,)

    @property
    def common_codes(self) -> npt.NDArray[np.uint8]:
        return self._binned.common_codes

    def histogram(self, leaf: int, out: Longs, pool: WorkerPool) -> int:
        binned, documents = self._binned, self._taken.of(leaf)
        out.fill(0)
        fixed = (documents, self._packed, binned.row_offsets, binned.uncommon)
        pieces = shares(len(documents), ADDED, pool.threads)
        others = self._others[: max(0, len(pieces) - 1)]
        totals = pool.run(sums.add_documents, [(*fixed, a, b) for a, b in pieces], [out, *others])
        if len(others):
            pool.run(sums.merge, [(out, others, a, b) for a, b in chunks(len(out), MERGED)])
        return sum(totals)

    def n_documents(self, leaf: int) -> int:
        return sum(last - first for first, last in (part.bounds[leaf] for part in self.partitions))

    def has_enough(self, leaf: int, feature: int, code: int, missing_left: bool, min_docs: int) -> bool:
        left = right = 0
        missing = int(self._binned.edges.missing_codes[feature])
        for part in self.partitions:
            fixed = (self._binned.codes[feature], code, missing, missing_left, part.of(leaf), min_docs)
            left, right = parting.count_sides(*fixed, left, right)
        return min(left, right) >= min_docs

    def code_counts(self, leaf: int, feature: int) -> Longs:
        if leaf == 0 and self.n_documents(0) == self._binned.n_documents:
            whole: Longs = self._binned.code_counts[feature]
            return whole
        counts = np.zeros(256, np.int64)
        for part in self.partitions:
            documents = part.of(leaf)
            parting.count_leaf_codes(self._binned.codes[feature], documents, 0, len(documents), counts)
        return counts

    def split(
        self, leaf: int, left: int, right: int, feature: int, code: int, missing_left: bool, pool: WorkerPool
    ) -> None:
        missing = int(self._binned.edges.missing_codes[feature])
        for part in self.partitions:
            part.split((leaf, left, right), self._binned.codes[feature], code, missing, missing_left, pool)


def shares(n: int, least: int, threads: int) -> list[tuple[int, int]]:
    """Return pieces of work that cover range(n): about eight a thread, but none shorter than `least`; one where there
    is one thread or hardly more than one piece."""
    if threads == 1 or n < 2 * least:
        return [(0, n)] if n else []
    return chunks(n, max(least, -(-n // (8 * threads))))
