"""Presets: the same scores get the numbers of the tool; by the tool itself where it installs, else by worked values."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from helpers import other_tools
from helpers.other_tools import Ranking, Tool, data_sets, ours, pooled

from lmart.errors import SettingsError
from lmart.gains import Gain
from lmart.measures import CHOICES, Conventions, Evaluator, parse_measures
from lmart.measures.judgments import Judgments
from lmart.measures.presets import PRESETS, conventions_like
from lmart.reports.pages.evaluation_content import with_cutoffs

LABELS = [1.0, 3.0, 0.0, 2.0, 0.0]  # in ranked order


def ranked(*queries: list[float]) -> Ranking:
    """Queries given as labels in ranked order."""
    labels = np.array([label for query in queries for label in query])
    return Ranking("", labels, -np.arange(len(labels)) / 8, np.array([len(query) for query in queries]))


def measured(like: str, metric: str, *queries: list[float], **overrides: Any) -> list[Any]:
    return list(ours(ranked(*queries), metric, like, **overrides).values())


# ---- the records


def test_presets_set_only_what_exists_and_say_whose_they_are() -> None:
    names = ["lightgbm", "xgboost", "ranklib", "trec_eval", "sklearn", "letor4", "mslr", "gdeval"]
    assert list(PRESETS) == names
    for name, preset in PRESETS.items():
        assert preset.name == preset.conventions.like == name
        assert preset.tool and preset.measures
    assert len({replace(preset.conventions, like=None) for preset in PRESETS.values()}) == len(PRESETS)


def test_single_options_override_a_preset() -> None:
    made = conventions_like("lightgbm", empty="zero", gain=Gain("linear"), ties=None)
    assert made == replace(PRESETS["lightgbm"].conventions, empty="zero", gain=Gain("linear"))
    assert conventions_like(None) == Conventions() and conventions_like(None, ties="average").ties == "average"
    with pytest.raises(SettingsError, match="'lgbm' is no preset; use lightgbm, xgboost"):
        conventions_like("lgbm")
    with pytest.raises(SettingsError, match="use zero, one or skip; perhaps 'skip'"):
        conventions_like("lightgbm", empty="none")


def test_every_choice_is_taken_by_a_preset_or_the_default_or_an_option() -> None:
    """So there is no convention that nobody has."""
    taken = {name: {getattr(one.conventions, name) for one in PRESETS.values()} for name in CHOICES}
    for name, choices in CHOICES.items():
        assert next(iter(choices)) == getattr(Conventions(), name)
        assert set(choices) - taken[name] <= {"reverse", "remove", next(iter(choices))}, name
    assert {one.name for one in fields(Conventions)} == {*CHOICES, "gain", "relevant", "like", "lowest_cutoff"}


def test_no_measure_depends_on_those_that_are_added_to_the_list() -> None:
    rng = np.random.default_rng(3)
    labels = [rng.integers(0, 3, size).astype(float).tolist() for size in (1, 2, 3, 5, 8) * 6]
    for like in (None, *PRESETS):
        for metric in ("ndcg@5", "ndcg", "ndcg@3,map", "map"):
            asked = parse_measures(metric, conventions_like(like, gain=Gain.parse("0,1,0"), ties="input"))
            data = ranked(*labels)
            alone, among = (
                Evaluator(Judgments(data.labels, data.offsets), measures).evaluate(data.scores).values
                for measures in (asked, with_cutoffs(asked))
            )
            assert {name: among[name] for name in alone} == alone, (like, metric)


def test_lightgbm_asks_at_the_lowest_cutoff_whether_a_query_is_empty() -> None:
    odd = ([0.0, 1.0, 2.0], [0.0, 1.0])  # by label first comes a gain of 0, then of 1
    table = Gain.parse("0,1,0")
    apart = [measured("lightgbm", f"ndcg@{k}", *odd, gain=table)[0] for k in (1, 2)]
    assert apart == pytest.approx([0.5, (1.0 + 0.6309297536) / 2])
    assert measured("lightgbm", "ndcg@2,ndcg@1", *odd, gain=table) == pytest.approx([(1.0 + 0.6309297536) / 2, 0.5])


# ---- worked values


def test_letor() -> None:
    names = "ndcg@1,ndcg@2,ndcg@3,ndcg@4,ndcg@5"
    wanted = [0.1428571429, 0.8, 0.7525211986, 0.8936189233, 0.8936189233]
    assert measured("letor4", names, LABELS) == pytest.approx(wanted, abs=6e-11)
    assert measured("letor4", "ndcg@6,ndcg@10,p@10,map", LABELS) == pytest.approx([0, 0, 0.3, 11 / 12], abs=6e-11)
    assert measured("letor4", "dcg@2,dcg@3,dcg@4,dcg@9", LABELS) == [8, 8, 9.5, 9.5]
    assert measured("letor4", "ndcg@2,map", LABELS, [0.0, 0.0, 0.0]) == pytest.approx([0.4, 11 / 24], abs=6e-11)


def test_mslr_takes_documents_of_label_2_for_relevant() -> None:
    assert measured("mslr", "ndcg@4,ndcg@6", LABELS) == pytest.approx([0.8936189233, 0], abs=6e-11)
    assert measured("mslr", "map,p@3", LABELS) == pytest.approx([0.5, 1 / 3], abs=6e-11)
    assert measured("mslr", "map,ndcg@1", [1.0, 0.0]) == [0.0, 1.0]
    assert measured("mslr", "map,map(rel=1)", LABELS) == pytest.approx([0.5, 11 / 12], abs=6e-11)


def test_ranklib() -> None:
    tied = Ranking("", np.array([0.0, 3, 1, 2]), np.ones(4), np.array([4]))
    values = ours(tied, "ndcg@10,map,err@10,mrr@10,p@10", "ranklib")
    assert list(values.values()) == pytest.approx([0.6609898058, 0.6388888889, 0.2551879883, 0.5, 0.75], abs=6e-11)
    assert measured("ranklib", "p@10,ndcg@10", LABELS, [0.0, 0.0]) == pytest.approx([0.3, 0.35711106], abs=6e-9)


def test_lightgbm_and_xgboost_without_the_tools() -> None:
    both = (LABELS, [0.0, 0.0, 0.0])
    wanted = [0.5714285714, 0.7883333228, 0.8571110648, 0.8571110648]
    for like in ("lightgbm", "xgboost"):
        assert measured(like, "ndcg@1,ndcg@3,ndcg@5,ndcg@10", *both) == pytest.approx(wanted, abs=6e-11)
        assert measured(like, "map@2", LABELS) == [1.0]
    assert measured("xgboost", "map,p@3,p@10", *both) == pytest.approx([0.9583333333, 1 / 3, 0.3], abs=6e-11)
    minus = measured("xgboost", "ndcg,ndcg@3,map", *both, empty="zero")
    assert minus == pytest.approx([0.3571110648, 0.2883333228, 0.4583333333], abs=6e-11)
    # 3 relevant, 2 documents looked at, 1 retrieved
    retrieved = replace(ranked([1.0, 1.0, 1.0]), retrieved=np.array([True, False, False]))
    assert ours(retrieved, "map@2", "lightgbm") == {"map@2": 1.0} != ours(retrieved, "map@2", "xgboost")


def test_trec_eval_and_gdeval_without_the_tools() -> None:
    labels = np.array([3.0, 0, 2, 1, 2])
    ranking = Ranking("", labels, np.array([0.5, 0.5, 0.5, 0.9, 0.0]), np.array([5]))
    tie_order = np.array([2, 1, 0, 3, 4])  # by d1..d4
    retrieved = np.array([True, True, True, True, False])

    def printed(metric: str, like: str, **overrides: Any) -> list[Any]:
        measures = parse_measures(metric, conventions_like(like, **overrides))
        evaluator = Evaluator(
            Judgments(ranking.labels, ranking.offsets, retrieved=retrieved, tie_order=tie_order), measures
        )
        return list(evaluator.evaluate(ranking.scores).values.values())

    names = "map,p@3,recall@5,ndcg,ndcg@1,ndcg@3,mrr"
    wanted = [0.6875, 0.6667, 0.75, 0.6243, 0.3333, 0.4299, 1]
    assert printed(names, "trec_eval") == pytest.approx(wanted, abs=5e-5)
    assert printed("ndcg", "trec_eval", gain=Gain.parse("0,1,3,7")) == pytest.approx([0.5458], abs=5e-5)
    assert printed("ndcg@20", "gdeval") == pytest.approx([0.5458], abs=5e-5)
    assert measured("gdeval", "err@20", LABELS, [0.0], ties="input") == pytest.approx([0.2922973633], abs=6e-11)


def test_sklearn_without_the_tool() -> None:
    tied = Ranking("", np.array([3.0, 0, 2, 1, 0]), np.array([0.5, 0.5, 0.5, 0.9, 0.1]), np.array([5]))
    assert list(ours(tied, "ndcg@3,ndcg", "sklearn").values()) == pytest.approx([0.6058311713, 0.7565693991], abs=6e-11)


def test_what_an_empty_query_is_in_ndcg_where_label_0_has_a_gain() -> None:
    table = Gain.parse("1,2")
    assert measured("ranklib", "ndcg,map", [0.0, 0.0], gain=table) == [1.0, 0.0]
    assert list(ours(ranked([0.0, 0.0]), "ndcg,map", None, gain=table).values()) == [0.0, 0.0]


def test_a_query_of_which_nothing_is_retrieved() -> None:
    two = replace(ranked([1.0, 0.0], [1.0, 0.0]), retrieved=np.array([True, True, False, False]))
    assert ours(two, "ndcg,map,judged", None) == {"ndcg": 0.5, "map": 0.5, "judged": 0.5}
    assert ours(two, "ndcg,map,judged", None, missing="skip") == {"ndcg": 1.0, "map": 1.0, "judged": 1.0}
    assert ours(two, "map,gmap", "trec_eval") == {"map": 1.0, "gmap": 1.0}
    with_c = {"map": 0.5, "gmap": pytest.approx(0.00001**0.5)}  # -c of trec_eval: 0.00001 stands for a map of 0
    assert ours(two, "map,gmap", "trec_eval", missing="zero") == with_c


# ---- the tools themselves

CASES = [
    pytest.param(like, module, tool, tolerance, ranking, id=f"{like} by {tool.__name__}: {ranking.name}")
    for like, module, tool, tolerance, takes_pools in other_tools.COMPARED
    for ranking in [*data_sets(), *([pooled()] if takes_pools else [])]
]


def compare(numbers: dict[str, float], ranking: Ranking, like: str, tolerance: float, **overrides: Any) -> None:
    found = ours(ranking, ",".join(numbers), like, **overrides)
    assert list(found) == list(numbers) and len(numbers) > 0
    assert found == pytest.approx(numbers, rel=tolerance, abs=tolerance)


@pytest.mark.peers
@pytest.mark.parametrize(("like", "module", "tool", "tolerance", "ranking"), CASES)
def test_the_tool_agrees(like: str, module: str, tool: Tool, tolerance: float, ranking: Ranking) -> None:
    pytest.importorskip(module)
    if like == "gdeval" and shutil.which("perl") is None:
        pytest.skip("perl is not here")
    compare(tool(ranking), ranking, like, tolerance)


@pytest.mark.peers
@pytest.mark.parametrize("ranking", data_sets(), ids=lambda one: one.name)
def test_lightgbm_agrees_with_weights_and_a_table_of_gains(ranking: Ranking) -> None:
    pytest.importorskip("lightgbm")
    weights = np.random.default_rng(6).integers(1, 9, len(ranking.labels)) / 4
    compare(other_tools.lightgbm(ranking, weights), ranking, "lightgbm", 1e-7, weights=weights)  # 32 bits of weights
    for table in ([0.0, 3.0, 0.0, 1.0, 2.0], [1.0, 2.0, 2.5, 4.0, 9.0]):
        numbers = other_tools.lightgbm(ranking, gain=table)
        compare(numbers, ranking, "lightgbm", 1e-14, gain=Gain("table", tuple(table)))


@pytest.mark.peers
@pytest.mark.parametrize("ranking", data_sets(), ids=lambda one: one.name)
def test_xgboost_agrees_with_weights_and_with_empty_queries_of_0(ranking: Ranking) -> None:
    pytest.importorskip("xgboost")
    compare(other_tools.xgboost(ranking, minus=True), ranking, "xgboost", 1e-14, empty="zero")
    compare(other_tools.xgboost(ranking, exp_gain=False), ranking, "xgboost", 1e-14, gain=Gain("linear"))
    weights = np.random.default_rng(7).integers(1, 9, len(ranking.sizes)) / 4
    compare(other_tools.xgboost(ranking, weights=weights), ranking, "xgboost", 1e-6, weights=weights)


@pytest.mark.peers
def test_xgboost_compares_scores_of_32_bits() -> None:
    pytest.importorskip("xgboost")
    close = Ranking("", np.array([0.0, 1.0, 0.0]), np.array([1.0, 1.0 + 1e-9, 0.0]), np.array([3]))
    numbers = other_tools.xgboost(close)
    compare(numbers, close, "xgboost", 1e-14)
    assert ours(close, "ndcg@3", "xgboost", precision="double") != ours(close, "ndcg@3", "xgboost")


@pytest.mark.peers
@pytest.mark.parametrize("ranking", [*data_sets(), pooled()], ids=lambda one: one.name)
def test_trec_eval_agrees_on_a_level_of_relevance(ranking: Ranking) -> None:
    pytest.importorskip("pytrec_eval")
    numbers = other_tools.pytrec_eval(ranking, level=2)
    binary = {name: value for name, value in numbers.items() if not name.startswith("ndcg")}
    compare(binary, ranking, "trec_eval", 1e-14, relevant=2.0)
    compare({f"{name}(rel=2)": value for name, value in binary.items()}, ranking, "trec_eval", 1e-14)


@pytest.mark.peers
@pytest.mark.parametrize("ranking", [*data_sets(), pooled()], ids=lambda one: one.name)
def test_trec_eval_agrees_on_judged_documents_only(ranking: Ranking) -> None:
    pytest.importorskip("pytrec_eval")
    numbers = other_tools.pytrec_eval(ranking, only_judged=True)
    compare(numbers, ranking, "trec_eval", 1e-14, unjudged="remove")
    assert ranking.judged is None or numbers != other_tools.pytrec_eval(ranking)
    pytest.importorskip("ir_measures")
    names = {"ndcg@10": "nDCG(judged_only=True)@10", "success@3": "Success(judged_only=True)@3"}
    compare(other_tools.ir_measures(ranking, names), ranking, "trec_eval", 1e-14, unjudged="remove")


@pytest.mark.peers
@pytest.mark.parametrize("ranking", data_sets(), ids=lambda one: one.name)
def test_scikit_learn_agrees_on_the_area_under_the_curve(ranking: Ranking) -> None:
    pytest.importorskip("sklearn")
    compare(other_tools.sklearn_auc(ranking), ranking, "sklearn", 1e-14, empty="skip")


@pytest.mark.peers
def test_trec_eval_9_compares_scores_of_32_bits() -> None:
    pytest.importorskip("pytrec_eval")
    close = Ranking("", np.array([1.0, 0.0]), np.array([1.0 + 1e-9, 1.0]), np.array([2]))
    assert close.ids == ["d0", "d7919"]
    assert other_tools.pytrec_eval(close)["mrr"] == 0.5
    assert ours(close, "mrr", "trec_eval") == {"mrr": 1.0}
    assert ours(close, "mrr", "trec_eval", precision="single") == {"mrr": 0.5}


@pytest.mark.peers
def test_the_share_of_judged_documents() -> None:
    """On scores without ties, as ir_measures orders equal ones by document id ascending."""
    pytest.importorskip("ir_measures")
    given = pooled()
    ranking = replace(given, scores=np.random.default_rng(1).permutation(len(given.labels)) / 8)
    names = {f"judged@{k}": f"Judged@{k}" for k in (1, 3, 10, 100)}
    compare(other_tools.ir_measures(ranking, names), ranking, "trec_eval", 1e-14)


@pytest.mark.peers
@pytest.mark.slow
def test_ranx_agrees_where_there_are_no_ties() -> None:
    pytest.importorskip("ranx")
    ranking = data_sets()[2]
    compare(other_tools.ranx(ranking), ranking, "trec_eval", 1e-12)


@pytest.mark.peers
def test_kendall_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for ranking in data_sets():
        measures = parse_measures("kendall")
        report = Evaluator(Judgments(ranking.labels, ranking.offsets), measures).evaluate(ranking.scores)
        for q, rows in ranking.queries():
            labels, scores = ranking.labels[rows], ranking.scores[rows]
            if len(set(labels)) > 1 and len(set(scores)) > 1:
                wanted = stats.kendalltau(scores, labels).statistic
                assert report.per_query["kendall"][q - 1] == pytest.approx(wanted, rel=1e-13, abs=1e-15)
