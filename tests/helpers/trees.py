"""Random trees and rows for the tests of scoring and of the model file."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import reference.scoring
from hypothesis import strategies as st

from lmart.data.dataset import SparseRows
from lmart.scoring.ensemble import Ensemble, Tree

THRESHOLDS = [-1.7e308, -3.5, -1.0, -5e-324, 0.0, 5e-324, 1.0, math.nextafter(1.0, 2.0), 1.0000001, 2.5, 1e17, 1.7e308]
LEAF_VALUES = [0.1, -0.2, 0.30000000000000004, 1e16, -1e16, 1.0, 3e-17, -7.25]


def grow(
    rng: random.Random,
    n_leaves: int,
    columns: Sequence[int],
    thresholds: Sequence[float],
    shape: str = "random",
    missing_left: bool | None = None,
) -> Tree:
    """A tree with random splits; `shape` is random, chain (each split on the newest leaf) or level (breadth first)."""
    n = n_leaves - 1
    left, right = np.zeros(n, np.int32), np.zeros(n, np.int32)
    places: list[tuple[int, int]] = [(-1, 0)]  # parent and side of what is a leaf so far
    for node in range(n):
        pick = {"random": rng.randrange(len(places)), "chain": len(places) - 1, "level": 0}[shape]
        parent, side = places.pop(pick)
        if parent >= 0:
            (left, right)[side][parent] = node
        places += [(node, 0), (node, 1)] if rng.random() < 0.5 else [(node, 1), (node, 0)]
    rng.shuffle(places)
    for leaf, (parent, side) in enumerate(places):
        if parent >= 0:
            (left, right)[side][parent] = ~leaf
    return Tree(
        np.array([rng.choice(columns) for _ in range(n)], np.int32),
        np.array([rng.choice(thresholds) for _ in range(n)], np.float64),
        np.array([rng.random() < 0.5 if missing_left is None else missing_left for _ in range(n)], np.bool_),
        left,
        right,
        np.array([rng.choice(LEAF_VALUES) + rng.random() for _ in range(n_leaves)]),
    )


def plain(ensemble: Ensemble) -> list[reference.scoring.PlainTree]:
    """The trees as the plain twins take them."""
    return [
        (
            tree.split_columns.tolist(),
            _thresholds(tree),
            tree.missing_left.tolist(),
            tree.left.tolist(),
            tree.right.tolist(),
            tree.leaf_values.tolist(),
        )
        for tree in ensemble.trees
    ]


def _thresholds(tree: Tree) -> list[float | list[float]]:
    """The threshold of each node, or all its bounds where there are several."""
    own: list[float | list[float]] = tree.thresholds.tolist()
    if tree.bounds is None or tree.bound_offsets is None:
        return own
    further = [tree.bounds[a:b].tolist() for a, b in itertools.pairwise(tree.bound_offsets.tolist())]
    return [[one, *more] if more else one for one, more in zip(tree.thresholds.tolist(), further, strict=True)]


def sparse(rows: Sequence[dict[int, float]]) -> SparseRows:
    """Rows of cells {column: value}, in the order they are given."""
    sizes = [len(row) for row in rows]
    return SparseRows(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([column for row in rows for column in row], np.int32),
        np.array([value for row in rows for value in row.values()], np.float64),
    )


def plain_scores(ensemble: Ensemble, rows: Sequence[dict[int, float]]) -> list[float]:
    """The scores of rows {the model's column: value} by the plain twin."""
    absent = 0.0 if ensemble.absent == "zero" else math.nan
    dense = [[row.get(column, absent) for column in range(ensemble.n_features)] for row in rows]
    return reference.scoring.score_rows(ensemble.base_score, plain(ensemble), dense)


def around(thresholds: Sequence[float]) -> list[float]:
    """Each threshold and its neighbours, and what is special."""
    near = [value for t in thresholds for value in (math.nextafter(t, -math.inf), t, math.nextafter(t, math.inf))]
    return [*near, 0.0, -0.0, math.nan, math.inf, -math.inf]


@st.composite
def ensembles(draw: st.DrawFn, most_leaves: int = 20) -> Ensemble:
    """Small models of every shape, with splits on few thresholds, so that they repeat."""
    n_features = draw(st.integers(1, 5))
    rng = random.Random(draw(st.integers(0, 2**32)))
    shapes = st.sampled_from(["random", "chain", "level"])
    sizes = draw(st.lists(st.tuples(st.integers(1, most_leaves), shapes), max_size=5))
    trees = tuple(grow(rng, size, range(n_features), THRESHOLDS, shape) for size, shape in sizes)
    ids = np.array(sorted(draw(st.sets(st.integers(0, 2**63 - 1), min_size=n_features, max_size=n_features))), np.int64)
    base_score = draw(st.sampled_from([0.0, -0.0, 0.5, -1e16]))
    return Ensemble(trees, ids, None, base_score, draw(st.sampled_from(["zero", "missing"])))


def rows_for(n_features: int) -> st.SearchStrategy[list[dict[int, float]]]:
    """Rows with cells on the thresholds, beside them, missing and absent."""
    values = st.sampled_from(around(THRESHOLDS))
    return st.lists(st.dictionaries(st.integers(0, n_features - 1), values), max_size=20)


def with_bounds(rng: random.Random, tree: Tree) -> Tree:
    """The tree with further bounds at about half of its nodes."""
    further = []
    for threshold in tree.thresholds.tolist():
        above = [bound for bound in THRESHOLDS if bound > threshold]
        further.append(sorted(rng.sample(above, rng.randint(0, len(above)))) if rng.random() < 0.5 else [])
    offsets = np.cumsum([0, *map(len, further)]).astype(np.int64)
    return replace(tree, bound_offsets=offsets, bounds=np.array([b for bounds in further for b in bounds]))
