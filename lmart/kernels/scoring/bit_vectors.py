"""Scores of rows: find which of the model's own thresholds lie below each value, then rule out leaves by bit masks.

A code is how many thresholds of a coded column lie below the value, so that `x <= t_j` is `code <= j`, exactly, in one
byte. The leaves of a tree are put into an order in which, at every node, those of its smaller child come first. A
document that goes to the larger child cannot reach the leaves of the smaller child, so a mask clears their bits; the
document reaches the first leaf whose bit is left. The bits of the leaves are kept in bytes of eight leaves, a byte for
each document, so that one instruction works on many documents.
Source: QuickScorer (Lucchese et al. 2015) and RapidScorer (Ye et al. 2018). Differs: the smaller child comes first, so
that a tree of n leaves has at most n log2(n) / 2 bits to clear, whatever its shape; codes, not values, are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array, UInt32Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel, shared_kernel
from lmart.kernels.numba_support.intrinsics import clear_where_above
from lmart.kernels.row_arrays import RowArrays
from lmart.kernels.scoring.step_trees import StepTrees, add_step_trees
from lmart.kernels.scoring.tree_walk import CodedTrees, walk_codes

FEW_ROWS = 40  # most rows that are walked down the trees, for which clearing bits would take longer
BLOCK_ROWS = 128  # documents processed together, a byte each: their codes and bitvectors stay in the nearest caches
# Where the parts of a mask word start, from the low bits up; the lowest eight are the mask.
_CODE, _FLIP, _BYTE, _COLUMN = np.uint64(8), np.uint64(16), np.uint64(17), np.uint64(40)
_ONE = np.uint64(1)
MISSING = np.uint32(0xFFFFFFFF)  # in place of the number of thresholds below nan
GAP = 9  # between the cells of two features: at a power of two apart they would push each other out of the cache


class CodingPlan(NamedTuple):
    """How the values of n_features features become the codes of n_coded coded columns.

    grid_starts   : uint32[n_features], place in `grid` before the thresholds of a feature
    grid_bits     : uint8[n_features], k when the feature has 2^k - 1 entries of `grid`
    grid          : float64[...], an entry that is never used, then for each feature its thresholds, ascending, filled
                    up with inf
    coded_offsets : uint32[n_features + 1], the coded columns of feature f are coded_offsets[f]:coded_offsets[f + 1]
    coded_starts  : uint32[n_coded], thresholds of the feature before those of this coded column
    missing_codes : uint8[n_coded], the code of nan
    absent_codes  : uint8[n_coded], the code of a cell that is not written
    table_starts  : int64[n_coded], place in `table` of a coded column that stands for a node with several bounds or for
                    a tree of one feature, -1 for all others
    table         : uint8[...], for each such column its code by the number of thresholds below the value
    """

    grid_starts: UInt32Array
    grid_bits: UInt8Array
    grid: Float64Array
    coded_offsets: UInt32Array
    coded_starts: UInt32Array
    missing_codes: UInt8Array
    absent_codes: UInt8Array
    table_starts: Int64Array
    table: UInt8Array


class MaskedTrees(NamedTuple):
    """Trees as the masks of their nodes, and their leaf values.

    mask_offsets : uint64[n_trees + 1], the masks of tree t are masks[mask_offsets[t]:mask_offsets[t + 1]]
    masks        : uint64[n_masks], of `mask_words`
    leaf_offsets : uint64[n_trees + 1], where the leaves of each tree start
    leaf_values  : float64[n_leaves], in the order of the bits
    lowest_bits  : uint8[256], the lowest bit set in a byte
    n_bytes      : int64, bytes of the bitvector of the largest tree
    steps        : StepTrees, further trees, which come after these
    base_score   : float64, the sum without any tree
    in_float32   : bool, the sum is rounded to float32 after each tree
    divisor      : float64, of the sum
    """

    mask_offsets: UInt64Array
    masks: UInt64Array
    leaf_offsets: UInt64Array
    leaf_values: Float64Array
    lowest_bits: UInt8Array
    n_bytes: int
    steps: StepTrees
    base_score: float
    in_float32: bool
    divisor: float


class CellBuffers(NamedTuple):
    """The cells of a block of rows, feature by feature with GAP places between; overwritten for each block.

    ends   : uint32[n_features + 1], where the cells of each feature end, those without a feature last
    values : float64[>= cells + GAP x (n_features + 1)]
    rows   : uint32[as values], the row of each cell, counted in the block
    below  : uint32[as values], thresholds of the feature below each cell
    """

    ends: UInt32Array
    values: Float64Array
    rows: UInt32Array
    below: UInt32Array


def mask_words(
    columns: Int64Array, bitvector_bytes: Int64Array, flips: BoolArray, codes: Int64Array, masks: Int64Array
) -> UInt64Array:
    """Return words that hold the masks of nodes and what they are applied to, uint64[n].

    columns         : int64[n], coded columns, below 2^24
    bitvector_bytes : int64[n], which byte of the bitvector the mask is for, below 2^23
    flips           : bool[n], whether the code of a document is complemented before it is compared
    codes           : int64[n], 0..255, above which the mask is applied
    masks           : int64[n], 0..255, the bits that stay
    """
    parts = (columns, _COLUMN), (bitvector_bytes, _BYTE), (flips, _FLIP), (codes, _CODE)
    words = masks.astype(np.uint64)
    for values, place in parts:
        words |= values.astype(np.uint64) << place
    return words


@inner_kernel
def group_cells(rows: RowArrays, column_map: Int32Array, first: int, stop: int, buffers: CellBuffers) -> None:
    """Write the cells of rows first:stop, feature by feature.

    rows        : RowArrays, in
    column_map  : int32[n_data_columns], feature of the model for each data column, -1 for none, in
    first, stop : int64      buffers : CellBuffers; ends, values and rows are out
    """
    offsets, columns, values = rows.offsets, rows.columns, rows.values
    ends, cell_values, cell_rows = buffers.ends, buffers.values, buffers.rows
    n_features = np.uint64(len(ends) - 1)
    ends[:] = 0
    for cell in range(np.uint64(offsets[first]), np.uint64(offsets[stop])):
        ends[min(np.uint64(column_map[np.uint64(columns[cell])]), n_features)] += np.uint32(1)
    start = np.uint32(0)
    for f in range(np.uint64(len(ends))):
        count = ends[f]
        ends[f] = start  # the end once its cells are laid out
        start += np.uint32(count + np.uint32(GAP))
    for row in range(first, stop):
        for cell in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            feature = min(np.uint64(column_map[np.uint64(columns[cell])]), n_features)
            end = np.uint64(ends[feature])
            ends[feature] = np.uint32(end + _ONE)
            cell_values[end] = values[cell]
            cell_rows[end] = np.uint32(row - first)


@inner_kernel
def thresholds_below(grid: Float64Array, base: np.uint64, n_bits: np.uint64, value: float) -> np.uint32:
    """Return how many thresholds of a feature lie below a value, MISSING of nan.

    grid : float64[...], as in CodingPlan, in      base, n_bits : as in `count_thresholds_below`      value : float64
    """
    p = base
    step = (_ONE << n_bits) >> _ONE
    while step > np.uint64(0):
        p += step if grid[p + step] < value else np.uint64(0)
        step >>= _ONE
    return MISSING if np.isnan(value) else np.uint32(p - base)


@inner_kernel
def count_thresholds_below(
    grid: Float64Array,
    base: np.uint64,
    n_bits: np.uint64,
    values: Float64Array,
    step_of_cells: np.uint64,
    n: np.uint64,
    below: UInt32Array,
) -> None:
    """Write how many thresholds of a feature lie below each of its n cells.

    grid          : float64[...], as in CodingPlan, in      base : uint64, grid_starts of the feature
    n_bits        : uint64, grid_bits of the feature      values : float64[...], from the first cell on, in
    step_of_cells : uint64, from a cell to the next      n : uint64      below : uint32[>= n], out; MISSING of nan

    Eight cells are searched together, so that their loads overlap, and no branch depends on a value.
    """
    rest = n & np.uint64(7)
    n_grouped = n - rest if rest < np.uint64(3) else n  # one or two are faster by themselves
    for c in range(n_grouped, n):
        below[c] = thresholds_below(grid, base, n_bits, values[np.uint64(c) * step_of_cells])
    last = n - _ONE
    for group in range(np.uint64(0), n_grouped, np.uint64(8)):
        c0 = np.uint64(group)  # past the end the last cell is done again, which changes nothing
        c1 = min(c0 + _ONE, last)
        c2 = min(c0 + np.uint64(2), last)
        c3 = min(c0 + np.uint64(3), last)
        c4 = min(c0 + np.uint64(4), last)
        c5 = min(c0 + np.uint64(5), last)
        c6 = min(c0 + np.uint64(6), last)
        c7 = min(c0 + np.uint64(7), last)
        x0 = values[c0 * step_of_cells]
        x1 = values[c1 * step_of_cells]
        x2 = values[c2 * step_of_cells]
        x3 = values[c3 * step_of_cells]
        x4 = values[c4 * step_of_cells]
        x5 = values[c5 * step_of_cells]
        x6 = values[c6 * step_of_cells]
        x7 = values[c7 * step_of_cells]
        p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = base
        bit = n_bits
        while bit > np.uint64(0):
            bit -= _ONE
            step = _ONE << bit
            p0 += np.uint64(grid[p0 + step] < x0) << bit
            p1 += np.uint64(grid[p1 + step] < x1) << bit
            p2 += np.uint64(grid[p2 + step] < x2) << bit
            p3 += np.uint64(grid[p3 + step] < x3) << bit
            p4 += np.uint64(grid[p4 + step] < x4) << bit
            p5 += np.uint64(grid[p5 + step] < x5) << bit
            p6 += np.uint64(grid[p6 + step] < x6) << bit
            p7 += np.uint64(grid[p7 + step] < x7) << bit
        below[c0] = MISSING if np.isnan(x0) else np.uint32(p0 - base)
        below[c1] = MISSING if np.isnan(x1) else np.uint32(p1 - base)
        below[c2] = MISSING if np.isnan(x2) else np.uint32(p2 - base)
        below[c3] = MISSING if np.isnan(x3) else np.uint32(p3 - base)
        below[c4] = MISSING if np.isnan(x4) else np.uint32(p4 - base)
        below[c5] = MISSING if np.isnan(x5) else np.uint32(p5 - base)
        below[c6] = MISSING if np.isnan(x6) else np.uint32(p6 - base)
        below[c7] = MISSING if np.isnan(x7) else np.uint32(p7 - base)


@inner_kernel
def code_of(rank: np.uint32, start: np.uint32, missing_code: np.uint8) -> np.uint8:
    """Return the code of a cell in a coded column that has no table.

    rank         : uint32, thresholds of the feature below the cell, or MISSING
    start        : uint32, thresholds of the feature before those of the coded column
    missing_code : uint8, the code of nan
    """
    code = min(np.uint32(rank - start), np.uint32(255)) if rank > start else np.uint32(0)
    return missing_code if rank == MISSING else np.uint8(code)


@inner_kernel
def have_same_columns(rows: RowArrays, first: int, stop: int) -> bool:
    """Return whether all rows first:stop have cells of the same columns in the same order.

    rows : RowArrays, in      first, stop : int64
    """
    offsets, columns = rows.offsets, rows.columns
    if first == stop:
        return False
    start, n = np.uint64(offsets[first]), np.uint64(offsets[first + 1] - offsets[first])
    differ = np.int32(0)
    for row in range(first + 1, stop):
        own = np.uint64(offsets[row])
        if np.uint64(offsets[row + 1]) - own != n:
            return False
        for c in range(n):
            differ |= columns[start + c] ^ columns[own + c]
    return bool(differ == 0)


@inner_kernel
def write_absent_codes(absent_codes: UInt8Array, n: int, codes: UInt8Array) -> None:
    """Write the codes of n rows without cells, or of a whole block when that is faster.

    absent_codes : uint8[n_coded], in      n : int64      codes : uint8[n_coded, BLOCK_ROWS], out
    """
    if n <= FEW_ROWS:
        for v in range(np.uint64(len(absent_codes))):
            for i in range(np.uint64(n)):
                codes[v, i] = absent_codes[v]
    else:
        for v in range(np.uint64(len(absent_codes))):
            codes[v, :] = absent_codes[v]


@shared_kernel
def code_rows(
    rows: RowArrays,
    column_map: Int32Array,
    first: int,
    stop: int,
    plan: CodingPlan,
    buffers: CellBuffers,
    codes: UInt8Array,
) -> None:
    """Write the codes of at most BLOCK_ROWS rows, first:stop.

    rows        : RowArrays, in
    column_map  : int32[n_data_columns], feature of the model for each data column, -1 for none, in
    first, stop : int64, the rows of this call      plan : CodingPlan, in      buffers : CellBuffers, overwritten
    codes       : uint8[n_coded, BLOCK_ROWS], a row for each coded column, out

    Equation: code = min(max(#{j : t_j < x} - start, 0), 255), or table[#{j : t_j < x}].
    Parallel: writes only what the caller owns. Cost: O(cells x log thresholds + BLOCK_ROWS x n_coded + n_features).
    """
    coded_offsets, below, cell_rows = plan.coded_offsets, buffers.below, buffers.rows
    write_absent_codes(plan.absent_codes, stop - first, codes)
    n_features = np.uint64(len(plan.grid_starts))
    in_all = have_same_columns(rows, first, stop)  # then cells of a feature are evenly spaced, and need no grouping
    start = n_cells = np.uint64(0)
    if in_all:
        start, n_cells = np.uint64(rows.offsets[first]), np.uint64(rows.offsets[first + 1] - rows.offsets[first])
    else:
        group_cells(rows, column_map, first, stop, buffers)
    all_values = rows.values if in_all else buffers.values
    end = np.uint64(0)
    for i in range(n_cells if in_all else n_features):
        if in_all:
            f, begin = np.uint64(column_map[np.uint64(rows.columns[start + i])]), start + i
            n, step = np.uint64(stop - first), n_cells
        else:
            f, begin = np.uint64(i), end
            n, step = np.uint64(buffers.ends[f]) - begin, _ONE
            end += n + np.uint64(GAP)
        if f >= n_features or n == np.uint64(0) or coded_offsets[f] == coded_offsets[f + _ONE]:
            continue
        values = all_values[begin:]
        count_thresholds_below(
            plan.grid, np.uint64(plan.grid_starts[f]), np.uint64(plan.grid_bits[f]), values, step, n, below
        )
        for v in range(np.uint64(coded_offsets[f]), np.uint64(coded_offsets[f + _ONE])):
            coded, start_code, missing_code = codes[v], plan.coded_starts[v], plan.missing_codes[v]
            if plan.table_starts[v] >= 0:
                table = plan.table[plan.table_starts[v] :]
                for d in range(n):
                    row = np.uint64(d) if in_all else np.uint64(cell_rows[begin + d])
                    coded[row] = missing_code if below[d] == MISSING else table[below[d]]
            elif in_all:
                for d in range(n):
                    coded[d] = code_of(below[d], start_code, missing_code)
            else:
                for d in range(n):
                    coded[np.uint64(cell_rows[begin + d])] = code_of(below[d], start_code, missing_code)


@shared_kernel
def add_trees(trees: MaskedTrees, codes: UInt8Array, bitvectors: UInt8Array, sums: Float64Array) -> None:
    """Add to the sum of each of BLOCK_ROWS documents its leaf value in every tree, in tree order.

    trees      : MaskedTrees, in      codes : uint8[n_coded, BLOCK_ROWS], in
    bitvectors : uint8[>= trees.n_bytes, BLOCK_ROWS], overwritten      sums : float64[BLOCK_ROWS], in and out

    Equation: where (code of the column, complemented if flip) > code of the mask word, the bitvector byte loses the
    bits that are not in the mask; the leaf is the lowest bit of the first byte that is not 0; sum += its value. A sum
    of two float32 numbers, made in float64 and rounded to float32, is their float32 sum.
    Parallel: writes only what the caller owns. Cost: O(BLOCK_ROWS x masks / documents of one vector).
    """
    mask_offsets, masks, leaf_offsets = trees.mask_offsets, trees.masks, trees.leaf_offsets
    leaf_values, lowest_bits = trees.leaf_values, trees.lowest_bits
    byte = np.uint64(0xFF)
    eight = np.uint64(8)
    leaf_bytes = np.empty(BLOCK_ROWS, np.uint32)  # place of the first byte that is not 0
    bits = np.empty(BLOCK_ROWS, np.uint8)  # and that byte
    for t in range(np.uint64(len(leaf_offsets) - 1)):
        first_leaf = leaf_offsets[t]
        n_bytes = (leaf_offsets[np.uint64(t) + _ONE] - first_leaf + np.uint64(7)) >> np.uint64(3)
        for p in range(n_bytes):
            bitvectors[p, :] = 255
        for k in range(mask_offsets[t], mask_offsets[np.uint64(t) + _ONE]):
            word = masks[k]
            bitvector = (word >> _BYTE) & ((_ONE << (_COLUMN - _BYTE)) - _ONE)
            flip = byte * ((word >> _FLIP) & _ONE)
            clear_where_above(bitvectors, bitvector, codes, word >> _COLUMN, flip, (word >> _CODE) & byte, word & byte)
        for d in range(BLOCK_ROWS):
            leaf_bytes[d] = 0
            bits[d] = bitvectors[0, d]
        for p in range(_ONE, n_bytes):
            bitvector = bitvectors[p]
            number = np.uint32(p)
            for d in range(BLOCK_ROWS):
                leaf_bytes[d] = number if bits[d] == 0 else leaf_bytes[d]
                bits[d] = bitvector[d] if bits[d] == 0 else bits[d]
        for d in range(BLOCK_ROWS):
            leaf = np.uint64(leaf_bytes[d]) * eight + np.uint64(lowest_bits[np.uint64(bits[d])])
            sums[d] += leaf_values[first_leaf + leaf]
        if trees.in_float32:
            for d in range(BLOCK_ROWS):
                sums[d] = np.float64(np.float32(sums[d]))


@kernel
def score_rows(
    rows: RowArrays,
    column_map: Int32Array,
    plan: CodingPlan,
    trees: MaskedTrees,
    coded_trees: CodedTrees,
    scores: Float64Array,
    first: int,
    stop: int,
) -> None:
    """Write the scores of rows first:stop, block by block.

    rows       : RowArrays, n rows, in
    column_map : int32[n_data_columns], feature of the model for each data column, -1 for none, in
    plan       : CodingPlan, in      trees : MaskedTrees, in
    coded_trees : CodedTrees, the same trees, those of one feature at the end left out, in
    scores     : float64[n], out      first, stop : int64, the rows of this call

    Equation: score = (base_score + leaf value of tree 1 + leaf value of tree 2 ..., in this order) / divisor.
    Parallel: the caller gives each call its own rows; this writes only scores[first:stop].
    """
    most_cells = 0
    for start in range(first, stop, BLOCK_ROWS):
        most_cells = max(most_cells, rows.offsets[min(start + BLOCK_ROWS, stop)] - rows.offsets[start])
    n_features = len(plan.grid_starts)
    most_cells += GAP * (n_features + 1)
    buffers = CellBuffers(
        np.empty(n_features + 1, np.uint32),
        np.empty(most_cells, np.float64),
        np.empty(most_cells, np.uint32),
        np.empty(most_cells, np.uint32),
    )
    codes = np.empty((len(plan.absent_codes) + 1, BLOCK_ROWS), np.uint8)  # trees of one leaf still look at a code
    bitvectors = np.empty((trees.n_bytes, BLOCK_ROWS), np.uint8)
    sums = np.empty(BLOCK_ROWS, np.float64)
    for start in range(first, stop, BLOCK_ROWS):
        n = min(BLOCK_ROWS, stop - start)
        code_rows(rows, column_map, start, start + n, plan, buffers, codes)
        for i in range(BLOCK_ROWS):
            sums[i] = trees.base_score
        if n <= FEW_ROWS:
            walk_codes(coded_trees, codes, n, trees.in_float32, sums)
        else:
            add_trees(trees, codes, bitvectors, sums)
        add_step_trees(trees.steps, codes, n, trees.in_float32, sums)
        for i in range(n):
            scores[start + i] = sums[i] / trees.divisor
