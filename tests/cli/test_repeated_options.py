"""Options that are given several times: the last counts, lists add up, and what cannot be meant twice is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

DATA = str(SAMPLE / "train.svm")
SMALL = ("train", "--data", DATA, "--rankers", "1", "-o", "m.json")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings() -> dict[str, object]:
    found: dict[str, object] = json.loads(Path("m.json").read_text())["settings"]
    return found


def test_the_last_of_several_values_counts_with_a_notice() -> None:
    given = ("--trees", "9", "--normalize", "--leaves=7", "--trees", "1", "--no-normalize", "--trees=2")
    said = run(*SMALL, *given).stderr
    assert [line for line in said.splitlines() if " is given " in line] == [
        "lmart: --trees is given 3 times; the last counts: '2'",
        "lmart: --normalize/--no-normalize is given twice; the last counts: --no-normalize",
    ]
    assert (settings()["trees"], settings()["normalize"], settings()["leaves"]) == (2, False, 7)
    assert " is given " not in run(*SMALL, *given, "-q").stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["train", "--data", "x", "--seed", "1", "--seed", "1"], "--seed is given twice; the last counts: '1'"),
        (["train", "--data", "x", "--report", "a", "--report", "b"], "--report is given twice; the last counts: 'b'"),
        (
            ["predict", "-m", "x", "--data", "y", "--why", "1", "2", "3", "--why", "1", "2", "4"],
            "--why is given twice; the last counts: '1' '2' '4'",
        ),
        (["predict", "-m", "x", "--data", "y", "--format", "tsv", "--top", "3", "--top", "2"], "the last counts: '2'"),
        (
            ["eval", "--data", "x", "--scores", "y", "--label-column", "a", "--label-column", "b"],
            "--label-column is given",
        ),
        (["eval", "--qrels", "q", "--qrels", "p", "--run", "r"], "--qrels is given twice; the last counts: 'p'"),
        (["eval", "--data", "x", "--scores", "y", "z", "--no-compare", "--compare"], "the last counts: --compare"),
        (["convert", "--to", "csv", "x", "y", "--to", "tsv"], "--to is given twice; the last counts: 'tsv'"),
        (["show", "x", "--top", "3", "--top", "all"], "--top is given twice; the last counts: 'all'"),
    ],
)
def test_every_command_says_which_value_counts(arguments: list[str], told: str) -> None:
    result = run(*arguments, status=1)
    assert told in result.stderr.splitlines()[0] and "lmart: error: " not in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict", "-m", "a", "--model", "b", "--data", "y"], "--model is given twice; give one model, and run the "),
        (["predict", "-m", "a", "--data", "y", "--data", "z"], "--data is given twice; join the files first, or run "),
        (["predict", "-m", "x", "--data", "y", "-o", "a", "--out", "b"], "--out is given twice; give it once"),
        (["train", "--data", "x", "--out", "a", "-ob"], "--out is given twice; give it once"),
        (["train", "--data", "x", "--monotone", "1:+1", "--monotone", "f"], "'--monotone': 'f' is no list, and stands"),
        (["train", "--data", "x", "--monotone", "1:+1", "--monotone", "1:-1"], "monotone names feature '1' twice"),
    ],
)
def test_what_cannot_be_meant_twice_is_refused(arguments: list[str], said: str) -> None:
    assert said in run(*arguments, status=2).stderr


def test_the_program_says_it_too() -> None:
    result = run("--completion", "fish", "--completion", "bash")
    assert result.stderr == "lmart: --completion is given twice; the last counts: 'bash'\n"
    assert result.stdout == run("--completion", "bash").stdout


def test_lists_add_up_in_silence() -> None:
    lists = ("--monotone", "1:+1", "--monotone", "2:-1,4:+1", "--ignore-columns", "5", "--ignore-columns", "6")
    metrics = ("--metric", "map", "--metric", "mrr,map")
    assert " is given " not in run(*SMALL, *lists, *metrics, "--trees", "1", "-q", "-q").stderr
    assert settings()["metric"] == "map,mrr"
    assert settings()["monotone"] == "1:+1,2:-1,4:+1"
    assert not {5, 6} & set(json.loads(Path("m.json").read_text())["feature_ids"])
    scores = ("eval", "--data", DATA, "-m", "m.json", "--metric", "map", "--metric", "ndcg@3", "--json")
    assert list(json.loads(run(*scores).stdout)["metrics"]) == ["map", "ndcg@3"]


def test_flags_and_files_may_be_given_again() -> None:
    for arguments in (["--data", "x", "--data", "y", "--strict", "--strict"], ["--help", "--trees", "3"]):
        result = run("train", *arguments, status=0 if "--help" in arguments else 1)
        assert " is given " not in result.stderr
