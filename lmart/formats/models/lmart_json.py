"""The model file: one strict JSON document, described for other programs in man/lmart-model.5.

Written with every number in its shortest exact form, one tree a line, the same bytes for the same model. Read with
everything checked; a damaged file is refused in one line.
"""

from __future__ import annotations

import codecs
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lmart.errors import LmartError, ModelError, quote
from lmart.gains import Gain
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree, structure_fault

FORMAT = "lmart"
VERSION = 1

HEAD_KEYS = ("format", "version", "settings", "gain", "absent", "base_score", "feature_ids", "feature_names", "trees")
OPTIONAL_HEAD_KEYS = ("feature_names",)
NODE_KEYS = ("split_features", "thresholds", "missing_left", "left", "right")
LEAF_KEYS = ("leaf_values",)
OPTIONAL_KEYS = ("split_gains", "leaf_documents")
TREE_KEYS = (*NODE_KEYS, *LEAF_KEYS, *OPTIONAL_KEYS)

NUMBERS = frozenset({int, float})
INTEGERS = frozenset({int})
BOOLEANS = frozenset({bool})
MEANT = {NUMBERS: "a number", INTEGERS: "a whole number in range", BOOLEANS: "true or false"}
INT32 = (-(2**31), 2**31 - 1)

BLANKS = " \t\r\n"  # of JSON


def model_to_json(ensemble: Ensemble) -> str:
    """Return the model as JSON text that ends in a newline; equal models give equal text."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "settings": ensemble.settings,
        "gain": ensemble.gain,
        "absent": ensemble.absent,
        "base_score": float(ensemble.base_score),
        "feature_ids": ensemble.feature_ids.tolist(),
    }
    if ensemble.feature_names is not None:
        head["feature_names"] = list(ensemble.feature_names)
    lines = [f"{_dump(key)}: {_dump(value)}" for key, value in head.items()]
    trees = ",\n".join(_dump(_tree_to_json(tree, ensemble.feature_ids)) for tree in ensemble.trees)
    lines.append(f'"trees": [\n{trees}\n]' if trees else '"trees": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(", ", ": "))


def _tree_to_json(tree: Tree, feature_ids: npt.NDArray[np.int64]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "split_features": feature_ids[tree.split_columns].tolist(),
        "thresholds": tree.thresholds.tolist(),
        "missing_left": tree.missing_left.tolist(),
        "left": tree.left.tolist(),
        "right": tree.right.tolist(),
        "leaf_values": tree.leaf_values.tolist(),
    }
    if tree.split_gains is not None:
        shown["split_gains"] = tree.split_gains.tolist()
    if tree.leaf_documents is not None:
        shown["leaf_documents"] = tree.leaf_documents.tolist()
    return shown


def write(ensemble: Ensemble, path: str, warn: Callable[[str], None]) -> bytes:
    """Return the content of the model file; `path` and `warn` are for formats that cannot hold every model."""
    return model_to_json(ensemble).encode("utf-8", "surrogateescape")


def model_from_json(content: bytes, path: str) -> Ensemble:
    """Return the checked model that a file holds; `path` is what to call it in messages. ModelError."""
    document = _parse(content, path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelError(f'this is JSON but no lmart model: it does not say "format": "{FORMAT}"', path)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"the version of the format is {_show(version)}, not a whole number from 1 up", path)
    if version > VERSION:
        raise ModelError(
            f"the model has format version {_show(version)}, this lmart knows up to {VERSION}; install a newer lmart",
            path,
        )
    _check_keys(document, HEAD_KEYS, OPTIONAL_HEAD_KEYS, "the model", path)
    if not isinstance(document["settings"], dict):
        raise ModelError("'settings' is not an object", path)
    _check_finite(document["settings"], path)
    gain = document["gain"]
    try:
        Gain.parse(gain if isinstance(gain, str) else "")
    except LmartError:
        raise ModelError(f"'gain' is {_show(gain)}, not exp2, linear or a table such as '0,1,3,7'", path) from None
    if document["absent"] not in ("zero", "missing"):
        raise ModelError(f"'absent' is {_show(document['absent'])}; it must be 'zero' or 'missing'", path)
    base_score = document["base_score"]
    if type(base_score) not in NUMBERS or not abs(base_score) <= sys.float_info.max:
        raise ModelError(f"'base_score' is {_show(base_score)}, not a finite number", path)
    feature_ids = _feature_ids(document["feature_ids"], path)
    return Ensemble(
        _read_trees(document["trees"], feature_ids, path),
        feature_ids,
        _feature_names(document.get("feature_names"), len(feature_ids), path),
        float(base_score),
        document["absent"],
        gain,
        document["settings"],
    )


def _parse(content: bytes, path: str) -> Any:
    """Return what the JSON text says; one clear line for everything that is not strict JSON."""
    if not content.removeprefix(codecs.BOM_UTF8).strip(BLANKS.encode()):
        raise ModelError("the file is empty; give a model written by 'lmart train'", path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise ModelError(
            "this is no model: it is not UTF-8 text; give a model written by 'lmart train'", path, line
        ) from None
    start = text.lstrip(BLANKS)[:200].split("\n", 1)[0].rstrip(BLANKS)
    if not start.startswith("{"):
        raise ModelError(
            f"this is no lmart model: it starts with {quote(start, 40)}; give a model written by 'lmart train'", path
        )

    def refuse_literal(literal: str) -> NoReturn:
        """Refuse NaN and Infinity, which Python takes and JSON does not have."""
        raise ModelError(f"{quote(literal)} is no JSON number; the model is damaged", path)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return an object; refuse a key that is given twice."""
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise ModelError(f"the key {quote(twice)} is given twice; the model is damaged", path)
        return found

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse_literal)
    except json.JSONDecodeError as fault:
        rest = text[fault.pos :].strip(BLANKS)
        if not rest or fault.msg.startswith("Unterminated string"):
            raise ModelError(
                "the model ends in the middle; the file was cut, copy it again", path, fault.lineno
            ) from None
        what = "there is more after the end of the model" if fault.msg == "Extra data" else "this is not valid JSON"
        token = quote(rest.split("\n", 1)[0].rstrip("\r"), 30)
        raise ModelError(
            f"{what}, at column {fault.colno}: {token}; the model is damaged", path, fault.lineno
        ) from None
    except (RecursionError, ValueError):  # nested without end, or an integer of thousands of digits
        raise ModelError("the model is damaged: brackets nested too deep, or a number too long", path) from None


def _show(value: Any) -> str:
    return quote(json.dumps(value))


def _check_keys(
    found: dict[str, Any], known: tuple[str, ...], optional: tuple[str, ...], where: str, path: str
) -> None:
    for key in known:
        if key not in found and key not in optional:
            raise ModelError(f"{where} has no '{key}'; the model is damaged", path)
    for key in found:
        if key not in known:
            raise ModelError(f"{where} has a key {quote(key)} that format version {VERSION} does not know", path)


def _check_finite(value: Any, path: str) -> None:
    """Refuse settings with a number that JSON text can say but that no float64 can hold."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float) and not math.isfinite(one):
            raise ModelError("'settings' holds a number that is not finite", path)
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _feature_ids(listed: Any, path: str) -> npt.NDArray[np.int64]:
    if not isinstance(listed, list) or not set(map(type, listed)) <= INTEGERS:
        raise ModelError("'feature_ids' is not a list of whole numbers", path)
    if any(not 0 <= index < 2**63 for index in listed):
        wrong = next(index for index in listed if not 0 <= index < 2**63)
        raise ModelError(f"'feature_ids' holds {quote(str(wrong))}, which is not from 0 to 2^63 - 1", path)
    for before, after in itertools.pairwise(listed):
        if after <= before:
            raise ModelError(f"'feature_ids' is not ascending: {after} comes after {before}", path)
    return np.array(listed, dtype=np.int64)


def _feature_names(listed: Any, n_features: int, path: str) -> tuple[str, ...] | None:
    if listed is None:
        return None
    if not isinstance(listed, list) or not set(map(type, listed)) <= {str}:
        raise ModelError("'feature_names' is not a list of texts", path)
    if len(listed) != n_features:
        raise ModelError(f"there are {len(listed)} feature names for {n_features} feature ids", path)
    if len(set(listed)) != len(listed):
        seen: set[str] = set()
        twice = next(name for name in listed if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ModelError(f"two features have the name {quote(twice)}", path)
    return tuple(listed)


def _read_trees(listed: Any, feature_ids: npt.NDArray[np.int64], path: str) -> tuple[Tree, ...]:
    """Check all trees at once, on arrays laid end to end, and return views of these; quick for 10,000 trees."""
    if not isinstance(listed, list):
        raise ModelError("'trees' is not a list", path)
    for number, tree in enumerate(listed, 1):
        fault = _shape_fault(tree)
        if fault:
            raise ModelError(f"tree {number}: {fault}", path)
    ids = _joined(listed, "split_features", np.int64, INTEGERS, (0, 2**63 - 1), path)
    columns = np.searchsorted(feature_ids, ids)
    known = columns < len(feature_ids)
    known[known] = feature_ids[columns[known]] == ids[known]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(tree["left"]) for tree in listed], dtype=np.int64)])
    if not known.all():
        place = int(np.argmin(known))
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
    )
    unsound = structure_fault(flat, len(feature_ids))
    if unsound is not None:
        raise ModelError(f"tree {unsound[0] + 1}: {unsound[1]}", path)
    return tuple(_views(listed, flat, path))


def _shape_fault(tree: Any) -> str | None:
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
    n = len(tree["left"])
    for key in TREE_KEYS:
        due = n + 1 if key in ("leaf_values", "leaf_documents") else n
        if key in tree and len(tree[key]) != due:
            return f"'{key}' has {len(tree[key])} entries, where 'left' has {n} and so {due} are due"
    return None


def _joined(
    trees: Iterable[dict[str, Any]],
    key: str,
    dtype: type,
    allowed: frozenset[type],
    limits: tuple[int, int] | None,
    path: str,
) -> npt.NDArray[Any]:
    """Return one key of all trees end to end; refuse entries of a wrong type or beyond the limits."""
    entries = list(itertools.chain.from_iterable(tree[key] for tree in trees if key in tree))
    whole = set(map(type, entries)) <= allowed
    try:
        if whole and (limits is None or not entries or (limits[0] <= min(entries) and max(entries) <= limits[1])):
            return np.array(entries, dtype=dtype)
    except OverflowError:  # an integer beyond float64
        pass
    for number, tree in enumerate(trees, 1):
        for entry in tree.get(key, ()):
            wrong = type(entry) not in allowed or (limits is not None and not limits[0] <= entry <= limits[1])
            if wrong or (limits is None and type(entry) is int and abs(entry) > 2**1023):
                raise ModelError(f"tree {number}: '{key}' holds {_show(entry)}, which is not {MEANT[allowed]}", path)
    raise AssertionError("unreachable")


def _views(listed: list[dict[str, Any]], flat: FlatTrees, path: str) -> Iterable[Tree]:
    gains = _joined(listed, "split_gains", np.float64, NUMBERS, None, path)
    documents = _joined(listed, "leaf_documents", np.int64, INTEGERS, (0, 2**63 - 1), path)
    gain_start = document_start = 0
    for number, (tree, start, stop) in enumerate(
        zip(listed, flat.node_offsets.tolist(), flat.node_offsets[1:].tolist(), strict=False)
    ):
        split_gains = leaf_documents = None
        if "split_gains" in tree:
            split_gains = gains[gain_start : (gain_start := gain_start + stop - start)]
            if not np.isfinite(split_gains).all():
                raise ModelError(f"tree {number + 1}: a split gain is not finite", path)
        if "leaf_documents" in tree:
            leaf_documents = documents[document_start : (document_start := document_start + stop - start + 1)]
        yield Tree(
            flat.split_columns[start:stop],
            flat.thresholds[start:stop],
            flat.missing_left[start:stop],
            flat.left[start:stop],
            flat.right[start:stop],
            flat.leaf_values[start + number : stop + number + 1],
            split_gains,
            leaf_documents,
        )
