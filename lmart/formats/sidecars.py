"""Files beside the data: the sizes of its queries, and weights of its queries or rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmart.errors import DataError, quote
from lmart.streams import read_all

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

LARGEST_WEIGHT = 1e100  # far from where sums of weighted numbers end

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


def _numbers(path: str) -> list[tuple[int, bytes]]:
    """Return (line, text) of a file of one number a line; blank lines and what follows a '#' do not count."""
    found = []
    for line, text in enumerate(read_all(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        token = text.split(b"#", 1)[0].strip()
        if token:
            found.append((line, token))
    if not found:
        raise DataError("holds no number; give a file of one number a line", path)
    return found


def read_query_sizes(path: str) -> Longs:
    """Read the number of rows of each query, one a line: int64[n_queries], all > 0. DataError for anything else."""
    sizes = []
    for line, token in _numbers(path):
        if not token.isdigit() or len(token) > 18:
            what = f"query size {quote(token)} is not a whole number"
            raise DataError(f"{what}; give the row count of each query, one a line", path, line)
        if int(token) == 0:
            what = f"query size {quote(token)}: a query has at least one row"
            raise DataError(f"{what}; leave empty queries out", path, line)
        sizes.append(int(token))
    return np.array(sizes, np.int64)


@dataclass(frozen=True)
class Weights:
    """Weights of a data set: what each row counts in training, and each query in measures.

    per_document : float64[n_documents]    per_query : float64[n_queries], the mean over the query's rows
    given_per    : 'query' or 'row', as the file had them
    """

    per_document: Floats
    per_query: Floats
    given_per: str


def read_weights(path: str, query_offsets: Longs, input_rows: Longs | None = None) -> Weights:
    """Read one weight a query or one a row, told apart by their count.

    query_offsets : int64[n_queries + 1] of the data they belong to; input_rows : as in its RankingDataset
    DataError (with all three numbers) when the count fits neither, and for a weight that is negative, above
    LARGEST_WEIGHT or no number, or when all are zero. When every query has one row, both readings mean the same.
    """
    weights = []
    for line, token in _numbers(path):
        value = float(token) if _NUMBER.match(token) else np.nan
        if not 0.0 <= value <= LARGEST_WEIGHT:
            what = f"weight {quote(token)} is not a number from 0 to {LARGEST_WEIGHT:g}"
            raise DataError(f"{what}; give one weight a line", path, line)
        weights.append(value + 0.0)
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    if len(weights) not in (n_queries, n_documents):
        raise DataError(
            f"there are {len(weights)} weights, but the data has {n_queries} queries and {n_documents} rows; "
            "give one weight a query or one a row",
            path,
        )
    given = np.array(weights)
    if not given.any():
        raise DataError("all weights are zero; give at least one above zero", path)
    sizes = np.diff(query_offsets)
    if len(given) == n_queries:
        return Weights(np.repeat(given, sizes), given, "query")
    if input_rows is not None:
        given = given[input_rows]
    sums = np.add.reduceat(given, query_offsets[:-1]) if n_queries else np.zeros(0)
    return Weights(given, sums / np.maximum(sizes, 1), "row")
