"""What writers for other tools share: columns, names, plain nodes, nested text, and notes on what a format changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.models.model_files import content_of, parse_model
from lmart.formats.models.nodes import MOST_LISTED
from lmart.formats.models.thresholds import of_less_or_equal32
from lmart.formats.registry import MODEL_FORMATS
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree

T = TypeVar("T")

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}  # the largest relative error of one rounding
FEW_MEMBERS = 1 << 20  # of sets that every model may list
MEMBERS_OF_BOUND = 1 << 10  # that it may list besides for each bound: sets whose members are no long ranges stay
PIECE = 1 << 16  # numbers that are texts at the same time
# A split on a set of categories copies its subtrees once for each run of categories, so nested ones grow without limit.
# A model of 100,000 leaves is still an everyday size, however small it was before; above that, a growth to 4 times is
# the most that does not surprise whoever serves the model.
USUAL_LEAVES = 100_000
MOST_GROWTH = 4


# ---- columns and names ----------------------------------------------------------------------------------------------


class Target(NamedTuple):
    """A tool that counts columns from 0.

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

    def named(self, target: Target) -> list[str]:
        """Return the names of the columns, those of the tool when they have none."""
        return self.names or [f"{target.default}{j}" for j in range(self.total)]


def list_columns(ensemble: Ensemble, target: Target) -> Columns:
    """Return the columns: of a model with names its features in order; else column j is feature j, from column 0.

    ModelError when feature numbers would need too many columns.
    """
    names = ensemble.feature_names
    if names:
        fitted = fit_names(names, target)
        changed = [(name, fit) for name, fit in zip(names, fitted, strict=True) if name != fit]
        notes = []
        if changed:
            what = f"{counted(len(changed), 'feature name')} got '_' in place of {target.marks}"
            name, fit = map(quote, changed[0])
            notes.append(f"{what}, which {target.name} does not take: {name} is {fit}")
        return Columns(np.arange(len(names), dtype=np.int64), len(names), fitted, notes)
    ids = ensemble.feature_ids
    total = int(ids[-1]) + 1 if len(ids) else 1
    if total > MOST_LISTED:
        raise ModelError(
            f"the model has feature {ids[-1]}, and {target.name} needs a column for each number up to it,"
            f" {MOST_LISTED:,} at most; give the features names with --feature-map, or number them anew"
        )
    return Columns(ids, total, None, [])


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


def refuse_feature_numbers(ensemble: Ensemble, flat: FlatTrees, most: int, tool: str) -> None:
    """Refuse a model with a split on a feature whose number is not from 1 to `most`."""
    used = ensemble.feature_ids[np.unique(flat.split_columns)]
    wrong = used[(used < 1) | (used > most)]
    if len(wrong):
        raise ModelError(f"a split is on feature {wrong[0]}, and {tool} numbers features from 1 to {most:,}")


# ---- text -----------------------------------------------------------------------------------------------------------


def join_whole(numbers: npt.NDArray[np.generic], mark: str) -> str:
    """Return whole numbers of any type as text with a mark between them, piece by piece: for millions of them."""
    pieces = (numbers[start : start + PIECE].tolist() for start in range(0, len(numbers), PIECE))
    return mark.join(mark.join(map(str, piece)) for piece in pieces)


def nested_text(
    left: Sequence[int], right: Sequence[int], nodes: Sequence[str], leaves: Sequence[str], between: str, end: str
) -> str:
    """Return a tree as text that nests, by an explicit stack.

    nodes   : what stands before the left child of each
    between : what stands before a right child
    end         : what stands after it
    """
    parts: list[str] = []
    waiting: list[int | str] = [0 if len(nodes) else -1]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item < 0:
            parts.append(leaves[~item])
        else:
            parts.append(nodes[item])
            waiting += (end, right[item], between, left[item])
    return "".join(parts)


# ---- the sum --------------------------------------------------------------------------------------------------------


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


def with_base_tree(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble with its base score in its trees, for formats that have none; the same scores.

    It becomes a first tree of one leaf, or is added to the leaves of the first tree where the sum is divided by the
    number of trees. A model without trees gets one of one leaf.
    """
    base = float(ensemble.base_score)
    leaf = one_leaf(base)
    if ensemble.trees:
        first, *others = ensemble.trees
        if base == 0:
            return replace(ensemble, base_score=0.0)
        if ensemble.average:
            trees = (replace(first, leaf_values=first.leaf_values + base), *others)
            return replace(ensemble, trees=trees, base_score=0.0)
        if first.leaf_documents is not None:
            leaf = replace(leaf, leaf_documents=np.array([first.leaf_documents.sum()], np.int64))
        if first.split_gains is not None:
            leaf = replace(leaf, split_gains=np.zeros(0))
    return replace(ensemble, trees=(leaf, *ensemble.trees), base_score=0.0)


def least_score(ensemble: Ensemble) -> float:
    """Return the least score that a sum of trees can give: its smallest leaves, added as it adds."""
    kind = np.float32 if ensemble.sums == "float32" else np.float64
    total = kind(ensemble.base_score)
    for tree in ensemble.trees:
        total = kind(float(total) + float(tree.leaf_values.min()))
    return float(total)


def raise_scores(ensemble: Ensemble, path: str, format: str) -> tuple[Ensemble, float]:
    """Return the model with a last tree that makes its least possible score 0, and what that tree adds.

    As a rounded sum never falls when a term rises, the least score is the tool's own sum of the smallest leaf of each
    tree, and the sum of that and its opposite is 0 exactly. For the same reason no two documents change order, but
    scores that round to the same sum tie. A model without a score below 0 is returned as it is, with 0.
    """
    added = as_plain_sum(ensemble) if ensemble.average else ensemble
    as_read = added
    if MODEL_FORMATS[format].reader is not None:
        as_read = parse_model(content_of(added, path, format).content, path, format)
    least = least_score(as_read)
    if least >= 0:
        return ensemble, 0.0
    return replace(added, trees=(*added.trees, one_leaf(-least)), rankers=()), -least


def leaves_in_float32(flat: FlatTrees, tool: str) -> Float32Array:
    """Return the leaf values rounded to float32; ModelError when one is too large."""
    with np.errstate(over="ignore"):
        leaves = flat.leaf_values.astype(np.float32)
    if not np.isfinite(leaves).all():
        largest = float(np.abs(flat.leaf_values).max())
        raise ModelError(f"a leaf value of {largest:.3g} is too large for {tool}, which holds them as float32 numbers")
    return leaves


# ---- plain nodes ----------------------------------------------------------------------------------------------------


def most_members(ensemble: Ensemble) -> int:
    """Return how many categories the sets of a model may list; longer ones are written as chains of ranges."""
    return FEW_MEMBERS + MEMBERS_OF_BOUND * sum(len(tree.bounds) for tree in ensemble.trees if tree.bounds is not None)


def nodes_of_bounds(ensemble: Ensemble) -> Iterator[tuple[tuple[int, int], Float64Array, bool]]:
    """Yield each node of several bounds: tree and node, its threshold and bounds, whether missing values go left."""
    for number, tree in enumerate(ensemble.trees):
        if tree.bound_offsets is None or tree.bounds is None:
            continue
        for node in np.flatnonzero(np.diff(tree.bound_offsets)).tolist():
            bounds = tree.bounds[tree.bound_offsets[node] : tree.bound_offsets[node + 1]]
            yield (number, node), np.append(tree.thresholds[node], bounds), bool(tree.missing_left[node])


def expand_bounds(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble with a chain of plain nodes for each node that has several bounds; see `expand_except`."""
    return expand_except(ensemble, {})[0]


def expand_except(ensemble: Ensemble, kept: Mapping[tuple[int, int], T]) -> tuple[Ensemble, dict[tuple[int, int], T]]:
    """Return the ensemble with a chain of plain nodes for each node that has several bounds; the same scores.

    kept : by (tree, node), what the format holds as it is; such a node becomes one without bounds, whose threshold
           means nothing

    Returns also what is kept by where it is in the result, where nodes may be copies.
    A node with threshold t and bounds b1, b2 becomes x <= t (left), else x <= b1 (right), else x <= b2 (left), else
    right; its subtrees are copied as often as needed. Trees without such nodes are kept as they are; the others lose
    split_gains and leaf_documents, which do not add up over copies. ModelError when the model would grow too large:
    above 100,000 leaves and 4 times its own.
    """
    if all(tree.bounds is None for tree in ensemble.trees):
        return ensemble, {}
    kept_of: dict[int, dict[int, T]] = {}
    for (number, node), what in kept.items():
        kept_of.setdefault(number, {})[node] = what
    counts = [_bound_counts(tree, kept_of.get(number, {})) for number, tree in enumerate(ensemble.trees)]
    own = sum(tree.n_leaves for tree in ensemble.trees)
    most = max(MOST_GROWTH * own, USUAL_LEAVES)
    grown = sum(map(_expanded_leaves, ensemble.trees, counts))
    if grown > most:
        size = f"{grown:,.0f}" if grown < 1e15 else "more than 10^15"
        raise ModelError(
            "splits on sets of values, such as categories, need a chain of plain splits each in this format: the model"
            f" would grow from {counted(own, 'leaf', 'leaves')} to {size}, and {most:,} are allowed; train it"
            " without categorical features or with fewer categories in a split"
        )
    trees = []
    found = {}
    for number, tree in enumerate(ensemble.trees):
        plain, olds = _expand(tree, counts[number])
        trees.append(plain)
        of_tree = kept_of.get(number, {})
        found.update({(number, new): of_tree[old] for new, old in enumerate(olds) if old in of_tree})
    return replace(ensemble, trees=tuple(trees)), found


def _bound_counts(tree: Tree, kept: Mapping[int, object]) -> list[int]:
    """Return how many bounds each node has above its threshold; none for a node that is kept."""
    if tree.bound_offsets is None:
        return [0] * len(tree.thresholds)
    counts = np.diff(tree.bound_offsets)
    counts[list(kept)] = 0
    numbers: list[int] = counts.tolist()
    return numbers


def _expanded_leaves(tree: Tree, counts: list[int]) -> float:
    """Return the leaves that a tree would have, a float as they may be more than an integer array can count."""
    if not any(counts):
        return float(tree.n_leaves)
    left, right = tree.left.tolist(), tree.right.tolist()
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


def _expand(tree: Tree, counts: list[int]) -> tuple[Tree, Sequence[int]]:
    """Return the tree with plain nodes only, from the root down, left before right, and the node each comes from."""
    if tree.bounds is None or tree.bound_offsets is None or not any(counts):
        return replace(tree, bound_offsets=None, bounds=None), range(len(counts))
    left, right = tree.left.tolist(), tree.right.tolist()
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
    bound = tree.bound_offsets[old_nodes] + place_of - 1
    thresholds = np.where(place_of == 0, tree.thresholds[old_nodes], tree.bounds[np.maximum(bound, 0)])
    # A missing value that goes right passes the threshold and leaves the chain at its first bound, or at its end.
    missing = tree.missing_left[old_nodes] | (place_of == 1)
    left32, right32 = (np.array(numbers, np.int32) for numbers in children)
    plain = Tree(tree.split_columns[old_nodes], thresholds, missing, left32, right32, tree.leaf_values[leaves])
    return plain, olds


# ---- notes ----------------------------------------------------------------------------------------------------------


def growth_notes(ensemble: Ensemble, plain: Ensemble) -> list[str]:
    """Return a note when nodes of several bounds became chains of plain nodes."""
    own, grown = (sum(tree.n_leaves for tree in model.trees) for model in (ensemble, plain))
    if grown == own:
        return []
    return [
        f"splits on several ranges became chains of plain splits: {counted(grown, 'leaf', 'leaves')} instead of"
        f" {own:,}; the scores are the same"
    ]


def score_notes(
    ensemble: Ensemble, flat: FlatTrees, written: Float64Array, sums: str, tool: str, ordered: bool = True
) -> list[str]:
    """Return a note when scores can differ, with the most by which they can.

    written : float64[n_leaves], the leaf values as the tool has them
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
    what = f"{some(rounded, len(changed), 'leaf value')} rounded to float32, by at most {changed.max():.1e}, and "
    return [f"{what if rounded else ''}scores are {sums} sums in {tool}: a score can differ by at most {most:.1e}"]


def threshold_notes(thresholds: Float64Array, written: Float32Array, tool: str) -> list[str]:
    """Return a note when values that are no float32 numbers can change side, from `thresholds` to `written`."""
    finer = int(np.count_nonzero(of_less_or_equal32(written) != thresholds))
    if not finer:
        return []
    return [
        f"{some(finer, len(thresholds), 'threshold')} finer than float32, in which {tool} compares: rows of float32"
        " numbers come to the same leaves, others may not"
    ]


def some(number: int, total: int, noun: str, verb: str = "is", plural: str = "are") -> str:
    """Return how many of all there are, with their verb, such as `1 of 3 thresholds is`."""
    return f"{number:,} of {counted(total, noun)} {verb if number == 1 else plural}"


def goes_left_as_zero(nodes: Tree | FlatTrees) -> BoolArray:
    """Return whether 0 goes left at each node of a tree, or of all trees, bool[n_nodes]."""
    crossed = (nodes.thresholds < 0).astype(np.int64)
    if nodes.bounds is not None and nodes.bound_offsets is not None:
        node = np.repeat(np.arange(len(nodes.thresholds)), np.diff(nodes.bound_offsets))
        crossed += np.bincount(node[nodes.bounds < 0], minlength=len(nodes.thresholds))
    even: BoolArray = crossed % 2 == 0
    return even


def zero_side_notes(flat: FlatTrees, what: str, tool: str) -> list[str]:
    """Return a note when values that the tool takes as 0 go elsewhere in the model."""
    wrong = int(np.count_nonzero(flat.missing_left != goes_left_as_zero(flat)))
    if not wrong:
        return []
    sent = some(wrong, len(flat.thresholds), "split", "sends", "send")
    return [f"{sent} {what} to the other side than {tool}, which takes them as 0"]


def absent_notes(ensemble: Ensemble, tool: str, is_zero: bool) -> list[str]:
    """Return a note when an index that a row does not name, 0 or else missing to the tool, can go elsewhere."""
    other = sum(int(np.count_nonzero(tree.missing_left != goes_left_as_zero(tree))) for tree in ensemble.trees)
    if not other or (ensemble.absent == "zero") == is_zero:
        return []
    here, there, remedy = ("missing", "0", "nan for it") if is_zero else ("0", "missing", "zeros")
    return [
        f"an index that a row does not name is {here} to this model and {there} to {tool}, and"
        f" {counted(other, 'split')} distinguish them; write {remedy} in the rows"
    ]


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
