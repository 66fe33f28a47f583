"""Rows of leaves after a split, and what leaves add to scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.trees import row_partition


@given(st.lists(st.integers(0, 4), max_size=50), st.integers(0, 3), st.booleans(), st.integers(0, 50))
def test_documents_are_split_in_order(codes: list[int], code: int, side: bool, cut: int) -> None:
    n = len(codes)
    own = np.array(codes, np.uint8)
    documents = np.arange(n, dtype=np.int32)[::-1].copy()
    right = np.empty(n, np.int32)
    lefts, rights = [], []
    for a, b in ((0, min(cut, n)), (min(cut, n), n)):
        k = row_partition.partition_rows(own, code, 4, side, documents, a, b, right)
        lefts += documents[a : a + k].tolist()
        rights += right[a : b - k].tolist()
    documents = np.arange(n, dtype=np.int32)[::-1]
    goes_left = [side if codes[d] == 4 else codes[d] <= code for d in documents]
    assert lefts == [d for d, yes in zip(documents, goes_left, strict=True) if yes]
    assert rights == [d for d, yes in zip(documents, goes_left, strict=True) if not yes]
    for enough in (1, n, n + 1):
        counted = row_partition.count_children(own, code, 4, side, documents, enough, 0, 0)
        if min(counted) < enough:
            assert counted == (len(lefts), len(rights))
        else:
            assert min(len(lefts), len(rights)) >= enough
    assert row_partition.count_children(own, code, 4, side, documents, 0, 2, 3) == (2, 3)
    counts = np.zeros(256, np.int64)
    row_partition.count_leaf_bins(own, documents, 0, n, counts)
    assert counts[:5].tolist() == [codes.count(c) for c in range(5)]


def test_leaf_values_are_added_to_the_scores_of_their_documents() -> None:
    scores = np.ones(5)
    starts, stops, values = np.array([0, 2]), np.array([2, 3]), np.array([10.0, 20.0])
    row_partition.add_leaf_values(np.array([4, 0, 1], np.int32), starts, stops, values, scores)
    assert scores.tolist() == [11, 21, 1, 1, 11]
