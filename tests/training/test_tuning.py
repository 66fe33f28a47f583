"""The search for settings: `lmart train --tune`, its trials file, its command line."""

from __future__ import annotations

import fcntl
import json
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import run, start
from helpers.manual import plain
from helpers.training_runs import fit, learnable, refused
from helpers.waiting import LIMIT, wait_until

from lmart.settings import TrainSettings
from lmart.training.search_space import DIMENSIONS, dimensions
from lmart.training.tuning import Trial, best_of, propose

pytest.importorskip("optuna")

DATA = learnable(6, n_queries=12)
TUNE = ("--folds", "2", "--trees", "8", "--early-stop", "3", "--leaves", "4", "--tune-trials", "3")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.svm").write_text(DATA)
    Path("v w").write_text(learnable(7))


def untimed(path: str = "t") -> list[dict[str, object]]:
    return [{**json.loads(line), "seconds": None} for line in Path(path).read_text().splitlines()]


def test_the_winner_is_trained_and_its_command_line_makes_it_again() -> None:
    Path("d.svm").rename("d's data")
    done = run("train", "--data", "d's data", "--valid", "v w", *TUNE, "--out", "m", "--report", "r", "--oof", "oof")
    made = Path("m").read_bytes()
    line = done.stdout.splitlines()[-1]
    words = shlex.split(line)
    assert words[:4] == ["lmart", "train", "--data", "d's data"] and words[-2:] != []
    assert not {"--folds", "--tune-trials", "--early-stop", "--report", "--oof"} & set(words)
    assert {"--rankers", "--objective", "--tree", "--features"} <= set(words)
    Path("m").unlink()
    run(*words[1:])
    assert Path("m").read_bytes() == made
    report = json.loads(Path("r").read_text())
    tuning, crossed = report["tuning"], report["cross_validation"]
    assert len(tuning["trials"]) == 3 and "leaves" not in tuning["searched"]
    best = tuning["trials"][tuning["best"] - 1]
    assert best["measure"] == max(one["measure"] for one in tuning["trials"]) == crossed["mean"]
    assert best["trees"] == crossed["trees"] == report["settings"]["trees"]
    assert report["settings"] | best["values"] == report["settings"] and report["settings"]["leaves"] == 4
    assert len(Path("oof").read_text().split()) == 120


def test_a_single_ranker_found_by_a_validation_file_has_the_best_number_of_trees() -> None:
    fixed = ("--valid", "v w", "--trees", "9", "--early-stop", "2", "--rankers", "1")
    run("train", "--data", "d.svm", *fixed, *("--tune-trials", "2", "--tune-file", "t"))
    final = json.loads(Path("model.json").read_text())
    assert final["settings"]["early_stop"] == 0 and len(final["trees"]) == final["settings"]["trees"]
    first = fit(DATA, *fixed).report
    record = json.loads(Path("t").read_text().splitlines()[1])
    assert (record["measure"], record["trees"]) == (first["validation"][0], first["best_round"])


@pytest.mark.slow
@pytest.mark.parametrize("rankers", [(), ("--rankers", "3")])
def test_several_rankers_found_by_a_validation_file_are_the_very_model_that_was_measured(
    rankers: tuple[str, ...],
) -> None:
    """Each ranker is stopped by itself, so that no number of trees alone makes them again."""
    fixed = ("train", "--data", "d.svm", "--valid", "v w", "--trees", "60", "--min-docs", "2", *rankers)
    done = run(*fixed, "--tune-trials", "6", "--tune-file", "t", "--out", "m", "--report", "r")
    report = json.loads(Path("r").read_text())
    best = report["tuning"]["trials"][report["tuning"]["best"] - 1]
    model = json.loads(Path("m").read_text())
    n_linear = report.get("linear", {"trees": 0})["trees"]
    assert report["validation"] == [best["measure"]] and len(model["trees"]) - n_linear == best["trees"]
    several = best["values"]["rankers"] != 1 if not rankers else True
    assert model["settings"]["early_stop"] == (50 if several else 0)
    line = done.stdout.splitlines()[-1]
    assert ("--early-stop 50" in line and "--trees 60" in line) == several
    made = Path("m").read_bytes()
    Path("m").unlink()
    run(*shlex.split(line)[1:])
    assert Path("m").read_bytes() == made


@pytest.mark.slow
def test_what_is_automatic_stays_so_in_the_first_trial() -> None:
    fixed = ("train", "--data", "d.svm", "--valid", "v w", "--trees", "60", "--tune-trials", "12")
    done = run(*fixed, "--tune-file", "t", "--report", "r")
    tuning = json.loads(Path("r").read_text())["tuning"]
    assert tuning["searched"][:5] == ["rankers", "objective", "tree", "features", "learning_rate"]
    first = tuning["trials"][0]["values"]
    assert {first[name] for name in ("rankers", "objective", "tree", "features", "leaves")} == {None}
    assert json.loads(Path("t").read_text().splitlines()[1])["values"] == first
    table = done.stdout.splitlines()
    assert table[1].split().count("auto") == 5
    alone = fit(DATA, "--valid", "v w", "--trees", "60", "--early-stop", "50").report
    assert tuning["trials"][0]["measure"] == alone["validation"][0]
    later = [one["values"] for one in tuning["trials"][1:]]
    assert {one["rankers"] for one in later} <= set(range(1, 9)) and len({one["rankers"] for one in later}) > 2
    assert {one["objective"] for one in later} == {None, "lambdamart", "yetirank", "xendcg"}
    assert {one["tree"] for one in later} == {None, "leafwise", "oblivious"}
    assert all(0.2 <= one["features"] <= 1 for one in later)
    assert all(one["measure"] is not None for one in tuning["trials"])


def test_the_folds_of_the_best_of_several_rankers_are_reported_and_trained_again() -> None:
    """Planted: folds of 30 rows, which --min-docs 20 of the first trial does not let split."""
    Path("d.svm").write_text("".join(DATA.splitlines(keepends=True)[:60]))
    fixed = ("--folds", "2", "--trees", "31", "--rankers", "3", "--tune-trials", "8")
    done = run("train", "--data", "d.svm", *fixed, "--out", "m", "--report", "r")
    report = json.loads(Path("r").read_text())
    best, crossed = report["tuning"]["trials"][report["tuning"]["best"] - 1], report["cross_validation"]
    assert report["tuning"]["best"] > 1  # so that settings of the first trial would give another mean
    assert (best["measure"], best["trees"]) == (crossed["mean"], crossed["trees"])
    assert crossed["trees"] % 3 == 0 and [one["trees"] for one in report["rankers"]] == [crossed["trees"] // 3] * 3
    made = Path("m").read_bytes()
    run(*shlex.split(done.stdout.splitlines()[-1])[1:])
    assert Path("m").read_bytes() == made


def test_a_best_trial_that_took_all_of_its_trees_says_so() -> None:
    """Of 8 trees, 3 rankers have 2 each in folds; with a validation file the first two have one more."""
    fixed = ("train", "--data", "d.svm", "--rankers", "3", "--trees", "8", "--tune-trials", "1")
    for options, most in ((("--folds", "2"), 6), (("--valid", "v w"), 8)):
        for rate in ("0.01", "0.3", "1"):
            done = run(*fixed, *options, "--learning-rate", rate, "--report", "r")
            trees = json.loads(Path("r").read_text())["tuning"]["trials"][0]["trees"]
            assert ("the best trial took all of its" in done.stderr) == (trees == most)


@pytest.mark.slow
def test_searches_without_choice_of_tree_or_objective() -> None:
    Path("p").write_text("".join(f"{row % 5}\n" for row in range(120)))
    more = ("--trees", "20", "--tune-trials", "6", "--report", "r", "--out", "m")
    for options, name in ((("--monotone", "1:+1"), "tree"), (("--positions", "p"), "objective")):
        done = run("train", "--data", "d.svm", "--folds", "2", *more, *options)
        tuning = json.loads(Path("r").read_text())["tuning"]
        assert name not in tuning["searched"] and all(one["measure"] is not None for one in tuning["trials"])
        made = Path("m").read_bytes()
        run(*shlex.split(done.stdout.splitlines()[-1])[1:])
        assert Path("m").read_bytes() == made


def test_what_was_automatic_for_one_ranker_is_said_for_several() -> None:
    """With positions a single ranker is automatic, and its objective with it; then a trial has several."""
    Path("d.svm").write_text("".join(DATA.splitlines(keepends=True)[:60]))
    Path("p").write_text("".join(f"{row % 5}\n" for row in range(60)))
    fixed: tuple[str, ...] = (
        "train",
        "--data",
        "d.svm",
        "--positions",
        "p",
        "--folds",
        "2",
        "--trees",
        "40",
        "--tune-trials",
        "6",
    )
    fixed += ("--seed", "5")  # of which five rankers and automatic trees are best
    line = run(*fixed, "--report", "r", "--out", "m").stdout.splitlines()[-1]
    made, report = Path("m").read_bytes(), json.loads(Path("r").read_text())
    assert report["tuning"]["trials"][0]["values"]["rankers"] == 1 < report["settings"]["rankers"]
    assert "--objective lambdamart" in line
    run(*shlex.split(line)[1:])
    assert Path("m").read_bytes() == made


def test_settings_that_no_model_can_have_are_not_tried() -> None:
    """With all else given, several rankers would be the same."""
    plain = ("--objective", "lambdamart", "--tree", "leafwise", "--features", "1")
    run("train", "--data", "d.svm", *TUNE[:-1], "8", *plain, "--report", "r")
    trials = json.loads(Path("r").read_text())["tuning"]["trials"]
    assert all(one["measure"] is not None for one in trials) and len(trials) == 8
    assert {one["values"]["rankers"] for one in trials} == {1}
    space = dimensions(["rankers", "features"])
    tried: list[Trial] = []
    for number in range(6):
        values = propose(space, tried, TrainSettings(rankers=8, features=1.0, leaves=8))
        assert values is not None and (number == 0 or values["objective"] in ("yetirank", "xendcg"))
        tried.append(Trial(values, 0.5, 1, 0.0))


def test_a_search_goes_on_as_if_it_had_never_stopped() -> None:
    whole = run("train", "--data", "d.svm", *TUNE[:-1], "12", "--tune-file", "whole", "--threads", "1").stdout
    model = Path("model.json").read_bytes()
    lines = Path("whole").read_bytes().splitlines(keepends=True)
    Path("t").write_bytes(b"".join(lines[:11]) + lines[11][:30])  # killed while the eleventh was written
    parts = run("train", "--data", "d.svm", *TUNE[:-1], "12", "--tune-file", "t")
    assert "going on after 10 trials in t" in parts.stderr
    assert parts.stdout == whole and Path("model.json").read_bytes() == model
    assert untimed("t") == untimed("whole")
    again = run("train", "--data", "d.svm", *TUNE[:-1], "12", "--tune-file", "t")
    assert again.stdout == whole and untimed("t") == untimed("whole")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_search_that_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    search = ("train", "--data", "d.svm", *TUNE[:-2], "--tune-file", "t")
    with start(*search, "--tune", "100000", folder=tmp_path) as process:
        wait_until(lambda: Path("t").exists() and Path("t").read_bytes().count(b"\n") >= 3)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=LIMIT)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}.get(number, -number)
    assert b"Traceback" not in stderr
    assert {path.name for path in tmp_path.iterdir()} == {"d.svm", "v w", "t"}
    before = Path("t").read_bytes().count(b"\n") - 1
    run(*search, "--tune-trials", str(before + 1))
    assert len(untimed()) in (before + 2, before + 1)  # the last line may have been cut


def test_time_is_up_after_the_first_trial() -> None:
    done = run("train", "--data", "d.svm", *TUNE[:-2], "--tune", "1e-9", "--tune-file", "t")
    assert len(untimed()) == 2 and "trial 1 of 1 is best" in done.stderr


def test_trials_files_that_are_refused() -> None:
    run("train", "--data", "d.svm", *TUNE, "--tune-file", "t")
    assert "t:1: holds trials with other settings;" in refused(*TUNE, "--seed", "1", "--tune-file", "t")
    others = ("--folds", "3", "--tune-file", "t")
    assert "other settings, folds and search;" in refused("--trees", "8", "--tune-trials", "3", *others)
    Path("d.svm").write_text(DATA.replace("1 qid:1 ", "2 qid:1 "))
    assert "t:1: holds trials with other data;" in refused(*TUNE, "--tune-file", "t")
    Path("d.svm").write_text(DATA)
    sound = Path("t").read_text().splitlines(keepends=True)
    for line in ("\n", "x\n", "[]\n", "{}\n", sound[1].replace('"l2": ', '"l3": '), sound[1].replace("true", "1")):
        Path("t").write_text("".join([*sound[:2], line, *sound[2:]]))
        assert "t:3: " in refused(*TUNE, "--tune-file", "t") and line is not sound[1]
    for text in ("1 2 3", "1 qid:1 1:2\n", '{"format": "lmart"}\n', "\n", '{"a": 1}\n'):
        Path("t").write_text(text)
        assert "t: holds no trials" in refused(*TUNE, "--tune-file", "t")
    Path("t").write_text(sound[0].replace('"version": 1', '"version": 2'))
    assert "another version" in refused(*TUNE, "--tune-file", "t")
    Path("t").write_text(sound[0])
    with Path("t").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "t: is in use by another run" in refused(*TUNE, "--tune-file", "t")
    assert "must be a file: it is read and written" in refused(*TUNE, "--tune-file", "/dev/null", status=2)


def test_wrong_usage() -> None:
    every = [f"--{one.name.replace('_', '-')}" for one in DIMENSIONS]
    said = {"--normalize": (), "--objective": ("map+err",), "--tree": ("leafwise",), "--features": ("0.5",)}
    values = [word for flag in every for word in (flag, *said.get(flag, ("5",)))]
    for options, told in (
        (("--tune", "1"), "--tune needs --folds K or a --valid file"),
        (("--folds", "2", "--tune", "0"), "'0' is not a number above 0"),
        (("--folds", "2", "--tune-file", "t"), "--tune-file needs --tune or --tune-trials"),
        (("--folds", "2", "--tune", "1", "--tune-file", "-"), "--tune-file must be a file"),
        (("--folds", "2", "--tune", "1", "--tune-file", "m.json"), "--tune-file and --out are the same file"),
        (("--folds", "2", "--tune", "1", *values), "every setting that --tune searches is given"),
    ):
        assert told in refused(*options, status=2)


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert refused(*TUNE).endswith("tuning needs the package optuna: pip install optuna")


def test_proposals() -> None:
    space, base = dimensions(["truncation"]), TrainSettings(rankers=2, leaves=8, features=0.9)
    trials: list[Trial] = []
    for number in range(14):
        values = propose(space, trials, base)
        assert values is not None and values == propose(space, trials, base)
        assert list(values) == [one.name for one in space] and all(one.holds(values[one.name]) for one in space)
        assert number == 0 or all(values[one.name] == one.nearest(values[one.name]) for one in space)
        assert values not in [one.values for one in trials]
        trials.append(Trial(values, None if number == 3 else float(number % 5), 1, 0.0))
    assert trials[0].values == {one.name: getattr(base, one.name) for one in space}
    assert best_of(trials) == 4 and best_of(trials[3:4]) is None
    assert propose(space, trials, replace(base, seed=1)) != propose(space, trials, base)
    only = dimensions([one.name for one in DIMENSIONS if one.name != "normalize"])
    both = [Trial({"normalize": one}, 0.5, 1, 0.0) for one in (True, False)]
    assert propose(only, both[:1], base) == both[1].values and propose(only, both, base) is None


def test_a_trial_with_an_automatic_number_teaches_nothing() -> None:
    space = dimensions([one.name for one in DIMENSIONS if one.name not in ("rankers", "leaves", "objective")])
    trials = [Trial({"rankers": 4, "objective": None, "leaves": None}, 0.1, 1, 0.0)]
    for number in range(12):
        values = propose(space, trials, TrainSettings())
        assert values is not None and values["leaves"] is not None
        trials.append(Trial(values, float(number), 1, 0.0))
    better = [replace(trials[0], measure=9e9), *trials[1:]]
    assert propose(space, trials, TrainSettings()) == propose(space, better, TrainSettings())
    known = [replace(one, values=one.values | {"leaves": 8}) for one in better[:1]]
    assert propose(space, [*known, *trials[1:]], TrainSettings()) != propose(space, better, TrainSettings())


def test_ranges_are_inside_those_of_the_settings() -> None:
    for one in DIMENSIONS:
        for value in one.choices or (one.low, one.high):
            TrainSettings(**{one.name: value})  # type: ignore[arg-type]


def test_the_manual_names_all_that_is_searched() -> None:
    page = " ".join(plain("lmart-train.1").split())
    told = page.partition("--tune searches ")[2].partition(", but keeps")[0]
    assert told.replace(" and ", ", ").split(", ") == [one.name.replace("_", "-") for one in DIMENSIONS]


def test_settings_that_mean_nothing_to_the_objective_are_not_searched() -> None:
    run("train", "--data", "d.svm", *TUNE, "--objective", "xendcg", "--report", "r")
    assert {"truncation", "normalize"} & set(json.loads(Path("r").read_text())["tuning"]["searched"]) == set()
    run("train", "--data", "d.svm", *TUNE, "--objective", "yetirank", "--report", "r")
    assert {"truncation", "normalize"} <= set(json.loads(Path("r").read_text())["tuning"]["searched"])
