"""lmart convert from model to model: names, verification, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    run("train", "-q", "--data", SAMPLE / "train.svm", "--trees", "3", "--out", path)
    return path


def test_a_feature_map_renames_and_verifies(model: Path, tmp_path: Path) -> None:
    names, out = tmp_path / "f.map", tmp_path / "named.json"
    names.write_text("# feature name\n1 bm25 q\n\n2\tpage rank\tq\n")
    result = run("convert", model, out, "--feature-map", names, "--verify", SAMPLE / "test.svm", "--strict")
    assert json.loads(out.read_text())["feature_names"][:3] == ["bm25", "page rank", "3"]
    assert "lmart, 3 trees, 20 features; verified with 600 rows and " in result.stderr
    assert "largest difference 0, 0 rows changed leaf" in result.stderr


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "there is no line"),
        ("1\n", "1: '1' has no new name"),
        ("1 a\n1 b\n", "2: the feature '1' is named twice"),
        ("1 a\n2 a\n", "2: two features get the name 'a'"),
        ("1 2\n", "two features would have the name '2'"),
        ("77 a\n", "the model has no feature '77'"),
    ],
)
def test_a_feature_map_that_does_not_fit_is_refused(text: str, what: str, model: Path, tmp_path: Path) -> None:
    names, out = tmp_path / "f.map", tmp_path / "out.json"
    names.write_text(text)
    result = run("convert", model, out, "--feature-map", names, status=1)
    assert what in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not out.exists()


def test_options_for_models_are_refused_with_data(tmp_path: Path) -> None:
    for option in (["--strict"], ["--verify", SAMPLE / "test.svm"], ["--feature-map", "f.map"]):
        result = run("convert", SAMPLE / "test.svm", tmp_path / "a.csv", *option, status=2)
        assert f"{option[0]} is for models, and csv holds data" in result.stderr


def test_data_of_another_model_cannot_verify(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.svm"
    other.write_text("1 qid:1 500:1\n")
    result = run("convert", model, tmp_path / "out.json", "--verify", other, status=1)
    assert "no feature of the data is in the model" in result.stderr
    assert not (tmp_path / "out.json").exists()


def test_standard_output_has_its_name_in_messages(model: Path) -> None:
    result = run("convert", model, "-", "--to", "solr")
    assert "lmart: standard output: solr, 3 trees" in result.stderr
    assert "standard input" not in result.stderr


def test_a_name_that_is_no_unicode_is_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    parsed = json.loads(model.read_text())
    parsed["feature_names"] = ["\ud800", *map(str, parsed["feature_ids"][1:])]
    model.write_text(json.dumps(parsed))
    result = run("convert", model, tmp_path / "m.txt", "--to", "lightgbm", status=1)
    assert "a name holds '\\ud800', which is no character" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("target", ["lightgbm", "lightgbm-json", "xgboost", "xgboost-ubj"])
def test_names_that_the_format_changes_can_be_verified(target: str, model: Path, tmp_path: Path) -> None:
    parsed = json.loads(model.read_text())
    odd = ["a[b", "a_b", "a b", 'say "x"', "c,d"]
    parsed["feature_names"] = [*odd, *(f"n{index}" for index in parsed["feature_ids"][5:])]
    model.write_text(json.dumps(parsed))
    result = run("convert", model, tmp_path / "out", "--to", target, "--verify", SAMPLE / "test.svm")
    assert "got '_' in place" in result.stderr
    assert "0 rows changed leaf" in result.stderr
