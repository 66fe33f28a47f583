"""Packed sums in fewer bytes, for the way between processes.

Most sums of a leaf's bins need at most 20 bits for the gradient and 20 for the hessian: these take 5 bytes in place of
8. The others are listed.
"""

from __future__ import annotations

import numpy as np

from lmart.array_types import Int32Array, Int64Array, UInt8Array, UInt32Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

BLOCK_SUMS = 256  # sums that are looked at together for those that need more bits


@inner_kernel
def list_long_sums(
    sums: Int64Array, first: int, last: int, long_places: Int32Array, long_sums: Int64Array, n_long: int
) -> int:
    """Add the sums first:last that need more than 5 bytes to a list; return its length, or -1 if the list is full.

    sums        : int64[n], packed sums, in      first, last : int64, the places to look at
    long_places : int32[k], places of long sums, in and out      long_sums : int64[k], these sums, in and out
    n_long      : int64, length of the list so far
    """
    for place in range(first, last):
        gradient, hessian = sums[place] >> np.int64(32), sums[place] & np.int64(0xFFFFFFFF)
        if ((gradient + np.int64(0x80000)) | hessian) >> np.int64(20):
            if n_long == len(long_places):
                return -1
            long_places[n_long], long_sums[n_long] = place, sums[place]
            n_long += 1
    return n_long


@kernel
def shorten_sums(
    sums: Int64Array, low: UInt32Array, high: UInt8Array, long_places: Int32Array, long_sums: Int64Array
) -> int:
    """Write sums in 5 bytes each, and list those that need more; return their number, or -1 if the list is full.

    sums        : int64[n], packed sums, in
    low         : uint32[n], lowest 16 bits of gradient and of hessian, out
    high        : uint8[n], the next 4 bits of gradient and of hessian, out
    long_places : int32[k], places of sums that need more bits, ascending, out
    long_sums   : int64[k], these sums, out
    """
    n_long, n = 0, len(sums)
    for first in range(0, n, BLOCK_SUMS):
        last = min(first + BLOCK_SUMS, n)
        further_bits = np.int64(0)
        for place in range(np.uint64(first), np.uint64(last)):
            both = sums[place]
            gradient, hessian = both >> np.int64(32), both & np.int64(0xFFFFFFFF)
            low[place] = np.uint32((both >> np.int64(16)) & np.int64(0xFFFF0000)) | np.uint32(both & np.int64(0xFFFF))
            high[place] = np.uint8(
                ((both >> np.int64(44)) & np.int64(0xF0)) | ((both >> np.int64(16)) & np.int64(0x0F))
            )
            further_bits |= ((gradient + np.int64(0x80000)) | hessian) >> np.int64(20)
        if further_bits:
            n_long = list_long_sums(sums, first, last, long_places, long_sums, n_long)
            if n_long < 0:
                return -1
    return n_long


@kernel
def restore_sums(
    low: UInt32Array, high: UInt8Array, long_places: Int32Array, long_sums: Int64Array, sums: Int64Array
) -> None:
    """Undo `shorten_sums`.

    low         : uint32[n], lowest 16 bits of gradient and of hessian, in
    high        : uint8[n], the next 4 bits of gradient and of hessian, in
    long_places : int32[k], places of sums that need more bits, in      long_sums : int64[k], these sums, in
    sums        : int64[n], packed sums, out
    """
    for place in range(len(sums)):
        lowest, next_bits = np.int64(low[place]), np.int64(high[place])
        gradient = (lowest >> np.int64(16)) | ((next_bits >> np.int64(4)) << np.int64(16))
        hessian = (lowest & np.int64(0xFFFF)) | ((next_bits & np.int64(15)) << np.int64(16))
        gradient -= (gradient & np.int64(0x80000)) << np.int64(1)
        sums[place] = (gradient << np.int64(32)) + hessian
    for number in range(len(long_places)):
        sums[long_places[number]] = long_sums[number]
