"""A leaf split in one call, and the best splits of its children."""

from __future__ import annotations

import numpy as np
import pytest
import reference.trees
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.trees.leaf_expansion import GrowingRows, expand_leaf
from lmart.kernels.trees.split_gain import SplitSearch

WIDTH = 5  # bins of a feature, the last for missing values
ANY = (-np.inf, np.inf)


@st.composite
def leaves(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int], list[bool]]:
    """Codes by feature, gradients, hessians, and which documents are in the sums."""
    n = draw(st.integers(2, 24))
    codes = draw(st.lists(st.lists(st.integers(0, WIDTH - 1), min_size=n, max_size=n), min_size=2, max_size=3))
    gradients = draw(st.lists(st.integers(-900, 900), min_size=n, max_size=n))
    hessians = draw(st.lists(st.integers(1, 900), min_size=n, max_size=n))
    return codes, gradients, hessians, draw(st.lists(st.sampled_from([True, True, False]), min_size=n, max_size=n))


def growing(codes: list[list[int]], packed: list[int], in_sums: list[bool]) -> GrowingRows:
    """Return the rows of a tree whose only leaf has all documents; bin 0 is each feature's most frequent.

    The bins of the second feature are in rows only.
    """
    m, n = len(codes), len(packed)
    cells = [[f * WIDTH + codes[f][row] for f in range(m) if codes[f][row]] for row in range(n)]
    ends = np.cumsum([0, *map(len, cells)])
    others = np.array([cell for own in cells for cell in own], np.uint16)
    sampled = np.array([row for row in range(n) if in_sums[row]], np.int32)
    unsampled = np.array([row for row in range(n) if not in_sums[row]], np.int32)
    return GrowingRows(
        np.array(codes[:1] + codes[2:], np.uint8),
        np.array([0, -1, 1][:m], np.int32),
        np.concatenate([np.bincount(own, minlength=WIDTH) for own in codes]),
        np.full(m, WIDTH - 1, np.uint8),
        np.array(packed, np.int64),
        ends[:-1].copy(),
        ends[1:].copy(),
        others,
        ends,
        others,
        sampled,
        sampled.copy(),
        unsampled,
        unsampled.copy(),
    )


@given(
    leaves(), st.integers(0, WIDTH - 2), st.booleans(), st.integers(1, 4), st.booleans(), st.sampled_from([0.0, 1.0])
)
def test_children_are_those_of_brute_force(
    leaf: tuple[list[list[int]], list[int], list[int], list[bool]],
    split_bin: int,
    missing_left: bool,
    min_docs: int,
    constrained: bool,
    l2: float,
) -> None:
    codes, gradients, hessians, in_sums = leaf
    m, n = len(codes), len(gradients)
    packed = [((g << 32) + h) * sampled for g, h, sampled in zip(gradients, hessians, in_sums, strict=True)]
    rows = growing(codes, packed, in_sums)
    flags = np.ones(m, np.bool_)
    search = SplitSearch(
        np.arange(m + 1) * WIDTH,
        np.zeros(m, np.uint8),
        flags,
        flags,
        flags,
        np.zeros(m, np.int8),  # with constraints, but none on any feature: the same splits by the other way
        constrained,
        l2,
        0.0,
        min_docs,
        0,
    )
    goes_left = [missing_left if code == WIDTH - 1 else code <= split_bin for code in codes[0]]
    sides = [[row for row in range(n) if goes_left[row] == left] for left in (True, False)]
    left_total, right_total = (sum(packed[row] for row in side) for side in sides)
    histogram = np.array(reference.trees.bin_sums(codes, packed, range(n), [WIDTH] * m), np.int64)
    of_smaller = np.full(m * WIDTH, 77, np.int64)
    n_left, n_left_unsampled, *found = expand_leaf(
        rows,
        search,
        (0, len(rows.sampled), 0, len(rows.unsampled)),
        (0, split_bin, missing_left, left_total, left_total + right_total),
        (ANY, ANY),
        histogram,
        of_smaller,
    )
    assert rows.sampled.tolist() == [row for side in sides for row in side if in_sums[row]]
    assert rows.unsampled.tolist() == [row for side in sides for row in side if not in_sums[row]]
    assert n_left + n_left_unsampled == len(sides[0])
    larger = 0 if 2 * n_left > len(rows.sampled) else 1
    sums = (
        [float(g) * s for g, s in zip(gradients, in_sums, strict=True)],
        [h * s for h, s in zip(hessians, in_sums, strict=True)],
    )
    for side, (own, fields) in enumerate(zip(sides, found, strict=True)):
        every = reference.trees.splits(codes, [WIDTH - 1] * m, *sums, own, l2, 0.0, min_docs)
        best = max((split[0] for split in every), default=0.0)
        if best < 1e-6:
            assert fields[0] < 1e-6
            continue
        gain, feature, cut, missing, total = fields
        assert gain == pytest.approx(best, rel=1e-9)
        lefts = [row for row in own if (missing if codes[feature][row] == WIDTH - 1 else codes[feature][row] <= cut)]
        assert min(len(lefts), len(own) - len(lefts)) >= min_docs and total == sum(packed[row] for row in lefts)
        written = histogram if side == larger else of_smaller
        assert written.tolist() == reference.trees.bin_sums(codes, packed, own, [WIDTH] * m)
