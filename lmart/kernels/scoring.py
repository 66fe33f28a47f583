"""Scoring kernels: map values to the model's own thresholds, then walk the trees eight documents at a time.

A code is how many thresholds of a coded column lie below the value, so that `x <= t_j` is `code <= j`, exactly, in one
byte. A node is one uint64: left child 32 bits, coded column 24 bits, code 8 bits; the right child follows the left one.
A leaf is its own left child with code 255, so that further steps stay on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

BLOCK = 64  # documents whose codes stay in the first-level cache together; a multiple of 8

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@kernel
def code_rows(
    offsets: I64,
    columns: I32,
    values: F64,
    column_map: I32,
    grid_offsets: U32,
    grid_steps: U32,
    grid: F64,
    coded_offsets: U32,
    coded_starts: U32,
    missing_codes: U8,
    absent_codes: U8,
    first: int,
    stop: int,
    codes: U8,
) -> None:
    """Write the codes of rows first:stop, one row of `codes` each.

    offsets, columns, values : int64[n + 1], int32[n_cells], float64[n_cells], SparseRows, in
    column_map    : int32[n_data_columns], feature of the model for each data column, -1 for none, in
    grid_offsets  : uint32[n_features], where the thresholds of a feature start in `grid`, in
    grid_steps    : uint32[n_features], 2^k, half of the padded number of thresholds; 0 when no split uses it, in
    grid          : float64[...], for each feature its thresholds ascending, filled up with inf to 2^(k+1) - 1, in
    coded_offsets : uint32[n_features + 1], the coded columns of a feature, in
    coded_starts  : uint32[n_coded], thresholds of the feature before those of this coded column, in
    missing_codes, absent_codes : uint8[n_coded], codes of nan and of a cell that is not written, in
    codes         : uint8[>= stop - first, n_coded], out, overwritten
    Equation: code = min(max(#{j : t_j < x} - start, 0), 255), by a binary search without branches.
    Parallel: writes only `codes`, the caller's own. Cost: O(cells x log thresholds + rows x n_coded).
    """
    n_coded = np.uint64(len(absent_codes))
    zero = np.uint64(0)
    one = np.uint64(1)
    for row in range(first, stop):
        out = codes[row - first]
        for v in range(n_coded):
            out[v] = absent_codes[v]
        for cell in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            feature = column_map[np.uint64(columns[cell])]
            if feature < 0:
                continue
            f = np.uint64(feature)
            x = values[cell]
            low = np.uint64(coded_offsets[f])
            high = np.uint64(coded_offsets[f + one])
            if x != x:
                for v in range(low, high):
                    out[v] = missing_codes[v]
                continue
            base = np.uint64(grid_offsets[f])
            position = zero
            step = np.uint64(grid_steps[f])
            while step > zero:
                position += step * np.uint64(grid[base + position + step - one] < x)
                step >>= one
            for v in range(low, high):
                start = np.uint64(coded_starts[v])
                code = position - start if position > start else zero
                out[v] = np.uint8(code if code < np.uint64(255) else np.uint64(255))


@kernel
def walk_trees(
    roots: U64,
    nodes: U64,
    leaf_values: F64,
    codes: U8,
    n: int,
    sums: F64,
) -> None:
    """Add to each document's sum its leaf value in every tree, in tree order.

    roots       : uint64[n_trees], places in `nodes`, in
    nodes       : uint64[n_nodes], the words of the module's head, inner nodes and leaves, in
    leaf_values : float64[n_nodes], the value where the node is a leaf, in
    codes       : uint8[m, n_coded], m a multiple of 8 and >= n, in; rows from n on may hold anything
    sums        : float64[m], in and out
    Equation: next = left + (code of the node's column > code of the node); sum += value of the leaf reached.
    Eight documents go together so that their loads overlap; a group ends when all eight stay where they are.
    Parallel: writes only `sums`, the caller's own. Cost: O(documents x trees x the deepest leaf reached of eight).
    """
    n_coded = np.uint64(codes.shape[1])
    flat = codes.reshape(codes.size)
    shift = np.uint64(32)
    eight = np.uint64(8)
    mask = np.uint64(0xFFFFFF)
    byte = np.uint64(0xFF)
    for t in range(len(roots)):
        root = roots[t]
        for d in range(np.uint64(0), np.uint64(n), eight):
            r0 = d * n_coded
            r1 = r0 + n_coded
            r2 = r1 + n_coded
            r3 = r2 + n_coded
            r4 = r3 + n_coded
            r5 = r4 + n_coded
            r6 = r5 + n_coded
            r7 = r6 + n_coded
            i0 = i1 = i2 = i3 = i4 = i5 = i6 = i7 = root
            moving = True
            while moving:
                before = i0 + i1 + i2 + i3 + i4 + i5 + i6 + i7
                for _ in range(2):
                    w0 = nodes[i0]
                    w1 = nodes[i1]
                    w2 = nodes[i2]
                    w3 = nodes[i3]
                    w4 = nodes[i4]
                    w5 = nodes[i5]
                    w6 = nodes[i6]
                    w7 = nodes[i7]
                    i0 = (w0 >> shift) + np.uint64(np.uint64(flat[r0 + ((w0 >> eight) & mask)]) > (w0 & byte))
                    i1 = (w1 >> shift) + np.uint64(np.uint64(flat[r1 + ((w1 >> eight) & mask)]) > (w1 & byte))
                    i2 = (w2 >> shift) + np.uint64(np.uint64(flat[r2 + ((w2 >> eight) & mask)]) > (w2 & byte))
                    i3 = (w3 >> shift) + np.uint64(np.uint64(flat[r3 + ((w3 >> eight) & mask)]) > (w3 & byte))
                    i4 = (w4 >> shift) + np.uint64(np.uint64(flat[r4 + ((w4 >> eight) & mask)]) > (w4 & byte))
                    i5 = (w5 >> shift) + np.uint64(np.uint64(flat[r5 + ((w5 >> eight) & mask)]) > (w5 & byte))
                    i6 = (w6 >> shift) + np.uint64(np.uint64(flat[r6 + ((w6 >> eight) & mask)]) > (w6 & byte))
                    i7 = (w7 >> shift) + np.uint64(np.uint64(flat[r7 + ((w7 >> eight) & mask)]) > (w7 & byte))
                moving = i0 + i1 + i2 + i3 + i4 + i5 + i6 + i7 != before
            sums[d] += leaf_values[i0]
            sums[d + np.uint64(1)] += leaf_values[i1]
            sums[d + np.uint64(2)] += leaf_values[i2]
            sums[d + np.uint64(3)] += leaf_values[i3]
            sums[d + np.uint64(4)] += leaf_values[i4]
            sums[d + np.uint64(5)] += leaf_values[i5]
            sums[d + np.uint64(6)] += leaf_values[i6]
            sums[d + np.uint64(7)] += leaf_values[i7]


@kernel
def score_rows(
    offsets: I64,
    columns: I32,
    values: F64,
    column_map: I32,
    grid_offsets: U32,
    grid_steps: U32,
    grid: F64,
    coded_offsets: U32,
    coded_starts: U32,
    missing_codes: U8,
    absent_codes: U8,
    roots: U64,
    nodes: U64,
    leaf_values: F64,
    base_score: float,
    scores: F64,
    first: int,
    stop: int,
) -> None:
    """Write the scores of rows first:stop: their codes, then their walks, block by block.

    scores : float64[n], out; first, stop : the rows of this call; the rest as in `code_rows` and `walk_trees`.
    Equation: score = base_score + leaf value of tree 1 + leaf value of tree 2 ..., float64, in this order.
    Parallel: the caller gives each call its own rows; this writes only scores[first:stop].
    """
    codes = np.empty((BLOCK, len(absent_codes)), np.uint8)
    codes[:] = 0
    sums = np.empty(BLOCK, np.float64)
    for start in range(first, stop, BLOCK):
        n = min(BLOCK, stop - start)
        code_rows(
            offsets, columns, values, column_map, grid_offsets, grid_steps, grid, coded_offsets, coded_starts,
            missing_codes, absent_codes, start, start + n, codes,
        )  # fmt: skip
        sums[:] = base_score
        walk_trees(roots, nodes, leaf_values, codes, n, sums)
        for i in range(n):
            scores[start + i] = sums[i]
