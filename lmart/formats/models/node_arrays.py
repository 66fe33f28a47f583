"""Trees from arrays of nodes laid end to end, as readers of other tools' models collect them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.errors import ModelError
from lmart.scoring.ensemble import FlatTrees, Tree, structure_fault


class NodeArrays(NamedTuple):
    """The nodes and leaves of all trees end to end, as FlatTrees has them, but with feature ids.

    node_offsets : int64[n_trees + 1]
    features     : int64[n_nodes], feature ids
    thresholds   : float64[n_nodes], in lmart's sense
    missing_left : bool[n_nodes]
    left, right  : int64[n_nodes], counted in each tree
    leaf_values  : float64[n_leaves]
    """

    node_offsets: Int64Array
    features: Int64Array
    thresholds: Float64Array
    missing_left: BoolArray
    left: Int64Array
    right: Int64Array
    leaf_values: Float64Array


def trees_of(nodes: NodeArrays, feature_ids: Int64Array, path: str) -> tuple[Tree, ...]:
    """Return the trees as views of arrays that they share; ModelError when one is no sound tree.

    feature_ids : int64[n_features], ascending, all that the nodes name
    """
    flat = FlatTrees(
        nodes.node_offsets,
        np.searchsorted(feature_ids, nodes.features).astype(np.int32),
        nodes.thresholds,
        nodes.missing_left,
        nodes.left.astype(np.int32),
        nodes.right.astype(np.int32),
        nodes.leaf_values,
        np.zeros(len(nodes.features) + 1, np.int64),
        np.zeros(0),
    )
    fault = structure_fault(flat, len(feature_ids))
    if fault is not None:
        raise ModelError(f"tree {fault[0] + 1}: {fault[1]}; the model is damaged", path)
    bounds = flat.node_offsets.tolist()
    return tuple(
        Tree(
            flat.split_columns[start:stop],
            flat.thresholds[start:stop],
            flat.missing_left[start:stop],
            flat.left[start:stop],
            flat.right[start:stop],
            flat.leaf_values[start + t : stop + t + 1],
        )
        for t, (start, stop) in enumerate(pairwise(bounds))
    )
