"""What users of ranking tools ran into with measures, tried with lmart eval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.evaluation import SAMPLE, call, close, measured, refused, strict, write

from lmart.cli.main import main


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("empty", "value"), [("skip", 0.815465), ("one", 0.876977), ("zero", 0.543643)])
def test_report_45_queries_with_nothing_relevant(empty: str, value: float) -> None:
    given = write("0 1 / 1 0 / 0 0")
    content = strict(call(*given, "--metric", "ndcg", "--empty", empty, "--json").stdout)
    assert content["metrics"] == {"ndcg": close(value)}
    assert (content["queries"], content["documents"], content["empty_queries"]) == (3, 6, 1)
    assert content["conventions"]["empty"] == empty
    table = call(*given, "--metric", "ndcg", "--empty", empty).stdout
    assert f"{value:.6f}" in table
    assert f"empty          {empty}" in table
    assert "empty queries  1" in table


def test_report_45_all_queries_are_so() -> None:
    given = write("0 0 / 0")
    assert set(measured(*given).values()) == {0.0}
    assert set(measured(*given, "--empty", "one").values()) == {1.0}
    assert set(measured(*given, "--empty", "skip").values()) == {None}
    assert call(*given, "--empty", "skip").stdout.count("n/a") == 6


def test_report_46_ties() -> None:
    for labels, scores, in_file_order, average in (
        ("0 0 1", [0.0, 0.0, 0.0], 0.5, 0.710310),
        ("2 0 1", [5.0, 5.0, 1.0], 0.963940, 0.811471),
    ):
        given = write(labels, scores)
        assert measured(*given, "--metric", "ndcg") == {"ndcg": close(in_file_order)}
        assert measured(*given, "--metric", "ndcg", "--ties", "average") == {"ndcg": close(average)}


def test_report_48_cutoffs_beyond_the_list() -> None:
    assert measured(*write("0 1"), "--metric", "ndcg@10") == {"ndcg@10": close(0.630930)}
    assert measured(*write("1"), "--metric", "ndcg@5") == {"ndcg@5": 1.0}


def test_report_49_several_cutoffs() -> None:
    given = write("1 0 0 2")
    for metric in ("ndcg@4,ndcg@1,ndcg@2", "ndcg@1,ndcg@2,ndcg@4", "ndcg@4,NDCG@1,ndcg@2,ndcg@4"):
        values = measured(*given, "--metric", metric)
        assert values == {"ndcg@1": close(0.333333), "ndcg@2": close(0.275412), "ndcg@4": close(0.631251)}
    assert list(measured(*given, "--metric", "ndcg@4,ndcg@1")) == ["ndcg@4", "ndcg@1"]


@pytest.mark.parametrize("name", ["ndcg@0", "ndcg@-1", "ndcg@x", "", "gini"])
def test_report_49_bad_measures_are_usage_errors_before_data_is_read(name: str) -> None:
    line = refused("--data", "no.svm", "--scores", "no.txt", "--metric", f"map,{name}", status=2)
    assert f"'{name}'" in line
    assert line.endswith("see 'lmart eval --help'")


def test_report_50_gains() -> None:
    given = [*write("0 1 2"), "--metric", "ndcg@3"]
    for gain, value, shown in (
        ("exp2", 0.586883, "2^label - 1"),
        ("linear", 0.619906, "linear"),
        ("0,1,2", 0.619906, "0,1,2"),
        ("0,1,3", 0.586883, "0,1,3"),
    ):
        content = strict(call(*given, "--gain", gain, "--json").stdout)
        assert content["metrics"] == {"ndcg@3": close(value)}
        assert content["conventions"]["gain"] == gain
        assert shown in call(*given, "--gain", gain).stdout
    assert strict(call(*given, "--json").stdout)["conventions"]["gain"] == "exp2"


def test_report_51_the_gain_of_the_model() -> None:
    labels = [0, 7, 50, 3, 33, 31]
    rows = [f"{label} qid:{q} 1:{label * q % 19} 2:{q}\n" for q in (1, 2, 3, 4) for label in labels]
    Path("d.svm").write_text("".join(rows))
    train = [
        "train",
        "--data",
        "d.svm",
        "--valid",
        "d.svm",
        "--gain",
        "linear",
        "--trees",
        "3",
        "--min-docs",
        "1",
        "-q",
    ]
    for arguments in (train, ["predict", "-m", "model.json", "--data", "d.svm", "-o", "s.txt"]):
        assert CliRunner().invoke(main, arguments, catch_exceptions=False).exit_code == 0
    of_model = call("--data", "d.svm", "-m", "model.json", "--metric", "ndcg,map,err", "--json")
    assert strict(of_model.stdout)["conventions"]["gain"] == "linear"
    given_again = measured("--data", "d.svm", "--scores", "s.txt", "--gain", "linear", "--metric", "ndcg,map,err")
    assert strict(of_model.stdout)["metrics"] == given_again
    other = call("--data", "d.svm", "-m", "model.json", "--gain", "exp2", "--json")
    assert strict(other.stdout)["conventions"]["gain"] == "exp2"
    assert "trained with linear" in other.stderr
    assert "trained with" not in call("--data", "d.svm", "-m", "model.json", "--gain", "exp2", "-q").stderr
    assert "trained with" not in call("--data", "d.svm", "-m", "model.json", "--gain", "linear").stderr


def test_report_53_averaging_and_weights() -> None:
    given = [*write("0 1 / " + "1 " * 50 + "0 " * 50), "--metric", "ndcg"]
    assert measured(*given) == {"ndcg": close(0.815465)}
    assert "queries        2\n" in call(*given).stdout
    Path("queries.w").write_text("3\n1\n")
    Path("rows.w").write_text("2\n4\n" + "1\n" * 100)
    for file, kind in (("queries.w", "query"), ("rows.w", "row")):
        assert measured(*given, "--weights", file) == {"ndcg": close(0.723197)}
        assert strict(call(*given, "--weights", file, "--json").stdout)["conventions"]["weights"] == kind
        assert f"weights        one a {kind}\n" in call(*given, "--weights", file).stdout


def test_report_55_queries_of_other_files_are_other_queries() -> None:
    write("2 0", name="a")
    values = [measured(*write(labels), "--metric", "ndcg")["ndcg"] for labels in ("2 0", "1 0", "0 1")]
    assert values == [1.0, 1.0, close(0.630930)]


def test_report_56_log_model_and_scores_agree() -> None:
    train = ["train", "--data", str(SAMPLE / "train.svm"), "--valid", str(SAMPLE / "vali.svm"), "--trees", "5"]
    result = CliRunner().invoke(main, [*train, "--report", "run.json"], catch_exceptions=False)
    assert result.exit_code == 0
    logged = json.loads(Path("run.json").read_text())
    for name, value in (("train", logged["training"]), ("vali", logged["validation"][0])):
        data = str(SAMPLE / f"{name}.svm")
        assert CliRunner().invoke(main, ["predict", "-m", "model.json", "--data", data, "-o", "s.txt"]).exit_code == 0
        of_model = measured("--data", data, "-m", "model.json", "--metric", "ndcg@10")["ndcg@10"]
        of_scores = measured("--data", data, "--scores", "s.txt", "--metric", "ndcg@10")["ndcg@10"]
        assert value == of_model == of_scores
        assert f"{value:.6f}" in call("--data", data, "-m", "model.json", "--metric", "ndcg@10").stdout


def test_large_labels_and_single_documents() -> None:
    assert measured(*write("0 72"), "--metric", "ndcg") == {"ndcg": close(0.630930)}
    assert "label 1100" in refused(*write("0 1100"), "--metric", "dcg,ndcg")
    single = call(*write("1 / 0 / 2"), "--metric", "ndcg")
    assert "one document" in single.stderr
    assert f"{2 / 3:.6f}" in single.stdout
    assert "'-1'" in refused(*write("-1 1"))
