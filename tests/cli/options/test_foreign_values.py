"""Values of other tools lead to ours."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from helpers.commands import run

from lmart.cli.options.foreign_values import TABLES, close_words, measure_for, measures_for, values_for
from lmart.formats.registry import FORMATS, RESULT_FORMATS
from lmart.measures import KINDS, parse_measure
from lmart.measures.conventions import CHOICES
from lmart.settings import OBJECTIVES, TREE_FORMS

TRAIN = ("train", "--data", "x")
EVAL = ("eval", "--data", "x", "--scores", "y")


@pytest.mark.parametrize(
    ("arguments", "foreign", "ours"),
    [
        *(
            (TRAIN, ("--objective", foreign), "lambdamart")
            for foreign in ("lambdarank", "rank:ndcg", "LambdaMart", "6")
        ),
        *((TRAIN, ("--objective", foreign), "ranknet") for foreign in ("rank:pairwise", "PairLogit", "1", "RankNet")),
        (TRAIN, ("--objective", "rank_xendcg"), "xendcg"),
        (TRAIN, ("--objective", "xe_ndcg_mart"), "xendcg"),
        (TRAIN, ("--objective", "rank:map"), "map"),
        (TRAIN, ("--objective", "YetiRank"), "yetirank"),
        (TRAIN, ("--objective", "lambdamart+YetiRank"), "yetirank"),
        (TRAIN, ("--objective", "lambdmart"), "lambdamart"),
        (TRAIN, ("--tree", "lossguide"), "leafwise"),
        (TRAIN, ("--tree", "Lossguide"), "leafwise"),
        (TRAIN, ("--tree", "SymmetricTree"), "oblivious"),
        (TRAIN, ("--tree", "Depthwise"), "depthwise"),
        (TRAIN, ("--gain", "exp"), "exp2"),
        (TRAIN, ("--gain", "identity"), "linear"),
        (TRAIN, ("--absent", "nan"), "missing"),
        (TRAIN, ("--metric", "ndcg_cut_10"), "ndcg@10"),
        (TRAIN, ("--metric", "NDCG:top=10"), "ndcg@10"),
        (EVAL, ("--metric", "PrecisionAt:top=5,map"), "p@5,map"),
        (EVAL, ("--metric", "R@5"), "recall@5"),
        (EVAL, ("--empty", "0"), "zero"),
        (EVAL, ("--empty", "drop"), "skip"),
        (EVAL, ("--ties", "mean"), "average"),
        (EVAL, ("--duplicates", "raise"), "error"),
        (("predict", "-m", "x", "--data", "y"), ("--format", "json"), "jsonl"),
        (("predict", "-m", "x", "--data", "y"), ("--format", "run"), "trec"),
        (("convert", "x", "y"), ("--to", "svmlight"), "letor"),
        (("convert", "x", "y"), ("--from", "xgb"), "xgboost"),
        (("convert", "x", "y"), ("--to", "vespa"), "lightgbm-json"),
        (("convert", "x", "y"), ("--to", "lightgmb"), "lightgbm"),
        ((), ("--completion", "bsh"), "bash"),
    ],
)
def test_a_value_of_another_tool_leads_to_ours(arguments: tuple[str, ...], foreign: tuple[str, str], ours: str) -> None:
    said = run(*arguments, *foreign, status=2).stderr
    assert said.count("\n") == 1 and said.startswith(f"lmart: error: invalid value for '{foreign[0]}': ")
    assert f"; perhaps '{ours}'; see" in said


@pytest.mark.parametrize(
    ("arguments", "foreign"),
    [
        (TRAIN, ("--objective", "regression")),
        (TRAIN, ("--objective", "queryrmse")),
        (TRAIN, ("--tree", "gpu_hist")),
        (TRAIN, ("--gain", "sqrt")),
        (TRAIN, ("--metric", "auc")),
        (("convert", "x", "y"), ("--to", "pmml")),
    ],
)
def test_a_value_without_a_counterpart_leads_nowhere(arguments: tuple[str, ...], foreign: tuple[str, str]) -> None:
    assert "perhaps" not in run(*arguments, *foreign, status=2).stderr


@pytest.mark.parametrize("name", ["NDCG@10", "MAP", "P@5", "ERR@10", "RR@10"])
def test_capitals_are_no_mistake_in_measures(name: str) -> None:
    assert "is no measure" not in run(*EVAL, "--metric", name, status=1).stderr


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.10", None),
        ("P_10", "p@10"),
        ("recall_100", "recall@100"),
        ("recip_rank", "mrr"),
        ("map_cut_5", "map@5"),
        ("NDCG:top=10;type=Exp", "ndcg@10"),
        ("PrecisionAt:top=3", "p@3"),
        ("nDCG@20", "ndcg@20"),
        ("AP", "map"),
        ("RBP(p=0.9)", "rbp(0.9)"),
        ("RBP(p=0.9)@10", "rbp(0.9)@10"),
        ("ndcg@10-", "ndcg@10"),
        ("mean_average_precision", "map"),
        ("auc", None),
        ("", None),
    ],
)
def test_measures_of_other_tools(foreign: str, ours: str | None) -> None:
    assert measure_for(foreign) == ours
    if ours is not None:
        assert str(parse_measure(ours)) == ours


def test_lists_of_measures() -> None:
    assert measures_for("P_5,ndcg_cut_10") == "p@5,ndcg@10"
    assert measures_for("P_5,auc") is None


def test_values_named_exist() -> None:
    known: dict[str, Collection[str]] = {
        "objective": OBJECTIVES,
        "tree": TREE_FORMS,
        "gain": ("exp2", "linear"),
        "source_format": FORMATS,
        "target_format": FORMATS,
        "form": RESULT_FORMATS,
        "empty": tuple(CHOICES["empty"]),
        "ties": tuple(CHOICES["ties"]),
        "absent": ("zero", "missing"),
        "duplicates": ("error", "last"),
    }
    assert set(TABLES) == set(known)
    for parameter, table in TABLES.items():
        assert set(table) <= set(known[parameter]), parameter
        names = " ".join(table.values()).split()
        assert len(set(names)) == len(names), parameter
    assert {measure_for(name) for name in KINDS} == set(KINDS)


def test_at_most_two_are_named() -> None:
    assert len(close_words("lightgbm-jsn", list(FORMATS))) <= 2
    assert values_for("xgbost-dmp", "target_format", FORMATS) == ["xgboost-dump"]
