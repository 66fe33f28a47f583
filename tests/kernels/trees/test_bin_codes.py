"""Bins of cells, and the bins of each row."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import reference.trees
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.row_arrays import SharedColumnRows
from lmart.kernels.trees import bin_codes

numbers = st.floats(allow_nan=False, allow_infinity=False)
few = st.integers(-6, 6).map(lambda x: x / 4)


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
    cells = SharedColumnRows(offsets, offsets[:-1], columns, values)
    bin_grid = bin_codes.BinGrid(used, grid.ravel(), missing, np.array(absent, np.uint8))
    for start, stop in ((0, len(rows) // 2), (len(rows) // 2, len(rows))):
        bin_codes.code_cells(cells, bin_grid, start, stop, 0, out)
    return out


def test_cells_get_the_bin_of_their_value_nan_its_own_and_absent_ones_theirs() -> None:
    rows = [{0: 1.0, 1: -5.0}, {1: math.nan}, {0: 2.5}, {}]
    out = coded(rows, [[0.5, 2.0], [-1.0]], [0, 2])
    assert out.tolist() == [[1, 0, 2, 0], [0, 2, 2, 2]]


@given(st.lists(numbers, max_size=255, unique=True), st.lists(st.one_of(few, numbers), min_size=1, max_size=80))
def test_a_code_is_the_number_of_edges_below(values: list[float], column: list[float]) -> None:
    edges = sorted(values)[:254]
    out = coded([{0: x} for x in column], [edges], [0])
    assert out[0].tolist() == [reference.trees.bin_of(x, edges) for x in column]


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=20))
def test_cells_outside_the_most_frequent_bins_are_listed_row_by_row(rows: list[list[int]]) -> None:
    codes = np.array(rows, np.uint8).T.copy()
    n = len(rows)
    counts = np.empty((3, 256), np.int64)
    for f in range(3):
        bin_codes.count_bins(codes[f], counts[f])
        assert counts[f, :4].tolist() == [sum(row[f] == c for row in rows) for c in range(4)]
    common = counts.argmax(axis=1).astype(np.uint8)
    row_offsets = np.zeros(n + 1, np.int64)
    for start, stop in ((0, n // 2), (n // 2, n)):
        bin_codes.count_other_bins(codes, common, start, stop, row_offsets[1:])
    row_offsets = np.cumsum(row_offsets)
    out = np.empty(row_offsets[-1], np.uint16)
    for start, stop in ((0, n // 2), (n // 2, n)):
        bin_codes.list_other_bins(codes, common, np.array([0, 4, 8, 12]), row_offsets, start, stop, out)
    expected = [[4 * f + row[f] for f in range(3) if row[f] != common[f]] for row in rows]
    assert [out[a:b].tolist() for a, b in pairwise(row_offsets)] == expected
