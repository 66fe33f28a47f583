"""The order of the documents of each query."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

Keys = Float64Array | Int64Array
MOST_COUNTED = 256  # documents of a query up to which comparing each with each, in vector code, beats sorting


@inner_kernel
def longest_query(query_offsets: Int64Array, first_query: int, last_query: int) -> int:
    """Return the number of documents of the longest query of a range, 0 if it is empty.

    query_offsets : int64[n_queries + 1], in
    first_query, last_query : the queries first_query..last_query - 1, in
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    return largest


@kernel
def order_documents(
    scores: Float64Array, query_offsets: Int64Array, first_query: int, last_query: int, order: Int32Array
) -> None:
    """Sort the rows of each query by score descending, ties by row ascending.

    scores        : float64[n], by row, no nan, in      query_offsets : int64[n_queries + 1], in
    first_query, last_query : the queries first_query..last_query - 1 are sorted, in
    order         : int32[n], in: of each query any permutation of its rows, best a guess such as the last order; out
    A query of more than MOST_COUNTED documents is sorted by insertion from the guess, or by merging if that needs more
    than a few moves a document.
    Parallel: the caller runs ranges of queries side by side; a query writes only its own range of the order.
    Cost: O(n^2 / vector) for a query of n <= MOST_COUNTED; beyond, O(n) if the guess is right, else O(n log n).
    """
    largest = longest_query(query_offsets, first_query, last_query)
    keys = np.empty(largest, np.float64)
    spare_keys = np.empty(largest, np.float64)
    spare_rows = np.empty(largest, np.int32)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if n <= MOST_COUNTED:
            rank_by_counting(scores[start : start + n], start, spare_rows, rows)
            continue
        for k in range(n):
            keys[k] = scores[rows[k]]
        moves_left = 12 * n
        n_sorted = 1
        while n_sorted < n and moves_left >= 0:
            key = keys[n_sorted]
            row = rows[n_sorted]
            k = n_sorted
            while k > 0 and (keys[k - 1] < key or (keys[k - 1] == key and rows[k - 1] > row)):
                keys[k] = keys[k - 1]
                rows[k] = rows[k - 1]
                k -= 1
            keys[k] = key
            rows[k] = row
            moves_left -= n_sorted - k
            n_sorted += 1
        if n_sorted < n:
            merge_sort(keys, rows, spare_keys, spare_rows, n)


@inner_kernel
def rank_by_counting(scores: Float64Array, first_row: int, n_tied_before: Int32Array, rows: Int32Array) -> None:
    """Write the rows of one query by score: a document's rank is the number of documents above it.

    scores        : float64[n], of the query, in      first_row : the row of scores[0], in
    n_tied_before : int32[>= n], scratch      rows : int32[n], out
    Documents of equal score have as many above them; they take the ranks from there in the order of their rows.
    """
    n = np.uint64(len(rows))
    for k in range(n):
        n_tied_before[k] = 0
    for k in range(n):
        key = scores[k]
        n_above = 0
        for j in range(n):
            n_above += scores[j] > key
        rows[n_above + n_tied_before[n_above]] = first_row + np.int64(k)
        n_tied_before[n_above] += 1


@inner_kernel
def merge_sort(keys: Keys, rows: Int32Array, spare_keys: Keys, spare_rows: Int32Array, n: int) -> None:
    """Sort keys[:n] descending, equal keys by rows ascending, rows alongside.

    keys       : float64[>= n] or int64[>= n], in and out      rows : int32[>= n], in and out
    spare_keys, spare_rows : as keys and rows, scratch      n : entries to sort, in
    """
    width = 1
    in_place = True
    while width < n:
        if in_place:
            merge_runs(keys, rows, spare_keys, spare_rows, n, width)
        else:
            merge_runs(spare_keys, spare_rows, keys, rows, n, width)
        in_place = not in_place
        width *= 2
    if not in_place:
        for k in range(n):  # a loop compiles many times faster than a slice assignment
            keys[k] = spare_keys[k]
            rows[k] = spare_rows[k]


@inner_kernel
def merge_runs(from_keys: Keys, from_rows: Int32Array, to_keys: Keys, to_rows: Int32Array, n: int, width: int) -> None:
    """Merge neighbouring sorted runs from one pair of arrays into the other.

    from_keys, from_rows : of `merge_sort`, sorted in each run, in
    to_keys, to_rows     : of `merge_sort`, out, sorted in runs of twice the width
    n                    : entries to merge, in      width : entries of a run, the last may have fewer, in
    """
    for start in range(0, n, 2 * width):
        i = start
        i_end = min(start + width, n)
        j = i_end
        j_end = min(start + 2 * width, n)
        for k in range(start, j_end):
            take_left = j >= j_end
            if i < i_end and j < j_end:
                take_left = from_keys[i] > from_keys[j] or (
                    from_keys[i] == from_keys[j] and from_rows[i] < from_rows[j]
                )
            if take_left:
                to_keys[k] = from_keys[i]
                to_rows[k] = from_rows[i]
                i += 1
            else:
                to_keys[k] = from_keys[j]
                to_rows[k] = from_rows[j]
                j += 1


@inner_kernel
def sort_descending(keys: Float64Array, spare: Float64Array, start: int, stop: int) -> int:
    """Sort keys and return the number of pairs in which a smaller key stood before a larger.

    keys  : float64[>= stop], in, out from start to stop
    spare : float64[>= stop], out, overwritten from start to stop      start, stop : the range to sort, in
    """
    n_rises = 0
    width = 1
    while width < stop - start:
        left = start
        while left + width < stop:
            middle = left + width
            right = min(middle + width, stop)
            i = left
            j = middle
            for k in range(left, right):
                if i < middle and (j == right or keys[i] >= keys[j]):
                    spare[k] = keys[i]
                    i += 1
                else:
                    n_rises += middle - i
                    spare[k] = keys[j]
                    j += 1
            for k in range(left, right):
                keys[k] = spare[k]
            left = right
        width *= 2
    return n_rises


@inner_kernel
def equal_pairs(keys: Float64Array, start: int, stop: int) -> int:
    """Return how many pairs of keys are equal.

    keys : float64[>= stop], equal keys adjacent, in      start, stop : the range to look at, in
    """
    n_equal = 0
    run = 0
    for i in range(start + 1, stop):
        run = run + 1 if keys[i] == keys[i - 1] else 0
        n_equal += run
    return n_equal
