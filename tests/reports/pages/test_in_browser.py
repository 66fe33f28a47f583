"""The page in a real browser: no error, the numbers of its JSON, readable on a telephone, light and dark."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import chromium, framed, open_page
from helpers.commands import run
from helpers.pages import Page
from helpers.paths import SAMPLE

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything on it, and long names."""
    chromium()
    folder = tmp_path_factory.mktemp("browser")
    data = SAMPLE / "test.svm"
    report, model = folder / "run.json", folder / "a_model_with_a_rather_long_name_that_needs_room.json"
    train: list[str | Path] = ["--data", SAMPLE / "train.svm", "--valid", SAMPLE / "vali.svm", "--trees", "12"]
    run("train", "-q", *train, "--rankers", "2", "--report", report, "-o", model)
    scores = folder / "scores_of_another_ranker_whose_name_is_long_too.txt"
    run("predict", "-q", "-m", model, "--data", data, "-o", scores)
    scores.write_text("".join(f"{len(line) % 7}\n" for line in scores.read_text().splitlines()))
    measured: list[str | Path] = ["eval", "-q", "--data", data, "--model", model, "--scores", scores]
    run(*measured, "--html", folder / "page.html", "--train-report", report)
    run("show", "-q", model, "--data", data, "--train-report", report, "--html", folder / "model.html")
    rows = [f"{k % 4},{k // 9},{k * 7 % 50},{k % 3}" for k in range(300)]
    named = "a_feature_of_the_title_and_the_anchor_with_a_rather_long_name"
    (folder / "a_file_with_a_long_name_too.csv").write_text("\n".join([f"label,qid,{named},{named}_2", *rows]))
    files = [*sorted(folder.glob("*.csv")), data]
    run("show", "-q", *files, "--html", folder / "data.html")
    return folder / "page.html"


def test_it_opens_without_an_error_and_shows_the_numbers_of_its_json(page: Path, tmp_path: Path) -> None:
    opened = open_page(page, tmp_path)
    assert opened.console == []
    found = Page(re.sub(r"(?s)<svg.*?</svg>", "", opened.document))
    systems = found.content["evaluation"]["systems"]
    _, *rows = found.tables["means"]
    assert rows == [[name, *(one["metrics"][name] for one in systems)] for name in systems[0]["metrics"]]
    assert found.content == Page(page.read_text()).content


@pytest.mark.parametrize("name", ["model", "data"])
def test_other_pages_open_without_an_error(page: Path, tmp_path: Path, name: str) -> None:
    other = page.with_name(f"{name}.html")
    opened = open_page(other, tmp_path)
    assert opened.console == []
    assert Page(re.sub(r"(?s)<svg.*?</svg>", "", opened.document)).content == Page(other.read_text()).content


@pytest.mark.parametrize("width", [360, 768, 1200])
@pytest.mark.parametrize("name", ["page", "model", "data"])
def test_nothing_is_wider_than_the_screen(page: Path, tmp_path: Path, name: str, width: int) -> None:
    found = _framed(page.with_name(f"{name}.html"), tmp_path, width)
    assert found["scroll"] <= found["width"] <= width
    assert found["wide"] == ""
    assert found["drawn"] is None or found["drawn"] >= 9  # pixels of the letters in charts


def test_dark_and_light(page: Path, tmp_path: Path) -> None:
    papers = [_framed(page, tmp_path, 360, f"--blink-settings=preferredColorScheme={k}")["paper"] for k in (0, 1)]
    dark, light = [sum(map(int, re.findall(r"\d+", paper)[:3])) for paper in papers]
    assert dark < 150 and light > 700


def _framed(page: Path, folder: Path, width: int, *options: str) -> dict[str, Any]:
    outer = folder / "outer.html"
    outer.write_text(framed(page.read_text(), width))
    opened = open_page(outer, folder / "profile", *options)
    assert opened.console == []
    text = re.search(r'<pre id="found">(.*?)</pre>', opened.document, re.DOTALL)
    assert text is not None
    found: dict[str, Any] = json.loads(html.unescape(text[1]))
    return found
