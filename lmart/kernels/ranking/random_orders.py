"""Random orders of a query's documents by score plus noise (YetiRank); only their first ranks are drawn.

Keys are float32 numbers from single IEEE operations, and which documents come first depends on comparisons of keys
alone: any processor draws the same orders. Arrays are padded to whole LANES, so that loops end in vector code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float32Array, Float64Array, Int32Array, UInt64Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.numba_support.code_cache import inner_kernel

LANES = 32
SMALLEST_KEY = 0x00800000  # bits of 2^-126, the least normal number: documents with smaller keys are ordered by score
INFINITE_KEY = 0x7F800000  # bits of infinity, above all keys
SCALE = 2.0**100  # of keys, which reach to 2^122: float32 has the keys of scores down to 156 / sigma below the best
FIRST_GUESS = 0x71800000  # bits of SCALE, the median of the keys of equal scores


class OrderBuffers(NamedTuple):
    """Working arrays for one query, overwritten for each order; padded means LANES - 1 entries more.

    random_bits : uint64[longest query], by document: those of three orders
    keys        : float32[longest query, padded], by document; 0 behind the last
    first_keys  : float32[longest query, padded], keys of the documents that may be among the first ranks
    documents   : int32[longest query, padded], which documents these are
    n_tied      : int32[longest query, padded], how many of these with a key have their rank
    order       : int32[longest query, padded], the documents at the first ranks
    """

    random_bits: UInt64Array
    keys: Float32Array
    first_keys: Float32Array
    documents: Int32Array
    n_tied: Int32Array
    order: Int32Array


@inner_kernel
def padded_length(n: int) -> int:
    """Return n, >= 0, rounded up to whole LANES."""
    return (n + LANES - 1) // LANES * LANES


@inner_kernel
def write_random_bits(first_row: int, n: int, key: np.uint64, random_bits: UInt64Array) -> None:
    """Write 64 bits for each document of a query, a hash of its row.

    first_row : int64, the row of the query's first document, in      n : int64, documents of the query, in
    key       : uint64, of the round and the orders, in      random_bits : uint64[>= n], out
    """
    first = np.uint64(first_row)
    for k in range(np.uint64(n)):
        random_bits[k] = mix_bits((first + np.uint64(k)) ^ key)


@inner_kernel
def write_keys(random_bits: UInt64Array, shift: int, exponentials: Float64Array, keys: Float32Array) -> None:
    """Write the keys of the documents of a query for one order.

    random_bits  : uint64[>= n], by document, in      shift : int64, the lowest of the 21 bits to take, in
    exponentials : float64[n], by document, from `write_softmax_numerators`, in
    keys         : float32[>= n], by document, out

    Equation: descending sigma s + ln(r / (1 - r)) by the keys SCALE exp(sigma s) r / (1 - r), r in (0, 1) from 21 bits
    and a half; both r and 1 - r are exact.
    """
    half, unit = np.float32(0.5), np.float32(2.0**-21)
    for k in range(np.uint64(len(exponentials))):
        low_bits = np.uint32(random_bits[k] >> np.uint64(shift)) & np.uint32(0x1FFFFF)
        r = (np.float32(np.int32(low_bits)) + half) * unit
        keys[k] = np.float32(exponentials[k] * SCALE) * (r / (np.float32(1.0) - r))


@inner_kernel
def count_keys_from(keys: Float32Array, n_padded: int, bits: int) -> int:
    """Return how many keys are not below a bound.

    keys : float32[>= n_padded], in      n_padded : int64, whole LANES, in
    bits : int64, the bits of the bound as float32, > 0, in
    """
    bound = np.int32(bits).view(np.float32)
    count = np.uint32(0)
    for k in range(np.uint64(n_padded)):
        count = np.uint32(count + np.uint32(keys[k] >= bound))
    return int(count)


@inner_kernel
def find_bounds(keys: Float32Array, n_padded: int, n_wanted: int, n_most: int, guess: int) -> tuple[int, int]:
    """Return (bound, bound) if n_wanted to n_most keys reach some bound; else the bounds between which the count jumps.

    keys, n_padded : as in `count_keys_from`      n_wanted, n_most : int64, 0 < n_wanted <= n_most, in
    guess          : int64, bits of a bound to start from, between SMALLEST_KEY and INFINITE_KEY, in

    Bounds are the bits of float32 numbers, which ascend as the numbers do. Of two adjacent bounds, more than n_most
    keys reach the low bound, or it is SMALLEST_KEY; fewer than n_wanted reach the high bound.
    """
    low, high, bits, step = SMALLEST_KEY, INFINITE_KEY, guess, 1 << 21
    while high - low > 1:
        count = count_keys_from(keys, n_padded, bits)
        if count < n_wanted:
            high = bits
        elif count <= n_most:
            return bits, bits
        else:
            low = bits
        bits = (low + high) // 2
        if low == SMALLEST_KEY:
            bits = max(bits, high - step)
        elif high == INFINITE_KEY:
            bits = min(bits, low + step)
        step *= 2
    return low, high


@inner_kernel
def take_keys(n: int, low: int, high: int, buffers: OrderBuffers, n_taken: int, n_wanted: int) -> int:
    """Append the documents with keys between two bounds, in their order; return the number of documents so far.

    n         : int64, documents of the query, in
    low, high : int64, bits of the bounds as float32: low <= key < high, in
    buffers   : keys in; first_keys and documents in and out
    n_taken   : int64, entries of first_keys and documents that are filled, in
    n_wanted  : int64, how many there may be at most, in
    """
    lowest, above = np.int32(low).view(np.float32), np.int32(high).view(np.float32)
    keys, first_keys, documents = buffers.keys, buffers.first_keys, buffers.documents
    end = np.uint64(n_taken)
    for k in range(np.uint64(n)):
        if end >= np.uint64(n_wanted):
            break
        first_keys[end] = keys[k]
        documents[end] = np.int32(k)
        end += np.uint64((keys[k] >= lowest) & (keys[k] < above))
    return int(end)


@inner_kernel
def rank_first(n_first: int, buffers: OrderBuffers) -> None:
    """Write the order of the documents that were taken: by key descending, ties in the order they were taken in.

    n_first : int64, how many were taken, in
    buffers : first_keys and documents in, order out, n_tied scratch

    A document's rank is the number of documents above it. Cost: O(n_first^2), in vector code.
    """
    _, _, first_keys, documents, n_tied, order = buffers
    padded = np.uint64(padded_length(n_first))
    for k in range(np.uint64(n_first), padded):
        first_keys[k] = np.float32(0.0)
    for k in range(padded):
        n_tied[k] = np.int32(0)
    for k in range(np.uint64(n_first)):
        key = first_keys[k]
        n_above = np.uint32(0)
        for j in range(padded):
            n_above = np.uint32(n_above + np.uint32(first_keys[j] > key))
        rank = np.uint64(n_above)
        order[rank + np.uint64(n_tied[rank])] = documents[k]
        n_tied[rank] += np.int32(1)


@inner_kernel
def append_by_score(scores: Float64Array, n_ranked: int, n_kept: int, buffers: OrderBuffers) -> None:
    """Fill the order with the documents whose keys are too small, by score descending, ties by row ascending.

    scores : float64[n], by document, in      n_ranked : int64, ranks of the order that are filled, in
    n_kept : int64, how many are to be filled, at most n, in      buffers : keys in, spoilt; order in and out

    Cost: O(n) a rank. Only needed where few scores are less than 156 / sigma below the highest score.
    """
    keys = buffers.keys
    smallest = np.int32(SMALLEST_KEY).view(np.float32)
    for rank in range(n_ranked, n_kept):
        best = -1
        for k in range(len(scores)):
            if keys[k] < smallest and (best < 0 or scores[k] > scores[best]):
                best = k
        buffers.order[rank] = best
        keys[best] = smallest


@inner_kernel
def draw_order(scores: Float64Array, n_kept: int, guess: int, buffers: OrderBuffers) -> int:
    """Write the documents at the first ranks of one order of a query; return a guess for the next order of the query.

    scores  : float64[n], by document, in
    n_kept  : int64, how many documents are wanted, 0 < n_kept <= n, in
    guess   : int64, from the order before or FIRST_GUESS; it has no influence on the order, in
    buffers : keys in, spoilt; order out, the rest scratch

    The documents of the highest keys are found by a bound that a few more reach than are wanted, then ranked.
    Cost: O(n + n_kept^2) in vector code on average.
    """
    n = len(scores)
    n_most = n_kept + max(8, n_kept // 2)
    low = high = SMALLEST_KEY
    if n > n_most:
        low, high = find_bounds(buffers.keys, padded_length(n), n_kept, n_most, guess)
        guess = low
    n_first = take_keys(n, high, INFINITE_KEY, buffers, 0, n)
    if low != high:
        n_first = take_keys(n, low, high, buffers, n_first, n_kept)
    rank_first(n_first, buffers)
    if n_first < n_kept:
        append_by_score(scores, n_first, n_kept, buffers)
    return guess
