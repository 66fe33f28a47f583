"""Scoring: an ensemble prepared for the kernels, and rows scored in parallel.

A score is base_score + the leaf value of each tree, added in tree order in float64, or in float32 where the ensemble
says so: the same bits as a plain walk over the raw values (`x <= threshold` goes left, nan to the side the node
records), for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.data.dataset import Rows, SparseRows, pieces
from lmart.errors import ModelError
from lmart.kernels.row_arrays import contiguous_rows
from lmart.kernels.scoring import bit_vectors as kernels
from lmart.kernels.scoring import tree_walk
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.threads import WorkerPool, chunks

LARGEST_TABLES = 1 << 28  # bytes, of all conditions with several bounds
CODES = 255  # thresholds of one coded column; a node's code is 0..254, and 255 is above all of them
CHUNK = 1024  # rows of one call


class _DistinctThresholds(NamedTuple):
    """The thresholds of an ensemble without repetition: by ascending feature, then ascending.

    features   : int64[n_distinct]
    thresholds : float64[n_distinct]
    starts     : int64[n_features + 1], those of feature f are thresholds[starts[f]:starts[f + 1]]
    node_ranks : int64[n_nodes], place of each node's threshold among those of its feature
    bound_ranks : int64[n_bounds], the same of each further bound
    """

    features: Int64Array
    thresholds: Float64Array
    starts: Int64Array
    node_ranks: Int64Array
    bound_ranks: Int64Array


class _Ranges(NamedTuple):
    """The distinct conditions of nodes with several bounds.

    numbers      : int64[n_nodes], condition of each node, -1 for a node with a threshold only
    missing_left : bool[n_conditions], whether a missing value goes left
    starts       : int64[n_conditions], where the table of each starts
    table        : uint8[...], by the number of thresholds of the feature below a value: 0 goes left, 1 goes right
    """

    numbers: Int64Array
    missing_left: BoolArray
    starts: Int64Array
    table: UInt8Array


class _NodeCodes(NamedTuple):
    """The comparison of each node: a document goes left when its code in the coded column is <= the code of the node.

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
    """Return numbers of the distinct thresholds and further bounds of each feature."""
    bound_nodes = np.repeat(np.arange(len(flat.thresholds)), np.diff(flat.bound_offsets))
    columns = np.concatenate([flat.split_columns, flat.split_columns[bound_nodes]]).astype(np.int64)
    values = np.concatenate([flat.thresholds, flat.bounds])
    order = np.lexsort((values, columns))
    by_column, by_threshold = columns[order], values[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (by_column[1:] != by_column[:-1]) | (by_threshold[1:] != by_threshold[:-1])
    number = np.cumsum(is_new) - 1  # of the distinct (feature, threshold) pair
    features = by_column[is_new]
    starts = np.searchsorted(features, np.arange(n_features + 1))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = number - starts[by_column]
    n_nodes = len(flat.thresholds)
    return _DistinctThresholds(features, by_threshold[is_new], starts, ranks[:n_nodes], ranks[n_nodes:])


def _number_ranges(flat: FlatTrees, distinct: _DistinctThresholds) -> _Ranges:
    """Return numbers of the distinct conditions of nodes with several bounds, and the table of each."""
    numbers = np.full(len(flat.thresholds), -1, np.int64)
    known: dict[tuple[int, bool, bytes], int] = {}
    missing_left: list[bool] = []
    starts: list[int] = []
    tables: list[UInt8Array] = []
    size = 0  # of all tables
    for node in np.flatnonzero(np.diff(flat.bound_offsets)).tolist():
        feature = int(flat.split_columns[node])
        ranks = distinct.bound_ranks[flat.bound_offsets[node] : flat.bound_offsets[node + 1]]
        key = feature, bool(flat.missing_left[node]), np.append(distinct.node_ranks[node], ranks).tobytes()
        if key not in known:
            known[key] = len(known)
            crossed = np.zeros(int(distinct.starts[feature + 1] - distinct.starts[feature]) + 1, np.int64)
            crossed[[int(distinct.node_ranks[node]) + 1, *(ranks + 1).tolist()]] = 1
            missing_left.append(key[1])
            starts.append(size)
            size += len(crossed)
            if size > LARGEST_TABLES:
                raise ModelError("the model is too large to score: its categorical splits have too many conditions")
            tables.append((np.cumsum(crossed) % 2).astype(np.uint8))
        numbers[node] = known[key]
    table = np.concatenate([np.zeros(0, np.uint8), *tables])
    return _Ranges(numbers, np.array(missing_left, np.bool_), np.array(starts, np.int64), table)


def _plan_coding(flat: FlatTrees, n_features: int, absent: str) -> tuple[kernels.CodingPlan, _NodeCodes]:
    """Lay out the thresholds of each feature and the coded columns.

    A feature has one coded column for each side that its missing values go to and for each 255 of its thresholds, as
    far as nodes use them, and one for each distinct condition with several bounds, coded 0 (left) or 1 (right). A
    missing value is below all codes in the one and above all in the other, so nodes need no test for it.
    """
    distinct = _distinct_thresholds(flat, n_features)
    ranges = _number_ranges(flat, distinct)
    sizes = np.diff(distinct.starts)
    bits = np.array([int(size).bit_length() for size in sizes], dtype=np.int64)
    padded = (1 << bits) - 1
    grid_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(padded)])
    grid = np.full(int(grid_starts[-1]) + 1, np.inf)
    ranks = np.arange(len(distinct.features)) - distinct.starts[distinct.features]
    grid[1 + grid_starts[distinct.features] + ranks] = distinct.thresholds

    pieces = int(sizes.max(initial=1)) // CODES + 1
    plain = 2 * pieces  # keys of a feature for plain nodes; those for conditions with several bounds follow
    kinds = plain + len(ranges.starts)
    is_range = ranges.numbers >= 0
    kind = np.where(is_range, plain + ranges.numbers, flat.missing_left * pieces + distinct.node_ranks // CODES)
    coded, node_columns = np.unique(flat.split_columns.astype(np.int64) * kinds + kind, return_inverse=True)
    if len(coded) >= 1 << 23 or int(np.diff(flat.leaf_offsets).max(initial=0)) >= 1 << 26 or len(grid) >= 1 << 32:
        raise ModelError("the model is too large to score")
    coded_features, coded_kind = coded // kinds, coded % kinds
    coded_range = np.where(coded_kind >= plain, coded_kind - plain, -1)  # -1 takes the entry that is appended
    coded_starts = np.where(coded_range < 0, coded_kind % pieces * CODES, 0)
    missing_left = np.where(
        coded_range < 0, coded_kind // pieces == 1, np.append(ranges.missing_left, False)[coded_range]
    )
    missing_codes = np.where(missing_left, 0, CODES).astype(np.uint8)
    table_starts = np.append(ranges.starts, -1)[coded_range]
    if absent == "missing":
        absent_codes = missing_codes.copy()
    else:
        negative = distinct.features[distinct.thresholds < 0.0]
        below = np.bincount(negative, minlength=n_features)[coded_features]
        absent_codes = np.clip(below - coded_starts, 0, CODES).astype(np.uint8)
        in_table = table_starts >= 0
        absent_codes[in_table] = ranges.table[(table_starts + below)[in_table]]
    plan = kernels.CodingPlan(
        grid_starts[:-1].astype(np.uint32),
        bits.astype(np.uint8),
        grid,
        np.searchsorted(coded_features, np.arange(n_features + 1)).astype(np.uint32),
        coded_starts.astype(np.uint32),
        missing_codes,
        absent_codes,
        table_starts.astype(np.int64),
        ranges.table,
    )
    return plan, _NodeCodes(node_columns.astype(np.int64), np.where(is_range, 0, distinct.node_ranks % CODES))


def _order_leaves(flat: FlatTrees) -> _LeafOrder:
    """Order the leaves of each tree, those of smaller children first."""
    owner = flat.tree_of_node
    node_start, leaf_start = flat.node_offsets[owner], flat.leaf_offsets[owner]

    def numbered(child: Int32Array) -> Int64Array:
        """Return the number of each child: >= 0: a node among all nodes; < 0: ~ a leaf among all leaves."""
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


def _mask_trees(ensemble: Ensemble, flat: FlatTrees, nodes: _NodeCodes) -> kernels.MaskedTrees:
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
    return kernels.MaskedTrees(
        mask_starts[flat.node_offsets].astype(np.uint64),
        kernels.mask_words(nodes.columns[node], byte, order.flip[node], code, mask),
        flat.leaf_offsets.astype(np.uint64),
        leaf_values,
        _lowest_bits(),
        int(np.diff(flat.leaf_offsets).max(initial=0) + 7) // 8,
        ensemble.sums == "float32",
        float(max(len(ensemble.trees), 1)) if ensemble.average else 1.0,
    )


def _code_trees(flat: FlatTrees, nodes: _NodeCodes) -> tree_walk.CodedTrees:
    """Return trees whose nodes compare codes: after the roots, the two children of each node."""
    n_nodes, n_trees = len(nodes.columns), flat.n_trees
    left, right = flat.children
    pairs = n_trees + 2 * np.arange(n_nodes)  # place of each node's left child
    of_all = np.empty(n_nodes + len(flat.leaf_values), np.int64)  # place of each node, then of each leaf
    has_nodes = np.diff(flat.node_offsets) > 0
    of_all[np.where(has_nodes, flat.node_offsets[:-1], n_nodes + flat.leaf_offsets[:-1])] = np.arange(n_trees)
    of_all[left], of_all[right] = pairs, pairs + 1
    of_nodes, of_leaves = of_all[:n_nodes], of_all[n_nodes:]
    words, values = np.empty(len(of_all), np.uint64), np.zeros(len(of_all))
    words[of_nodes] = tree_walk.node_words(nodes.columns, nodes.codes, pairs)
    words[of_leaves] = tree_walk.node_words(0 * of_leaves, 0 * of_leaves + tree_walk.LAST_CODE, of_leaves)
    values[of_leaves] = flat.leaf_values
    return tree_walk.CodedTrees(words, values, n_trees)


def _lowest_bits() -> UInt8Array:
    """Return uint8[256], the lowest bit set in each byte."""
    return np.array([0, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))], np.uint8)


class Scorer:
    """An ensemble prepared for scoring; unchanged by scoring, so that threads may share it."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        flat = flatten(ensemble.trees)
        self._plan, nodes = _plan_coding(flat, ensemble.n_features, ensemble.absent)
        self._trees = _mask_trees(ensemble, flat, nodes)
        self._coded_trees = _code_trees(flat, nodes)

    def score(self, rows: SparseRows, column_map: Int32Array, pool: WorkerPool | None = None) -> Float64Array:
        """Return the score of each row, float64[n]. ModelError when one is too large for a number.

        column_map : int32[number of columns], the model's feature of each column of the rows, -1 for none
        """
        n = len(rows)
        scores = np.empty(n)
        arrays = contiguous_rows(rows.offsets, rows.columns, rows.values)
        base_score = float(self.ensemble.base_score)
        calls = [
            (arrays, column_map, self._plan, self._trees, self._coded_trees, base_score, scores, start, stop)
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

    def score_pieces(self, rows: Rows, column_map: Int32Array, pool: WorkerPool | None = None) -> Float64Array:
        """Return the score of each row, as `score` does, of rows that are converted piece by piece."""
        scores = np.empty(len(rows))
        for start, stop, piece in pieces(rows, len(column_map)):
            scores[start:stop] = self.score(piece, column_map, pool)
        return scores


class ModelScores:
    """The scores that a model gives a data set, collected while its rows are read block by block."""

    def __init__(self, model: Ensemble, pool: WorkerPool) -> None:
        self.matcher = FeatureMatcher(model)
        self.model = model
        self._scorer = Scorer(model)
        self._pool = pool
        self._parts: list[Float64Array] = [np.zeros(0)]

    def add(self, parts: Sequence[SparseRows], feature_ids: Int64Array, feature_names: Sequence[str] | None) -> None:
        """Score the next rows; there may be more columns than before."""
        columns = self.matcher.column_map(feature_ids, feature_names)
        self._parts += [self._scorer.score(rows, columns, self._pool) for rows in parts]

    def finish(self, source: str, tables: Mapping[str, Int64Array], strict: bool = False) -> Float64Array:
        """Return the score of each row, float64[n]; DataError as `FeatureMatcher.refuse`.

        tables : as `RankingDataset.table_features`
        """
        self.matcher.tables = tables
        self.matcher.refuse(source, strict)
        return np.concatenate(self._parts)
