"""lmart-report(5) documents every key that --report writes, and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helpers.commands import run, run_lines
from helpers.manual import keys, section
from helpers.paths import SAMPLE

from lmart.manpages import example_lines
from lmart.settings import options


class Key(NamedTuple):
    """One key as the page has it: in some reports, or in every report."""

    holds: str
    meaning: str
    everywhere: bool


DOCUMENTED = {
    term.split(maxsplit=1)[0]: Key(term.partition("(")[2].removesuffix(")"), meaning, title == "In every report")
    for title, entries in keys("lmart-report.5", "KEYS").items()
    for term, meaning in entries.items()
}
FREE = ["settings.", "importance.", "position_bias.", "tuning.trials[].values."]  # whose keys are names of something
FREE += [f"{at}further." for at in ("", "rounds[].", "rankers[].", "start.", "linear.", "cross_validation.")]


def paths(value: object, at: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, one in value.items():
            path = f"{at}.{key}" if at else key
            free = next((start for start in FREE if path.startswith(start)), None)
            if free is not None and path not in DOCUMENTED:
                path = f"{free}NAME"
            yield path, one
            yield from paths(one, path)
    elif isinstance(value, list):
        for one in value:
            yield from paths(one, f"{at}[]")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Reports of runs that have all options between them."""
    folder = tmp_path_factory.mktemp("reports")
    train, valid = folder / "t.svm", folder / "v.svm"
    rows = [f"{(q * 3 + d) % 5} {d + q * 7 % 5}:{d * 5 % 7} 9:{d}" for q in range(12) for d in range(4)]
    sizes = "4\n" * 12
    train.write_text("\n".join(rows))
    valid.write_text("\n".join(rows[::-1]))
    one_a_row = "\n".join(str(n % 3 / 8) for n in range(len(rows)))
    (folder / "sizes").write_text(sizes)
    (folder / "weights").write_text(sizes)
    (folder / "folds").write_text("".join(f"{query}\t{'ab'[query % 2]}\n" for query in range(1, 13)))
    (folder / "scores").write_text(one_a_row)
    (folder / "places").write_text("\n".join(f"top{n % 4}" for n in range(len(rows))))
    queries = dict.fromkeys(line.split()[1][4:] for line in (SAMPLE / "train.svm").read_text().splitlines())
    (folder / "folds").write_text("".join(f"{query}\t{'ab'[n % 2]}\n" for n, query in enumerate(queries)))
    few = ("--min-docs", "1", "--trees", "4", "--data", train, "--query-sizes", folder / "sizes")
    with_valid = ("--valid", valid, "--valid-query-sizes", folder / "sizes", "--valid-weights", folder / "weights")
    start = ("--init-scores", folder / "scores", "--valid-init-scores", folder / "scores")
    largest = ("--metric", "err@3(max=7),map", "--early-stop", "2")
    sample, two = ("--data", SAMPLE / "train.svm"), ("--metric", "ndcg@10,map")
    runs = [
        (*few, *with_valid, *start, *largest, "--weights", folder / "weights", "--rankers", "2"),
        (*few, "--positions", folder / "places"),
        (*few, "--folds", folder / "folds", "--init-scores", folder / "scores", "--metric", "map,mrr"),
        (*few, "--folds", "2", "--tune-trials", "2"),
        (*sample, "--trees", "2", "--folds", folder / "folds"),
        (*few[2:], "--min-docs", "40"),
        (*sample, "--trees", "2", "--continue-from", folder / "first.json"),
        (
            *sample,
            "--valid",
            SAMPLE / "vali.svm",
            "--trees",
            "9",
            "--early-stop",
            "3",
            "--linear",
            "0.3",
            "--refit",
            *two,
        ),
    ]
    run("train", "--data", SAMPLE / "train.svm", "--trees", "2", "--rankers", "1", "-o", folder / "first.json", "-q")
    made = []
    for arguments in runs:
        run("train", *arguments, "-o", folder / "m.json", "--report", folder / "r.json", "-qq")
        made.append(json.loads((folder / "r.json").read_text()))
    return made


def test_every_key_is_documented_and_every_documented_key_occurs(reports: list[dict[str, Any]]) -> None:
    found = {path for report in reports for path, _ in paths(report)}
    assert found == set(DOCUMENTED)


def test_keys_of_all_reports_are_in_all(reports: list[dict[str, Any]]) -> None:
    for path, key in DOCUMENTED.items():
        found = [path in dict(paths(report)) for report in reports if report["rounds"]]
        assert all(found) == key.everywhere, path


KINDS = {
    "object": dict,
    "text": str,
    "whole number": int,
    "number": (int, float),
    "number, text, true or false": (int, float, str, bool),
}


def test_values_are_of_the_kind_that_is_documented(reports: list[dict[str, Any]]) -> None:
    assert any(value is None for report in reports for _, value in paths(report))
    for report in reports:
        for path, value in paths(report):
            key = DOCUMENTED[path]
            if value is None:
                assert "null" in key.meaning, path
            else:
                kind = list if key.holds.startswith("list") else KINDS[key.holds]
                assert isinstance(value, kind), (path, value)  # type: ignore[arg-type]


def test_settings_are_the_options(reports: list[dict[str, Any]]) -> None:
    names = {one.name for one in options()}
    for report in reports:
        # A single ranker has no linear one, and data without categories none of them.
        settings = {*report["settings"], "linear", "categorical"} - {"largest_label"}
        assert settings == names


def test_options_that_are_named_exist() -> None:
    known = set(re.findall(r"--[a-z-]+", run("train", "--help").stdout))
    assert set(re.findall(r"--[a-z-]+", section("lmart-report.5", "KEYS"))) <= known


def test_every_meaning_is_a_sentence() -> None:
    for path, key in DOCUMENTED.items():
        assert key.meaning.endswith(".") and key.meaning[0].isupper(), path


def test_the_report_file_is_where_the_page_says(tmp_path: Path) -> None:
    run(
        "train", "--data", SAMPLE / "train.svm", "--trees", "1", "-o", tmp_path / "m", "--report", tmp_path / "r", "-qq"
    )
    assert json.loads((tmp_path / "r").read_text())["metric"] == "ndcg@10"


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    run_lines(example_lines(section("lmart-report.5", "EXAMPLES")), tmp_path)
    assert (tmp_path / "model.json").read_bytes() == (tmp_path / "again.json").read_bytes()
