"""Sums of gradient and hessian by bin, as packed integers.

A document's gradient and hessian share one int64: gradient in the high half, hessian (never negative) in the low half,
scaled so that the sums over all documents fit their halves. One addition adds both, exactly, in any order; parent minus
child is exact too. Source: the packing of Shi et al. 2022 (quantized GBDT
training), with 32-bit halves instead of few bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import config, types
from numba.extending import intrinsic

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]
Bins = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def prefetch(array: Any, index: Any) -> None:
        """Do nothing: the plain form of the processor hint below."""

else:

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Ask the processor to fetch array[index] soon; the index may lie outside the array."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from llvmlite import ir
            from numba.core import cgutils

            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            byte = ir.IntType(8).as_pointer()
            word = ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            hint = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
            builder.call(hint, [builder.bitcast(pointer, byte), word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen


# How many documents ahead their bins are fetched, and where these start.
AHEAD = 8
FAR_AHEAD = 16


@kernel
def sum_sizes(gradients: Floats, hessians: Floats, start: int, stop: int) -> tuple[float, float]:
    """Return the sums of |gradient| and of hessian over rows start..stop, added in row order."""
    gradient = 0.0
    hessian = 0.0
    for row in range(start, stop):
        gradient += abs(gradients[row])
        hessian += hessians[row]
    return gradient, hessian


@kernel
def pack(
    gradients: Floats, hessians: Floats, gradient_scale: float, hessian_scale: float, start: int, stop: int, out: Longs
) -> int:
    """Write round(gradient * scale) << 32 | round(hessian * scale) for rows start..stop. out : int64[n]

    Returns the largest hessian of these rows in units.
    """
    largest = 0
    for row in range(start, stop):
        gradient = np.int64(np.rint(gradients[row] * gradient_scale))
        hessian = np.int64(np.rint(hessians[row] * hessian_scale))
        out[row] = (gradient << 32) + hessian
        largest = max(largest, int(hessian))
    return largest


@kernel
def add_documents(
    histogram: Longs, documents: Rows, packed: Longs, row_offsets: Longs, uncommon: Bins, start: int, stop: int
) -> int:
    """Add documents[start:stop] to a histogram, each in all its bins but the most frequent of each feature.

    Returns their packed sum.
    histogram   : int64[n_bins], all features end to end, added to
    documents   : int32[n_leaf], rows, in
    packed      : int64[n], in
    row_offsets : int64[n + 1], uncommon : uint16 or uint32[...], BinnedFeatures, in
    Parallel: each worker has a histogram of its own. Cost: one addition an uncommon cell.
    """
    total = 0
    last = len(documents) - 1
    for i in range(start, stop):
        far = documents[min(i + FAR_AHEAD, last)]
        prefetch(packed, far)
        prefetch(row_offsets, far)
        position = row_offsets[np.uint64(documents[min(i + AHEAD, last)])]
        prefetch(uncommon, position)
        prefetch(uncommon, position + 32)
        prefetch(uncommon, position + 64)
        row = np.uint64(documents[i])
        value = packed[row]
        total += value
        for k in range(np.uint64(row_offsets[row]), np.uint64(row_offsets[row + np.uint64(1)])):
            histogram[np.uint64(uncommon[k])] += value
    return total


@kernel
def merge(histogram: Longs, parts: Longs, first: int, last: int) -> None:
    """Add the other workers' histograms to the first one's, and clear them for the next leaf.

    histogram   : int64[n_bins], added to        parts : int64[workers - 1, n_bins], in, 0 out
    first, last : range of bins
    """
    for part in parts:
        for b in range(np.uint64(first), np.uint64(last)):
            histogram[b] += part[b]
            part[b] = 0
