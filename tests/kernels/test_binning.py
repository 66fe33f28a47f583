"""Bin edges and codes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels import binning

LARGEST = float(np.finfo(np.float64).max)
numbers = st.floats(allow_nan=False, allow_infinity=False)
few = st.integers(-6, 6).map(lambda x: x / 4)


def edges_of(cells: list[float], zeros: int = 0, max_bins: int = 255) -> list[float]:
    edges = np.empty(max_bins)
    count = binning.fit_edges(np.sort(np.array(cells, np.float64)), zeros, max_bins, edges)
    return list(map(float, edges[:count]))


@given(numbers, numbers)
def test_an_edge_tells_its_neighbours_apart(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    if low < high:
        edge = binning.between(low, high)
        assert low <= edge < high
        assert low < edge or math.nextafter(low, math.inf) == high


@pytest.mark.parametrize(
    ("low", "high", "edge"),
    [
        (1.0, 2.0, 1.5),
        (0.12345678, 0.12345679, 0.123456785),
        (-1.7e308, 1.7e308, 0.0),
        (1.6e308, 1.7e308, 1.65e308),
        (2.0**53, 2.0**53 + 2, 2.0**53),  # the middle is the even neighbour: the lower one here
        (2.0**53 + 2, 2.0**53 + 4, 2.0**53 + 2),  # here it rounds to the upper one, which would not part them
        (5e-324, 1e-323, 5e-324),
        (-0.0, 1.0, 0.5),
        (3.0, math.inf, 3.0),
        (-math.inf, 3.0, -LARGEST),
    ],
)
def test_edges_between_awkward_neighbours(low: float, high: float, edge: float) -> None:
    assert binning.between(low, high) == pytest.approx(edge, rel=1e-15)
    assert low <= binning.between(low, high) < high


def test_no_edge_that_json_could_hold_parts_minus_infinity_from_the_least_number() -> None:
    assert math.isnan(binning.between(-math.inf, -LARGEST))


@given(st.lists(numbers, max_size=40), st.integers(0, 5))
def test_few_distinct_values_have_a_bin_each(cells: list[float], zeros: int) -> None:
    edges = edges_of(cells, zeros)
    distinct = sorted({x + 0.0 for x in cells} | ({0.0} if zeros else set()))
    assert [reference.bin_of(x, edges) for x in distinct] == list(range(len(distinct)))


@given(st.lists(st.one_of(few, numbers), min_size=1, max_size=80), st.integers(0, 60), st.integers(2, 12))
def test_bins_are_limited_ascending_and_zero_is_alone(cells: list[float], zeros: int, max_bins: int) -> None:
    edges = edges_of(cells, zeros, max_bins)
    assert len(edges) < max_bins
    assert all(a < b for a, b in pairwise(edges))
    others = {x for x in cells if x != 0}
    has_zero = zeros > 0 or len(others) < len(set(map(float, cells)))
    if has_zero and max_bins >= 3:
        zero_bin = reference.bin_of(0.0, edges)
        assert all(reference.bin_of(x, edges) != zero_bin for x in others)


def test_many_values_are_shared_out_evenly() -> None:
    cells = np.random.default_rng(1).permutation(10_000).astype(np.float64) + 1
    edges = edges_of(cells.tolist(), 0, 50)
    sizes = np.bincount(np.searchsorted(edges, np.arange(1, 10_001)))
    assert len(sizes) == 50 and sizes.min() > 150 and sizes.max() < 250


def test_a_heavy_value_stands_alone_and_leaves_the_rest_fine() -> None:
    cells = [7.0] * 5000 + list(np.linspace(0, 14, 1001) + 0.001)
    edges = edges_of(cells, 0, 20)
    own = reference.bin_of(7.0, edges)
    near = [reference.bin_of(x, edges) for x in cells if abs(x - 7) > 0.02 and x != 7]
    assert own not in near
    assert len(edges) == 19


def test_the_order_of_rows_leaves_no_trace() -> None:
    cells = np.random.default_rng(2).normal(size=3000).round(3)
    assert edges_of(cells.tolist(), 5, 30) == edges_of(cells[::-1].tolist(), 5, 30)


@given(st.lists(numbers, max_size=260, unique=True), st.one_of(few, numbers))
def test_bin_of_counts_the_edges_below(values: list[float], x: float) -> None:
    edges = np.array([0.25, *sorted(values), -1.0])  # what lies around a feature's edges is not looked at
    assert binning.bin_of(x, edges, 1, len(values)) == reference.bin_of(x, sorted(values))


def coded(rows: list[dict[int, float]], edges: list[list[float]], absent: list[int]) -> npt.NDArray[np.uint8]:
    offsets = np.cumsum([0, *map(len, rows)])
    columns = np.array([c for row in rows for c in row], np.int32)
    values = np.array([x for row in rows for x in row.values()], np.float64)
    used = np.arange(len(edges), dtype=np.int32)
    grid = np.full((len(edges), 256), np.inf)
    for f, own in enumerate(edges):
        grid[f, 1 : 1 + len(own)] = own
    missing = np.array([len(own) + 1 for own in edges], np.uint8)
    out = np.empty((len(edges), len(rows)), np.uint8)
    fixed = (offsets, offsets[:-1], columns, values, used, grid.ravel(), missing, np.array(absent, np.uint8))
    for start, stop in ((0, len(rows) // 2), (len(rows) // 2, len(rows))):
        binning.code_cells(*fixed, start, stop, 0, out)
    return out


def test_cells_get_the_bin_of_their_value_nan_its_own_and_absent_ones_theirs() -> None:
    rows = [{0: 1.0, 1: -5.0}, {1: math.nan}, {0: 2.5}, {}]
    out = coded(rows, [[0.5, 2.0], [-1.0]], [0, 2])
    assert out.tolist() == [[1, 0, 2, 0], [0, 2, 2, 2]]


@given(st.lists(numbers, max_size=255, unique=True), st.lists(st.one_of(few, numbers), min_size=1, max_size=80))
def test_a_code_is_the_number_of_edges_below(values: list[float], column: list[float]) -> None:
    edges = sorted(values)[:254]
    out = coded([{0: x} for x in column], [edges], [0])
    assert out[0].tolist() == [reference.bin_of(x, edges) for x in column]


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=20))
def test_uncommon_cells_are_listed_row_by_row(rows: list[list[int]]) -> None:
    codes = np.array(rows, np.uint8).T.copy()
    n = len(rows)
    counts = np.empty((3, 256), np.int64)
    for f in range(3):
        binning.count_codes(codes[f], counts[f])
        assert counts[f, :4].tolist() == [sum(row[f] == c for row in rows) for c in range(4)]
    common = counts.argmax(axis=1).astype(np.uint8)
    row_offsets = np.zeros(n + 1, np.int64)
    for start, stop in ((0, n // 2), (n // 2, n)):
        binning.count_uncommon(codes, common, start, stop, row_offsets[1:])
    row_offsets = np.cumsum(row_offsets)
    out = np.empty(row_offsets[-1], np.uint16)
    for start, stop in ((0, n // 2), (n // 2, n)):
        binning.list_uncommon(codes, common, np.array([0, 4, 8, 12]), row_offsets, start, stop, out)
    expected = [[4 * f + row[f] for f in range(3) if row[f] != common[f]] for row in rows]
    assert [out[a:b].tolist() for a, b in pairwise(row_offsets)] == expected
