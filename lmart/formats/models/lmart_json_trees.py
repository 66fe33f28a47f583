"""The trees of the model file: checked, and turned into arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import ModelError, quote
from lmart.formats.models.json_text import spelled
from lmart.scoring.ensemble import FlatTrees, Tree, structure_fault

Scalar = TypeVar("Scalar", bound=np.generic)
JsonTree: TypeAlias = Mapping[str, list[float]]  # once `_shape_fault` finds nothing; the numbers may be of wrong types

VERSION = 2  # written only where a key is used that version 1 does not know, so that older versions read the rest

NODE_KEYS = ("split_features", "thresholds", "missing_left", "left", "right")
LEAF_KEYS = ("leaf_values",)
BOUND_KEYS = ("bound_offsets", "bounds")  # both or none, in trees with splits of several bounds
OPTIONAL_KEYS = ("split_gains", "leaf_documents", "leaf_weights", *BOUND_KEYS)
TREE_KEYS = (*NODE_KEYS, *LEAF_KEYS, *OPTIONAL_KEYS)

NUMBERS = frozenset({int, float})
INTEGERS = frozenset({int})
BOOLEANS = frozenset({bool})
MEANT = {NUMBERS: "a number", INTEGERS: "a whole number in range", BOOLEANS: "true or false"}
INT32 = (-(2**31), 2**31 - 1)


def read_trees(listed: object, feature_ids: npt.NDArray[np.int64], path: str) -> tuple[Tree, ...]:
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
        *_read_bounds(listed, path),
    )
    unsound = structure_fault(flat, len(feature_ids))
    if unsound is not None:
        raise ModelError(f"tree {unsound[0] + 1}: {unsound[1]}", path)
    return tuple(_views(listed, flat, path))


def _read_bounds(listed: Sequence[JsonTree], path: str) -> tuple[Int64Array, Float64Array]:
    """Return bound_offsets and bounds of FlatTrees."""
    counts = [np.zeros(0, np.int64)]
    starts = _joined(listed, "bound_offsets", np.int64, INTEGERS, (0, 2**63 - 1), path)
    start = 0
    for number, tree in enumerate(listed, 1):
        n = len(tree["left"])
        if "bounds" not in tree:
            counts.append(np.zeros(n, np.int64))
            continue
        offsets = starts[start : (start := start + n + 1)]
        sizes = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(tree["bounds"]) or (sizes < 0).any():
            raise ModelError(f"tree {number}: 'bound_offsets' do not ascend from 0 to the number of 'bounds'", path)
        counts.append(sizes)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])
    return offsets, _joined(listed, "bounds", np.float64, NUMBERS, None, path)


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
                raise ModelError(f"tree {number}: '{key}' holds {spelled(entry)}, which is not {MEANT[allowed]}", path)
    raise AssertionError("unreachable")


def _views(listed: Sequence[JsonTree], flat: FlatTrees, path: str) -> Iterable[Tree]:
    gains = _joined(listed, "split_gains", np.float64, NUMBERS, None, path)
    documents = _joined(listed, "leaf_documents", np.int64, INTEGERS, (0, 2**63 - 1), path)
    weights = _joined(listed, "leaf_weights", np.float64, NUMBERS, None, path)
    gain_start = document_start = weight_start = 0
    for number, (tree, start, stop) in enumerate(
        zip(listed, flat.node_offsets.tolist(), flat.node_offsets[1:].tolist(), strict=False)
    ):
        split_gains = leaf_documents = leaf_weights = None
        if "split_gains" in tree:
            split_gains = gains[gain_start : (gain_start := gain_start + stop - start)]
            if not np.isfinite(split_gains).all():
                raise ModelError(f"tree {number + 1}: a split gain is not finite", path)
        if "leaf_documents" in tree:
            leaf_documents = documents[document_start : (document_start := document_start + stop - start + 1)]
        if "leaf_weights" in tree:
            leaf_weights = weights[weight_start : (weight_start := weight_start + stop - start + 1)]
            if not (np.isfinite(leaf_weights).all() and (leaf_weights >= 0).all() and leaf_weights.any()):
                raise ModelError(
                    f"tree {number + 1}: 'leaf_weights' are not finite numbers from 0 up, some above", path
                )
        bound_offsets = bounds = None
        if "bounds" in tree:
            first, last = flat.bound_offsets[start], flat.bound_offsets[stop]
            bound_offsets, bounds = flat.bound_offsets[start : stop + 1] - first, flat.bounds[first:last]
        yield Tree(
            flat.split_columns[start:stop],
            flat.thresholds[start:stop],
            flat.missing_left[start:stop],
            flat.left[start:stop],
            flat.right[start:stop],
            flat.leaf_values[start + number : stop + number + 1],
            split_gains,
            leaf_documents,
            bound_offsets,
            bounds,
            leaf_weights,
        )
