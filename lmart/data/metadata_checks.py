"""Metadata as Python programs give it: weights, initial scores and positions of rows, checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.metadata import Positions
from lmart.data.python_values import as_floats, cells_of
from lmart.errors import ArrayError, counted

LARGEST_WEIGHT = 1e100  # far from where sums of weighted numbers end
LARGEST_SCORE = 1e100  # of those that training starts from; as far from where differences of scores end


class Weights(NamedTuple):
    """Weights of a data set: what each row counts in training, and each query in measures.

    per_document : float64[n_documents]
    per_query    : float64[n_queries], the mean over the query's rows
    given_per    : 'query' or 'row', as they were given
    """

    per_document: Float64Array
    per_query: Float64Array
    given_per: str


def spread_weights(given: Float64Array, query_offsets: Int64Array, input_rows: Int64Array | None = None) -> Weights:
    """Return the weights of rows and queries.

    given         : float64, one a query, or one a row of the input; when that is the same, both mean the same
    query_offsets : int64[n_queries + 1]
    input_rows    : int64[n_documents], the row of the input of each document; None: in input order
    """
    n_queries, sizes = len(query_offsets) - 1, np.diff(query_offsets)
    given = given + 0.0  # no minus zero
    if len(given) == n_queries:
        return Weights(np.repeat(given, sizes), given, "query")
    if input_rows is not None:
        given = given[input_rows]
    sums = np.add.reduceat(given, query_offsets[:-1]) if n_queries else np.zeros(0)
    return Weights(given, sums / np.maximum(sizes, 1), "row")


def weights_of(weights: object, query_offsets: Int64Array, input_rows: Int64Array | None = None) -> Weights:
    """Return the weights of rows and queries that a program gives.

    weights       : one number from 0 up a query, or one a row
    query_offsets : int64[n_queries + 1]
    input_rows    : int64[n_documents], the row of the input of each document; None: in input order

    ArrayError when their count fits neither, one is negative, above LARGEST_WEIGHT or no number, or all are zero.
    """
    given = as_floats(cells_of(weights, "weights"), "weights")
    n_queries, n = len(query_offsets) - 1, int(query_offsets[-1])
    if len(given) not in (n_queries, n):
        has = f"{counted(n_queries, 'query', 'queries')} and {counted(n, 'row')}"
        raise ArrayError(f"there are {len(given)} weights, but X has {has}; give one a query or one a row")
    bad = ~((given >= 0.0) & (given <= LARGEST_WEIGHT))
    if bad.any():
        at = int(np.argmax(bad))
        raise ArrayError(f"weight {at} (from 0) is {float(given[at])!r}; use numbers from 0 to {LARGEST_WEIGHT:g}")
    if not given.any():
        raise ArrayError("all weights are zero; give at least one above zero")
    return spread_weights(given, query_offsets, input_rows)


def init_scores_of(init_scores: object, n: int, input_rows: Int64Array | None = None) -> Float64Array:
    """Return the scores to start from, float64[n].

    init_scores : one finite number a row
    n           : number of rows
    input_rows  : int64[n], the row of the input of each document; None: in input order

    ArrayError when there are others than n, or one is not finite or beyond LARGEST_SCORE.
    """
    scores = as_floats(cells_of(init_scores, "init_scores"), "init_scores")
    _check_count("init_scores", len(scores), n)
    bad = ~(np.abs(scores) <= LARGEST_SCORE)
    if bad.any():
        at = int(np.argmax(bad))
        limit = f"{-LARGEST_SCORE:g} to {LARGEST_SCORE:g}"
        raise ArrayError(f"init_scores of row {at} (from 0) is {float(scores[at])!r}; use numbers from {limit}")
    return scores if input_rows is None else scores[input_rows]


def positions_of(positions: object, n: int, input_rows: Int64Array | None = None) -> Positions:
    """Return where each row was shown.

    positions  : one number or word a row; equal ones are one position
    n          : number of rows
    input_rows : int64[n], the row of the input of each document; None: in input order

    ArrayError when there are others than n.
    """
    cells = cells_of(positions, "positions")
    _check_count("positions", len(cells), n)
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(str(one), len(places)) for one in cells.tolist()], np.int32)
    return Positions(tuple(places), codes if input_rows is None else codes[input_rows])


def labels_of(y: object, n: int) -> Float64Array:
    """Return the labels, float64[n].

    y : one finite number from 0 up a row
    n : number of rows

    ArrayError when there are others than n, or one is negative, missing or not finite.
    """
    labels = as_floats(cells_of(y, "y"), "y")
    _check_count("y", len(labels), n)
    bad = ~((labels >= 0.0) & (labels < np.inf))
    if bad.any():
        at = int(np.argmax(bad))
        raise ArrayError(f"the label of row {at} (from 0) is {float(labels[at])!r}; use finite numbers from 0 up")
    return labels + 0.0  # no minus zero


def _check_count(what: str, count: int, n: int) -> None:
    if count != n:
        entries = counted(count, "entry", "entries")
        raise ArrayError(f"{what} has {entries}, but X has {counted(n, 'row')}; give one for each row")
