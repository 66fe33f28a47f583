"""XGBoost's JSON dump (`dump_model(..., dump_format="json")`), which Elasticsearch and OpenSearch LTR take.

It has neither base score nor objective: a model read from it starts at 0, and a written one has its base score as a
first tree of one leaf. Features that the dump calls f0, f1 ... or 0, 1 ... have these numbers; other names are numbered
from 1 in the order in which they appear.
"""

from __future__ import annotations

import json
import re

import numpy as np

from lmart.array_types import Int32Array, Int64Array
from lmart.errors import ModelError, quote
from lmart.formats.models.json_text import json_start, parse_json, shown
from lmart.formats.models.node_lists import JsonObject, NodeLists, is_number, is_whole
from lmart.formats.models.targets import Target
from lmart.formats.models.thresholds import of_less32
from lmart.formats.models.tree_building import LARGEST_NUMBER, build_trees, counts_to_offsets, join_bounds
from lmart.formats.models.written_model import WrittenModel
from lmart.formats.models.xgboost_categories import MOST_CATEGORIES, category_edges32
from lmart.formats.models.xgboost_document import SUMS
from lmart.formats.models.xgboost_document_writer import spell
from lmart.formats.models.xgboost_json import refuse_other
from lmart.formats.models.xgboost_writing import WrittenTrees, prepare
from lmart.scoring.ensemble import Ensemble, FlatTrees

DEFAULT_NAME = re.compile(r"f?(0|[1-9]\d{0,17})", re.ASCII)
LIST = re.compile(r'(\{\s*("objective"\s*:\s*"[^"]*"\s*,\s*)?"splits"\s*:\s*)?\[')  # alone, or as OpenSearch has it
TARGET = Target("a dump of XGBoost", "f", re.compile(r"(?!)"), "nothing")  # takes every name
SEEN = 4096  # bytes within which a dump shows its first node


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a JSON dump of XGBoost."""
    text = json_start(start)
    return LIST.match(text) is not None and '"nodeid"' in text[:SEEN]


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; `path` is what to call it in messages. ModelError when it is no sound one."""
    if not json_start(content[:SEEN]).startswith(("[", "{")):
        refuse_other(content, path)
    document = parse_json(content, path)
    settings: dict[str, object] = {"source": "XGBoost dump", "base_score": "not in a dump, taken as 0"}
    if isinstance(document, dict):  # as OpenSearch LTR takes it
        objective = document.get("objective")
        if objective is not None and objective not in SUMS:
            raise ModelError(
                f"the objective is {shown(objective)}, whose predictions are not the sums of the leaf values; remove it"
                " from the file to take the sums as scores",
                path,
            )
        if objective is not None:
            settings["objective"] = objective
        document = document.get("splits")
    if not isinstance(document, list) or not document:
        raise ModelError("this is no list of trees, so no JSON dump of XGBoost", path)
    nodes = _Nodes(path)
    for number, tree in enumerate(document, 1):
        nodes.add_tree(number, tree)
    ids, names, columns = _features(nodes.names)
    flat = nodes.lay_out(columns)
    trees = build_trees(flat, len(ids), path, nodes.split_gains)
    return Ensemble(trees, ids, names, absent="missing", settings=settings, sums="float32")


def _features(used: list[str]) -> tuple[Int64Array, tuple[str, ...] | None, Int32Array]:
    """Return feature_ids, feature_names and the column of each split, from the names at the splits."""
    distinct = list(dict.fromkeys(used))
    matches = [DEFAULT_NAME.fullmatch(name) for name in distinct]
    if all(matches):
        numbers = [int(match[1]) for match in matches if match]
        ids = np.unique(np.array(numbers, np.int64))
        of_name = dict(zip(distinct, np.searchsorted(ids, numbers).tolist(), strict=True))
        return ids, None, np.array([of_name[name] for name in used], np.int32)
    of_name = {name: place for place, name in enumerate(distinct)}
    ids = np.arange(1, len(distinct) + 1, dtype=np.int64)
    return ids, tuple(distinct), np.array([of_name[name] for name in used], np.int32)


class _Nodes(NodeLists):
    """The nodes of all trees, each tree's in the order of their numbers, the root first."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.names: list[str] = []  # of the features of the splits
        self.conditions: list[float] = []
        self.missing_left: list[bool] = []
        self.leaves: list[float] = []
        self._splits: list[tuple[int, JsonObject, list[JsonObject]]] = []  # nodeid, node and children, of one tree
        self._outputs: list[tuple[int, float]] = []  # nodeid and value of the leaves of one tree

    def add_tree(self, number: int, tree: object) -> None:
        """Add one tree, of any kind; `number` counts from 1."""
        self._splits, self._outputs = [], []
        self.walk(number, tree)
        splits, outputs = self._splits, sorted(self._outputs, key=lambda entry: entry[0])
        splits[1:] = sorted(splits[1:], key=lambda entry: entry[0])
        places: dict[object, int] = {index: place for place, (index, _, _) in enumerate(splits)}
        places.update({index: ~place for place, (index, _) in enumerate(outputs)})
        if len(places) != len(splits) + len(outputs):
            self.refuse(number, "two nodes have the same nodeid")
        first = len(self.names)
        for place, (index, node, children) in enumerate(splits, first):
            yes, no = self._add_split(number, index, node, children)
            self.left[place], self.right[place] = places[yes], places[no]
        self.leaves += [value for _, value in outputs]

    def add_node(self, number: int, node: JsonObject) -> tuple[object, object] | None:
        """Keep a node; return its children, None when it is a leaf.

        number : of the tree, from 1
        node   : of any keys and values
        """
        index = node.get("nodeid")
        if not is_whole(index, 2**31):
            self.refuse(number, f"nodeid is {shown(index)}")
        if "leaf" in node:
            value = node["leaf"]
            if not is_number(value):
                self.refuse(number, f"leaf is {shown(value)}" + (" (multi-output)" if type(value) is list else ""))
            self._outputs.append((index, float(value)))
            return None
        children = node.get("children")
        if type(children) is not list or len(children) != 2:
            self.refuse(number, f"node {index} has not two children")
        self._splits.append((index, node, children))
        return children[0], children[1]

    def _add_split(
        self, number: int, index: int, node: JsonObject, children: list[JsonObject]
    ) -> tuple[object, object]:
        """Add a split whose children were met; return the nodeid of its left and of its right child."""
        name, condition = node.get("split"), node.get("split_condition")
        yes, no = node.get("yes"), node.get("no")
        missing = node.get("missing", no)  # without it, as old releases of Elasticsearch LTR have it
        first, second = children[0]["nodeid"], children[1]["nodeid"]
        if type(name) is not str:
            self.refuse(number, f"node {index} has no 'split'")
        is_first_yes = yes == first and no == second
        if not (is_first_yes or (yes == second and no == first)) or missing not in (yes, no):
            self.refuse(number, f"'yes', 'no' and 'missing' of node {index} are not its children")
        if condition is None:
            raise ModelError(
                f"tree {number}: node {index} splits on {quote(name, 30)} without a split_condition, as dumps with an"
                " indicator feature ('i' in the feature map) do; dump the model with 'q' for it",
                self.path,
            )
        if type(condition) is list:  # the categories for which the answer is yes go right
            yes, no = no, yes
            self.add_edges(len(self.names), category_edges32(self._categories(number, condition)))
            condition = 0.0
        elif not is_number(condition):
            self.refuse(number, f"split_condition of node {index} is {shown(condition)}")
        self.names.append(name)
        self.conditions.append(float(condition))
        self.missing_left.append(missing == yes)
        self.add_gain(node.get("gain"))
        return yes, no

    def _categories(self, number: int, listed: list[object]) -> Int64Array:
        """Return the categories of a split, ascending."""
        if not all(is_whole(category, MOST_CATEGORIES) for category in listed):
            self.refuse(number, f"a category is not a whole number from 0 to {MOST_CATEGORIES - 1}")
        categories: Int64Array = np.unique(np.array(listed, np.int64))
        return categories

    def lay_out(self, columns: Int32Array) -> FlatTrees:
        """Return the trees laid end to end, their tests as conditions on raw values.

        columns : int32[n_nodes], of the ensemble
        """
        with np.errstate(over="ignore"):
            thresholds = of_less32(np.array(self.conditions, np.float64).astype(np.float32))
            leaves = np.array(self.leaves, np.float64).astype(np.float32)
        for node, edges in self.edges.items():
            thresholds[node] = edges[0] if len(edges) else LARGEST_NUMBER
        several = sorted(node for node, edges in self.edges.items() if len(edges))
        counts, bounds = join_bounds(several, [self.edges[node][1:] for node in several], len(thresholds))
        return FlatTrees(
            counts_to_offsets(self.sizes),
            columns,
            thresholds,
            np.array(self.missing_left, np.bool_),
            np.array(self.left, np.int32),
            np.array(self.right, np.int32),
            leaves.astype(np.float64),
            counts_to_offsets(counts),
            bounds,
        )


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as a JSON dump; ModelError when it cannot hold it."""
    model = prepare(ensemble, TARGET, base_as_tree=True)
    names = model.columns.names or [f"{TARGET.default}{j}" for j in range(model.columns.total)]
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    conditions = spell(model.arrays["split_conditions"])
    trees = [
        _tree_text(model, conditions, quoted, start, stop)
        for start, stop in zip(model.offsets[:-1].tolist(), model.offsets[1:].tolist(), strict=True)
    ]
    return WrittenModel(("[\n" + ",\n".join(trees) + "\n]\n").encode(), tuple(model.notes))


def _tree_text(model: WrittenTrees, conditions: list[str], names: list[str], start: int, stop: int) -> str:
    """Return one tree as nested objects, by an explicit stack."""
    columns = model.arrays["split_indices"][start:stop].tolist()
    left = model.arrays["left_children"][start:stop].tolist()
    default_left = model.arrays["default_left"][start:stop].tolist()
    parts: list[str] = []
    waiting: list[tuple[int, int] | str] = [(0, 0)]  # node and depth, or text
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        node, depth = item
        number, yes = conditions[start + node], left[node]
        if yes < 0:
            parts.append(f'{{"nodeid": {node}, "leaf": {number}}}')
            continue
        missing = yes if default_left[node] else yes + 1
        parts.append(
            f'{{"nodeid": {node}, "depth": {depth}, "split": {names[columns[node]]}, "split_condition": {number},'
            f' "yes": {yes}, "no": {yes + 1}, "missing": {missing}, "children": ['
        )
        waiting += ["]}", (yes + 1, depth + 1), ", ", (yes, depth + 1)]
    return "".join(parts)
