"""A run can be traced: the report has version, command line, time and digests; lines of the log can have the time."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import run, shell
from helpers.paths import SAMPLE

import lmart

TRAIN = (SAMPLE / "train.svm").read_bytes()
SMALL = ("--trees", "2", "--rankers", "1", "-q")


def run_entry(*arguments: str, stdin: bytes | None = None) -> dict[str, Any]:
    run("train", *arguments, *SMALL, "--report", "r.json", "-o", "m.json", stdin=stdin)
    found: dict[str, Any] = json.loads(Path("r.json").read_text())["run"]
    return found


def digests(entry: dict[str, Any]) -> dict[str, tuple[int, str]]:
    return {one["file"]: (one["bytes"], one["sha256"]) for one in entry["inputs"]}


def expected(*paths: str) -> dict[str, tuple[int, str]]:
    contents = {path: Path(path).read_bytes() for path in paths}
    return {path: (len(content), hashlib.sha256(content).hexdigest()) for path, content in contents.items()}


@pytest.fixture(autouse=True)
def files(in_folder: Path) -> None:
    """Training data, a compressed validation file, weights and settings."""
    Path("d.svm").write_bytes(TRAIN)
    Path("v.svm.gz").write_bytes(gzip.compress((SAMPLE / "vali.svm").read_bytes()))
    Path("w").write_text("1\n" * 120)
    Path("monotone").write_text("1:+1\n")
    Path("s.json").write_text('{"leaves": 5}')


def test_the_command_line_and_the_time() -> None:
    before = datetime.now(UTC)
    entry = run_entry("--data", "d.svm", "--metric", "ndcg@5 , map")
    assert entry["version"] == lmart.__version__
    words = ["lmart", "train", "--data", "d.svm", "--metric", "ndcg@5 , map", *SMALL, "--report", "r.json"]
    assert shlex.split(entry["command"]) == [*words, "-o", "m.json"]
    started = datetime.strptime(entry["started"], "%Y-%m-%dT%H:%M:%S%z")
    assert timedelta(seconds=-1) <= started - before <= timedelta(seconds=60) and entry["seconds"] > 0
    assert entry["model"] == {"file": "m.json", "sha256": expected("m.json")["m.json"][1]}


def test_every_file_that_is_read_has_its_digest() -> None:
    more = ("--weights", "w", "--settings", "s.json", "--monotone", "monotone")
    entry = run_entry("--data", "d.svm", "--valid", "v.svm.gz", *more)
    assert digests(entry) == expected("d.svm", "v.svm.gz", "w", "monotone", "s.json")
    Path("m.json").rename("first.json")
    run("convert", "d.svm", "d.csv", "-q")
    entry = run_entry("--data", "d.csv", "--continue-from", "first.json", "--weights", "w")
    assert digests(entry) == expected("d.csv", "w", "first.json")


def test_standard_input_and_pipes_have_the_digest_of_what_was_read() -> None:
    content = gzip.compress(TRAIN)  # with the time
    entry = run_entry("--data", "-", "--folds", "2", stdin=content)
    assert digests(entry)["-"] == (len(content), hashlib.sha256(content).hexdigest())
    done = shell(
        f"lmart train --data <(cat d.svm) --settings <(cat s.json) {shlex.join(SMALL)} --report r.json", Path.cwd()
    )
    assert done.returncode == 0, done.stderr
    read = digests(json.loads(Path("r.json").read_text())["run"])
    assert sorted(read.values()) == sorted(expected("d.svm", "s.json").values())


def test_nothing_of_it_is_in_the_model() -> None:
    run_entry("--data", "d.svm")
    first = Path("m.json").read_bytes()
    run("train", "--data", "d.svm", *SMALL, "-o", "m.json", "--log-time")
    assert Path("m.json").read_bytes() == first


def test_it_is_shown() -> None:
    entry = run_entry("--data", "d.svm")
    assert json.loads(run("show", "r.json", "--json").stdout)["run"] == entry
    text = run("show", "r.json").stdout
    assert f"run       {entry['started']}, {entry['seconds']:.1f} s, lmart {lmart.__version__}\n" in text
    assert f"command   {entry['command']}\n" in text
    older = json.loads(Path("r.json").read_text())
    for odd in ({}, {"started": 3, "seconds": "x", "command": []}, [1], None):
        Path("older.json").write_text(json.dumps({**older, "run": odd}))
        assert "command" not in run("show", "older.json").stdout


def test_lines_of_the_log_begin_with_the_time() -> None:
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
    told = run("train", "--data", "d.svm", "--trees", "2", "--log-time").stderr.splitlines()
    plain = run("train", "--data", "d.svm", "--trees", "2").stderr.splitlines()
    assert len(told) > 3 and all(re.match(f"{stamp}lmart: ", line) for line in told)
    without_seconds = [re.sub(r"in [\d.]+ s", "", re.sub(f"^{stamp}", "", line)) for line in told]
    assert without_seconds == [re.sub(r"in [\d.]+ s", "", line) for line in plain]
    for command in (["predict", "-m", "none", "--data", "d.svm"], ["train", "--trees", "x", "--data", "d.svm"]):
        status = 1 if command[0] == "predict" else 2
        said = run(*command, "--log-time", status=status).stderr
        assert re.fullmatch(f"{stamp}lmart: error: .*\n", said)
        assert run(*command, status=status).stderr == re.sub(f"^{stamp}", "", said)  # and not of the next command
