"""ShardedLeaves: the documents of a growing tree where shards hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lmart.array_types import Int64Array, UInt8Array
from lmart.distributed.actors import Actors
from lmart.distributed.training.shard import PackedRoot, SplitDone
from lmart.kernels.split_gain import Split
from lmart.threads import WorkerPool
from lmart.training.grower.row_partition import PlannedSplit

AHEAD = 8  # leaves expanded at a time: their histograms come in one message


class ShardedLeaves:
    """A LeafSource of which every shard has a part; sums and counts of all parts are added.

    shards             : of the run
    most_frequent_bins : uint8[m], each feature's most frequent bin
    roots              : the root in each shard
    n_documents        : of all shards
    """

    def __init__(
        self, shards: Actors, most_frequent_bins: UInt8Array, roots: Sequence[PackedRoot], n_documents: int
    ) -> None:
        self._shards, self._most_frequent_bins = shards, most_frequent_bins
        self._n_documents = {0: n_documents}
        self._summed = {0: _added([(one.histogram, one.total) for one in roots])}
        self._split: set[int] = set()

    @property
    def most_frequent_bins(self) -> UInt8Array:
        """uint8[m], each feature's most frequent bin."""
        return self._most_frequent_bins

    def leaves_ahead(self, threads: int) -> int:
        """Return how many leaves are best expanded at a time.

        threads : that expand them
        """
        return AHEAD

    def expect(self, splits: Sequence[PlannedSplit]) -> None:
        """Split leaves, and sum the histograms that are likely to be asked for, in one message to each shard.

        splits : each will be asked for with `split`
        """
        self._summed.clear()
        if not splits:
            return
        by_shard: list[list[SplitDone]] = self._shards.call("split", list(splits))
        for one, parts in zip(splits, zip(*by_shard, strict=True), strict=True):
            self._note(one, parts)
            if one.summed is not None:
                self._summed[one.summed] = _added(
                    [(part.histogram, part.total) for part in parts if part.histogram is not None]
                )

    def _note(self, one: PlannedSplit, parts: Sequence[SplitDone]) -> None:
        self._split.add(one.leaf)
        self._n_documents[one.left] = sum(part.n_left for part in parts)
        self._n_documents[one.right] = sum(part.n_right for part in parts)

    def cost(self, leaf: int) -> int:
        """Return 0 for a leaf whose histogram is there already, else 1.

        leaf : number of the leaf
        """
        return 0 if leaf in self._summed else 1

    def histogram(self, leaf: int, out: Int64Array, pool: WorkerPool) -> int:
        """Write the packed sums by bin to out, int64[n_bins], and return the packed sum over the leaf.

        leaf : number of the leaf
        out  : int64[n_bins], overwritten
        pool : the workers
        """
        summed = self._summed.get(leaf)
        histogram, total = _added(self._shards.call("histogram", leaf)) if summed is None else summed
        np.copyto(out, histogram)
        return total

    def n_documents(self, leaf: int) -> int:
        """Return the number of documents, also of those that are not in the sums.

        leaf : number of the leaf
        """
        return self._n_documents[leaf]

    @property
    def is_far(self) -> bool:
        """True: each question is a message."""
        return True

    def have_enough(self, splits: Sequence[tuple[int, Split]], min_documents: int) -> Iterable[bool]:
        """Return, for each leaf and its split, whether that would leave min_documents on each side.

        splits        : numbers of leaves, and how each would be split
        min_documents : fewest documents of a side
        """
        if not splits:
            return []
        counts = np.sum(self._shards.call("count_children", list(splits), min_documents), axis=0)
        return [bool(enough) for enough in counts.min(axis=1) >= min_documents]

    def has_enough(self, leaf: int, split: Split, min_documents: int) -> bool:
        """Return whether a split would leave min_documents on each side.

        leaf          : number of the leaf
        split         : how it would be split
        min_documents : fewest documents of a side
        """
        (enough,) = self.have_enough([(leaf, split)], min_documents)
        return enough

    def bin_counts(self, leaf: int, feature: int) -> Int64Array:
        """Return the number of documents in each bin of a feature, int64[256].

        leaf    : number of the leaf
        feature : of the binned features
        """
        counts: Int64Array = np.sum(self._shards.call("bin_counts", leaf, feature), axis=0)
        return counts

    def split(self, leaf: int, left: int, right: int, split: Split, pool: WorkerPool) -> None:
        """Give the documents of a leaf to the new leaves `left` and `right`.

        leaf        : number of the leaf
        left, right : new numbers, of its children
        split       : how it is split
        pool        : the workers
        """
        if leaf in self._split:
            return
        one = PlannedSplit(leaf, left, right, split, None)
        by_shard: list[list[SplitDone]] = self._shards.call("split", [one])
        self._note(one, [parts[0] for parts in by_shard])


def _added(parts: Sequence[tuple[Int64Array, int]]) -> tuple[Int64Array, int]:
    """Return the sum of histograms of one leaf, and of their totals."""
    histogram = parts[0][0].copy()
    for other, _ in parts[1:]:
        histogram += other
    return histogram, sum(total for _, total in parts)
