"""lmart train --refit: the last training, on the training and the validation data together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

pytestmark = pytest.mark.usefixtures("in_folder")
TRAIN, VALID = SAMPLE / "train.svm", SAMPLE / "vali.svm"
FIXED = ("train", "--data", TRAIN, "--valid", VALID, "--early-stop", "5", "--trees", "60", "--learning-rate", "0.3")


def test_one_ranker_has_the_trees_that_all_data_gives() -> None:
    run(*FIXED, "--rankers", "1", "--out", "before", "--report", "without")
    said = run(*FIXED, "--rankers", "1", "--refit", "--out", "m", "--report", "r").stderr
    before, model, report = (json.loads(Path(name).read_text()) for name in ("before", "m", "r"))
    n_trees = len(before["trees"])
    run(
        "train",
        "--data",
        TRAIN,
        VALID,
        "--rankers",
        "1",
        "--trees",
        str(n_trees),
        "--learning-rate",
        "0.3",
        "--out",
        "all",
    )
    assert model["trees"] == json.loads(Path("all").read_text())["trees"] != before["trees"]
    assert model["settings"] == before["settings"]
    assert report["refit"]["trees"] == n_trees and report["refit"]["training"] > 0.8
    assert report["validation"] == json.loads(Path("without").read_text())["validation"]
    assert "lmart: trains again on all 2,322 documents (--refit)\n" in said
    assert said.endswith(
        ": measures are of the model before --refit: no data is left to measure the one that was written\n"
    )


def test_each_of_several_rankers_keeps_its_number_of_trees_and_the_linear_one_is_fitted_anew() -> None:
    run(*FIXED, "--out", "before")
    run(*FIXED, "--refit", "--out", "m")
    before, model = (json.loads(Path(name).read_text()) for name in ("before", "m"))
    assert [one["trees"] for one in model["rankers"][:-1]] == [one["trees"] for one in before["rankers"][:-1]]
    assert model["rankers"][-1]["tree"] == "linear" and model["trees"] != before["trees"]


def numbered(rows: bytes) -> bytes:
    """Return rows whose queries are numbered from 1."""
    ids: dict[bytes, int] = {}
    return re.sub(rb"qid:(\S+)", lambda found: b"qid:%d" % ids.setdefault(found[1], len(ids) + 1), rows)


def test_queries_of_both_files_differ_even_where_their_ids_are_the_same() -> None:
    run(*FIXED, "--refit", "--out", "m")
    for path in (TRAIN, VALID):
        Path(path.name).write_bytes(numbered(path.read_bytes()))
    same = ("train", "--data", TRAIN.name, "--valid", VALID.name, *FIXED[5:], "--refit")
    for options in ((), ("--group-by-qid",)):
        run(*same, *options, "--out", "n")
        assert Path("m").read_bytes() == Path("n").read_bytes()


def test_folds_choose_the_number_of_trees_of_both_trainings() -> None:
    folds = ("--folds", "3", "--rankers", "1", "--refit", "--out", "m", "--report", "r")
    run("train", "--data", TRAIN, "--valid", VALID, "--trees", "12", "--learning-rate", "0.3", *folds)
    report = json.loads(Path("r").read_text())
    run("train", "--data", TRAIN, VALID, "--trees", str(report["cross_validation"]["trees"]), *FIXED[-2:], *folds[2:4])
    assert json.loads(Path("m").read_text())["trees"] == json.loads(Path("model.json").read_text())["trees"]


def test_files_that_do_not_fit_together_are_refused_before_the_first_training() -> None:
    run("convert", VALID, "vali.csv")
    header, rows = Path("vali.csv").read_text().split("\n", 1)
    Path("vali.csv").write_text(header.replace(",20", ",last") + "\n" + rows)
    said = run("train", "--data", TRAIN, "--valid", "vali.csv", *FIXED[5:], "--refit", status=1).stderr
    assert "the columns have names but other inputs have numbers" in said and "trees" not in said


@pytest.mark.parametrize(
    "options, said",
    [
        ((), "--refit needs a --valid file"),
        (("--valid", "v", "--continue-from", "m"), "--refit does not go with --continue-from"),
        (("--valid", "v", "--weights", "w"), "--refit reads --data and --valid as one data set, without weights"),
        (("--valid", "-"), "--refit reads its inputs twice, so none can be standard input"),
        (("--valid", "v", "--dask", "local:2"), "--refit does not go with --dask"),
    ],
)
def test_wrong_usage_is_refused(options: tuple[str, ...], said: str) -> None:
    assert said in run("train", "--data", "d", "--refit", *options, status=2).stderr
