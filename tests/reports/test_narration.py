"""What a run says of the rankers it chose."""

from __future__ import annotations

import pytest

from lmart.reports.narration import automatic_choices
from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.resolved import resolve

SMALL, LARGE = DataFacts(20, 400), DataFacts(2_000, 40_000)


@pytest.mark.parametrize(
    ("settings", "facts", "beginnings"),
    [
        (TrainSettings(), SMALL, ["by default trains 4 rankers and averages them, which ranks", "the mean of 4"]),
        (TrainSettings(rankers=4), SMALL, ["the mean of 4 rankers (auto: "]),
        (TrainSettings(trees=50), LARGE, ["yetirank with 31 leaves (auto: 2,000 queries, 50 trees); --rankers 1"]),
        (TrainSettings(trees=50, objective="yetirank"), LARGE, ["yetirank with 31 leaves (auto: "]),
        (TrainSettings(trees=50, rankers=1), LARGE, ["lambdamart with 31 leaves (auto: "]),
    ],
)
def test_the_default_and_the_plain_algorithm_are_named(
    settings: TrainSettings, facts: DataFacts, beginnings: list[str]
) -> None:
    said = list(automatic_choices(settings, resolve(settings, facts)))
    assert len(said) == len(beginnings)
    assert all(line.startswith(start) for line, start in zip(said, beginnings, strict=True)), said
    is_default = settings.rankers is None and settings.objective is None
    assert said[0].endswith("; --rankers 1 trains lambdamart alone") == is_default
