"""The metadata of a shard's parts: one file of each kind for each part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.distributed.part_reading import PartsReader
from lmart.errors import DataError
from lmart.formats import metadata_files


class WeightsFound(NamedTuple):
    """What the weights of a shard's parts are like.

    per_query, per_document : file of a part whose weights can only be one a query, or only one a row; None: there is
                              none
    any_above_zero : a weight is above 0
    exponent       : power of two that the largest weight is below
    """

    per_query: str | None
    per_document: str | None
    any_above_zero: bool
    exponent: int


def read_init_scores(parts: PartsReader, paths: Sequence[str]) -> Float64Array:
    """Return the scores that training starts from, float64[n_documents].

    parts : of a data set
    paths : a file for each
    """
    found = [
        metadata_files.read_init_scores(path, int(offsets[-1]), part)
        for path, (part, offsets) in zip(paths, _queries_of_parts(parts), strict=True)
    ]
    return np.concatenate([np.zeros(0), *found])


def read_weights(parts: PartsReader, paths: Sequence[str] | None) -> tuple[WeightsFound, Float64Array | None]:
    """Return what the weights of the parts are like, and the weights, one a query or one a document.

    parts : of a data set
    paths : a file for each; None: there are no weights
    """
    if paths is None:
        return WeightsFound(None, None, True, 0), None
    per: dict[str, str | None] = {"query": None, "row": None}
    found = []
    for path, (_, offsets) in zip(paths, _queries_of_parts(parts), strict=True):
        given = metadata_files.read_weight_numbers(path, offsets)
        n_queries, n_documents = len(offsets) - 1, int(offsets[-1])
        if n_queries != n_documents:
            per["query" if len(given) == n_queries else "row"] = path
        found.append((given, offsets))
    weights = np.concatenate([np.zeros(0), *(given for given, _ in found)])
    exponent = int(np.frexp(weights.max(initial=0.0))[1])
    return WeightsFound(per["query"], per["row"], bool((weights > 0).any()), exponent), weights


def _queries_of_parts(parts: PartsReader) -> Iterator[tuple[str, Int64Array]]:
    """Yield each part and its query offsets."""
    start = 0
    for path, n_rows in zip(parts.paths, parts.part_rows, strict=True):
        stop = start + n_rows
        offsets = parts.query_offsets
        first, last = np.searchsorted(offsets, [start, stop])
        yield path, offsets[first : last + 1] - start
        start = stop


def refuse_mixed(found: Sequence[WeightsFound]) -> None:
    """Raise DataError when weights of some parts are one a query and of others one a row, or all are 0.

    found : of all shards, in order
    """
    per_query = [one.per_query for one in found if one.per_query is not None]
    per_document = [one.per_document for one in found if one.per_document is not None]
    if per_query and per_document:
        what = f"has one weight a row, but {per_query[0]} one a query"
        raise DataError(f"{what}; give the same for every part", per_document[0])
