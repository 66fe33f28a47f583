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
    grid_starts: U32,
    grid_sizes: U32,
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
    column_map    : int32[n_data_columns], feature of the model for each data column, n_features for none, in
    grid_starts   : uint32[n_features + 1], place in `grid` before the thresholds of a feature, in
    grid_sizes    : uint32[n_features + 1], how many entries of `grid` it has, 2^k - 1; the last one has none, in
    grid          : float64[...], one entry that is never used, then for each feature its thresholds ascending, filled
                    up with inf, in
    coded_offsets : uint32[n_features + 2], the coded columns of a feature, in
    coded_starts  : uint32[n_coded], thresholds of the feature before those of this coded column, in
    missing_codes, absent_codes : uint8[n_coded], codes of nan and of a cell that is not written, in
    codes         : uint8[>= stop - first, n_coded], out, overwritten
    Equation: code = min(max(#{j : t_j < x} - start, 0), 255). Four cells are searched together, so that their loads
    overlap; a step wider than a feature's thresholds is masked to no step at all, so no branch depends on the data.
    Parallel: writes only `codes`, the caller's own. Cost: O(cells x log thresholds + rows x n_coded).
    """
    n_coded = np.uint64(len(absent_codes))
    zero = np.uint64(0)
    one = np.uint64(1)
    top = np.uint64(255)
    found = np.empty(4, np.uint64)
    for row in range(first, stop):
        out = codes[np.uint64(row - first)]
        for v in range(n_coded):
            out[v] = absent_codes[v]
        begin = np.uint64(offsets[row])
        end = np.uint64(offsets[row + 1])
        for cell in range(begin, end, np.uint64(4)):
            c0 = np.uint64(cell)  # past the end the last cell is done again, which changes nothing
            c1 = min(c0 + one, end - one)
            c2 = min(c0 + np.uint64(2), end - one)
            c3 = min(c0 + np.uint64(3), end - one)
            f0 = np.uint64(column_map[np.uint64(columns[c0])])
            f1 = np.uint64(column_map[np.uint64(columns[c1])])
            f2 = np.uint64(column_map[np.uint64(columns[c2])])
            f3 = np.uint64(column_map[np.uint64(columns[c3])])
            x0 = values[c0]
            x1 = values[c1]
            x2 = values[c2]
            x3 = values[c3]
            m0 = np.uint64(grid_sizes[f0])
            m1 = np.uint64(grid_sizes[f1])
            m2 = np.uint64(grid_sizes[f2])
            m3 = np.uint64(grid_sizes[f3])
            p0 = np.uint64(grid_starts[f0])
            p1 = np.uint64(grid_starts[f1])
            p2 = np.uint64(grid_starts[f2])
            p3 = np.uint64(grid_starts[f3])
            bit = zero
            while (m0 | m1 | m2 | m3) >> bit > zero:
                bit += one
            while bit > zero:
                bit -= one
                step = one << bit
                p0 += (np.uint64(grid[p0 + (step & m0)] < x0) << bit) & m0
                p1 += (np.uint64(grid[p1 + (step & m1)] < x1) << bit) & m1
                p2 += (np.uint64(grid[p2 + (step & m2)] < x2) << bit) & m2
                p3 += (np.uint64(grid[p3 + (step & m3)] < x3) << bit) & m3
            found[0] = p0 - np.uint64(grid_starts[f0])
            found[1] = p1 - np.uint64(grid_starts[f1])
            found[2] = p2 - np.uint64(grid_starts[f2])
            found[3] = p3 - np.uint64(grid_starts[f3])
            for k in range(np.uint64(4)):
                c = min(c0 + np.uint64(k), end - one)
                f = np.uint64(column_map[np.uint64(columns[c])])
                x = values[c]
                coded = np.uint64(coded_offsets[f])
                while coded < np.uint64(coded_offsets[f + one]):
                    start = np.uint64(coded_starts[coded])
                    code = found[k] - start if found[k] > start else zero
                    out[coded] = np.uint8(min(code, top)) if not np.isnan(x) else missing_codes[coded]
                    coded += one


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
    grid_starts: U32,
    grid_sizes: U32,
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
            offsets, columns, values, column_map, grid_starts, grid_sizes, grid, coded_offsets, coded_starts,
            missing_codes, absent_codes, start, start + n, codes,
        )  # fmt: skip
        sums[:] = base_score
        walk_trees(roots, nodes, leaf_values, codes, n, sums)
        for i in range(n):
            scores[start + i] = sums[i]
