"""A model as ONNX: one TreeEnsembleRegressor of the operator set ai.onnx.ml 1, through the package onnx; written only.

Input 'features' is float32[n, n_features], in the order of feature_ids in the metadata; output 'scores' float32[n, 1].
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float32Array, Int32Array, Int64Array
from lmart.errors import ModelError, load_package
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.nodes import trees_of_leaves
from lmart.formats.models.targets import (
    as_plain_sum,
    leaves_in_float32,
    one_leaf,
    score_notes,
    threshold_notes,
)
from lmart.formats.models.thresholds import round_down32
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten

IR_VERSION = 7  # of 2020, which all runtimes in use can read
ML_OPERATORS = 1
OPERATORS = 12


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the ensemble as ONNX, with the sides of missing values.

    Thresholds are rounded down to float32, so that rows of float32 numbers come to the same leaves (x <= threshold in
    float32); leaf values are rounded to float32, and runtimes add them as float32 in an order of their own. ModelError
    when the package onnx is missing.
    """
    onnx = load_package("onnx", "ONNX", ModelError)
    plain = as_plain_sum(ensemble)
    flat = flatten(plain.trees or (one_leaf(0.0),))
    leaves = leaves_in_float32(flat, "ONNX")
    thresholds = round_down32(flat.thresholds)
    node = onnx.NodeProto(op_type="TreeEnsembleRegressor", domain="ai.onnx.ml", input=["features"], output=["scores"])
    _set_attributes(onnx, node, _node_attributes(flat, thresholds, leaves))
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    features = helper.make_tensor_value_info("features", kind, ["documents", ensemble.n_features])
    scores = helper.make_tensor_value_info("scores", kind, ["documents", 1])
    model = helper.make_model(
        helper.make_graph([node], "lmart", [features], [scores]),
        opset_imports=[helper.make_opsetid("", OPERATORS), helper.make_opsetid("ai.onnx.ml", ML_OPERATORS)],
        producer_name="lmart",
        ir_version=IR_VERSION,
    )
    said = {"feature_ids": json.dumps(ensemble.feature_ids.tolist()), "absent": ensemble.absent}
    if ensemble.feature_names is not None:
        said["feature_names"] = json.dumps(list(ensemble.feature_names))
    helper.set_model_props(model, said)
    notes = threshold_notes(flat.thresholds, thresholds, "ONNX")
    notes += score_notes(ensemble, flat, leaves.astype(np.float64), "float32", "ONNX", ordered=False)
    return WrittenModel(model.SerializeToString(deterministic=True), tuple(notes))


def _set_attributes(onnx: ModuleType, node: Any, attributes: dict[str, object]) -> None:
    """Add attributes to a node: a number, a text, a list of texts, or an array of floats or integers."""
    kinds = onnx.AttributeProto
    for name, values in attributes.items():
        attribute = node.attribute.add()
        attribute.name = name
        if isinstance(values, bytes):
            attribute.type, attribute.s = kinds.STRING, values
        elif isinstance(values, int):
            attribute.type, attribute.i = kinds.INT, values
        elif isinstance(values, list):
            attribute.type = kinds.STRINGS
            attribute.strings.extend(values)
        else:
            assert isinstance(values, np.ndarray)
            is_float = values.dtype == np.float32
            attribute.type = kinds.FLOATS if is_float else kinds.INTS
            (attribute.floats if is_float else attribute.ints).extend(values.tolist())


def _node_attributes(flat: FlatTrees, thresholds: Float32Array, leaves: Float32Array) -> dict[str, object]:
    """Return the attributes of the operator; a tree's nodes are its inner nodes, as numbered, and then its leaves."""
    sizes = np.diff(flat.node_offsets)
    tree_of_node, tree_of_leaf = flat.tree_of_node, trees_of_leaves(flat.node_offsets)
    node_numbers = np.arange(len(tree_of_node)) - flat.node_offsets[tree_of_node]
    leaf_numbers = np.arange(len(tree_of_leaf)) - flat.leaf_offsets[tree_of_leaf] + sizes[tree_of_leaf]
    starts = flat.node_offsets + flat.leaf_offsets  # of each tree among inner nodes and leaves together
    node_places, leaf_places = starts[tree_of_node] + node_numbers, starts[tree_of_leaf] + leaf_numbers
    n = len(node_places) + len(leaf_places)
    is_node = np.zeros(n, np.bool_)
    is_node[node_places] = True

    def laid(of_nodes: npt.ArrayLike, of_leaves: npt.ArrayLike, dtype: type) -> npt.NDArray[Any]:
        """Return one array of the nodes and leaves of all trees."""
        values: npt.NDArray[Any] = np.zeros(n, dtype)
        values[node_places], values[leaf_places] = of_nodes, of_leaves
        return values

    def children(child: Int32Array) -> Int64Array:
        """Return the numbers in the tree of children."""
        numbers: Int64Array = np.where(child >= 0, child, sizes[tree_of_node] + ~child)
        return numbers

    return {
        "n_targets": 1,
        "aggregate_function": b"SUM",
        "post_transform": b"NONE",
        "nodes_treeids": laid(tree_of_node, tree_of_leaf, np.int64),
        "nodes_nodeids": laid(node_numbers, leaf_numbers, np.int64),
        "nodes_featureids": laid(flat.split_columns, 0, np.int64),
        "nodes_modes": [b"BRANCH_LEQ" if inner else b"LEAF" for inner in is_node.tolist()],
        "nodes_values": laid(thresholds, 0.0, np.float32),
        "nodes_truenodeids": laid(children(flat.left), 0, np.int64),
        "nodes_falsenodeids": laid(children(flat.right), 0, np.int64),
        "nodes_missing_value_tracks_true": laid(flat.missing_left, 0, np.int64),
        "target_treeids": tree_of_leaf,
        "target_nodeids": leaf_numbers.astype(np.int64),
        "target_ids": np.zeros(len(leaves), np.int64),
        "target_weights": leaves,
    }
