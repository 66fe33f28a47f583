"""LightGBM's JSON model, as `dump_model` gives it and as Vespa takes it.

LightGBM tests x <= threshold, Vespa takes the same numbers for x < threshold. Written models say "<" as their
decision_type and have the number above each threshold, so that Vespa, which only looks for "==", scores them exactly;
"<" is read as what it says.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np

from lmart.array_types import Float64Array
from lmart.errors import ModelError, quote
from lmart.formats.models.json_text import json_start, parse_json, shown
from lmart.formats.models.lightgbm_conditions import LARGEST_CATEGORY, category_edges, read_conditions
from lmart.formats.models.lightgbm_header import (
    check_categories,
    check_objective,
    check_outputs,
    check_version,
    facts,
)
from lmart.formats.models.lightgbm_json_writer import INFINITE, write
from lmart.formats.models.tree_building import (
    LARGEST_NUMBER,
    build_trees,
    check_bounds,
    counts_to_offsets,
    list_features,
    swap_children,
)
from lmart.scoring.ensemble import Ensemble, FlatTrees

__all__ = ["looks_like", "read", "write"]

MISSING_TYPES = {"None": 0, "Zero": 1, "NaN": 2}
OTHERS = re.compile(r'\{\s*"(format|learner|version"\s*:\s*\[)')  # how models of lmart and XGBoost begin
OWN_KEYS = ('"num_tree_per_iteration"', '"max_feature_idx"', '"feature_infos"', '"average_output"', '"tree_info"')


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a JSON model of LightGBM."""
    text = json_start(start)
    return text.startswith("{") and any(key in text for key in OWN_KEYS) and OTHERS.match(text) is None


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; `path` is what to call it in messages. ModelError when it is no sound one."""
    document = parse_json(content, path)
    if not isinstance(document, dict) or not isinstance(document.get("tree_info"), list):
        raise ModelError("this is JSON without 'tree_info', so no dump_model of LightGBM", path)
    _check_head(document, path)
    nodes = _Nodes(path)
    for number, tree in enumerate(document["tree_info"], 1):
        nodes.add_tree(number, tree)
    if not document["tree_info"]:
        raise ModelError("the model has no tree", path)
    if nodes.categories:
        check_categories(document.get("pandas_categorical"), path)
    used = np.array(nodes.columns, np.int64)
    features = list_features(*_names(document, path), used, "Column_", path)
    flat = nodes.lay_out(features.columns(used))
    gains = np.array(nodes.gains) if nodes.has_gains else None
    counts = np.array(nodes.counts, np.int64) if nodes.has_counts else None
    return Ensemble(
        build_trees(flat, len(features.feature_ids), path, gains, counts),
        features.feature_ids,
        features.feature_names,
        settings=facts(document.get("version"), document.get("objective")),
        average=document.get("average_output", False),
    )


def _check_head(document: dict[str, Any], path: str) -> None:
    """Refuse what lmart cannot score exactly as LightGBM does."""
    for key, default in (("num_class", 1), ("num_tree_per_iteration", 1)):
        if not isinstance(document.get(key, default), int):
            raise ModelError(f"{key} is no whole number; the model is damaged", path)
    for key in ("version", "objective"):
        if not isinstance(document.get(key, ""), str):
            raise ModelError(f"{key} is no text; the model is damaged", path)
    if not isinstance(document.get("average_output", False), bool):
        raise ModelError("average_output is neither true nor false; the model is damaged", path)
    check_outputs(document.get("num_class", 1), document.get("num_tree_per_iteration", 1), path)
    check_version(document.get("version"), path)
    check_objective(document.get("objective"), path, None, "remove its key 'objective'")


def _names(document: dict[str, Any], path: str) -> tuple[int, list[str]]:
    """Return the number of columns and their names."""
    names = document.get("feature_names")
    if not isinstance(names, list) or not names or not set(map(type, names)) <= {str}:
        raise ModelError("feature_names is no list of texts; the model is damaged", path)
    due = document.get("max_feature_idx", len(names) - 1)
    if due != len(names) - 1:
        raise ModelError(f"there are {len(names)} feature_names, and max_feature_idx is {quote(str(due), 30)}", path)
    return len(names), names


class _Nodes:
    """The nodes of all trees, end to end, as they are read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sizes: list[int] = []  # nodes of each tree
        self.columns: list[int] = []
        self.thresholds: list[float] = []
        self.kinds: list[int] = []  # decision_type as in the text format
        self.strict: list[int] = []  # nodes that test x < threshold
        self.categories: dict[int, Float64Array] = {}
        self.left: list[int] = []
        self.right: list[int] = []
        self.gains: list[float] = []
        self.leaves: list[float] = []
        self.counts: list[int] = []
        self.has_gains = self.has_counts = True
        self._n_edges = 0

    def refuse(self, number: int, words: str) -> NoReturn:
        """Refuse a tree, counted from 1."""
        raise ModelError(f"tree {number}: {words}; the model is damaged", self.path)

    def add_tree(self, number: int, tree: Any) -> None:
        """Add one entry of tree_info; `number` counts from 1."""
        if not isinstance(tree, dict) or not isinstance(tree.get("tree_structure"), dict):
            self.refuse(number, "there is no 'tree_structure'")
        start, first_leaf = len(self.columns), len(self.leaves)
        orders: tuple[list[Any], list[Any]] = ([], [])  # split_index and leaf_index
        waiting = [(tree["tree_structure"], -1, self.left)]
        while waiting:
            node, parent, side = waiting.pop()
            if type(node) is not dict:
                self.refuse(number, "a child is no object")
            if "leaf_value" in node:
                here = ~(len(self.leaves) - first_leaf)
                orders[1].append(node.get("leaf_index"))
                self._add_leaf(number, node)
            else:
                here = len(self.columns) - start
                orders[0].append(node.get("split_index"))
                self._add_split(number, node)
                waiting.append((node.get("right_child"), start + here, self.right))
                waiting.append((node.get("left_child"), start + here, self.left))
            if parent >= 0:
                side[parent] = here
        self.sizes.append(len(self.columns) - start)
        self._renumber(start, first_leaf, orders)

    def _add_leaf(self, number: int, node: dict[str, Any]) -> None:
        value: Any = node["leaf_value"]
        count = node.get("leaf_count")
        if type(value) not in (float, int) or not abs(value) <= LARGEST_NUMBER:
            self.refuse(number, f"leaf_value is {shown(value)}")
        if "leaf_const" in node:
            raise ModelError(
                f"tree {number} has linear models in its leaves (linear_tree), which lmart does not support; train it"
                " without linear_tree",
                self.path,
            )
        if type(count) is not int or not 0 <= count < 2**63:
            self.has_counts, count = False, 0
        self.leaves.append(float(value))
        self.counts.append(count)

    def _add_split(self, number: int, node: dict[str, Any]) -> None:
        column: Any = node.get("split_feature")
        gain: Any = node.get("split_gain")
        if type(column) is not int or not 0 <= column < 2**31:
            self.refuse(number, f"split_feature is {shown(column)}")
        if type(gain) not in (float, int) or not abs(gain) <= LARGEST_NUMBER:
            self.has_gains, gain = False, 0.0
        decision, kind = node.get("decision_type"), 0
        threshold: Any = node.get("threshold")
        if decision == "==":
            kind = 1
            self._add_categories(number, threshold)
            threshold = 0.0
        elif decision not in ("<=", "<"):
            self.refuse(number, f"decision_type is {shown(decision)}, not '<=', '<' or '=='")
        elif type(threshold) not in (float, int) or not abs(threshold) <= LARGEST_NUMBER:
            self.refuse(number, f"threshold is {shown(threshold)}")
        else:
            missing, default_left = node.get("missing_type"), node.get("default_left")
            if type(missing) is not str or missing not in MISSING_TYPES or type(default_left) is not bool:
                self.refuse(number, f"missing_type is {shown(missing)}, default_left {shown(default_left)}")
            kind = (MISSING_TYPES[missing] << 2) | (2 if default_left else 0)
            if decision == "<":
                if missing != "NaN":
                    self.refuse(number, f"missing_type is {shown(missing)} where decision_type is '<'")
                self.strict.append(len(self.columns))
        self.columns.append(column)
        self.gains.append(float(gain))
        self.thresholds.append(float(threshold))
        self.kinds.append(kind)
        self.left.append(0)
        self.right.append(0)

    def _add_categories(self, number: int, threshold: Any) -> None:
        """Add the categories of the node that comes next, such as '0||3||6'."""
        words = threshold.split("||") if type(threshold) is str else [str(threshold)]
        if words == [""]:
            words = []
        if not all(word.isascii() and word.isdigit() and len(word) < 11 for word in words):
            self.refuse(number, f"the categories {shown(threshold)} are not whole numbers")
        numbers = np.unique(np.array([int(word) for word in words], np.int64))
        if len(numbers) and numbers[-1] > LARGEST_CATEGORY:
            self.refuse(number, f"category {numbers[-1]} is too large")
        edges = category_edges(numbers)
        self._n_edges += len(edges)
        check_bounds(self._n_edges, self.path)
        self.categories[len(self.columns)] = edges

    def _renumber(self, start: int, first_leaf: int, orders: tuple[list[Any], list[Any]]) -> None:
        """Give nodes and leaves of the last tree the numbers that the file says, where it says all of them."""
        n = len(orders[0])
        inner, outer = list(range(n)), list(range(n + 1))
        if set(map(type, orders[0])) == {int} and orders[0][0] == 0 and sorted(orders[0]) == inner:
            inner = orders[0]
        if set(map(type, orders[1])) == {int} and sorted(orders[1]) == outer:
            outer = orders[1]

        def placed(items: list[Any], first: int, places: list[int]) -> None:
            ordered: list[Any] = [None] * len(places)
            for place, item in zip(places, items[first:], strict=True):
                ordered[place] = item
            items[first:] = ordered

        for children in (self.left, self.right):
            children[start:] = [inner[c] if c >= 0 else ~outer[~c] for c in children[start:]]
        for items in (self.columns, self.gains, self.thresholds, self.kinds, self.left, self.right):
            placed(items, start, inner)
        placed(self.leaves, first_leaf, outer)
        placed(self.counts, first_leaf, outer)
        moved = {place: self.categories.pop(place) for place in list(self.categories)[::-1] if place >= start}
        self.categories.update({start + inner[place - start]: edges for place, edges in moved.items()})
        for i in range(len(self.strict) - 1, -1, -1):
            if self.strict[i] < start:
                break
            self.strict[i] = start + inner[self.strict[i] - start]

    def lay_out(self, columns: np.ndarray[Any, np.dtype[np.int32]]) -> FlatTrees:
        """Return the trees laid end to end, their tests as conditions on raw values."""
        thresholds = np.array(self.thresholds, np.float64)
        kinds = np.array(self.kinds, np.int64)
        endless = np.where(np.abs(thresholds) == INFINITE, np.copysign(np.inf, thresholds), thresholds)
        tests = read_conditions(endless, kinds, self.categories, self.path)
        with np.errstate(over="ignore"):
            tests.thresholds[self.strict] = np.nextafter(thresholds[self.strict], -np.inf)
        left, right = np.array(self.left, np.int32), np.array(self.right, np.int32)
        return FlatTrees(
            counts_to_offsets(self.sizes),
            columns,
            np.maximum(tests.thresholds, -LARGEST_NUMBER),
            tests.missing_left,
            *swap_children(left, right, tests.swapped),
            np.array(self.leaves, np.float64),
            counts_to_offsets(tests.bound_counts),
            tests.bounds,
        )
