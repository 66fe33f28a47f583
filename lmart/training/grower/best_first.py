"""Growth leaf by leaf: the next leaf is the one with the highest split gain of all, or of its level."""

from __future__ import annotations

import heapq
import itertools

from lmart.array_types import Int64Array
from lmart.threads import WorkerPool
from lmart.training.grower.growing_tree import (
    GrowingTree,
    GrownTree,
    GrowParams,
    Leaf,
    hand_on_histogram,
    newton_step,
    planned_split,
    run_by_size,
    split_leaf,
)
from lmart.training.grower.split_finder import SplitFinder


class Expander:
    """Splits leaves and finds the best split of each child, several leaves per call.

    params : what to grow the tree from, and how

    The result does not depend on the order of expansion, so likely next leaves are expanded speculatively.
    """

    def __init__(self, params: GrowParams) -> None:
        self._params, self._source, self._histograms = params, params.source, params.histograms
        self._finder = SplitFinder(params)
        self._numbers = itertools.count(1)

    def find_root(self) -> Leaf:
        """Return the leaf of all documents, with its best split."""
        root = Leaf(0, 0, 0)
        if self._may_split(root):
            root.histogram = self._histograms.take()
            root.total = self._source.histogram(0, root.histogram, self._params.pool)
            self._finder.choose([self._finder.find(root, self._params.pool)])
        return root

    def expand(self, leaves: list[Leaf]) -> bool:
        """Give leaves their children, and these their best splits.

        Return whether all got children: one whose split leaves too few documents on a side gets another split instead.
        """
        # Numbers and buffers are taken here, since the leaves are worked on side by side.
        calls = [(leaf, *self._new_numbers(), self._histograms.take()) for leaf in leaves]
        limits = self._params.settings
        plans = [planned_split(leaf, left, right, limits) for leaf, left, right, _ in calls]
        expanded = []
        for ready in self._source.expect(plans):
            group = [calls[place] for place in ready if self._confirm(*calls[place])]
            n_documents = [self._source.n_documents(leaf.number) for leaf, *_ in group]
            run_by_size(self._expand, group, n_documents, self._params.pool)
            expanded += group
        for leaf, *_ in expanded:
            self._histograms.give_back(leaf)
            for child in leaf.children or ():
                if child.split is None:
                    self._histograms.give_back(child)
        return len(expanded) == len(leaves)

    def split(self, leaf: Leaf) -> bool:
        """Give a leaf its children, which are not to be split; return False if it gets another split instead."""
        left, right = self._new_numbers()
        plan = planned_split(leaf, left, right, self._params.settings)
        for _ in self._source.expect([plan._replace(summed=None)]):
            if not self._confirm(leaf, left, right):
                return False
        self._split(leaf, left, right, self._params.pool)
        self._histograms.give_back(leaf)
        return True

    def _confirm(self, leaf: Leaf, left: int, right: int, buffer: Int64Array | None = None) -> bool:
        """Return whether a split leaves enough documents on each side; if not, give the buffer back."""
        if not self._finder.is_assumed(leaf):
            return True
        confirmed = self._finder.confirm(leaf, self._source.n_documents(left), self._source.n_documents(right))
        if not confirmed and buffer is not None:
            self._histograms.take_back(buffer)
        return confirmed

    def _new_numbers(self) -> tuple[int, int]:
        return next(self._numbers), next(self._numbers)

    def _may_split(self, leaf: Leaf) -> bool:
        settings = self._params.settings
        shallow = leaf.depth < settings.max_depth
        return shallow and self._source.n_documents(leaf.number) >= 2 * settings.min_documents

    def _split(self, leaf: Leaf, left: int, right: int, pool: WorkerPool) -> tuple[Leaf, Leaf]:
        children = split_leaf(self._source, leaf, left, right, pool)
        if self._params.directions is not None:
            hand_down_bounds(leaf, self._params)
        return children

    def _expand(self, leaf: Leaf, left: int, right: int, buffer: Int64Array, pool: WorkerPool) -> None:
        """Split a leaf and find the best splits of its children."""
        children = self._split(leaf, left, right, pool)
        if any(map(self._may_split, children)):
            self._finder.choose(self._finder.find_both(*hand_on_histogram(self._source, leaf, buffer, pool), pool))
        else:
            children[0].histogram = buffer  # from where it is given back


def hand_down_bounds(leaf: Leaf, params: GrowParams) -> None:
    """Give the children of a leaf their bounds: those of a split on a constrained feature meet halfway.

    leaf   : a leaf with children
    params : of the tree

    So no leaf on the one side ever gets a value beyond that of a leaf on the other (LightGBM's basic method).
    """
    assert leaf.split is not None and leaf.children is not None and params.directions is not None
    for child in leaf.children:
        child.low, child.high = leaf.low, leaf.high
    direction = int(params.directions[leaf.split.feature])
    if direction:
        lower, upper = leaf.children[::direction]
        values = newton_step(lower, params), newton_step(upper, params)
        lower.high = upper.low = values[0] + (values[1] - values[0]) / 2


def grow_best_first(params: GrowParams) -> GrownTree | None:
    """Split the leaf with the highest gain up to `max_leaves` leaves or no positive gain; None without a split.

    params : what to grow the tree from, and how
    By level: of the leaves of the lowest depth, the one with the highest gain. Ties: the older leaf first.
    """
    settings = params.settings
    expander = Expander(params)
    tree = GrowingTree(expander.find_root())
    candidates: list[tuple[int, float, int, Leaf]] = []  # a heap

    def add_candidate(number: int) -> None:
        """Add the leaf of this number to the candidates, if it has a split."""
        leaf = tree.leaves[number]
        if leaf.split is not None:
            level = leaf.depth if settings.form.by_level else 0
            heapq.heappush(candidates, (level, -leaf.split.split_gain, number, leaf))

    def expand_best() -> bool:
        """Give the first candidate its children; return False if a candidate got another split instead."""
        left_over = settings.max_leaves - len(tree.leaves) - 1
        if not left_over:
            return expander.split(candidates[0][-1])
        likely = heapq.nsmallest(min(left_over, ahead), candidates)
        return expander.expand([candidate for *_, candidate in likely if candidate.children is None])

    ahead = params.source.leaves_ahead(params.pool.threads)
    add_candidate(0)
    while candidates and len(tree.leaves) < settings.max_leaves:
        *_, number, leaf = candidates[0]
        if leaf.children is None and not expand_best():
            before = [candidate[2] for candidate in candidates]
            candidates.clear()
            for one in before:
                add_candidate(one)
            continue
        heapq.heappop(candidates)
        new = tree.split(number)
        add_candidate(number)
        add_candidate(new)
    return tree.finish(params)
