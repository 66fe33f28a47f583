"""Packed sums by bin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import reference.trees
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.trees import bin_codes, histogram

LOW = 0xFFFFFFFF


def packed_rows(n: int, seed: int = 0) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    out = np.empty(n, np.int64)
    histogram.pack_gradients(rng.normal(size=n), rng.random(n), 2.0**20, 2.0**20, 0, n, out)
    return out


def test_packing_keeps_both_halves_and_their_sums() -> None:
    g, h = np.array([0.5, -0.25, -1.0, 0.0]), np.array([0.0, 0.125, 1.0, 0.75])
    out = np.empty(4, np.int64)
    assert histogram.pack_gradients(g, h, 8.0, 16.0, 0, 2, out) == 2
    assert histogram.pack_gradients(g, h, 8.0, 16.0, 2, 4, out) == 16
    assert (out >> 32).tolist() == [4, -2, -8, 0]
    assert (out & LOW).tolist() == [0, 2, 16, 12]
    total = int(out.sum())
    assert (total >> 32, total & LOW) == (-6, 30)
    assert histogram.sum_magnitudes(g, h, 0, 4) == (1.75, 1.875)


@given(st.integers(1, 60), st.integers(0, 2**32), st.sampled_from([np.uint16, np.uint32]), st.integers(1, 3))
def test_histograms_are_the_sums_by_bin(n: int, seed: int, width: type, workers: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (5, n)).astype(np.uint8)
    codes[4] = 0
    widths = [4, 4, 4, 4, 1]
    bin_offsets = np.cumsum([0, *widths])
    common = np.array([np.bincount(own).argmax() for own in codes], np.uint8)
    row_offsets = np.zeros(n + 1, np.int64)
    bin_codes.count_other_bins(codes, common, 0, n, row_offsets[1:])
    row_offsets = np.cumsum(row_offsets)
    other_bins = np.empty(row_offsets[-1], width)
    bin_codes.list_other_bins(codes, common, bin_offsets, row_offsets, 0, n, other_bins)
    packed = packed_rows(n, seed)
    documents = np.flatnonzero(rng.random(n) < 0.6).astype(np.int32)
    parts = np.zeros((workers, bin_offsets[-1]), np.int64)
    bins = parts[0]
    rows = row_offsets[:-1], row_offsets[1:]
    total = 0
    for w in range(workers):  # any share-out gives the same
        start, stop = len(documents) * w // workers, len(documents) * (w + 1) // workers
        total += histogram.add_documents(parts[w], documents, packed, *rows, other_bins, start, stop)
    assert total == packed[documents].sum()
    for first, last in ((0, 3), (3, len(bins))):
        histogram.merge_histograms(bins, parts[1:], first, last)
    assert not parts[1:].any()
    assert not bins[bin_offsets[:-1] + common].any()
    for _ in range(2):  # a second time it does nothing
        for first, last in ((0, 3), (3, 5)):
            histogram.complete_histogram(bins, total, bin_offsets, common, first, last)
        assert (np.add.reduceat(bins, bin_offsets[:-1]) == total).all()
    assert bins.tolist() == reference.trees.bin_sums(codes.tolist(), packed.tolist(), documents.tolist(), widths)


@given(st.integers(1, 40), st.integers(0, 2**32), st.sampled_from([np.uint16, np.uint32]))
def test_narrowed_rows_have_the_other_bins_of_allowed_features(n: int, seed: int, width: type) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, n)
    row_offsets = np.concatenate([[0], np.cumsum(lengths)])
    other_bins = rng.integers(0, 30, row_offsets[-1]).astype(width)
    allowed = rng.random(30) < 0.5
    documents = np.flatnonzero(rng.random(n) < 0.7).astype(np.int32)
    starts, stops = np.zeros((2, n), np.int64)
    bins = np.full_like(other_bins, 77)
    rows = histogram.NarrowedRows(starts, stops, bins)
    middle = len(documents) // 2
    for start, stop in ((middle, len(documents)), (0, middle)):
        histogram.narrow_rows(documents, row_offsets, other_bins, allowed, start, stop, rows)
    for row in documents:
        of_row = other_bins[row_offsets[row] : row_offsets[row + 1]]
        assert bins[starts[row] : stops[row]].tolist() == of_row[allowed[of_row]].tolist()
