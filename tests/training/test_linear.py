"""The linear ranker: its fit beside a slow twin, its step functions, and its part in the mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference.linear
from helpers.datasets import dataset, random_dataset
from helpers.score_data import score_dataset

from lmart.array_types import Float64Array
from lmart.binning.binned_features import bin_dataset
from lmart.data.dataset import RankingDataset, SparseRows
from lmart.data.metadata import Metadata, Positions
from lmart.errors import SettingsError
from lmart.formats.models import lmart_json
from lmart.formats.models.lmart_json import model_to_json
from lmart.scoring.ensemble import Tree
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training import objectives
from lmart.training.boosting import train
from lmart.training.continuation import prepare
from lmart.training.cross_validation import cross_validate
from lmart.training.linear import (
    L2,
    LinearSource,
    LocalLinearSource,
    Room,
    fit_steps,
    guarded_weight,
    linear_factors,
    room_beside,
    step_trees,
)
from lmart.training.resolving import resolve_for
from lmart.training.scores import LocalTrainingScores
from lmart.training.train_result import TrainResult

POOL = WorkerPool(1)
CHOSEN = TrainSettings(trees=18, rankers=2, linear=0.4, leaves=6, min_docs=3, seed=3)
DATA, OTHER = (random_dataset(seed, n_queries=60) for seed in (31, 32))


def fit(chosen: TrainSettings, *sets: RankingDataset, data: RankingDataset = DATA, **named: object) -> TrainResult:
    return train(data, sets, chosen, POOL, **named)  # type: ignore[arg-type]


def linear_part(result: TrainResult) -> tuple[Tree, ...]:
    assert result.linear is not None and result.linear.trees
    assert result.ensemble.rankers[-1][1:3] == ("listnet", "linear")
    return result.ensemble.trees[-result.linear.trees :]


def source_of(data: RankingDataset, weights: Float64Array | None = None) -> tuple[LinearSource, LocalTrainingScores]:
    """Return what a linear ranker is fitted to, and the scores of the data."""
    settings = resolve_for(CHOSEN, data)
    binned = bin_dataset(data, 255, "zero", 1, 0, POOL).features
    training = LocalTrainingScores(data, binned, settings, POOL, Metadata(weights))
    objective = objectives.prepare(data, settings.linear_ranker, POOL, weights)
    return LocalLinearSource(objective, binned, training, POOL), training


def additive(seed: int, n_queries: int = 150, missing: float = 0.0) -> RankingDataset:
    """Return data whose labels follow a sum of monotone functions of features, and noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_queries * 12, 5))
    truth = x[:, 0] + np.tanh(2 * x[:, 1]) - x[:, 2] + rng.normal(size=len(x)) / 2
    labels = np.clip(np.floor(truth + 1), 0, 4)
    x[rng.random(x.shape) < missing] = np.nan
    return dataset(labels.tolist(), np.repeat(np.arange(n_queries), 12).tolist(), x)


# The fit


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_the_fit_is_that_of_the_slow_twin(weighted: bool, missing: bool) -> None:
    rng = np.random.default_rng(8)
    x = rng.integers(0, 6, (120, 2)) * 1.0
    if missing:
        x[::7, 1] = np.nan
    labels = np.clip(np.floor(np.nan_to_num(x[:, 0]) / 2 + rng.normal(size=120)), 0, 2)
    data = dataset(labels.tolist(), np.repeat(np.arange(20), 6).tolist(), x)
    weights = rng.random(20) if weighted else np.ones(20)
    steps = fit_steps(source_of(data, weights if weighted else None)[0], None)
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    by_feature = [
        reference.linear.functions([None if np.isnan(one) else int(one) for one in column], values) for column in x.T
    ]
    rows = [first + second for first, second in zip(*by_feature, strict=True)]
    gains = [(2.0 ** labels[q * 6 : q * 6 + 6] - 1).tolist() for q in range(20)]
    expected = reference.linear.fit(rows, gains, weights.tolist(), L2 * 6)
    scores = np.array(rows) @ expected
    bins = np.nan_to_num(x, nan=6.0).astype(int)
    found = steps[bins[:, 0]] + steps[6 + bins[:, 1]]
    assert found == pytest.approx(scores, abs=0.01 * np.abs(scores).max())


def test_it_learns_nothing_from_queries_of_weight_0() -> None:
    weights: Float64Array = (np.arange(DATA.n_queries) % 3).astype(np.float64)
    of_rows: Float64Array = np.repeat(weights, np.diff(DATA.query_offsets))
    other_labels = replace(DATA, labels=np.where(of_rows == 0, DATA.labels[::-1], DATA.labels))
    for given in (weights, of_rows):
        steps = fit_steps(source_of(DATA, given)[0], None)
        assert np.array_equal(fit_steps(source_of(other_labels, given)[0], None), steps)
        assert not np.array_equal(fit_steps(source_of(DATA)[0], None), steps)


def test_an_absent_value_may_count_as_missing() -> None:
    data = additive(4, 40, missing=0.2)
    rows = data.features
    known = ~np.isnan(rows.values)
    sparse = SparseRows(np.concatenate([[0], np.cumsum(known)])[rows.offsets], rows.columns[known], rows.values[known])
    as_missing = replace(CHOSEN, absent="missing")
    found = fit(as_missing, data=replace(data, features=sparse)).ensemble
    assert model_to_json(found) == model_to_json(fit(as_missing, data=data).ensemble)
    as_zero = fit(CHOSEN, data=replace(data, features=sparse))
    assert model_to_json(as_zero.ensemble) != model_to_json(fit(CHOSEN, data=data).ensemble)


def test_nothing_is_learned_where_no_labels_differ() -> None:
    data = dataset([1.0] * 20, [0] * 10 + [1] * 10, np.random.default_rng(0).normal(size=(20, 3)))
    assert not fit_steps(source_of(data)[0], None).any()


def test_steps_follow_the_scale_of_no_weight_and_of_no_feature() -> None:
    data = additive(1)
    plain, scaled = (fit_steps(source_of(data, weights)[0], None) for weights in (None, np.full(data.n_queries, 8.0)))
    assert scaled == pytest.approx(plain, abs=1e-6)
    features = replace(data.features, values=data.features.values * 1e250)
    large = fit_steps(source_of(replace(data, features=features))[0], None)
    assert np.isfinite(large).all() and np.abs(large).max() > 0.1


# Step functions


def test_trees_come_near_steps_within_the_nodes_allowed() -> None:
    data = additive(2, missing=0.1)
    source, training = source_of(data)
    steps = fit_steps(source, None)
    source.sum_gradients(steps)
    exact, errors = training.scores, []
    for most in (4, 40, 400):
        trees = step_trees(steps, source, Room(most, 5))
        assert sum(len(one.split_bins) for one in trees) <= most
        assert all(len(set(one.split_features.tolist())) == 1 for one in trees)
        training.restart()
        for one in trees:
            assert one.tree.leaf_documents is not None and one.tree.leaf_documents.sum() == data.n_documents
            training.add(one)
        errors.append(float(((training.scores - exact) ** 2).mean() / exact.var()))
    assert errors[0] > errors[1] > errors[2] and errors[1] < 0.1


def test_few_trees_are_of_the_features_that_matter_most() -> None:
    source, _ = source_of(additive(2))
    steps = fit_steps(source, None)
    for most in (1, 3):
        assert [one.split_features[0] for one in step_trees(steps, source, Room(400, most))] == list(range(most))
    assert room_beside(300, 10) == (45, 10) and room_beside(20, 10) == (3, 2) and room_beside(0, 0) == (0, 0)


def test_monotone_constraints_hold_for_the_sum_of_all_trees() -> None:
    model = fit(replace(CHOSEN, monotone="1:+1,2:-1,3:+1"), data=additive(3))
    trees = {int(tree.split_columns[0]): tree for tree in linear_part(model)}
    assert {0, 3} & set(trees)
    rows = np.tile(np.random.default_rng(4).normal(size=5), (50, 1))
    for column, direction in ((0, 1), (1, -1), (2, 1)):
        changed = rows.copy()
        changed[:, column] = np.linspace(-4, 4, 50)
        scores = score_dataset(model.ensemble, dataset([0] * 50, [0] * 50, changed))
        assert (np.diff(scores) * direction >= 0).all()


# The mean


def test_a_linear_ranker_stands_behind_the_trees_of_the_run_which_stay_as_they_are() -> None:
    plain, with_linear = fit(replace(CHOSEN, linear=None)), fit(CHOSEN)
    n = len(plain.ensemble.trees)
    assert with_linear.n_trees == plain.n_trees == n == 18 and len(linear_part(with_linear)) <= 5
    for first, second in zip(plain.ensemble.trees, with_linear.ensemble.trees[:n], strict=True):
        assert np.array_equal(first.leaf_values, second.leaf_values)
    n_nodes = [sum(len(tree.thresholds) for tree in one.ensemble.trees) for one in (plain, with_linear)]
    assert n_nodes[0] < n_nodes[1] <= 1.15 * n_nodes[0] + 1
    assert lmart_json.read(model_to_json(with_linear.ensemble).encode(), "m").rankers == with_linear.ensemble.rankers


def test_it_knows_no_positions_and_no_model_to_go_on_from() -> None:
    positions = Metadata(positions=Positions(("first", "other"), np.arange(DATA.n_documents, dtype=np.int32) % 2))
    with pytest.raises(SettingsError, match="linear rankers know no positions"):
        fit(replace(CHOSEN, rankers=1), metadata=positions)
    with pytest.raises(SettingsError, match="linear does not go with a model to go on from"):
        prepare(fit(CHOSEN).ensemble, "m", CHOSEN, gives_absent=False)


def test_scores_and_measures_are_those_of_the_model() -> None:
    result = fit(CHOSEN, OTHER)
    assert np.array_equal(result.scores, score_dataset(result.ensemble, DATA))


def test_a_single_ranker_has_one_where_it_is_asked_for() -> None:
    chosen = replace(CHOSEN, rankers=1)
    assert fit(replace(chosen, linear=None)).linear is None
    result = fit(chosen)
    assert [part.tree for part in result.ensemble.rankers] == ["leafwise", "linear"] and linear_part(result)


def test_bytes_are_the_same_for_any_number_of_threads() -> None:
    data, valid = additive(5, 600), additive(6, 40)
    chosen = replace(CHOSEN, early_stop=3)
    for n_threads in (2, 7):
        with WorkerPool(n_threads) as pool:
            several = train(data, [valid], chosen, pool).ensemble
        assert model_to_json(several) == model_to_json(fit(chosen, valid, data=data).ensemble)


def test_with_initial_scores_it_counts_by_its_weight() -> None:
    starts = Metadata(init_scores=np.random.default_rng(1).normal(size=DATA.n_documents))
    plain = fit(replace(CHOSEN, linear=None), metadata=starts).ensemble
    model = fit(CHOSEN, metadata=starts).ensemble
    for first, second in zip(plain.trees, model.trees, strict=False):
        assert second.leaf_values == pytest.approx(0.6 * first.leaf_values)


def test_validation_takes_weight_from_a_linear_ranker_that_is_much_worse() -> None:
    rng = np.random.default_rng(6)

    def crossed(n_queries: int) -> RankingDataset:
        """Return data whose labels are the exclusive or of two signs."""
        x = rng.normal(size=(n_queries * 10, 3))
        labels = (x[:, 0] > 0) ^ (x[:, 1] > 0)
        return dataset(labels.astype(float).tolist(), np.repeat(np.arange(n_queries), 10).tolist(), x)

    result = fit(replace(CHOSEN, trees=60), crossed(60), data=crossed(150))
    assert result.linear is not None and result.linear.weight < 0.1
    easy = fit(CHOSEN, additive(8), data=additive(7)).linear
    assert easy is not None and easy.weight == 0.4


def test_weights_and_factors() -> None:
    found = [guarded_weight(0.4, own, 1.0) for own in (1.2, 0.96, 0.93, 0.9, 0.1)]
    assert found == pytest.approx([0.4, 0.4, 0.2, 0, 0])
    assert guarded_weight(0.4, None, 0.5) == guarded_weight(0.4, 0.1, None) == guarded_weight(0.4, 0.0, 0.0) == 0.4
    assert linear_factors(0.4, [2.0, 8.0], False) == pytest.approx((1.0, 0.4 / 0.6 / 4))
    assert linear_factors(0.4, [2.0, 0.0], False) == (1.0, 0.0)
    assert linear_factors(0.4, [2.0, 8.0], True) == pytest.approx((0.6, 0.4))


def test_folds_have_a_linear_ranker_too() -> None:
    data = additive(9, 60)
    chosen = replace(CHOSEN, trees=24, leaves=12, rankers=1)
    alone = replace(chosen, linear=None)
    plain, both = (cross_validate(data, 3, resolve_for(one, data), POOL) for one in (alone, chosen))
    assert both.mean > plain.mean
    scores = [both.scores[slice(*data.query_offsets[[q, q + 1]])] for q in range(data.n_queries)]
    assert all(len(set(one.tolist())) > 6 for one in scores)
