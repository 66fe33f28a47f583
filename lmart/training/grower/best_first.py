"""Growth leaf by leaf: the next leaf is the one with the highest split gain of all, or of its level."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from lmart.settings.resolved import TreeSettings
from lmart.training.grower.tree import GrowingTree, Leaf

Candidate = tuple[int, float, int, Leaf]  # level, or 0; minus the gain; number; leaf: the least is split next


class Growth:
    """A tree that grows, and its leaves that have a split.

    They are taken, to be expanded, the likeliest first, and put back with children, in any order. The tree does not
    depend on it: a leaf is split when it is the first of all, highest gain first, then the older leaf.
    """

    def __init__(self, root: Leaf, settings: TreeSettings) -> None:
        self.tree = GrowingTree(root)
        self._max_leaves, self._by_level = settings.max_leaves, settings.form.by_level
        self._waiting: list[Candidate] = []  # those that nobody has taken, ascending
        self._taken: list[Candidate] = []  # those in work, and those with children whose turn has not come, ascending
        self._add(0, root)

    @property
    def n_left(self) -> int:
        """How many more splits the tree may have."""
        return self._max_leaves - len(self.tree.leaves)

    @property
    def is_open(self) -> bool:
        """Whether there are leaves to take, once those in work are put back."""
        return bool(self._waiting) and self.n_left > 0

    def take(self, is_wanted: Callable[[Leaf], bool] = lambda leaf: True, anywhere: bool = False) -> Leaf | None:
        """Take and return the likeliest leaf; None when it is not wanted, or cannot be in the tree as far as is known.

        anywhere : the likeliest of those that are wanted
        """
        # The leaf of the last split is taken only when it is known to be that: its children need no splits.
        most_before = max(1, self.n_left - 1) if self.n_left else 0
        for place, candidate in enumerate(self._waiting if anywhere else self._waiting[:1]):
            if place + bisect_left(self._taken, candidate) >= most_before:
                break
            if is_wanted(leaf := candidate[-1]):
                insort(self._taken, self._waiting.pop(place))
                return leaf
        return None

    def put(self, leaf: Leaf) -> None:
        """Put back a leaf that was taken, with its children; without, when it has got another split instead."""
        if leaf.children is None:
            (place,) = (place for place, candidate in enumerate(self._taken) if candidate[-1] is leaf)
            self._add(self._taken.pop(place)[-2], leaf)
        while self._taken and self.n_left:
            *_, number, first = self._taken[0]
            if first.children is None or (self._waiting and self._waiting[0] < self._taken[0]):
                break
            del self._taken[0]
            new = self.tree.split(number)
            self._add(number, first.children[0])
            self._add(new, first.children[1])

    def in_work(self) -> bool:
        """Return whether a leaf that was taken has not been put back."""
        return any(leaf.children is None for *_, leaf in self._taken)

    def idle(self) -> Iterable[Leaf]:
        """Yield the leaves that nobody works on."""
        for *_, leaf in self._waiting:
            yield leaf
        for *_, leaf in self._taken:
            yield from leaf.children or ()

    def _add(self, number: int, leaf: Leaf) -> None:
        if leaf.split is not None:
            insort(self._waiting, (leaf.depth if self._by_level else 0, -leaf.split.split_gain, number, leaf))
