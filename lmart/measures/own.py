"""Measures that functions of Python programs compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array
from lmart.functions import FunctionError, OwnFunction, described, failing_as
from lmart.measures.kinds import MeasureKind
from lmart.measures.query_kernels import RankedQueries


def own_kinds(functions: Iterable[OwnFunction]) -> dict[str, MeasureKind]:
    """Return what functions of a program measure, by their names."""
    return {
        function.name: MeasureKind(
            function.name,
            "a function of Python",
            "own",
            partial(measured_by, function.name, function.call),
            cutoff="none",
        )
        for function in functions
        if function.setting == "metric"
    }


def measured_by(name: str, function: Callable[..., Any], ranked: RankedQueries) -> Float64Array:
    """Return what a function measures of each query, float64[n_queries], nan where a query does not count.

    name     : of the function, for messages
    function : called with scores and labels, float64[n_documents], query_offsets, int64[n_queries + 1], and weights,
               float64[n_queries], all to be read alone; labels are nan where a document is not judged. Returns a number
               for each query, or one for all

    FunctionError when it raises an exception, or returns something else.
    """
    queries = ranked.queries
    documents = queries.documents
    offsets = documents.ranked_offsets
    n = len(offsets) - 1
    labels = documents.ranked(queries.relevance(ranked.measure))
    weights = np.ones(n) if queries.weights is None else queries.weights
    what = described("metric", name)
    with failing_as(what):
        found = function(*map(readable, (queries.scores, labels, offsets, weights)))
    values = numbers_of(found, what)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise FunctionError(f"{what} returned an array of shape {values.shape}; return {n} numbers, one a query")
    if np.isinf(values).any():
        query = int(np.argmax(np.isinf(values)))
        raise FunctionError(
            f"{what} returned {values[query]} for query {query} (from 0); return finite numbers, or nan"
        )
    return values


def readable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def numbers_of(found: object, what: str) -> Float64Array:
    """Return what a function returned as an array of its own, float64; FunctionError when it holds no numbers."""
    try:
        return np.array(found, np.float64)
    except (TypeError, ValueError) as fault:
        raise FunctionError(f"{what} returned no numbers: {fault}") from None
