"""Trees whose documents are in shards. Each question is a message, so questions go out together, some in advance."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lmart.array_types import Int64Array, UInt8Array
from lmart.distributed.actors import Actors
from lmart.distributed.sums import Counts, PackedRoot, PlannedSplit, SplitsDone
from lmart.kernels.trees.split_gain import Split
from lmart.kernels.trees.split_search import count_feature
from lmart.threads import WorkerPool
from lmart.training.grower.expander import Expander
from lmart.training.grower.oblivious import Call, Level, grow_oblivious
from lmart.training.grower.split_finder import FoundSplit
from lmart.training.grower.tree import LOW_HALF, GrownTree, GrowParams, Leaf, run_by_size, split_leaf

AHEAD = 8  # leaves expanded at a time
TOGETHER = 8  # leaves whose histograms come in one message
COUNTED = 16  # features whose documents are counted in one message


class ShardedLeaves:
    """A LeafSource of which every shard has a part; sums and counts of all parts are added."""

    def __init__(self, shards: Actors, most_frequent_bins: UInt8Array, root: PackedRoot, n_documents: int) -> None:
        self._shards, self._most_frequent_bins = shards, most_frequent_bins
        self._n_documents = {0: n_documents}
        self._summed = {0: (root.total, root.histogram)}

    @property
    def most_frequent_bins(self) -> UInt8Array:
        """uint8[m], each feature's most frequent bin."""
        return self._most_frequent_bins

    def split_ahead(self, splits: Sequence[PlannedSplit]) -> Iterator[Sequence[int]]:
        """Split leaves and sum the histograms that are asked for; yield the places of splits that are done.

        While some are worked on, the shards go on with others. From then on the documents of the children are known.
        """
        groups = [range(first, min(first + TOGETHER, len(splits))) for first in range(0, len(splits), TOGETHER)]
        calls = [([splits[place] for place in group],) for group in groups]
        done: SplitsDone
        for group, done in zip(groups, self._shards.add_each("split", calls), strict=True):
            self._summed.clear()
            n_before = 0
            for place, (n_left, n_right) in zip(group, done.counts.tolist(), strict=True):
                planned = splits[place]
                self._n_documents[planned.left], self._n_documents[planned.right] = n_left, n_right
                if planned.summed is not None:
                    self._summed[planned.summed] = int(done.totals[n_before]), done.histograms[n_before]
                    n_before += 1
            yield group

    def sum_again(self, leaves: Sequence[int]) -> None:
        """Have the histograms of leaves at hand, as after `split_ahead`."""
        if leaves:
            done: SplitsDone = self._shards.add("sum_leaves", list(leaves))
            self._summed = dict(zip(leaves, zip(done.totals.tolist(), done.histograms, strict=True), strict=True))

    def cost(self, leaf: int) -> int:
        """Return 0 for a leaf whose histogram is there, else 1."""
        return 0 if leaf in self._summed else 1

    def histogram(self, leaf: int, out: Int64Array, pool: WorkerPool) -> int:
        """Write the packed sums by bin to out, int64[n_bins], and return the packed sum over the leaf."""
        total, histogram = self._summed[leaf]
        np.copyto(out, histogram)
        return total

    def n_documents(self, leaf: int) -> int:
        """Return the number of documents, also of those that are not in the sums."""
        return self._n_documents[leaf]

    def have_enough(self, splits: Sequence[tuple[int, Split]], min_documents: int) -> Iterable[bool]:
        """Return, for each leaf and its split, whether that would leave min_documents on each side."""
        if not splits:
            return []
        found: Counts = self._shards.add("count_children", list(splits), min_documents)
        return [bool(enough) for enough in found.counts.min(axis=1) >= min_documents]

    def has_enough(self, leaf: int, split: Split, min_documents: int) -> bool:
        """Return whether a split would leave min_documents on each side."""
        (enough,) = self.have_enough([(leaf, split)], min_documents)
        return enough

    def bin_counts(self, leaf_features: Sequence[tuple[int, int]]) -> Sequence[Int64Array]:
        """Return, for each leaf and binned feature, the number of its documents in each bin, int64[256]."""
        found: Counts = self._shards.add("bin_counts", list(leaf_features))
        return list(found.counts)

    def split(self, leaf: int, left: int, right: int, split: Split, pool: WorkerPool) -> None:
        """Do nothing: `split_ahead` has split the leaf."""


def grow_on_shards(params: GrowParams, leaves: ShardedLeaves) -> GrownTree | None:
    """Return the tree that `grow_tree` returns where one process has all documents."""
    if params.settings.form.oblivious:
        return grow_oblivious(params, _ShardedLevel(params, leaves))
    return _ShardedExpander(params, leaves).grow()


def _planned(leaf: Leaf, left: int, right: int, sums: bool) -> PlannedSplit:
    """Return a split to be made; with `sums`, of the child of fewer hessians, which is likely to be the smaller."""
    assert leaf.split is not None
    of_left, of_all = leaf.split.left_total & LOW_HALF, leaf.total & LOW_HALF
    smaller = left if 2 * of_left <= of_all else right
    return PlannedSplit(leaf.number, left, right, leaf.split, smaller if sums else None)


class _ShardedExpander(Expander):
    """Has leaves split by the shards in groups; a split that leaves too few documents is replaced instead.

    A split is assumed to leave enough documents on each side, until it was made, which counts them.
    """

    def __init__(self, params: GrowParams, leaves: ShardedLeaves) -> None:
        self._leaves, self._min_documents = leaves, params.settings.min_documents
        self._assumed: dict[int, FoundSplit] = {}
        self._counts: dict[int, Int64Array] = {}  # by feature, of the leaf whose split is being replaced
        super().__init__(params)

    def expand_all(self) -> None:
        growth, most = self._growth, min(AHEAD, self._histograms.most // 4)
        while leaves := list(itertools.islice(iter(growth.take, None), most)):
            self._expand(leaves, is_last=growth.n_left == 1)
            for leaf in leaves:
                self.put(leaf)

    def choose(self, found: Sequence[FoundSplit]) -> None:
        for candidate in found:
            leaf, _, split = candidate
            may_split = self._leaves.n_documents(leaf.number) >= 2 * self._min_documents
            leaf.split = self._finder.in_full(split) if may_split else None
            surely_enough = self._min_documents <= 1 or self._params.surely_enough(split.left_total, leaf.total)
            if leaf.split is not None and not surely_enough:
                self._assumed[leaf.number] = candidate

    def _expand(self, leaves: Sequence[Leaf], is_last: bool) -> None:
        """Split leaves, and find the best splits of their children, but not those of the last split."""
        lost, calls, pool = [], [], self._params.pool
        for leaf in leaves:
            if self.reserve(leaf, 1):
                lost.append(leaf)
            calls.append((leaf, *self.new_numbers(), self._histograms.take()))
        self._leaves.sum_again([leaf.number for leaf in lost])
        for leaf in lost:
            self.restore(leaf, pool)
        deepest = 0 if is_last else self._params.settings.max_depth
        plans = [_planned(leaf, left, right, leaf.depth + 1 < deepest) for leaf, left, right, _ in calls]
        for group in self._leaves.split_ahead(plans):
            confirmed = []
            for leaf, left, right, buffer in (calls[place] for place in group):
                if not self._confirm(leaf, left, right):
                    self._histograms.take_back(buffer)
                elif is_last:
                    split_leaf(self._params, leaf, left, right, pool)
                    self._histograms.take_back(buffer)
                else:
                    confirmed.append((leaf, left, right, buffer))
            n_documents = [self._source.n_documents(leaf.number) for leaf, *_ in confirmed]
            run_by_size(self.expand_by_histograms, confirmed, n_documents, pool)

    def _confirm(self, leaf: Leaf, left: int, right: int) -> bool:
        """Return whether the split that was made leaves enough documents; if not, give the leaf its next best split."""
        found = self._assumed.pop(leaf.number, None)
        n_left, n_right = self._leaves.n_documents(left), self._leaves.n_documents(right)
        if found is None or min(n_left, n_right) >= self._min_documents:
            return True
        leaf.split = self._next_best(found)
        self._counts.clear()
        return False

    def _next_best(self, found: FoundSplit) -> Split | None:
        """Return the best split with enough documents where the split that was found has too few.

        As `choose_split` does it, but that documents are counted by the shards.
        """
        leaf, split_gains, split = found
        limits = (self._params.search, self._min_documents, self._finder.bounds_in_units(leaf))
        counted: dict[int, Split] = {}
        while split.split_gain > -np.inf:
            feature = split.feature
            counts = self._bin_counts(found, feature)
            of_feature, best = count_feature(leaf.known_histogram, counts, feature, leaf.total, *limits, split_gains)
            counted[feature], split = Split(*of_feature), Split(*best)
            if split.feature in counted:
                split = counted[split.feature]
                break
            if split.split_gain > -np.inf and self._has_enough(leaf, split):
                break
        return self._finder.in_full(split)

    def _has_enough(self, leaf: Leaf, split: Split) -> bool:
        if self._params.surely_enough(split.left_total, leaf.total):
            return True
        # Counts by bin that are here answer without a message: the feature is then counted by them.
        in_counts = split.feature in self._counts
        return not in_counts and self._leaves.has_enough(leaf.number, split, self._min_documents)

    def _bin_counts(self, found: FoundSplit, feature: int) -> Int64Array:
        """Return the documents of a leaf by bin of a feature; one message also brings those of likely next features."""
        if feature not in self._counts:
            leaf, split_gains, _ = found
            likely = np.argsort(-split_gains, kind="stable")[:COUNTED]
            features = [feature]
            features += [other for other in likely.tolist() if other != feature and split_gains[other] > -np.inf]
            counts = self._leaves.bin_counts([(leaf.number, other) for other in features])
            self._counts |= dict(zip(features, counts, strict=True))
        return self._counts[feature]


class _ShardedLevel(Level):
    """Asks for the documents of all leaves of a level in one message, and has them split in groups."""

    def __init__(self, params: GrowParams, leaves: ShardedLeaves) -> None:
        super().__init__(params)
        self._leaves = leaves

    def allowed(self, leaves: list[Leaf], best: tuple[int, int, bool]) -> Iterable[tuple[Leaf, Split, bool]]:
        splits = [self._split_of(leaf, *best) for leaf in leaves]
        decided = [self._known(leaf, split) for leaf, split in zip(leaves, splits, strict=True)]
        open_splits = [
            (leaf.number, split)
            for leaf, split, enough_already in zip(leaves, splits, decided, strict=True)
            if enough_already is None
        ]
        answers = iter(self._leaves.have_enough(open_splits, self._min_documents))
        enough = [next(answers) if enough_already is None else enough_already for enough_already in decided]
        return zip(leaves, splits, enough, strict=True)

    def split_leaves(self, calls: Sequence[Call]) -> None:
        deepest = self._params.settings.max_depth
        plans = [_planned(leaf, left, right, leaf.depth + 1 < deepest) for leaf, left, right, _ in calls]
        for group in self._leaves.split_ahead(plans):
            super().split_leaves([calls[place] for place in group])
