"""lmart predict --explain and --why: contributions in rows, and the table of two documents."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run

from lmart.cli.terminal import layout
from lmart.formats.models.model_files import write_model
from lmart.scoring.ensemble import Ensemble, Tree

DATA = """\
1 qid:a 1:3 2:1 # docid = x
0 qid:a 1:1 # docid = y
0 qid:a 1:3 2:nan # docid = y
2 qid:b 1:2
0 qid:b 1:7 # docid = w
"""


def two_stumps() -> Ensemble:
    """Feature 1 above 2 is worth 4, for half of them; feature 2 above 0 is worth -1, for a quarter; 9: none."""
    stump = Tree(
        np.array([0], np.int32),
        np.array([2.0]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array([0.0, 4.0]),
        leaf_documents=np.array([20, 20]),
    )
    other = dataclasses.replace(
        stump,
        split_columns=np.array([1], np.int32),
        thresholds=np.array([0.0]),
        leaf_values=np.array([0.0, -1.0]),
        leaf_documents=np.array([30, 10]),
    )
    return Ensemble((stump, other), np.array([1, 2, 9]), base_score=0.5)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = str(tmp_path / "m.json")
    write_model(two_stumps(), path)
    return path


def predict(model: str, *arguments: str, status: int = 0, stdin: str = DATA) -> str:
    result = run("predict", "-q", "-m", model, "--data", "-", *arguments, status=status, stdin=stdin)
    return result.stdout if status == 0 else result.stderr


def test_contributions_stand_in_the_rows(model: str) -> None:
    rows = [json.loads(line) for line in predict(model, "--format", "jsonl", "--explain").splitlines()]
    assert rows[0] == {
        "row": 1,
        "qid": "a",
        "docid": "x",
        "score": 3.5,
        "rank": 2,
        "base": 2.25,
        "contributions": {"1": 2.0, "2": -0.75},
    }
    assert [row["contributions"] for row in rows[1:]] == [
        {"1": -2.0, "2": 0.25},
        {"1": 2.0, "2": 0.25},
        {"1": -2.0, "2": 0.25},
        {"1": 2.0, "2": 0.25},
    ]
    for row in rows:
        assert row["score"] == row["base"] + math.fsum(row["contributions"].values())


def test_only_the_rows_that_are_kept_are_explained(model: str) -> None:
    everything = predict(model, "--format", "jsonl", "--explain").splitlines()
    best = predict(model, "--format", "jsonl", "--explain", "--top", "1").splitlines()
    assert best == [everything[2], everything[4]]
    scattered = DATA.splitlines(keepends=True)
    scattered = [scattered[3], scattered[0], scattered[1], scattered[4], scattered[2]]
    lines = predict(
        model, "--format", "jsonl", "--explain", "--group-by-qid", "--top", "1", stdin="".join(scattered)
    ).splitlines()
    assert [re.sub(r'"row": \d+', "", line) for line in lines] == [re.sub(r'"row": \d+', "", one) for one in best[::-1]]


def test_blocks_and_threads_change_nothing(model: str) -> None:
    rows = "".join(f"0 qid:{i // 700} 1:{i % 5} 2:{i % 3} {7 + i % 50}:1\n" for i in range(12_000))
    one = predict(model, "--format", "jsonl", "--explain", "--threads", "1", stdin=rows)
    assert predict(model, "--format", "jsonl", "--explain", "--threads", "3", stdin=rows) == one
    lines = one.splitlines()
    assert len(lines) == 12_000
    for i in (0, 1, 2, 4, 699, 11_999):
        row = json.loads(lines[i])
        assert row["row"] == i + 1
        assert row["contributions"] == {"1": 2.0 if i % 5 > 2 else -2.0, "2": -0.75 if i % 3 else 0.25}


TABLE = """\
query       a
document A  x (rank 2 of 3)
document B  number 2 (rank 3 of 3)
not shown   1 feature that adds as much to A as to B

feature       value of A  value of B  adds to A  adds to B      A - B
1                      3           1   2.000000  -2.000000   4.000000
2                      1           0  -0.750000   0.250000  -1.000000

all features                           1.250000  -1.750000   3.000000
base                                   2.250000   2.250000   0.000000
score                                  3.500000   0.500000   3.000000
"""


def test_the_table_of_two_documents(model: str) -> None:
    data = DATA.replace("0 qid:a 1:1 # docid = y", "0 qid:a 1:1")
    assert predict(model, "--why", "a", "x", "2", stdin=data) == TABLE
    assert "missing" in predict(model, "--why", "a", "x", "y", stdin=data)
    turned = predict(model, "--why", "a", "2", "x", stdin=data)
    assert [float(line.split()[-1]) for line in turned.splitlines() if line[:1] in ("1", "2")] == [-4.0, 1.0]


def test_the_table_on_a_terminal(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "is_terminal", lambda: True)
    shown = predict(model, "--why", "a", "x", "2")
    for words in ("document A", "value of A", "4.000000", "-1.000000", "score"):
        assert words in shown


def test_an_id_goes_before_a_number(model: str) -> None:
    data = "1 qid:a 1:3 # docid = 2\n0 qid:a 1:1 # docid = z\n"
    assert "document A  2 (rank 1 of 2)\ndocument B  z (rank 2" in predict(model, "--why", "a", "2", "z", stdin=data)


def test_what_stands_after_the_query_is_not_read(model: str) -> None:
    data = DATA + "0 qid:b 1:0\n" * 10_000 + "0 qid:c 1:broken\n"
    assert predict(model, "--why", "a", "x", "2", stdin=data)
    assert ":10006:" in predict(model, "--why", "a", "x", "2", "--group-by-qid", stdin=data, status=1)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("c", "1", "2"), "holds no query 'c'"),
        (
            ("a", "1", "4"),
            "query 'a' holds no document '4'; name one by its id ('x', 'y', 'y') or number in the query, 1 to 3",
        ),
        (("a", "0", "1"), "holds no document '0'"),
        (("a", "1", "9" * 5000), "holds no document '999"),
        (("a", "y", "1"), "holds 2 documents 'y'; name the document by its number"),
        (("a", "x", "1"), "'x' and '1' are the same document"),
    ],
)
def test_documents_that_are_not_found_are_refused(model: str, asked: tuple[str, str, str], words: str) -> None:
    said = predict(model, "--why", *asked, status=1)
    assert words in said
    assert re.fullmatch(r"lmart: error: standard input: [^\n]+\n", said)


def test_data_that_cannot_be_asked_is_refused(model: str) -> None:
    assert "has no query ids" in predict(model, "--why", "a", "1", "2", stdin="0 1:1\n0 1:2\n", status=1)
    assert "no rows" in predict(model, "--why", "a", "1", "2", stdin="", status=1)
    assert "no feature of the data" in predict(model, "--why", "a", "1", "2", stdin="0 qid:a 5:1\n" * 2, status=1)
    assert "not in the model" in predict(
        model, "--strict", "--why", "a", "1", "2", stdin="0 qid:a 1:1 5:1\n" * 2, status=1
    )


@pytest.mark.parametrize("more", [("--explain", "--format", "jsonl"), ("--why", "a", "x", "2")])
def test_a_model_without_counts_is_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = str(tmp_path / "bare.json")
    ensemble = two_stumps()
    trees = tuple(dataclasses.replace(tree, leaf_documents=None) for tree in ensemble.trees)
    write_model(dataclasses.replace(ensemble, trees=trees), path)
    said = predict(path, *more, status=1)
    assert said.startswith(f"lmart: error: {path}: does not say how many documents each leaf had")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--explain",),
        ("--explain", "--format", "tsv"),
        ("--why", "a", "x", "2", "--format", "tsv"),
        ("--why", "a", "x", "2", "--out", "f"),
        ("--why", "a", "x", "2", "--format", "jsonl", "--explain"),
        ("--why", "a", "x"),
    ],
)
def test_wrong_usage(model: str, arguments: tuple[str, ...]) -> None:
    predict(model, *arguments, status=2)


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_a_narrow_terminal_cuts_names_but_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    long = name = "title_anchor_[b]_normalised_by_length_ok"
    data, model = tmp_path / "d.csv", str(tmp_path / "m.json")
    data.write_text(f"label,qid,{name}\n1,1,0.652\n0,1,0.671\n1,2,0.1\n0,2,0.9\n")
    run("train", "--data", data, "--out", model, "--min-docs", "1", "--trees", "9", "-q")
    arguments = ("predict", "--model", model, "--data", data, "--why", "1", "1", "2")
    wanted = [line.split() for line in run(*arguments).stdout.splitlines()]
    monkeypatch.setattr(layout, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run(*arguments).stdout
    assert long in shown or columns < 200
    assert max(map(len, shown.splitlines())) <= columns
    if columns == 40:  # three lines for each feature
        numbers = [cell for row in wanted[5:] for cell in row if re.fullmatch(r"-?\d[\d.]*", cell)]
        assert sorted(re.findall(r"(?<!\S)-?\d+(?:\.\d+)?(?!\S)", shown.partition("\n\n")[2])) == sorted(numbers)
        return
    found = [line.split() for line in shown.splitlines()]
    for row in filter(None, wanted[5:]):
        first = "title" if row[0] == long else row[0]
        assert any(line[:1] and line[0].startswith(first) and line[-3:] == row[-3:] for line in found), row
