"""Weights of the parts of a data set: a file for each, which all hold one a query or all one a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import DataError
from lmart.formats import metadata_files


class WeightsFound(NamedTuple):
    """What the weights of parts are like.

    per_query, per_document : file of a part whose weights can only be one a query, or only one a row; None: there is
                              none
    any_above_zero : a weight is above 0
    exponent       : power of two that the largest weight is below
    """

    per_query: str | None
    per_document: str | None
    any_above_zero: bool
    exponent: int


def read_part_weights(path: str, query_offsets: Int64Array) -> tuple[WeightsFound, Float64Array]:
    """Return what the weights of a part are like, and the weights, one a query or one a document.

    path          : the file
    query_offsets : int64[n_queries + 1] of the part
    """
    given = metadata_files.read_weight_numbers(path, query_offsets)
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    per_query = path if len(given) == n_queries != n_documents else None
    per_document = path if len(given) == n_documents != n_queries else None
    exponent = int(np.frexp(given.max(initial=0.0))[1])
    return WeightsFound(per_query, per_document, bool((given > 0).any()), exponent), given


def joined_weights(found: Sequence[WeightsFound]) -> WeightsFound:
    """Return what the weights of several parts are like together."""
    of_weights = [one.exponent for one in found if one.any_above_zero]
    return WeightsFound(
        next((one.per_query for one in found if one.per_query is not None), None),
        next((one.per_document for one in found if one.per_document is not None), None),
        bool(of_weights),
        max(of_weights, default=0),
    )


def refuse_unfit(found: WeightsFound, first: str) -> None:
    """Raise DataError when weights of some parts are one a query and of others one a row, or all are 0."""
    if found.per_query is not None and found.per_document is not None:
        what = f"has one weight a row, but {found.per_query} one a query"
        raise DataError(f"{what}; give the same for every part", found.per_document)
    if not found.any_above_zero:
        raise DataError(metadata_files.ALL_ZERO, first)
