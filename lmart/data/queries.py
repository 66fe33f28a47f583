"""Queries of rows, as Python programs give them: an id for each row, or the number of rows of each query."""

from __future__ import annotations

import math
from collections.abc import Hashable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lmart.array_types import Int64Array
from lmart.data.from_python import cells_of
from lmart.errors import ArrayError, counted, quote

_SORT = "rows of a query must be adjacent: sort everything by qid, order = numpy.argsort(qid, kind='stable')"
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # types of what stands for no id


def offsets_of_ids(qid: object, n: int, how_to_sort: str = _SORT) -> tuple[Int64Array, list[str]]:
    """Return where the rows of each query start, and the end, int64[n_queries + 1], and the query ids as text.

    qid : n ids, numbers, texts or what can be hashed; rows with equal ids must be adjacent

    ArrayError names the rows when there are others than n, an id is missing, or rows of a query are not adjacent.
    """
    kinds = {type(entry) for entry in qid} if isinstance(qid, list | tuple) else set()
    if isinstance(qid, list | tuple) and (len(kinds) > 1 or kinds & {list, tuple}):
        listed, qid = qid, np.empty(len(qid), np.object_)  # numbers, texts and tuples stay what they are
        qid[:] = listed
    ids = cells_of(qid, "qid")
    if len(ids) != n:
        rows = counted(n, "row")
        raise ArrayError(f"qid has {counted(len(ids), 'entry')}, but X has {rows}; give one for each row")
    changes = _changes(ids)
    starts = np.concatenate([[0], changes]).astype(np.int64) if n else np.zeros(0, np.int64)
    first_rows: dict[Hashable, int] = {}
    for start, query_id in zip(starts.tolist(), ids[starts].tolist(), strict=True):
        try:
            first_row = first_rows.setdefault(query_id, start)
        except TypeError:
            raise ArrayError(
                f"qid of row {start} (from 0) is a {type(query_id).__name__}, which cannot be an id"
            ) from None
        if type(query_id).__name__ in _MISSING or (isinstance(query_id, float) and math.isnan(query_id)):
            raise ArrayError(f"qid of row {start} (from 0) is missing; give every row the id of its query")
        if first_row != start:
            what = f"query {quote(str(query_id))} begins in row {first_row} and again in row {start} (from 0)"
            raise ArrayError(f"{what}; {how_to_sort}")
    return np.concatenate([starts, [n]]).astype(np.int64), [str(query_id) for query_id in first_rows]


def _changes(ids: npt.NDArray[np.generic]) -> Int64Array:
    """Return the rows whose id is not that of the row before, int64."""
    try:
        differ = ids[1:] != ids[:-1]
        if isinstance(differ, np.ndarray) and differ.dtype == np.bool_:
            return np.flatnonzero(differ) + 1
    except (TypeError, ValueError):  # such as pandas.NA, which is neither equal nor unequal
        pass
    listed = ids.tolist()
    pairs = enumerate(pairwise(listed), 1)
    return np.array([i for i, (a, b) in pairs if a is not b and not _equal(a, b)], np.int64)


def _equal(a: object, b: object) -> bool:
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def offsets_of_sizes(group: object, n: int) -> Int64Array:
    """Return where the rows of each query start, and the end, int64[n_queries + 1].

    ArrayError when a size is no whole number above 0, or they do not add up to n.
    """
    sizes = cells_of(group, "group")
    if len(sizes) and sizes.dtype.kind not in "iu":
        wrong = next((size for size in sizes.tolist() if type(size) is not int), sizes[0])
        raise ArrayError(f"group holds {quote(str(wrong))}; give the number of rows of each query as whole numbers")
    if len(sizes) and sizes.min() < 1:
        at = int(np.argmax(sizes < 1))
        raise ArrayError(f"entry {at} (from 0) of group is {sizes[at]}; a query has at least one row")
    fits = len(sizes) <= n and sizes.max(initial=0) <= n  # else the sum may be beyond 64 bits
    if not fits or int(sizes.sum()) != n:
        total = counted(sum(sizes.tolist()), "row")
        raise ArrayError(f"group adds up to {total}, but X has {counted(n, 'row')}; give the rows of each query")
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
