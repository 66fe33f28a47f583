"""Which rankers a model is the mean of."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lmart.errors import SettingsError
from lmart.gains import Gain
from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.recipe import (
    AUTOMATIC,
    VARIATIONS,
    check_rankers,
    plan_rankers,
    ranker_seed,
)
from lmart.settings.resolved import resolve

FIRST_FOUR = [
    ("yetirank", "leafwise", 1.0),
    ("lambdamart", "leafwise", 1.0),
    ("lambdamart", "oblivious", 1.0),
    ("yetirank", "oblivious", 0.5),
]


def of(n: int = 4, with_positions: bool = False, **given: Any) -> list[tuple[str, str, float]]:
    plan = plan_rankers(TrainSettings(rankers=n, **given), DataFacts(0, 0, with_positions=with_positions))
    return [(one.objective, one.tree, one.feature_rate) for one in plan.variations()]


def count_rankers(settings: TrainSettings, facts: DataFacts) -> int:
    return plan_rankers(settings, facts).n_rankers


def test_the_first_rankers_are_those_of_the_table() -> None:
    assert of() == FIRST_FOUR == [tuple(one) for one in VARIATIONS[:4]]
    assert of(2) == FIRST_FOUR[:2]
    assert len(set(VARIATIONS)) == len(VARIATIONS) == 8


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"objective": "xendcg", "tree": "leafwise"},
            [("xendcg", 1.0), ("xendcg", 0.5), ("xendcg", 1.0), ("xendcg", 0.5)],
        ),
        ({"tree": "depthwise"}, [("yetirank", 1.0), ("lambdamart", 1.0), ("yetirank", 0.5), ("lambdamart", 0.5)]),
        ({"features": 0.7, "tree": "leafwise"}, [("yetirank", 0.7), ("lambdamart", 0.7)] * 2),
        ({"monotone": "1:+1"}, [("yetirank", 1.0), ("lambdamart", 1.0), ("lambdamart", 0.5), ("yetirank", 0.5)]),
    ],
)
def test_what_is_given_holds_for_every_ranker(given: dict[str, Any], expected: list[tuple[str, float]]) -> None:
    form = str(given.get("tree", "leafwise"))
    assert of(**given) == [(objective, form, rate) for objective, rate in expected]


def test_one_ranker_is_plain_lambdamart_where_it_is_asked_for_or_trees_are_few() -> None:
    plain = [("lambdamart", "leafwise", 1.0)]
    assert of(1) == plain
    for queries, trees, objective in ((10_000, 300, "yetirank"), (10_000, 39, "lambdamart"), (10, 39, "lambdamart")):
        resolved = resolve(TrainSettings(trees=trees), DataFacts(queries, 10 * queries))
        assert [one.objective.name for one in resolved.rankers] == [objective]
        again = resolve(resolved.recorded, resolved.facts)
        assert again == resolved


def test_objectives_that_go_by_labels_are_left_out_where_the_gain_is_another() -> None:
    for gain in ("0,1,5", "linear"):
        assert {one[0] for one in of(gain=Gain.parse(gain))} == {"lambdamart"}


def test_several_objectives_are_taken_in_turn() -> None:
    assert [one[0] for one in of(5, objective="map+err+xendcg")] == ["map", "err", "xendcg", "map", "err"]
    assert of(2, objective="map+err") == [("map", "leafwise", 1.0), ("err", "leafwise", 1.0)]
    assert count_rankers(TrainSettings(objective="map+err+mrr"), DataFacts(50, 500)) == 3
    assert count_rankers(TrainSettings(objective="map+err+mrr", rankers=2), DataFacts(50, 500)) == 2


def test_only_objectives_that_learn_a_bias_of_positions_are_taken_where_there_are_positions() -> None:
    assert [one[0] for one in of(4, with_positions=True)] == ["lambdamart"] * 4
    assert len(set(of(4, with_positions=True))) == 4
    assert count_rankers(TrainSettings(), DataFacts(500, 5000, with_positions=True)) == 1
    assert count_rankers(TrainSettings(rankers=3), DataFacts(500, 5000, with_positions=True)) == 3


def test_no_two_rankers_of_a_model_are_the_same() -> None:
    with pytest.raises(SettingsError, match="rankers is 5, but with the other settings only 4 differ; use fewer"):
        of(5, objective="lambdamart")
    with pytest.raises(SettingsError, match="only 1 differs;"):
        of(2, objective="lambdamart", tree="leafwise", features=1.0)
    with pytest.raises(SettingsError, match="rankers is 5"):
        of(5, with_positions=True)
    assert len(of(2, objective="lambdamart", tree="leafwise", features=0.9)) == 2  # by features drawn otherwise
    assert len(of(9, objective="xendcg")) == 9  # by noise
    assert len(of(5, objective="lambdamart", sample=0.5)) == 5  # by rows drawn otherwise
    with pytest.raises(SettingsError, match="only 8 differ"):
        of(9)  # the ninth would be the first again, which draws nothing


def test_every_objective_that_is_named_has_a_ranker() -> None:
    with pytest.raises(SettingsError, match="objective names 3, and rankers is 2"):
        check_rankers(TrainSettings(objective="map+err+mrr", rankers=2), False)
    with pytest.raises(SettingsError, match="objective names 3, and trees is 2; give as many trees, or more"):
        check_rankers(TrainSettings(objective="map+err+mrr", trees=2), False)
    for trees in (0, 3):  # 0: the initial scores alone
        check_rankers(TrainSettings(objective="map+err+mrr", trees=trees), False)


def test_seeds_are_different_and_the_first_is_that_of_the_run() -> None:
    assert ranker_seed(7, 0) == 7
    seeds = [ranker_seed(seed, number) for seed in range(40) for number in range(64)]
    assert len(set(seeds)) == len(seeds) and min(seeds) >= 0 and max(seeds) < 2**63
    resolved = resolve(TrainSettings(rankers=3, seed=5), DataFacts(50, 500))
    assert [one.seed for one in resolved.rankers] == [ranker_seed(5, number) for number in range(3)]


@pytest.mark.parametrize(("trees", "rate"), [(300, 0.1), (500, 0.05), (100, 0.1), (1000, 0.03), (3, 0.1), (150, 0.3)])
def test_the_automatic_number_falls_with_the_queries_by_one_at_a_time(trees: int, rate: float) -> None:
    settings = TrainSettings(trees=trees, learning_rate=rate)
    counts = [count_rankers(settings, DataFacts(n, 10 * n)) for n in range(3000)]
    assert all(0 <= before - after <= 1 for before, after in itertools.pairwise(counts))
    assert min(counts) >= 1 and max(counts) <= AUTOMATIC


def test_the_automatic_number_grows_with_the_trees_by_one_at_a_time() -> None:
    for queries, documents, most in ((10, 100, AUTOMATIC), (450, 9000, AUTOMATIC), (2000, 40_000, 2)):
        counts = [count_rankers(TrainSettings(trees=n), DataFacts(queries, documents)) for n in range(1, 700)]
        assert all(0 <= after - before <= 1 for before, after in itertools.pairwise(counts))
        assert (counts[0], counts[-1]) == (1, most)


@pytest.mark.parametrize(
    ("queries", "documents", "trees", "rate", "expected"),
    [
        (60, 6000, 300, 0.1, 4),
        (470, 9630, 500, 0.05, 4),
        (2625, 2625, 300, 0.1, 4),
        (2626, 2626, 300, 0.1, 3),
        (2000, 240_000, 300, 0.1, 1),
        (60, 600, 20, 0.1, 1),
        (9, 90, 40, 0.1, 2),
    ],
)
def test_the_automatic_number_is_what_the_help_says(
    queries: int, documents: int, trees: int, rate: float, expected: int
) -> None:
    assert count_rankers(TrainSettings(trees=trees, learning_rate=rate), DataFacts(queries, documents)) == expected


def test_the_automatic_number_is_at_most_what_differs() -> None:
    given = TrainSettings(tree="leafwise", features=1.0)
    assert count_rankers(given, DataFacts(60, 600)) == 2
    assert [one.objective.name for one in resolve(given, DataFacts(60, 600)).rankers] == ["yetirank", "lambdamart"]
    assert count_rankers(TrainSettings(tree="leafwise", features=0.5), DataFacts(60, 600)) == 4


def test_there_are_no_more_rankers_than_trees() -> None:
    assert count_rankers(TrainSettings(trees=2, rankers=5), DataFacts(10, 100)) == 2
    resolved = resolve(TrainSettings(trees=2, rankers=5), DataFacts(50, 500))
    assert [one.trees for one in resolved.rankers] == [1, 1] and resolved.recorded.rankers == 2


@pytest.mark.parametrize(("trees", "shares"), [(8, [3, 3, 2]), (9, [3, 3, 3]), (10, [4, 3, 3])])
def test_rankers_share_the_trees_evenly(trees: int, shares: list[int]) -> None:
    resolved = resolve(TrainSettings(trees=trees, rankers=3), DataFacts(50, 500))
    assert [one.trees for one in resolved.rankers] == shares and resolved.rounds == shares[-1]


def test_rankers_share_the_trees_where_their_number_is_automatic_and_early_stopping_has_a_validation_set() -> None:
    validated = DataFacts(2000, 240_000, with_validation=True)
    stopping = TrainSettings(early_stop=10)
    assert plan_rankers(stopping, validated)[2:] == (AUTOMATIC, True)
    resolved = resolve(stopping, validated)
    assert resolved.shares_trees and [one.trees for one in resolved.rankers] == [300] * AUTOMATIC
    assert resolved.recorded.rankers is None  # so that what is recorded trains the same again
    one = resolved.of_first_ranker()
    assert one == resolve(one.recorded, validated) and len(one.rankers) == 1
    assert (one.recorded.objective, one.recorded.rankers, one.trees) == ("yetirank", 1, 300)
    for given, facts in (
        (TrainSettings(), validated),
        (stopping, DataFacts(2000, 240_000)),
        (TrainSettings(early_stop=10, rankers=3), validated),
        (TrainSettings(early_stop=10, objective="map+err"), validated),
        (TrainSettings(early_stop=10, trees=30), validated),
        (stopping, validated._replace(with_positions=True)),
    ):
        assert not plan_rankers(given, facts).shares_trees and not resolve(given, facts).shares_trees


def test_a_linear_ranker_is_in_the_default_mean_of_several_where_the_data_supports_it() -> None:
    small, large = DataFacts(500, 9_000, with_validation=True), DataFacts(6_000, 700_000)

    def weight(facts: DataFacts, **given: Any) -> float:
        return resolve(TrainSettings(**given), facts).linear

    assert weight(small) == weight(small, tree="oblivious") == weight(small, early_stop=5) == 0.4
    assert weight(small, rankers=1) == weight(small, rankers=4) == weight(small, objective="err+map") == 0.0
    assert weight(small, trees=20) == weight(small._replace(with_positions=True)) == 0.0
    assert weight(large, trees=3_000) == weight(small._replace(with_validation=False)) == 0.0
    assert weight(large._replace(with_validation=True), early_stop=9) == 0.4
    assert weight(small, linear=0.2, rankers=1) == weight(large, linear=0.2) == 0.2
    assert weight(small, linear=0.0) == 0.0
