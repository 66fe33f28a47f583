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


def test_folds_of_ones_own(tmp_path: Path) -> None:
    ids = list(dict.fromkeys(DATA.qid.tolist()))
    names = {query: "abc"[place % 3] for place, query in enumerate(ids)}
    (tmp_path / "f.tsv").write_text("".join(f"{query}\t{name}\n" for query, name in names.items()))
    chosen: dict[str, Any] = {"trees": 12, "early_stop": 3, "rankers": 1}
    options = ["--trees", "12", "--early-stop", "3", "--rankers", "1"]
    report, model = commanded(tmp_path, *options, "--folds", tmp_path / "f.tsv")
    expected = report["cross_validation"]
    assert [fold["name"] for fold in expected["folds"]] == ["a", "b", "c"]
    for given in (names, list(names.values()), [names[query] for query in DATA.qid.tolist()]):
        found = lmart.cross_validate(DATA, folds=given, **chosen)
        assert (found.mean, (found.fold_of_query + 1).tolist()) == (expected["mean"], expected["fold_of_query"])
    trained = lmart.train(DATA, folds=names, **chosen)
    trained.save(tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == model
    assert trained.history is not None
    assert trained.history.content["cross_validation"]["mean"] == expected["mean"]
    for name in "abc":  # a fold by hand
        measured = lmart.train(
            lmart.Dataset(*_part(names, name, held_out=False)),
            valid=lmart.Dataset(*_part(names, name, held_out=True)),
            trees=expected["trees"],
            rankers=1,
        )
        (own,) = (fold["measure"] for fold in expected["folds"] if fold["name"] == name)
        assert measured.history is not None
        assert measured.history.content["validation"] == [own]


def _part(names: dict[str, str], name: str, held_out: bool) -> tuple[Any, Any, Any]:
    rows = np.array([(names[query] == name) == held_out for query in DATA.qid.tolist()])
    return DATA.to_numpy()[rows], DATA.labels[rows], DATA.qid[rows]


def test_queries_of_a_user_stay_together(tmp_path: Path) -> None:
    ids = list(dict.fromkeys(DATA.qid.tolist()))
    users = {query: f"u{place // 7}" for place, query in enumerate(ids)}
    (tmp_path / "u.tsv").write_text("".join(f"{query}\t{user}\n" for query, user in users.items()))
    report, _ = commanded(tmp_path, "--folds", "3", "--fold-by", tmp_path / "u.tsv", "--trees", "4", "--seed", "5")
    expected = report["cross_validation"]["fold_of_query"]
    assert len(set(zip(users.values(), expected, strict=True))) == len(set(users.values()))
    found = lmart.cross_validate(DATA, folds=3, fold_by=users, trees=4, seed=5)
    assert (found.fold_of_query + 1).tolist() == expected


def test_further_measures_of_folds_are_those_that_decide_alone() -> None:
    settings: Any = {"trees": 12, "rankers": 2, "linear": 0.3}
    both = lmart.cross_validate(DATA, folds=3, metric="map,mrr,err", **settings)
    map_alone = lmart.cross_validate(DATA, folds=3, metric="map", **settings)
    assert list(both.further) == ["mrr", "err"] and not map_alone.further
    assert (both.mean, both.curve.tolist(), both.folds) == (map_alone.mean, map_alone.curve.tolist(), map_alone.folds)
    mrr = lmart.cross_validate(DATA, folds=3, metric="mrr", **settings)
    found = both.further["mrr"]
    assert found.curve.tolist() == mrr.curve.tolist()
    if both.rounds == mrr.rounds:
        same = (found.mean, found.interval, found.standard_error)
        assert same == (mrr.mean, mrr.interval, mrr.standard_error)
    of_rows = lmart.evaluate(DATA, both.scores, metric="mrr").per_query["mrr"]
    by_hand = [float(of_rows[both.fold_of_query == fold].mean()) for fold in range(3)]
    assert found.measures == pytest.approx(by_hand, rel=1e-12)


def test_what_is_refused() -> None:
    for folds, fold_by, told in [
        (True, None, "0 dimensions"),
        ("f.tsv", None, "folds is 'f.tsv'; give a number from 2 up, or the fold of each query"),
        ([1, 2], None, "folds has 2 entries, but X has 120 queries and 1,760 rows"),
        ([1, 2], [1, 2], "give folds a number"),
        ([1] * 120, None, "all queries of the data are in fold '1'"),
        (3, [1] * 120, "the queries have 1 different value, too few for 3 folds"),
    ]:
        with pytest.raises(lmart.LmartError, match=told):
            lmart.cross_validate(DATA, folds=folds, fold_by=fold_by)
    with pytest.raises(lmart.SettingsError, match="folds do not go with continue_from"):
        lmart.train(DATA, folds=3, continue_from=lmart.train(DATA, trees=1, rankers=1))
    with pytest.raises(lmart.SettingsError, match="either valid or folds"):
        lmart.tune(DATA, trials=1)
    with pytest.raises(lmart.SettingsError, match="give trials or minutes"):
        lmart.tune(DATA, folds=2)
    with pytest.raises(lmart.SettingsError, match="folds is 1; give a number from 2 up"):
        lmart.cross_validate(DATA, folds=1)
    with pytest.raises(TypeError, match="cross_validate\\(\\) has no argument 'verbose'"):
        lmart.cross_validate(DATA, verbose=True)  # type: ignore[call-arg]
