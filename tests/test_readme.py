"""Every command line of the README runs, in order, and prints what the README shows."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import HAS_DASK, run, run_lines
from helpers.paths import ROOT, SAMPLE

from lmart import __version__
from lmart.errors import ExitStatus
from lmart.settings import OBJECTIVES

TEXT = (ROOT / "README.md").read_text("ascii")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


INSTALL, TEST, *TOUR = ("".join(block).strip() for block in blocks("sh"))


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the whole tour has been made."""
    folder = tmp_path_factory.mktemp("tour")
    run_lines([line for block in TOUR for line in block.splitlines()], folder)
    return folder


@pytest.mark.slow
def test_the_tour_runs(toured: Path) -> None:
    assert {path.name for path in toured.iterdir()} == {
        "data",
        "model.json",
        "scores.txt",
        "start.txt",
        "more.json",
        "first.json",
        "hundred.json",
        "model.txt",
        "model.xml",
        "test.csv",
        "test.qrels",
        "test.run",
        "folds.json",
        "oof.txt",
        "run.json",
        "seven.json",
        "again.json",
        *(["workers.json", "test.scores", "train.scores"] if HAS_DASK else []),
    }
    assert (toured / "seven.json").read_bytes() == (toured / "again.json").read_bytes()
    if HAS_DASK:
        assert toured.joinpath("workers.json").read_bytes() == toured.joinpath("first.json").read_bytes()


@pytest.mark.slow
def test_the_reports_shown_are_those_printed(toured: Path) -> None:
    shown = re.findall(r"^```sh\n(lmart eval [^\n]*)\n```\n\n```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    with contextlib.chdir(toured):
        for line, printed in shown:
            assert run(*shlex.split(line)[1:]).stdout == printed


def test_the_row_shown_is_in_the_sample() -> None:
    start, end = next(text for text in blocks("text") if "qid:" in text).strip().split(" ... ")
    with (SAMPLE / "train.svm").open() as sample:
        first = sample.readline().strip()
    assert first.startswith(start) and first.endswith(end)


@pytest.mark.slow
def test_the_python_lines_run(toured: Path) -> None:
    program, _ = blocks("python")
    names: dict[str, object] = {}
    with contextlib.chdir(toured):
        exec(program, names)
        Path("python.json").unlink()
    assert len(names["scores"]) == 1  # type: ignore[arg-type]


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_the_lines_for_scikit_learn_run(toured: Path) -> None:
    sklearn = pytest.importorskip("sklearn")
    before = sklearn.get_config()["enable_metadata_routing"]
    names: dict[str, Any] = {}
    with contextlib.chdir(toured):
        try:
            for program in blocks("python"):
                exec(program, names)
        finally:
            sklearn.set_config(enable_metadata_routing=before)
        Path("python.json").unlink()
    assert names["search"].best_score_ > 0.7


@pytest.mark.slow
def test_the_first_line_trains_on_the_sample(tmp_path: Path) -> None:
    """But for making the environment, which .ci/run does."""
    setup, install, *commands = INSTALL.split(" && ")
    assert (setup, install) == ("python3 -m venv .venv", ".venv/bin/pip install -q .")
    assert all(line.startswith(".venv/bin/lmart ") for line in commands)
    run_lines([line.removeprefix(".venv/bin/") for line in commands], tmp_path)


def test_the_second_line_is_what_ci_runs() -> None:
    assert TEST == ".venv/bin/pip install -q '.[test]' && .venv/bin/pytest -q -n 2"
    assert "README.md" in (ROOT / ".ci" / "run").read_text()


def test_every_exit_status_and_the_version_are_told() -> None:
    told = re.search(r"Exit status: (.*?)\n-", TEXT, re.DOTALL)
    assert told is not None
    assert [int(n) for n in re.findall(r"\b\d+\b", told[1])] == [int(one) for one in ExitStatus]
    assert f"### {__version__}" in TEXT


def test_no_line_of_the_prose_is_too_long() -> None:
    prose = re.sub(r"^```.*?^```$|^\|[^\n]*$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert max(map(len, prose.splitlines())) <= 120


def test_the_places_named_exist() -> None:
    section = TEXT.partition("## Where things are")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| `.*$", section, re.MULTILINE):
        place, *names = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", row)
        folder = ROOT / place if place.endswith("/") else (ROOT / place).parent
        assert (ROOT / place).exists(), place
        for name in names:
            assert (folder / name).exists(), (place, name)


def test_ci_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_objective_has_a_row() -> None:
    table = TEXT.split("\n| `--objective` |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z]+)`", table, re.MULTILINE) == list(OBJECTIVES)
