"""Measures of ranked queries: discounted sums, average precision, reciprocal rank, expected reciprocal rank.

With `average` set, documents of equal score form a group, and what is written is the expectation over all orders of
each group's documents, each equally likely; otherwise every document is a group of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@inner_kernel
def group_end(scores: Floats, order: Rows, start: int, stop: int) -> int:
    """Return where the group of equal scores that starts at place `start` of `order` ends, `stop` at the latest."""
    score = scores[order[start]]
    end = start + 1
    while end < stop and scores[order[end]] == score:
        end += 1
    return end


@kernel
def discounted_sums(
    order: Rows,
    scores: Floats,
    worths: Floats,
    discount: Floats,
    query_offsets: Longs,
    first_query: int,
    last_query: int,
    cutoff: int,
    average: bool,
    sums: Floats,
) -> None:
    """Write the sum of worth x discount of each query's documents down to the cutoff.

    order         : int32[n], rows of each query, best score first, in        scores : float64[n], in
    worths        : float64[n], what a document is worth, in                  discount : float64[>= ranks looked at], in
    query_offsets : int64[n_queries + 1], in                                  sums : float64[n_queries], out
    cutoff        : ranks looked at; a shorter query is looked at whole
    Equation: sum over ranks r < min(cutoff, n) of w(r) d(r); for a group at ranks a..b-1, mean(w) x sum of its d(r).
    Source: Jarvelin and Kekalainen 2002 for w a gain and d = 1/log2(r+2); McSherry and Najork 2008 for groups.
    Parallel: ranges of queries side by side; this writes sums[first_query:last_query]. Cost: O(min(cutoff, n)) a query,
    and the size of the last group.
    """
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        total = 0.0
        a = start
        while a < cut:
            b = group_end(scores, order, a, stop) if average else a + 1
            if b == a + 1:
                total += worths[order[a]] * discount[a - start]
            else:
                worth = 0.0
                for i in range(a, b):
                    worth += worths[order[i]]
                ranks = 0.0
                for i in range(a, min(b, cut)):
                    ranks += discount[i - start]
                total += worth / (b - a) * ranks
            a = b
        sums[q] = total


@kernel
def precision_sums(
    order: Rows,
    scores: Floats,
    relevant: Floats,
    query_offsets: Longs,
    first_query: int,
    last_query: int,
    cutoff: int,
    average: bool,
    sums: Floats,
) -> None:
    """Write the sum, over the relevant documents of each query down to the cutoff, of the precision at their ranks.

    relevant : float64[n], 1 relevant, 0 not, in; the other arguments as in `discounted_sums`
    Equation: sum over relevant r < min(cutoff, n) of (relevant documents at ranks <= r) / (r + 1). In a group of m at
    ranks a.., t of them relevant, after s relevant ones: the i-th place (from 1) holds a relevant one with probability
    t/m, and then 1 + (i-1)(t-1)/(m-1) of the group's are expected down to it, so it adds
    (t/m) (s + 1 + (i-1)(t-1)/(m-1)) / (a + i).
    Source: McSherry and Najork 2008. Differs: the cutoff, which by linearity only ends the sum.
    Parallel: writes sums[first_query:last_query]. Cost: O(min(cutoff, n)) a query, and the size of the last group.
    """
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        total = 0.0
        seen = 0.0
        a = start
        while a < cut:
            b = group_end(scores, order, a, stop) if average else a + 1
            if b == a + 1:
                if relevant[order[a]] > 0.0:
                    seen += 1.0
                    total += seen / (b - start)
            else:
                m = b - a
                t = 0.0
                for i in range(a, b):
                    t += relevant[order[i]]
                if t > 0.0:
                    for i in range(a, min(b, cut)):
                        total += t / m * (seen + 1.0 + (i - a) * (t - 1.0) / (m - 1)) / (i + 1 - start)
                seen += t
            a = b
        sums[q] = total


@kernel
def reciprocal_ranks(
    order: Rows,
    scores: Floats,
    relevant: Floats,
    query_offsets: Longs,
    first_query: int,
    last_query: int,
    cutoff: int,
    average: bool,
    values: Floats,
) -> None:
    """Write 1 / (1-based rank of the first relevant document) of each query, 0 if it is not within the cutoff.

    relevant : float64[n], 1 relevant, 0 not, in; values : float64[n_queries], out; the others as in `discounted_sums`
    Equation: in the first group with a relevant document, m documents at ranks a.., t relevant: the i-th place (from 1)
    holds the first of them with probability p(i) = (1 - sum of p before) t / (m - i + 1); sum of p(i) / (a + i).
    Source: McSherry and Najork 2008, with the quotient of binomials taken as a running product.
    Parallel: writes values[first_query:last_query]. Cost: O(min(cutoff, n)) a query, and the size of the last group.
    """
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        value = 0.0
        a = start
        while a < cut:
            b = group_end(scores, order, a, stop) if average else a + 1
            t = 0.0
            for i in range(a, b):
                t += relevant[order[i]]
            if t > 0.0:
                m = b - a
                none_yet = 1.0
                for i in range(a, min(b, cut)):
                    left = m - (i - a)
                    value += none_yet * t / left / (i + 1 - start)
                    none_yet *= max(left - t, 0.0) / left
                break
            a = b
        values[q] = value


@kernel
def expected_reciprocal_ranks(
    order: Rows,
    scores: Floats,
    stops: Floats,
    query_offsets: Longs,
    first_query: int,
    last_query: int,
    cutoff: int,
    average: bool,
    values: Floats,
) -> None:
    """Write the expected 1 / (1-based rank) at which a reader of each query stops, 0 for reading past the cutoff.

    stops : float64[n], probability of stopping at a document, in; values : float64[n_queries], out;
    the other arguments as in `discounted_sums`
    Equation: sum over ranks r < min(cutoff, n) of R(r) x product of (1 - R) above it / (r + 1). In a group at ranks
    a.., e(j) being the mean over its subsets of j documents of the product of their (1 - R): the j-th place (from 1)
    adds (product above the group) x (e(j-1) - e(j)) / (a + j). e is built document by document:
    e(j; m+1) = ((m + 1 - j) e(j; m) + j (1 - R) e(j-1; m)) / (m + 1), a weighted mean, hence stable.
    Source: Chapelle, Metzler, Zhang and Grinspan 2009. Differs: groups, in the manner of McSherry and Najork 2008.
    Parallel: writes values[first_query:last_query]. Cost: O(min(cutoff, n)) a query; a group of m: O(m min(cutoff, m)).
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, min(cutoff, query_offsets[q + 1] - query_offsets[q]))
    passes = np.empty(largest + 1)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        stop = query_offsets[q + 1]
        cut = min(start + cutoff, stop)
        value = 0.0
        reach = 1.0
        a = start
        while a < cut:
            b = group_end(scores, order, a, stop) if average else a + 1
            if b == a + 1:
                here = stops[order[a]]
                value += reach * here / (b - start)
                reach *= 1.0 - here
            else:
                places = min(b, cut) - a
                passes[0] = 1.0
                for j in range(1, places + 1):
                    passes[j] = 0.0
                for i in range(a, b):
                    size = i - a + 1
                    through = 1.0 - stops[order[i]]
                    for j in range(min(size, places), 0, -1):
                        passes[j] = ((size - j) * passes[j] + j * through * passes[j - 1]) / size
                for j in range(1, places + 1):
                    value += reach * (passes[j - 1] - passes[j]) / (a - start + j)
                reach *= passes[places]
            a = b
        values[q] = value
