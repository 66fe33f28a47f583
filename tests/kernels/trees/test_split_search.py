"""The best split of a histogram, with and without constraints."""

from __future__ import annotations

import numpy as np
import pytest
import reference.trees
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Float64Array, Int64Array
from lmart.kernels.trees import histogram, split_search
from lmart.kernels.trees.split_gain import Split, SplitSearch

UNIT = 2.0**-20
NO_COUNTS = np.zeros(0, np.int64)
ANY = (-np.inf, np.inf)


def pack(g: list[float] | Float64Array, h: list[float] | Float64Array) -> Int64Array:
    packed = np.empty(len(g), np.int64)
    histogram.pack_gradients(np.asarray(g), np.asarray(h), 2.0**20, 2.0**20, 0, len(g), packed)
    return packed


def searching(
    widths: list[int],
    l2: float,
    least: float = 0.0,
    most_frequent: object = None,
    has_missing: object = False,
    all_finite: object = True,
    directions: list[int] | None = None,
) -> SplitSearch:
    """Return the search of features with these numbers of bins; l2 and the least hessian not in units."""
    m = len(widths)
    return SplitSearch(
        np.cumsum([0, *widths]),
        np.zeros(m, np.uint8) if most_frequent is None else np.asarray(most_frequent, np.uint8),
        np.full(m, has_missing),
        np.full(m, all_finite),
        np.ones(m, np.bool_),
        np.array(directions or [0] * m, np.int8),
        directions is not None,
        l2 / UNIT,
        least / UNIT,
        1,
        0,
    )


def best_of(
    bins: Int64Array, feature: int, total: int, search: SplitSearch, bounds: tuple[float, float] = ANY
) -> Split:
    """Return a feature's best split, documents not counted."""
    return split_search.best_split(bins, NO_COUNTS, feature, total, search, 0, *bounds)


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
    packed = pack(g, h)
    widths = [max(own) + 1 if lost is None else lost + 1 for own, lost in zip(codes, missing, strict=True)]
    bins = np.array(reference.trees.bin_sums(codes, packed.tolist(), range(n), widths), np.int64)
    unchanged = bins.copy()
    has_missing = [lost is not None for lost in missing]
    search = searching(widths, l2, limit, [own[0] for own in codes], has_missing)
    bins[search.bin_offsets[:-1] + search.most_frequent_bins] = 0
    total = int(packed.sum())
    gains, bests = np.empty(m), []
    for a, b in ((0, 1), (1, m)):
        bests.append(Split(*split_search.find_best_split(bins, total, search, a, b, gains)))
    assert (bins == unchanged).all()
    found = []
    for split, (a, b) in zip(bests, ((0, 1), (1, m)), strict=True):
        assert split.split_gain == max(gains[a:b])
        assert split.split_gain == -np.inf or split == best_of(bins, a + int(gains[a:b].argmax()), total, search)
    for f in range(m):
        fast = best_of(bins, f, total, search)
        assert fast.split_gain == gains[f]
        if fast.split_gain > 0:
            goes_left = [fast.missing_left if c == missing[f] else c <= fast.bin for c in codes[f]]
            assert fast.left_total == packed[goes_left].sum()
        counts = np.bincount(codes[f], minlength=256)
        found.append(split_search.best_split(bins, counts, f, total, search, docs, *ANY))
        assert found[f].split_gain <= fast.split_gain
        if docs <= 1 and fast.split_gain > 0:
            assert found[f] == fast
    best = found[int(np.argmax([split.split_gain for split in found]))]
    if best.split_gain == -np.inf:
        return None
    return best.split_gain * UNIT, best.feature, best.bin, best.missing_left


@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 2.0]))
def test_gains_of_children_are_those_of_histograms_summed_on_their_own(
    seed: int, lost: bool, finite: bool, l2: float, limit: float
) -> None:
    rng = np.random.default_rng(seed)
    m, n = 4, int(rng.integers(2, rng.choice([40, 400])))
    width = int(rng.integers(2, rng.choice([9, 40, 256]))) + lost
    codes = np.minimum(rng.integers(0, width, (m, n)), rng.integers(0, width, (m, n))).astype(np.uint8)
    packed = pack(rng.normal(size=n), rng.random(n) * (rng.random(n) < 0.8))
    small = np.flatnonzero(rng.random(n) < 0.4).tolist()
    large = [d for d in range(n) if d not in small]
    parent, child, other = (
        np.array(reference.trees.bin_sums(codes.tolist(), packed.tolist(), rows, [width] * m), np.int64)
        for rows in (range(n), small, large)
    )
    expected = child.copy(), other.copy()
    search = searching([width] * m, l2, limit, codes[:, 0], lost, finite)
    child[search.bin_offsets[:-1] + search.most_frequent_bins] = 0
    totals = int(packed[large].sum()), int(packed[small].sum())
    gains, of_larger = np.empty((2, m)), np.empty((1, m))
    alone = split_search.find_best_splits_of_children(parent.copy(), child.copy(), *totals, search, 0, m, of_larger)
    for a, b in ((0, 3), (3, 4)):
        fields = split_search.find_best_splits_of_children(parent, child, *totals, search, a, b, gains)
        bests = [Split(*of_child) for of_child in fields]
        assert [split.split_gain for split in bests] == gains[:, a:b].max(axis=1).tolist()
    assert of_larger.tolist() == gains[:1].tolist() and Split(*alone[0]).split_gain == gains[0].max()
    assert (child == expected[0]).all() and (parent == expected[1]).all()
    for row, (bins, total) in enumerate(zip((parent, child), totals, strict=True)):
        for f in range(m):
            assert best_of(bins, f, total, search).split_gain == gains[row, f]


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
    every = reference.trees.splits(codes, missing, g, h, range(len(g)), l2, limit, docs)
    found = split_of(codes, missing, g, h, l2, limit, docs)
    best = max((split[0] for split in every), default=0.0)
    if found is None or best < 1e-8:
        assert best < 1e-8 and (found is None or found[0] < 1e-8)
        return
    assert found[0] == pytest.approx(best, rel=1e-9)
    # the first of those that split the documents alike; sums of others may round to the same gain
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
    # {numbers | missing} and {missing | numbers} split alike; so do low codes with missing on either side of nothing
    codes = [[0, 0, 1, 1, 2, 2], [0] * 6]
    values = [1.0, 1.0, -1.0, -1.0, 0.0, 0.0]
    assert split_of(codes, [2, None], values, [1.0] * 6, 0.0, 0.0, 1)[2] == 0  # type: ignore[index]


def test_equal_gains_take_the_lowest_feature_and_threshold() -> None:
    same = [0, 1, 2, 3]
    assert split_of([same, same], [None, None], [-1.0, 1.0, -1.0, 1.0], [1.0] * 4, 0.0, 0.0, 1)[1:3] == (0, 0)  # type: ignore[index]


def test_features_that_are_not_allowed_are_not_split_on() -> None:
    bins = np.tile(pack([-1.0, 1.0], [1.0, 1.0]), 3)
    search = searching([2] * 3, 0.0)._replace(allowed=np.array([False, True, True]))
    gains = np.empty(3)
    assert Split(*split_search.find_best_split(bins, int(bins[:2].sum()), search, 0, 3, gains)).feature == 1
    assert gains[0] == -np.inf and gains[1] == gains[2] > 0
    none = search._replace(allowed=np.zeros(3, np.bool_))
    assert split_search.find_best_split(bins, int(bins[:2].sum()), none, 0, 3, gains)[0] == -np.inf


def test_nothing_gained_is_no_split() -> None:
    assert split_of([[0, 1, 0, 1], [0, 0, 1, 1]], [None, None], [1.0] * 4, [1.0] * 4, 0.0, 0.0, 1) is None
    assert split_of([[0, 1], [1, 0]], [None, None], [1.0, -1.0], [0.0, 0.0], 0.0, 0.0, 1) is None


@given(
    st.integers(2, 14).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=1, max_size=3),
            st.lists(st.integers(-900, 900), min_size=n, max_size=n),
            st.lists(st.integers(1, 900), min_size=n, max_size=n),
        )
    ),
    st.lists(st.integers(-1, 1), min_size=3, max_size=3),
    st.sampled_from([(-np.inf, np.inf), (-0.5, 0.25), (0.125, np.inf), (-np.inf, -1.0), (0.5, 0.5)]),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0, 3]),
)
def test_the_best_constrained_split_is_that_of_brute_force(
    data: tuple[list[list[int]], list[int], list[int]],
    directions: list[int],
    bounds: tuple[float, float],
    lost: bool,
    l2: float,
    docs: int,
) -> None:
    codes, gs, hs = data
    g, h = [x / 1024 for x in gs], [x / 1024 for x in hs]
    n, m = len(g), len(codes)
    width = 4
    missing = [width - 1 if lost else None] * m
    packed = pack(g, h)
    bins = np.array(reference.trees.bin_sums(codes, packed.tolist(), range(n), [width] * m), np.int64)
    total = int(packed.sum())
    every = reference.trees.bounded_splits(codes, missing, g, h, l2, docs, directions, bounds)
    gains = np.empty(m)
    search = searching([width] * m, l2, has_missing=lost, directions=directions[:m])
    winner = Split(*split_search.find_best_constrained_split(bins, total, search, *bounds, 0, m, gains))
    assert winner.split_gain == gains.max()
    for f in range(m):
        counts = np.bincount(codes[f], minlength=256)
        split = split_search.best_split(bins, counts, f, total, search, docs, *bounds)
        expected = [split for split in every if split[1] == f]
        best = max((split[0] for split in expected), default=0.0)
        if split.split_gain * UNIT <= 1e-9:  # which is no gain to the twin
            assert best < 1e-7
            continue
        assert abs(split.split_gain * UNIT - best) < 1e-7 * max(1.0, best) + 1e-9
        same = (f, split.bin, split.missing_left)
        assert any(other[1:] == same and other[0] > best - 1e-7 * max(1.0, best) for other in expected)
        goes_left = [split.missing_left if c == missing[f] else c <= split.bin for c in codes[f]]
        assert split.left_total == packed[goes_left].sum()
        if docs == 0:
            assert gains[f] == split.split_gain


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_constraints_that_allow_everything_leave_the_best_split(seed: int, l2: float) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 9))
    packed = pack(rng.normal(size=30), rng.random(30))
    codes = rng.integers(0, width, 30).tolist()
    bins = np.array(reference.trees.bin_sums([codes], packed.tolist(), range(30), [width]), np.int64)
    total = int(packed.sum())
    found, expected = (best_of(bins, 0, total, searching([width], l2, directions=of)) for of in ([0], None))
    np.testing.assert_allclose(found.split_gain, expected.split_gain, rtol=1e-9)
    if expected.split_gain > 0:
        assert found[1:] == expected[1:]
