"""An ensemble as a plain sum of trees with one threshold a node, and notes on what another tool's format changes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from lmart.array_types import BoolArray, Float32Array, Float64Array, Int32Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.models.plain_nodes import expand_bounds
from lmart.formats.models.thresholds import of_less_or_equal32
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree

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
