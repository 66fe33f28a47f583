"""The best split of a histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels import histogram, splitting

UNIT = 2.0**-20


NO_COUNTS = np.zeros(0, np.int64)


def split_of(
    codes: list[list[int]],
    missing: list[int | None],
    g: list[float],
    h: list[float],
    l2: float,
    limit: float,
    docs: int,
) -> tuple[float, int, int, bool] | None:
    """The best split as the grower finds it, from packed sums and counts."""
    n, m = len(g), len(codes)
    packed = np.empty(n, np.int64)
    histogram.pack(np.array(g), np.array(h), 2.0**20, 2.0**20, 0, n, packed)
    widths = [max(own) + 1 if lost is None else lost + 1 for own, lost in zip(codes, missing, strict=True)]
    offsets = np.cumsum([0, *widths])
    bins = np.array(reference.bin_sums(codes, packed.tolist(), range(n), widths), np.int64)
    whole = bins.copy()
    common = np.array([own[0] for own in codes], np.uint8)
    bins[offsets[:-1] + common] = 0
    has_missing = np.array([lost is not None for lost in missing])
    total = int(packed.sum())
    limits = (l2 / UNIT, limit / UNIT)
    gains = np.empty(m)
    features = (offsets, common, has_missing, np.ones(m, np.bool_))
    for a, b in ((0, 1), (1, m)):
        splitting.best_gains(bins, total, *features, *limits, a, b, gains)
    assert (bins == whole).all()
    found = []
    for f in range(m):
        own = (bins, offsets[f], widths[f], has_missing[f], True)
        gain, code, side, left_total = fast = uncounted(own, total, limits)
        assert gain == gains[f]
        if gain > 0:
            goes_left = [side if c == missing[f] else c <= code for c in codes[f]]
            assert left_total == packed[goes_left].sum()
        counts = np.bincount(codes[f], minlength=256)
        found.append(splitting.best_split(own[0], counts, *own[1:], total, *limits, docs))
        assert found[f][0] <= gain
        if docs <= 1 and gain > 0:
            assert found[f] == fast
    f = int(np.argmax([one[0] for one in found]))
    gain, code, side, _ = found[f]
    return None if gain == -np.inf else (float(gain) * UNIT, f, int(code), bool(side))


def uncounted(own: tuple[Any, ...], total: int, limits: tuple[float, float]) -> tuple[float, int, bool, int]:
    return splitting.best_split(own[0], NO_COUNTS, *own[1:], total, *limits, 0)


@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 2.0]))
def test_children_are_looked_at_as_if_each_had_been_added_up(
    seed: int, lost: bool, finite: bool, l2: float, limit: float
) -> None:
    rng = np.random.default_rng(seed)
    m, n = 4, int(rng.integers(2, 40))
    width = int(rng.integers(2, 9)) + lost
    codes = np.minimum(rng.integers(0, width, (m, n)), rng.integers(0, width, (m, n))).astype(np.uint8)
    packed = np.empty(n, np.int64)
    histogram.pack(rng.normal(size=n), rng.random(n) * (rng.random(n) < 0.8), 2.0**20, 2.0**20, 0, n, packed)
    small = np.flatnonzero(rng.random(n) < 0.4).tolist()
    large = [d for d in range(n) if d not in small]
    offsets = np.arange(m + 1) * width
    parent, child, other = (
        np.array(reference.bin_sums(codes.tolist(), packed.tolist(), rows, [width] * m), np.int64)
        for rows in (range(n), small, large)
    )
    expected = child.copy(), other.copy()
    common = codes[:, 0].copy()
    child[offsets[:-1] + common] = 0
    features = (offsets, common, np.full(m, lost), np.full(m, finite))
    totals = int(packed[large].sum()), int(packed[small].sum())
    limits = (l2 / UNIT, limit / UNIT)
    gains = np.empty((2, m))
    for a, b in ((0, 3), (3, 4)):
        splitting.best_gains_of_children(parent, child, *totals, *features, *limits, a, b, gains)
    assert (child == expected[0]).all() and (parent == expected[1]).all()
    for row, (bins, total) in enumerate(zip((parent, child), totals, strict=True)):
        for f in range(m):
            own = (bins, offsets[f], width, lost, finite)
            assert uncounted(own, total, limits)[0] == gains[row, f]


@given(
    st.integers(2, 14).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=2, max_size=3),
            st.lists(st.integers(-900, 900), min_size=n, max_size=n),
            st.lists(st.integers(1, 900), min_size=n, max_size=n),
        )
    ),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 0.5]),
    st.integers(1, 4),
)
def test_the_best_split_is_that_of_brute_force(
    data: tuple[list[list[int]], list[int], list[int]], lost: bool, l2: float, limit: float, docs: int
) -> None:
    codes, gs, hs = data
    g, h = [x / 1024 for x in gs], [x / 1024 for x in hs]  # exact in the units, so ties are ties
    missing = [3 if lost else None] * len(codes)
    every = reference.splits(codes, missing, g, h, range(len(g)), l2, limit, docs)
    found = split_of(codes, missing, g, h, l2, limit, docs)
    best = max((split[0] for split in every), default=0.0)
    if found is None or best < 1e-8:
        assert best < 1e-8 and (found is None or found[0] < 1e-8)
        return
    assert found[0] == pytest.approx(best, rel=1e-9)
    # the first of those that part the documents alike; sums of others may round to the same gain
    own = next(split for split in every if split[1:4] == found[1:])
    sides = {own[4], frozenset(range(len(g))) - own[4]}
    assert own[1:3] == next(split[1:3] for split in every if split[4] in sides)


def test_a_planted_sign_flip_is_found() -> None:
    codes = [[0, 1, 2, 3] * 5, [k % 7 for k in range(20)]]
    g = [-1.0 if c <= 1 else 1.0 for c in codes[0]]
    assert split_of(codes, [None, None], g, [1.0] * 20, 0.0, 0.0, 1) == (20.0, 0, 1, False)


def test_missing_values_go_to_the_better_side() -> None:
    codes = [[0, 0, 1, 1, 2, 2], [0] * 6]
    high = [1.0, 1.0, -1.0, -1.0, -1.0, -1.0]
    assert split_of(codes, [2, None], high, [1.0] * 6, 0.0, 0.0, 1)[2:] == (0, False)  # type: ignore[index]
    low = [1.0, 1.0, -1.0, -1.0, 1.0, 1.0]
    assert split_of(codes, [2, None], low, [1.0] * 6, 0.0, 0.0, 1)[2:] == (0, True)  # type: ignore[index]
    only = [-1.0, -1.0, -1.0, -1.0, 2.0, 2.0]  # all numbers left, missing right
    assert split_of(codes, [2, None], only, [1.0] * 6, 0.0, 0.0, 1)[2:] == (1, False)  # type: ignore[index]


def test_equal_gains_of_both_sides_take_the_lower_threshold() -> None:
    # {numbers | missing} and {missing | numbers} part alike; so do low codes with missing on either side of nothing
    codes = [[0, 0, 1, 1, 2, 2], [0] * 6]
    values = [1.0, 1.0, -1.0, -1.0, 0.0, 0.0]
    assert split_of(codes, [2, None], values, [1.0] * 6, 0.0, 0.0, 1)[2] == 0  # type: ignore[index]


def test_equal_gains_take_the_lowest_feature_and_threshold() -> None:
    same = [0, 1, 2, 3]
    assert split_of([same, same], [None, None], [-1.0, 1.0, -1.0, 1.0], [1.0] * 4, 0.0, 0.0, 1)[1:3] == (0, 0)  # type: ignore[index]


def test_nothing_gained_is_no_split() -> None:
    assert split_of([[0, 1, 0, 1], [0, 0, 1, 1]], [None, None], [1.0] * 4, [1.0] * 4, 0.0, 0.0, 1) is None
    assert split_of([[0, 1], [1, 0]], [None, None], [1.0, -1.0], [0.0, 0.0], 0.0, 0.0, 1) is None
