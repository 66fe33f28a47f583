"""How much each pair of documents counts, by objective.

A weight is positive when the upper document of the pair, in the order of the scores, is better, negative when the
lower is, 0 when neither is. The weights of an upper document with all documents below it are written together.
"""

from __future__ import annotations

from typing import NamedTuple

from lmart.array_types import Float64Array
from lmart.kernels.numba_support.code_cache import inner_kernel

# The kinds of weights, of lambdamart, lambdaloss, ranknet, map, mrr and err.
NDCG, NDCG_LOSS, EQUAL, AVERAGE_PRECISION, RECIPROCAL_RANK, EXPECTED_RECIPROCAL_RANK = range(6)


class PairWeighting(NamedTuple):
    """How the pairs of each query are weighted.

    kind           : int64, NDCG to EXPECTED_RECIPROCAL_RANK
    relevance      : float64[n_documents], by row: gains, scaled so that none is above 1 (NDCG, NDCG_LOSS, EQUAL);
                     1 for relevant documents, else 0 (AVERAGE_PRECISION, RECIPROCAL_RANK); stop probabilities
                     (EXPECTED_RECIPROCAL_RANK)
    scale          : float64[n_queries], a factor of the relevance: 1 / ideal DCG (NDCG, NDCG_LOSS), 1 / number of
                     relevant documents (AVERAGE_PRECISION), or 1; 0 for a query without pairs
    discount       : float64[>= documents of the longest query], D(rank) = 1 / log2(rank + 2)
    by_distance    : float64[>= documents of the longest query], mu (D(d - 1) - D(d)) for documents d ranks apart
                     (NDCG_LOSS)
    largest_weight : float64, bound of all absolute weights
    """

    kind: int
    relevance: Float64Array
    scale: Float64Array
    discount: Float64Array
    by_distance: Float64Array
    largest_weight: float


class QueryTerms(NamedTuple):
    """The terms of one query from which its weights are computed, each float64[n], by rank.

    relevance : times the scale of the query
    upper     : of a document as the upper of its pairs
    lower     : of a document as the lower of its pairs
    """

    relevance: Float64Array
    upper: Float64Array
    lower: Float64Array


@inner_kernel
def write_terms(weighting: PairWeighting, terms: QueryTerms) -> int:
    """Write the terms of a query; return the number of ranks whose upper documents may have weights other than 0.

    weighting : kind and discount are read, in
    terms     : of at least two documents, not all of the same relevance; relevance in, upper and lower out
    Equation: see `write_average_precision_terms` and `write_reciprocal_rank_terms`; NDCG: D for both; expected
    reciprocal rank: the probability that a reader reaches the rank, and 1 / (rank + 1). Cost: O(n).
    """
    relevance, upper, lower = terms
    n = len(relevance)
    if weighting.kind == RECIPROCAL_RANK:
        return min(write_reciprocal_rank_terms(terms) + 1, n - 1)
    if weighting.kind == AVERAGE_PRECISION:
        write_average_precision_terms(terms)
    elif weighting.kind == EXPECTED_RECIPROCAL_RANK:
        reaches = 1.0
        for k in range(n):
            upper[k] = reaches
            lower[k] = 1.0 / (k + 1.0)
            reaches *= 1.0 - relevance[k]
    elif weighting.kind != EQUAL:
        for k in range(n):
            upper[k] = lower[k] = weighting.discount[k]
    return n - 1


@inner_kernel
def write_average_precision_terms(terms: QueryTerms) -> None:
    """Write the terms of the change of average precision.

    terms : relevance in, upper and lower out
    Equation: with ranks a < b from 1, y relevant or not, m(r) = y_1 + ... + y_r, S(r) the sum of y_k / k up to r, and R
    relevant documents: the change is (y_a - y_b) / R (upper_a - lower_b), upper_a = (m(a) + 1 - y_a) / a - S(a) and
    lower_b = m(b) / b - S(b - 1). Source: from the definition; the same as XGBoost's rank:map.
    """
    relevance, upper, lower = terms
    n_relevant = 0.0
    total = 0.0
    for k in range(len(relevance)):
        y = 1.0 if relevance[k] > 0.0 else 0.0
        inverse_rank = 1.0 / (k + 1.0)
        lower[k] = (n_relevant + y) * inverse_rank - total
        n_relevant += y
        total += y * inverse_rank
        upper[k] = (n_relevant + 1.0 - y) * inverse_rank - total


@inner_kernel
def write_reciprocal_rank_terms(terms: QueryTerms) -> int:
    """Write the terms of the change of the reciprocal rank; return the rank of the first relevant document.

    terms : relevance in, upper and lower out
    Equation: with ranks a < b from 1, y relevant or not, f the rank of the first relevant document and s that of the
    second, if any: the change is (y_a - y_b) (1/a - lower_b) for a <= f, lower_b = 1/f for a relevant document, else
    1/min(b, s); it is 0 for a > f. Source: from the definition.
    """
    relevance, upper, lower = terms
    first = second = len(relevance)
    for k in range(len(relevance) - 1, -1, -1):
        upper[k] = 1.0 / (k + 1.0)
        if relevance[k] > 0.0:
            first, second = k, first
    for k in range(len(relevance)):
        lower[k] = upper[first] if relevance[k] > 0.0 else upper[min(k, second)]
    return first


@inner_kernel
def write_weights(rank: int, weighting: PairWeighting, terms: QueryTerms, weights: Float64Array) -> None:
    """Write the weights of the pairs of the document at a rank with all documents below it.

    rank      : of the upper document, below the number from `write_terms`, in
    weighting : kind and by_distance are read, in      terms : of the query, from `write_terms`, in
    weights   : float64[n - rank - 1], in the order of the ranks, out
    These loops have few constants, as constants take registers from the loop over pairs, into which they are inlined.
    """
    relevance = terms.relevance[rank]
    term = terms.upper[rank]
    lower_relevance = terms.relevance[rank + 1 :]
    lower_terms = terms.lower[rank + 1 :]
    if weighting.kind == NDCG_LOSS:
        write_ndcg_losses(relevance, term, lower_relevance, lower_terms, weighting.by_distance[1:], weights)
    elif weighting.kind == EQUAL:
        for k in range(len(weights)):  # Burges et al. 2005 (RankNet)
            weights[k] = 1.0 * (relevance > lower_relevance[k]) - 1.0 * (relevance < lower_relevance[k])
    elif weighting.kind == EXPECTED_RECIPROCAL_RANK:
        write_expected_reciprocal_rank_changes(rank, terms, weights)
    else:  # by how much the measure falls when the documents change places: Burges 2010, section 6
        for k in range(len(weights)):
            weights[k] = (relevance - lower_relevance[k]) * (term - lower_terms[k])


@inner_kernel
def write_ndcg_losses(
    relevance: float,
    discount: float,
    lower_relevance: Float64Array,
    lower_discounts: Float64Array,
    by_distance: Float64Array,
    weights: Float64Array,
) -> None:
    """Write the weights of LambdaLoss: the change of NDCG, and more for pairs that are near each other.

    relevance, discount              : of the upper document, in
    lower_relevance, lower_discounts : float64[m], of the documents below, in
    by_distance                      : float64[>= m], by ranks apart - 1, in      weights : float64[m], out
    Equation: (|D(r_i) - D(r_j)| + mu |D(d - 1) - D(d)|) |g_i - g_j| / ideal DCG, d = |r_i - r_j|. Source: Wang et al.
    2018, section 4.3, NDCG-Loss2++. Differs: the logarithm is natural, the ideal DCG is that at the truncation.
    """
    for k in range(len(weights)):
        importance = discount - lower_discounts[k] + by_distance[k]
        weights[k] = (relevance - lower_relevance[k]) * importance


@inner_kernel
def write_expected_reciprocal_rank_changes(rank: int, terms: QueryTerms, weights: Float64Array) -> None:
    """Write by how much expected reciprocal rank falls when the document at a rank changes places with each below it.

    rank : of the upper document, in      terms : of the query, in      weights : float64[n - rank - 1], out
    Equation: with ranks a < b from 1, R(r) the stop probabilities and Q(r, t) the product of 1 - R strictly between r
    and t: Q(0, a) (R(a) - R(b)) (1/a - sum over r between a and b of Q(a, r) R(r) / r - Q(a, b) / b). Source: from the
    definition (Chapelle et al. 2009), by dropping what both orders share. Cost: O(1) a pair, as the sum and the product
    grow with b.
    """
    stop = terms.relevance[rank]
    reaches = terms.upper[rank]
    lower_stops = terms.relevance[rank + 1 :]
    lower_inverse_ranks = terms.lower[rank + 1 :]
    rest = terms.lower[rank]  # 1/a less the sum
    passes = 1.0
    for k in range(len(weights)):
        lower_stop = lower_stops[k]
        last = passes * lower_inverse_ranks[k]
        weights[k] = reaches * (stop - lower_stop) * (rest - last)
        rest -= last * lower_stop
        passes *= 1.0 - lower_stop
