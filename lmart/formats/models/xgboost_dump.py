"""XGBoost's JSON dump (`dump_model(..., dump_format="json")`), which Elasticsearch and OpenSearch LTR take.

It has neither base score nor objective: a model read from it starts at 0, and a written one has its base score as a
first tree of one leaf. Features that the dump calls f0, f1 ... or 0, 1 ... have these numbers; other names are numbered
from 1 in the order in which they appear.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import numpy as np

from lmart.array_types import Float64Array
from lmart.errors import ModelError, quote
from lmart.formats.models.json_text import json_start, parse_json, shown
from lmart.formats.models.thresholds import of_less32
from lmart.formats.models.tree_building import LARGEST_NUMBER, build_trees, check_bounds, counts_to_offsets, join_bounds
from lmart.formats.models.written_model import WrittenModel
from lmart.formats.models.xgboost_categories import MOST_CATEGORIES, category_edges32
from lmart.formats.models.xgboost_document import SUMS
from lmart.formats.models.xgboost_document_writer import spell
from lmart.formats.models.xgboost_json import refuse_other
from lmart.formats.models.xgboost_writing import WrittenTrees, prepare
from lmart.scoring.ensemble import Ensemble, FlatTrees

DEFAULT_NAME = re.compile(r"f?(0|[1-9]\d{0,17})", re.ASCII)
LIST = re.compile(r'(\{\s*("objective"\s*:\s*"[^"]*"\s*,\s*)?"splits"\s*:\s*)?\[')  # alone, or as OpenSearch has it
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
    settings: dict[str, Any] = {"source": "XGBoost dump", "base_score": "not in a dump, taken as 0"}
    if isinstance(document, dict):  # as OpenSearch LTR takes it
        objective = document.get("objective")
        if objective is not None and objective not in (*SUMS, "rank:ndcg"):
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
    gains = np.array(nodes.gains, np.float64) if nodes.has_gains else None
    trees = build_trees(flat, len(ids), path, gains)
    return Ensemble(trees, ids, names, absent="missing", settings=settings, sums="float32")


def _features(used: list[str]) -> tuple[np.ndarray[Any, np.dtype[np.int64]], tuple[str, ...] | None, Any]:
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


class _Nodes:
    """The nodes of all trees, end to end, as they are read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sizes: list[int] = []  # splits of each tree
        self.names: list[str] = []  # of the features of the splits
        self.conditions: list[float] = []
        self.missing_left: list[bool] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.gains: list[float] = []
        self.has_gains = True
        self.leaves: list[float] = []
        self.categories: dict[int, Float64Array] = {}
        self._n_edges = 0

    def refuse(self, number: int, words: str) -> NoReturn:
        """Refuse a tree, counted from 1."""
        raise ModelError(f"tree {number}: {words}; the model is damaged", self.path)

    def add_tree(self, number: int, tree: Any) -> None:
        """Add one tree, whose nodes keep the order of their numbers; `number` counts from 1."""
        splits: list[tuple[int, dict[str, Any]]] = []
        leaves: list[tuple[int, float]] = []
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            if type(node) is not dict:
                self.refuse(number, "a node is no object")
            index = node.get("nodeid")
            if type(index) is not int or not 0 <= index < 2**31:
                self.refuse(number, f"nodeid is {shown(index)}")
            if "leaf" in node:
                value = node["leaf"]
                if type(value) not in (float, int) or not abs(value) <= LARGEST_NUMBER:
                    self.refuse(number, f"leaf is {shown(value)}" + (" (multi-output)" if type(value) is list else ""))
                leaves.append((index, float(value)))
                continue
            children = node.get("children")
            if type(children) is not list or len(children) != 2:
                self.refuse(number, f"node {index} has not two children")
            splits.append((index, node))
            waiting += children
        root = tree["nodeid"]
        splits.sort(key=lambda entry: (entry[0] != root, entry[0]))
        leaves.sort(key=lambda entry: entry[0])
        places = {index: place for place, (index, _) in enumerate(splits)}
        places.update({index: ~place for place, (index, _) in enumerate(leaves)})
        if len(places) != len(splits) + len(leaves):
            self.refuse(number, "two nodes have the same nodeid")
        for index, node in splits:
            self._add_split(number, index, node, places)
        self.sizes.append(len(splits))
        self.leaves += [value for _, value in leaves]

    def _add_split(self, number: int, index: int, node: dict[str, Any], places: dict[int, int]) -> None:
        """Add a split; `places` are the codes of nodes and leaves by nodeid."""
        name, condition, gain = node.get("split"), node.get("split_condition"), node.get("gain")
        yes: Any = node.get("yes")
        no: Any = node.get("no")
        missing = node.get("missing", no)  # without it, as old releases of Elasticsearch LTR have it
        first, second = node["children"][0]["nodeid"], node["children"][1]["nodeid"]
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
            self._add_categories(number, condition)
            condition = 0.0
        elif type(condition) not in (float, int) or not abs(condition) <= LARGEST_NUMBER:
            self.refuse(number, f"split_condition of node {index} is {shown(condition)}")
        if type(gain) not in (float, int) or not abs(gain) <= LARGEST_NUMBER:  # type: ignore[arg-type]
            self.has_gains, gain = False, 0.0
        self.names.append(name)
        self.conditions.append(float(condition))
        self.missing_left.append(missing == yes)
        self.left.append(places[yes])
        self.right.append(places[no])
        self.gains.append(float(gain))  # type: ignore[arg-type]

    def _add_categories(self, number: int, categories: list[Any]) -> None:
        """Add the categories of the node that comes next."""
        if not set(map(type, categories)) <= {int} or any(not 0 <= c < MOST_CATEGORIES for c in categories):
            self.refuse(number, f"a category is not a whole number from 0 to {MOST_CATEGORIES - 1}")
        edges = category_edges32(np.unique(np.array(categories, np.int64)))
        self._n_edges += len(edges)
        check_bounds(self._n_edges, self.path)
        self.categories[len(self.names)] = edges

    def lay_out(self, columns: Any) -> FlatTrees:
        """Return the trees laid end to end, their tests as conditions on raw values."""
        with np.errstate(over="ignore"):
            thresholds = of_less32(np.array(self.conditions, np.float64).astype(np.float32))
            leaves = np.array(self.leaves, np.float64).astype(np.float32)
        for node, edges in self.categories.items():
            thresholds[node] = edges[0] if len(edges) else LARGEST_NUMBER
        several = sorted(node for node, edges in self.categories.items() if len(edges))
        counts, bounds = join_bounds(several, [self.categories[node][1:] for node in several], len(thresholds))
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
    model = prepare(ensemble, base_as_tree=True)
    names = [f"f{index}" for index in range(model.n_columns)]
    for index, name in zip(ensemble.feature_ids.tolist(), ensemble.feature_names or (), strict=False):
        names[index] = name
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    conditions = spell(model.arrays["split_conditions"])
    trees = [
        _tree_text(model, conditions, quoted, start, stop)
        for start, stop in zip(model.offsets[:-1].tolist(), model.offsets[1:].tolist(), strict=True)
    ]
    return WrittenModel(("[\n" + ",\n".join(trees) + "\n]\n").encode("utf-8", "replace"), tuple(model.notes))


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
