"""Resampling of queries: sums over queries drawn with replacement, and sums of differences with signs drawn by chance.

Every draw is a hash of the seed, the number of the resample and a counter, so any call can make any part of them. What
is added up are whole numbers, so that no sum depends on an order, the number of threads or the processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Int32Array, Int64Array, UInt16Array, UInt64Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

WORD = 64  # queries whose signs are the bits of one word
TABLE = 256  # sums of eight queries, one for each way to choose their signs
TABLES = 8  # for the eight bytes of a word


class FlipBuffers(NamedTuple):
    """Working arrays of one thread, overwritten by each call for m flips at most.

    tables : int64[TABLES * TABLE], sums of the differences of eight queries, by their signs
    keys   : uint64[m], by flip: mixed with the numbers of words
    sums   : int64[m], by flip
    """

    tables: Int64Array
    keys: UInt64Array
    sums: Int64Array


@inner_kernel
def count_draws(resample_key: np.uint64, counts: UInt16Array) -> None:
    """Write how often each query is drawn in a resample.

    resample_key : uint64, of the resample
    counts       : uint16[n], 0 < n < 2^32, out; beyond 65535 draws of one query, which chance never makes of n draws,
                   they would start from 0 again
    """
    n = np.uint64(len(counts))
    half = np.uint64(32)
    low_bits = np.uint64(0xFFFFFFFF)
    draw = np.uint16(1)
    for q in range(n):
        counts[q] = np.uint16(0)
    for k in range(n >> np.uint64(1)):
        word = mix_bits(resample_key ^ np.uint64(k))
        counts[((word >> half) * n) >> half] += draw
        counts[((word & low_bits) * n) >> half] += draw
    if n & np.uint64(1):
        word = mix_bits(resample_key ^ (n >> np.uint64(1)))
        counts[((word >> half) * n) >> half] += draw


@kernel
def sum_resamples(
    counts: UInt16Array, columns: Int32Array, key: np.uint64, first: int, last: int, sums: Int64Array
) -> None:
    """Write the sums of each column over the queries drawn in some of the resamples.

    counts      : uint16[n], of this call, scratch
    columns     : int32[n_columns, n], 0 < n < 2^32, what each query adds, in
    key         : uint64, mix_bits(seed)
    first, last : int64, the resamples first..last - 1 are made, >= 0
    sums        : int64[n_resamples, n_columns], out for these resamples

    Resample b draws n queries with replacement: words w_k = mix(mix(key ^ b) ^ k), k = 0, 1, ..., whose upper
    32 bits u give query floor(u n / 2^32), then the lower 32 bits another query. Source: Efron 1979; Lemire 2019 for
    the product in place of a division, which changes no chance by more than 2^-32.
    Parallel: ranges of resamples side by side, each with its own counts. Cost: O(n n_columns) a resample.
    """
    for b in range(first, last):
        count_draws(mix_bits(np.uint64(key) ^ np.uint64(b)), counts)
        for c in range(len(columns)):
            column = columns[c]
            total = np.int64(0)
            for q in range(np.uint64(len(counts))):
                total += np.int64(np.int32(counts[q])) * np.int64(column[q])
            sums[b, c] = total


@inner_kernel
def write_sign_tables(differences: Int64Array, start: int, tables: Int64Array) -> None:
    """Write, for eight times eight queries, their sum under each choice of signs.

    differences : int64[n], by query, in
    start       : int64, the first of 64 queries; those from n on count 0
    tables      : int64[TABLES * TABLE], out; entry s of a table has the sign + where the query's bit is set in s
    """
    for t in range(TABLES):
        base = t * TABLE
        total = 0
        for j in range(8):
            q = start + 8 * t + j
            if q < len(differences):
                total += differences[q]
        tables[base] = -total
        for j in range(8):
            q = start + 8 * t + j
            twice = 2 * differences[q] if q < len(differences) else 0
            for s in range(1 << j):
                tables[base + (1 << j) + s] = tables[base + s] + twice


@kernel
def count_extreme_flips(
    buffers: FlipBuffers, differences: Int64Array, bound: int, key: np.uint64, all_signs: bool, first: int, last: int
) -> int:
    """Count the sign vectors under which the sum of the differences is at least as far from 0 as a bound.

    buffers     : FlipBuffers with m >= last - first, scratch
    differences : int64[n], by query, absolute sum below 2^62, in      bound : int64, > 0
    key         : uint64, mix_bits(seed)
    all_signs   : bool, n <= 20 and flip b has the bits of b for signs, so that 0..2^n - 1 are all there are
    first, last : int64, the flips first..last - 1 are made, >= 0

    Equation: #{b : |sum_q s(b, q) d_q| >= bound}, with s = +1 where bit q mod 64 of the word mix(mix(key ^ b) ^
    floor(q / 64)) is set, else -1. Source: Fisher 1935, section 21; Smucker, Allan and Carterette 2007.
    Parallel: ranges of flips side by side, each with its own buffers. Cost: eight additions for 64 queries and a flip,
    and 2048 for 64 queries and a call.
    """
    tables, keys, sums = buffers
    n_flips = np.uint64(last - first)
    byte = np.uint64(0xFF)
    for b in range(n_flips):
        keys[b] = mix_bits(np.uint64(key) ^ (np.uint64(first) + b))
        sums[b] = 0
    for word_number in range((len(differences) + WORD - 1) // WORD):
        write_sign_tables(differences, word_number * WORD, tables)
        for b in range(n_flips):
            word = mix_bits(keys[b] ^ np.uint64(word_number))
            if all_signs:
                word = np.uint64(first) + b
            sums[b] += (
                tables[word & byte]
                + tables[((word >> np.uint64(8)) & byte) + np.uint64(256)]
                + tables[((word >> np.uint64(16)) & byte) + np.uint64(512)]
                + tables[((word >> np.uint64(24)) & byte) + np.uint64(768)]
                + tables[((word >> np.uint64(32)) & byte) + np.uint64(1024)]
                + tables[((word >> np.uint64(40)) & byte) + np.uint64(1280)]
                + tables[((word >> np.uint64(48)) & byte) + np.uint64(1536)]
                + tables[(word >> np.uint64(56)) + np.uint64(1792)]
            )
    count = 0
    for b in range(n_flips):
        count += int(abs(sums[b]) >= bound)
    return count
