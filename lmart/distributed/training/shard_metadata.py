"""The metadata of a shard's parts: one file of each kind for each part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.distributed.part_reading import PartsReader
from lmart.distributed.part_weights import WeightsFound, joined_weights, read_part_weights
from lmart.formats import metadata_files


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
    found, given = [], [np.zeros(0)]
    for path, (_, offsets) in zip(paths, _queries_of_parts(parts), strict=True):
        what, own = read_part_weights(path, offsets)
        found.append(what)
        given.append(own)
    return joined_weights(found), np.concatenate(given)


def _queries_of_parts(parts: PartsReader) -> Iterator[tuple[str, Int64Array]]:
    """Yield each part and its query offsets."""
    start = 0
    for path, n_rows in zip(parts.paths, parts.part_rows, strict=True):
        stop = start + n_rows
        offsets = parts.query_offsets
        first, last = np.searchsorted(offsets, [start, stop])
        yield path, offsets[first : last + 1] - start
        start = stop
