"""Scoring kernels: map values to the model's own thresholds, then strike out the leaves that documents cannot reach.

A code is how many thresholds of a coded column lie below the value, so that `x <= t_j` is `code <= j`, exactly, in one
byte. The leaves of a tree stand in an order in which, at every node, those of its smaller child come first; a document
that goes to the larger child strikes those of the smaller one, and the first leaf left is the one it reaches. A plane
holds the bits of eight leaves, a byte for each document, so that one instruction works on many documents.
Source: QuickScorer (Lucchese et al. 2015) and RapidScorer (Ye et al. 2018). Differs: the smaller child comes first, so
that a tree of n leaves has at most n log2(n) / 2 bits to strike, whatever its shape; codes, not values, are compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

BLOCK = 128  # documents that go together, a byte each: their codes and planes stay in the caches nearest by
GAP = 9  # between the cells of two features: at a power of two apart they would push each other out of the cache

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
    first: int,
    stop: int,
    column_map: I32,
    grid_starts: U32,
    grid_bits: U8,
    grid: F64,
    coded_offsets: U32,
    coded_starts: U32,
    missing_codes: U8,
    absent_codes: U8,
    ends: U32,
    cell_values: F64,
    cell_rows: U32,
    cell_places: U32,
    codes: U8,
) -> None:
    """Write the codes of at most BLOCK rows, first:stop, a row of `codes` for each coded column.

    offsets, columns, values : int64[n + 1], int32[n_cells], float64[n_cells], SparseRows, in
    column_map    : int32[n_data_columns], feature of the model for each data column, n_features for none, in
    grid_starts   : uint32[n_features], place in `grid` before the thresholds of a feature, in
    grid_bits     : uint8[n_features], k when it has 2^k - 1 entries of `grid`, in
    grid          : float64[...], one entry that is never used, then for each feature its thresholds ascending, filled
                    up with inf, in
    coded_offsets : uint32[n_features + 1], the coded columns of a feature, in
    coded_starts  : uint32[n_coded], thresholds of the feature before those of this coded column, in
    missing_codes, absent_codes : uint8[n_coded], codes of nan and of a cell that is not written, in
    ends          : uint32[n_features + 1], overwritten
    cell_values, cell_rows, cell_places : float64, uint32, uint32[>= cells + GAP x n_features], overwritten
    codes         : uint8[n_coded, BLOCK], out, overwritten
    Equation: code = min(max(#{j : t_j < x} - start, 0), 255). The cells are laid out feature by feature first; then
    eight are searched together, so that their loads overlap, and no branch depends on a value.
    Parallel: writes only what the caller owns. Cost: O(cells x log thresholds + BLOCK x n_coded + n_features).
    """
    zero = np.uint64(0)
    one = np.uint64(1)
    eight = np.uint64(8)
    gap = np.uint64(GAP)
    n_features = np.uint64(len(ends) - 1)
    ends[:] = 0
    begin = np.uint64(offsets[first])
    end = np.uint64(offsets[stop])
    for cell in range(begin, end):
        ends[np.uint64(column_map[np.uint64(columns[cell])])] += np.uint32(1)
    place = np.uint32(0)
    for f in range(n_features + one):
        count = ends[f]
        ends[f] = place  # its start for now; the end once its cells are laid out
        place += np.uint32(count + np.uint32(GAP))
    for row in range(first, stop):
        for cell in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            feature = np.uint64(column_map[np.uint64(columns[cell])])
            at = np.uint64(ends[feature])
            ends[feature] = np.uint32(at + one)
            cell_values[at] = values[cell]
            cell_rows[at] = np.uint32(row - first)

    for v in range(np.uint64(len(absent_codes))):
        codes[v, :] = absent_codes[v]
    begin = zero
    for f in range(n_features):
        end = np.uint64(ends[f])
        if coded_offsets[f] == coded_offsets[np.uint64(f) + one]:
            begin = end + gap
            continue
        base = np.uint64(grid_starts[f])
        for group in range(begin, end, eight):
            c0 = np.uint64(group)  # past the end the last cell is done again, which changes nothing
            c1 = min(c0 + one, end - one)
            c2 = min(c0 + np.uint64(2), end - one)
            c3 = min(c0 + np.uint64(3), end - one)
            c4 = min(c0 + np.uint64(4), end - one)
            c5 = min(c0 + np.uint64(5), end - one)
            c6 = min(c0 + np.uint64(6), end - one)
            c7 = min(c0 + np.uint64(7), end - one)
            p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = base
            bit = np.uint64(grid_bits[f])
            while bit > zero:
                bit -= one
                step = one << bit
                p0 += np.uint64(grid[p0 + step] < cell_values[c0]) << bit
                p1 += np.uint64(grid[p1 + step] < cell_values[c1]) << bit
                p2 += np.uint64(grid[p2 + step] < cell_values[c2]) << bit
                p3 += np.uint64(grid[p3 + step] < cell_values[c3]) << bit
                p4 += np.uint64(grid[p4 + step] < cell_values[c4]) << bit
                p5 += np.uint64(grid[p5 + step] < cell_values[c5]) << bit
                p6 += np.uint64(grid[p6 + step] < cell_values[c6]) << bit
                p7 += np.uint64(grid[p7 + step] < cell_values[c7]) << bit
            cell_places[c0] = np.uint32(p0 - base)
            cell_places[c1] = np.uint32(p1 - base)
            cell_places[c2] = np.uint32(p2 - base)
            cell_places[c3] = np.uint32(p3 - base)
            cell_places[c4] = np.uint32(p4 - base)
            cell_places[c5] = np.uint32(p5 - base)
            cell_places[c6] = np.uint32(p6 - base)
            cell_places[c7] = np.uint32(p7 - base)
        for v in range(np.uint64(coded_offsets[f]), np.uint64(coded_offsets[np.uint64(f) + one])):
            coded = codes[v]
            start = coded_starts[v]
            missing_code = missing_codes[v]
            for cell in range(begin, end):
                below = cell_places[cell]
                code = min(np.uint32(below - start), np.uint32(255)) if below > start else np.uint32(0)
                coded[np.uint64(cell_rows[cell])] = missing_code if np.isnan(cell_values[cell]) else np.uint8(code)
        begin = end + gap


@kernel
def add_trees(
    strike_offsets: U64,
    strikes: U64,
    leaf_offsets: U64,
    leaf_values: F64,
    lowest: U8,
    codes: U8,
    planes: U8,
    sums: F64,
) -> None:
    """Add to the sum of each of BLOCK documents its leaf value in every tree, in tree order.

    strike_offsets : uint64[n_trees + 1], strikes of tree t are strike_offsets[t]:strike_offsets[t + 1], in
    strikes        : uint64[n_strikes], coded column 24 bits, plane 23 bits, flip 1 bit, code 8 bits, mask 8 bits, in
    leaf_offsets   : uint64[n_trees + 1]; leaf_values : float64[n_leaves], in the order of the leaves, in
    lowest         : uint8[256], the lowest bit set in a byte, in
    codes          : uint8[n_coded, BLOCK], in
    planes         : uint8[>= planes of the largest tree, BLOCK], overwritten
    sums           : float64[BLOCK], in and out
    Equation: where (code of the column, complemented if flip) > code of the strike, the plane loses the bits not in the
    mask; the leaf is the lowest bit of the first plane that is not 0; sum += its value.
    Parallel: writes only what the caller owns. Cost: O(BLOCK x strikes / documents of one vector).
    """
    byte = np.uint64(0xFF)
    eight = np.uint64(8)
    one = np.uint64(1)
    which = np.empty(BLOCK, np.uint32)
    bits = np.empty(BLOCK, np.uint8)
    for t in range(np.uint64(len(leaf_offsets) - 1)):
        first_leaf = leaf_offsets[t]
        n_planes = (leaf_offsets[np.uint64(t) + one] - first_leaf + np.uint64(7)) >> np.uint64(3)
        for p in range(n_planes):
            planes[p, :] = 255
        for k in range(strike_offsets[t], strike_offsets[np.uint64(t) + one]):
            strike = strikes[k]
            column = codes[strike >> np.uint64(40)]
            plane = planes[(strike >> np.uint64(17)) & np.uint64(0x7FFFFF)]
            flip = np.uint8(byte * ((strike >> np.uint64(16)) & one))
            code = np.uint8((strike >> eight) & byte)
            mask = np.uint8(strike & byte)
            for d in range(BLOCK):
                plane[d] &= mask if np.uint8(column[d] ^ flip) > code else np.uint8(255)
        for d in range(BLOCK):
            which[d] = 0
            bits[d] = planes[0, d]
        for p in range(one, n_planes):
            plane = planes[p]
            number = np.uint32(p)
            for d in range(BLOCK):
                which[d] = number if bits[d] == 0 else which[d]
                bits[d] = plane[d] if bits[d] == 0 else bits[d]
        for d in range(BLOCK):
            leaf = np.uint64(which[d]) * eight + np.uint64(lowest[np.uint64(bits[d])])
            sums[d] += leaf_values[first_leaf + leaf]


@kernel
def score_rows(
    offsets: I64,
    columns: I32,
    values: F64,
    column_map: I32,
    grid_starts: U32,
    grid_bits: U8,
    grid: F64,
    coded_offsets: U32,
    coded_starts: U32,
    missing_codes: U8,
    absent_codes: U8,
    strike_offsets: U64,
    strikes: U64,
    leaf_offsets: U64,
    leaf_values: F64,
    lowest: U8,
    n_planes: int,
    base_score: float,
    scores: F64,
    first: int,
    stop: int,
) -> None:
    """Write the scores of rows first:stop, block by block.

    n_planes : planes of the largest tree; scores : float64[n], out; first, stop : the rows of this call; the rest as in
    `code_rows` and `add_trees`.
    Equation: score = base_score + leaf value of tree 1 + leaf value of tree 2 ..., float64, in this order.
    Parallel: the caller gives each call its own rows; this writes only scores[first:stop].
    """
    most_cells = 0
    for start in range(first, stop, BLOCK):
        most_cells = max(most_cells, offsets[min(start + BLOCK, stop)] - offsets[start])
    ends = np.empty(len(grid_starts) + 1, np.uint32)
    most_cells += GAP * len(ends)
    cell_values = np.empty(most_cells, np.float64)
    cell_rows = np.empty(most_cells, np.uint32)
    cell_places = np.empty(most_cells, np.uint32)
    codes = np.empty((len(absent_codes), BLOCK), np.uint8)
    planes = np.empty((n_planes, BLOCK), np.uint8)
    sums = np.empty(BLOCK, np.float64)
    for start in range(first, stop, BLOCK):
        n = min(BLOCK, stop - start)
        code_rows(
            offsets, columns, values, start, start + n, column_map, grid_starts, grid_bits, grid, coded_offsets,
            coded_starts, missing_codes, absent_codes, ends, cell_values, cell_rows, cell_places, codes,
        )  # fmt: skip
        sums[:] = base_score
        add_trees(strike_offsets, strikes, leaf_offsets, leaf_values, lowest, codes, planes, sums)
        for i in range(n):
            scores[start + i] = sums[i]
