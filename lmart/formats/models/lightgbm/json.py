"""LightGBM's JSON model, as `dump_model` gives it and as Vespa takes it.

LightGBM tests x <= threshold, Vespa takes the same numbers for x < threshold. Written models say "<" as their
decision_type and have the number above each threshold, so that Vespa, which only looks for "==", scores them exactly;
"<" is read as what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import Int32Array, Int64Array
from lmart.errors import ModelError, counted
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.coded_categories import on_numbers
from lmart.formats.models.json_text import json_start, parse_json, shown
from lmart.formats.models.lightgbm.conditions import (
    CATEGORICAL,
    DEFAULT_LEFT,
    LARGEST_CATEGORY,
    range_edges,
    read_conditions,
    set_members,
)
from lmart.formats.models.lightgbm.header import check_objective, check_outputs, check_version, facts, linear_refusal
from lmart.formats.models.lightgbm.pandas_categories import read_categories
from lmart.formats.models.lightgbm.writing import WrittenTree, column_ranges, column_uses, prepare
from lmart.formats.models.nodes import (
    LARGEST_NUMBER,
    JsonObject,
    NodeLists,
    build_trees,
    category_ranges,
    counts_to_offsets,
    is_number,
    is_whole,
    list_features,
)
from lmart.formats.models.targets import join_whole, nested_text
from lmart.scoring.ensemble import Ensemble, FlatTrees

Number = TypeVar("Number", bound=np.generic)
Entry = TypeVar("Entry", int, str, bool)

MISSING_TYPES = {"None": 0, "Zero": 1, "NaN": 2}
OTHERS = re.compile(r'\{\s*"(format|learner|version"\s*:\s*\[)')  # how models of lmart and XGBoost begin
INFINITE = 1e300  # what LightGBM writes for an infinite threshold
OWN_KEYS = ('"num_tree_per_iteration"', '"max_feature_idx"', '"feature_infos"', '"average_output"', '"tree_info"')


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a JSON model of LightGBM."""
    text = json_start(start)
    return text.startswith("{") and any(key in text for key in OWN_KEYS) and OTHERS.match(text) is None


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; ModelError when it is no sound one."""
    document = parse_json(content, path)
    trees = document.get("tree_info") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(trees, list):
        raise ModelError("this is JSON without 'tree_info', so no dump_model of LightGBM", path)
    settings, average = _read_head(document, path)
    nodes = _Nodes(path)
    for number, tree in enumerate(trees, 1):
        nodes.add_tree(number, tree)
    if not trees:
        raise ModelError("the model has no tree", path)
    used, names = nodes.split_columns, _names(document, path)
    features = list_features(len(names), names, used, "Column_", path)
    flat = nodes.lay_out(features.columns(used))
    of_sets = np.array(nodes.columns, np.int64)[list(nodes.edges)]
    listed = document.get("pandas_categorical")
    categories = read_categories(listed, _category_columns(document, names, listed), of_sets, features, path)
    flat = on_numbers(flat, categories)
    gains = nodes.split_gains
    return Ensemble(
        build_trees(
            flat,
            len(features.feature_ids),
            path,
            None if gains is None else nodes.of_nodes(gains),
            nodes.leaf_documents,
        ),
        features.feature_ids,
        features.feature_names,
        settings=settings,
        average=average,
        categories=categories,
    )


def _category_columns(document: JsonObject, names: Sequence[str], listed: object) -> list[int]:
    """Return the columns that are categories: those whose values `feature_infos` lists.

    listed : the categories of a DataFrame; where it has more of them, columns of one value, which have no entry there,
             are categories too if that fits
    """
    infos = document.get("feature_infos")
    by_name = infos if isinstance(infos, dict) else {}
    found = [
        column
        for column, name in enumerate(names)
        if isinstance(by_name.get(name), dict) and by_name[name].get("values")
    ]
    others = [column for column, name in enumerate(names) if name not in by_name]
    fits = isinstance(listed, list) and len(found) + len(others) == len(listed)
    return sorted([*found, *others]) if fits else found


def _read_head(document: JsonObject, path: str) -> tuple[dict[str, object], bool]:
    """Return the facts of the model, and whether it averages; refuse what lmart cannot score exactly as LightGBM."""
    classes = _entry(document, "num_class", 1, "no whole number", path)
    outputs = _entry(document, "num_tree_per_iteration", 1, "no whole number", path)
    version = _entry(document, "version", "", "no text", path)
    objective = _entry(document, "objective", "", "no text", path)
    average = _entry(document, "average_output", False, "neither true nor false", path)
    check_outputs(max(classes, outputs), path)
    check_version(version, path)
    check_objective(objective, "remove its key 'objective'", path)
    return facts(version, objective), average


def _entry(document: JsonObject, key: str, default: Entry, wrong: str, path: str) -> Entry:
    """Return an entry of the document, which has the type of the default; else ModelError says what it is."""
    value = document.get(key, default)
    if not isinstance(value, type(default)):
        raise ModelError(f"{key} is {wrong}; the model is damaged", path)
    return value


def _names(document: JsonObject, path: str) -> list[str]:
    """Return the names of the columns."""
    names = document.get("feature_names")
    if not isinstance(names, list) or not names or not set(map(type, names)) <= {str}:
        raise ModelError("feature_names is no list of texts; the model is damaged", path)
    due = document.get("max_feature_idx", len(names) - 1)
    if due != len(names) - 1:
        raise ModelError(f"there are {len(names)} feature_names, and max_feature_idx is {shown(due)}", path)
    return names


class _Nodes(NodeLists):
    """The nodes of all trees in the order in which they are met; `places` and `leaf_places` have LightGBM's order."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.columns: list[int] = []
        self.thresholds: list[float] = []
        self.kinds: list[int] = []  # decision_type as in the text format
        self.strict: list[int] = []  # nodes that test x < threshold
        self.leaves: list[float] = []
        self.documents: list[int] = []  # in each leaf
        self.has_documents = True
        self.places: list[int] = []
        self.leaf_places: list[int] = []
        self._numbers: tuple[list[object], list[object]] = ([], [])  # split_index and leaf_index of one tree

    def add_tree(self, number: int, tree: object) -> None:
        """Add one entry of tree_info, of any kind; `number` counts from 1."""
        if not isinstance(tree, dict) or not isinstance(tree.get("tree_structure"), dict):
            self.refuse(number, "there is no 'tree_structure'")
        start, first_leaf = len(self.left), len(self.leaves)
        self._numbers = ([], [])
        self.walk(number, tree["tree_structure"])
        splits, leaves = self._numbers
        inner, outer = list(range(len(splits))), list(range(len(leaves)))
        if _is_numbering(splits) and splits[:1] == [0]:
            inner = splits
        if _is_numbering(leaves):
            outer = leaves
        for children in (self.left, self.right):
            children[start:] = [inner[c] if c >= 0 else ~outer[~c] for c in children[start:]]
        self.places += [start + place for place in inner]
        self.leaf_places += [first_leaf + place for place in outer]

    def add_node(self, number: int, node: JsonObject) -> tuple[object, object] | None:
        if "leaf_value" in node:
            self._numbers[1].append(node.get("leaf_index"))
            self._add_leaf(number, node)
            return None
        self._numbers[0].append(node.get("split_index"))
        column = node.get("split_feature")
        if not is_whole(column, 2**31):
            self.refuse(number, f"split_feature is {shown(column)}")
        threshold, kind = self._read_test(number, node)
        self.columns.append(column)
        self.thresholds.append(threshold)
        self.kinds.append(kind)
        self.add_gain(node.get("split_gain"))
        return node.get("left_child"), node.get("right_child")

    def _add_leaf(self, number: int, node: JsonObject) -> None:
        value, documents = node["leaf_value"], node.get("leaf_count")
        if not is_number(value):
            self.refuse(number, f"leaf_value is {shown(value)}")
        if "leaf_const" in node:
            raise ModelError(linear_refusal(number), self.path)
        if not is_whole(documents, 2**63):
            self.has_documents, documents = False, 0
        self.leaves.append(float(value))
        self.documents.append(documents)

    def _read_test(self, number: int, node: JsonObject) -> tuple[float, int]:
        """Return the threshold of the node that comes next, 0 for categories, and its decision_type as a number."""
        decision, threshold = node.get("decision_type"), node.get("threshold")
        if decision == "==":
            categories = self._categories(number, threshold)
            self.edges[len(self.columns)] = range_edges(category_ranges(categories))
            return 0.0, CATEGORICAL
        if decision not in ("<=", "<"):
            self.refuse(number, f"decision_type is {shown(decision)}, not '<=', '<' or '=='")
        if not is_number(threshold):
            self.refuse(number, f"threshold is {shown(threshold)}")
        missing, default_left = node.get("missing_type"), node.get("default_left")
        if type(missing) is not str or missing not in MISSING_TYPES or type(default_left) is not bool:
            self.refuse(number, f"missing_type is {shown(missing)}, default_left {shown(default_left)}")
        if decision == "<":
            if missing != "NaN":
                self.refuse(number, f"missing_type is {shown(missing)} where decision_type is '<'")
            self.strict.append(len(self.columns))
        return float(threshold), (MISSING_TYPES[missing] << 2) | (DEFAULT_LEFT if default_left else 0)

    def _categories(self, number: int, threshold: object) -> Int64Array:
        """Return the categories that the threshold of a node says, such as '0||3||6', ascending."""
        text = str(threshold) if type(threshold) is int else threshold
        words = text.split("||") if isinstance(text, str) and text else []
        if not isinstance(text, str) or not all(word.isascii() and word.isdigit() and len(word) < 11 for word in words):
            self.refuse(number, f"the categories {shown(threshold)} are not whole numbers")
        numbers: Int64Array = np.unique(np.array([int(word) for word in words], np.int64))
        if len(numbers) and numbers[-1] > LARGEST_CATEGORY:
            self.refuse(number, f"category {numbers[-1]} is too large")
        return numbers

    def of_nodes(self, met: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return numbers of the nodes in LightGBM's order, from those in the order in which nodes were met."""
        ordered = np.empty_like(met)
        ordered[self.places] = met
        return ordered

    def of_leaves(self, met: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return numbers of the leaves in LightGBM's order, from those in the order in which leaves were met."""
        ordered = np.empty_like(met)
        ordered[self.leaf_places] = met
        return ordered

    @property
    def split_columns(self) -> Int64Array:
        """The column of each node, int64[n_nodes]."""
        return self.of_nodes(np.array(self.columns, np.int64))

    @property
    def leaf_documents(self) -> Int64Array | None:
        """The documents in each leaf, int64[n_leaves], None when those of one are unknown."""
        return self.of_leaves(np.array(self.documents, np.int64)) if self.has_documents else None

    def lay_out(self, columns: Int32Array) -> FlatTrees:
        """Return the trees laid end to end on the columns of each node, their tests as conditions on raw values."""
        thresholds = self.of_nodes(np.array(self.thresholds, np.float64))
        kinds = self.of_nodes(np.array(self.kinds, np.int64))
        edges = {self.places[node]: found for node, found in self.edges.items()}
        strict = [self.places[node] for node in self.strict]
        endless = np.where(np.abs(thresholds) == INFINITE, np.copysign(np.inf, thresholds), thresholds)
        tests = read_conditions(endless, kinds, edges, self.path)
        with np.errstate(over="ignore"):
            tests.thresholds[strict] = np.maximum(np.nextafter(thresholds[strict], -np.inf), -LARGEST_NUMBER)
        left, right = (self.of_nodes(np.array(children, np.int64)) for children in (self.left, self.right))
        leaves = self.of_leaves(np.array(self.leaves, np.float64))
        return tests.lay_out(counts_to_offsets(self.sizes), columns, left, right, leaves)


def _is_numbering(said: list[object]) -> TypeGuard[list[int]]:
    """Return whether the numbers are those from 0 up, each once."""
    return set(map(type, said)) <= {int} and set(said) == set(range(len(said)))


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as JSON that Vespa takes; ModelError when it cannot hold it."""
    model = prepare(ensemble, is_text=False)
    notes = model.notes
    n_sets = sum(len(tree.sets) for tree in model.trees)
    if n_sets:
        notes.append(f"{counted(n_sets, 'categorical split')}: Vespa compares them with whole numbers only")
    if ensemble.average:
        notes.append("Vespa gives the sum of the trees, not their average; the order of documents is the same")
    infos = {
        name: {
            "min_value": found[0] if isinstance(found, tuple) else int(found[0]),
            "max_value": found[1] if isinstance(found, tuple) else int(found[-1]),
            "values": [] if isinstance(found, tuple) else found.tolist(),
        }
        for name, found in zip(model.names, column_ranges(model), strict=True)
        if found is not None
    }
    uses = zip(model.names, column_uses(model).tolist(), strict=True)
    head = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(model.names) - 1,
        "objective": model.objective,
        "average_output": ensemble.average,
        "feature_names": model.names,
        "monotone_constraints": [],
        "feature_infos": infos,
    }
    tail = {"feature_importances": {name: count for name, count in uses if count}, "pandas_categorical": []}
    trees = ",\n".join(
        f'{{"tree_index": {number}, "num_leaves": {len(tree.leaf_values)}, "num_cat": {len(tree.sets)},'
        f' "shrinkage": 1, "tree_structure": {_tree_text(tree)}}}'
        for number, tree in enumerate(model.trees)
    )
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    lines.append(f'"tree_info": [\n{trees}\n]')
    lines += [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in tail.items()]
    return WrittenModel(("{\n" + ",\n".join(lines) + "\n}\n").encode(), tuple(notes))


def _tree_text(tree: WrittenTree) -> str:
    """Return one tree as nested objects."""
    leaves = [
        f'{{"leaf_index": {i}, "leaf_value": {value!r}'
        + (f', "leaf_count": {tree.leaf_counts[i]}' if tree.leaf_counts is not None else "")
        + "}"
        for i, value in enumerate(tree.leaf_values.tolist())
    ]
    if len(leaves) == 1:
        return leaves[0].replace('"leaf_index": 0, ', "")
    with np.errstate(over="ignore"):
        above = np.minimum(np.nextafter(tree.thresholds, np.inf), LARGEST_NUMBER) + 0.0
    numbers, kinds, columns = above.tolist(), tree.decision_types.tolist(), tree.columns.tolist()
    gains = None if tree.split_gains is None else tree.split_gains.tolist()
    splits = []
    for i, (number, kind) in enumerate(zip(numbers, kinds, strict=True)):
        if kind == CATEGORICAL:
            members = join_whole(set_members(tree.sets[int(tree.thresholds[i])]), "||")
            test = f'"threshold": "{members}", "decision_type": "==", "default_left": false, "missing_type": "None"'
        else:
            side = "true" if kind & DEFAULT_LEFT else "false"
            test = f'"threshold": {number!r}, "decision_type": "<"'
            if tree.thresholds[i] == LARGEST_NUMBER:  # every number goes left
                test = f'"threshold": {INFINITE!r}, "decision_type": "<="'
            test += f', "default_left": {side}, "missing_type": "NaN"'
        gain = "" if gains is None else f', "split_gain": {gains[i]!r}'
        count = "" if tree.internal_counts is None else f', "internal_count": {tree.internal_counts[i]}'
        splits.append(f'{{"split_index": {i}, "split_feature": {columns[i]}{gain}, {test}{count}, "left_child": ')
    return nested_text(tree.left.tolist(), tree.right.tolist(), splits, leaves, ', "right_child": ', "}")
