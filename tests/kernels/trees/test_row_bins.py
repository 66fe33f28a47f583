"""Bins kept row by row."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import reference.trees
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Int64Array, UInt16Array, UInt32Array
from lmart.kernels.row_arrays import SharedColumnRows
from lmart.kernels.scoring.tree_walk import BinnedTree, walk_bins
from lmart.kernels.trees import row_bins

M = 5
values = st.sampled_from([0.0, 1.0, -2.5, 3.0, math.nan, math.inf])
rows_of_cells = st.lists(st.dictionaries(st.integers(0, M - 1), values), min_size=1, max_size=20)
some_edges = st.lists(st.lists(st.floats(-4, 4), max_size=4, unique=True).map(sorted), min_size=M, max_size=M)


def coded(
    rows: list[dict[int, float]], edges: list[list[float]], absent: list[int], features: list[int]
) -> tuple[Int64Array, UInt32Array]:
    offsets = np.cumsum([0, *map(len, rows)])
    columns = np.array([c for row in rows for c in row], np.int32)
    numbers = np.array([x for row in rows for x in row.values()], np.float64)
    edge_offsets = np.cumsum([0, *map(len, edges)])
    flat = np.array([edge for own in edges for edge in own])
    coding = row_bins.RowCoding(np.array(features, np.int32), flat, edge_offsets, np.array(absent, np.uint8))
    lengths, found = np.zeros(len(rows) + 1, np.int64), []
    for start, stop in ((0, len(rows) // 2), (len(rows) // 2, len(rows))):
        codes = np.empty(len(columns), np.uint32)
        cells = SharedColumnRows(offsets, offsets[:-1], columns, numbers)
        n = row_bins.code_row_cells(cells, coding, start, stop, lengths[1 + start : 1 + stop], codes)
        found.append(codes[:n])
    return np.cumsum(lengths), np.concatenate(found)


def bins_of(rows: list[dict[int, float]], edges: list[list[float]], absent: list[int]) -> list[list[int]]:
    return [reference.trees.bins_of_row(row, edges, absent) for row in rows]


@given(rows_of_cells, some_edges, st.permutations(range(M)))
def test_rows_have_the_codes_of_their_bins_ascending_whatever_the_order_of_columns(
    rows: list[dict[int, float]], edges: list[list[float]], features: list[int]
) -> None:
    absent = [len(own) % 2 for own in edges]
    offsets, codes = coded(rows, edges, absent, features)
    bins = bins_of([{features[c]: x for c, x in row.items()} for row in rows], edges, absent)
    widths = [len(own) + 2 for own in edges]
    expected = [reference.trees.other_places(own, absent, widths) for own in bins]
    assert [codes[a:b].tolist() for a, b in pairwise(offsets.tolist())] == expected


def test_columns_without_a_feature_are_left_out() -> None:
    offsets, codes = coded([{0: 1.0, 1: 1.0}, {1: 1.0}], [[0.5]], [0], [-1, 0])
    assert (offsets.tolist(), codes.tolist()) == ([0, 1, 2], [1, 1])


@given(rows_of_cells, some_edges, st.sets(st.integers(0, M - 1)), st.sets(st.integers(0, M - 1)))
def test_columns_and_rows_of_bins_are_merged(
    rows: list[dict[int, float]], edges: list[list[float]], columns: set[int], dropped: set[int]
) -> None:
    """Features of `columns` are given as columns, the others row by row; those dropped have no place."""
    absent, n = [0] * M, len(rows)
    bins = bins_of(rows, edges, absent)
    usual = [max(set(own), key=own.count) if f in columns else 0 for f, own in enumerate(zip(*bins, strict=True))]
    widths = [0 if f in dropped else len(own) + 2 for f, own in enumerate(edges)]
    starts = np.cumsum([0, *widths])
    offsets, codes = coded(rows, edges, absent, [-1 if f in columns else f for f in range(M)])
    code_starts = np.cumsum([0, *(len(own) + 2 for own in edges)])
    places = np.full(code_starts[-1], -1, np.int32)
    for f in set(range(M)) - columns - dropped:
        places[code_starts[f] : code_starts[f + 1]] = np.arange(starts[f], starts[f + 1])
    own = sorted(columns - dropped)
    matrix = np.array(bins, np.uint8).T[own].copy() if own else np.empty((0, n), np.uint8)
    most_frequent = np.array([usual[f] for f in own], np.uint8)
    mixed = row_bins.MixedBins(matrix, most_frequent, starts[own].astype(np.int64), offsets, codes, places)
    row_offsets = np.zeros(n + 1, np.int64)
    for start, stop in ((0, n // 2), (n // 2, n)):
        row_bins.count_mixed_bins(mixed, start, stop, row_offsets[1:])
    row_offsets = np.cumsum(row_offsets)
    other_bins = np.empty(row_offsets[-1], np.uint16)
    for start, stop in ((0, n // 2), (n // 2, n)):
        row_bins.list_mixed_bins(mixed, start, stop, row_offsets, other_bins)
    left = [[usual[f] if f in dropped else b for f, b in enumerate(row)] for row in bins]
    expected = [reference.trees.other_places(row, usual, widths) for row in left]
    assert [other_bins[a:b].tolist() for a, b in pairwise(row_offsets.tolist())] == expected


@given(rows_of_cells, some_edges, st.integers(0, M - 1))
def test_the_bins_of_documents_are_found_in_their_rows(
    rows: list[dict[int, float]], edges: list[list[float]], feature: int
) -> None:
    absent, n = [len(own) % 2 for own in edges], len(rows)
    offsets, codes = coded(rows, edges, absent, list(range(M)))
    first, last = np.cumsum([0, *(len(own) + 2 for own in edges)])[feature : feature + 2].tolist()
    documents = np.arange(n - 1, -1, -2, dtype=np.int32)
    found = np.full(n, 77, np.uint8)
    of_feature = (first, last, absent[feature])
    for start, stop in ((0, len(documents) // 2), (len(documents) // 2, len(documents))):
        row_bins.find_bins(documents, offsets, codes, of_feature, start, stop, found)
    bins = bins_of(rows, edges, absent)
    assert found.tolist() == [bins[row][feature] if row in documents else 77 for row in range(n)]
    counts = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    row_bins.count_codes(counts, codes, 0, len(codes))
    assert counts.tolist() == [codes.tolist().count(code) for code in range(len(counts))]


@pytest.mark.parametrize("wider", [False, True])
def test_rows_walk_down_trees_as_columns_of_bins_do(wider: bool) -> None:
    rng = np.random.default_rng(3)
    n, m, missing = 200, 6, np.full(6, 5, np.uint8)
    bins = np.where(rng.random((m, n)) < 0.3, rng.integers(0, 6, (m, n)), 2).astype(np.uint8)
    listed = [reference.trees.other_places(row, [2] * m, [6] * m) for row in bins.T.tolist()]
    offsets = np.cumsum([0, *map(len, listed)])
    flat = [code for row in listed for code in row]
    codes: UInt16Array | UInt32Array = np.array(flat, np.uint32) if wider else np.array(flat, np.uint16)
    rows = row_bins.RowBins(offsets, codes, 6 * np.arange(m + 1), np.full(m, 2, np.uint8))
    tree = BinnedTree(
        rng.integers(0, m, 7).astype(np.int32),
        rng.integers(0, 5, 7).astype(np.int32),
        missing,
        rng.random(7) < 0.5,
        np.array([1, 3, 5, ~0, ~1, ~2, ~3], np.int32),
        np.array([2, 4, 6, ~4, ~5, ~6, ~7], np.int32),
        rng.normal(size=8),
    )
    found, expected = np.zeros(n), np.zeros(n)
    for start, stop in ((0, 60), (60, n)):
        row_bins.walk_row_bins(rows, tree, start, stop, found)
    walk_bins(bins, tree, 0, n, expected)
    assert found.tolist() == expected.tolist() and len(set(expected.tolist())) > 4
