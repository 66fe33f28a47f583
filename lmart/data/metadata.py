"""Metadata of documents: weights, initial scores and positions, in the order of the documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import rows_of
from lmart.data.from_python import as_floats, cells_of
from lmart.errors import ArrayError, counted

LARGEST_WEIGHT = 1e100  # far from where sums of weighted numbers end
LARGEST_SCORE = 1e100  # of those that training starts from; as far from where differences of scores end


@dataclass(frozen=True)
class Positions:
    """Where each document was shown when its label, such as a click, was recorded.

    names : what the positions are called, each once
    codes : int32[n_documents], the place in `names` of each document's position
    """

    names: tuple[str, ...]
    codes: Int32Array


@dataclass(frozen=True)
class Metadata:
    """The metadata of a training set.

    weights     : float64, one number >= 0 a query, or one a document; None: all count the same
    init_scores : float64[n_documents], finite, what training starts from; None: 0. They are not in the model
    positions   : of the documents; their bias is learned with the model, but not stored in it; None: no bias
    """

    weights: Float64Array | None = None
    init_scores: Float64Array | None = None
    positions: Positions | None = None

    def of_queries(self, query_offsets: Int64Array, queries: Int64Array) -> Metadata:
        """Return the metadata of these queries (int64, from 0) of a set, as `select_queries` returns their rows."""
        rows = rows_of(query_offsets, queries)
        weights, positions = self.weights, self.positions
        if weights is not None:
            weights = weights[queries if len(weights) == len(query_offsets) - 1 else rows]
        return Metadata(
            weights,
            None if self.init_scores is None else self.init_scores[rows],
            None if positions is None else Positions(positions.names, positions.codes[rows]),
        )


NO_METADATA = Metadata()


class Weights(NamedTuple):
    """Weights of a data set: what each row counts in training, and each query in measures.

    per_document : float64[n_documents]
    per_query    : float64[n_queries], the mean over the query's rows
    given_per    : 'query' or 'row', as they were given
    """

    per_document: Float64Array
    per_query: Float64Array
    given_per: str


def spread_weights(weights: Float64Array, query_offsets: Int64Array, input_rows: Int64Array | None = None) -> Weights:
    """Return the weights of rows and queries.

    weights       : float64, one a query, or one a row of the input; when that is the same, both mean the same
    query_offsets : int64[n_queries + 1]
    input_rows    : int64[n_documents], the row of the input of each document; None: in input order
    """
    n_queries, sizes = len(query_offsets) - 1, np.diff(query_offsets)
    weights = weights + 0.0  # no minus zero
    if len(weights) == n_queries:
        return Weights(np.repeat(weights, sizes), weights, "query")
    if input_rows is not None:
        weights = weights[input_rows]
    sums = np.add.reduceat(weights, query_offsets[:-1]) if n_queries else np.zeros(0)
    return Weights(weights, sums / np.maximum(sizes, 1), "row")


def weights_of(weights: object, query_offsets: Int64Array, input_rows: Int64Array | None = None) -> Weights:
    """Return the weights of rows and queries that a program gives, as `spread_weights` does.

    ArrayError when their count fits neither, one is negative, above LARGEST_WEIGHT or no number, or all are zero.
    """
    numbers = as_floats(cells_of(weights, "weights"), "weights")
    n_queries, n = len(query_offsets) - 1, int(query_offsets[-1])
    if len(numbers) not in (n_queries, n):
        has = f"{counted(n_queries, 'query')} and {counted(n, 'row')}"
        raise ArrayError(f"there are {len(numbers)} weights, but X has {has}; give one a query or one a row")
    bad = ~((numbers >= 0.0) & (numbers <= LARGEST_WEIGHT))
    if bad.any():
        at = int(np.argmax(bad))
        raise ArrayError(f"weight {at} (from 0) is {float(numbers[at])!r}; use numbers from 0 to {LARGEST_WEIGHT:g}")
    if not numbers.any():
        raise ArrayError("all weights are zero; give at least one above zero")
    return spread_weights(numbers, query_offsets, input_rows)


def init_scores_of(init_scores: object, n: int, input_rows: Int64Array | None = None) -> Float64Array:
    """Return the scores to start from, float64[n]; `input_rows` as in `spread_weights`.

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
    """Return where each of n rows was shown: a number or word each; `input_rows` as in `spread_weights`."""
    cells = cells_of(positions, "positions")
    _check_count("positions", len(cells), n)
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(str(cell), len(places)) for cell in cells.tolist()], np.int32)
    return Positions(tuple(places), codes if input_rows is None else codes[input_rows])


def labels_of(y: object, n: int) -> Float64Array:
    """Return the labels, float64[n]; ArrayError unless there are n, all finite numbers from 0 up."""
    labels = as_floats(cells_of(y, "y"), "y")
    _check_count("y", len(labels), n)
    bad = ~((labels >= 0.0) & (labels < np.inf))
    if bad.any():
        at = int(np.argmax(bad))
        raise ArrayError(f"the label of row {at} (from 0) is {float(labels[at])!r}; use finite numbers from 0 up")
    return labels + 0.0  # no minus zero


def _check_count(what: str, count: int, n: int) -> None:
    if count != n:
        entries = counted(count, "entry")
        raise ArrayError(f"{what} has {entries}, but X has {counted(n, 'row')}; give one for each row")
