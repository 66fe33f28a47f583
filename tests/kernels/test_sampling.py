"""Samples of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels import sampling


def test_mixed_bits_are_those_of_splitmix64() -> None:
    assert int(sampling.mix(np.uint64(0))) == 0xE220A8397B1DCDAF
    for x in (1, 12345, 2**63):
        assert int(sampling.mix(np.uint64(x))) == reference.mix(x)


def chosen(rows: list[dict[int, float]], first: int, halvings: int) -> tuple[list[int], Any]:
    """Return the numbers of the chosen rows, and the arrays that copy_chosen wrote."""
    offsets = np.cumsum([0, *map(len, rows)])
    columns = np.array([c for row in rows for c in row], np.int32)
    values = np.array([x for row in rows for x in row.values()], np.float64)
    key = np.uint64(sampling.mix(np.uint64(5)))
    places = np.empty(len(rows), np.int64)
    n, n_cells, n_columns = sampling.choose_rows(offsets, columns, first, key, halvings, places)
    numbers, ends, starts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    own_columns, own_values = np.empty(n_columns, np.int32), np.empty(n_cells)
    out = (numbers, ends, starts, own_columns, own_values)
    sampling.copy_chosen(offsets, columns, values, places[:n], first, 0, 0, *out)
    return numbers.tolist(), (numbers, np.concatenate([[0], ends]), starts, own_columns, own_values, key)


def listed(arrays: Any, count: int) -> list[dict[int, float]]:
    _, offsets, starts, columns, values, _ = arrays
    return [
        dict(
            zip(
                columns[starts[i] : starts[i] + offsets[i + 1] - offsets[i]].tolist(),
                values[offsets[i] : offsets[i + 1]].tolist(),
                strict=True,
            )
        )
        for i in range(count)
    ]


some_rows = st.lists(
    st.one_of(
        st.just([0, 1, 2]), st.just([]), st.lists(st.integers(0, 5), unique=True, max_size=4).map(sorted)
    ).flatmap(lambda c: st.tuples(*(st.floats(-9, 9) for _ in c)).map(lambda x: dict(zip(c, x, strict=True)))),
    max_size=40,
)


@given(some_rows, st.integers(0, 1000), st.integers(0, 2), st.integers(0, 3))
def test_rows_are_chosen_by_their_number_and_thinned_as_if_chosen_so_at_once(
    rows: list[dict[int, float]], first: int, halvings: int, more: int
) -> None:
    numbers, arrays = chosen(rows, first, halvings)
    assert numbers == [first + i for i in range(len(rows)) if reference.is_chosen(first + i, 5, halvings)]
    assert listed(arrays, len(numbers)) == [rows[i - first] for i in numbers]
    again, expected = chosen(rows, first, halvings + more)
    n, n_cells, n_columns = sampling.thin_rows(*arrays[:5], arrays[5], halvings + more)
    assert arrays[0][:n].tolist() == again
    assert listed(arrays, n) == listed(expected, n)
    assert (n_cells, n_columns) == (len(expected[4]), len(expected[3]))


def test_rows_with_the_same_columns_have_them_once() -> None:
    _, arrays = chosen([{1: 0.5, 4: 1.0}] * 50, 7, 0)
    assert len(arrays[3]) == 2 and set(arrays[2].tolist()) == {0}


def test_the_threshold_keeps_the_share_asked_for() -> None:
    sizes = np.sort(np.random.default_rng(1).lognormal(size=5000))
    for share in (0.05, 0.3, 0.9):
        mu = sampling.threshold_for(sizes, share)
        assert np.minimum(1, sizes / mu).mean() == pytest.approx(share, rel=1e-9)


def test_drawing_is_unbiased_reproducible_and_does_not_depend_on_the_chunks() -> None:
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=20_000) ** 3, rng.random(20_000)
    sizes = np.empty(20_000)
    sampling.sizes(g, h, 0, 20_000, sizes)
    np.testing.assert_allclose(sizes, np.sqrt(g**2 + 0.1 * h**2))
    mu = sampling.threshold_for(np.sort(sizes), 0.2)
    sums = []
    for key in range(40):
        results = []
        for pieces in ([(0, 20_000)], [(0, 777), (777, 20_000)]):
            own_g, own_h = g.copy(), h.copy()
            taken, rest = np.empty(20_000, np.int32), np.empty(20_000, np.int32)
            drawn, left = [], []
            for a, b in pieces:
                k = sampling.draw(own_g, own_h, mu, np.uint64(key * 7919), a, b, taken, rest)
                drawn += taken[a : a + k].tolist()
                left += rest[a : b - k].tolist()
            results.append((drawn, left, own_g[drawn].sum(), own_h[drawn].sum()))
        assert results[0] == results[1]
        assert sorted(results[0][0] + results[0][1]) == list(range(20_000))
        assert len(results[0][0]) == pytest.approx(4000, rel=0.1)
        sums.append(results[0][2:])
    error = np.abs(np.mean(sums, axis=0) - [g.sum(), h.sum()])
    assert (error < 4 * np.std(sums, axis=0) / 40**0.5).all()
