"""What the writers of LightGBM's text and JSON models share: trees that LightGBM can hold, columns, notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import counted
from lmart.formats.models.lightgbm.conditions import DEFAULT_LEFT, NAN_MISSING, write_conditions
from lmart.formats.models.lightgbm.header import SUMS
from lmart.formats.models.nodes import counts_to_offsets
from lmart.formats.models.targets import Target, goes_left_as_zero, list_columns
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

    names     : of the columns, from column 0
    objective : one whose prediction is the sum
    notes     : what differs or is lost
    """

    trees: list[WrittenTree]
    names: list[str]
    objective: str
    notes: list[str]


def prepare(ensemble: Ensemble, is_text: bool) -> WrittenEnsemble:
    """Return the ensemble as LightGBM has it; ModelError when it cannot hold it.

    ensemble : the model
    is_text  : the target is the text format, see `write_conditions`
    """
    columns = list_columns(ensemble, TARGET)
    notes = columns.notes
    based = with_base_tree(ensemble)
    before = sum(tree.n_leaves for tree in based.trees)
    plain, special, splits = write_conditions(based, is_text)
    after = sum(tree.n_leaves for tree in plain.trees)
    if after > before:
        notes.append(
            f"splits on several ranges became chains of plain splits: {counted(after, 'leaf', 'leaves')} instead of"
            f" {before:,}; the scores are the same"
        )
    by_tree: dict[int, dict[int, tuple[float, int] | Int64Array]] = {}
    for (number, node), place in special.items():
        by_tree.setdefault(number, {})[node] = splits[place]
    counts = _node_documents(plain.trees)
    trees = [_write_tree(tree, columns.numbers, by_tree.get(t, {}), counts[t]) for t, tree in enumerate(plain.trees)]
    names = columns.names or [f"{TARGET.default}{j}" for j in range(columns.total)]
    return WrittenEnsemble(trees, names, _objective(ensemble), notes + _common_notes(ensemble, is_text))


def _objective(ensemble: Ensemble) -> str:
    """Return the objective that the file names: the model's own where it is LightGBM's."""
    own = ensemble.settings.get("objective")
    is_own = str(ensemble.settings.get("source", "")).startswith("LightGBM") and own in SUMS
    return str(own) if is_own and own not in ("custom", "none", "null", "na") else "lambdarank"


def with_base_tree(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble with its base score in its trees, for formats that have none; the same scores.

    It becomes a first tree of one leaf, or is added to the leaves of the first tree where the sum is divided by the
    number of trees. A model without trees gets one of one leaf.
    """
    base = float(ensemble.base_score)
    first = ensemble.trees[0] if ensemble.trees else None
    if first is not None and (base == 0 or ensemble.average):
        trees = (replace(first, leaf_values=first.leaf_values + base), *ensemble.trees[1:]) if base else ensemble.trees
        return replace(ensemble, trees=trees, base_score=0.0)
    none32, none64 = np.zeros(0, np.int32), np.zeros(0)
    documents = None
    if first is not None and first.leaf_documents is not None:
        documents = np.array([first.leaf_documents.sum()], np.int64)
    gains = None if first is None or first.split_gains is None else none64
    leaf = Tree(none32, none64, np.zeros(0, np.bool_), none32, none32, np.array([base]), gains, documents)
    return replace(ensemble, trees=(leaf, *ensemble.trees), base_score=0.0)


def _common_notes(ensemble: Ensemble, is_text: bool) -> list[str]:
    """Return what both formats take otherwise, and what LightGBM, which loads the text format only, cannot do."""
    notes = []
    if ensemble.absent == "missing":
        other = sum(int(np.count_nonzero(tree.missing_left != goes_left_as_zero(tree))) for tree in ensemble.trees)
        if other:
            notes.append(
                f"an index that a row does not name is missing to this model and 0 to LightGBM, and"
                f" {counted(other, 'split')} distinguish them; write nan for it in the rows"
            )
    if ensemble.sums == "float32":
        notes.append(
            "the model adds up in float32 and LightGBM in float64, so scores differ by rounding; every row reaches the"
            " same leaves"
        )
    if is_text and any(tree.leaf_documents is None for tree in ensemble.trees):
        notes.append(
            "how many documents each leaf has is not known, so LightGBM can score with the model, but its pred_contrib"
            " has no meaning"
        )
    return notes


def _node_documents(trees: Sequence[Tree]) -> list[Int64Array | None]:
    """Return how many training documents each node of each tree had; None for a tree that does not say."""
    known = [tree for tree in trees if tree.leaf_documents is not None]
    leaves = np.concatenate(
        [np.zeros(0, np.int64), *(one.leaf_documents for one in known if one.leaf_documents is not None)]
    )
    flat = flatten(known)
    counts = iter(np.split(node_sums(flat, leaves), flat.node_offsets[1:-1]))
    return [None if tree.leaf_documents is None else next(counts) for tree in trees]


def _write_tree(
    tree: Tree, numbers: Int64Array, special: dict[int, tuple[float, int] | Int64Array], counts: Int64Array | None
) -> WrittenTree:
    """Return one tree.

    tree    : of plain nodes
    numbers : the columns of the features
    special : what the nodes are whose threshold has no meaning
    counts  : documents of each node, None if unknown
    """
    thresholds = tree.thresholds.copy()
    kinds = (NAN_MISSING << 2) | np.where(tree.missing_left, DEFAULT_LEFT, 0).astype(np.int64)
    left, right = tree.left.astype(np.int64), tree.right.astype(np.int64)
    sets: list[Int64Array] = []
    for node, split in sorted(special.items()):
        if isinstance(split, tuple):
            thresholds[node], kinds[node] = split
            continue
        thresholds[node], kinds[node] = len(sets), 1
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


def column_ranges(trees: list[WrittenTree], n: int) -> list[tuple[float, float] | Int64Array | None]:
    """Return the least and greatest threshold of each column, or its categories, int64; None for neither.

    Categories are left out where there are so many that no data had them.
    """
    offsets = counts_to_offsets([len(tree.columns) for tree in trees])
    columns = np.concatenate([np.zeros(0, np.int64), *(tree.columns for tree in trees)])
    thresholds = np.concatenate([np.zeros(0), *(tree.thresholds for tree in trees)])
    kinds = np.concatenate([np.zeros(0, np.int64), *(tree.decision_types for tree in trees)])
    sets: dict[int, list[Int64Array]] = {}
    for node in np.flatnonzero(kinds == 1).tolist():
        number = int(np.searchsorted(offsets, node, side="right")) - 1
        sets.setdefault(int(columns[node]), []).append(trees[number].sets[int(thresholds[node])])
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, columns[kinds != 1], thresholds[kinds != 1])
    np.maximum.at(high, columns[kinds != 1], thresholds[kinds != 1])
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    found: list[tuple[float, float] | Int64Array | None] = [
        (least, greatest) if least <= greatest else None for least, greatest in pairs
    ]
    for column, ranges in sets.items():
        whole = np.unique(np.concatenate(ranges), axis=0)
        is_member = np.zeros(int(whole[:, 1].max()), np.bool_)
        for first, end in whole.tolist():
            is_member[first:end] = True
        found[column] = np.flatnonzero(is_member) if np.count_nonzero(is_member) <= MOST_SHOWN else None
    return found
