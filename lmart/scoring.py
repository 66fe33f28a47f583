"""Scoring: an ensemble prepared for the kernels, and rows scored side by side.

A score is base_score + the leaf value of each tree, added in tree order in float64: the same bits as a plain walk over
the raw values (`x <= threshold` goes left, nan to the side the node records), for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.dataset import Counted, RankingDataset, SparseRows
from lmart.ensemble import Ensemble, FlatTrees, Ints, Longs, flatten
from lmart.errors import DataError, ModelError, quote
from lmart.kernels import scoring as kernels
from lmart.kernels.row_arrays import contiguous_rows
from lmart.threads import WorkerPool, chunks

CODES = 255  # thresholds of one coded column; a node's code is 0..254, and 255 is above all of them
CHUNK = 1024  # rows of one call
NAMED = 3  # unknown features named in a message


class _DistinctThresholds(NamedTuple):
    """The thresholds of an ensemble without repetition: by ascending feature, then ascending.

    features   : int64[n_distinct]
    thresholds : float64[n_distinct]
    starts     : int64[n_features + 1], those of feature f are thresholds[starts[f]:starts[f + 1]]
    node_ranks : int64[n_nodes], place of each node's threshold among those of its feature
    """

    features: Int64Array
    thresholds: Float64Array
    starts: Int64Array
    node_ranks: Int64Array


class _NodeCodes(NamedTuple):
    """What each node compares: a document goes left when its code in a coded column is at most that of the node.

    columns : int64[n_nodes], coded columns
    codes   : int64[n_nodes], 0..254
    """

    columns: Int64Array
    codes: Int64Array


class _LeafOrder(NamedTuple):
    """The order of the leaves of each tree, the smaller child of every node first.

    positions : int64[n_leaves], place of each leaf in its tree
    first     : int64[n_nodes], place of each node's first leaf
    n_first   : int64[n_nodes], leaves of the smaller child, which come first
    flip      : bool[n_nodes], whether the right child is the smaller one
    """

    positions: Int64Array
    first: Int64Array
    n_first: Int64Array
    flip: BoolArray


def _distinct_thresholds(flat: FlatTrees, n_features: int) -> _DistinctThresholds:
    """Number the thresholds of each feature."""
    columns = flat.split_columns.astype(np.int64)
    order = np.lexsort((flat.thresholds, columns))
    by_column, by_threshold = columns[order], flat.thresholds[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (by_column[1:] != by_column[:-1]) | (by_threshold[1:] != by_threshold[:-1])
    number = np.cumsum(is_new) - 1  # of the distinct (feature, threshold) pair
    features = by_column[is_new]
    starts = np.searchsorted(features, np.arange(n_features + 1))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = number - starts[by_column]
    return _DistinctThresholds(features, by_threshold[is_new], starts, ranks)


def _plan_coding(flat: FlatTrees, n_features: int, absent: str) -> tuple[kernels.CodingPlan, _NodeCodes]:
    """Lay out the thresholds of each feature and the coded columns.

    A feature has one coded column for each side that its missing values go to and for each 255 of its thresholds, as
    far as nodes use them; a missing value is below all codes in the one, above all in the other, so no node asks
    about it.
    """
    distinct = _distinct_thresholds(flat, n_features)
    sizes = np.diff(distinct.starts)
    bits = np.array([int(size).bit_length() for size in sizes], dtype=np.int64)
    padded = (1 << bits) - 1
    grid_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(padded)])
    grid = np.full(int(grid_starts[-1]) + 1, np.inf)
    ranks = np.arange(len(distinct.features)) - distinct.starts[distinct.features]
    grid[1 + grid_starts[distinct.features] + ranks] = distinct.thresholds

    pieces = int(sizes.max(initial=1)) // CODES + 1
    columns = flat.split_columns.astype(np.int64)
    keys = (columns * 2 + flat.missing_left) * pieces + distinct.node_ranks // CODES
    coded, node_columns = np.unique(keys, return_inverse=True)
    if len(coded) >= 1 << 23 or int(np.diff(flat.leaf_offsets).max(initial=0)) >= 1 << 26 or len(grid) >= 1 << 32:
        raise ModelError("the model is too large to score")
    coded_starts = coded % pieces * CODES
    coded_features = coded // (2 * pieces)
    missing_codes = np.where(coded // pieces % 2 == 1, 0, CODES).astype(np.uint8)
    if absent == "missing":
        absent_codes = missing_codes.copy()
    else:
        negative = distinct.features[distinct.thresholds < 0.0]
        below = np.bincount(negative, minlength=n_features)[coded_features]
        absent_codes = np.clip(below - coded_starts, 0, CODES).astype(np.uint8)
    plan = kernels.CodingPlan(
        grid_starts[:-1].astype(np.uint32),
        bits.astype(np.uint8),
        grid,
        np.searchsorted(coded_features, np.arange(n_features + 1)).astype(np.uint32),
        coded_starts.astype(np.uint32),
        missing_codes,
        absent_codes,
    )
    return plan, _NodeCodes(node_columns.astype(np.int64), distinct.node_ranks % CODES)


def _order_leaves(flat: FlatTrees) -> _LeafOrder:
    """Order the leaves of each tree, those of smaller children first."""
    owner = flat.tree_of_node
    node_start, leaf_start = flat.node_offsets[owner], flat.leaf_offsets[owner]

    def numbered(child: Int32Array) -> Int64Array:  # >= 0: a node among all nodes; < 0: ~ a leaf among all leaves
        wide = child.astype(np.int64)
        return np.where(wide >= 0, wide + node_start, ~(~wide + leaf_start))

    left, right = numbered(flat.left), numbered(flat.right)
    levels = [flat.node_offsets[:-1][np.diff(flat.node_offsets) > 0]]  # nodes as far from their roots
    while len(levels[-1]):
        below = np.concatenate([left[levels[-1]], right[levels[-1]]])
        levels.append(below[below >= 0])
    # Leaves of each node, from below; the entry past the nodes stands for a leaf.
    sizes = np.ones(len(owner) + 1, np.int64)
    for level in reversed(levels):
        sizes[level] = sizes[np.maximum(left[level], -1)] + sizes[np.maximum(right[level], -1)]
    left_size, right_size = sizes[np.maximum(left, -1)], sizes[np.maximum(right, -1)]
    flip = right_size < left_size
    smaller, larger = np.where(flip, right, left), np.where(flip, left, right)
    n_first = np.minimum(left_size, right_size)
    # The place of each node's first leaf in its tree, from above.
    first = np.zeros(len(owner), np.int64)
    positions = np.zeros(len(flat.leaf_values), np.int64)
    for level in levels:
        for child, start in ((smaller[level], first[level]), (larger[level], first[level] + n_first[level])):
            inner = child >= 0
            first[child[inner]] = start[inner]
            positions[~child[~inner]] = start[~inner]
    return _LeafOrder(positions, first, n_first, flip)


def _mask_trees(flat: FlatTrees, nodes: _NodeCodes) -> kernels.MaskedTrees:
    """Order the leaves of each tree, and write the masks of each node, bitvector byte by byte."""
    order = _order_leaves(flat)
    n_nodes = len(order.first)
    leaf_owner = np.repeat(np.arange(flat.n_trees), np.diff(flat.leaf_offsets))
    leaf_values = np.empty(len(order.positions))
    leaf_values[flat.leaf_offsets[leaf_owner] + order.positions] = flat.leaf_values

    last = order.first + order.n_first - 1
    n_masks = last // 8 - order.first // 8 + 1 if n_nodes else np.zeros(0, np.int64)
    node = np.repeat(np.arange(n_nodes), n_masks)
    mask_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_masks)])
    byte = order.first[node] // 8 + np.arange(len(node)) - mask_starts[node]
    low = np.maximum(order.first[node] - 8 * byte, 0)
    high = np.minimum(order.first[node] + order.n_first[node] - 8 * byte, 8)
    mask = 255 ^ ((1 << high) - (1 << low))
    code = np.where(order.flip, CODES - 1 - nodes.codes, nodes.codes)[node]  # c <= t is 255 - c > 254 - t
    flip = order.flip[node].astype(np.int64)
    masks = (nodes.columns[node] << 40) | (byte << 17) | (flip << 16) | (code << 8) | mask
    return kernels.MaskedTrees(
        mask_starts[flat.node_offsets].astype(np.uint64),
        masks.astype(np.uint64),
        flat.leaf_offsets.astype(np.uint64),
        leaf_values,
        _lowest_bits(),
        int(np.diff(flat.leaf_offsets).max(initial=0) + 7) // 8,
    )


def _lowest_bits() -> UInt8Array:
    """Return uint8[256], the lowest bit set in each byte."""
    return np.array([0, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))], np.uint8)


class Scorer:
    """An ensemble prepared for scoring; unchanged by scoring, so that threads may share it."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        flat = flatten(ensemble.trees)
        self._plan, nodes = _plan_coding(flat, ensemble.n_features, ensemble.absent)
        self._trees = _mask_trees(flat, nodes)

    def score(self, rows: SparseRows, column_map: Int32Array, pool: WorkerPool | None = None) -> Float64Array:
        """Return the score of each row, float64[n]. ModelError when one is too large for a number.

        rows       : n rows
        column_map : int32[number of columns], the model's feature of each column of the rows, -1 for none, as
                     `FeatureMatcher` gives it
        pool       : None scores on the calling thread
        """
        n = len(rows)
        scores = np.empty(n)
        arrays = contiguous_rows(rows.offsets, rows.columns, rows.values)
        features = np.where(column_map < 0, self.ensemble.n_features, column_map).astype(np.int32)
        base_score = float(self.ensemble.base_score)
        calls = [
            (arrays, features, self._plan, self._trees, base_score, scores, start, stop)
            for start, stop in chunks(n, CHUNK)
        ]
        if pool is None:
            for call in calls:
                kernels.score_rows(*call)
        else:
            pool.run(kernels.score_rows, calls)
        if not np.isfinite(scores).all():
            raise ModelError("the leaf values of the model add up to more than a number can hold; the model is damaged")
        return scores


class FeatureMatcher:
    """Finds the model's feature for each column of the data: by name when both have names, else by index.

    Tables say by their header which features they have, so that a feature without a column is told. LETOR text names
    only what is not zero: that a feature never occurs in it says nothing.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._by_id = {int(index): place for place, index in enumerate(ensemble.feature_ids)}
        names = ensemble.feature_names
        self._by_name = None if names is None else {name: place for place, name in enumerate(names)}
        self._map = np.zeros(0, np.int32)
        self._ids: Longs = np.zeros(0, np.int64)  # of the data's columns
        self.tables: Mapping[str, Longs] = {}  # by input that is a table: the ids of the features it has a column for
        self.unknown: list[str] = []
        self.half_named: str | None = None  # 'data' or 'model' when only that one has names, so that numbers decide

    def column_map(self, feature_ids: Sequence[int] | Longs, feature_names: Sequence[str] | None = None) -> Ints:
        """Return int32[n_columns], the model's feature of each column, -1 where it has none.

        May be called again with more columns than before; `unknown` collects what the user calls the features that
        the model does not have.
        """
        if (feature_names is None) != (self._by_name is None):
            self.half_named = "model" if feature_names is None else "data"
        known = len(self._map)
        n = len(feature_ids)
        if n > known:
            added = np.full(n - known, -1, np.int32)
            for i in range(known, n):
                index = int(feature_ids[i])
                if self._by_name is not None and feature_names is not None:
                    place = self._by_name.get(feature_names[i], -1)
                else:
                    place = self._by_id.get(index, -1)
                added[i - known] = place
                if place < 0:
                    self.unknown.append(str(index) if feature_names is None else feature_names[i])
            self._map = np.concatenate([self._map, added])
            self._ids = np.asarray(feature_ids, np.int64)
        return self._map

    @property
    def known_columns(self) -> Ints:
        """The map of the columns seen so far, as `column_map` returned it last."""
        return self._map

    def describe_unknown(self) -> str:
        """Say how many columns the model has no feature for, and name a few."""
        n = len(self.unknown)
        features = ("feature" if len(self._map) == 1 else "features") + (" is" if n == 1 else " are")
        return f"{n} of {len(self._map)} {features} not in the model: {_listed(self.unknown)}"

    def missing(self) -> dict[str, list[str]]:
        """Return, for each table that lacks columns for features of the model, what the user calls those features.

        Features that trees split on come first.
        """
        found = {}
        for path, ids in self.tables.items():
            there = np.zeros(self._ensemble.n_features + 1, np.bool_)  # the last one stands for -1
            there[self._map[np.isin(self._ids, ids)]] = True
            if lacking := np.flatnonzero(~there[:-1]).tolist():
                used = self._split_on()
                lacking.sort(key=lambda place: place not in used)
                found[path] = [self._ensemble.feature_name(place) for place in lacking]
        return found

    def _split_on(self) -> set[int]:
        return {column for tree in self._ensemble.trees for column in tree.split_columns.tolist()}

    def warnings(self, source: str) -> list[str]:
        """Return what the user should know of the match: numbers instead of names, features that only one of data and
        model has."""
        called = _called(source)
        found = []
        if self.half_named is not None and len(self.unknown) < len(self._map):
            found.append(f"features are matched by number, not by name: only the {self.half_named} has names")
        if self.unknown:
            found.append(f"{called}: {self.describe_unknown()}; scored without{self._hint()}")
        used = {self._ensemble.feature_name(place) for place in self._split_on()}
        for path, names in self.missing().items():
            what = describe_missing(names, self._ensemble.n_features, "the model", self._ensemble.absent)
            idle = f"; no tree splits on {'it' if len(names) == 1 else 'them'}"
            found.append(f"{_called(path)}: {what}{idle if used and names[0] not in used else ''}")
        return found

    def refuse(self, source: str, strict: bool = False) -> None:
        """Raise DataError when the data cannot be meant for the model, or when `strict` and one of both has a feature
        that the other does not have."""
        self.refuse_misfit(source)
        if not strict:
            return
        if self.unknown:
            raise DataError(f"{self.describe_unknown()}; drop them from the data, or do without --strict", source)
        for path, names in self.missing().items():
            what = describe_missing(names, self._ensemble.n_features, "the model")
            raise DataError(f"{what}; add {'it' if len(names) == 1 else 'them'}, or do without --strict", path)

    def refuse_misfit(self, source: str) -> None:
        """Raise DataError when the data cannot be meant for the model."""
        self.refuse_foreign(source)
        if off := self.off_by_one:
            raise DataError(off, source)

    def refuse_foreign(self, source: str) -> None:
        """Raise DataError when the data has features, or columns, but none of the model's."""
        if self.foreign:
            model = self._by_name if self._by_name is not None else self._by_id
            theirs, ours = quote(self.unknown[0]) if self.unknown else "none", quote(str(next(iter(model))))
            raise DataError(
                f"no feature of the data is in the model: the data has {theirs}, the model has {ours}; "
                "give data with the features that the model was trained on",
                source,
            )

    @property
    def foreign(self) -> bool:
        """Whether the data has features so far, or is a table, but has none of the model's."""
        has_some = bool(self.unknown) or bool(self.tables)
        return has_some and len(self.unknown) == len(self._map) and bool(self._by_id)

    @property
    def off_by_one(self) -> str | None:
        """What to say when one of data and model numbers its features from 0 and the other the same ones from 1.

        With names in one of them only, names count from 1, so a feature 0 in the other is enough. Else every feature
        of the data must be one of the model moved by one, and none of them may be missing: data that merely leaves
        zeros out looks like that only if the first feature is zero in every row and a new one stands behind the last.
        """
        if not len(self._map) or not self._by_id or (self._by_name is not None and self.half_named is None):
            return None
        data_has, model_has = bool((self._ids == 0).any()), 0 in self._by_id
        if data_has == model_has:
            return None
        if self.half_named is None:
            if not self.unknown or len(self._map) != len(self._by_id):
                return None
            moved = np.sort(self._ids) + (-1 if model_has else 1)
            if not np.array_equal(moved, np.sort(self._ensemble.feature_ids)):
                return None
        elif self.half_named != ("data" if model_has else "model"):
            return None
        last = (int(self._ids.max()), int(self._ensemble.feature_ids[-1]))
        first = (0, 1) if data_has else (1, 0)
        names = "" if self.half_named is None else f" (the {self.half_named} by the order of its names)"
        new = (
            f", or leave out {quote(self.unknown[0])} if it is new (--ignore-columns)" if len(self.unknown) == 1 else ""
        )
        return (
            f"the data numbers its features {first[0]} to {last[0]} and the model {first[1]} to {last[1]}{names}, so "
            f"that each would be taken for its neighbour; number them alike{new if not names else ''}"
        )

    def _hint(self) -> str:
        """Return a question where it seems that one of data and model counts from 0 and the other from 1."""
        if len(self.unknown) > 1 or (self._by_name is not None and self.half_named is None):
            return ""
        data_has, model_has = bool((self._ids == 0).any()), 0 in self._by_id
        if data_has == model_has or self.unknown[0] not in ("0", str(max(self._by_id) + 1)):
            return ""
        if not model_has and 1 not in self._by_id:
            return ""
        return f"; does the data number its features from {1 - data_has}, the model from {1 - model_has}?"


def describe_missing(names: Sequence[str], total: int, whose: str, absent: str | None = None) -> str:
    """Say how many of the features have no column in a table, and name a few.

    names : of those; total : of all that the table should have; whose : who has those
    absent : what a missing cell counts as, None to leave it out
    """
    n = len(names)
    counts = "" if absent is None else f"; counted as {'0' if absent == 'zero' else 'missing'}"
    verb = "has" if n == 1 else "have"
    return f"{n} of {total} feature{'s' * (total != 1)} of {whose} {verb} no column: {_listed(names)}{counts}"


def missing_columns(dataset: Counted) -> dict[str, str]:
    """Return, for each table of a data set of several inputs that lacks a column for a feature of the others, what to
    say of it. DataError when one numbers the same features from 0 and another from 1."""
    found = {}
    of_tables = {path: np.sort(ids) for path, ids in dataset.table_features.items()}
    if dataset.feature_names is None:
        from_zero = [(path, ids) for path, ids in of_tables.items() if len(ids) and ids[0] == 0]
        for path, ids in of_tables.items():
            for other, others in from_zero:
                if np.array_equal(ids, others + 1):
                    what = f"the features are numbered {ids[0]} to {ids[-1]}, but 0 to {others[-1]} in {_called(other)}"
                    raise DataError(f"{what}; number them alike", path)
    names = dataset.feature_names or tuple(map(str, dataset.feature_ids.tolist()))
    for path, ids in of_tables.items():
        if lacking := np.flatnonzero(~np.isin(dataset.feature_ids, ids)).tolist():
            found[path] = describe_missing([names[i] for i in lacking], len(names), "the data")
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quote, names[:NAMED])) + (", ..." if len(names) > NAMED else "")


def _called(source: str) -> str:
    return "standard input" if source == "-" else source


def match_dataset(ensemble: Ensemble, dataset: RankingDataset) -> FeatureMatcher:
    """Return what finds the model's feature of each column of the data set."""
    matcher = FeatureMatcher(ensemble)
    matcher.column_map(dataset.feature_ids, dataset.feature_names)
    matcher.tables = dataset.table_features
    return matcher
