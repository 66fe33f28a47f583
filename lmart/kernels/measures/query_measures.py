"""Sums over ranked queries, of which measures are made: hits, gains, precisions, ranks, pairs, rank correlations.

With `average` set, documents of equal score form a group, and the results are expectations over all orders of
each group's documents, each equally likely; otherwise every document is a group of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.ranking.ordering import equal_pairs, sort_descending


class RankedDocuments(NamedTuple):
    """Judged queries with their documents in the order of the scores.

    order         : int32[n_documents], rows of each query, highest score first
    scores        : float64[n_documents], by row; equal scores are ties
    relevance     : float64[n_documents], by row, what a document counts in the measure: its gain, 1 or 0 for relevant
                    or not, or the probability that a reader stops at it
    query_offsets : int64[n_queries + 1]
    """

    order: Int32Array
    scores: Float64Array
    relevance: Float64Array
    query_offsets: Int64Array


@inner_kernel
def group_end(ranked: RankedDocuments, start: int, stop: int, average: bool) -> int:
    """Return where a group of tied documents ends.

    ranked  : the documents, in      start : index into the order of the group's first document, in
    stop    : the end of its query, in
    average : whether documents of equal score form a group, else each document is its own group, in
    """
    end = start + 1
    if average:
        score = ranked.scores[ranked.order[start]]
        while end < stop and ranked.scores[ranked.order[end]] == score:
            end += 1
    return end


@kernel
def discounted_sums(
    ranked: RankedDocuments,
    discount: Float64Array,
    first_query: int,
    last_query: int,
    cutoff: int,
    average: bool,
    sums: Float64Array,
) -> None:
    """Write the sum of relevance x discount of each query's documents down to the cutoff.

    ranked   : all queries, in      discount : float64[>= ranks looked at], by rank, in
    first_query, last_query : the queries first_query..last_query - 1 are measured, in
    cutoff   : > 0, ranks looked at; a shorter query is looked at whole, in
    average  : whether to take the mean over the orders of tied documents, in
    sums     : float64[n_queries], out for these queries
    Equation: sum over ranks r < min(cutoff, n) of w(r) d(r); for a group at ranks a..b-1, mean(w) x sum of its d(r).
    Source: Järvelin and Kekäläinen 2002 for w a gain and d = 1/log2(r+2); McSherry and Najork 2008 for groups.
    Parallel: ranges of queries side by side. Cost: O(min(cutoff, n)) a query, and the size of the last group.
    """
    order, _, relevance, query_offsets = ranked
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        total = 0.0
        a = start
        while a < cut:
            b = group_end(ranked, a, stop, average)
            if b == a + 1:
                total += relevance[order[a]] * discount[a - start]
            else:
                total_relevance = 0.0
                for i in range(a, b):
                    total_relevance += relevance[order[i]]
                discounts = 0.0
                for i in range(a, min(b, cut)):
                    discounts += discount[i - start]
                total += total_relevance / (b - a) * discounts
            a = b
        sums[q] = total


@kernel
def sums_to_depths(
    ranked: RankedDocuments,
    depths: Int64Array,
    first_query: int,
    last_query: int,
    average: bool,
    sums: Float64Array,
) -> None:
    """Write the sum of relevance of each query's documents down to a depth of its own.

    ranked : all queries, in
    depths : int64[n_queries], >= 0, ranks looked at; a shorter query is looked at whole, in
    sums   : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query, average.
    Equation: that of `discounted_sums` with d = 1 and a cutoff for each query.
    Parallel: ranges of queries side by side. Cost: O(min(depth, n)) a query, and the size of the last group.
    """
    order, _, relevance, query_offsets = ranked
    for q in range(first_query, last_query):
        stop = query_offsets[q + 1]
        a = query_offsets[q]
        cut = min(a + depths[q], stop)
        total = 0.0
        while a < cut:
            b = group_end(ranked, a, stop, average)
            if b == a + 1:
                total += relevance[order[a]]
            else:
                total_relevance = 0.0
                for i in range(a, b):
                    total_relevance += relevance[order[i]]
                total += total_relevance / (b - a) * (min(b, cut) - a)
            a = b
        sums[q] = total


@kernel
def precision_sums(
    ranked: RankedDocuments, first_query: int, last_query: int, cutoff: int, average: bool, sums: Float64Array
) -> None:
    """Write the sum, over the relevant documents of each query down to the cutoff, of the precision at their ranks.

    ranked : all queries, relevance 1 or 0, in      sums : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query, cutoff, average.
    Equation: sum over relevant r < min(cutoff, n) of (relevant documents at ranks <= r) / (r + 1), and for groups that
    of `precision_of_group`. Source: McSherry and Najork 2008. Differs: the cutoff, which by linearity ends the sum.
    Parallel: ranges of queries side by side. Cost: O(min(cutoff, n)) a query, and the size of the last group.
    """
    order, _, relevance, query_offsets = ranked
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        total = 0.0
        n_relevant = 0.0
        a = start
        while a < cut:
            b = group_end(ranked, a, stop, average)
            if b == a + 1:
                if relevance[order[a]] > 0.0:
                    n_relevant += 1.0
                    total += n_relevant / (b - start)
            else:
                n_in_group = 0.0
                for i in range(a, b):
                    n_in_group += relevance[order[i]]
                if n_in_group > 0.0:
                    total = precision_of_group(total, a - start, b - a, min(b, cut) - a, n_in_group, n_relevant)
                n_relevant += n_in_group
            a = b
        sums[q] = total


@inner_kernel
def precision_of_group(
    total: float, first_rank: int, n_tied: int, n_counted: int, n_relevant: float, n_relevant_before: float
) -> float:
    """Return a sum with the expected precision at the relevant documents of a group of tied documents added to it.

    total      : float64, the sum so far, in      first_rank : of the group, in
    n_tied     : documents of the group, > 1, in      n_counted : how many of its ranks are above the cutoff, in
    n_relevant : relevant documents of the group, > 0, in
    n_relevant_before : relevant documents above the group, in
    Equation: in a group of m at ranks a.., t of them relevant, after s relevant documents: the i-th rank (from 1) holds
    one of the t with probability t/m, and then 1 + (i-1)(t-1)/(m-1) of them are expected down to it, so it adds
    (t/m) (s + 1 + (i-1)(t-1)/(m-1)) / (a + i). Source: McSherry and Najork 2008.
    """
    m = n_tied
    t = n_relevant
    for i in range(n_counted):
        total += t / m * (n_relevant_before + 1.0 + i * (t - 1.0) / (m - 1)) / (first_rank + i + 1)
    return total


@kernel
def first_relevant_values(
    ranked: RankedDocuments,
    divisors: Float64Array,
    first_query: int,
    last_query: int,
    cutoff: int,
    average: bool,
    values: Float64Array,
) -> None:
    """Write 1 / divisor at the rank of the first relevant document of each query, 0 if it is not within the cutoff.

    ranked   : all queries, relevance 1 or 0, in
    divisors : float64[>= ranks looked at], by rank: rank + 1 for the reciprocal rank, 1 for success, in
    values   : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query, cutoff, average.
    Equation: in the first group with a relevant document, m documents from rank a, t relevant: the i-th of its ranks
    holds the first of them with probability p(i) = (1 - sum of p above) t / (m - i + 1); sum of p(i) / divisor.
    Source: McSherry and Najork 2008, with the quotient of binomials taken as a running product.
    Parallel: ranges of queries side by side. Cost: O(min(cutoff, n)) a query, and the size of the last group.
    """
    order, _, relevance, query_offsets = ranked
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        value = 0.0
        a = start
        while a < cut:
            b = group_end(ranked, a, stop, average)
            n_relevant = 0.0
            for i in range(a, b):
                n_relevant += relevance[order[i]]
            if n_relevant > 0.0:
                none_before = 1.0
                for i in range(a, min(b, cut)):
                    n_left = b - i
                    value += none_before * n_relevant / n_left / divisors[i - start]
                    none_before *= max(n_left - n_relevant, 0.0) / n_left
                break
            a = b
        values[q] = value


@kernel
def expected_reciprocal_ranks(
    ranked: RankedDocuments, first_query: int, last_query: int, cutoff: int, average: bool, values: Float64Array
) -> None:
    """Write the expected 1 / (1-based rank) at which a reader of each query stops, 0 for reading past the cutoff.

    ranked : all queries, relevance is the probability of stopping at a document, in
    values : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query, cutoff, average.
    Equation: sum over ranks r < min(cutoff, n) of R(r) x product of (1 - R) above it / (r + 1). In a group at ranks
    a.., with e(j) from `write_mean_products`, the j-th rank (from 1) adds
    (product above the group) x (e(j-1) - e(j)) / (a + j).
    Source: Chapelle, Metzler, Zhang and Grinspan 2009. Differs: groups, in the manner of McSherry and Najork 2008.
    Parallel: ranges of queries side by side. Cost: O(min(cutoff, n)) a query; a group of m: O(m min(cutoff, m)).
    """
    order, _, stop_probabilities, query_offsets = ranked
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, min(cutoff, query_offsets[q + 1] - query_offsets[q]))
    passes = np.empty(largest + 1)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        value = 0.0
        reached = 1.0
        a = start
        while a < cut:
            b = group_end(ranked, a, stop, average)
            if b == a + 1:
                stops = stop_probabilities[order[a]]
                value += reached * stops / (b - start)
                reached *= 1.0 - stops
            else:
                n_counted = min(b, cut) - a
                write_mean_products(ranked, a, b, n_counted, passes)
                for j in range(1, n_counted + 1):
                    value += reached * (passes[j - 1] - passes[j]) / (a - start + j)
                reached *= passes[n_counted]
            a = b
        values[q] = value


@inner_kernel
def write_mean_products(ranked: RankedDocuments, start: int, stop: int, largest: int, passes: Float64Array) -> None:
    """Write the chance that a reader passes j documents of a group in random order without stopping, for all j.

    ranked      : all queries, relevance is the probability R of stopping at a document, in
    start, stop : the group, as indices into the order, in      largest : the largest j, in
    passes      : float64[> largest], out: e(j) at j, the mean over the group's subsets of j documents of the product of
                  their (1 - R)
    Equation: built document by document, e(j; m+1) = ((m + 1 - j) e(j; m) + j (1 - R) e(j-1; m)) / (m + 1), a weighted
    mean, hence stable. Cost: O((stop - start) largest).
    """
    passes[0] = 1.0
    for j in range(1, largest + 1):
        passes[j] = 0.0
    for i in range(start, stop):
        size = i - start + 1
        through = 1.0 - ranked.relevance[ranked.order[i]]
        for j in range(min(size, largest), 0, -1):
            passes[j] = ((size - j) * passes[j] + j * through * passes[j - 1]) / size


@inner_kernel
def mean_limited(n_above: float, n_in_group: int, largest: float) -> float:
    """Return the mean of min(n_above + i, largest) over i = 0..n_in_group.

    n_above, largest : float64, >= 0      n_in_group : int64, >= 0
    """
    total = 0.0
    for i in range(n_in_group + 1):
        total += min(n_above + i, largest)
    return total / (n_in_group + 1)


@kernel
def preference_sums(
    ranked: RankedDocuments,
    n_relevant: Float64Array,
    n_others: Float64Array,
    first_query: int,
    last_query: int,
    average: bool,
    sums: Float64Array,
) -> None:
    """Write the sum, over the ranked relevant documents of each query, of the share of judged others they stand above.

    ranked     : all queries, relevance is 1 for relevant, 0 for judged otherwise, -1 for unjudged documents, in
    n_relevant : float64[n_queries], relevant documents R, those that are not ranked too, in
    n_others   : float64[n_queries], judged documents N that are not relevant, those that are not ranked too, in
    sums       : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query, average.
    Equation: sum over relevant documents of 1 - min(x, R) / min(R, N), x of the others above it; 1 where N is 0. In a
    group with u of the others, each of x = 0..u of them above a relevant one is equally likely.
    Source: Buckley and Voorhees 2004, with the divisor of trec_eval.
    Parallel: ranges of queries side by side. Cost: O(n) a query.
    """
    order, _, preference, query_offsets = ranked
    for q in range(first_query, last_query):
        stop = query_offsets[q + 1]
        largest = n_relevant[q]
        limit = min(largest, n_others[q])
        total = 0.0
        n_above = 0.0
        a = query_offsets[q]
        while a < stop:
            b = group_end(ranked, a, stop, average)
            n_preferred = 0.0
            n_in_group = 0
            for i in range(a, b):
                n_preferred += preference[order[i]] > 0.0
                n_in_group += preference[order[i]] == 0.0
            if n_preferred > 0.0:
                lost = mean_limited(n_above, n_in_group, largest) / limit if limit > 0.0 else 0.0
                total += n_preferred * (1.0 - lost)
            n_above += n_in_group
            a = b
        sums[q] = total


@kernel
def interpolated_precisions(
    ranked: RankedDocuments, n_needed: Float64Array, first_query: int, last_query: int, values: Float64Array
) -> None:
    """Write the largest precision of each query at a rank down to which enough relevant documents stand, else 0.

    ranked   : all queries, relevance 1 or 0, in
    n_needed : float64[n_queries], whole, how many relevant documents are enough, in
    values   : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query.
    Equation: max of h(r) / (r + 1) over ranks r with h(r) >= needed, h(r) relevant documents at ranks <= r.
    Source: Buckley and Voorhees 2005, 3.2. Parallel: ranges of queries side by side. Cost: O(n) a query.
    """
    order, _, relevance, query_offsets = ranked
    for q in range(first_query, last_query):
        start = query_offsets[q]
        n_relevant = 0.0
        largest = 0.0
        for i in range(start, query_offsets[q + 1]):
            n_relevant += relevance[order[i]]
            if n_relevant >= n_needed[q]:
                largest = max(largest, n_relevant / (i + 1 - start))
        values[q] = largest


@kernel
def ordered_pairs(
    ranked: RankedDocuments,
    n_relevant: Float64Array,
    n_others: Float64Array,
    first_query: int,
    last_query: int,
    counts: Float64Array,
) -> None:
    """Write in how many pairs of a relevant and another judged document of each query the relevant one is above.

    ranked     : all queries, relevance is 1 for relevant, 0 for judged otherwise, -1 for unjudged documents, in
    n_relevant : float64[n_queries], relevant documents, those that are not ranked too, in
    n_others   : float64[n_queries], judged documents that are not relevant, those that are not ranked too, in
    counts     : float64[n_queries], out for these queries
    As in `discounted_sums`: first_query, last_query.
    Equation: the U of Mann and Whitney 1947: pairs of equal score count a half. Documents that are not ranked stand
    below all others, and are equal. Parallel: ranges of queries side by side. Cost: O(n) a query.
    """
    order, _, preference, query_offsets = ranked
    for q in range(first_query, last_query):
        stop = query_offsets[q + 1]
        count = 0.0
        relevant_below = n_relevant[q]
        others_below = n_others[q]
        a = query_offsets[q]
        while a < stop:
            b = group_end(ranked, a, stop, True)
            n_preferred = 0.0
            n_in_group = 0.0
            for i in range(a, b):
                n_preferred += preference[order[i]] > 0.0
                n_in_group += preference[order[i]] == 0.0
            others_below -= n_in_group
            relevant_below -= n_preferred
            count += n_preferred * (others_below + 0.5 * n_in_group)
            a = b
        counts[q] = count + 0.5 * relevant_below * others_below


@kernel
def rank_correlations(ranked: RankedDocuments, first_query: int, last_query: int, values: Float64Array) -> None:
    """Write Kendall's tau-b between the scores and labels of each query.

    ranked : all queries, relevance is the label, nan for documents that do not count, in
    values : float64[n_queries], out for these queries: nan when all labels are equal, 0 when only all scores are
    As in `discounted_sums`: first_query, last_query.
    Equation: of P pairs, T tied in score, U in label, B in both, D in opposite orders by score and label,
    (P - T - U + B - 2 D) / sqrt((P - T)(P - U)). Source: Kendall 1945; D as inversions by merge sort, Knight 1966.
    Parallel: ranges of queries side by side. Cost: O(n log n) a query.
    """
    order, _, labels, query_offsets = ranked
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    keys = np.empty(largest)
    spare = np.empty(largest)
    for q in range(first_query, last_query):
        stop = query_offsets[q + 1]
        n = 0
        tied_in_score = 0
        tied_in_both = 0
        a = query_offsets[q]
        while a < stop:
            b = group_end(ranked, a, stop, True)
            first = n
            for i in range(a, b):
                label = labels[order[i]]
                if label == label:  # no nan  # noqa: PLR0124
                    keys[n] = label
                    n += 1
            sort_descending(keys, spare, first, n)
            tied_in_score += (n - first) * (n - first - 1) // 2
            tied_in_both += equal_pairs(keys, first, n)
            a = b
        n_opposite = sort_descending(keys, spare, 0, n)
        tied_in_label = equal_pairs(keys, 0, n)
        n_pairs = n * (n - 1) // 2
        if tied_in_label == n_pairs:
            values[q] = np.nan
        elif tied_in_score == n_pairs:
            values[q] = 0.0
        else:
            difference = n_pairs - tied_in_score - tied_in_label + tied_in_both - 2 * n_opposite
            values[q] = difference / np.sqrt(n_pairs - tied_in_score) / np.sqrt(n_pairs - tied_in_label)
