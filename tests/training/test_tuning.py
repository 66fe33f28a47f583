"""The search for settings: `lmart train --tune`, its trials file, its command line."""

from __future__ import annotations

import fcntl
import json
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest
from helpers.commands import run, start
from helpers.training_runs import fit, learnable, refused

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


def test_by_a_validation_file() -> None:
    run(
        "train",
        "--data",
        "d.svm",
        "--valid",
        "v w",
        "--trees",
        "9",
        "--early-stop",
        "2",
        *("--tune-trials", "2", "--tune-file", "t"),
    )
    final = json.loads(Path("model.json").read_text())
    assert final["settings"]["early_stop"] == 0 and len(final["trees"]) == final["settings"]["trees"]
    alone = ("--objective", "lambdamart")  # as in every search
    first = fit(DATA, "--trees", "9", "--valid", "v w", "--early-stop", "2", *alone).report
    record = json.loads(Path("t").read_text().splitlines()[1])
    assert (record["measure"], record["trees"]) == (first["validation"][0], first["best_round"])


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
    with start(*search, "--tune", "60", folder=tmp_path) as process:
        until = time.monotonic() + 120
        while not Path("t").exists() or Path("t").read_bytes().count(b"\n") < 3:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
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
    assert "is no plain file" in refused(*TUNE, "--tune-file", "/dev/null")


def test_wrong_usage() -> None:
    every = [f"--{one.name.replace('_', '-')}" for one in DIMENSIONS]
    values = [word for flag in every for word in ((flag,) if flag == "--normalize" else (flag, "5"))]
    for options, said in (
        (("--tune", "1"), "--tune needs --folds K or a --valid file"),
        (("--folds", "2", "--tune", "0"), "'0' is not a number above 0"),
        (("--folds", "2", "--tune-file", "t"), "--tune-file needs --tune or --tune-trials"),
        (("--folds", "2", "--tune", "1", "--tune-file", "-"), "--tune-file must be a file"),
        (("--folds", "2", "--tune", "1", "--tune-file", "m.json"), "--tune-file and --out are the same file"),
        (("--folds", "2", "--tune", "1", *values), "every setting that --tune searches is given"),
    ):
        assert said in refused(*options, status=2)


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert refused(*TUNE).endswith("tuning needs the package optuna: pip install 'lmart[tune]'")


def test_proposals() -> None:
    space, base = dimensions(["truncation"]), TrainSettings(leaves=8)
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
    assert propose(space, trials, TrainSettings(seed=1)) != propose(space, trials, base)
    only = dimensions([one.name for one in DIMENSIONS if one.name != "normalize"])
    both = [Trial({"normalize": one}, 0.5, 1, 0.0) for one in (True, False)]
    assert propose(only, both[:1], base) == both[1].values and propose(only, both, base) is None


def test_ranges_are_inside_those_of_the_settings() -> None:
    for one in DIMENSIONS:
        for value in one.choices or (one.low, one.high):
            TrainSettings(**{one.name: value})  # type: ignore[arg-type]


def test_settings_that_mean_nothing_to_the_objective_are_not_searched() -> None:
    run("train", "--data", "d.svm", *TUNE, "--objective", "xendcg", "--report", "r")
    assert {"truncation", "normalize"} & set(json.loads(Path("r").read_text())["tuning"]["searched"]) == set()
    run("train", "--data", "d.svm", *TUNE, "--objective", "yetirank", "--report", "r")
    assert {"truncation", "normalize"} <= set(json.loads(Path("r").read_text())["tuning"]["searched"])
