"""The parting of documents, and what leaves add to scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels import parting


@given(st.lists(st.integers(0, 4), max_size=50), st.integers(0, 3), st.booleans(), st.integers(0, 50))
def test_documents_are_parted_in_order(codes: list[int], code: int, side: bool, cut: int) -> None:
    n = len(codes)
    own = np.array(codes, np.uint8)
    documents = np.arange(n, dtype=np.int32)[::-1].copy()
    right = np.empty(n, np.int32)
    lefts, rights = [], []
    for a, b in ((0, min(cut, n)), (min(cut, n), n)):
        k = parting.part_documents(own, code, 4, side, documents, a, b, right)
        lefts += documents[a : a + k].tolist()
        rights += right[a : b - k].tolist()
    documents = np.arange(n, dtype=np.int32)[::-1]
    goes_left = [side if codes[d] == 4 else codes[d] <= code for d in documents]
    assert lefts == [d for d, yes in zip(documents, goes_left, strict=True) if yes]
    assert rights == [d for d, yes in zip(documents, goes_left, strict=True) if not yes]
    for enough in (1, n, n + 1):
        counted = parting.count_sides(own, code, 4, side, documents, enough, 0, 0)
        if min(counted) < enough:
            assert counted == (len(lefts), len(rights))
        else:
            assert min(len(lefts), len(rights)) >= enough
    assert parting.count_sides(own, code, 4, side, documents, 0, 2, 3) == (2, 3)
    counts = np.zeros(256, np.int64)
    parting.count_leaf_codes(own, documents, 0, n, counts)
    assert counts[:5].tolist() == [codes.count(c) for c in range(5)]


def test_walking_codes_and_adding_leaf_values() -> None:
    codes = np.array([[0, 1, 2, 3, 5], [1, 0, 0, 1, 1]], np.uint8)
    features, split_codes = np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    sides = np.array([True, False])
    left, right = np.array([1, -1], np.int32), np.array([-2, -3], np.int32)
    values = np.array([10.0, 20.0, 30.0])
    scores = np.ones(5)
    missing = np.array([5, 2], np.uint8)
    for a, b in ((0, 3), (3, 5)):
        parting.walk_codes(codes, features, split_codes, missing, sides, left, right, values, a, b, scores)
    assert scores.tolist() == [31, 11, 21, 21, 31]
    parting.walk_codes(
        codes, features[:0], split_codes[:0], missing, sides, left[:0], right[:0], values[:1], 0, 5, scores
    )
    assert scores.tolist() == [41, 21, 31, 31, 41]
    parting.add_leaf_values(np.array([4, 0, 1], np.int32), np.array([0, 2]), np.array([2, 3]), values[:2], scores)
    assert scores.tolist() == [51, 41, 31, 31, 51]
