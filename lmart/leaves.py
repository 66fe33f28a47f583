"""Which documents are in which leaf while a tree grows, and their sums: all that the grower asks of its data."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from lmart.binning import BinnedFeatures
from lmart.kernels import histogram as sums
from lmart.kernels import splitting
from lmart.threads import WorkerPool, chunks

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

PARTED = 16_384  # least documents in one piece of work when a leaf is parted
ADDED = 2_048  # and when it is added up; where there are not two of them, another worker's histogram does not pay
MERGED = 32_768  # bins in one piece of work


class LeafSource(Protocol):
    """The documents of a growing tree. Sums are integers, so they may be taken in parts and added in any order.

    Leaf 0 is the root; `split` gives the documents that go right a new number.
    common_codes : uint8[m], the bin of each feature that histograms may leave out, where they hold 0: it is the leaf's
        sum less the other bins
    """

    @property
    def common_codes(self) -> npt.NDArray[np.uint8]: ...

    def histogram(self, leaf: int, out: Longs) -> int:
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

    def split(self, leaf: int, new_leaf: int, feature: int, code: int, missing_left: bool) -> None:
        """Leave in `leaf` the documents with codes up to `code`, and move the others to `new_leaf`."""
        ...


class Partition:
    """Rows in the order of their leaves: those of leaf l are documents[starts[l]:stops[l]], ascending."""

    def __init__(self, documents: Ints, max_leaves: int, pool: WorkerPool) -> None:
        self.documents = documents
        self.starts = np.zeros(max_leaves, np.int64)
        self.stops = np.zeros(max_leaves, np.int64)
        self.stops[0] = len(documents)
        self._right = np.empty(len(documents), np.int32)
        self._pool = pool

    def of(self, leaf: int) -> Ints:
        return self.documents[self.starts[leaf] : self.stops[leaf]]

    def split(
        self, leaf: int, new_leaf: int, codes: npt.NDArray[np.uint8], code: int, missing: int, missing_left: bool
    ) -> None:
        own = self.of(leaf)
        right = self._right
        pieces = shares(len(own), PARTED, self._pool.threads)
        fixed = (codes, code, missing, missing_left, own)
        counts = self._pool.run(splitting.part_documents, [(*fixed, a, b, right) for a, b in pieces])
        at = 0
        for (start, _), count in zip(pieces, counts, strict=True):
            if start != at:
                own[at : at + count] = own[start : start + count]
            at += count
        middle = at
        for (start, stop), count in zip(pieces, counts, strict=True):
            own[at : at + stop - start - count] = right[start : stop - count]
            at += stop - start - count
        self.stops[new_leaf] = self.stops[leaf]
        self.starts[new_leaf] = self.stops[leaf] = self.starts[leaf] + middle


class LocalLeaves:
    """A LeafSource over the binned documents in this process's memory.

    packed : int64[n], packed gradient and hessian of each document
    taken  : int32[k], the rows that are in the sums; rest : int32[n - k], those that only follow and are counted
    """

    def __init__(
        self, binned: BinnedFeatures, packed: Longs, taken: Ints, rest: Ints, max_leaves: int, pool: WorkerPool
    ) -> None:
        self._binned = binned
        self._packed = packed
        self._pool = pool
        self._taken = Partition(taken, max_leaves, pool)
        self._rest = Partition(rest, max_leaves, pool)
        self._others = np.zeros((pool.threads - 1, binned.edges.n_bins), np.int64)  # 0 between calls
        self.partitions = (self._taken, self._rest) if len(rest) else (self._taken,)

    @property
    def common_codes(self) -> npt.NDArray[np.uint8]:
        return self._binned.common_codes

    def histogram(self, leaf: int, out: Longs) -> int:
        binned, documents = self._binned, self._taken.of(leaf)
        out.fill(0)
        fixed = (documents, self._packed, binned.row_offsets, binned.uncommon)
        pieces = shares(len(documents), ADDED, self._pool.threads)
        others = self._others[: max(0, len(pieces) - 1)]
        totals = self._pool.run(sums.add_documents, [(*fixed, a, b) for a, b in pieces], [out, *others])
        if len(others):
            self._pool.run(sums.merge, [(out, others, a, b) for a, b in chunks(len(out), MERGED)])
        return sum(totals)

    def n_documents(self, leaf: int) -> int:
        return sum(int(part.stops[leaf] - part.starts[leaf]) for part in self.partitions)

    def has_enough(self, leaf: int, feature: int, code: int, missing_left: bool, min_docs: int) -> bool:
        left = right = 0
        missing = int(self._binned.edges.missing_codes[feature])
        for part in self.partitions:
            fixed = (self._binned.codes[feature], code, missing, missing_left, part.of(leaf), min_docs)
            left, right = splitting.count_sides(*fixed, left, right)
        return min(left, right) >= min_docs

    def code_counts(self, leaf: int, feature: int) -> Longs:
        if leaf == 0 and self.n_documents(0) == self._binned.n_documents:
            whole: Longs = self._binned.code_counts[feature]
            return whole
        counts = np.zeros(256, np.int64)
        for part in self.partitions:
            documents = part.of(leaf)
            splitting.count_leaf_codes(self._binned.codes[feature], documents, 0, len(documents), counts)
        return counts

    def split(self, leaf: int, new_leaf: int, feature: int, code: int, missing_left: bool) -> None:
        missing = int(self._binned.edges.missing_codes[feature])
        for part in self.partitions:
            part.split(leaf, new_leaf, self._binned.codes[feature], code, missing, missing_left)


def shares(n: int, least: int, threads: int) -> list[tuple[int, int]]:
    """Return pieces of work that cover range(n): about eight a thread, but none shorter than `least`; one where there
    is one thread or hardly more than one piece."""
    if threads == 1 or n < 2 * least:
        return [(0, n)] if n else []
    return chunks(n, max(least, -(-n // (8 * threads))))
