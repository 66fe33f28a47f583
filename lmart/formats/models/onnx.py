"""A model as ONNX: one TreeEnsembleRegressor of the operator set ai.onnx.ml 1, through the package onnx; written only.

Input 'features' is float32[n, n_features], in the order of feature_ids in the metadata; output 'scores' float32[n, 1].
A LabelEncoder numbers each category that trees split on; the texts of one are an input with its name, string[n, 1].
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float32Array, Int32Array, Int64Array
from lmart.data.categories import MISSING, Categories
from lmart.decimals import shortest
from lmart.errors import ModelError, load_package, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.nodes import trees_of_leaves
from lmart.formats.models.targets import as_plain_sum, leaves_in_float32, one_leaf, score_notes, threshold_notes
from lmart.formats.models.thresholds import round_down32
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten

IR_VERSION = 7  # of 2020, which all runtimes in use can read
ML_OPERATORS = 1
ML_OPERATORS_OF_CATEGORIES = 2
OPERATORS = 12


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the ensemble as ONNX, with the sides of missing values.

    Thresholds are rounded down to float32, so that rows of float32 numbers come to the same leaves (x <= threshold in
    float32); leaf values are rounded to float32, and runtimes add them as float32 in an order of their own. ModelError
    when the package onnx is missing, or a category has a value that float32 cannot hold.
    """
    onnx = load_package("onnx", "ONNX", ModelError)
    plain = as_plain_sum(ensemble)
    flat = flatten(plain.trees or (one_leaf(0.0),))
    used = set(flat.split_columns.tolist())
    numbering = _Numbering(onnx, ensemble, [each for each in ensemble.categories if each.column in used])
    flat = replace(flat, split_columns=numbering.columns[flat.split_columns])
    leaves = leaves_in_float32(flat, "ONNX")
    thresholds = round_down32(flat.thresholds)
    node = onnx.NodeProto(
        op_type="TreeEnsembleRegressor", domain="ai.onnx.ml", input=[numbering.output], output=["scores"]
    )
    _set_attributes(onnx, node, _node_attributes(flat, thresholds, leaves))
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("features", kind, ["documents", ensemble.n_features])]
    inputs += [
        helper.make_tensor_value_info(name, onnx.TensorProto.STRING, ["documents", 1]) for name in numbering.inputs
    ]
    scores = helper.make_tensor_value_info("scores", kind, ["documents", 1])
    model = helper.make_model(
        helper.make_graph([*numbering.nodes, node], "lmart", inputs, [scores], numbering.constants),
        opset_imports=[helper.make_opsetid("", OPERATORS), helper.make_opsetid("ai.onnx.ml", numbering.operators)],
        producer_name="lmart",
        ir_version=IR_VERSION,
    )
    said = {"feature_ids": json.dumps(ensemble.feature_ids.tolist()), "absent": ensemble.absent}
    if ensemble.feature_names is not None:
        said["feature_names"] = json.dumps(list(ensemble.feature_names))
    helper.set_model_props(model, said)
    on_cells = flat.split_columns < ensemble.n_features  # others are on whole numbers
    notes = threshold_notes(flat.thresholds[on_cells], thresholds[on_cells], "ONNX")
    notes += score_notes(ensemble, flat, leaves.astype(np.float64), "float32", "ONNX", ordered=False)
    notes += numbering.notes
    return WrittenModel(model.SerializeToString(deterministic=True), tuple(notes))


class _Numbering:
    """The nodes that add the numbers of categories to the features, for trees to split on.

    columns   : int32[n_features], where trees find each feature
    output    : what trees split on: 'features' without categories
    inputs    : names of the inputs of texts
    """

    def __init__(self, onnx: ModuleType, ensemble: Ensemble, categories: Sequence[Categories]) -> None:
        self._onnx = onnx
        self.columns: Int32Array = np.arange(ensemble.n_features, dtype=np.int32)
        self.output = "numbered" if categories else "features"
        self.operators = ML_OPERATORS_OF_CATEGORIES if categories else ML_OPERATORS
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[str] = []
        self.notes: list[str] = []
        for place, each in enumerate(categories):
            self.columns[each.column] = ensemble.n_features + place
            if each.of_texts:
                self._number_texts(each, ensemble.feature_name(each.column), place)
            else:
                self._number_values(each, ensemble.feature_name(each.column), place)
        if categories:
            numbers = [f"number {place}" for place in range(len(categories))]
            self._add("Concat", ["features", *numbers], self.output, {"axis": 1})

    def _add(
        self, kind: str, inputs: Sequence[str], output: str, attributes: dict[str, object], ml: bool = False
    ) -> None:
        domain = {"domain": "ai.onnx.ml"} if ml else {}
        node = self._onnx.NodeProto(op_type=kind, input=inputs, output=[output], **domain)
        _set_attributes(self._onnx, node, attributes)
        self.nodes.append(node)

    def _number_texts(self, category: Categories, name: str, place: int) -> None:
        """Add nodes that number the texts of an input; those that say that there is none are missing."""
        while name in (*self.inputs, "features", "scores", self.output):
            name += "_"
        self.inputs.append(name)
        words = sorted({"".join(letters) for word in MISSING for letters in product(*((c, c.upper()) for c in word))})
        texts = [*map(str, category.values), *(word for word in words if word not in category.values)]
        numbers = np.full(len(texts), np.nan, np.float32)
        numbers[: len(category.values)] = category.numbers
        keys = {"keys_strings": texts, "values_floats": numbers, "default_float": category.unseen_number}
        self._add("LabelEncoder", [name], f"number {place}", keys, ml=True)
        self.notes.append(
            f"the texts of category {quote(name)} are an input of that name, string[documents, 1]; its column of "
            "'features' does not count"
        )

    def _number_values(self, category: Categories, name: str, place: int) -> None:
        """Add nodes that number the values of a column; nan stays."""
        held, numbers = category.by_value
        finer = held[held.astype(np.float32) != held]
        if len(finer):
            what = f"category {quote(name)} has the value {shortest(float(finer[0]))}, which float32 does not hold"
            raise ModelError(f"{what}, and ONNX has its features as float32; number its values anew")
        own = f"value {place}"
        column = self._onnx.numpy_helper.from_array(np.array([category.column], np.int64), f"column {place}")
        self.constants.append(column)
        keys = {"keys_floats": held.astype(np.float32), "values_floats": numbers.astype(np.float32)}
        self._add("Gather", ["features", column.name], own, {"axis": 1})
        self._add("LabelEncoder", [own], f"any {own}", {**keys, "default_float": category.unseen_number}, ml=True)
        self._add("IsNaN", [own], f"no {own}", {})
        self._add("Where", [f"no {own}", own, f"any {own}"], f"number {place}", {})


def _set_attributes(onnx: ModuleType, node: Any, attributes: dict[str, object]) -> None:
    """Add attributes to a node: a number, a text, a list of texts (or the bytes that spell them), or an array."""
    for name, value in attributes.items():
        node.attribute.add(name=name, **_content(onnx.AttributeProto, value))


def _content(kinds: Any, value: object) -> dict[str, object]:
    """Return the fields of an attribute that hold its value."""
    if isinstance(value, bytes):
        return {"type": kinds.STRING, "s": value}
    if isinstance(value, int):
        return {"type": kinds.INT, "i": value}
    if isinstance(value, float):
        return {"type": kinds.FLOAT, "f": value}
    if isinstance(value, list):
        texts = [text.encode() if isinstance(text, str) else text for text in value]
        return {"type": kinds.STRINGS, "strings": texts}
    assert isinstance(value, np.ndarray)
    numbers = value.tolist()
    is_float = value.dtype == np.float32
    return {"type": kinds.FLOATS, "floats": numbers} if is_float else {"type": kinds.INTS, "ints": numbers}


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
