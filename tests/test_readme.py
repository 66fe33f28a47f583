"""Every command and Python program of the README and of the pages in man/ runs, and prints what they show."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import run, run_lines
from helpers.manual import plain, section
from helpers.paths import ROOT, SAMPLE

from lmart.settings import OBJECTIVES

TEXT = (ROOT / "README.md").read_text("ascii")
PAGES = ("tutorial", "python", "cluster")


def blocks(kind: str) -> list[str]:
    """The blocks of the README that are marked so."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def page_blocks(page: str) -> list[str]:
    """The blocks of a manual page that are not filled, as they are read."""
    return re.findall(r"^\.nf\n(.*?)^\.fi$", plain(f"lmart-{page}.7"), re.MULTILINE | re.DOTALL)


def lines_of(found: list[str]) -> Iterator[str]:
    """The commands in blocks that start with one."""
    for block in found:
        if block.startswith("lmart "):
            yield from re.sub(r" \\\n *", " ", block).strip().splitlines()


CLUSTER_NAMES = ("model.json", "workers.json", "test.scores", "train.scores")
INSTALL, TEST, *TOUR = ("".join(block).strip() for block in blocks("sh"))


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all commands but those on a cluster were run: those of the README first, then the pages."""
    folder = tmp_path_factory.mktemp("tour")
    lines = [line for block in TOUR for line in block.splitlines()]
    lines += [line for page in PAGES for line in lines_of(page_blocks(page))]
    run_lines([line for line in lines if "--dask" not in line], folder)
    return folder


@pytest.mark.slow
def test_the_tour_runs(toured: Path) -> None:
    names = "model.json scores.txt start.txt more.json first.json further.json model.txt model.xml test.csv test.qrels"
    names += " test.run folds.json oof.txt run.json seven.json again.json own.csv own.json own.dump.json"
    names += " own.solr.json own.lightgbm.json"
    assert {path.name for path in toured.iterdir()} == {"data", *names.split()}
    assert (toured / "seven.json").read_bytes() == (toured / "again.json").read_bytes()


@pytest.mark.slow
@pytest.mark.cluster
def test_the_tour_on_a_cluster_runs(tmp_path: Path) -> None:
    first = "lmart train --data data/sample/train.svm --trees 40 --rankers 1 --out model.json"
    lines = [line for page in PAGES for line in lines_of(page_blocks(page)) if "--dask" in line]
    run_lines([first, *lines], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"data", *CLUSTER_NAMES}
    assert (tmp_path / "workers.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone")
def test_the_tour_leaves_a_clone_clean(toured: Path) -> None:
    names = {*(path.name for path in toured.iterdir()), *CLUSTER_NAMES, "python.json"} - {"data"}
    asked = ["git", "check-ignore", "--no-index", *names]
    ignored = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert set(ignored) == names


@pytest.mark.slow
def test_the_reports_shown_are_those_printed(toured: Path) -> None:
    shown = re.findall(r"^```sh\n(lmart eval [^\n]*)\n```\n\n```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pairs = itertools.pairwise(page_blocks("tutorial"))
    shown += [(next(lines_of([line])), printed) for line, printed in pairs if printed.startswith("data ")]
    assert len(shown) == 2
    with contextlib.chdir(toured):
        for line, printed in shown:
            assert run(*shlex.split(line)[1:]).stdout == printed


@pytest.mark.parametrize("page", ["README.md", "tests/README.md", "tests/bench/README.md"])
def test_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text()
    named = set(re.findall(r"(?<![\w./-])(?:lmart|tests|man|data)/[\w./*-]*[\w/*]", text))
    assert named
    assert {name for name in named if not [*ROOT.glob(name)]} == set()


def test_the_row_shown_is_in_the_sample() -> None:
    start, end = next(text for text in blocks("text") if "qid:" in text).strip().split(" ... ")
    with (SAMPLE / "train.svm").open() as sample:
        first = sample.readline().strip()
    assert first.startswith(start) and first.endswith(end)


@pytest.mark.slow
def test_the_python_lines_run(toured: Path) -> None:
    with contextlib.chdir(toured):
        for program in (*blocks("python"), page_blocks("python")[0]):
            names: dict[str, object] = {}
            before = Path("model.json").read_bytes()
            exec(program, names)
            assert len(names["scores"])  # type: ignore[arg-type]
            assert Path("model.json").read_bytes() == before  # the same bytes as from the command line
        Path("python.json").unlink()


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_the_lines_for_scikit_learn_run(tmp_path: Path) -> None:
    sklearn = pytest.importorskip("sklearn")
    before = sklearn.get_config()["enable_metadata_routing"]
    names: dict[str, Any] = {}
    run_lines(["lmart train --data data/sample/train.svm --trees 20 --out model.json"], tmp_path)
    with contextlib.chdir(tmp_path):
        try:
            for program in page_blocks("python"):
                exec(program, names)
        finally:
            sklearn.set_config(enable_metadata_routing=before)
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


def test_no_line_of_the_prose_is_too_long() -> None:
    prose = re.sub(r"^```.*?^```$|^\|[^\n]*$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert max(map(len, prose.splitlines())) <= 120


def test_the_places_named_exist() -> None:
    """In the notes for contributors, and the pages that the README names."""
    for text in (TEXT, (ROOT / "tests" / "README.md").read_text()):
        for place in re.findall(r"`((?:lmart|tests|man|data|\.ci)/[\w./-]*)`", text):
            assert (ROOT / place).exists(), place
    for page in re.findall(r"`(?:man )?(lmart(?:-[a-z]+)?)`", TEXT.partition("## Read on")[2].partition("\n## ")[0]):
        assert list((ROOT / "man").glob(f"{page}.[157]")), page


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150


def test_ci_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_objective_is_explained() -> None:
    explained = section("lmart-tutorial.7", "OBJECTIVES")
    assert re.findall(r"^\.TP\n\.B ([a-z]+)$", explained, re.MULTILINE) == list(OBJECTIVES)
