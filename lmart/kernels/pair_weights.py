"""How much each pair of documents counts, by objective.

A weight is positive when the upper document of the pair, in the order of the scores, is the better one, negative when
the lower is, 0 when neither is. The kernels write the weights of a block of pairs, laid out as `PairBlock` says.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.kernels.compiler import inner_kernel, kernel
from lmart.kernels.gradient_arrays import NdcgTables, PairBlock, RankedQueries
from lmart.kernels.ordering import longest_query


@inner_kernel
def end_of_ranks(queries: RankedQueries, block: PairBlock, q: int) -> int:
    """Return the rank behind the last upper document of a block's pairs in a query; first_rank when it has none.

    queries : all queries, in
    block   : which pairs, in
    q       : a query of the block, in
    A query of weight 0 has none, nor has one that is too short.
    """
    if queries.query_weights[q] == 0.0:
        return block.first_rank
    n = int(queries.query_offsets[q + 1] - queries.query_offsets[q])
    return max(block.first_rank, min(block.last_rank, n - 1))


@inner_kernel
def start_of_weights(query_offsets: Int64Array, block: PairBlock, q: int, rank: int) -> int:
    """Return where the weights of an upper document start in those of a block: the index for the lower rank 0.

    query_offsets : int64[n_queries + 1], in
    block         : which pairs, in
    q             : a query of the block, in
    rank          : of the upper document, in
    """
    n = query_offsets[q + 1] - query_offsets[q]
    before = query_offsets[q] - query_offsets[block.first_query]
    return int(before * (block.last_rank - block.first_rank) + (rank - block.first_rank) * n)


@inner_kernel
def write_ndcg_changes(rank: int, relevance: Float64Array, discount: Float64Array, weights: Float64Array) -> None:
    """Write by how much NDCG falls when the document at a rank changes places with each below it.

    rank      : of the upper document, in
    relevance : float64[n], gains by rank, divided by the ideal DCG, in
    discount  : float64[>= n], 1 / log2(rank + 2), in
    weights   : float64[n], by the lower document's rank, out behind `rank`
    Equation: (g_i - g_j) (D_i - D_j), i the upper document. Source: Burges 2010, section 6.
    """
    upper_relevance = relevance[rank]
    upper_discount = discount[rank]
    lower_relevance = relevance[rank + 1 :]
    lower_discount = discount[rank + 1 :]
    lower_weights = weights[rank + 1 :]
    for k in range(len(lower_weights)):
        lower_weights[k] = (upper_relevance - lower_relevance[k]) * (upper_discount - lower_discount[k])


@kernel
def equal_weights(gains: Float64Array, queries: RankedQueries, block: PairBlock, out: Float64Array) -> None:
    """Write 1 for each pair of different gains, signed (RankNet).

    gains   : float64[n_documents], by row, in
    queries : all queries, ranked by score; those of weight 0 are left out, in
    block   : which pairs, in
    out     : float64, laid out as `PairBlock` says, out
    Source: Burges et al. 2005, where no pair weighs more than another.
    Parallel: ranges of queries side by side, each with an `out` of its own. Cost: O(1) a pair.
    """
    query_offsets = queries.query_offsets
    order = queries.order
    for q in range(block.first_query, block.last_query):
        rows = order[query_offsets[q] : query_offsets[q + 1]]
        n = len(rows)
        for rank in range(block.first_rank, end_of_ranks(queries, block, q)):
            upper_gain = gains[rows[rank]]
            first_weight = start_of_weights(query_offsets, block, q, rank)
            weights = out[first_weight : first_weight + n]
            for lower in range(rank + 1, n):
                lower_gain = gains[rows[lower]]
                weights[lower] = 1.0 * (upper_gain > lower_gain) - 1.0 * (upper_gain < lower_gain)


@kernel
def ndcg_loss_weights(
    ndcg: NdcgTables, distance_weights: Float64Array, queries: RankedQueries, block: PairBlock, out: Float64Array
) -> None:
    """Write the weights of LambdaLoss: the change of NDCG, and more for pairs that are near each other.

    ndcg    : gains, inverse ideal DCG and discounts D(r) = 1 / log2(r + 2), in
    distance_weights : float64[>= longest query], mu (D(d - 1) - D(d)) for documents d ranks apart, in
    queries : all queries, ranked by score; those of weight 0 are left out, in
    block   : which pairs, in
    out     : float64, laid out as `PairBlock` says, out
    Equation: (|D(r_i) - D(r_j)| + mu |D(d - 1) - D(d)|) |g_i - g_j| / ideal DCG, d = |r_i - r_j|. Source: Wang et al.
    2018, section 4.3, NDCG-Loss2++. Differs: the logarithm is natural, the ideal DCG is that at the truncation.
    Parallel: ranges of queries side by side, each with an `out` of its own. Cost: O(1) a pair.
    """
    gains, inverse_ideal_dcg, discount = ndcg
    query_offsets = queries.query_offsets
    order = queries.order
    relevance = np.empty(longest_query(query_offsets, block.first_query, block.last_query), np.float64)
    for q in range(block.first_query, block.last_query):
        last_rank = end_of_ranks(queries, block, q)
        if last_rank == block.first_rank:
            continue
        rows = order[query_offsets[q] : query_offsets[q + 1]]
        n = len(rows)
        for k in range(block.first_rank, n):
            relevance[k] = gains[rows[k]] * inverse_ideal_dcg[q]
        for rank in range(block.first_rank, last_rank):
            first_weight = start_of_weights(query_offsets, block, q, rank)
            weights = out[first_weight + rank + 1 : first_weight + n]
            lower_relevance = relevance[rank + 1 : n]
            lower_discount = discount[rank + 1 : n]
            by_distance = distance_weights[1 : n - rank]
            for k in range(len(weights)):
                importance = discount[rank] - lower_discount[k] + by_distance[k]
                weights[k] = (relevance[rank] - lower_relevance[k]) * importance


@kernel
def average_precision_changes(
    relevant: Float64Array, queries: RankedQueries, block: PairBlock, out: Float64Array
) -> None:
    """Write by how much average precision falls when the documents of a pair change places.

    relevant : float64[n_documents], by row, 1 or 0, in
    queries  : all queries, ranked by score; those of weight 0 are left out, in
    block    : which pairs, in
    out      : float64, laid out as `PairBlock` says, out
    Equation: with ranks a < b from 1, y relevant or not, m(r) = y_1 + ... + y_r, S(r) the sum of y_k / k up to r, and R
    relevant documents: (y_a - y_b) ((m(a) + 1 - y_a) / a - S(a) + S(b - 1) - m(b) / b) / R. Source: from the definition
    of average precision; the same as XGBoost's rank:map.
    Parallel: ranges of queries side by side, each with an `out` of its own. Cost: O(1) a pair.
    """
    query_offsets = queries.query_offsets
    order = queries.order
    scratch = np.empty((3, longest_query(query_offsets, block.first_query, block.last_query)), np.float64)
    relevant_by_rank = scratch[0]
    as_upper = scratch[1]
    as_lower = scratch[2]
    for q in range(block.first_query, block.last_query):
        last_rank = end_of_ranks(queries, block, q)
        if last_rank == block.first_rank:
            continue
        rows = order[query_offsets[q] : query_offsets[q + 1]]
        n = len(rows)
        n_relevant = 0.0
        total = 0.0
        for k in range(n):
            y = relevant[rows[k]]
            inverse_rank = 1.0 / (k + 1.0)
            relevant_by_rank[k] = y
            as_lower[k] = total - (n_relevant + y) * inverse_rank
            n_relevant += y
            total += y * inverse_rank
            as_upper[k] = (n_relevant + 1.0 - y) * inverse_rank - total
        inverse_n_relevant = 1.0 / n_relevant if n_relevant > 0.0 else 0.0
        for rank in range(block.first_rank, last_rank):
            first_weight = start_of_weights(query_offsets, block, q, rank)
            weights = out[first_weight + rank + 1 : first_weight + n]
            lower_relevant = relevant_by_rank[rank + 1 : n]
            lower_term = as_lower[rank + 1 : n]
            for k in range(len(weights)):
                change = (as_upper[rank] + lower_term[k]) * inverse_n_relevant
                weights[k] = (relevant_by_rank[rank] - lower_relevant[k]) * change


@kernel
def reciprocal_rank_changes(
    relevant: Float64Array, queries: RankedQueries, block: PairBlock, out: Float64Array
) -> None:
    """Write by how much the reciprocal rank falls when the documents of a pair change places.

    relevant : float64[n_documents], by row, 1 or 0, in
    queries  : all queries, ranked by score; those of weight 0 are left out, in
    block    : which pairs, in
    out      : float64, laid out as `PairBlock` says, out
    Equation: that of `write_reciprocal_rank_changes`.
    Parallel: ranges of queries side by side, each with an `out` of its own. Cost: O(1) a pair.
    """
    query_offsets = queries.query_offsets
    order = queries.order
    relevant_by_rank = np.empty(longest_query(query_offsets, block.first_query, block.last_query), np.float64)
    for q in range(block.first_query, block.last_query):
        last_rank = end_of_ranks(queries, block, q)
        if last_rank == block.first_rank:
            continue
        rows = order[query_offsets[q] : query_offsets[q + 1]]
        n = len(rows)
        first = n
        second = n
        for k in range(n - 1, -1, -1):
            relevant_by_rank[k] = relevant[rows[k]]
            if relevant_by_rank[k] > 0.0:
                second = first
                first = k
        for rank in range(block.first_rank, last_rank):
            first_weight = start_of_weights(query_offsets, block, q, rank)
            weights = out[first_weight + rank + 1 : first_weight + n]
            write_reciprocal_rank_changes(rank, first, second, relevant_by_rank[rank + 1 : n], weights)


@inner_kernel
def write_reciprocal_rank_changes(
    rank: int, first: int, second: int, lower_relevant: Float64Array, weights: Float64Array
) -> None:
    """Write by how much the reciprocal rank falls when the document at a rank changes places with each below it.

    rank          : of the upper document, in
    first, second : ranks of the first and the second relevant document; the number of documents when there is none, in
    lower_relevant : float64[documents below], 1 or 0, in
    weights       : float64[documents below], out
    Equation: with ranks a < b from 1, f that of the first relevant document and s of the second, if any: for a < f and
    b relevant 1/f - 1/a; for a = f and b not relevant 1/f - 1/min(b, s); else 0. Source: from the definition.
    """
    before = 1.0 / (first + 1.0)
    if rank < first:
        change = before - 1.0 / (rank + 1.0)
        for k in range(len(weights)):
            weights[k] = change * lower_relevant[k]
    elif rank == first:
        for k in range(len(weights)):
            after = 1.0 / (min(rank + 1 + k, second) + 1.0)
            weights[k] = (before - after) * (1.0 - lower_relevant[k])
    else:
        for k in range(len(weights)):
            weights[k] = 0.0


@kernel
def expected_reciprocal_rank_changes(
    stop_probabilities: Float64Array, queries: RankedQueries, block: PairBlock, out: Float64Array
) -> None:
    """Write by how much expected reciprocal rank falls when the documents of a pair change places.

    stop_probabilities : float64[n_documents], by row, that a reader who sees a document stops there, in
    queries : all queries, ranked by score; those of weight 0 are left out, in
    block   : which pairs, in
    out     : float64, laid out as `PairBlock` says, out
    Equation: with ranks a < b from 1, R(r) the stop probabilities and Q(r, t) the product of 1 - R strictly between r
    and t: Q(0, a) (R(a) - R(b)) (1/a - sum over r between a and b of Q(a, r) R(r) / r - Q(a, b) / b). Source: from the
    definition (Chapelle et al. 2009), by dropping what both orders share.
    Parallel: ranges of queries side by side, each with an `out` of its own. Cost: O(1) a pair, as the sum and the
    product grow with b.
    """
    query_offsets = queries.query_offsets
    order = queries.order
    longest = longest_query(query_offsets, block.first_query, block.last_query)
    scratch = np.empty((3, longest), np.float64)
    stops = scratch[0]
    reached = scratch[1]
    inverse_rank = scratch[2]
    for k in range(longest):
        inverse_rank[k] = 1.0 / (k + 1.0)
    for q in range(block.first_query, block.last_query):
        last_rank = end_of_ranks(queries, block, q)
        if last_rank == block.first_rank:
            continue
        rows = order[query_offsets[q] : query_offsets[q + 1]]
        n = len(rows)
        reaches = 1.0
        for k in range(n):
            stops[k] = stop_probabilities[rows[k]]
            reached[k] = reaches
            reaches *= 1.0 - stops[k]
        for rank in range(block.first_rank, last_rank):
            first_weight = start_of_weights(query_offsets, block, q, rank)
            weights = out[first_weight : first_weight + n]
            upper_stop = stops[rank]
            rest = inverse_rank[rank]  # 1/a less the sum
            passes = 1.0
            for lower in range(rank + 1, n):
                lower_stop = stops[lower]
                last = passes * inverse_rank[lower]
                weights[lower] = reached[rank] * (upper_stop - lower_stop) * (rest - last)
                rest -= last * lower_stop
                passes *= 1.0 - lower_stop
