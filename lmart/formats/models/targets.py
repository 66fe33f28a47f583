"""What writers for other tools share: columns, names, plain nodes, and notes on what the format changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.models.nodes import LARGEST_NUMBER, MOST_LISTED, counts_to_offsets
from lmart.formats.models.thresholds import of_less_or_equal32
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree


class WrittenModel(NamedTuple):
    """A model in the format of another tool.

    content : the bytes of the file
    notes   : one line for each thing that the format does not hold or that could differ, with counts
    needs   : one line for each thing that the tool needs beside the file to score as the model does
    """

    content: bytes
    notes: tuple[str, ...]
    needs: tuple[str, ...] = ()


FEW_MEMBERS = 1 << 20  # of sets that every model may list
MEMBERS_OF_BOUND = 1 << 10  # that it may list besides for each bound: sets whose members are no long ranges stay
PIECE = 1 << 16  # numbers that are texts at the same time


class Target(NamedTuple):
    """A tool that models are written for.

    name    : of the tool
    default : how it calls column j when nobody named it, before j
    refused : each match in a name becomes '_'
    marks   : those characters in words
    """

    name: str
    default: str
    refused: re.Pattern[str]
    marks: str


class Columns(NamedTuple):
    """The columns of a written model.

    numbers : int64[n_features], ascending, the column of each feature
    total   : how many columns there are
    names   : of the columns; None when features have no names
    notes   : how names were changed
    """

    numbers: Int64Array
    total: int
    names: list[str] | None
    notes: list[str]


def list_columns(ensemble: Ensemble, target: Target) -> Columns:
    """Return the columns: of a model with names its features in order; else column j is feature j, from column 0.

    ModelError when feature numbers would need too many columns.
    """
    names = ensemble.feature_names
    if names:
        fitted = fit_names(names, target)
        return Columns(np.arange(len(names), dtype=np.int64), len(names), fitted, _name_notes(names, fitted, target))
    ids = ensemble.feature_ids
    total = int(ids[-1]) + 1 if len(ids) else 1
    if total > MOST_LISTED:
        raise ModelError(
            f"the model has feature {ids[-1]}, and {target.name} needs a column for each number up to it,"
            f" {MOST_LISTED:,} at most; give the features names with --feature-map, or number them anew"
        )
    return Columns(ids, total, None, [])


def _name_notes(names: Sequence[str], fitted: list[str], target: Target) -> list[str]:
    """Return a note when names were changed, with the first of them."""
    changed = [(name, fit) for name, fit in zip(names, fitted, strict=True) if name != fit]
    if not changed:
        return []
    what = (
        f"{counted(len(changed), 'feature name')} got '_' in place of {target.marks}, which {target.name} does not take"
    )
    return [f"{what}: {quote(changed[0][0])} is {quote(changed[0][1])}"]


def fit_names(names: Sequence[str], target: Target) -> list[str]:
    """Return distinct names that a tool takes; names that it takes as they are stay, whatever others become."""
    fitted = [target.refused.sub("_", name) or f"{target.default}{j}" for j, name in enumerate(names)]
    taken = {fit for fit, name in zip(fitted, names, strict=True) if fit == name}
    following: dict[str, int] = {}  # the number to try next behind a name, so that many equal names take no longer
    for j, fit in enumerate(fitted):
        if fit == names[j]:
            continue
        free = fit
        while free in taken:
            number = following.get(fit, 1)
            following[fit] = number + 1
            free = f"{fit}_{number if number > 1 else ''}"
        taken.add(free)
        fitted[j] = free
    return fitted


def most_members(ensemble: Ensemble) -> int:
    """Return how many categories the sets of a model may list; longer ones are written as chains of ranges."""
    return FEW_MEMBERS + MEMBERS_OF_BOUND * sum(len(tree.bounds) for tree in ensemble.trees if tree.bounds is not None)


def join_whole(numbers: npt.NDArray[np.generic], mark: str) -> str:
    """Return whole numbers as text with a mark between them, piece by piece: for millions of them.

    numbers : of any type of integers
    mark    : such as ','
    """
    pieces = (numbers[start : start + PIECE].tolist() for start in range(0, len(numbers), PIECE))
    return mark.join(mark.join(map(str, piece)) for piece in pieces)


UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}  # the largest relative error of one rounding


def one_leaf(value: float) -> Tree:
    """Return a tree of one leaf."""
    none: Int32Array = np.zeros(0, np.int32)
    return Tree(none, np.zeros(0), np.zeros(0, np.bool_), none, none, np.array([value], np.float64))


def as_plain_sum(ensemble: Ensemble) -> Ensemble:
    """Return an ensemble without base_score, average and nodes of several bounds: one sum of leaf values from 0 on.

    A base_score becomes a first tree of one leaf, so that the sum starts with it; an average is divided in the leaf
    values. ModelError when nodes with several bounds grow too much.
    """
    plain = expand_bounds(ensemble)
    trees = plain.trees
    if plain.base_score != 0:
        trees = (one_leaf(float(plain.base_score)), *trees)
    if plain.average and plain.trees:
        n = float(len(plain.trees))
        trees = tuple(replace(tree, leaf_values=tree.leaf_values / n) for tree in trees)
    return replace(plain, trees=trees, base_score=0.0, average=False)


def least_score(ensemble: Ensemble) -> float:
    """Return the least score that a sum of trees can give: its smallest leaves, added as it adds."""
    kind = np.float32 if ensemble.sums == "float32" else np.float64
    total = kind(ensemble.base_score)
    for tree in ensemble.trees:
        total = kind(float(total) + float(tree.leaf_values.min()))
    return float(total)


def leaves_in_float32(flat: FlatTrees, tool: str) -> Float32Array:
    """Return the leaf values rounded to float32; ModelError when one is too large."""
    with np.errstate(over="ignore"):
        leaves = flat.leaf_values.astype(np.float32)
    if not np.isfinite(leaves).all():
        largest = float(np.abs(flat.leaf_values).max())
        raise ModelError(f"a leaf value of {largest:.3g} is too large for {tool}, which holds them as float32 numbers")
    return leaves


def score_notes(
    ensemble: Ensemble, flat: FlatTrees, written: Float64Array, sums: str, tool: str, ordered: bool = True
) -> list[str]:
    """Return a note when scores can differ, with the most by which they can.

    ensemble : as it was before `as_plain_sum`
    flat     : its trees as a plain sum
    written  : float64[n_leaves], the leaf values as the tool has them
    sums     : 'float32' or 'float64', how the tool adds
    tool     : its name
    ordered  : whether it adds in tree order
    """
    changed = np.abs(flat.leaf_values - written)
    if ordered and ensemble.sums == sums and not ensemble.average and not changed.any():
        return []
    starts = flat.leaf_offsets[:-1]
    if not len(starts):
        return []
    largest = np.maximum.reduceat(np.abs(flat.leaf_values), starts)
    partial = np.cumsum(largest) if ordered else np.full(len(largest), largest.sum())
    most = float(np.maximum.reduceat(changed, starts).sum() + (UNIT[sums] + UNIT[ensemble.sums]) * partial.sum())
    if ensemble.average:
        most += 4 * UNIT["float64"] * float(partial[-1])
    rounded = int(np.count_nonzero(changed))
    what = (
        f"{rounded:,} of {counted(len(changed), 'leaf value')} are rounded to float32, by at most {changed.max():.1e}"
    )
    kind = f"scores are {sums} sums in {tool}"
    return [f"{what + ', and ' if rounded else ''}{kind}: a score can differ by at most {most:.1e}"]


def threshold_notes(thresholds: Float64Array, written: Float32Array, tool: str) -> list[str]:
    """Return a note when values that are no float32 numbers can change side.

    thresholds : float64[n_nodes], of x <= threshold
    written    : float32[n_nodes], of x <= threshold in float32
    tool       : which compares so
    """
    finer = int(np.count_nonzero(of_less_or_equal32(written) != thresholds))
    if not finer:
        return []
    return [
        f"{finer:,} of {counted(len(thresholds), 'threshold')} are finer than float32, in which {tool} compares: rows"
        " of float32 numbers come to the same leaves, others may not"
    ]


def missing_as_zero_notes(ensemble: Ensemble, flat: FlatTrees, tool: str) -> list[str]:
    """Return a note when missing values go elsewhere in a tool that takes them as 0."""
    wrong = int(np.count_nonzero(flat.missing_left != goes_left_as_zero(flat)))
    if not wrong:
        return []
    what = "missing values" + (" (also features that a row does not name)" if ensemble.absent == "missing" else "")
    return [
        f"{wrong:,} of {counted(len(flat.thresholds), 'split')} send {what} to the other side than {tool}, which takes"
        " them as 0"
    ]


def goes_left_as_zero(nodes: Tree | FlatTrees) -> BoolArray:
    """Return whether 0 goes left at each node of a tree, or of all trees, bool[n_nodes]."""
    crossed = (nodes.thresholds < 0).astype(np.int64)
    if nodes.bounds is not None and nodes.bound_offsets is not None:
        node = np.repeat(np.arange(len(nodes.thresholds)), np.diff(nodes.bound_offsets))
        crossed += np.bincount(node[nodes.bounds < 0], minlength=len(nodes.thresholds))
    even: BoolArray = crossed % 2 == 0
    return even


def renumbering_notes(ensemble: Ensemble, numbered: re.Pattern[str]) -> list[str]:
    """Return a note when names only say numbers, by which features are read back, and not those of the features."""
    found = [numbered.fullmatch(name) for name in ensemble.feature_names or ()]
    numbers = [int(match[1]) for match in found if match is not None]
    if not found or len(numbers) < len(found) or numbers == ensemble.feature_ids.tolist():
        return []
    place = next(k for k, number in enumerate(numbers) if number != ensemble.feature_ids[k])
    name = quote(ensemble.feature_name(place))
    return [
        f"lmart reads the feature {name} back as number {numbers[place]}, where it is {ensemble.feature_ids[place]}"
    ]


def name_notes(ensemble: Ensemble, tool: str) -> list[str]:
    """Return a note when feature names are lost."""
    if ensemble.feature_names is None:
        return []
    return [f"{counted(ensemble.n_features, 'feature name')} not written: {tool} has feature numbers only"]


def refuse_feature_numbers(ensemble: Ensemble, flat: FlatTrees, most: int, tool: str) -> None:
    """Refuse a model with a split on a feature whose number is not from 1 to `most`."""
    used = ensemble.feature_ids[np.unique(flat.split_columns)]
    wrong = used[(used < 1) | (used > most)]
    if len(wrong):
        raise ModelError(f"a split is on feature {wrong[0]}, and {tool} numbers features from 1 to {most:,}")


# A split on a set of categories copies its subtrees once for each run of categories, so nested ones grow without limit.
# A model of 100,000 leaves is still an everyday size, however small it was before; above that, a growth to 4 times is
# the most that does not surprise whoever serves the model.
USUAL_LEAVES = 100_000
MOST_GROWTH = 4
MARKS_FROM = 1e300  # thresholds above it may stand for a node that is kept


def expand_bounds(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble with a chain of plain nodes for each node that has several bounds; the same scores.

    A node with threshold t and bounds b1, b2 becomes x <= t (left), else x <= b1 (right), else x <= b2 (left), else
    right; its subtrees are copied as often as needed. Trees without such nodes are kept as they are; the others lose
    split_gains and leaf_documents, which do not add up over copies. ModelError when the model would grow too large:
    above 100,000 leaves and 4 times its own.
    """
    if all(tree.bounds is None for tree in ensemble.trees):
        return ensemble
    before = sum(tree.n_leaves for tree in ensemble.trees)
    most = max(MOST_GROWTH * before, USUAL_LEAVES)
    after = 0.0
    for tree in ensemble.trees:
        after += _expanded_leaves(tree)
    if after > most:
        size = f"{after:,.0f}" if after < 1e15 else "more than 10^15"
        raise ModelError(
            "splits on sets of values, such as categories, need a chain of plain splits each in this format: the model"
            f" would grow from {counted(before, 'leaf', 'leaves')} to {size}, and {most:,} are allowed; train it"
            " without categorical features or with fewer categories in a split"
        )
    return replace(ensemble, trees=tuple(_expand(tree) for tree in ensemble.trees))


def _bound_counts(tree: Tree) -> list[int]:
    """Return how many bounds each node has above its threshold."""
    if tree.bound_offsets is None:
        return [0] * len(tree.thresholds)
    counts: list[int] = np.diff(tree.bound_offsets).tolist()
    return counts


def _expanded_leaves(tree: Tree) -> float:
    """Return the leaves that a tree would have, a float as they may be more than an integer array can count."""
    if tree.bounds is None or not len(tree.bounds):
        return float(tree.n_leaves)
    counts, left, right = _bound_counts(tree), tree.left.tolist(), tree.right.tolist()
    order, waiting = [], [0]  # parents before their children
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += [child for child in (left[node], right[node]) if child >= 0]
    leaves = [1.0] * (len(left) + 1)  # the last entry is what a leaf counts
    for node in reversed(order):
        outcomes = counts[node] + 2  # left, right, left ...
        n_left = leaves[max(left[node], -1)]
        n_right = leaves[max(right[node], -1)]
        leaves[node] = (outcomes + 1) // 2 * n_left + outcomes // 2 * n_right
    return leaves[0]


def _expand(tree: Tree) -> Tree:
    """Return the tree with plain nodes only, numbered from the root down, left before right."""
    if tree.bounds is None or tree.bound_offsets is None or not len(tree.bounds):
        return replace(tree, bound_offsets=None, bounds=None)
    counts, left, right = _bound_counts(tree), tree.left.tolist(), tree.right.tolist()
    starts, missing_left = tree.bound_offsets.tolist(), tree.missing_left.tolist()
    olds: list[int] = []  # the node that each new one comes from
    places: list[int] = []  # which of its bounds: 0 is the threshold
    children: list[list[int]] = [[], []]
    leaves: list[int] = []  # the leaf that each new one is a copy of
    waiting = [(0, 0, -1, 0)]  # node or ~leaf, place among its bounds, new parent, side of it
    while waiting:
        old, place, parent, side = waiting.pop()
        if old < 0:
            children[side][parent] = ~len(leaves)
            leaves.append(~old)
            continue
        new = len(olds)
        if parent >= 0:
            children[side][parent] = new
        olds.append(old)
        places.append(place)
        children[0].append(0)
        children[1].append(0)
        here, other = (left[old], right[old]) if place % 2 == 0 else (right[old], left[old])
        waiting.append((other, 0, new, 1) if place == counts[old] else (old, place + 1, new, 1))
        waiting.append((here, 0, new, 0))
    old_nodes, place_of = np.array(olds), np.array(places)
    bound = np.array(starts)[old_nodes] + place_of - 1
    thresholds = np.where(place_of == 0, tree.thresholds[old_nodes], tree.bounds[np.maximum(bound, 0)])
    # A missing value that goes right passes the threshold and leaves the chain at its first bound, or at its end.
    missing = np.array(missing_left)[old_nodes] | (place_of == 1)
    return Tree(
        tree.split_columns[old_nodes],
        thresholds,
        missing,
        np.array(children[0], np.int32),
        np.array(children[1], np.int32),
        tree.leaf_values[leaves],
    )


def expand_except(ensemble: Ensemble, kept: dict[tuple[int, int], int]) -> tuple[Ensemble, dict[tuple[int, int], int]]:
    """Return the ensemble with nodes of several bounds expanded but for those that the format holds as they are.

    ensemble : the model
    kept     : a number for each node (tree, node) that is kept; its bounds are dropped from the result

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
