"""Scores of trees of one feature each, which need no walk: the code of a document is the number of its leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, UInt8Array, UInt32Array, UInt64Array
from lmart.kernels.numba_support.code_cache import inner_kernel


class StepTrees(NamedTuple):
    """Trees of one feature each, the last of their model.

    columns     : uint32[n_trees], the coded column whose code is the leaf of a document
    starts      : uint64[n_trees], where the leaves of each tree start
    leaf_values : float64[n_leaves]
    """

    columns: UInt32Array
    starts: UInt64Array
    leaf_values: Float64Array


@inner_kernel
def add_step_trees(trees: StepTrees, codes: UInt8Array, n: int, in_float32: bool, sums: Float64Array) -> None:
    """Add to the sum of each of n documents its leaf value in every tree, in tree order.

    trees : StepTrees, in      codes : uint8[n_coded, >= n], in      sums : float64[>= n], in and out
    in_float32 : bool, the sum is rounded to float32 after each tree

    Parallel: writes only what the caller owns. Cost: O(n x trees).
    """
    for t in range(np.uint64(len(trees.columns))):
        leaves = codes[np.uint64(trees.columns[t])]
        values = trees.leaf_values[trees.starts[t] :]
        for d in range(np.uint64(n)):
            sums[d] += values[np.uint64(leaves[d])]
        if in_float32:
            for d in range(np.uint64(n)):
                sums[d] = np.float64(np.float32(sums[d]))
