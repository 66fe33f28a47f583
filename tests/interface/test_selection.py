"""lmart.cross_validate and lmart.tune: the numbers of --folds and --tune-trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart

DATA, VALID = lmart.read(SAMPLE / "train.svm"), lmart.read(SAMPLE / "vali.svm")
FILES = ["--data", str(SAMPLE / "train.svm"), "-qq"]


def commanded(folder: Path, *arguments: str | Path) -> tuple[dict[str, Any], bytes]:
    run("train", *FILES, *arguments, "--report", folder / "r", "-o", folder / "m")
    return json.loads((folder / "r").read_text()), (folder / "m").read_bytes()


@pytest.mark.parametrize("from_arrays", [False, True])
def test_folds_are_those_of_the_command_line(from_arrays: bool, tmp_path: Path) -> None:
    options = ["--folds", "3", "--trees", "30", "--early-stop", "4", "--seed", "2", "--oof", str(tmp_path / "o")]
    expected = commanded(tmp_path, *options)[0]["cross_validation"]
    X, y, qid = (DATA.to_numpy(), DATA.labels, DATA.qid) if from_arrays else (DATA, None, None)
    found = lmart.cross_validate(X, y, qid, folds=3, trees=30, early_stop=4, seed=2)
    assert (found.trees, found.mean, found.curve.tolist()) == (expected["trees"], expected["mean"], expected["curve"])
    assert (found.fold_of_query + 1).tolist() == expected["fold_of_query"]
    assert found.scores.tolist() == np.loadtxt(tmp_path / "o").tolist()


@pytest.mark.parametrize("by_folds", [False, True])
def test_a_search_is_that_of_the_command_line(by_folds: bool, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    measured = ["--folds", "2"] if by_folds else ["--valid", str(SAMPLE / "vali.svm")]
    report, model = commanded(tmp_path, *measured, "--tune-trials", "3", "--trees", "12", "--leaves", "6")
    by = {"folds": 2} if by_folds else {"valid": VALID}
    found = lmart.tune(DATA, trials=3, trees=12, leaves=6, **by)
    expected = [(one["values"], one["measure"], one["trees"]) for one in report["tuning"]["trials"]]
    assert [(one.values, one.measure, one.trees) for one in found.trials] == expected
    lmart.train(DATA, valid=None if by_folds else VALID, **found.settings).save(tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == model


def test_what_is_refused() -> None:
    with pytest.raises(lmart.SettingsError, match="either valid or folds"):
        lmart.tune(DATA, trials=1)
    with pytest.raises(lmart.SettingsError, match="give trials or minutes"):
        lmart.tune(DATA, folds=2)
    with pytest.raises(lmart.SettingsError, match="folds is 1; give a number from 2 up"):
        lmart.cross_validate(DATA, folds=1)
    with pytest.raises(TypeError, match="cross_validate\\(\\) has no argument 'verbose'"):
        lmart.cross_validate(DATA, verbose=True)  # type: ignore[call-arg]
