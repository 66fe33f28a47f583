"""Queries that span parts: found by hashes of query ids, which are all that the driver holds of queries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from lmart.array_types import UInt64Array
from lmart.formats.documents.blocks import not_adjacent

SLICED = 1 << 20  # hashes from which on they are compared slice by slice, by their first bits
SLICE_BITS = 4

Place = tuple[str, int]  # part and line of the first row of a query


def code_of(query_id: str) -> int:
    """Return a hash of 64 bits of a query id, the same in every process."""
    return int.from_bytes(hashlib.blake2b(query_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def codes_of(query_ids: Iterable[str]) -> UInt64Array:
    """Return the hash of each query id, uint64[n]."""
    return np.fromiter(map(code_of, query_ids), np.uint64)


def places_of(places: Mapping[str, Place], codes: Sequence[int]) -> dict[str, Place]:
    """Return part and line of the first row of each query with one of these hashes, by id."""
    wanted = set(codes)
    return {query_id: place for query_id, place in places.items() if code_of(query_id) in wanted}


def repeated_codes(codes: Sequence[UInt64Array]) -> UInt64Array:
    """Return the hashes that occur more than once, ascending."""
    slices = range(1 if sum(map(len, codes)) < SLICED else 1 << SLICE_BITS)
    again = [np.zeros(0, np.uint64)]
    for number in slices:  # so that the driver holds a second copy of a few only
        own = codes
        if len(slices) > 1:
            own = [of_part[of_part >> np.uint64(64 - SLICE_BITS) == number] for of_part in codes]
        ordered = np.sort(np.concatenate([np.zeros(0, np.uint64), *own]))
        again.append(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
    return np.concatenate(again)


def refuse_repeated(found: Iterable[Mapping[str, Place]], can_group: bool = False) -> None:
    """Raise DataError when a query occurs in two parts, naming both places.

    found : of each part, or of each worker's parts, in order: the places of queries, by id
    """
    first_places: dict[str, Place] = {}
    for places in found:
        for query_id, (path, line) in places.items():
            if query_id in first_places:
                raise not_adjacent(query_id, first_places[query_id], path, line, can_group)
        first_places |= places


def spanning_parts(codes: Sequence[UInt64Array]) -> Iterator[tuple[int, int, int]]:
    """Yield hashes that occur in two parts, and these parts: the earliest second part first."""
    again = repeated_codes(codes)
    first: dict[int, int] = {}
    for part, own in enumerate(codes):
        for code in own[np.isin(own, again)].tolist():
            if code in first:
                yield code, first[code], part
            else:
                first[code] = part
