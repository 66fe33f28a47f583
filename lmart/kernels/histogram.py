"""Sums of gradient and hessian by bin, as packed integers.

A document's gradient and hessian share one int64: gradient in the high half, hessian (never negative) in the low half,
scaled so that the sums over all documents fit their halves. One addition adds both, exactly, in any order; parent minus
child is exact too. Source: the packing of Shi et al. 2022 (quantized GBDT training), with 32-bit halves instead of few bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, types
from numba.extending import intrinsic

from lmart.kernels.compiler import kernel

if config.DISABLE_JIT:

    def prefetch(array: Any, index: Any) -> None:
        """Do nothing: the plain form of the processor hint below."""

else:

    @intrinsic
    def prefetch(typing_context, array, index):
        """Ask the processor to fetch array[index] soon; the index may lie outside the array."""

        def codegen(context, builder, signature, arguments):
            from llvmlite import ir
            from numba.core import cgutils

            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            byte = ir.IntType(8).as_pointer()
            word = ir.IntType(32)
            hint = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0"
            )
            builder.call(hint, [builder.bitcast(pointer, byte), word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen


AHEAD = 8


@kernel
def sum_sizes(gradients, hessians, start, stop):
    """Return the sums of |gradient| and of hessian over rows start..stop, added in row order."""
    gradient = 0.0
    hessian = 0.0
    for row in range(start, stop):
        gradient += abs(gradients[row])
        hessian += hessians[row]
    return gradient, hessian


@kernel
def pack(gradients, hessians, gradient_scale, hessian_scale, start, stop, out):
    """Write round(gradient * scale) << 32 | round(hessian * scale) for rows start..stop. out : int64[n]"""
    for row in range(start, stop):
        gradient = np.int64(np.rint(gradients[row] * gradient_scale))
        hessian = np.int64(np.rint(hessians[row] * hessian_scale))
        out[row] = (gradient << 32) + hessian


@kernel
def add_documents(histogram, documents, start, stop, packed, row_offsets, uncommon):
    """Add documents[start:stop] to a histogram, each in all its bins but the most frequent of each feature.

    histogram   : int64[n_bins], all features end to end, added to
    documents   : int32[n_leaf], rows, in
    packed      : int64[n], in
    row_offsets : int64[n + 1], uncommon : uint16 or uint32[...], BinnedFeatures, in
    Parallel: each worker has a histogram of its own. Cost: one addition an uncommon cell.
    """
    for i in range(start, min(stop, len(documents) - AHEAD)):
        ahead = documents[i + AHEAD]
        position = row_offsets[ahead]
        prefetch(packed, ahead)
        prefetch(uncommon, position)
        prefetch(uncommon, position + 32)
        prefetch(uncommon, position + 64)
        row = documents[i]
        value = packed[row]
        for k in range(np.uint64(row_offsets[row]), np.uint64(row_offsets[row + 1])):
            histogram[np.uint64(uncommon[k])] += value
    for i in range(max(start, min(stop, len(documents) - AHEAD)), stop):
        row = documents[i]
        value = packed[row]
        for k in range(np.uint64(row_offsets[row]), np.uint64(row_offsets[row + 1])):
            histogram[np.uint64(uncommon[k])] += value


@kernel
def sum_packed(documents, packed, start, stop):
    """Return the packed sum over documents[start:stop]."""
    total = np.int64(0)
    for i in range(start, stop):
        total += packed[documents[i]]
    return total


@kernel
def finish(histograms, total, bin_offsets, common_codes, first, last):
    """Add up the workers' histograms into histograms[0] and fill in each feature's most frequent bin.

    histograms   : int64[workers, n_bins], in, row 0 out
    total        : packed sum over the leaf's documents
    first, last  : range of features
    """
    for f in range(first, last):
        start = bin_offsets[f]
        stop = bin_offsets[f + 1]
        for w in range(1, len(histograms)):
            for b in range(start, stop):
                histograms[0, b] += histograms[w, b]
        others = np.int64(0)
        for b in range(start, stop):
            others += histograms[0, b]
        histograms[0, start + common_codes[f]] += total - others


@kernel
def subtract(parent, child, out):
    """Write parent - child, bin by bin: the other child's histogram, exactly. out may be parent."""
    for b in range(len(parent)):
        out[b] = parent[b] - child[b]
