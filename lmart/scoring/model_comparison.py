"""Comparing two forms of one model: whether rows come to the same leaves, and how far their scores are apart.

Besides the rows of a data set there are planted rows: for each node one that comes to it with a value on its threshold
and, for each of the threshold's two neighbours, one with that value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import ModelError
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

MOST_CELLS = 10_000_000  # of the rows planted in one tree
ROUNDING = 1e-6  # of leaf values that are compared instead of places


@dataclass(frozen=True)
class ModelComparison:
    """The result of `compare_models`.

    rows_changed       : rows of the data that come to another leaf in some tree
    planted_changed    : planted rows that come to another leaf of the tree they were planted in
    largest_difference : of the scores of a row of the data, 0 without rows
    """

    n_rows: int
    n_planted: int
    rows_changed: int
    planted_changed: int
    largest_difference: float


def compare_models(
    first: Ensemble,
    second: Ensemble,
    blocks: Iterable[tuple[SparseRows, Int32Array]],
    float32: bool,
    pool: WorkerPool | None = None,
) -> ModelComparison:
    """Compare a model with what was made of it.

    blocks  : rows, with int32[n_columns], the model's feature of each of their columns, -1 for none
    float32 : whether planted values are float32 numbers, as for a format that knows no others

    ModelError when the two differ in the number of trees that split, so that leaves cannot be compared.
    """
    models = first, second
    pairs = _pairs(first, second)
    planted_changed = n_planted = 0
    columns = np.arange(first.n_features, dtype=np.int32)
    for pair in pairs:
        rows = _with_values(_planted_rows(pair[0], float32), first)
        n_planted += len(rows)
        planted_changed += int(np.count_nonzero(_differ(pair, models, rows, columns)))
    n_rows = rows_changed = 0
    largest = 0.0
    scorers = Scorer(first), Scorer(second)
    for rows, column_map in blocks:
        n_rows += len(rows)
        ours_scores, their_scores = (scorer.score(rows, column_map, pool) for scorer in scorers)
        largest = max(largest, float(np.abs(ours_scores - their_scores).max(initial=0.0)))
        changed = np.zeros(len(rows), np.bool_)
        for pair in pairs:
            changed |= _differ(pair, models, rows, column_map, pool)
        rows_changed += int(np.count_nonzero(changed))
    return ModelComparison(n_rows, n_planted, rows_changed, planted_changed, largest)


def align_features(first: Ensemble, second: Ensemble, renamed: dict[str, str]) -> Ensemble:
    """Return the second model with the features of the first: by name; by order where names were changed; else by id.

    renamed : the name that a feature of the first, by what it is called there, got in the second, where it differs
    ModelError when the second splits on a feature that the first does not have.
    """
    called = [first.feature_name(column) for column in range(first.n_features)]
    names = [second.feature_name(column) for column in range(second.n_features)]
    place = {renamed.get(name, name): column for column, name in enumerate(called)}
    if second.feature_names is None:
        place = {str(int(index)): column for column, index in enumerate(first.feature_ids)}
    elif not set(names) <= set(place):  # a format that does not take all characters has changed some
        place = {name: column for column, name in enumerate(names) if column < first.n_features}
    columns = np.array([place.get(name, -1) for name in names], np.int32)
    trees = tuple(replace(tree, split_columns=columns[tree.split_columns]) for tree in second.trees)
    if any((tree.split_columns < 0).any() for tree in trees):
        raise ModelError("what was written splits on a feature that the model does not have")
    return replace(second, trees=trees, feature_ids=first.feature_ids, feature_names=first.feature_names)


def _pairs(first: Ensemble, second: Ensemble) -> list[tuple[Tree, Tree]]:
    """Return the trees that split, one of each model; a tree of one leaf may stand for the base score."""
    ours, theirs = ([tree for tree in model.trees if tree.n_leaves > 1] for model in (first, second))
    if len(ours) != len(theirs):
        raise ModelError(f"{len(ours):,} trees split, but {len(theirs):,} of what was written")
    return list(zip(ours, theirs, strict=True))


def _differ(
    pair: tuple[Tree, Tree],
    models: tuple[Ensemble, Ensemble],
    rows: SparseRows,
    column_map: Int32Array,
    pool: WorkerPool | None = None,
) -> BoolArray:
    """Return which rows come to another leaf of the second tree than of the first, bool[n].

    Leaves are known by their place from left to right; where their values in this order are not the same up to the
    rounding of float32, as when a format needs more leaves, by their values.
    """
    places = [_leaf_order(tree) for tree in pair]
    # An average may be written as a sum of trees with divided leaf values.
    divisors = [float(len(model.trees)) if model.average else 1.0 for model in models]
    ours, theirs = (replace(t, leaf_values=t.leaf_values / d) for t, d in zip(pair, divisors, strict=True))
    pair = (ours, theirs)
    allowed = ROUNDING * float(np.abs(pair[0].leaf_values).max())
    in_order = [tree.leaf_values[np.argsort(place)] for tree, place in zip(pair, places, strict=True)]
    by_place = len(in_order[0]) == len(in_order[1]) and bool((np.abs(in_order[0] - in_order[1]) <= allowed).all())
    reached = []
    for tree, ensemble, place in zip(pair, models, places, strict=True):
        values = place.astype(np.float64) if by_place else tree.leaf_values
        averaged = replace(
            ensemble, trees=(replace(tree, leaf_values=values),), base_score=0.0, sums="float64", average=False
        )
        reached.append(Scorer(averaged).score(rows, column_map, pool))
    return np.asarray(np.abs(reached[0] - reached[1]) > (0.0 if by_place else allowed))


def _leaf_order(tree: Tree) -> Int64Array:
    """Return the place of each leaf from left to right, int64[n_leaves]."""
    order = np.zeros(tree.n_leaves, np.int64)
    waiting, count = [0 if tree.n_leaves > 1 else ~0], 0
    left, right = tree.left.tolist(), tree.right.tolist()
    while waiting:
        place = waiting.pop()
        if place < 0:
            order[~place] = count
            count += 1
        else:
            waiting += [right[place], left[place]]
    return order


def _planted_rows(tree: Tree, float32: bool) -> SparseRows:
    """Return rows for each threshold and bound of the tree, with values that lead to its node.

    One row has the bound itself, and one each of its neighbours. Features that the path leaves open are 0. Of a tree
    with more than MOST_CELLS values in its rows, only the first nodes have rows.
    """
    columns, features = np.unique(tree.split_columns, return_inverse=True)
    n_nodes = min(len(tree.thresholds), max(1, MOST_CELLS // len(columns)))
    low, high = _ranges(tree, features, n_nodes, len(columns))
    nodes, bounds = np.arange(n_nodes), tree.thresholds[:n_nodes]
    if tree.bounds is not None and tree.bound_offsets is not None:
        further = np.repeat(np.arange(len(tree.thresholds)), np.diff(tree.bound_offsets))
        is_kept = further < n_nodes
        nodes = np.concatenate([nodes, further[is_kept]])
        bounds = np.concatenate([bounds, tree.bounds[is_kept]])
    kind: type[np.float32 | np.float64] = np.float32 if float32 else np.float64
    inside = np.where(np.isfinite(high), _up_to(high, kind), np.where(np.isfinite(low), _next(_up_to(low, kind)), 0.0))
    middle = _up_to(bounds, kind)
    rows = np.repeat(inside[nodes], 3, axis=0)
    values = np.stack([np.nextafter(middle, kind(-np.inf)), middle, _next(middle)], axis=1).ravel()
    rows[np.arange(len(rows)), np.repeat(features[nodes], 3)] = values
    rows = rows[np.isfinite(rows).all(axis=1)].astype(np.float64)
    return SparseRows(
        np.arange(len(rows) + 1, dtype=np.int64) * len(columns),
        np.tile(columns.astype(np.int32), len(rows)),
        rows.ravel(),
    )


def _with_values(rows: SparseRows, ensemble: Ensemble) -> SparseRows:
    """Return planted rows with a value of the next higher number in place of each number of a category."""
    values = rows.values.copy()
    for of_feature in ensemble.categories:
        cells = np.flatnonzero(rows.columns == of_feature.column)
        places = np.searchsorted(of_feature.numbers, values[cells])
        unseen = np.max(of_feature.held, initial=-1.0) + 1.0
        values[cells] = np.append(of_feature.held, unseen)[places]
    return replace(rows, values=values)


def _ranges(tree: Tree, features: Int64Array, n_nodes: int, n_features: int) -> tuple[Float64Array, Float64Array]:
    """Return low and high, float64[n_nodes, n_features]: values in (low, high] lead to the node.

    At a node with several bounds only the first is followed.
    """
    low, high = np.full((n_nodes, n_features), -np.inf), np.full((n_nodes, n_features), np.inf)
    waiting = [0]
    while waiting:
        node = waiting.pop()
        feature, threshold = features[node], tree.thresholds[node]
        for child, is_left in ((int(tree.left[node]), True), (int(tree.right[node]), False)):
            if child < 0:
                continue
            waiting.append(child)
            if max(child, node) >= n_nodes:
                continue
            low[child], high[child] = low[node], high[node]
            if is_left:
                high[child, feature] = min(high[node, feature], threshold)
            else:
                low[child, feature] = max(low[node, feature], threshold)
    return low, high


def _up_to(numbers: Float64Array, kind: type[np.float32 | np.float64]) -> npt.NDArray[np.float32 | np.float64]:
    """Return the largest number of this kind that is <= each."""
    with np.errstate(over="ignore"):
        rounded = numbers.astype(kind)
        return np.where(rounded.astype(np.float64) > numbers, np.nextafter(rounded, kind(-np.inf)), rounded)


def _next(numbers: npt.NDArray[np.float32 | np.float64]) -> npt.NDArray[np.float32 | np.float64]:
    """Return the number of the same kind above each."""
    with np.errstate(over="ignore"):
        return np.nextafter(numbers, numbers.dtype.type(np.inf))
