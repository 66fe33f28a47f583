"""The softmax of a query's scores, and gradients and hessians of the cross entropy with it (XE-NDCG).

Each sum goes over the documents of a query in a fixed order, so it does not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.exact.exact_math import exp_minus
from lmart.kernels.numba_support.code_cache import kernel
from lmart.kernels.ranking.gradient_arrays import Gradients


class SoftmaxQueries(NamedTuple):
    """The inputs of the cross entropy.

    exponentials  : float64[n_documents], softmax numerators (`write_softmax_numerators`)
    gains         : float64[n_documents], scaled by query
    gain_units    : float64[n_documents], what a gain of 1 is in `gains`, the most noise; 0: no noise
    query_weights : float64[n_queries], >= 0
    query_offsets : int64[n_queries + 1]
    first_row     : int64, number of row 0 in all data, which random numbers depend on
    """

    exponentials: Float64Array
    gains: Float64Array
    gain_units: Float64Array
    query_weights: Float64Array
    query_offsets: Int64Array
    first_row: int


@kernel
def write_softmax_numerators(
    scores: Float64Array,
    query_offsets: Int64Array,
    sigma: float,
    first_query: int,
    last_query: int,
    exponentials: Float64Array,
) -> None:
    """Write exp(-sigma (best - score)) of each document, best being the highest score of its query.

    scores        : float64[n], by row, in      query_offsets : int64[n_queries + 1], in
    sigma         : float64, > 0, in
    first_query, last_query : the queries first_query..last_query - 1 are written, in
    exponentials  : float64[n], by row, in [0, 1], out for these queries
    Parallel: the caller runs ranges of queries side by side. Cost: O(n).
    """
    for q in range(first_query, last_query):
        of_query = scores[query_offsets[q] : query_offsets[q + 1]]
        output = exponentials[query_offsets[q] : query_offsets[q + 1]]
        best = -np.inf
        for k in range(np.uint64(len(of_query))):
            best = max(best, of_query[k])
        for k in range(np.uint64(len(of_query))):
            output[k] = exp_minus(sigma * (best - of_query[k]))


@kernel
def cross_entropy(
    queries: SoftmaxQueries, sigma: float, key: np.uint64, first_query: int, last_query: int, output: Gradients
) -> None:
    """Write each document's gradient and hessian of the cross entropy between its query's labels and scores.

    queries : all queries, in      sigma : float64, > 0, in      key : uint64, of the round, in
    first_query, last_query : the queries first_query..last_query - 1 are worked on, in
    output  : float64[n_documents], by row, out, overwritten for these queries
    Equation: rho_i = exp(sigma s_i) / sum_j exp(sigma s_j), phi_i = (G_i + 1 - gamma_i) / sum_j (G_j + 1 - gamma_j),
    gamma_i uniform in [0, 1) and new each round; cost -sum phi_i ln rho_i, gradient sigma (rho_i - phi_i), hessian
    sigma^2 rho_i (1 - rho_i); times the query's weight. Source: Bruch 2021, section 4, where 2^label stands for G + 1.
    Differs: the gradient is the derivative itself, without the two further terms of LightGBM's rank_xendcg; a query
    whose gains are all equal is left out, as its gradients would be noise alone.
    Parallel: the caller runs ranges of queries side by side. Cost: O(n).
    """
    exponentials, gains, gain_units, query_weights, query_offsets, first_row = queries
    gradients, hessians = output
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        total_exponential = 0.0
        total_target = 0.0
        lowest = np.inf
        highest = -np.inf
        for row in range(start, stop):
            gamma = np.float64(mix_bits(np.uint64(first_row + row) ^ key) >> np.uint64(11)) * 2.0**-53
            target = gains[row] + gain_units[row] * (1.0 - gamma)
            gradients[row] = target
            hessians[row] = 0.0
            total_exponential += exponentials[row]
            total_target += target
            lowest = min(lowest, gains[row])
            highest = max(highest, gains[row])
        for row in range(start, stop):
            if lowest == highest:
                gradients[row] = 0.0
                continue
            rho = exponentials[row] / total_exponential
            gradients[row] = (rho - gradients[row] / total_target) * (query_weights[q] * sigma)
            rest = (total_exponential - exponentials[row]) / total_exponential
            hessians[row] = rho * rest * (query_weights[q] * sigma * sigma)
