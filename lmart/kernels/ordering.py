"""The order of the documents of each query."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

COUNTED = 256  # documents of a query up to which comparing each with each, in vector code, beats sorting


@kernel
def order_documents(scores: Floats, query_offsets: Longs, first_query: int, last_query: int, order: Rows) -> None:
    """Sort the rows of each query by score descending, ties by row ascending.

    scores        : float64[n], no nan, in
    query_offsets : int64[n_queries + 1], in
    order         : int32[n], in: of each query any permutation of its rows, best a guess such as the last order; out
    A document's rank is the number of documents above it. A query of more than COUNTED documents is sorted by insertion
    from the guess, and one that needs more than a few moves a document by merging.
    Parallel: the caller runs ranges of queries side by side. Cost: O(n^2 / vector) up to COUNTED; beyond, O(n) if the
    guess is right, else O(n log n).
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    keys = np.empty(largest, np.float64)
    spare_keys = np.empty(largest, np.float64)
    spare_rows = np.empty(largest, np.int32)
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if n <= COUNTED:
            rank_by_counting(scores[start : start + n], start, spare_rows, rows)
            continue
        for k in range(n):
            keys[k] = scores[rows[k]]
        budget = 12 * n
        sorted_to = 1
        while sorted_to < n and budget >= 0:
            key = keys[sorted_to]
            row = rows[sorted_to]
            k = sorted_to
            while k > 0 and (keys[k - 1] < key or (keys[k - 1] == key and rows[k - 1] > row)):
                keys[k] = keys[k - 1]
                rows[k] = rows[k - 1]
                k -= 1
            keys[k] = key
            rows[k] = row
            budget -= sorted_to - k
            sorted_to += 1
        if sorted_to < n:
            merge_sort(keys, rows, spare_keys, spare_rows, n)


@inner_kernel
def rank_by_counting(scores: Floats, first_row: int, taken: Rows, rows: Rows) -> None:
    """Write the rows of one query by score. scores : float64[n] of the query; taken : room for n, overwritten

    Documents of equal score have as many above them; they take the ranks from there in the order of their rows.
    """
    n = np.uint64(len(rows))
    for k in range(n):
        taken[k] = 0
    for k in range(n):
        key = scores[k]
        above = 0
        for j in range(n):
            above += scores[j] > key
        rows[above + taken[above]] = first_row + np.int64(k)
        taken[above] += 1


@inner_kernel
def merge_sort(keys: Floats, rows: Rows, spare_keys: Floats, spare_rows: Rows, n: int) -> None:
    """Sort keys[:n] descending, equal keys by rows ascending, rows alongside. The spare arrays are overwritten."""
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
def merge_runs(from_keys: Floats, from_rows: Rows, to_keys: Floats, to_rows: Rows, n: int, width: int) -> None:
    """Merge neighbouring sorted runs of `width` entries from one pair of arrays into the other."""
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
