"""Queries of rows, as programs give them."""

from __future__ import annotations

import numpy as np
import pytest

from lmart.data.queries import offsets_of_ids, offsets_of_sizes
from lmart.errors import ArrayError


@pytest.mark.parametrize(
    ("qid", "offsets", "ids"),
    [
        ([1, 1, 2, 2], [0, 2, 4], ["1", "2"]),
        (["a", "a", "b"], [0, 2, 3], ["a", "b"]),
        ([("x", 1), ("x", 1), ("y", 2)], [0, 2, 3], ["('x', 1)", "('y', 2)"]),
        ([1, 1, "1"], [0, 2, 3], ["1", "1"]),  # a number and a text are two ids
        ([1, 1.0, True], [0, 3], ["1"]),  # as Python compares them
        (np.array([["a"], ["a"]]), [0, 2], ["a"]),
        (np.array([3, 1, 2], np.uint64), [0, 1, 2, 3], ["3", "1", "2"]),
        ([], [0], []),
    ],
)
def test_ids(qid: object, offsets: list[int], ids: list[str]) -> None:
    found, names = offsets_of_ids(qid, offsets[-1])
    assert (found.tolist(), names) == (offsets, ids) and found.dtype == np.int64


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, 2, 1], r"query '1' begins in row 0 and again in row 2 \(from 0\); rows of a query must be adjacent"),
        ([None, 1, 1], r"qid of row 0 \(from 0\) is missing"),
        ([1.0, float("nan"), 2], r"qid of row 1 \(from 0\) is missing"),
        ([1, [2], [2]], r"qid of row 1 \(from 0\) is a list, which cannot be an id"),
        ([1, 2], "qid has 2 entries, but X has 3 rows; give one for each row"),
        (np.zeros((3, 2)), "qid has 2 dimensions"),
    ],
)
def test_ids_that_are_refused(qid: object, message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        offsets_of_ids(qid, 3)


def test_sizes() -> None:
    assert offsets_of_sizes([2, 1], 3).tolist() == [0, 2, 3]
    assert offsets_of_sizes(np.array([3], np.uint8), 3).tolist() == [0, 3]
    assert offsets_of_sizes(np.array([100, 100, 100], np.int8), 300).tolist() == [0, 100, 200, 300]


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ([2, 2], "group adds up to 4 rows, but X has 3 rows"),
        ([3, 0], r"entry 1 \(from 0\) of group is 0; a query has at least one row"),
        ([1.5, 1.5], "group holds '1.5'; give the number of rows"),
        (["a"], "group holds 'a'"),
        (np.array([2, None], object), "group holds 'None'"),
        ([2**62, 2**62, 2**62, 2**62 + 3], "group adds up to 18,446,744,073,709,551,619 rows"),
        (np.array([2**64 - 1, 4], np.uint64), "group adds up to 18,446,744,073,709,551,619 rows"),
        (np.array([-1, 4], np.int8), r"entry 0 \(from 0\) of group is -1"),
    ],
)
def test_sizes_that_are_refused(group: object, message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        offsets_of_sizes(group, 3)
