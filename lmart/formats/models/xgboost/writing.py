"""An Ensemble as XGBoost's document: nodes numbered breadth first, so that siblings follow each other, as it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float32Array, Float64Array, Int64Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.models.nodes import counts_to_offsets, trees_of_leaves
from lmart.formats.models.targets import (
    Columns,
    Target,
    absent_notes,
    expand_except,
    growth_notes,
    list_columns,
    most_members,
    nodes_of_bounds,
    with_base_tree,
)
from lmart.formats.models.thresholds import of_less32, round_up32
from lmart.formats.models.value_sets import with_value_sets
from lmart.formats.models.xgboost.reading import MOST_CATEGORIES, SUMS, category_edges32
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten, node_sums

# Its own JSON reader does not know the escapes of control characters but those of tabs and ends of lines.
TARGET = Target("XGBoost", "f", re.compile(r"[\[\]<\0-\x08\x0b\x0c\x0e-\x1f]"), "'[', ']', '<' and control characters")
NO_PARENT = 2**31 - 1
MOST_MEMBERS = 1 << 24  # categories of all splits together
VERSION = [2, 1, 0]  # whose keys are written: 1.6 to 3 know them
FLOATS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")


class WrittenTrees(NamedTuple):
    """An ensemble as XGBoost has it.

    offsets    : int64[n_trees + 1], where the nodes of each tree start; nodes count breadth first in their tree
    arrays     : by XGBoost's name, of all trees end to end: float32 for FLOATS, else int32 or uint8
    categories : by (tree, node), the categories that go right there
    base_score, objective : as in the file
    gain       : of the model
    """

    offsets: Int64Array
    arrays: dict[str, Any]
    categories: dict[tuple[int, int], Int64Array]
    columns: Columns
    base_score: np.float32
    objective: str
    gain: str | None
    notes: list[str]


def prepare(ensemble: Ensemble, target: Target = TARGET, base_as_tree: bool = False) -> WrittenTrees:
    """Return the ensemble as XGBoost has it; ModelError when it cannot hold it."""
    columns = list_columns(ensemble, target)
    notes = columns.notes
    ensemble = with_value_sets(_without_texts(ensemble), "XGBoost", category_edges32, False).ensemble
    based = with_base_tree(ensemble) if base_as_tree or not ensemble.trees else ensemble
    plain, special = expand_except(based, {} if base_as_tree else _category_sets(based))
    notes += growth_notes(based, plain)
    flat = flatten(plain.trees)
    positions = _number_breadth_first(flat)
    divisor = max(len(ensemble.trees), 1) if ensemble.average else 1
    arrays, offsets = _arrays(plain, flat, columns.numbers, positions, divisor)
    starts = flat.node_offsets
    categories = {
        (tree, int(positions[starts[tree] + node])): members for (tree, node), members in sorted(special.items())
    }
    for tree, node in categories:
        at = int(offsets[tree]) + node
        arrays["split_type"][at], arrays["split_conditions"][at] = 1, 0.0
    with np.errstate(over="ignore"):
        base = np.float32(0.0 if based is not ensemble else float(ensemble.base_score) / divisor)
    if not (np.isfinite(base) and np.isfinite(arrays["split_conditions"]).all()):
        raise ModelError("a leaf value or the base score is too large for float32, which XGBoost needs")
    notes += _notes(ensemble, flat, special)
    return WrittenTrees(offsets, arrays, categories, columns, base, _objective(ensemble, notes), ensemble.gain, notes)


def _without_texts(ensemble: Ensemble) -> Ensemble:
    """Return a model whose categories are all numbers; ModelError when some are texts."""
    for of_feature in ensemble.categories:
        if of_feature.of_texts:
            name = quote(ensemble.feature_name(of_feature.column))
            raise ModelError(f"category {name} has texts, and XGBoost only numbers; write another format")
    return ensemble


def _objective(ensemble: Ensemble, notes: list[str]) -> str:
    """Return the objective that the file names: the model's own where it is XGBoost's, else one that fits its gain."""
    own = ensemble.settings.get("objective")
    if str(ensemble.settings.get("source", "")).startswith("XGBoost") and own in SUMS:
        return str(own)
    if ensemble.gain not in (None, "exp2", "linear"):
        notes.append("the table of gains is not written: XGBoost knows exp2 and linear only")
    return "rank:ndcg" if ensemble.gain in ("exp2", "linear") else "rank:pairwise"  # which has no gain


def _category_sets(ensemble: Ensemble) -> dict[tuple[int, int], Int64Array]:
    """Return the categories of the nodes (tree, node) that are categorical splits of XGBoost."""
    sets = {}
    room = min(most_members(ensemble), MOST_MEMBERS)
    for place, edges, _ in nodes_of_bounds(ensemble):
        if (members := _members(edges, room)) is not None:
            room -= len(members)
            sets[place] = members
    return sets


def _members(edges: Float64Array, room: int) -> Int64Array | None:
    """Return the categories of XGBoost whose test changes sides at the edges, None when there are none such."""
    if len(edges) % 2:
        return None
    low, high = np.ceil(edges[::2]) + 0.0, np.ceil(edges[1::2])
    if low[0] < 0 or high[-1] > MOST_CATEGORIES or (high - low).sum() > room:
        return None
    members = np.concatenate([np.arange(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
    members = members.astype(np.int64)
    return members if np.array_equal(category_edges32(members), edges) else None


def _number_breadth_first(flat: FlatTrees) -> Int64Array:
    """Return the number in its tree of each node, then of each leaf, int64[n_nodes + n_leaves]: level by level."""
    n_nodes = len(flat.thresholds)
    (left, right), owner = flat.children, _owners(flat)
    positions = np.zeros(n_nodes + len(flat.leaf_values), np.int64)
    counts = np.zeros(flat.n_trees, np.int64)
    level = np.where(np.diff(flat.node_offsets) > 0, flat.node_offsets[:-1], n_nodes + flat.leaf_offsets[:-1])
    while len(level):
        trees = owner[level]  # ascending
        first = np.searchsorted(trees, trees)
        positions[level] = counts[trees] + np.arange(len(level)) - first
        counts += np.bincount(trees, minlength=flat.n_trees)
        splits = level[level < n_nodes]
        level = np.column_stack([left[splits], right[splits]]).ravel()
    return positions


def _owners(flat: FlatTrees) -> Int64Array:
    """Return the tree of each node, then of each leaf, int64[n_nodes + n_leaves]."""
    return np.concatenate([flat.tree_of_node, trees_of_leaves(flat.node_offsets)])


def _arrays(
    plain: Ensemble, flat: FlatTrees, columns: Int64Array, positions: Int64Array, divisor: int
) -> tuple[dict[str, Any], Int64Array]:
    """Return XGBoost's arrays of all trees end to end, and where each tree starts; `columns` are those of features."""
    n_nodes = len(flat.thresholds)
    (left, right), owner = flat.children, _owners(flat)
    offsets = counts_to_offsets(np.bincount(owner, minlength=flat.n_trees))
    place = offsets[owner] + positions  # of each node, then of each leaf
    splits, leaves = place[:n_nodes], place[n_nodes:]
    total = len(place)

    def filled(
        value: float, dtype: type[np.generic], *parts: tuple[Int64Array, npt.NDArray[np.generic]]
    ) -> npt.NDArray[np.generic]:
        """Return an array of all nodes and leaves: numbers at their places, one value everywhere else."""
        array: npt.NDArray[np.generic] = np.full(total, value, dtype)
        for where, numbers in parts:
            array[where] = numbers
        return array

    with np.errstate(over="ignore"):
        values = (flat.leaf_values / divisor).astype(np.float32)
    gains = _joined(plain, "split_gains")
    weights = _joined(plain, "leaf_documents")
    weights = _joined(plain, "leaf_weights") if weights is None else weights
    changes: list[tuple[Int64Array, npt.NDArray[np.generic]]] = []
    covers: list[tuple[Int64Array, npt.NDArray[np.generic]]] = []
    if weights is not None:
        covers = [(place, np.concatenate([node_sums(flat, weights), weights]))]
    if gains is not None:
        with np.errstate(over="ignore"):
            gains32 = gains.astype(np.float32)
        changes = [(splits, gains32)] if np.isfinite(gains32).all() else []
    split_indices = columns[flat.split_columns] if n_nodes else np.zeros(0, np.int64)
    arrays = {
        "base_weights": filled(0, np.float32, (leaves, values)),
        "default_left": filled(0, np.uint8, (splits, flat.missing_left)),
        "left_children": filled(-1, np.int32, (splits, positions[left])),
        "loss_changes": filled(0, np.float32, *changes),
        "parents": filled(NO_PARENT, np.int32, (place[left], positions[:n_nodes]), (place[right], positions[:n_nodes])),
        "right_children": filled(-1, np.int32, (splits, positions[right])),
        "split_conditions": filled(0, np.float32, (splits, round_up32(flat.thresholds) + 0.0), (leaves, values)),
        "split_indices": filled(0, np.int32, (splits, split_indices)),
        "split_type": filled(0, np.uint8),
        "sum_hessian": filled(0, np.float32, *covers),
    }
    return arrays, offsets


def _joined(ensemble: Ensemble, name: str) -> Any:
    """Return an array of all trees end to end, None when a tree has none."""
    parts = [getattr(tree, name) for tree in ensemble.trees]
    return None if any(part is None for part in parts) else np.concatenate(parts)


def _notes(ensemble: Ensemble, flat: FlatTrees, special: Iterable[tuple[int, int]]) -> list[str]:
    """Return what differs: float32 thresholds and sums, absent indices."""
    notes = []
    is_plain: BoolArray = np.ones(len(flat.thresholds), np.bool_)
    is_plain[[int(flat.node_offsets[tree]) + node for tree, node in special]] = False
    thresholds = flat.thresholds[is_plain]
    rounded = int(np.count_nonzero(of_less32(round_up32(thresholds)) != thresholds))
    if rounded:
        notes.append(
            f"{counted(rounded, 'threshold')} rounded to float32: values of float32 keep their side, others may"
            " change it when they are within one float32 of a threshold"
        )
    numbers = np.append(flat.leaf_values, ensemble.base_score)
    if ensemble.sums != "float32" or ensemble.average or (numbers.astype(np.float32) != numbers).any():
        notes.append("XGBoost adds up in float32, so scores differ from the model's by rounding")
    return notes + absent_notes(ensemble, "XGBoost", False)


def document(model: WrittenTrees) -> dict[str, Any]:
    """Return the whole document; arrays are numpy arrays of the types that XGBoost's binary format has."""
    trees = []
    by_tree: dict[int, list[tuple[int, Int64Array]]] = {}
    for (of_tree, node), members in sorted(model.categories.items()):
        by_tree.setdefault(of_tree, []).append((node, members))
    for number, (start, stop) in enumerate(zip(model.offsets[:-1].tolist(), model.offsets[1:].tolist(), strict=True)):
        sets = by_tree.get(number, [])
        sizes = [len(members) for _, members in sets]
        tree: dict[str, Any] = {name: array[start:stop] for name, array in model.arrays.items()}
        tree["categories"] = np.concatenate([np.zeros(0, np.int64), *(members for _, members in sets)]).astype(np.int32)
        tree["categories_nodes"] = np.array([node for node, _ in sets], np.int32)
        tree["categories_segments"] = counts_to_offsets(sizes)[:-1]
        tree["categories_sizes"] = np.array(sizes, np.int64)
        tree["id"] = number
        tree["tree_param"] = {
            "num_deleted": "0",
            "num_feature": str(model.columns.total),
            "num_nodes": str(stop - start),
            "size_leaf_vector": "1",
        }
        trees.append(dict(sorted(tree.items())))
    used = {int(model.arrays["split_indices"][model.offsets[of_tree] + node]) for of_tree, node in model.categories}
    n_columns = model.columns.total
    types = ["c" if j in used else "float" for j in range(n_columns)] if model.columns.names or used else []
    parameters = {
        "base_score": _spelled(model.base_score),
        "boost_from_average": "0",
        "num_class": "0",
        "num_feature": str(n_columns),
        "num_target": "1",
    }
    learner = {
        "attributes": {},
        "feature_names": model.columns.names or [],
        "feature_types": types,
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                "iteration_indptr": list(range(len(trees) + 1)),
                "tree_info": [0] * len(trees),
                "trees": trees,
            },
            "name": "gbtree",
        },
        "learner_model_param": parameters,
        "objective": _objective_entry(model.objective, model.gain),
    }
    return {"learner": learner, "version": VERSION}


def _objective_entry(name: str, gain: str | None) -> dict[str, Any]:
    """Return the entry of an objective with the parameters that XGBoost wants to see with it."""
    if name.startswith("rank:"):
        before_2 = {"fix_list_weight": "0", "num_pairsample": "1"}  # XGBoost 1 has other parameters
        linear = {"ndcg_exp_gain": "0"} if gain == "linear" else {}
        return {"lambda_rank_param": before_2, "lambdarank_param": linear, "name": name}
    extra = {
        "reg:pseudohubererror": {"pseudo_huber_param": {"huber_slope": "1"}},
        "reg:quantileerror": {"quantile_loss_param": {"quantile_alpha": "[0.5]"}},
    }
    return {"name": name, **extra.get(name, {"reg_loss_param": {"scale_pos_weight": "1"}})}


def _spelled(number: np.float32) -> str:
    """Return a float32 as XGBoost reads it back equal, always with a point or an exponent."""
    text = f"{float(number):.9g}"
    return text if set(text) & set(".en") else text + ".0"


def spell(numbers: Float32Array) -> list[str]:
    """Return each float32 as text that reads back equal, always with a point or an exponent, as XGBoost demands."""
    distinct, places = np.unique(numbers, return_inverse=True)
    texts = list(map(_spelled, distinct))
    return [texts[place] for place in places.tolist()]
