"""Bin edges of a feature."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import reference.trees
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.trees import bin_edges

LARGEST = float(np.finfo(np.float64).max)
numbers = st.floats(allow_nan=False, allow_infinity=False)
few = st.integers(-6, 6).map(lambda x: x / 4)


def edges_of(cells: list[float], zeros: int = 0, max_bins: int = 255) -> list[float]:
    edges = np.empty(max_bins)
    count = bin_edges.fit_edges(np.sort(np.array(cells, np.float64)), zeros, max_bins, edges)
    return list(map(float, edges[:count]))


@given(numbers, numbers)
def test_an_edge_lies_between_its_neighbours(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    if low < high:
        edge = bin_edges.edge_between(low, high)
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
        (2.0**53 + 2, 2.0**53 + 4, 2.0**53 + 2),  # here it rounds to the upper one, which would not separate them
        (5e-324, 1e-323, 5e-324),
        (-0.0, 1.0, 0.5),
        (3.0, math.inf, 3.0),
        (-math.inf, 3.0, -LARGEST),
    ],
)
def test_edges_between_awkward_neighbours(low: float, high: float, edge: float) -> None:
    assert bin_edges.edge_between(low, high) == pytest.approx(edge, rel=1e-15)
    assert low <= bin_edges.edge_between(low, high) < high


def test_no_edge_that_json_could_hold_separates_minus_infinity_from_the_least_number() -> None:
    assert math.isnan(bin_edges.edge_between(-math.inf, -LARGEST))


@given(st.lists(numbers, max_size=40), st.integers(0, 5))
def test_few_distinct_values_have_a_bin_each(cells: list[float], zeros: int) -> None:
    edges = edges_of(cells, zeros)
    distinct = sorted({x + 0.0 for x in cells} | ({0.0} if zeros else set()))
    assert [reference.trees.bin_of(x, edges) for x in distinct] == list(range(len(distinct)))


@given(st.lists(st.one_of(few, numbers), min_size=1, max_size=80), st.integers(0, 60), st.integers(2, 12))
def test_bins_are_limited_ascending_and_zero_is_alone(cells: list[float], zeros: int, max_bins: int) -> None:
    edges = edges_of(cells, zeros, max_bins)
    assert len(edges) < max_bins
    assert all(a < b for a, b in pairwise(edges))
    others = {x for x in cells if x != 0}
    has_zero = zeros > 0 or len(others) < len(set(map(float, cells)))
    if has_zero and max_bins >= 3:
        zero_bin = reference.trees.bin_of(0.0, edges)
        assert all(reference.trees.bin_of(x, edges) != zero_bin for x in others)


def test_many_values_get_bins_of_about_equal_size() -> None:
    cells = np.random.default_rng(1).permutation(10_000).astype(np.float64) + 1
    edges = edges_of(cells.tolist(), 0, 50)
    sizes = np.bincount(np.searchsorted(edges, np.arange(1, 10_001)))
    assert len(sizes) == 50 and sizes.min() > 150 and sizes.max() < 250


def test_a_heavy_value_stands_alone_and_leaves_the_rest_fine() -> None:
    cells = [7.0] * 5000 + list(np.linspace(0, 14, 1001) + 0.001)
    edges = edges_of(cells, 0, 20)
    own = reference.trees.bin_of(7.0, edges)
    near = [reference.trees.bin_of(x, edges) for x in cells if abs(x - 7) > 0.02 and x != 7]
    assert own not in near
    assert len(edges) == 19


def test_values_too_few_before_a_heavy_one_join_the_bin_before() -> None:
    """The example of `cut_range`."""
    cells = np.repeat(np.arange(1.0, 8.0), [3, 3, 1, 9, 1, 2, 2])
    assert edges_of(cells.tolist(), 0, 4) == [3.5, 4.5, 6.5]


def test_the_order_of_rows_leaves_no_trace() -> None:
    cells = np.random.default_rng(2).normal(size=3000).round(3)
    assert edges_of(cells.tolist(), 5, 30) == edges_of(cells[::-1].tolist(), 5, 30)


@given(st.lists(numbers, max_size=260, unique=True), st.one_of(few, numbers))
def test_bin_of_counts_the_edges_below(values: list[float], x: float) -> None:
    edges = np.array([0.25, *sorted(values), -1.0])  # what lies around a feature's edges is not looked at
    assert bin_edges.bin_of(x, edges, 1, len(values)) == reference.trees.bin_of(x, sorted(values))
