"""Queries that span parts, which are refused: found by hashes of query ids, so that no process needs all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from lmart.array_types import UInt64Array
from lmart.formats.documents.row_blocks import comes_back


def code_of(query_id: str) -> int:
    """Return a hash of 64 bits of a query id, the same in every process."""
    return int.from_bytes(hashlib.blake2b(query_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def codes_of(query_ids: Iterable[str]) -> UInt64Array:
    """Return the hash of each query id, uint64[n_queries]."""
    return np.array([code_of(one) for one in query_ids], np.uint64)


def refuse_spanning(
    codes: Sequence[UInt64Array], first_places: Callable[[list[int]], Iterable[Mapping[str, tuple[str, int]]]]
) -> None:
    """Raise DataError when two parts, or shards, have rows of one query, naming both places.

    codes        : of each part, the hashes of its query ids, each id once
    first_places : called with hashes; gives, of each part in order, file and line of the first row of the queries with
                   one of these hashes, by id
    """
    ordered = np.sort(np.concatenate([np.zeros(0, np.uint64), *codes]))
    again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(again):
        return
    before: dict[str, tuple[str, int]] = {}
    for places in first_places(again.tolist()):
        for query_id, (path, line) in places.items():
            if query_id in before:
                raise comes_back(query_id, before[query_id], path, line)
        before |= places
