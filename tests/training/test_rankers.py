"""Several rankers: each is trained as alone, and the model is their mean."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from helpers.datasets import dataset, random_dataset
from helpers.score_data import score_dataset
from hypothesis import given
from hypothesis import strategies as st

from lmart.data.dataset import RankingDataset
from lmart.data.metadata import Metadata, Positions
from lmart.errors import LmartError, SettingsError
from lmart.formats.models import lmart_json
from lmart.formats.models.lmart_json import model_to_json
from lmart.measures import Conventions, Evaluator, parse_measures
from lmart.measures.judgments import Judgments
from lmart.scoring.ensemble import RankerPart, Tree
from lmart.settings import TrainSettings
from lmart.settings.recipe import ranker_seed
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.rankers import RoundReport, ranker_weights
from lmart.training.train_result import TrainResult

POOL = WorkerPool(1)
FOUR = TrainSettings(trees=18, rankers=4, leaves=6, min_docs=3, seed=3)
DATA, OTHER, THIRD = (random_dataset(seed, n_queries=60) for seed in (31, 32, 33))


def fit(chosen: TrainSettings, validation_sets: Sequence[RankingDataset] = (), **named: object) -> TrainResult:
    return train(DATA, validation_sets, chosen, POOL, **named)  # type: ignore[arg-type]


def alone(chosen: TrainSettings, one: RankerPart | object, number: int, trees: int, **changed: object) -> TrainSettings:
    """Return the settings that train one of several rankers by itself."""
    kept = {name: getattr(one, name) for name in ("objective", "tree", "features")}
    seed = ranker_seed(chosen.seed, number)
    return replace(chosen, rankers=1, trees=trees, seed=seed, **kept, **changed)  # type: ignore[arg-type]


def same_splits(first: Tree, second: Tree) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("split_columns", "thresholds", "missing_left", "left", "right", "leaf_documents")
    )


def ndcg(data: RankingDataset, scores: np.ndarray, weights: np.ndarray | None = None) -> float | None:
    measures = parse_measures("ndcg@10", Conventions())
    evaluator = Evaluator(Judgments(data.labels, data.query_offsets), measures, weights=weights)
    return evaluator.evaluate(scores).values["ndcg@10"]


def slow_spread(scores: Sequence[float], offsets: Sequence[int]) -> float:
    total = 0.0
    for start, stop in itertools.pairwise(offsets):
        part = [float(one) for one in scores[start:stop]]
        mean = math.fsum(part) / max(1, len(part))
        total += math.fsum((one - mean) ** 2 for one in part)
    return math.sqrt(total)


# Weights

numbers = st.integers(-1000, 1000).map(lambda one: one / 64)
queries = st.lists(st.lists(numbers, min_size=1, max_size=5), min_size=1, max_size=5)


@given(queries, st.integers(0, 99))
def test_weights_are_those_of_the_slow_twin(values: list[list[float]], seed: int) -> None:
    offsets = np.cumsum([0, *map(len, values)])
    first = np.array([one for part in values for one in part])
    others = [np.random.default_rng(seed + k).normal(size=len(first)) for k in range(2)]
    scores = [first, *others]
    spreads = [slow_spread(one.tolist(), offsets.tolist()) for one in scores]
    start = next((one for one in spreads if one > 1e-12), 1.0)
    expected = [start / one / 3 if one > 1e-12 else None for one in spreads]
    for found, wanted in zip(ranker_weights(scores, offsets, False), expected, strict=True):
        assert wanted is None or found == pytest.approx(wanted, rel=1e-9)


def test_weights_undo_the_scale_of_later_rankers_and_ignore_what_is_added_to_queries() -> None:
    rng = np.random.default_rng(5)
    offsets, scores = np.array([0, 3, 4, 9]), [rng.normal(size=9) for _ in range(3)]
    plain = ranker_weights(scores, offsets, False)
    assert plain[0] == 1 / 3
    scaled = ranker_weights([scores[0], scores[1] * 8, scores[2] * 0.25], offsets, False)
    assert scaled == [plain[0], plain[1] / 8, plain[2] * 4]
    shifted = [one + np.repeat(rng.normal(size=3), np.diff(offsets)) for one in scores]
    assert ranker_weights(shifted, offsets, False) == pytest.approx(plain)
    for scale in (1e299, 1e-250):  # whose squares are no numbers
        assert ranker_weights([one * scale for one in scores], offsets, False) == pytest.approx(plain)


def test_rankers_without_spread_and_with_initial_scores_are_simply_averaged() -> None:
    offsets, flat, steep = np.array([0, 2, 4]), np.array([1.0, 1.0, 5.0, 5.0]), np.array([0.0, 4.0, 1.0, 1.0])
    assert ranker_weights([flat, steep], offsets, False) == [0.5, 0.5]
    assert ranker_weights([flat, flat], offsets, False) == [0.5, 0.5]
    assert ranker_weights([steep, steep * 3], offsets, True) == [0.5, 0.5]
    assert ranker_weights([steep * 3], offsets, False) == [1.0]


# Each ranker by itself


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"sample": 0.5},
        {"objective": "ranknet+err+map", "rankers": 5, "sample": 0.7},
        {"objective": "xendcg", "rankers": 3, "tree": "depthwise"},
        {"features": 0.4, "rankers": 9},
        {"monotone": "1:+1,2:+1"},
        {"early_stop": 3, "trees": 120},
    ],
)
def test_each_ranker_has_the_trees_it_has_alone(changed: dict[str, object]) -> None:
    chosen = replace(FOUR, **changed)  # type: ignore[arg-type]
    sets = [OTHER] if chosen.early_stop else []
    together = fit(chosen, sets)
    n = len(together.rankers)
    assert n == chosen.rankers and len(together.ensemble.rankers) == n
    first, scores = 0, []
    for number, one in enumerate(together.rankers):
        share = chosen.trees // n + (number < chosen.trees % n)
        by_itself = fit(alone(chosen, one, number, share), sets)
        own = together.ensemble.trees[first : first + one.trees]
        first += one.trees
        assert len(own) == len(by_itself.ensemble.trees) > 0 and one.rounds == by_itself.rounds
        assert one.validation == by_itself.validation and one.stopped == by_itself.stopped
        scores.append(score_dataset(by_itself.ensemble, DATA))
        weight = own[0].leaf_values / by_itself.ensemble.trees[0].leaf_values
        for tree, plain in zip(own, by_itself.ensemble.trees, strict=True):
            assert same_splits(tree, plain)
            np.testing.assert_allclose(tree.leaf_values, plain.leaf_values * np.nanmedian(weight), rtol=1e-12)
    assert first == len(together.ensemble.trees) == together.n_trees
    weights = ranker_weights(scores, DATA.query_offsets, False)
    np.testing.assert_allclose(
        together.scores, sum(w * one for w, one in zip(weights, scores, strict=True)), rtol=1e-9, atol=1e-12
    )


def test_a_single_ranker_is_the_plain_algorithm() -> None:
    chosen = replace(FOUR, rankers=1)
    one = fit(chosen).ensemble
    said = fit(replace(chosen, objective="lambdamart", tree="leafwise", features=1.0)).ensemble
    assert model_to_json(one) == model_to_json(said) and one.rankers == ()


def test_rankers_differ() -> None:
    trees = fit(FOUR).ensemble.trees
    assert len({tree.thresholds.tobytes() for tree in (trees[0], trees[5], trees[10], trees[14])}) == 4


# The whole model


@pytest.mark.parametrize("changed", [{}, {"early_stop": 2, "trees": 80}, {"sample": 0.5}, {"absent": "missing"}])
def test_measures_are_those_of_the_scores_that_the_model_gives(changed: dict[str, object]) -> None:
    result = fit(replace(FOUR, **changed), [OTHER, THIRD])  # type: ignore[arg-type]
    assert (score_dataset(result.ensemble, DATA) == result.scores).all()
    for one, value in zip((DATA, OTHER, THIRD), (result.training, *result.validation), strict=True):
        assert ndcg(one, score_dataset(result.ensemble, one)) == value


def test_each_ranker_stops_by_its_own_measure_and_holds_the_trees_of_its_best_round() -> None:
    rounds: list[RoundReport] = []
    result = fit(replace(FOUR, early_stop=4, trees=400), [OTHER, THIRD], on_round=rounds.append)
    for number, one in enumerate(result.rankers, 1):
        own = [report for report in rounds if report.ranker == number]
        values = [report.validation[0] or 0.0 for report in own]
        assert [report.round for report in own] == list(range(1, one.rounds + 1))
        assert one.trees == values.index(max(values)) + 1
        assert one.validation == own[one.trees - 1].validation
        assert (one.rounds == one.trees + 4) == (one.stopped == "early")
    assert len({one.trees for one in result.rankers}) > 1  # planted: they do not stop together
    assert [report.ranker for report in rounds] == sorted(report.ranker for report in rounds)
    assert result.rounds == len(rounds) and result.stopped == "early"


@pytest.mark.parametrize(("trees", "patience"), [(60, 4), (120, 4), (400, 4), (400, 9), (41, 3)])
def test_rankers_share_trees_while_as_many_are_left_as_the_largest_holds(trees: int, patience: int) -> None:
    chosen = replace(FOUR, rankers=None, early_stop=patience, trees=trees)
    result = fit(chosen, [OTHER, THIRD])
    left = trees
    for number, one in enumerate(result.rankers):
        assert number == 0 or left >= max(before.trees for before in result.rankers[:number])
        assert one.rounds <= left and (one.stopped == "early" or one.rounds == left)
        left -= one.rounds
    assert len(result.rankers) == 4 or left < max(one.trees for one in result.rankers)
    assert result.rounds == trees - left
    model = result.ensemble
    names = ("rankers", "objective", "tree", "features", "leaves")
    recorded = {name: None if model.settings[name] == "auto" else model.settings[name] for name in names}
    again = fit(replace(chosen, **recorded), [OTHER, THIRD])  # type: ignore[arg-type]
    assert model_to_json(again.ensemble) == model_to_json(model)


def test_the_mean_ranks_better_than_its_rankers_by_their_noise() -> None:
    """Planted: rankers that know a feature each, which err apart."""
    rng = np.random.default_rng(8)
    n = 1200
    features = rng.normal(size=(n, 2))
    labels = np.clip(np.round(features.sum(axis=1) + 2), 0, 4)
    data = dataset(labels.tolist(), np.repeat(np.arange(120), 10).tolist(), features)
    chosen = TrainSettings(trees=16, rankers=8, features=0.5, objective="lambdamart", tree="leafwise", leaves=8)
    result = train(data, [data], chosen, POOL)
    assert result.validation[0] is not None
    assert all(result.validation[0] > (one.validation[0] or 0.0) for one in result.rankers)


@pytest.mark.parametrize("changed", [{}, {"sample": 0.5, "early_stop": 3}, {"objective": "yetirank", "features": 0.5}])
def test_nothing_depends_on_the_number_of_threads(changed: dict[str, object]) -> None:
    made = []
    for threads in (1, 2, 3):
        with WorkerPool(threads) as pool:
            result = train(DATA, [OTHER], replace(FOUR, **changed), pool)  # type: ignore[arg-type]
        made.append((model_to_json(result.ensemble), result.training, result.validation, result.rankers))
    assert made[0] == made[1] == made[2]


def test_weights_of_queries_count_in_every_ranker() -> None:
    weights = np.repeat(np.arange(60) % 3 / 2, np.diff(DATA.query_offsets))
    result = fit(FOUR, metadata=Metadata(weights=weights))
    assert result.training == ndcg(DATA, result.scores, weights)
    for number, one in enumerate(result.rankers):
        by_itself = fit(alone(FOUR, one, number, one.trees), metadata=Metadata(weights=weights))
        first = sum(other.trees for other in result.rankers[:number])
        assert same_splits(result.ensemble.trees[first], by_itself.ensemble.trees[0])
    assert model_to_json(fit(FOUR, metadata=Metadata(weights=np.full(len(weights), 1.0))).ensemble) == model_to_json(
        fit(FOUR).ensemble
    )


def test_positions_are_learned_by_every_ranker_and_told_of_the_first() -> None:
    codes = np.concatenate([np.arange(n) % 5 for n in np.diff(DATA.query_offsets)]).astype(np.int32)
    metadata = Metadata(positions=Positions(tuple("abcde"), codes))
    chosen = replace(FOUR, rankers=3)
    result = fit(chosen, metadata=metadata)
    assert [one.objective for one in result.rankers] == ["lambdamart"] * 3
    for number, one in enumerate(result.rankers):
        by_itself = fit(alone(chosen, one, number, one.trees), metadata=metadata)
        if number == 0:
            assert result.position_bias.tolist() == by_itself.position_bias.tolist() and any(result.position_bias)
        first = sum(other.trees for other in result.rankers[:number])
        for tree, plain in zip(result.ensemble.trees[first:], by_itself.ensemble.trees, strict=False):
            assert same_splits(tree, plain)
    assert len(fit(replace(chosen, rankers=None, trees=40), metadata=metadata).rankers) == 1


def test_every_ranker_obeys_monotone_constraints() -> None:
    result = fit(replace(FOUR, monotone="1:-1", rankers=4, trees=20))
    for one in np.linspace(-2, 2, 5):
        rows = np.full((50, 6), one)
        rows[:, 0] = np.linspace(-3, 3, 50)
        scores = score_dataset(result.ensemble, dataset([0.0] * 50, [1] * 50, rows))
        assert (np.diff(scores) <= 0).all()
    with pytest.raises(SettingsError, match="monotone does not go with tree 'oblivious'"):
        replace(FOUR, monotone="1:-1", tree="oblivious")


# Initial scores


def starts(scale: float = 1.0) -> list[Metadata]:
    return [Metadata(init_scores=scale * np.linspace(-1, 1, one.n_documents)) for one in (DATA, OTHER)]


def test_initial_scores_count_once() -> None:
    own, others = starts()
    result = fit(FOUR, [OTHER], metadata=own, validation_metadata=[others])
    assert own.init_scores is not None and others.init_scores is not None
    np.testing.assert_allclose(
        result.scores - own.init_scores, score_dataset(result.ensemble, DATA), rtol=1e-9, atol=1e-12
    )
    told = ndcg(OTHER, others.init_scores + score_dataset(result.ensemble, OTHER))
    assert result.validation[0] == pytest.approx(told, rel=1e-12)
    for number, one in enumerate(result.rankers):
        by_itself = fit(alone(FOUR, one, number, one.trees), metadata=own)
        first = sum(other.trees for other in result.rankers[:number])
        assert (result.ensemble.trees[first].leaf_values == by_itself.ensemble.trees[0].leaf_values / 4).all()


def test_a_ranker_that_makes_initial_scores_no_better_has_no_tree_and_no_share() -> None:
    """Planted: initial scores that lambdamart improves and a ranker with leaves of all documents' noise does not."""
    for seed in range(80):
        rng = np.random.default_rng(seed)
        own, others = (
            Metadata(init_scores=one.labels + rng.normal(size=one.n_documents) * 0.6) for one in (DATA, OTHER)
        )
        chosen = replace(FOUR, early_stop=2, trees=60, learning_rate=0.3)
        result = fit(chosen, [OTHER], metadata=own, validation_metadata=[others])
        with_trees = [one for one in result.rankers if one.trees]
        if 1 < len(with_trees) < 4:
            break
    assert 1 < len(with_trees) < 4
    assert [one.trees for one in result.ensemble.rankers] == [one.trees for one in result.rankers]
    first = next(number for number, one in enumerate(result.rankers) if one.trees)
    by_itself = fit(
        alone(chosen, result.rankers[first], first, result.rankers[first].trees, early_stop=0), metadata=own
    )
    n = len(with_trees)
    assert (result.ensemble.trees[0].leaf_values == by_itself.ensemble.trees[0].leaf_values * (1 / n)).all()
    assert others.init_scores is not None
    told = ndcg(OTHER, others.init_scores + score_dataset(result.ensemble, OTHER))
    assert result.validation[0] == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize("metadata", [Metadata(), starts()[0]])
def test_a_ranker_without_a_split_has_no_share(metadata: Metadata) -> None:
    """Planted: all documents are relevant, so that map has no pair."""
    data = replace(DATA, labels=DATA.labels + 1)
    both = train(data, [], replace(FOUR, rankers=2, objective="map+lambdamart", trees=10), POOL, metadata=metadata)
    assert [(one.trees, one.stopped) for one in both.rankers] == [(0, "split"), (5, "trees")]
    chosen = alone(FOUR, both.rankers[1], 1, 5)
    assert both.scores.tolist() == train(data, [], chosen, POOL, metadata=metadata).scores.tolist()


def test_no_ranker_with_a_tree_leaves_the_initial_scores() -> None:
    own, others = (Metadata(init_scores=one.labels * 2.0) for one in (DATA, OTHER))
    result = fit(replace(FOUR, early_stop=2), [OTHER], metadata=own, validation_metadata=[others])
    assert result.ensemble.trees == () and result.n_trees == 0 and result.rounds == 8
    assert [one.trees for one in result.ensemble.rankers] == [0] * 4
    assert result.start is not None and result.validation == result.start.validation
    assert (result.scores == own.init_scores).all()


# The model file


def test_a_model_says_which_trees_belong_to_which_ranker() -> None:
    result = fit(replace(FOUR, leaves=None))
    text = model_to_json(result.ensemble)
    assert '"version": 2' in text
    read = lmart_json.read(text.encode(), "m")
    assert (
        read.rankers
        == result.ensemble.rankers
        == tuple(
            RankerPart(one.trees, one.objective, one.tree, one.leaves, one.features, one.seed) for one in result.rankers
        )
    )
    assert [one.leaves for one in read.rankers] == [8, 8, 64, 64]
    assert model_to_json(read) == text
    assert score_dataset(read, DATA).tolist() == result.scores.tolist()


@pytest.mark.parametrize("rankers", [1, 4])
def test_scores_that_may_overflow_are_refused_in_one_line(rankers: int) -> None:
    with pytest.raises(LmartError, match=r"may grow beyond 1e\+300 in round .*; use a smaller --learning-rate"):
        fit(replace(FOUR, rankers=rankers, learning_rate=1e300))


def test_a_learning_rate_near_the_limit_gives_a_sound_model() -> None:
    result = fit(replace(FOUR, learning_rate=1e200, trees=4, normalize=True))
    assert all(np.isfinite(tree.leaf_values).all() for tree in result.ensemble.trees)
    assert lmart_json.read(model_to_json(result.ensemble).encode(), "m").rankers == result.ensemble.rankers
