"""The best split under bounds of leaf values and an order of the sides."""

from __future__ import annotations

import numpy as np
import reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels import bounded, histogram, splitting

UNIT = 2.0**-20
NO_COUNTS = np.zeros(0, np.int64)


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
def test_the_best_split_is_that_of_brute_force(
    data: tuple[list[list[int]], list[int], list[int]],
    signs: list[int],
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
    packed = np.empty(n, np.int64)
    histogram.pack(np.array(g), np.array(h), 2.0**20, 2.0**20, 0, n, packed)
    bins = np.array(reference.bin_sums(codes, packed.tolist(), range(n), [width] * m), np.int64)
    total = int(packed.sum())
    every = reference.bounded_splits(codes, missing, g, h, l2, docs, signs, bounds)
    gains = np.empty(m)
    flags = np.full(m, lost), np.ones(m, np.bool_)
    fixed = (NO_COUNTS, total, np.arange(m + 1) * width, *flags, l2 / UNIT, 0.0, np.array(signs[:m], np.int8), *bounds)
    bounded.best_bounded_gains(bins, *fixed, 0, m, gains)
    for f in range(m):
        counts = np.bincount(codes[f], minlength=256)
        own = (bins, counts, f * width, width, lost, True, total, l2 / UNIT, 0.0, docs, signs[f], *bounds)
        gain, code, side, left_total = bounded.best_bounded_split(*own)
        expected = [split for split in every if split[1] == f]
        best = max((split[0] for split in expected), default=0.0)
        if gain == -np.inf:
            assert best < 1e-7
            continue
        assert abs(gain * UNIT - best) < 1e-7 * max(1.0, best) + 1e-9
        assert any((code, side) == split[2:] and split[0] > best - 1e-7 * max(1.0, best) for split in expected)
        goes_left = [side if c == missing[f] else c <= code for c in codes[f]]
        assert left_total == packed[goes_left].sum()
        if docs == 0:
            assert gains[f] == gain


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_without_bounds_and_order_it_is_the_best_split(seed: int, l2: float) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 9))
    packed = np.empty(30, np.int64)
    histogram.pack(rng.normal(size=30), rng.random(30), 2.0**20, 2.0**20, 0, 30, packed)
    codes = rng.integers(0, width, 30).tolist()
    bins = np.array(reference.bin_sums([codes], packed.tolist(), range(30), [width]), np.int64)
    own = (bins, NO_COUNTS, 0, width, False, True, int(packed.sum()), l2 / UNIT, 0.0, 0)
    found, expected = bounded.best_bounded_split(*own, 0, -np.inf, np.inf), splitting.best_split(*own)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    if expected[0] > 0:
        assert found[1:] == expected[1:]
