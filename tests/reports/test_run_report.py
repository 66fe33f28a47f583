"""Reports of runs are read back, and damaged ones refused in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmart.errors import DataError
from lmart.reports.run_report import Curve, parse_report, read_report


def report() -> dict[str, Any]:
    ranker = {"objective": "yetirank", "tree": "leafwise", "leaves": 8, "features": 1.0, "seed": 0}
    return {
        "settings": {"trees": 5},
        "data": {"documents": 9, "queries": 3, "features": 2},
        "metric": "ndcg@10",
        "rounds": [
            {"ranker": 1, "round": 1, "training": 0.5, "validation": [0.25]},
            {"ranker": 1, "round": 2, "training": 0.75, "validation": [None]},
            {"ranker": 2, "round": 1, "training": 1, "validation": [0.5]},
        ],
        "rankers": [
            {**ranker, "first_tree": 1, "trees": 1, "rounds": 2, "stopped": "early", "validation": [0.25]},
            {**ranker, "first_tree": 2, "trees": 1, "rounds": 1, "stopped": "trees", "validation": [0.5]},
        ],
        "training": 0.8,
        "validation": [0.4],
        "files": {"data": ["d"], "validation": ["v"]},
        "importance": {"a": {"gain_share": 1.0, "splits": 3}},
    }


def test_curves_by_ranker_and_set() -> None:
    found = read_report(report(), "r")
    assert [one.curves for one in found.rankers] == [
        (Curve("training", (0.5, 0.75)), Curve("v", (0.25, None))),
        (Curve("training", (1.0,)), Curve("v", (0.5,))),
    ]
    assert found.measures == (("training", 0.8), ("v", 0.4))
    assert found.changed == {"trees": 5}
    assert found.table() == (
        ["ranker", "round", "kept", "training", "v"],
        [[1, 1, 1, 0.5, 0.25], [1, 2, 0, 0.75, None], [2, 1, 1, 1.0, 0.5]],
    )
    assert json.loads(json.dumps(found.to_json()))["importance"] == [{"feature": "a", "gain_share": 1.0, "splits": 3}]


def test_the_best_round_is_the_first_of_equals() -> None:
    assert Curve("", (0.5, 0.75, None, 0.75)).best == 1
    assert Curve("", (None,)).best is None


def test_an_older_report_has_no_importance() -> None:
    document = report()
    del document["importance"]
    assert read_report(document, "r").importance is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"settings": {}}', b"1 qid:1 1:2\n", b"\xff" * 9])
def test_what_is_no_report(content: bytes) -> None:
    assert parse_report(content, "r") is None


def test_what_is_one() -> None:
    assert parse_report(json.dumps(report()).encode(), "r") == report()


def test_a_measure_that_cannot_be_printed_is_escaped() -> None:
    assert read_report({**report(), "metric": "\ud800\n"}, "r.json").metric == r"\ud800\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": {}}, "'rounds' is not what it must be"),
        ({"rounds": [{"ranker": 9, "round": 1}]}, "ranker 1 has 1 trees of 0 rounds"),
        ({"rounds": [*report()["rounds"], 3]}, "'rounds' holds one of no ranker"),
        ({"rounds": [{**report()["rounds"][0], "training": "x"}]}, "'training' is not a measure"),
        ({"rounds": [{**report()["rounds"][0], "validation": []}]}, "'validation' has 0 measures for 1 files"),
        ({"seconds": {"reading": float("nan")}}, "a number is too large"),
        ({"rankers": [1]}, "ranker 1 is not an object"),
        ({"files": None}, "'files' is not what it must be"),
        ({"importance": []}, "'importance' is not an object"),
        ({"importance": {"a": 1}}, "the importance of 'a' is not an object"),
        ({"importance": {"a": {"splits": True}}}, "'splits' is not what it must be"),
        (
            {"importance": {"a": {"gain_share": 0.5, "splits": 1}, "b": {"gain_share": None, "splits": 1}}},
            "'importance' has the gain share of some features only",
        ),
        ({"validation": [float("nan")]}, "a number is too large"),
        ({"validation": [True]}, "'validation' is not a measure"),
        ({"validation": [10**400]}, "a number is too large"),
        ({"tuning": {"trials": [{"measure": -(10**400)}]}}, "a number is too large"),
        ({"importance": {"a": {"gain_share": -1e308, "splits": 1}}}, "the gain share of 'a' is not from 0 to 1"),
        ({"importance": {"a": {"gain_share": 1.1, "splits": 1}}}, "the gain share of 'a' is not from 0 to 1"),
    ],
)
def test_damage_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as refused:
        read_report({**report(), **change}, "r.json")
    assert str(refused.value).startswith("r.json: this training report is damaged: ")
    assert words in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ['{"settings": 1, "settings": 2}', '{"settings": NaN}', "[" * 100_000])
def test_json_of_several_meanings_is_no_report(text: str) -> None:
    with pytest.raises(DataError, match=r"^r: this JSON cannot be read: .*; write the report again$"):
        parse_report(text.encode(), "r")


def test_columns_of_the_table_have_names_of_their_own() -> None:
    document = report()
    document["files"]["validation"] = ["training", "v", "v"]
    for one in document["rounds"]:
        one["validation"] *= 3
    document["validation"] *= 3
    header, _ = read_report(document, "r").table()
    assert header == ["ranker", "round", "kept", "training", "training#2", "v", "v#2"]
