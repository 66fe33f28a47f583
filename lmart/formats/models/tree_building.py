"""Steps that the readers and writers of other tools' models share: trees from arrays, names, expansion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError, quote
from lmart.formats.models.plain_nodes import expand_bounds
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree, structure_fault

MOST_BOUNDS = 1 << 24  # of one model: all its categorical splits together
LARGEST_NUMBER = float(np.finfo(np.float64).max)
MARKS_FROM = 1e300
MOST_LISTED = 1_000_000  # features that a model lists only because the file says how many there are


class Conditions(NamedTuple):
    """The tests of n nodes, as those of `Tree`.

    thresholds   : float64[n], finite
    missing_left : bool[n]
    swapped      : bool[n], whether what the tool calls the left child is the right one of `Tree`
    bound_counts : int64[n], further bounds of each node
    bounds       : float64[sum of bound_counts]
    """

    thresholds: Float64Array
    missing_left: BoolArray
    swapped: BoolArray
    bound_counts: Int64Array
    bounds: Float64Array


def counts_to_offsets(counts: Int64Array | Sequence[int]) -> Int64Array:
    """Return where each of the parts starts that have these lengths, and where the last ends, int64[n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64), dtype=np.int64)])


def join_bounds(numbers: Sequence[int], parts: Sequence[Float64Array], n: int) -> tuple[Int64Array, Float64Array]:
    """Return bound_counts and bounds of n nodes, of which those with ascending `numbers` have the bounds in `parts`."""
    counts = np.zeros(n, np.int64)
    counts[list(numbers)] = [len(part) for part in parts]
    return counts, np.concatenate([np.zeros(0), *parts])


def check_bounds(total: int, path: str) -> None:
    """Refuse a model whose categorical splits would need more memory than any model that was trained."""
    if total > MOST_BOUNDS:
        raise ModelError(
            f"the categorical splits of the model have more than {MOST_BOUNDS:,} ranges; the model is damaged", path
        )


def build_trees(
    flat: FlatTrees,
    n_features: int,
    path: str,
    split_gains: Float64Array | None = None,
    leaf_documents: Int64Array | None = None,
) -> tuple[Tree, ...]:
    """Return the trees as views of the arrays; ModelError naming the first that is no sound tree, counted from 1.

    split_gains    : float64[n_nodes], None if unknown; left out when one is not finite
    leaf_documents : int64[n_leaves], None if unknown; left out when one is negative
    """
    unsound = structure_fault(flat, n_features)
    if unsound is not None:
        raise ModelError(f"tree {unsound[0] + 1}: {unsound[1]}; the model is damaged", path)
    if split_gains is not None and not np.isfinite(split_gains).all():
        split_gains = None
    if leaf_documents is not None and (leaf_documents < 0).any():
        leaf_documents = None
    trees = []
    offsets, bound_offsets = flat.node_offsets.tolist(), flat.bound_offsets
    for number, (start, stop) in enumerate(itertools.pairwise(offsets)):
        leaves = slice(start + number, stop + number + 1)
        first, last = int(bound_offsets[start]), int(bound_offsets[stop])
        trees.append(
            Tree(
                flat.split_columns[start:stop],
                flat.thresholds[start:stop],
                flat.missing_left[start:stop],
                flat.left[start:stop],
                flat.right[start:stop],
                flat.leaf_values[leaves],
                None if split_gains is None else split_gains[start:stop],
                None if leaf_documents is None else leaf_documents[leaves],
                bound_offsets[start : stop + 1] - first if last > first else None,
                flat.bounds[first:last] if last > first else None,
            )
        )
    return tuple(trees)


def swap_children(left: Int32Array, right: Int32Array, swapped: BoolArray) -> tuple[Int32Array, Int32Array]:
    """Return the left and right children with those of the swapped nodes exchanged, int32[n] each."""
    return np.where(swapped, right, left).astype(np.int32), np.where(swapped, left, right).astype(np.int32)


class Features(NamedTuple):
    """What a model lists as its features: the fields of Ensemble of the same names."""

    feature_ids: Int64Array
    feature_names: tuple[str, ...] | None

    def columns(self, ids: Int64Array) -> Int32Array:
        """Return the column of each id, int32[n]; every id must be listed."""
        return np.searchsorted(self.feature_ids, ids).astype(np.int32)


def list_features(n_columns: int, names: Sequence[str] | None, used: Int64Array, default: str, path: str) -> Features:
    """Return the features of a tool that counts its columns from 0: column j is the feature with id j.

    names   : n_columns names, None or empty without any; names that are all as the tool gives them by itself, or just
              numbers of columns, are no names
    used    : the columns that splits use; those are left out that are not among them and have no name: column 0 where
              no feature has a name, else all
    default : how the tool names columns by itself, such as 'Column_'
    """
    used = np.unique(used)
    if len(used) and (used[0] < 0 or used[-1] >= n_columns):
        wrong = used[-1] if used[-1] >= n_columns else used[0]
        raise ModelError(f"a split is on column {wrong}, and the model has {n_columns}; the model is damaged", path)
    if not names:
        ids = np.arange(n_columns, dtype=np.int64) if n_columns <= MOST_LISTED else used
        return Features(ids[1:] if len(ids) and ids[0] == 0 and 0 not in used[:1] else ids, None)
    given = [name not in (f"{default}{j}", str(j)) for j, name in enumerate(names)]
    if not any(given):
        return Features(np.arange(0 if 0 in used[:1] else 1, n_columns, dtype=np.int64), None)
    is_kept = np.array(given)
    is_kept[used] = True
    kept = tuple(itertools.compress(names, is_kept.tolist()))
    if len(set(kept)) != len(kept):
        seen: set[str] = set()
        twice = next(name for name in kept if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ModelError(f"two features have the name {quote(twice)}; the model is damaged", path)
    return Features(np.flatnonzero(is_kept).astype(np.int64), kept)


def expand_except(ensemble: Ensemble, kept: dict[tuple[int, int], int]) -> tuple[Ensemble, dict[tuple[int, int], int]]:
    """Return the ensemble with nodes of several bounds expanded but for those that the format holds as they are.

    kept : a number for each node (tree, node) that is kept; its bounds are dropped from the result
    Returns also the numbers of the kept nodes by where they are in the result, some of them copied.
    """
    taken = {float(t) for tree in ensemble.trees for t in tree.thresholds[tree.thresholds > MARKS_FROM]}
    marks: dict[float, int] = {}  # a threshold that no node has stands for a kept node while its tree is expanded
    marked: dict[int, dict[int, float]] = {}
    mark = LARGEST_NUMBER
    for (number, node), payload in kept.items():
        mark = float(np.nextafter(mark, 0.0))
        while mark in taken:
            mark = float(np.nextafter(mark, 0.0))
        marks[mark] = payload
        marked.setdefault(number, {})[node] = mark
    trees = tuple(
        _without_bounds(tree, marked[number]) if number in marked else tree
        for number, tree in enumerate(ensemble.trees)
    )
    expanded = expand_bounds(replace(ensemble, trees=trees))
    found = {}
    for number in marked:
        tree = expanded.trees[number]
        for node in np.flatnonzero(tree.thresholds > MARKS_FROM).tolist():
            threshold = float(tree.thresholds[node])
            if threshold in marks:
                found[number, node] = marks[threshold]
    return expanded, found


def _without_bounds(tree: Tree, marks: dict[int, float]) -> Tree:
    """Return the tree in which the given nodes have the given thresholds and no further bounds."""
    thresholds = tree.thresholds.copy()
    thresholds[list(marks)] = list(marks.values())
    if tree.bound_offsets is None or tree.bounds is None:
        return replace(tree, thresholds=thresholds)
    is_marked = np.zeros(len(thresholds), np.bool_)
    is_marked[list(marks)] = True
    counts = np.diff(tree.bound_offsets)
    bounds = tree.bounds[~np.repeat(is_marked, counts)]
    counts[is_marked] = 0
    if not len(bounds):
        return replace(tree, thresholds=thresholds, bound_offsets=None, bounds=None)
    return replace(tree, thresholds=thresholds, bound_offsets=counts_to_offsets(counts), bounds=bounds)
