"""What settings come to on data of which some facts are known."""

from __future__ import annotations

import pytest

from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.resolved import EVERY_RANK, resolve


def test_the_settings_of_a_single_ranker_are_recorded_filled_in() -> None:
    for facts in (DataFacts(70, 700), DataFacts(70, 700, with_positions=True)):
        recorded = resolve(TrainSettings(rankers=1), facts).recorded
        assert (recorded.objective, recorded.tree, recorded.features) == ("lambdamart", "leafwise", 1.0)
        assert (recorded.rankers, recorded.leaves) == (1, 8)
    assert resolve(TrainSettings(), facts).recorded == recorded  # with positions a single one is automatic


def test_of_several_rankers_the_number_is_recorded_and_what_is_given_for_all() -> None:
    resolved = resolve(TrainSettings(leaves=16), DataFacts(70, 700))
    assert resolved.recorded == TrainSettings(rankers=4, leaves=16)
    assert [one.tree.max_leaves for one in resolved.rankers] == [16] * 4
    assert resolve(TrainSettings(objective="err+map"), DataFacts(70, 700)).recorded.objective == "err+map"
    assert [one.tree.max_leaves for one in resolve(TrainSettings(), DataFacts(70, 700)).rankers] == [8, 8, 64, 64]


def test_leaves_follow_the_number_of_queries_unless_given() -> None:
    for queries, leaves in ((0, 8), (1, 8), (287, 8), (288, 9), (992, 31), (10**6, 31)):
        facts = DataFacts(queries, 10_000)
        assert resolve(TrainSettings(rankers=1), facts).recorded.leaves == leaves
        assert resolve(TrainSettings(rankers=2), facts).rankers[1].tree.max_leaves == leaves
        assert resolve(TrainSettings(rankers=1, leaves=64), facts).recorded.leaves == 64


@pytest.mark.parametrize(
    ("form", "leaves", "depth", "most", "levels"),
    [
        ("leafwise", 31, 0, 31, 30),
        ("leafwise", 31, 3, 8, 3),
        ("depthwise", 2, 0, 2, 1),
        ("leafwise", 1 << 20, 10**9, 1 << 20, (1 << 20) - 1),
        ("oblivious", 31, 0, 16, 4),
        ("oblivious", 32, 2, 4, 2),
        ("oblivious", 32, 9, 32, 5),
    ],
)
def test_limits_of_a_tree(form: str, leaves: int, depth: int, most: int, levels: int) -> None:
    tree = resolve(TrainSettings(tree=form, leaves=leaves, max_depth=depth), DataFacts(1, 1)).rankers[0].tree
    assert (tree.max_leaves, tree.max_depth) == (most, levels)


def test_no_limit_is_a_number() -> None:
    resolved = resolve(TrainSettings(truncation=0), DataFacts(1, 1))
    assert resolved.rankers[0].truncation == EVERY_RANK and resolved.patience is None
    assert resolve(TrainSettings(truncation=7, early_stop=5), DataFacts(1, 1)).rankers[0].truncation == 7
    assert resolve(TrainSettings(early_stop=5), DataFacts(1, 1)).patience == 5


def test_large_data_is_sampled_unless_a_share_is_given() -> None:
    for documents, rate in ((200_000, 1.0), (400_000, 0.5), (10**7, 0.3)):
        assert resolve(TrainSettings(), DataFacts(1, documents)).sampling_rate == rate
        assert resolve(TrainSettings(sample=0.7), DataFacts(1, documents)).sampling_rate == 0.7


@pytest.mark.parametrize(
    ("metric", "objective", "scale", "used", "recorded"),
    [
        ("ndcg@10", "lambdamart", 6, 6, None),
        ("err", "lambdamart", 4, 4, None),
        ("err", "lambdamart", 6, 6, 6),
        ("err@10(max=4)", "lambdamart", 4, 4, 4),
        ("err@10(max=5)", "err", 6, 5, 5),
        ("map", "lambdamart+err", 6, 6, 6),
    ],
)
def test_the_largest_label_is_recorded_where_it_counts(
    metric: str, objective: str, scale: int, used: int, recorded: int | None
) -> None:
    resolved = resolve(TrainSettings(metric=metric, objective=objective), DataFacts(1, 1, scale))
    assert (resolved.largest_label, resolved.recorded.largest_label) == (used, recorded)
    assert resolved.uses_label_scale == ("err" in metric + objective)


def test_what_is_recorded_resolves_to_the_same() -> None:
    for given in (
        TrainSettings(),
        TrainSettings(rankers=1),
        TrainSettings(objective="map+err", features=0.3),
        TrainSettings(metric="err", early_stop=3),
        TrainSettings(monotone="3:-1", tree="depthwise"),
    ):
        facts = DataFacts(70, 300_000, 5)
        resolved = resolve(given, facts)
        assert resolve(resolved.recorded, facts) == resolved
