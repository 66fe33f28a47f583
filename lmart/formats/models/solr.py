"""Models of Solr's class MultipleAdditiveTreesModel, JSON, read and written.

Solr holds numbers as float32 and adds 1e-6 to each threshold when it reads a model; x <= that sum goes left. A score is
a float32 sum of weight x value, each product rounded to float32. A feature without a value has the default value that
the feature store gives it, 0 unless it says NaN. With isNullSameAsZero false, known from Solr 9.2 on, NaN goes to the
side that 'missing' of the node names.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np

from lmart.array_types import Float32Array, Int64Array
from lmart.errors import ModelError, first_repeated, quote
from lmart.formats.format_records import WrittenModel, beginning
from lmart.formats.models.json_text import parse_json, refuse_unknown_keys, spelled
from lmart.formats.models.nodes import (
    JsonObject,
    NodeLists,
    build_trees,
    counts_to_offsets,
    is_number,
    plain_trees,
    trees_of_leaves,
)
from lmart.formats.models.targets import (
    as_plain_sum,
    goes_left_as_zero,
    leaves_in_float32,
    nested_text,
    renumbering_notes,
    score_notes,
    some,
    threshold_notes,
)
from lmart.formats.models.thresholds import (
    decimal_in,
    nearest32,
    next32,
    of_less_or_equal32,
    previous32,
    round_down32,
    shortest32,
)
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten

CLASS = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
SLACK = np.float32(1e-6)  # what Solr adds to a threshold
NULLS = "isNullSameAsZero"
# The keys that Solr knows; it refuses others.
PARAMS_KEYS = {"trees", NULLS}
TREE_KEYS = {"weight", "root"}
NODE_KEYS = {"feature", "threshold", "missing", "left", "right", "value"}
NULL_NEEDS = (
    'missing values need Solr 9.2 or later, and "defaultValue": "NaN" in the feature store for each feature that may'
    " have no value"
)
NUMBERED = re.compile(r"f(0|[1-9][0-9]{0,17})")  # names that only say a feature's number


class _Nodes(NodeLists):
    """The nodes of all trees in the order in which they are met; numbers as they are written.

    columns : of the features at the nodes, by name in `column_of`
    missing : the side of missing values at each node, None where there is none or nulls are zeros
    """

    def __init__(self, path: str, column_of: dict[str, int], has_nulls: bool) -> None:
        super().__init__(path)
        self._column_of = column_of
        self._has_nulls = has_nulls
        self.columns: list[int] = []
        self.thresholds: list[object] = []
        self.missing: list[object] = []
        self.values: list[object] = []

    def add_node(self, number: int, node: JsonObject) -> tuple[object, object] | None:
        if not node.keys() <= NODE_KEYS:
            refuse_unknown_keys(node, NODE_KEYS, f"tree {number}: a node", self.path, "Solr")
        name = node.get("feature")
        if name is None:
            if node.get("left") is not None or node.get("right") is not None:
                self.refuse(number, "a node has 'left' or 'right' and no 'feature'")
            self.values.append(node.get("value", 0))
            return None
        if not isinstance(name, str) or name not in self._column_of:
            self.refuse(number, f"a node is on feature {quote(str(name))}, which 'features' does not list")
        for key in ("threshold", "left", "right"):
            if node.get(key) is None:
                self.refuse(number, f"a node has no '{key}'")
        self.columns.append(self._column_of[name])
        self.thresholds.append(node["threshold"])
        missing = node.get("missing")
        if missing not in ("left", "right", None):
            self.refuse(number, f'\'missing\' is {spelled(missing)}, not "left" or "right"')
        self.missing.append(missing if self._has_nulls else None)
        return node["left"], node["right"]


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a model of Solr, of any class."""
    text = beginning(start)
    return text.startswith((b"{", b"[")) and b"org.apache.solr.ltr.model." in text


def read(content: bytes, path: str) -> Ensemble:
    """Return the ensemble that a model of Solr holds, or a list of a single one; ModelError for anything wrong.

    Features named f<number> keep that number as id, and have no other name when they are listed in ascending order;
    else features have their names and are numbered from 1 as listed.
    """
    document = parse_json(content, path, strict=True)
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict) or not isinstance(document.get("class"), str):
        raise ModelError('this is no single model of Solr: it has no "class"', path)
    if document["class"] != CLASS:
        raise ModelError(f"a model of class {quote(document['class'], 90)} is not read, only {CLASS}", path)
    names = _feature_names(document.get("features"), path)
    params = document.get("params")
    trees = params.get("trees") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(trees, list):
        raise ModelError("'params' has no list of 'trees'; the model is damaged", path)
    refuse_unknown_keys(params, PARAMS_KEYS, "'params'", path, "Solr")
    nulls_are_zeros = params.get(NULLS, True)
    if type(nulls_are_zeros) is not bool:
        raise ModelError(f"'{NULLS}' is {spelled(nulls_are_zeros)}, not true or false", path)
    feature_ids, ordered = _number_features(names)
    nodes = _Nodes(path, {name: column for column, name in enumerate(ordered)}, has_nulls=not nulls_are_zeros)
    weights: list[object] = []
    for number, tree in enumerate(trees, 1):
        if not isinstance(tree, dict) or "weight" not in tree or "root" not in tree:
            nodes.refuse(number, "there is no 'weight' or no 'root'")
        refuse_unknown_keys(tree, TREE_KEYS, f"tree {number}", path, "Solr")
        weights.append(tree["weight"])
        nodes.walk(number, tree["root"])
    is_plain = names == ordered and all(map(NUMBERED.fullmatch, names))
    return Ensemble(
        build_trees(_lay_out(nodes, weights), len(feature_ids), path),
        feature_ids,
        None if is_plain else tuple(ordered),
        absent="zero" if nulls_are_zeros else "missing",
        settings={"source": "Solr MultipleAdditiveTreesModel"}
        | _names_of(document)
        | ({} if nulls_are_zeros else {NULLS: False}),
        sums="float32",
    )


def _feature_names(listed: object, path: str) -> list[str]:
    """Return the names of the features, as listed."""
    names: list[str] = []
    for feature in listed if isinstance(listed, list) else (None,):
        if not isinstance(feature, dict) or not isinstance(feature.get("name"), str):
            raise ModelError("'features' is not a list of objects with a 'name'; the model is damaged", path)
        norm = feature.get("norm")
        kind = norm.get("class") if isinstance(norm, dict) else norm
        if norm is not None and not (isinstance(kind, str) and kind.endswith(".IdentityNormalizer")):
            name = quote(feature["name"])
            raise ModelError(f"feature {name} has a normalizer ('norm'), which is not read; score its output", path)
        names.append(feature["name"])
    if (twice := first_repeated(names)) is not None:
        raise ModelError(f"two features have the name {quote(twice)}", path)
    return names


def _number_features(names: list[str]) -> tuple[Int64Array, list[str]]:
    """Return the feature ids, ascending, and the names in their order."""
    if all(map(NUMBERED.fullmatch, names)):
        names = sorted(names, key=lambda name: int(name[1:]))
        return np.array([int(name[1:]) for name in names], np.int64), names
    return np.arange(1, len(names) + 1, dtype=np.int64), names


def _lay_out(nodes: _Nodes, weights: list[object]) -> FlatTrees:
    """Return the trees with thresholds and leaf values as Solr makes them."""
    path, offsets = nodes.path, counts_to_offsets(nodes.sizes)
    with np.errstate(over="ignore", invalid="ignore"):
        weights32 = _float32(weights, "weight", path)
        leaves = weights32[trees_of_leaves(offsets)] * _float32(nodes.values, "value", path)
        thresholds32 = _float32(nodes.thresholds, "threshold", path) + SLACK
    if not np.isfinite(leaves).all() or np.isposinf(thresholds32).any():
        raise ModelError("a number is too large for float32, which Solr holds; the model is damaged", path)
    thresholds = of_less_or_equal32(thresholds32)
    # Where no side is named, the feature store gives the feature a value.
    is_named = np.array([side is not None for side in nodes.missing], np.bool_)
    missing_left = np.where(is_named, [side == "left" for side in nodes.missing], thresholds >= 0.0)
    leaves64 = leaves.astype(np.float64)
    return plain_trees(offsets, nodes.columns, thresholds, missing_left, nodes.left, nodes.right, leaves64)


def _float32(entries: Sequence[object], key: str, path: str) -> Float32Array:
    """Return numbers and numbers in texts as float32; a text is rounded once, a number as a float64."""
    lowest = ("-Infinity",) if key == "threshold" else ()
    texts: list[str] = []
    numbers: list[float] = []
    for entry in entries:
        if type(entry) is str and (text := entry if entry in lowest else decimal_in(entry, is_java=True)) is not None:
            texts.append(text)
            numbers.append(float(text))
        elif is_number(entry):
            texts.append("")
            numbers.append(float(entry))
        else:
            raise ModelError(f"a '{key}' is {spelled(entry)}, not a finite number", path)
    return nearest32(texts, np.array(numbers, np.float64))


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the ensemble as a model of Solr; weights are 1, a feature without a name is f<id>.

    The names of the model and of its feature store are settings of the ensemble, 'lmart' and none unless it has them.

    Thresholds are rounded down to float32 and made smaller by what Solr adds, so that rows of float32 numbers come to
    the same leaves; where no number gives the threshold exactly, the next smaller one that can be reached is taken and
    counted in a note. Leaf values are rounded to float32. Sides of missing values are written where one is not that of
    0, for Solr from 9.2 on.
    """
    plain = as_plain_sum(ensemble)
    flat = flatten(plain.trees)
    leaves = leaves_in_float32(flat, "Solr")
    thresholds = round_down32(flat.thresholds)
    stored, reached = before_slack(thresholds)
    names = ensemble.feature_names or tuple(f"f{feature}" for feature in ensemble.feature_ids.tolist())
    listed = ", ".join(json.dumps({"name": name}) for name in names)
    as_zero = bool((flat.missing_left == goes_left_as_zero(flat)).all())
    has_nulls = not as_zero or ensemble.settings.get(NULLS) is False
    texts = shortest32(stored)
    if has_nulls:
        sides = ("left" if is_left else "right" for is_left in flat.missing_left.tolist())
        texts = [f'{text}", "missing": "{side}' for text, side in zip(texts, sides, strict=True)]
    trees = ",\n".join(f'{{"weight": "1", "root": {root}}}' for root in _roots(flat, names, texts, shortest32(leaves)))
    head = f'{{"class": "{CLASS}",\n{_called(ensemble)}"features": [{listed}],\n"params": {{'
    nulls = f'"{NULLS}": false, ' if has_nulls else ""
    text = f'{head}{nulls}"trees": [\n{trees}\n]}}}}\n'
    notes = threshold_notes(flat.thresholds, thresholds, "Solr")
    missed = reached != thresholds
    if missed.any():
        gap = float((thresholds[missed].astype(np.float64) - reached[missed]).max())
        cannot = some(int(missed.sum()), len(missed), "threshold", "cannot", "cannot")
        notes.append(
            f"{cannot} be stored exactly, as Solr adds 1e-6: values up to {gap:.1e} below one go right instead of left"
        )
    notes += score_notes(ensemble, flat, leaves.astype(np.float64), "float32", "Solr")
    notes += renumbering_notes(ensemble, NUMBERED)
    return WrittenModel(text.encode(), tuple(notes), (NULL_NEEDS,) if has_nulls else ())


def _called(ensemble: Ensemble) -> str:
    """Return the lines of the name of the model and, where it has one, of its feature store."""
    said = {"name": "lmart"} | _names_of(ensemble.settings)
    return "".join(f'"{key}": {json.dumps(text)},\n' for key, text in said.items())


def _names_of(said: Mapping[str, object]) -> dict[str, str]:
    """Return the names of the model and of its feature store, where they are there."""
    return {key: text for key in ("name", "store") if isinstance(text := said.get(key), str)}


def before_slack(thresholds: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Return s, and s + 1e-6 as Solr adds it, float32[n] each.

    The sum is the threshold where a float32 s gives it, else the largest sum below it.
    """
    stored = thresholds - SLACK
    best, reached = stored, np.full(len(thresholds), -np.inf, np.float32)
    for step in (next32, previous32):
        candidate = stored
        for _ in range(4):
            total = candidate + SLACK
            better = (total <= thresholds) & (total > reached)
            best, reached = np.where(better, candidate, best), np.where(better, total, reached)
            candidate = step(candidate)
    return best.astype(np.float32), reached.astype(np.float32)


def _roots(flat: FlatTrees, names: Sequence[str], thresholds: list[str], values: list[str]) -> list[str]:
    """Return the root node of each tree as JSON."""
    heads = [f'{{"feature": {json.dumps(name)}, "threshold": "' for name in names]
    columns, left, right = flat.split_columns.tolist(), flat.left.tolist(), flat.right.tolist()
    nodes = [f'{heads[column]}{text}", "left": ' for column, text in zip(columns, thresholds, strict=True)]
    leaves = [f'{{"value": "{value}"}}' for value in values]
    roots = []
    for number, (start, stop) in enumerate(itertools.pairwise(flat.node_offsets.tolist())):
        of_nodes, of_leaves = slice(start, stop), slice(start + number, stop + number + 1)
        roots.append(
            nested_text(left[of_nodes], right[of_nodes], nodes[of_nodes], leaves[of_leaves], ', "right": ', "}")
        )
    return roots
