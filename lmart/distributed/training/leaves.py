"""ShardedLeaves: the documents of a growing tree where shards hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lmart.array_types import Int64Array, UInt8Array
from lmart.distributed.actors import Actors
from lmart.distributed.training.shard_sums import Counts, PackedRoot, SplitsDone
from lmart.kernels.split_gain import Split
from lmart.threads import WorkerPool
from lmart.training.grower.row_partition import PlannedSplit

AHEAD = 8  # leaves expanded at a time
TOGETHER = 8  # leaves whose histograms come in one message


class ShardedLeaves:
    """A LeafSource of which every shard has a part; sums and counts of all parts are added.

    shards             : of the run
    most_frequent_bins : uint8[m], each feature's most frequent bin
    root               : of all shards
    n_documents        : of all shards
    """

    def __init__(self, shards: Actors, most_frequent_bins: UInt8Array, root: PackedRoot, n_documents: int) -> None:
        self._shards, self._most_frequent_bins = shards, most_frequent_bins
        self._n_documents = {0: n_documents}
        self._summed = {0: (root.total, root.histogram)}

    @property
    def most_frequent_bins(self) -> UInt8Array:
        """uint8[m], each feature's most frequent bin."""
        return self._most_frequent_bins

    def leaves_ahead(self, threads: int) -> int:
        """Return how many leaves are best expanded at a time.

        threads : that expand them
        """
        return AHEAD

    def expect(self, splits: Sequence[PlannedSplit]) -> Iterator[Sequence[int]]:
        """Split leaves, and sum the histograms likely to be asked for; yield the places of those that are split.

        splits : that are wanted next
        """
        groups = [range(first, min(first + TOGETHER, len(splits))) for first in range(0, len(splits), TOGETHER)]
        calls = [([splits[place] for place in group],) for group in groups]
        done: SplitsDone
        for group, done in zip(groups, self._shards.add_each("split", calls), strict=True):
            self._summed.clear()
            n_before = 0
            for place, (n_left, n_right) in zip(group, done.counts.tolist(), strict=True):
                one = splits[place]
                self._n_documents[one.left], self._n_documents[one.right] = n_left, n_right
                if one.summed is not None:
                    self._summed[one.summed] = int(done.totals[n_before]), done.histograms[n_before]
                    n_before += 1
            yield group

    def cost(self, leaf: int) -> int:
        """Return 0 for a leaf whose histogram is there, else 1.

        leaf : number of the leaf
        """
        return 0 if leaf in self._summed else 1

    def histogram(self, leaf: int, out: Int64Array, pool: WorkerPool) -> int:
        """Write the packed sums by bin to out, int64[n_bins], and return the packed sum over the leaf.

        leaf : number of the root, or of a leaf whose sums were expected
        out  : int64[n_bins], overwritten
        pool : the workers
        """
        total, histogram = self._summed[leaf]
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
        found: Counts = self._shards.add("count_children", list(splits), min_documents)
        return [bool(enough) for enough in found.counts.min(axis=1) >= min_documents]

    def has_enough(self, leaf: int, split: Split, min_documents: int) -> bool:
        """Return whether a split would leave min_documents on each side.

        leaf          : number of the leaf
        split         : how it would be split
        min_documents : fewest documents of a side
        """
        (enough,) = self.have_enough([(leaf, split)], min_documents)
        return enough

    def bin_counts(self, asked: Sequence[tuple[int, int]]) -> Sequence[Int64Array]:
        """Return, for each leaf and binned feature, the number of its documents in each bin, int64[256].

        asked : numbers of leaves, and features
        """
        found: Counts = self._shards.add("bin_counts", list(asked))
        return list(found.counts)

    def split(self, leaf: int, left: int, right: int, split: Split, pool: WorkerPool) -> None:
        """Do nothing: `expect` has split the leaf.

        leaf        : number of the leaf
        left, right : new numbers, of its children
        split       : how it is split
        pool        : the workers
        """
