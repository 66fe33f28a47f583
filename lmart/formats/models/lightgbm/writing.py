"""What the writers of LightGBM's text and JSON models share: trees that LightGBM can hold, columns, notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import counted, quote
from lmart.formats.models.lightgbm.conditions import (
    CATEGORICAL,
    DEFAULT_LEFT,
    NAN_MISSING,
    Split,
    range_edges,
    write_conditions,
)
from lmart.formats.models.lightgbm.header import SUMS
from lmart.formats.models.nodes import category_ranges
from lmart.formats.models.targets import Target, absent_notes, growth_notes, list_columns, with_base_tree
from lmart.formats.models.value_sets import with_value_sets
from lmart.scoring.ensemble import Ensemble, Tree, flatten, node_sums

TARGET = Target("LightGBM", "Column_", re.compile(r'[ \n\r\0",:\[\]{}]'), "blanks and of the marks of JSON")

MOST_SHOWN = 1 << 16  # categories of a column, of which LightGBM tells people and which it does not need


class WrittenTree(NamedTuple):
    """One tree as LightGBM has it; leaves and inner nodes keep the numbers of `Tree`.

    columns         : int64[n], the number of the column of each split
    thresholds      : float64[n], of a categorical split the number of its set
    decision_types  : int64[n], bits as in LightGBM's text format
    left, right     : int64[n]
    leaf_values     : float64[n + 1]
    split_gains     : float64[n], None if unknown
    leaf_counts     : int64[n + 1], None if unknown
    internal_counts : int64[n], None with leaf_counts
    sets            : int64[n, 2] each: ranges of the categories that go left, from the first to before the end
    """

    columns: Int64Array
    thresholds: Float64Array
    decision_types: Int64Array
    left: Int64Array
    right: Int64Array
    leaf_values: Float64Array
    split_gains: Float64Array | None
    leaf_counts: Int64Array | None
    internal_counts: Int64Array | None
    sets: list[Int64Array]


class WrittenEnsemble(NamedTuple):
    """An ensemble as LightGBM has it.

    objective : one whose prediction is the sum
    """

    trees: list[WrittenTree]
    names: list[str]
    objective: str
    notes: list[str]


def prepare(ensemble: Ensemble, is_text: bool) -> WrittenEnsemble:
    """Return the ensemble as LightGBM has it; ModelError when it cannot hold it."""
    columns = list_columns(ensemble, TARGET)
    sets = with_value_sets(ensemble, "LightGBM", lambda members: range_edges(category_ranges(members)), True)
    based = with_base_tree(sets.ensemble)
    plain, special = write_conditions(based, is_text)
    by_tree: dict[int, dict[int, Split]] = {}
    for (number, node), split in special.items():
        by_tree.setdefault(number, {})[node] = split
    counts = _node_documents(plain.trees)
    trees = [_write_tree(tree, columns.numbers, by_tree.get(t, {}), counts[t]) for t, tree in enumerate(plain.trees)]
    notes = [*columns.notes, *growth_notes(based, plain), *absent_notes(sets.ensemble, "LightGBM", True)]
    notes += [
        f"the texts of category {quote(ensemble.feature_name(each.column))} became numbers from 0, in the order of "
        "'values' in the model file"
        for each in ensemble.categories
        if each.of_texts
    ]
    if sets.changed:
        splits = counted(sets.changed, "split")
        notes.append(f"missing values of categories go with unseen ones in LightGBM, but not in {splits} of the model")
    if ensemble.sums == "float32":
        notes.append(
            "the model adds up in float32 and LightGBM in float64, so scores differ by rounding; every row reaches the"
            " same leaves"
        )
    return WrittenEnsemble(trees, columns.named(TARGET), _objective(ensemble), notes)


def _objective(ensemble: Ensemble) -> str:
    """Return the objective that the file names: the model's own where it is LightGBM's."""
    own = ensemble.settings.get("objective")
    is_own = str(ensemble.settings.get("source", "")).startswith("LightGBM") and own in SUMS
    return str(own) if is_own and own not in ("custom", "none", "null", "na") else "lambdarank"


def _node_documents(trees: Sequence[Tree]) -> list[Int64Array | None]:
    """Return how many training documents each node of each tree had; None for a tree that does not say."""
    counted = [(tree, tree.leaf_documents) for tree in trees if tree.leaf_documents is not None]
    leaves = np.concatenate([np.zeros(0, np.int64), *(documents for _, documents in counted)])
    flat = flatten([tree for tree, _ in counted])
    counts = iter(np.split(node_sums(flat, leaves), flat.node_offsets[1:-1]))
    return [None if tree.leaf_documents is None else next(counts) for tree in trees]


def _write_tree(tree: Tree, numbers: Int64Array, special: dict[int, Split], counts: Int64Array | None) -> WrittenTree:
    """Return a tree of plain nodes, on the columns of the features, with the special splits in it."""
    thresholds = tree.thresholds.copy()
    kinds = (NAN_MISSING << 2) | np.where(tree.missing_left, DEFAULT_LEFT, 0).astype(np.int64)
    left, right = tree.left.astype(np.int64), tree.right.astype(np.int64)
    sets: list[Int64Array] = []
    for node, split in sorted(special.items()):
        if isinstance(split, tuple):
            thresholds[node], kinds[node] = split
            continue
        thresholds[node], kinds[node] = len(sets), CATEGORICAL
        left[node], right[node] = right[node], left[node]
        sets.append(split)
    return WrittenTree(
        numbers[tree.split_columns] if len(numbers) else np.zeros(0, np.int64),
        thresholds,
        kinds,
        left,
        right,
        tree.leaf_values,
        tree.split_gains,
        tree.leaf_documents,
        counts,
        sets,
    )


def column_uses(model: WrittenEnsemble) -> Int64Array:
    """Return how many splits each column has, int64[n_columns]."""
    used = np.concatenate([np.zeros(0, np.int64), *(tree.columns for tree in model.trees)])
    return np.bincount(used, minlength=len(model.names))


def column_ranges(model: WrittenEnsemble) -> list[tuple[float, float] | Int64Array | None]:
    """Return the least and greatest threshold of each column, or its categories, int64; None for neither.

    Categories are left out where there are so many that no data had them.
    """
    n = len(model.names)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    sets: dict[int, list[Int64Array]] = {}
    for tree in model.trees:
        is_set = tree.decision_types == CATEGORICAL
        np.minimum.at(low, tree.columns[~is_set], tree.thresholds[~is_set])
        np.maximum.at(high, tree.columns[~is_set], tree.thresholds[~is_set])
        for node in np.flatnonzero(is_set).tolist():
            sets.setdefault(int(tree.columns[node]), []).append(tree.sets[int(tree.thresholds[node])])
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    found: list[tuple[float, float] | Int64Array | None] = [
        (least, greatest) if least <= greatest else None for least, greatest in pairs
    ]
    for column, ranges in sets.items():
        distinct = np.unique(np.concatenate(ranges), axis=0)
        is_member = np.zeros(int(distinct[:, 1].max()), np.bool_)
        for first, end in distinct.tolist():
            is_member[first:end] = True
        found[column] = np.flatnonzero(is_member) if np.count_nonzero(is_member) <= MOST_SHOWN else None
    return found
