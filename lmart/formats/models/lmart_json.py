"""The model file: one strict JSON document, described for other programs in man/lmart-model.5.

Written with every number in its shortest exact form, one tree a line, the same bytes for the same model. Read with
everything checked; a damaged file is refused in one line.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.data.categories import LARGEST, Categories
from lmart.errors import LmartError, ModelError, first_repeated, quote
from lmart.formats.format_records import GIVE_MODEL, WrittenModel, beginning
from lmart.formats.models.json_text import BLANKS, parse_json, spelled
from lmart.formats.models.nodes import counts_to_offsets, cut_trees, is_number
from lmart.gains import Gain
from lmart.scoring.ensemble import Ensemble, FlatTrees, RankerPart, Tree, structure_fault
from lmart.strict_json import NotStrict, check_numbers

Scalar = TypeVar("Scalar", bound=np.generic)
JsonTree: TypeAlias = Mapping[str, list[float]]  # once `_shape_fault` finds nothing; the numbers may be of wrong types

FORMAT = "lmart"
VERSION = 3  # written only where a key is used that earlier versions do not know, so that they read the rest
HEAD_KEYS = (
    *("format", "version", "settings", "gain", "absent", "base_score", "sums", "average"),
    *("feature_ids", "feature_names", "rankers", "categories", "trees"),
)
OPTIONAL_HEAD_KEYS = ("sums", "average", "feature_names", "rankers", "categories")
OPTIONAL_KEYS = (
    "split_gains",
    "leaf_documents",
    "leaf_weights",
    "bound_offsets",
    "bounds",
)  # the last two: both or none
TREE_KEYS = ("split_features", "thresholds", "missing_left", "left", "right", "leaf_values", *OPTIONAL_KEYS)

NUMBERS = frozenset({int, float})
INTEGERS = frozenset({int})
BOOLEANS = frozenset({bool})
MEANT = {NUMBERS: "a number", INTEGERS: "a whole number in range", BOOLEANS: "true or false"}
INT32 = (-(2**31), 2**31 - 1)
NOT_NEGATIVE = (0, 2**63 - 1)


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a model of lmart."""
    return re.match(rb'\{\s*"format"\s*:\s*"lmart"', beginning(start)) is not None


# ---- writing --------------------------------------------------------------------------------------------------------


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the content of the model file; nothing is lost."""
    return WrittenModel(model_to_json(ensemble).encode(), ())


def model_to_json(ensemble: Ensemble) -> str:
    """Return the model as JSON text that ends in a newline; equal models give equal text."""
    in_head = ensemble.sums != "float64" or ensemble.average or bool(ensemble.rankers) or ensemble.gain is None
    uses_2 = in_head or any(tree.bounds is not None or tree.leaf_weights is not None for tree in ensemble.trees)
    head: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION if ensemble.categories else 2 if uses_2 else 1,
        "settings": ensemble.settings,
        "gain": ensemble.gain,
        "absent": ensemble.absent,
        "base_score": float(ensemble.base_score),
    }
    if ensemble.sums != "float64":
        head["sums"] = ensemble.sums
    if ensemble.average:
        head["average"] = True
    head["feature_ids"] = ensemble.feature_ids.tolist()
    if ensemble.feature_names is not None:
        head["feature_names"] = list(ensemble.feature_names)
    if ensemble.rankers:
        head["rankers"] = [part._asdict() for part in ensemble.rankers]
    if ensemble.categories:
        ids = ensemble.feature_ids.tolist()
        head["categories"] = [
            {"feature": ids[each.column], "values": list(each.values), "unseen": each.unseen}
            for each in ensemble.categories
        ]
    lines = [f"{_dump(key)}: {_dump(value)}" for key, value in head.items()]
    trees = ",\n".join(_dump(_tree_to_json(tree, ensemble.feature_ids)) for tree in ensemble.trees)
    lines.append(f'"trees": [\n{trees}\n]' if trees else '"trees": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dump(value: object) -> str:
    return json.dumps(value, allow_nan=False, separators=(", ", ": "))


def _tree_to_json(tree: Tree, feature_ids: Int64Array) -> dict[str, object]:
    arrays = {key: getattr(tree, key) for key in TREE_KEYS[1:]}
    arrays = {TREE_KEYS[0]: feature_ids[tree.split_columns], **arrays}
    return {key: array.tolist() for key, array in arrays.items() if array is not None}


# ---- the head -------------------------------------------------------------------------------------------------------


def read(content: bytes, path: str) -> Ensemble:
    """Return the checked model that a file holds; `path` is what to call it in messages. ModelError."""
    document = _parse(content, path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelError(f'this is JSON but no lmart model: it does not say "format": "{FORMAT}"', path)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"the version of the format is {spelled(version)}, not a whole number from 1 up", path)
    if version > VERSION:
        raise ModelError(
            f"the model has format version {spelled(version)}, this lmart knows up to {VERSION}; install a newer lmart",
            path,
        )
    for key in HEAD_KEYS:
        if key not in document and key not in OPTIONAL_HEAD_KEYS:
            raise ModelError(f"the model has no '{key}'; the model is damaged", path)
    for key in document:
        if key not in HEAD_KEYS:
            raise ModelError(f"the model has a key {quote(key)} that format version {VERSION} does not know", path)
    _check_head(document, path)
    feature_ids = _feature_ids(document["feature_ids"], path)
    return Ensemble(
        _read_trees(document["trees"], feature_ids, path),
        feature_ids,
        _feature_names(document.get("feature_names"), len(feature_ids), path),
        float(document["base_score"]),
        document["absent"],
        document["gain"],
        document["settings"],
        document.get("sums", "float64"),
        document.get("average", False),
        _rankers(document.get("rankers", []), len(document["trees"]), path),
        _categories(document.get("categories", []), feature_ids, path),
    )


def _parse(content: bytes, path: str) -> object:
    """Return what the JSON text says; one clear line for everything that is not strict JSON."""
    if not beginning(content):
        raise ModelError(f"the file is empty; {GIVE_MODEL}", path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise ModelError(f"this is no model: it is not UTF-8 text; {GIVE_MODEL}", path, line) from None
    start = text.lstrip(BLANKS)[:200].split("\n", 1)[0].rstrip(BLANKS)
    if not start.startswith("{"):
        raise ModelError(f"this is no lmart model: it starts with {quote(start, 40)}; {GIVE_MODEL}", path)
    return parse_json(content, path, strict=True)


def _check_head(document: Mapping[str, object], path: str) -> None:
    """Refuse wrong values of the model as a whole."""
    if not isinstance(document["settings"], dict):
        raise ModelError("'settings' is not an object", path)
    try:
        check_numbers(document["settings"])
    except NotStrict as fault:
        raise ModelError(f"in 'settings' {fault}; the model is damaged", path) from None
    gain = document["gain"]
    try:
        Gain.parse(gain if isinstance(gain, str) else "" if gain is not None else "exp2")
    except LmartError:
        raise ModelError(f"'gain' is {spelled(gain)}, not exp2, linear or a table such as '0,1,3,7'", path) from None
    if document["absent"] not in ("zero", "missing"):
        raise ModelError(f"'absent' is {spelled(document['absent'])}; it must be 'zero' or 'missing'", path)
    if not is_number(document["base_score"]):
        raise ModelError(f"'base_score' is {spelled(document['base_score'])}, not a finite number", path)
    if document.get("sums", "float64") not in ("float64", "float32"):
        raise ModelError(f"'sums' is {spelled(document['sums'])}; it must be 'float64' or 'float32'", path)
    if type(document.get("average", False)) is not bool:
        raise ModelError(f"'average' is {spelled(document['average'])}; it must be true or false", path)


def _feature_ids(listed: object, path: str) -> Int64Array:
    if not isinstance(listed, list) or not set(map(type, listed)) <= INTEGERS:
        raise ModelError("'feature_ids' is not a list of whole numbers", path)
    wrong = next((index for index in listed if not 0 <= index < 2**63), None)
    if wrong is not None:
        raise ModelError(f"'feature_ids' holds {quote(str(wrong))}, which is not from 0 to 2^63 - 1", path)
    for index, following in itertools.pairwise(listed):
        if following <= index:
            raise ModelError(f"'feature_ids' is not ascending: {following} comes after {index}", path)
    return np.array(listed, dtype=np.int64)


def _feature_names(listed: object, n_features: int, path: str) -> tuple[str, ...] | None:
    if listed is None:
        return None
    if not isinstance(listed, list) or not set(map(type, listed)) <= {str}:
        raise ModelError("'feature_names' is not a list of texts", path)
    if len(listed) != n_features:
        raise ModelError(f"there are {len(listed)} feature names for {n_features} feature ids", path)
    if (twice := first_repeated(listed)) is not None:
        raise ModelError(f"two features have the name {quote(twice)}", path)
    return tuple(listed)


def _rankers(listed: object, n_trees: int, path: str) -> tuple[RankerPart, ...]:
    """Return which trees belong to which ranker; ModelError when the list is none, or its trees are not n_trees."""
    if not isinstance(listed, list):
        raise ModelError("'rankers' is not a list", path)
    kinds = {"trees": int, "objective": str, "tree": str, "leaves": int, "features": float, "seed": int}
    for number, part in enumerate(listed, 1):
        if not isinstance(part, dict) or set(part) != set(kinds):
            raise ModelError(f"ranker {number}: this is not an object with {', '.join(kinds)}", path)
        for key, kind in kinds.items():
            is_right = is_number(part[key]) if kind is float else type(part[key]) is kind
            if not is_right or (key == "trees" and part[key] < 0):
                raise ModelError(f"ranker {number}: '{key}' is {spelled(part[key])}", path)
    total = sum(part["trees"] for part in listed)
    if listed and total != n_trees:
        raise ModelError(f"the rankers have {total:,} trees, the model {n_trees:,}", path)
    return tuple(RankerPart(**part) for part in listed)


def _categories(listed: object, feature_ids: Int64Array, path: str) -> tuple[Categories, ...]:
    """Return the features that are categories; ModelError when the list is none."""
    if not isinstance(listed, list):
        raise ModelError("'categories' is not a list", path)
    ids = feature_ids.tolist()
    found = []
    for number, entry in enumerate(listed, 1):
        if not isinstance(entry, dict) or set(entry) != {"feature", "values", "unseen"}:
            raise ModelError(f"category {number}: this is not an object with feature, values, unseen", path)
        feature, values, unseen = entry["feature"], entry["values"], entry["unseen"]
        if type(feature) is not int or feature not in ids:
            raise ModelError(f"category {number}: 'feature' is {spelled(feature)}, which 'feature_ids' lacks", path)
        if not isinstance(values, list) or set(map(type, values)) not in (set(), {int}, {str}):
            raise ModelError(f"category {number}: 'values' is not a list of whole numbers, or of texts", path)
        if (twice := first_repeated(values)) is not None:
            raise ModelError(f"category {number}: the value {spelled(twice)} stands twice", path)
        if any(type(value) is int and abs(value) > LARGEST for value in values):
            raise ModelError(f"category {number}: a value is beyond 2^53", path)
        if type(unseen) is not int or not 0 <= unseen <= len(values):
            raise ModelError(f"category {number}: 'unseen' is {spelled(unseen)}, no place among the values", path)
        found.append(Categories(ids.index(feature), tuple(values), unseen))
    columns = [each.column for each in found]
    if columns != sorted(set(columns)):
        raise ModelError("the features of 'categories' do not ascend", path)
    return tuple(found)


# ---- the trees ------------------------------------------------------------------------------------------------------


def _read_trees(listed: object, feature_ids: Int64Array, path: str) -> tuple[Tree, ...]:
    """Check all trees at once, on arrays laid end to end, and return views of these; quick for 10,000 trees."""
    if not isinstance(listed, list):
        raise ModelError("'trees' is not a list", path)
    for number, tree in enumerate(listed, 1):
        fault = _shape_fault(tree)
        if fault:
            raise ModelError(f"tree {number}: {fault}", path)
    ids = _joined(listed, "split_features", np.int64, INTEGERS, NOT_NEGATIVE, path)
    columns = np.searchsorted(feature_ids, ids)
    is_listed = columns < len(feature_ids)
    is_listed[is_listed] = feature_ids[columns[is_listed]] == ids[is_listed]
    offsets = counts_to_offsets([len(tree["left"]) for tree in listed])
    if not is_listed.all():
        place = int(np.argmin(is_listed))
        number = int(np.searchsorted(offsets, place, side="right"))
        raise ModelError(f"tree {number}: a split is on feature {ids[place]}, which 'feature_ids' does not list", path)
    flat = FlatTrees(
        offsets,
        columns.astype(np.int32),
        _joined(listed, "thresholds", np.float64, NUMBERS, None, path),
        _joined(listed, "missing_left", np.bool_, BOOLEANS, None, path),
        _joined(listed, "left", np.int32, INTEGERS, INT32, path),
        _joined(listed, "right", np.int32, INTEGERS, INT32, path),
        _joined(listed, "leaf_values", np.float64, NUMBERS, None, path),
        *_read_bounds(listed, path),
    )
    unsound = structure_fault(flat, len(feature_ids))
    if unsound is not None:
        raise ModelError(f"tree {unsound[0] + 1}: {unsound[1]}", path)
    gains = list(_views(listed, "split_gains", _joined(listed, "split_gains", np.float64, NUMBERS, None, path)))
    documents = _joined(listed, "leaf_documents", np.int64, INTEGERS, NOT_NEGATIVE, path)
    weights = list(_views(listed, "leaf_weights", _joined(listed, "leaf_weights", np.float64, NUMBERS, None, path)))
    for number, (of_splits, of_leaves) in enumerate(zip(gains, weights, strict=True), 1):
        if of_splits is not None and not np.isfinite(of_splits).all():
            raise ModelError(f"tree {number}: a split gain is not finite", path)
        if of_leaves is not None and not (np.isfinite(of_leaves).all() and of_leaves.min() >= 0 and of_leaves.any()):
            raise ModelError(f"tree {number}: 'leaf_weights' are not finite numbers from 0 up, some above", path)
    return cut_trees(flat, gains, _views(listed, "leaf_documents", documents), weights)


def _read_bounds(listed: Sequence[JsonTree], path: str) -> tuple[Int64Array, Float64Array]:
    """Return bound_offsets and bounds of FlatTrees."""
    starts = _joined(listed, "bound_offsets", np.int64, INTEGERS, NOT_NEGATIVE, path)
    counts = [np.zeros(0, np.int64)]
    for number, (tree, offsets) in enumerate(zip(listed, _views(listed, "bound_offsets", starts), strict=True), 1):
        if offsets is None:
            counts.append(np.zeros(len(tree["left"]), np.int64))
            continue
        sizes = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(tree["bounds"]) or (sizes < 0).any():
            raise ModelError(f"tree {number}: 'bound_offsets' do not ascend from 0 to the number of 'bounds'", path)
        counts.append(sizes)
    return counts_to_offsets(np.concatenate(counts)), _joined(listed, "bounds", np.float64, NUMBERS, None, path)


def _shape_fault(tree: object) -> str | None:
    """Return what is wrong with the keys and lengths of one tree, None when nothing is."""
    if not isinstance(tree, dict):
        return "this is not an object"
    for key in TREE_KEYS:
        if key not in tree:
            if key not in OPTIONAL_KEYS:
                return f"there is no '{key}'"
        elif not isinstance(tree[key], list):
            return f"'{key}' is not a list"
    unknown = next((key for key in tree if key not in TREE_KEYS), None)
    if unknown is not None:
        return f"there is a key {quote(unknown)} that format version {VERSION} does not know"
    if ("bounds" in tree) != ("bound_offsets" in tree):
        return "there is only one of 'bounds' and 'bound_offsets'"
    n = len(tree["left"])
    for key in TREE_KEYS:
        due = n + 1 if key.startswith("leaf_") or key == "bound_offsets" else n
        if key in tree and key != "bounds" and len(tree[key]) != due:
            return f"'{key}' has {len(tree[key])} entries, where 'left' has {n} and so {due} are due"
    return None


def _joined(
    trees: Sequence[JsonTree],
    key: str,
    dtype: type[Scalar],
    allowed: frozenset[type],
    limits: tuple[int, int] | None,
    path: str,
) -> npt.NDArray[Scalar]:
    """Return one key of all trees end to end; refuse entries of a wrong type or beyond the limits."""
    entries = list(itertools.chain.from_iterable(tree[key] for tree in trees if key in tree))
    are_allowed = set(map(type, entries)) <= allowed
    try:
        if are_allowed and (limits is None or not entries or (limits[0] <= min(entries) and max(entries) <= limits[1])):
            return np.array(entries, dtype=dtype)
    except OverflowError:  # an integer beyond float64
        pass
    for number, tree in enumerate(trees, 1):
        for entry in tree.get(key, ()):
            wrong = type(entry) not in allowed or (limits is not None and not limits[0] <= entry <= limits[1])
            if wrong or (limits is None and type(entry) is int and not is_number(entry)):
                raise ModelError(f"tree {number}: '{key}' holds {spelled(entry)}, which is not {MEANT[allowed]}", path)
    raise AssertionError("unreachable")


def _views(trees: Sequence[JsonTree], key: str, joined: npt.NDArray[Scalar]) -> Iterator[npt.NDArray[Scalar] | None]:
    """Yield the part of each tree in the array of a key, None for a tree without it."""
    start = 0
    for tree in trees:
        yield joined[start : (start := start + len(tree[key]))] if key in tree else None
