"""Measures of a shard's queries, as sums that the driver adds exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array
from lmart.measures import Evaluator
from lmart.measures.results import exact_sum
from lmart.training.scores import LocalScores

OVERFLOW_SHIFT = -64  # power of two that values are multiplied by when their sum is too large for a number


class MeasureSums(NamedTuple):
    """The sums behind the mean of a measure: numbers whose sum is exact, as `exact_sum` returns them.

    values  : of value times weight over the queries that count, times a power of two; None: too large for a number
    weights : of the weights of these queries
    """

    values: list[float] | None
    weights: list[float]


class QueriesFound(NamedTuple):
    """What a set is like, as far as its measure goes.

    nothing_relevant : no query has a relevant document
    nothing_counts   : there are weights, and no query with one above 0 has a relevant document
    """

    nothing_relevant: bool
    nothing_counts: bool


def weight_exponent(weights: Float64Array | None) -> int:
    """Return the power of two that weights are below, as `Evaluator` scales them by.

    weights : float64, one a query or one a document; None: none
    """
    return 0 if weights is None else int(np.frexp(weights.max(initial=0.0))[1])


def measure_sums(
    watched: LocalScores, evaluator: Evaluator, measure: str, exponents: tuple[int, int], shift: int
) -> MeasureSums:
    """Return the sums behind the mean of a measure over the queries of a shard.

    watched   : has the scores
    evaluator : of the shard's queries
    measure   : its name
    exponents : powers of two that the largest weight is below, of the shard and of all shards
    shift     : values are multiplied by 2^shift
    """
    values = evaluator.evaluate(watched.scores).per_query[measure]
    counts = ~np.isnan(values)
    weights = np.ones(len(values)) if evaluator.weights is None else evaluator.weights
    weights = np.ldexp(weights, exponents[0] - exponents[1])[counts]
    products = values[counts] * weights if evaluator.weights is not None else values[counts]
    try:
        of_values = exact_sum(np.ldexp(products, shift).tolist())
    except OverflowError:
        of_values = None
    return MeasureSums(of_values, exact_sum(weights.tolist()))
