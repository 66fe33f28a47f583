"""lmart show: models of any format, reports, trees, contributions, tables, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.manual import keys
from helpers.paths import SAMPLE

from lmart.cli.terminal import layout
from lmart.formats.models.model_files import read_model, write_model
from lmart.model import load
from lmart.scoring.ensemble import Ensemble, Tree

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?%?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of two rankers, and the report of its run."""
    folder = tmp_path_factory.mktemp("show")
    data: list[str | Path] = ["--data", SAMPLE / "train.svm", "--valid", SAMPLE / "vali.svm"]
    some = ["--trees", "20", "--rankers", "2", "--early-stop", "5"]
    run("train", "-q", *data, *some, "--report", folder / "run.json", "-o", folder / "model.json")
    return folder


def shown(*arguments: str | Path) -> str:
    return run("show", "-q", *arguments).stdout


def as_json(*arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(*arguments, "--json"))
    return found


def refused(*arguments: str | Path, status: int = 1, stdin: bytes | None = None) -> str:
    lines = run("show", "-q", *arguments, status=status, stdin=stdin).stderr.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_the_summary_of_a_model(folder: Path) -> None:
    text = shown(folder / "model.json", "--top", "3")
    model = load(folder / "model.json")
    trees = model.ensemble.trees
    assert re.search(rf"^trees +{len(trees)}; the mean of 2 rankers$", text, re.MULTILINE)
    assert f"{sum(tree.n_leaves for tree in trees):,}; " in text
    assert "settings     trees 20, rankers 2, early-stop 5; others are the defaults" in text
    gains = sorted(model.importance().items(), key=lambda one: -one[1])
    rows = re.findall(r"^(\d+) +([\d.]+)% +(\d+)  #+$", text, re.MULTILINE)
    assert [(name, gain) for name, gain, _ in rows] == [(name, f"{gain:.2%}"[:-1]) for name, gain in gains[:3]]
    assert [int(count) for *_, count in rows] == [model.importance("splits")[name] for name, _ in gains[:3]]


def test_the_json_of_a_model_agrees_with_python(folder: Path) -> None:
    found, model = as_json(folder / "model.json"), load(folder / "model.json")
    assert (found["kind"], found["format"], found["trees"]) == ("model", "lmart", len(model.ensemble.trees))
    assert {one["feature"]: one["gain_share"] for one in found["importance"]} == model.importance()
    assert {one["feature"]: one["splits"] for one in found["importance"]} == model.importance("splits")
    assert sum(one["trees"] for one in found["rankers"]) == found["trees"]


def test_the_importance_in_the_report_is_that_of_the_model(folder: Path) -> None:
    of_model = {one["feature"]: one["gain_share"] for one in as_json(folder / "model.json")["importance"]}
    of_run = {one["feature"]: one["gain_share"] for one in as_json(folder / "run.json")["importance"]}
    assert of_run == {name: share for name, share in of_model.items() if share > 0}


@pytest.mark.parametrize("threads", [1, 2])
def test_contributions_to_the_scores_of_data(folder: Path, threads: int) -> None:
    data = SAMPLE / "test.svm"
    found = as_json(folder / "model.json", "--data", data, "--threads", str(threads))
    assert found["contributions"] == {"data": str(data), "rows": 600}
    rows = [dict(cell.split(":") for cell in line.split(" #")[0].split()[2:]) for line in data.read_text().splitlines()]
    model = load(folder / "model.json")
    matrix = [[float(row.get(str(index), 0.0)) for index in model.feature_ids] for row in rows]
    assert {one["feature"]: one["contribution"] for one in found["importance"]} == model.importance(
        "contributions", matrix
    )
    values = [one["contribution"] for one in found["importance"]]
    assert values == sorted(values, reverse=True)
    assert "adds: mean absolute contribution to a score." in shown(folder / "model.json", "--data", data)


def test_tables_have_every_digit(folder: Path) -> None:
    header, *rows = [line.split("\t") for line in shown(folder / "model.json", "--tsv").splitlines()]
    assert header == ["feature", "gain_share", "splits"]
    assert {name: float(share) for name, share, _ in rows} == load(folder / "model.json").importance()
    header, *rows = [line.split("\t") for line in shown(folder / "run.json", "--tsv").splitlines()]
    assert header == ["ranker", "round", "kept", "training", str(SAMPLE / "vali.svm")]
    report = json.loads((folder / "run.json").read_text())
    assert [[float(cell) for cell in row] for row in rows] == [
        [
            one["ranker"],
            one["round"],
            one["round"] <= report["rankers"][one["ranker"] - 1]["trees"],
            one["training"],
            *one["validation"],
        ]
        for one in report["rounds"]
    ]


def test_the_summary_of_a_run(folder: Path) -> None:
    text = shown(folder / "run.json")
    report = json.loads((folder / "run.json").read_text())
    assert f"{report['validation'][0]:.6f} on {SAMPLE / 'vali.svm'}" in text
    for number, one in enumerate(report["rankers"], 1):
        assert f"ranker {number} of 2: {one['objective']}, {one['tree']} trees of {one['leaves']} leaves; " in text
        values = [entry["validation"][0] for entry in report["rounds"] if entry["ranker"] == number]
        best = values.index(max(values)) + 1
        assert re.search(rf"vali\.svm  {values[0]:.6f}  [-.:=+*%# ]+  {max(values):.6f} +{best}$", text, re.MULTILINE)
        assert re.search(rf"(\^ {one['trees']}|{one['trees']} \^)$", text, re.MULTILINE)
    assert "seconds" in text and "warning" not in text


def test_the_mark_stands_below_the_last_round_kept(folder: Path) -> None:
    lines = shown(folder / "run.json").splitlines()
    report = json.loads((folder / "run.json").read_text())
    start = next(line for line in lines if line.startswith("training")).index("  ", 20) + 2
    marks = [line for line in lines if "^" in line and "Each" not in line]
    first = re.search(r"[-.:=+*%#]{3}", next(line for line in lines if line.startswith("training") and "#" in line))
    assert first is not None and start
    for one, line in zip(report["rankers"], marks, strict=True):
        assert line.index("^") - first.start() == one["trees"] - 1  # one character a round, as there are few


def test_a_run_without_a_measure(folder: Path, tmp_path: Path) -> None:
    report = json.loads((folder / "run.json").read_text())
    rounds = [{**one, "training": None, "validation": [None]} for one in report["rounds"]]
    nothing = {**report, "rounds": rounds, "training": None, "validation": [None]}
    (tmp_path / "run.json").write_text(json.dumps(nothing))
    text = shown(tmp_path / "run.json")
    assert "n/a on training" in text and "^" not in text and "first" not in text
    assert "n/a\tn/a" in shown(tmp_path / "run.json", "--tsv")


def test_a_model_says_nothing_of_settings_that_it_does_not_hold(tmp_path: Path) -> None:
    write_model(Ensemble((), np.arange(1, 4)), str(tmp_path / "m.json"))
    text = shown(tmp_path / "m.json")
    assert "trees        0\n" in text and "settings" not in text and "splits" not in text


def test_warnings_folds_and_trials_of_a_run(tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    data: list[str | Path] = ["--data", SAMPLE / "train.svm"]
    some = ["--trees", "3", "--folds", "2", "--tune-trials", "2", "--tune", "60"]
    run("train", "-q", *data, *some, "--report", report, "-o", tmp_path / "m.json")
    content = json.loads(report.read_text())
    report.write_text(json.dumps({**content, "warnings": ["something\nodd"]}))
    text = shown(report)
    assert f"{content['cross_validation']['mean']:.6f}" in text and "over 2 folds" in text
    assert f"tuning    2 trials; the best is {content['tuning']['best']}" in text
    assert "warning   something\\nodd" in text
    assert as_json(report)["tuning"] == content["tuning"]


@pytest.mark.parametrize(
    "change",
    [
        {"cross_validation": {"mean": 0.5, "folds": [1, 2], "interval": [None, None]}},
        {"cross_validation": {"mean": 0.5, "folds": [1, 2], "interval": ["a", [1]]}},
        {"tuning": {"trials": [], "best": "\x1b[31m"}},
        {"metric": "\ud800", "continued_from": {"trees": 3, "model": "\ud800"}},
        {"seconds": {"\ud800": 1e308}, "warnings": ["\ud800"]},
    ],
)
def test_odd_values_of_a_report_are_escaped(folder: Path, tmp_path: Path, change: dict[str, object]) -> None:
    report = json.loads((folder / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**report, **change}))
    text = shown(tmp_path / "run.json")
    assert "\x1b" not in text and "None" not in text and as_json(tmp_path / "run.json")["kind"] == "report"


def test_a_tree(folder: Path) -> None:
    text, found = shown(folder / "model.json", "--tree", "2"), as_json(folder / "model.json", "--tree", "2")
    tree = load(folder / "model.json").ensemble.trees[1]
    values = [float(value) for value in re.findall(r"score ([-+][\d.e-]+)", text)]
    assert sorted(values) == sorted(tree.leaf_values.tolist())
    thresholds = [float(value) for value in re.findall(r"<= ([-\d.e]+)", text)]
    assert sorted(thresholds) == sorted(tree.thresholds.tolist()) == sorted(one["threshold"] for one in found["nodes"])
    assert [one["value"] for one in found["leaves"]] == values
    assert found["nodes"][0]["documents"] == 1760


def paths(value: object, at: str = "") -> set[str]:
    """The paths of all keys; what is below a key that is documented as a whole is left out."""
    whole = (
        "settings",
        "changed_settings",
        "data",
        "files",
        "run",
        "seconds",
        "cross_validation",
        "tuning",
        "nodes[].left",
    )
    if at in (*whole, "nodes[].right", "further", "rankers[].further"):
        return {at}
    if isinstance(value, dict):
        own = {at} if at in ("leaf_documents",) else set()
        return own.union(*(paths(one, f"{at}.{key}" if at else key) for key, one in value.items()))
    if isinstance(value, list):
        return {at}.union(*(paths(one, f"{at}[]") for one in value if isinstance(one, dict)))
    return {at}


def test_every_key_is_documented(folder: Path, tmp_path: Path) -> None:
    model, data, documented = folder / "model.json", SAMPLE / "test.svm", keys("lmart-show.1", "JSON")
    few = ("--trees", "2", "--rankers", "1", "--categorical", "5")
    run("train", "-q", "--data", SAMPLE / "train.svm", *few, "-o", tmp_path / "c.json")
    found = paths(as_json(model, "--data", data)) | paths(as_json(tmp_path / "c.json"))
    assert found - {"kind", "file"} == set(documented["Keys of a model"])
    of_tree = set(documented["Keys of a tree"]) - {"nodes[].bounds", "nodes[].values", "nodes[].unseen"}
    assert paths(as_json(model, "--tree", "1")) - {"kind", "file"} == of_tree
    report = json.loads((folder / "run.json").read_text())
    for entry in (report, *report["rounds"]):
        entry["further"] = {"mrr": {"training": entry["training"], "validation": entry["validation"]}}
    (tmp_path / "run.json").write_text(json.dumps({**report, "cross_validation": {}, "tuning": {}}))
    assert paths(as_json(tmp_path / "run.json")) - {"kind", "file"} == set(documented["Keys of a report"])


@pytest.mark.parametrize(
    "form", ["lightgbm", "lightgbm-json", "xgboost", "xgboost-ubj", "xgboost-dump", "ranklib", "quickrank", "solr"]
)
def test_models_of_other_tools(folder: Path, tmp_path: Path, form: str) -> None:
    path = str(tmp_path / "model")
    write_model(read_model(str(folder / "model.json")), path, form)
    found, own = as_json(path), as_json(folder / "model.json")
    assert (found["format"], found["trees"], found["leaves"]) == (form, own["trees"], own["leaves"])
    splits = {one["feature"]: one["splits"] for one in own["importance"] if one["splits"]}
    assert {one["feature"]: one["splits"] for one in found["importance"] if one["splits"]} == splits
    knows_gains = form.startswith("lightgbm") or form in ("xgboost", "xgboost-ubj")
    assert (found["importance"][0]["gain_share"] is not None) == knows_gains
    assert ("The file does not say what splits gained" in shown(path)) != knows_gains


def test_a_model_without_documents_cannot_be_explained(folder: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    write_model(read_model(str(folder / "model.json")), path, "ranklib")
    assert "'leaf_documents'" in refused(path, "--data", SAMPLE / "test.svm")


def test_standard_input_and_compressed_files(folder: Path, tmp_path: Path) -> None:
    content = (folder / "model.json").read_bytes()
    from_pipe = run("show", "-", stdin=content).stdout
    assert from_pipe.replace("standard input", str(folder / "model.json")) == shown(folder / "model.json")
    run("convert", "-q", folder / "model.json", tmp_path / "m.json.gz", "--to", "lmart")
    assert as_json(tmp_path / "m.json.gz")["trees"] == as_json(folder / "model.json")["trees"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"hello\nworld\n", "it starts with 'hello'"),
        (b"\x00\x01\x02", "it is no text"),
        (b'{"a": 1, "b": [], "c": 2, "d": 3}', "but JSON with the keys 'a', 'b', 'c' and 1 more"),
        (b"{}", "but JSON with no key"),
        (b"[1, 2]", "but a JSON list"),
        (b'{"settings": {"trees": 3', "this report of a run is no whole JSON"),
        (b'{"settings": {}, "rounds": 3, "rankers": 3, "metric": "map"}', "this training report is damaged"),
        (b'{"format": "lmart", "version": 99}', "this lmart knows up to 3"),
    ],
)
def test_what_is_neither_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    line = refused(path)
    assert line.startswith(f"lmart: error: {path}") and words in line


def test_no_file(tmp_path: Path) -> None:
    assert "there is no such file" in refused(tmp_path / "nothing.json")


def test_what_needs_a_model(folder: Path) -> None:
    report = folder / "run.json"
    assert "--tree needs a model" in refused(report, "--tree", "1")
    assert "--data needs a model" in refused(report, "--data", SAMPLE / "test.svm")
    assert "so there is no tree 99; trees are numbered from 1" in refused(folder / "model.json", "--tree", "99")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json", "--tsv"], "give one of --tsv and --json, not both"),
        (["--tree", "1", "--tsv"], "--tree shows one tree; drop --tsv"),
        (["--tree", "1", "--data", "d"], "--tree shows one tree; drop --data"),
        (["--tree", "1", "--top", "2"], "--top shortens the table of features, and --tree prints none"),
        (["--top", "2", "--json"], "--top shortens the table of features, and --json prints all of it"),
        (["--top", "2", "--tsv"], "--top shortens the table of features, and --tsv prints all of it"),
        (["--tree", "0"], "not a whole number from 1 to 2147483647"),
        (["--top", "few"], "'few' is not 'all' or a whole number from 1 to 2147483647"),
        (["--strict"], "--strict needs --data"),
        (["--data", "-"], "only one input can be '-'"),
    ],
)
def test_wrong_usage(options: list[str], words: str) -> None:
    line = refused("-", *options, status=2, stdin=b"")
    assert words in line and line.endswith("; see 'lmart show --help'")


def long_names() -> Ensemble:
    rng = np.random.default_rng(0)
    names = tuple(f"title_anchor_bm25_normalised_by_length_{k}" for k in range(4))

    def tree() -> Tree:
        return Tree(
            rng.integers(0, 4, 1).astype(np.int32),
            np.array([0.7975000000000001]),
            np.array([True]),
            np.array([-1], np.int32),
            np.array([-2], np.int32),
            np.array([0.007061052769735764, -0.04081553022728126]),
            np.array([66.7786797]),
            np.array([1234567, 34567]),
        )

    return Ensemble(tuple(tree() for _ in range(9)), np.arange(1, 5), names)


@pytest.mark.parametrize("columns", [40, 80])
def test_narrow_terminals_shorten_names_and_no_number(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    path = tmp_path / "m.json"
    write_model(long_names(), str(path))
    asked: list[list[str | Path]] = [[folder / "model.json"], [folder / "run.json"], [path], [path, "--tree", "1"]]
    plain = [shown(*one) for one in asked]
    monkeypatch.setattr(layout, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments, whole in zip(asked, plain, strict=True):
        text = re.sub(r"\x1b\[\d+m", "", shown(*arguments))
        assert max(map(layout.cells, text.splitlines())) <= columns
        if arguments == [path]:
            assert ("title_anchor_bm25_normalised_by_length_0" in text) == (columns == 80)
        without_names = re.sub(r"/\S+|title\S+", "", whole)
        lacking = set(NUMBER.findall(without_names)) - set(NUMBER.findall(text))
        # the first value of a curve is left out as a whole where there is no room
        assert not lacking or (columns == 40 and arguments == [folder / "run.json"]), lacking
        assert "\x1b" not in whole and whole.isascii()
