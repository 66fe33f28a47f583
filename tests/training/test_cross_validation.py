"""Cross-validation of the mean of several rankers: one number of trees for all rankers of all folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.datasets import dataset, random_dataset
from helpers.score_data import score_dataset

from lmart.array_types import Float64Array
from lmart.data.dataset import RankingDataset, rows_of, select_queries
from lmart.data.metadata import NO_METADATA, Metadata, Positions
from lmart.measures import Conventions, Evaluator, parse_measures
from lmart.measures.judgments import Judgments
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.cross_validation import CrossValidation, cross_validate
from lmart.training.rankers import RoundReport
from lmart.training.resolving import resolve_for

POOL = WorkerPool(1)
THREE = TrainSettings(trees=18, rankers=3, leaves=6, min_docs=3)
DATA = random_dataset(31, n_queries=60)


def crossed(chosen: TrainSettings, metadata: Metadata = NO_METADATA, **named: object) -> CrossValidation:
    resolved = resolve_for(chosen, DATA, with_positions=metadata.positions is not None)
    return cross_validate(DATA, 3, resolved, POOL, metadata=metadata, **named)  # type: ignore[arg-type]


def ndcg(data: RankingDataset, scores: Float64Array, weights: Float64Array | None = None) -> float:
    measures = parse_measures("ndcg@10", Conventions())
    return (
        Evaluator(Judgments(data.labels, data.query_offsets), measures, weights=weights)
        .evaluate(scores)
        .values["ndcg@10"]
        or 0
    )


def by_hand(
    found: CrossValidation, chosen: TrainSettings, rounds: int, metadata: Metadata = NO_METADATA
) -> tuple[Float64Array, list[float]]:
    """Train a model for each fold with `rounds` trees a ranker; return the scores of all rows, and the measures."""
    scores, measures = np.zeros(DATA.n_documents), []
    settings = replace(chosen, trees=rounds * (chosen.rankers or 1), early_stop=0)
    for fold in range(3):
        seen, held = (np.flatnonzero((found.fold_of_query == fold) == own) for own in (False, True))
        own, others = (metadata.of_queries(DATA.query_offsets, queries) for queries in (seen, held))
        held_set = select_queries(DATA, held)
        model = train(select_queries(DATA, seen), [], settings, POOL, metadata=own).ensemble
        part = score_dataset(model, held_set) + (0.0 if others.init_scores is None else others.init_scores)
        scores[rows_of(DATA.query_offsets, held)] = part
        measures.append(ndcg(held_set, part, others.weights))
    return scores, measures


STARTS = Metadata(init_scores=np.linspace(-1, 1, DATA.n_documents))
WEIGHTS = Metadata(weights=np.repeat(np.arange(60) % 3 / 2, np.diff(DATA.query_offsets)))
PLACES = np.concatenate([np.arange(n) % 5 for n in np.diff(DATA.query_offsets)]).astype(np.int32)


@pytest.mark.parametrize("changed", [{}, {"early_stop": 3}, {"sample": 0.5}, {"objective": "err+map+ranknet"}])
@pytest.mark.parametrize(
    "metadata", [NO_METADATA, STARTS, WEIGHTS, Metadata(positions=Positions(tuple("abcde"), PLACES))]
)
def test_out_of_fold_scores_and_measures_are_those_of_models_trained_by_hand(
    changed: dict[str, object], metadata: Metadata
) -> None:
    if metadata.positions is not None:
        changed = {name: value for name, value in changed.items() if name != "objective"}
    chosen = replace(THREE, **changed)  # type: ignore[arg-type]
    found = crossed(chosen, metadata)
    scores, measures = by_hand(found, chosen, found.rounds, metadata)
    assert (found.scores == scores).all()
    assert [one.measure for one in found.folds] == measures
    assert found.mean == pytest.approx(sum(measures) / 3, rel=1e-15)
    assert found.trees == 3 * found.rounds and found.n_rankers == 3


def test_the_number_of_trees_is_the_best_of_the_mean_of_the_combined_model() -> None:
    found = crossed(THREE)
    means = [sum(by_hand(found, THREE, rounds)[1]) / 3 for rounds in range(1, 7)]
    assert found.curve == pytest.approx(means, abs=1e-12)
    assert found.rounds == means.index(max(means)) + 1


@pytest.mark.parametrize("metadata", [NO_METADATA, STARTS])
def test_a_ranker_without_a_split_has_no_share_in_folds(metadata: Metadata) -> None:
    """Planted: all documents are relevant, so that map has no pair; else the initial scores would count twice."""
    data = replace(DATA, labels=DATA.labels + 1)
    curves = []
    for chosen in (replace(THREE, rankers=2, objective="lambdamart+map"), replace(THREE, rankers=1)):
        settings = replace(chosen, trees=6 * (chosen.rankers or 1), learning_rate=0.3)
        found = cross_validate(data, 3, resolve_for(settings, data), POOL, metadata=metadata)
        curves.append((found.curve.tolist(), found.scores.tolist()))
    assert curves[0] == curves[1]


def test_no_ranker_has_more_rounds_than_its_even_share_of_the_trees() -> None:
    """With 20 trees, 3 rankers have 6 rounds each: what is left over would be the model of none."""
    found = crossed(replace(THREE, trees=20))
    assert len(found.curve) == 6 and found.trees <= 18
    assert found.curve.tolist() == crossed(THREE).curve.tolist()
    stopped = crossed(replace(THREE, trees=20, early_stop=20))
    assert len(stopped.curve) == 6 and not stopped.stopped


def test_folds_of_several_rankers_depend_on_no_threads() -> None:
    resolved = resolve_for(replace(THREE, sample=0.5, early_stop=2), DATA)
    found = []
    for threads in (1, 3):
        with WorkerPool(threads) as pool:
            one = cross_validate(DATA, 3, resolved, pool)
        found.append((one.scores.tobytes(), one.mean, one.curve.tolist()))
    assert found[0] == found[1]


def test_early_stopping_is_by_the_mean_and_stops_all_rankers_together() -> None:
    rounds: list[tuple[int, RoundReport]] = []
    found = crossed(replace(THREE, trees=300, early_stop=4), on_round=lambda *one: rounds.append(one))
    assert found.stopped and len(found.curve) == found.rounds + 4
    assert [(fold, one.round) for fold, one in rounds] == [
        (fold, number) for number in range(1, len(found.curve) + 1) for fold in range(3)
    ]
    assert found.rounds == int(np.argmax(found.curve)) + 1


@pytest.mark.slow
def test_planted_noise_is_averaged_away() -> None:
    """Rankers that may each split on one of three copies of a noisy feature: their mean ranks new queries better."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 5, 600).astype(float)
    features = truth[:, None] + rng.normal(size=(600, 3)) * 2
    data = dataset(truth.tolist(), np.repeat(np.arange(60), 10).tolist(), features)
    means = []
    for rankers, trees in ((1, 4), (16, 64)):
        chosen = TrainSettings(trees=trees, rankers=rankers, features=0.34, objective="lambdamart", tree="leafwise")
        means.append(cross_validate(data, 3, resolve_for(chosen, data), POOL).mean)
    assert means[1] > means[0] + 0.01
