"""The tests of LightGBM's nodes as exact conditions on float64 values, and back.

LightGBM takes every |x| <= 1e-35 (as float32) as 0 before it compares; a node then sends missing values, zeros or no
value at all to its default side; a categorical node cuts the value to a whole number and looks it up in a set.
Source: LightGBM, Tree::NumericalDecision and Tree::CategoricalDecision.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt32Array
from lmart.errors import ModelError
from lmart.formats.models.nodes import LARGEST_NUMBER, set_edges
from lmart.formats.models.targets import expand_except, most_members, nodes_of_bounds
from lmart.scoring.ensemble import Ensemble, FlatTrees

ZERO = float(np.float32(1e-35))  # values up to it are 0 to LightGBM
BELOW_ZERO = float(np.nextafter(-ZERO, -np.inf))  # the largest value that is below 0 to it
LARGEST_CATEGORY = 2**31 - 1
MOST_WORDS = 1 << 20  # of one set: categories up to 33 million
MOST_BITS = 1 << 26  # of all sets that are written as bits: a set takes one for each number up to its largest

CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of decision_type
NONE, ZERO_MISSING, NAN_MISSING = 0, 1, 2  # its missing types, in the next two bits


Split: TypeAlias = tuple[float, int] | Int64Array
"""The threshold and decision_type of a node that takes zeros to its default side; or the categories that go to the
right child of an ensemble, int64[n, 2]: ranges of numbers, each from its first to before its end."""


def visible_thresholds(thresholds: Float64Array) -> Float64Array:
    """Return the thresholds as LightGBM's rule for values near 0 makes them, float64[n], finite: x <= T as tested."""
    finite = np.clip(thresholds, -LARGEST_NUMBER, LARGEST_NUMBER)
    near_zero = np.where(finite < 0, BELOW_ZERO, ZERO)
    result: Float64Array = np.where((finite >= -ZERO) & (finite < ZERO), near_zero, finite)
    return result


class Conditions(NamedTuple):
    """The tests of n nodes, as those of `Tree`.

    swapped       : bool[n], whether what LightGBM calls the left child is the right one of `Tree`
    bound_offsets : int64[n + 1]
    bounds        : float64[bound_offsets[n]]
    """

    thresholds: Float64Array
    missing_left: BoolArray
    swapped: BoolArray
    bound_offsets: Int64Array
    bounds: Float64Array

    def lay_out(
        self, node_offsets: Int64Array, columns: Int32Array, left: Int64Array, right: Int64Array, leaves: Float64Array
    ) -> FlatTrees:
        """Return the trees that have these tests; children are those of LightGBM."""
        return FlatTrees(
            node_offsets,
            columns,
            self.thresholds,
            self.missing_left,
            np.where(self.swapped, right, left).astype(np.int32),
            np.where(self.swapped, left, right).astype(np.int32),
            leaves,
            self.bound_offsets,
            self.bounds,
        )


def read_conditions(
    thresholds: Float64Array, decision_types: Int64Array, categorical: dict[int, Float64Array], path: str
) -> Conditions:
    """Return the conditions of n nodes.

    thresholds     : float64[n], may be infinite; anything for categorical nodes
    decision_types : int64[n], the bits of LightGBM's text format
    categorical    : of each categorical node, what `range_edges` gives for the categories that go left
    """
    is_categorical = (decision_types & CATEGORICAL) != 0
    default_left = (decision_types & DEFAULT_LEFT) != 0
    missing = (decision_types >> 2) & 3
    plain = visible_thresholds(np.where(is_categorical, 0.0, thresholds))
    missing_left = np.where(missing == NONE, plain >= 0, default_left) | is_categorical
    # A node whose default side takes zeros: those that the threshold would send to the other side.
    zero_left = ~is_categorical & (missing == ZERO_MISSING) & default_left & (plain < 0)
    zero_right = ~is_categorical & (missing == ZERO_MISSING) & ~default_left & (plain > 0)
    result = np.where(zero_left & (plain == BELOW_ZERO), ZERO, plain)
    result = np.where(zero_right, BELOW_ZERO, result)
    edges = dict(categorical)
    for node in np.flatnonzero(zero_left & (plain != BELOW_ZERO)).tolist():
        edges[node] = np.array([plain[node], BELOW_ZERO, ZERO])
    for node in np.flatnonzero(zero_right & (plain != ZERO)).tolist():
        edges[node] = np.array([BELOW_ZERO, ZERO, plain[node]])
    offsets, bounds = set_edges(result, edges, path)
    return Conditions(result, missing_left, is_categorical, offsets, bounds)


def range_edges(ranges: Int64Array) -> Float64Array:
    """Return where the test of a set of categories changes sides: it holds above an odd number of edges, float64.

    ranges : int64[n, 2], ascending and apart, each from its first to before its end; category c > 0 is every value from
             c to below c + 1, category 0 every value between -1 and 1
    """
    first, end = ranges[:, 0].astype(np.float64), ranges[:, 1].astype(np.float64)
    low = np.where(first == 0, -1.0, np.nextafter(first, -np.inf))
    edges: Float64Array = np.column_stack([low, np.nextafter(end, -np.inf)]).ravel()
    return edges


def set_ranges(words: UInt32Array, path: str) -> Int64Array:
    """Return the ranges of a set that is kept as bits, the lowest of the first word first; int64[n, 2], ascending."""
    if len(words) > MOST_WORDS:
        raise ModelError(f"a set of categories goes up to {len(words) * 32:,}; the model is damaged", path)
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    changes = np.flatnonzero(np.diff(bits, prepend=np.uint8(0), append=np.uint8(0)))
    return changes.astype(np.int64).reshape(-1, 2)


def set_words(ranges: Int64Array) -> UInt32Array:
    """Return a set as bits, uint32: the opposite of `set_ranges`."""
    bits = np.zeros(((int(ranges[-1, 1]) - 1) // 32 + 1) * 32, np.uint8)
    for first, end in ranges.tolist():
        bits[first:end] = 1
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def set_members(ranges: Int64Array) -> Int64Array:
    """Return the numbers in ranges, int64, ascending."""
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(first, end) for first, end in ranges.tolist())])


def write_conditions(ensemble: Ensemble, is_text: bool = True) -> tuple[Ensemble, dict[tuple[int, int], Split]]:
    """Return the ensemble with plain nodes, and by (tree, node) which of them are splits of LightGBM's own kinds.

    is_text : the target has sets as bits, and splits that send zeros to their default side; else it lists the members
              of sets

    ModelError when the rest would take too many plain nodes.
    """
    kept: dict[tuple[int, int], Split] = {}
    room = MOST_BITS if is_text else most_members(ensemble)
    for place, edges, missing_left in nodes_of_bounds(ensemble):
        split = _special_split(edges, missing_left)
        if isinstance(split, tuple):
            size = 0 if is_text else room + 1
        elif split is not None:
            size = int(split[-1, 1] if is_text else (split[:, 1] - split[:, 0]).sum())
        if split is not None and size <= room:
            room -= size
            kept[place] = split
    return expand_except(ensemble, kept)


def _special_split(edges: Float64Array, missing_left: bool) -> Split | None:
    """Return the split of LightGBM that these bounds are, None when they are none."""
    if len(edges) == 3:
        if missing_left and edges[1] == BELOW_ZERO and edges[2] == ZERO:
            return float(edges[0]), (ZERO_MISSING << 2) | DEFAULT_LEFT
        if not missing_left and edges[0] == BELOW_ZERO and edges[1] == ZERO:
            return float(edges[2]), ZERO_MISSING << 2
    if len(edges) % 2 or not missing_left:
        return None
    low = np.where(edges[::2] == -1.0, 0.0, np.nextafter(edges[::2], np.inf))
    high = np.nextafter(edges[1::2], np.inf)
    is_whole = (low == np.floor(low)) & (high == np.floor(high)) & (low >= 0) & (high > low)
    is_whole &= ((low > 0) | (edges[::2] == -1.0)) & (high <= 32 * MOST_WORDS)
    return np.column_stack([low, high]).astype(np.int64) if is_whole.all() else None
