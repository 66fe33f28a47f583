"""Models and rows for tests of other tools' formats: every kind of node, and values on and next to every bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array
from lmart.data.dataset import SparseRows
from lmart.errors import ModelError
from lmart.scoring.ensemble import Ensemble, Tree, flatten, structure_fault
from lmart.scoring.scorer import Scorer

VALUES = (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 2.5, 100.0, 1e-3)


def scores_of(ensemble: Ensemble, rows: Float64Array) -> Float64Array:
    """Scores of rows given as a matrix, whose column j is the feature with id j; float64[n]."""
    n, m = rows.shape
    cells = SparseRows(
        np.arange(n + 1, dtype=np.int64) * m, np.tile(np.arange(m, dtype=np.int32), n), rows.astype(np.float64).ravel()
    )
    place = {int(index): column for column, index in enumerate(ensemble.feature_ids)}
    return Scorer(ensemble).score(cells, np.array([place.get(j, -1) for j in range(m)], np.int32))


def column_scores(ensemble: Ensemble, values: list[float], feature: int = 1) -> list[float]:
    """Scores of rows that have one feature only, the others being 0."""
    width = max(int(ensemble.feature_ids.max(initial=0)), feature) + 1
    rows = np.zeros((len(values), width))
    rows[:, feature] = values
    found: list[float] = scores_of(ensemble, rows).tolist()
    return found


def refusal(read: Any, content: bytes | str) -> str:
    """The one line with which a reader refuses a file."""
    try:
        read(content if isinstance(content, bytes) else content.encode(), "file")
    except ModelError as fault:
        assert "\n" not in str(fault)
        return str(fault)
    raise AssertionError("the file was not refused")


def check_sound(ensemble: Ensemble) -> None:
    """What every model that a reader returns has."""
    assert structure_fault(flatten(ensemble.trees), ensemble.n_features) is None
    assert (np.diff(ensemble.feature_ids) > 0).all()
    assert np.isfinite(ensemble.base_score)
    assert ensemble.feature_names is None or len(ensemble.feature_names) == ensemble.n_features


def random_tree(rng: np.random.Generator, n_leaves: int, n_features: int, is_float32: bool = False) -> Tree:
    """A tree of plain nodes, grown leaf by leaf as LightGBM numbers it, with gains and documents."""
    n = n_leaves - 1
    left, right = np.zeros(n, np.int32), np.zeros(n, np.int32)
    above: list[tuple[npt.NDArray[np.int32], int] | None] = [None]
    for node in range(n):
        leaf = int(rng.integers(len(above)))
        place = above[leaf]
        if place is not None:
            place[0][place[1]] = node
        left[node], right[node] = ~leaf, ~len(above)
        above[leaf] = (left, node)
        above.append((right, node))
    kind = np.float32 if is_float32 else np.float64
    thresholds = np.where(rng.random(n) < 0.5, rng.normal(size=n), rng.choice(VALUES, n)).astype(kind)
    return Tree(
        rng.integers(0, n_features, n).astype(np.int32),
        thresholds.astype(np.float64),
        rng.random(n) < 0.5,
        left,
        right,
        (rng.normal(size=n_leaves) * 0.1).astype(kind).astype(np.float64),
        rng.random(n),
        rng.integers(1, 100, n_leaves).astype(np.int64),
    )


def with_bounds(tree: Tree, edges: dict[int, tuple[Float64Array, bool]]) -> Tree:
    """The tree whose nodes have the given edges, of which the first is the threshold, and sides of missing values."""
    thresholds, missing = tree.thresholds.copy(), tree.missing_left.copy()
    counts = np.zeros(len(thresholds), np.int64)
    parts = [np.zeros(0)]
    for node in sorted(edges):
        thresholds[node], missing[node] = edges[node][0][0], edges[node][1]
        parts.append(edges[node][0][1:])
        counts[node] = len(parts[-1])
    return replace(
        tree,
        thresholds=thresholds,
        missing_left=missing,
        bound_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        bounds=np.concatenate(parts),
    )


def planted_rows(rng: np.random.Generator, ensemble: Ensemble, n: int, is_float32: bool = False) -> Float64Array:
    """Rows with values on and next to every bound, zeros and nan; column j is the feature with id j."""
    kind = np.float32 if is_float32 else np.float64
    rows = rng.normal(size=(n, int(ensemble.feature_ids[-1]) + 1)).astype(kind)
    flat = flatten(ensemble.trees)
    of_bound = np.repeat(flat.split_columns, np.diff(flat.bound_offsets))
    for column, index in enumerate(ensemble.feature_ids):
        bounds = np.concatenate(
            [[0.0, 7.0], flat.thresholds[flat.split_columns == column], flat.bounds[of_bound == column]]
        ).astype(kind)
        near = np.concatenate([bounds, np.nextafter(bounds, kind(9)), np.nextafter(bounds, kind(-9)), [kind(np.nan)]])
        chosen = rng.random(n) < 0.7
        rows[chosen, index] = rng.choice(near, int(chosen.sum()))
    rows[np.abs(rows) < 1e-30] = 0
    return rows.astype(np.float64)
