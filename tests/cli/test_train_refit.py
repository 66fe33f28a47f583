"""lmart train --refit: the last training, on the training and the validation data together."""

from __future__ import annotations

import json
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
