"""XGBoost's JSON dump (`dump_model(..., dump_format="json")`), which Elasticsearch and OpenSearch LTR take.

Read as a list of trees or of their texts (get_dump), as the object that OpenSearch takes, and inside the request that
creates a model there.

It has neither base score nor objective: a model read from it starts at 0, and a written one has its base score as a
first tree of one leaf. Features that the dump calls f0, f1 ... or 0, 1 ... have these numbers; other names are numbered
from 1 in the order in which they appear.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.json_text import SHOWN, json_start, parse_json, refuse_unknown_keys, shown
from lmart.formats.models.nodes import (
    Features,
    JsonObject,
    NodeLists,
    build_trees,
    counts_to_offsets,
    is_number,
    is_whole,
    set_edges,
)
from lmart.formats.models.targets import Target, goes_left_as_zero, nested_text, renumbering_notes
from lmart.formats.models.thresholds import of_less32
from lmart.formats.models.xgboost.json import refuse_other
from lmart.formats.models.xgboost.reading import MOST_CATEGORIES, SUMS, category_edges32
from lmart.formats.models.xgboost.writing import WrittenTrees, prepare, spell
from lmart.scoring.ensemble import Ensemble, FlatTrees

DEFAULT_NAME = re.compile(r"f?(0|[1-9]\d{0,17})", re.ASCII)
TREES = re.compile(r'\[\s*("(\s|\\n)*)?\{.*"nodeid\\?"', re.DOTALL)  # or their texts
OBJECT = re.compile(r'\{.*"splits"\s*:\s*\[\s*\{', re.DOTALL)
KIND = "model/xgboost+json"  # as the plugins call it
REQUEST = re.compile(r'\{.*"definition"\s*:', re.DOTALL)
TEXTS = re.compile(r'booster\[|\[\s*"0:')  # the start of a text dump, and of a list of them
BESIDE_MODEL = ("name", "type", "feature_set", "validation")  # in requests and what they store: nothing that scores
LEAF_KEYS = frozenset({"nodeid", "depth", "leaf", "cover"})
SPLIT_KEYS = frozenset(
    {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children", "gain", "cover"}
)
TARGET = Target("a dump of XGBoost", "f", re.compile(r"(?!)"), "nothing")  # takes every name
SEEN = 4096  # bytes within which a dump shows its first node


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a JSON dump of XGBoost."""
    text = json_start(start)[:SEEN]
    return any(form.match(text) for form in (TREES, OBJECT, REQUEST, TEXTS))


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; ModelError when it is no sound one."""
    if not json_start(content[:SEEN]).startswith(("[", "{")):
        refuse_other(content, path)
    document = _definition(parse_json(content, path), path)
    settings: dict[str, object] = {"source": "XGBoost dump", "base_score": "not in a dump, taken as 0"}
    missing_as_zero = False
    if isinstance(document, dict):
        missing_as_zero = _read_head(document, settings, path)
        document = document["splits"]
    if not isinstance(document, list) or not document:
        raise ModelError("this is no list of trees, so no JSON dump of XGBoost", path)
    nodes = _Nodes(path)
    for number, tree in enumerate(document, 1):
        nodes.add_tree(number, _parsed_tree(number, tree, path))
    (ids, names), columns = _features(nodes.names)
    flat = nodes.lay_out(columns)
    if missing_as_zero:
        flat = replace(flat, missing_left=goes_left_as_zero(flat))
    trees = build_trees(flat, len(ids), path, nodes.split_gains, leaf_weights=nodes.leaf_weights)
    return Ensemble(trees, ids, names, absent="missing", settings=settings, sums="float32")


def _definition(document: object, path: str) -> object:
    """Return the dump inside a request that creates a model, or the document itself when it is none."""
    while isinstance(document, dict) and "splits" not in document:
        if "definition" not in document:
            refuse_unknown_keys(document, ("model", *BESIDE_MODEL), "the request", path)
            document = document.get("model")
            continue
        refuse_unknown_keys(document, ("type", "definition"), "the model", path)
        kind = document.get("type")
        if kind != KIND:
            raise ModelError(
                f"the model is of type {shown(kind)}, and '{KIND}' is read here; convert a file that holds"
                " its definition alone",
                path,
            )
        document = document["definition"]
        if isinstance(document, str):
            document = parse_json(document.encode("utf-8", "surrogatepass"), path)
    return document


def _read_head(document: JsonObject, settings: dict[str, object], path: str) -> bool:
    """Add the objective of an object that OpenSearch takes to the settings; return whether a missing value is 0."""
    refuse_unknown_keys(document, ("objective", "missing_as_zero", "splits"), "the object with 'splits'", path)
    objective, missing_as_zero = document.get("objective"), document.get("missing_as_zero", False)
    if objective is not None and objective not in SUMS:
        raise ModelError(
            f"the objective is {shown(objective)}, whose predictions are not the sums of the leaf values; remove it"
            " from the file to take the sums as scores",
            path,
        )
    if objective is not None:
        settings["objective"] = objective
    if not isinstance(missing_as_zero, bool):
        raise ModelError(f"missing_as_zero is {shown(missing_as_zero)}, neither true nor false", path)
    return missing_as_zero


def _parsed_tree(number: int, tree: object, path: str) -> object:
    """Return a tree of a list that may hold texts; `number` counts from 1."""
    if not isinstance(tree, str):
        return tree
    if not tree.lstrip().startswith("{"):
        raise ModelError(
            f"tree {number} is a text such as {quote(tree, SHOWN)}, which is for reading by eye; save the dump with"
            " dump_format='json'",
            path,
        )
    return parse_json(tree.encode("utf-8", "surrogatepass"), path)


def _features(used: list[str]) -> tuple[Features, Int32Array]:
    """Return the features, and the column of each split, from the names at the splits."""
    distinct = list(dict.fromkeys(used))
    matches = [DEFAULT_NAME.fullmatch(name) for name in distinct]
    is_numbered = all(matches)
    numbers = [int(match[1]) for match in matches if match] if is_numbered else list(range(1, len(distinct) + 1))
    ids = np.unique(np.array(numbers, np.int64))
    column_of = dict(zip(distinct, np.searchsorted(ids, numbers).tolist(), strict=True))
    columns = np.array([column_of[name] for name in used], np.int32)
    return Features(ids, None if is_numbered else tuple(distinct)), columns


class _Nodes(NodeLists):
    """The nodes of all trees, each tree's in the order of their numbers, the root first."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.names: list[str] = []  # of the features of the splits
        self.conditions: list[float] = []
        self.missing_left: list[bool] = []
        self.leaves: list[float] = []
        self.covers: list[object] = []  # of the leaves
        self._splits: list[tuple[int, JsonObject, list[JsonObject]]] = []  # nodeid, node and children, of one tree
        self._outputs: list[tuple[int, float, object]] = []  # nodeid, value and cover of the leaves of one tree

    def add_tree(self, number: int, tree: object) -> None:
        """Add one tree, of any kind; `number` counts from 1."""
        self._splits, self._outputs = [], []
        self.walk(number, tree)
        splits, outputs = self._splits, sorted(self._outputs, key=lambda entry: entry[0])
        splits[1:] = sorted(splits[1:], key=lambda entry: entry[0])
        places: dict[object, int] = {index: place for place, (index, _, _) in enumerate(splits)}
        places.update({index: ~place for place, (index, _, _) in enumerate(outputs)})
        if len(places) != len(splits) + len(outputs):
            self.refuse(number, "two nodes have the same nodeid")
        first = len(self.names)
        for place, (index, node, children) in enumerate(splits, first):
            yes, no = self._add_split(number, index, node, children)
            self.left[place], self.right[place] = places[yes], places[no]
        self.leaves += [value for _, value, _ in outputs]
        self.covers += [cover for _, _, cover in outputs]

    def add_node(self, number: int, node: JsonObject) -> tuple[object, object] | None:
        index = node.get("nodeid")
        if not is_whole(index, 2**31):
            self.refuse(number, f"nodeid is {shown(index)}")
        allowed = LEAF_KEYS if "leaf" in node else SPLIT_KEYS
        if not allowed.issuperset(node):
            refuse_unknown_keys(node, allowed, f"node {index} of tree {number}", self.path)
        if "leaf" in node:
            value = node["leaf"]
            if not is_number(value):
                self.refuse(number, f"leaf is {shown(value)}" + (" (multi-output)" if type(value) is list else ""))
            self._outputs.append((index, float(value), node.get("cover")))
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
            self.edges[len(self.names)] = category_edges32(self._categories(number, condition))
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

    @property
    def leaf_weights(self) -> Float64Array | None:
        """The hessian sums of the leaves, float64[n_leaves], None when one is unknown."""
        return np.array(self.covers, np.float64) if all(map(is_number, self.covers)) else None

    def lay_out(self, columns: Int32Array) -> FlatTrees:
        """Return the trees laid end to end on the columns of each node, their tests as conditions on raw values."""
        with np.errstate(over="ignore"):
            thresholds = of_less32(np.array(self.conditions, np.float64).astype(np.float32))
            leaves = np.array(self.leaves, np.float64).astype(np.float32)
        bound_offsets, bounds = set_edges(thresholds, self.edges, self.path)
        return FlatTrees(
            counts_to_offsets(self.sizes),
            columns,
            thresholds,
            np.array(self.missing_left, np.bool_),
            np.array(self.left, np.int32),
            np.array(self.right, np.int32),
            leaves.astype(np.float64),
            bound_offsets,
            bounds,
        )


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as a JSON dump; ModelError when it cannot hold it."""
    model = prepare(ensemble, TARGET, base_as_tree=True)
    quoted = [json.dumps(name, ensure_ascii=False) for name in model.columns.named(TARGET)]
    conditions = spell(model.arrays["split_conditions"])
    trees = [
        _tree_text(model, conditions, quoted, start, stop)
        for start, stop in zip(model.offsets[:-1].tolist(), model.offsets[1:].tolist(), strict=True)
    ]
    return WrittenModel(
        ("[\n" + ",\n".join(trees) + "\n]\n").encode(), (*model.notes, *renumbering_notes(ensemble, DEFAULT_NAME))
    )


def as_request(content: bytes, name: str) -> bytes:
    """Return a dump as the request by which the LTR plugins of Elasticsearch and OpenSearch take a model."""
    model = {"type": KIND, "definition": content.decode()}
    return (json.dumps({"model": {"name": name, "model": model}}) + "\n").encode()


def _tree_text(model: WrittenTrees, conditions: list[str], names: list[str], start: int, stop: int) -> str:
    """Return a tree as nested objects; `start` and `stop` are its nodes, each after its parent."""
    columns = model.arrays["split_indices"][start:stop].tolist()
    left = model.arrays["left_children"][start:stop].tolist()
    default_left = model.arrays["default_left"][start:stop].tolist()
    depths = [0] * len(left)
    splits: list[str] = []
    leaves: list[str] = []
    codes = []  # of each node: its place in `splits`, or ~place in `leaves`
    for node, (yes, number) in enumerate(zip(left, conditions[start:stop], strict=True)):
        if yes < 0:
            codes.append(~len(leaves))
            leaves.append(f'{{"nodeid": {node}, "leaf": {number}}}')
            continue
        codes.append(len(splits))
        depths[yes] = depths[yes + 1] = depths[node] + 1
        splits.append(
            f'{{"nodeid": {node}, "depth": {depths[node]}, "split": {names[columns[node]]},'
            f' "split_condition": {number}, "yes": {yes}, "no": {yes + 1},'
            f' "missing": {yes if default_left[node] else yes + 1}, "children": ['
        )
    yes_children = [yes for yes in left if yes >= 0]
    return nested_text(
        [codes[yes] for yes in yes_children], [codes[yes + 1] for yes in yes_children], splits, leaves, ", ", "]}"
    )
