"""Samples of rows by gradient."""

from __future__ import annotations

import numpy as np
import pytest
import reference.random_numbers

from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.trees import gradient_sampling
from lmart.kernels.trees.gradient_sampling import RowDraw


def test_mixed_bits_are_those_of_splitmix64() -> None:
    assert int(mix_bits(np.uint64(0))) == 0xE220A8397B1DCDAF
    for x in (1, 12345, 2**63):
        assert int(mix_bits(np.uint64(x))) == reference.random_numbers.mix(x)


def test_the_threshold_keeps_the_share_asked_for() -> None:
    sizes = np.sort(np.random.default_rng(1).lognormal(size=5000))
    for share in (0.05, 0.3, 0.9):
        mu = gradient_sampling.threshold_for(sizes, share)
        assert np.minimum(1, sizes / mu).mean() == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_threshold_keeps_the_share_of_sizes_that_span_many_powers(share: float) -> None:
    rng = np.random.default_rng(7)
    spread = rng.lognormal(0, 20, 5000)
    few_large = np.concatenate([rng.random(4000), np.full(3, 1e19)])
    with_zeros = np.concatenate([np.zeros(400), spread])
    for sizes in (spread, few_large, np.concatenate([few_large * 1e-30, spread]), with_zeros):
        mu = gradient_sampling.threshold_for(np.sort(sizes), share)
        assert np.minimum(1, sizes / mu).mean() == pytest.approx(share, rel=1e-9)
    mostly_zeros = np.concatenate([np.zeros(5000), 10.0 ** rng.uniform(-9, 9, 200)])
    assert gradient_sampling.threshold_for(np.sort(mostly_zeros), share) == 0.0 or share < 0.1


def test_drawing_is_unbiased_reproducible_and_does_not_depend_on_the_chunks() -> None:
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=20_000) ** 3, rng.random(20_000)
    sizes = np.empty(20_000)
    gradient_sampling.gradient_sizes(g, h, 0, 20_000, sizes)
    np.testing.assert_allclose(sizes, np.sqrt(g**2 + 0.1 * h**2))
    mu = gradient_sampling.threshold_for(np.sort(sizes), 0.2)
    sums = []
    for key in range(40):
        results = []
        for pieces in ([(0, 20_000)], [(0, 777), (777, 20_000)]):
            own_g, own_h = g.copy(), h.copy()
            taken, rest = np.empty(20_000, np.int32), np.empty(20_000, np.int32)
            drawn, left = [], []
            for a, b in pieces:
                k = gradient_sampling.draw_rows(own_g, own_h, RowDraw(mu, np.uint64(key * 7919), 0), a, b, taken, rest)
                drawn += taken[a : a + k].tolist()
                left += rest[a : b - k].tolist()
            results.append((drawn, left, own_g[drawn].sum(), own_h[drawn].sum()))
        assert results[0] == results[1]
        assert sorted(results[0][0] + results[0][1]) == list(range(20_000))
        assert len(results[0][0]) == pytest.approx(4000, rel=0.1)
        sums.append(results[0][2:])
    error = np.abs(np.mean(sums, axis=0) - [g.sum(), h.sum()])
    assert (error < 4 * np.std(sums, axis=0) / 40**0.5).all()


def test_a_part_of_the_rows_is_drawn_as_in_the_whole() -> None:
    rng = np.random.default_rng(4)
    g, h = rng.normal(size=200), rng.random(200)
    drawn = []
    for a, b in ((0, 200), (0, 77), (77, 200)):
        own_g, own_h, n = g[a:b].copy(), h[a:b].copy(), b - a
        taken, rest = np.empty(n, np.int32), np.empty(n, np.int32)
        draw = RowDraw(0.8, np.uint64(11), a)
        k = gradient_sampling.draw_rows(own_g, own_h, draw, 0, n, taken, rest)
        drawn.append((a + taken[:k], own_g, own_h))
    at_once, *parts = drawn
    assert 20 < len(at_once[0]) < 180
    for k in range(3):
        np.testing.assert_array_equal(np.concatenate([part[k] for part in parts]), at_once[k])
