"""lmart show DATA [OTHER]: text, JSON and tables, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from helpers.commands import run

TRAIN, TEST = Path("data/sample/train.svm").resolve(), Path("data/sample/test.svm").resolve()


def test_text_says_what_json_says(in_folder: Path) -> None:
    content = json.loads(run("show", TRAIN, "--json").stdout)
    lines = run("show", TRAIN, "--top", "all").stdout.splitlines()
    assert content["kind"] == "data" and content["documents"] == 1760
    assert "documents  1,760" in lines and "features   20" in lines
    table = [line.split() for line in lines[lines.index("") + 2 :]]
    for feature in content["features"]:
        row = next(cells for cells in table if cells[0] == feature["feature"])
        assert row[-2:] == [f"{feature[f'ndcg@10_{way}']:.6f}" for way in ("descending", "ascending")]
        assert [float(cell) for cell in row[1:4]] == pytest.approx(
            [feature[name] for name in ("min", "median", "max")], rel=1e-5
        )


def test_the_table_has_all_features_with_every_digit(in_folder: Path) -> None:
    content = json.loads(run("show", TRAIN, TEST, "--json").stdout)
    header, *rows = (line.split("\t") for line in run("show", TRAIN, TEST, "--tsv").stdout.splitlines())
    distances = {one["name"]: one["ks"] for one in content["drift"]["features"]}
    assert len(rows) == 20
    for row, feature in zip(rows, content["features"], strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells["feature"] == feature["feature"]
        assert float(cells["ndcg@10_descending"]) == feature["ndcg@10_descending"]
        assert float(cells["ks"]) == distances[feature["feature"]]


def test_ndcg_is_that_of_eval(in_folder: Path) -> None:
    content = json.loads(run("show", TEST, "--json").stdout)
    values = [line.split(" 3:")[1].split()[0] for line in TEST.read_text().splitlines()]
    Path("scores.txt").write_text("\n".join(values) + "\n")
    measured = json.loads(run("eval", "--data", TEST, "--scores", "scores.txt", "--json").stdout)
    by_feature = {one["feature"]: one for one in content["features"]}
    expected = measured["systems"][0]["metrics"]["ndcg@10"] if "systems" in measured else measured["metrics"]["ndcg@10"]
    assert by_feature["3"]["ndcg@10_descending"] == pytest.approx(expected, abs=1e-11)


def test_says_what_drifts(in_folder: Path) -> None:
    rows = [f"{i % 2} qid:{i // 10} 1:{i % 7} 2:{i % 5}" for i in range(500)]
    Path("a.svm").write_text("\n".join(rows) + "\n")
    Path("b.svm").write_text("\n".join(row.replace(" 2:", " 2:1") for row in rows) + "\n")
    lines = run("show", "a.svm", "b.svm").stdout.splitlines()
    assert "queries   50 query ids in common" in lines
    assert "features  1 of 2 drift clearly" in lines
    assert [line.split()[0] for line in lines[-3:-1]] == ["2", "1"]


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.svm.gz", "no-extension"])
def test_reads_every_format_of_data(name: str, in_folder: Path) -> None:
    if name == "no-extension":
        shutil.copy(TEST, name)
    else:
        run("convert", TEST, name, "-q")
    shown = json.loads(run("show", name, "--json").stdout)
    expected = json.loads(run("show", TEST, "--json").stdout)
    assert shown["features"] == expected["features"]


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (("show", TRAIN, "--tree", "1"), 2, "--tree needs a model"),
        (("show", TRAIN, "--data", TEST), 2, "--data needs a model"),
        (("show", "model.json", TEST), 2, "the first file is not data"),
        (("show", "model.json", "--allow-inf"), 2, "options of reading data have no effect without --data"),
        (("show", "bad.svm"), 1, "bad.svm:2"),
        (("show", TRAIN, "nothing.svm"), 1, "nothing.svm: there is no such file"),
        (("show", "text.txt"), 1, "neither a model nor data nor a report"),
        (("show", TRAIN, "--group-by-qid", "--top", "3", "--json"), 2, "--top shortens"),
    ],
)
def test_refusals(command: tuple[str, ...], status: int, said: str, in_folder: Path) -> None:
    run("train", "--data", TRAIN, "--trees", "2", "-q", "-o", "model.json")
    Path("bad.svm").write_text("1 qid:1 1:1\n1 qid:1 1:x\n")
    Path("text.txt").write_text("hello world\n")
    assert said in run(*command, status=status).stderr


def test_data_from_a_pipe_is_refused(in_folder: Path) -> None:
    assert "give a file" in run("show", "-", stdin=TRAIN.read_bytes(), status=1).stderr
