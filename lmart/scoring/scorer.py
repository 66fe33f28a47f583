"""Scoring: an ensemble prepared for the kernels, and rows scored in parallel.

A score is base_score + the leaf value of each tree, added in tree order in float64, or in float32 where the ensemble
says so: the same bits as a plain walk over the raw values (`x <= threshold` goes left, nan to the side the node
records), for any number of threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array, UInt32Array
from lmart.data.categories import Categories, with_numbers
from lmart.data.dataset import Features, Rows, SparseRows, pieces
from lmart.errors import ModelError
from lmart.kernels.row_arrays import contiguous_rows
from lmart.kernels.scoring import bit_vectors as kernels
from lmart.kernels.scoring import step_trees, tree_walk
from lmart.scoring.ensemble import Ensemble, FlatTrees, Tree, flatten
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


class _Table(NamedTuple):
    """A coded column whose codes are listed.

    feature      : whose values are coded
    codes        : uint8[n_thresholds + 1], by the number of thresholds of the feature below a value
    missing_code : of a missing value
    """

    feature: int
    codes: UInt8Array
    missing_code: int


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


def _range_tables(flat: FlatTrees, distinct: _DistinctThresholds) -> tuple[Int64Array, list[_Table]]:
    """Return the tables of the distinct conditions with several bounds, and the table of each node, int64[n_nodes].

    Code 0 goes left, 1 goes right; -1 is for a node with a threshold only.
    """
    numbers = np.full(len(flat.thresholds), -1, np.int64)
    places: dict[tuple[int, bool, bytes], int] = {}
    tables: list[_Table] = []
    size = 0  # of all tables
    for node in np.flatnonzero(np.diff(flat.bound_offsets)).tolist():
        feature = int(flat.split_columns[node])
        ranks = distinct.bound_ranks[flat.bound_offsets[node] : flat.bound_offsets[node + 1]]
        key = feature, bool(flat.missing_left[node]), np.append(distinct.node_ranks[node], ranks).tobytes()
        if key not in places:
            places[key] = len(places)
            crossed = np.zeros(int(distinct.starts[feature + 1] - distinct.starts[feature]) + 1, np.int64)
            crossed[[int(distinct.node_ranks[node]) + 1, *(ranks + 1).tolist()]] = 1
            size += len(crossed)
            if size > LARGEST_TABLES:
                raise ModelError("the model is too large to score: its categorical splits have too many conditions")
            tables.append(_Table(feature, (np.cumsum(crossed) % 2).astype(np.uint8), 0 if key[1] else CODES))
        numbers[node] = places[key]
    return numbers, tables


def _step_tables(flat: FlatTrees, distinct: _DistinctThresholds, first: int) -> list[_Table]:
    """Return a table for each tree from the first of one feature on: its codes are the leaves."""
    roots = flat.node_offsets[first:-1]
    features = flat.split_columns[roots].astype(np.int64)
    sizes = np.diff(distinct.starts)[features] + 2  # the last is for a missing value
    tree = np.repeat(np.arange(len(roots)), sizes)
    ends = np.cumsum(sizes)
    rank = np.arange(len(tree)) - (ends - sizes)[tree]
    is_missing = rank == sizes[tree] - 1
    place = np.zeros(len(tree), np.int64)  # the node, then ~ the leaf
    while (walking := np.flatnonzero(place >= 0)).size:
        node = place[walking] + roots[tree[walking]]
        goes_left = np.where(is_missing[walking], flat.missing_left[node], rank[walking] <= distinct.node_ranks[node])
        place[walking] = np.where(goes_left, flat.left[node], flat.right[node])
    leaves = (~place).astype(np.uint8)
    return [
        _Table(feature, leaves[end - size : end - 1], int(leaves[end - 1]))
        for feature, size, end in zip(features.tolist(), sizes.tolist(), ends.tolist(), strict=True)
    ]


def _lay_out(distinct: _DistinctThresholds) -> tuple[UInt32Array, UInt8Array, Float64Array]:
    """Return grid_starts, grid_bits and grid of a CodingPlan."""
    sizes = np.diff(distinct.starts)
    bits = np.array([int(size).bit_length() for size in sizes], dtype=np.int64)
    padded = (1 << bits) - 1
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(padded)])
    grid = np.full(int(starts[-1]) + 1, np.inf)
    ranks = np.arange(len(distinct.features)) - distinct.starts[distinct.features]
    grid[1 + starts[distinct.features] + ranks] = distinct.thresholds
    return starts[:-1].astype(np.uint32), bits.astype(np.uint8), grid


def _plan_coding(
    flat: FlatTrees, first_step_tree: int, n_features: int, absent: str
) -> tuple[kernels.CodingPlan, _NodeCodes, Int64Array]:
    """Lay out the thresholds and the coded columns; the third are those of the trees from `first_step_tree` on, int64.

    A feature has one coded column for each side that its missing values go to and for each 255 of its thresholds, as
    far as nodes use them, one for each distinct condition with several bounds, coded 0 (left) or 1 (right), and one for
    the tree that it alone has. A missing value is below all codes in the one and above all in the other, so nodes need
    no test for it.
    """
    distinct = _distinct_thresholds(flat, n_features)
    numbers, tables = _range_tables(flat, distinct)
    n_ranges = len(tables)
    tables += _step_tables(flat, distinct, first_step_tree)
    grid_starts, bits, grid = _lay_out(distinct)
    n_nodes = int(flat.node_offsets[first_step_tree])  # that are walked
    pieces = int(np.diff(distinct.starts).max(initial=1)) // CODES + 1
    plain = 2 * pieces  # keys of a feature for plain nodes; those for tables follow
    kinds = plain + len(tables)
    is_range = numbers[:n_nodes] >= 0
    of_node = distinct.node_ranks[:n_nodes]
    kind = np.where(is_range, plain + numbers[:n_nodes], flat.missing_left[:n_nodes] * pieces + of_node // CODES)
    of_steps = [table.feature * kinds + plain + n for n, table in enumerate(tables[n_ranges:], n_ranges)]
    keys = np.concatenate([flat.split_columns[:n_nodes].astype(np.int64) * kinds + kind, np.array(of_steps, np.int64)])
    coded, columns = np.unique(keys, return_inverse=True)
    if len(coded) >= 1 << 23 or int(np.diff(flat.leaf_offsets).max(initial=0)) >= 1 << 26 or len(grid) >= 1 << 32:
        raise ModelError("the model is too large to score")
    coded_features, coded_kind = coded // kinds, coded % kinds
    coded_table = np.where(coded_kind >= plain, coded_kind - plain, -1)  # -1 takes the entry that is appended
    coded_starts = np.where(coded_table < 0, coded_kind % pieces * CODES, 0)
    missing_codes = np.where(coded_kind // pieces == 1, 0, CODES).astype(np.uint8)
    missing_codes[coded_table >= 0] = [tables[n].missing_code for n in coded_table[coded_table >= 0].tolist()]
    starts = np.cumsum([0, *(len(table.codes) for table in tables)])
    starts[-1] = -1
    table_starts = starts[coded_table]
    listed = np.concatenate([np.zeros(0, np.uint8), *(table.codes for table in tables)])
    if absent == "missing":
        absent_codes = missing_codes.copy()
    else:
        negative = distinct.features[distinct.thresholds < 0.0]
        below = np.bincount(negative, minlength=n_features)[coded_features]
        absent_codes = np.clip(below - coded_starts, 0, CODES).astype(np.uint8)
        in_table = table_starts >= 0
        absent_codes[in_table] = listed[(table_starts + below)[in_table]]
    plan = kernels.CodingPlan(
        grid_starts,
        bits,
        grid,
        np.searchsorted(coded_features, np.arange(n_features + 1)).astype(np.uint32),
        coded_starts.astype(np.uint32),
        missing_codes,
        absent_codes,
        table_starts.astype(np.int64),
        listed,
    )
    nodes = _NodeCodes(columns[:n_nodes].astype(np.int64), np.where(is_range, 0, of_node % CODES))
    return plan, nodes, columns[n_nodes:]


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


def _mask_trees(
    ensemble: Ensemble, flat: FlatTrees, nodes: _NodeCodes, steps: step_trees.StepTrees
) -> kernels.MaskedTrees:
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
        steps,
        float(ensemble.base_score),
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


def first_step_tree(trees: Sequence[Tree]) -> int:
    """Return from which tree on, to the last, each has a feature of its own and no other.

    The trees of a linear ranker are such: the value of the feature tells the leaf, without a walk.
    """
    seen: set[int] = set()
    first = len(trees)
    for tree in reversed(trees):
        columns = tree.split_columns
        if not 2 <= tree.n_leaves <= CODES or tree.bounds is not None or int(columns[0]) in seen:
            break
        if (columns != columns[0]).any():
            break
        seen.add(int(columns[0]))
        first -= 1
    return first


def _lowest_bits() -> UInt8Array:
    """Return uint8[256], the lowest bit set in each byte."""
    return np.array([0, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))], np.uint8)


class Scorer:
    """An ensemble prepared for scoring; unchanged by scoring, so that threads may share it."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        flat, first = flatten(ensemble.trees), first_step_tree(ensemble.trees)
        self._plan, nodes, columns = _plan_coding(flat, first, ensemble.n_features, ensemble.absent)
        walked = flatten(ensemble.trees[:first])
        starts = flat.leaf_offsets[first:] - flat.leaf_offsets[first]
        steps = step_trees.StepTrees(
            columns.astype(np.uint32), starts[:-1].astype(np.uint64), flat.leaf_values[flat.leaf_offsets[first] :]
        )
        self._trees = _mask_trees(ensemble, walked, nodes, steps)
        self._coded_trees = _code_trees(walked, nodes)

    def score(
        self,
        rows: SparseRows,
        column_map: Int32Array,
        pool: WorkerPool | None = None,
        unseen: Counter[int] | None = None,
    ) -> Float64Array:
        """Return the score of each row, float64[n]. ModelError when one is too large for a number.

        column_map : int32[number of columns], the model's feature of each column of the rows, -1 for none
        unseen     : as in `with_numbers`
        """
        n = len(rows)
        scores = np.empty(n)
        rows = with_numbers(rows, column_map, self.ensemble.categories, unseen)
        arrays = contiguous_rows(rows.offsets, rows.columns, rows.values)
        calls = [
            (arrays, column_map, self._plan, self._trees, self._coded_trees, scores, start, stop)
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

    def score_pieces(
        self, rows: Rows, column_map: Int32Array, pool: WorkerPool | None = None, unseen: Counter[int] | None = None
    ) -> Float64Array:
        """Return the score of each row, as `score` does, of rows that are converted piece by piece."""
        scores = np.empty(len(rows))
        for start, stop, piece in pieces(rows, len(column_map)):
            scores[start:stop] = self.score(piece, column_map, pool, unseen)
        return scores


class ModelScores:
    """The scores that a model gives a data set, collected while its rows are read block by block.

    of_model : float64[n], of a training set whose rows have other numbers of categories for growing trees: the scores
               that the model gives it; None: the scores are these
    kept     : features of the model that are categories with other values, or another order, in the training set
    """

    def __init__(self, model: Ensemble, pool: WorkerPool) -> None:
        self.matcher = FeatureMatcher(model)
        self.model = model
        self._scorer = Scorer(model)
        self._pool = pool
        self._parts: list[Float64Array] = [np.zeros(0)]
        self.of_model: Float64Array | None = None
        self.kept: tuple[int, ...] = ()

    def add(self, parts: Sequence[SparseRows], feature_ids: Int64Array, feature_names: Sequence[str] | None) -> None:
        """Score the next rows; there may be more columns than before."""
        columns = self.matcher.column_map(feature_ids, feature_names)
        self._parts += [self._scorer.score(rows, columns, self._pool, self.matcher.unseen) for rows in parts]

    def add_rows(self, rows: Rows, features: Features, of_model: Rows | None = None) -> None:
        """Score all rows of a training set, which have the numbers of categories in place of their values already.

        of_model : the rows with the numbers that the model gives them, if these are others
        """
        columns = self.matcher.column_map(features.feature_ids, features.feature_names)
        scorer = Scorer(replace(self.model, categories=())) if self.model.categories else self._scorer
        self._parts.append(scorer.score_pieces(rows, columns, self._pool))
        if of_model is not None:
            self.of_model = scorer.score_pieces(of_model, columns, self._pool)

    def categories_of(self, features: Features) -> list[Categories]:
        """Return the categories of the model that are features of a data set, by the columns of that."""
        columns = self.matcher.column_map(features.feature_ids, features.feature_names).tolist()
        found = [of_model for of_model in self.model.categories if of_model.column in columns]
        return [replace(of_model, column=columns.index(of_model.column)) for of_model in found]

    def finish(self, source: str, tables: Mapping[str, Int64Array], strict: bool = False) -> Float64Array:
        """Return the score of each row, float64[n]; DataError as `FeatureMatcher.refuse`.

        tables : as `RankingDataset.table_features`
        """
        self.matcher.tables = tables
        self.matcher.refuse(source, strict)
        return np.concatenate(self._parts)
