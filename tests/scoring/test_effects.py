"""Partial dependence and contributions on samples, beside the model itself on dense rows."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from helpers.trees import grow, plain_scores

from lmart.array_types import Float64Array
from lmart.data.dataset import SparseRows
from lmart.scoring.effects import MatchedRows, feature_effects, partial_dependence, tried_values
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.explain import Explainer
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

N_FEATURES = 3


def model(absent: str = "zero") -> Ensemble:
    rng = random.Random(3)
    trees = tuple(grow(rng, 7, range(N_FEATURES), [0.5, 1.5, 2.5]) for _ in range(4))
    return Ensemble(trees, np.array([2, 5, 9]), absent=absent)


def sparse(rows: list[dict[int, float]], column_of: dict[int, int]) -> MatchedRows:
    """Return rows by feature as rows whose columns are others, with a further column that the model does not know."""
    column_map = np.full(5, -1, np.int32)
    for feature, column in column_of.items():
        column_map[column] = feature
    cells = [sorted([(column_of[f], value) for f, value in row.items()] + [(4, 7.0)]) for row in rows]
    offsets = np.cumsum([0, *map(len, cells)])
    columns = np.array([column for row in cells for column, _ in row], np.int32)
    return MatchedRows(SparseRows(offsets, columns, np.array([value for row in cells for _, value in row])), column_map)


def some_rows(n: int = 40) -> list[dict[int, float]]:
    rng = random.Random(1)
    values = [0.0, 1.0, 2.0, 3.0, math.nan]
    return [{f: rng.choice(values) for f in range(N_FEATURES) if rng.random() < 0.7} for _ in range(n)]


ROWS = some_rows()
MATCHED = sparse(ROWS, {0: 3, 1: 0, 2: 2})


@pytest.mark.parametrize("absent", ["zero", "missing"])
@pytest.mark.parametrize("feature", range(N_FEATURES))
def test_partial_dependence_is_the_mean_with_the_value_in_every_row(absent: str, feature: int) -> None:
    ensemble = model(absent)
    values = [0.0, 1.0, 2.0, math.nan]
    expected = [fmean(plain_scores(ensemble, [{**row, feature: value} for row in ROWS])) for value in values]
    found = partial_dependence(Scorer(ensemble), MATCHED, feature, values)
    assert found == pytest.approx(expected, rel=1e-12)
    assert len(set(expected)) > 1
    np.testing.assert_array_equal(MATCHED.rows.values, sparse(ROWS, {0: 3, 1: 0, 2: 2}).rows.values)  # not changed


def test_values_of_a_feature_in_rows_and_in_some_of_them() -> None:
    expected = [row.get(1, 0.0) for row in ROWS]
    np.testing.assert_array_equal(MATCHED.values_of(1, 0.0), expected)
    some = MATCHED.spaced(5)
    np.testing.assert_array_equal(some.values_of(1, 0.0), [expected[place] for place in (0, 10, 20, 29, 39)])
    assert MATCHED.spaced(40) is MATCHED


def explainable(ensemble: Ensemble) -> Ensemble:
    trees = tuple(replace(tree, leaf_documents=np.arange(1, tree.n_leaves + 1)) for tree in ensemble.trees)
    return replace(ensemble, trees=trees)


@pytest.mark.parametrize("threads", [1, 2])
def test_effects_of_features(threads: int) -> None:
    ensemble = explainable(model())
    explainer = Explainer(ensemble)
    with WorkerPool(threads) as pool:
        effects = feature_effects(Scorer(ensemble), explainer, MATCHED, [2, 0], pool)
        alone = feature_effects(Scorer(ensemble), None, MATCHED, [0], pool)
    assert [effect.feature for effect in effects] == ["9", "2"]
    first = effects[1]
    own = np.array([row.get(0, 0.0) for row in ROWS])
    assert first.values.tolist() == sorted({value for value in own.tolist() if not math.isnan(value)})
    assert first.scores.tolist() == partial_dependence(Scorer(ensemble), MATCHED, 0, first.values.tolist())
    assert first.missing == partial_dependence(Scorer(ensemble), MATCHED, 0, [math.nan])[0]
    explained: Float64Array = explainer.explain(MATCHED.rows, MATCHED.column_map)[:, 0]
    assert first.row_values.tolist() == own[~np.isnan(own)].tolist()
    assert first.contributions.tolist() == explained[~np.isnan(own)].tolist()
    assert len(alone[0].contributions) == len(alone[0].row_values) == 0


def test_a_feature_without_a_value_has_no_effect() -> None:
    matched = sparse([{0: math.nan, 1: 1.0}, {0: math.nan}], {0: 3, 1: 0, 2: 2})
    with WorkerPool(1) as pool:
        effects = feature_effects(Scorer(model()), None, matched, [0, 1], pool)
    assert [effect.feature for effect in effects] == ["5"]


def test_quantiles_are_tried() -> None:
    assert tried_values(np.arange(101.0), 5).tolist() == [0, 25, 50, 75, 100]
    assert tried_values(np.array([1.0, 1.0, 1.0, 4.0])).tolist() == [1, 4]
