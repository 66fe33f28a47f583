"""Splitting data into parts of whole queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE
from hypothesis import given
from hypothesis import strategies as st

from lmart.formats.documents.splitting import QueryDraw, names_of_parts

pytestmark = pytest.mark.usefixtures("in_folder")
TRAIN = SAMPLE / "train.svm"


def test_names() -> None:
    assert names_of_parts("d.x/all", 2) == ["d.x/all-1", "d.x/all-2"]
    assert names_of_parts("a.b.svm.gz", 2) == ["a.b-1.svm.gz", "a.b-2.svm.gz"]


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.integers(0, 2**63 - 1))
def test_each_part_is_within_two_queries_of_its_share(weights: list[int], seed: int) -> None:
    shares = [weight / sum(weights) for weight in weights]
    draw = QueryDraw(shares, seed)
    for number in range(1, 121):
        draw.draw(f"q{number}")
        assert sum(draw.n_queries) == number
        assert all(abs(n - share * number) < 2.0 for n, share in zip(draw.n_queries, shares, strict=True))


def test_draws_are_random() -> None:
    first = [QueryDraw([0.8, 0.2], seed).draw("q") for seed in range(1000)]
    assert 150 < sum(first) < 250
    one, other = ([draw.draw(str(q)) for q in range(100)] for draw in (QueryDraw([0.5, 0.5], s) for s in (0, 1)))
    assert one != other


@pytest.mark.parametrize("name", ["part.svm", "part.csv.gz", "part.tsv"])
def test_parts_hold_every_row_once_and_whole_queries(name: str) -> None:
    run("convert", TRAIN, name, "--split", "0.8,0.1,0.1", "-q")
    parts = []
    for path in names_of_parts(name, 3):
        run("convert", path, "back.svm", "-q")
        parts.append(Path("back.svm").read_text().splitlines())
    run("convert", TRAIN, f"all.{name.split('.')[1]}", "-q")
    run("convert", f"all.{name.split('.')[1]}", "back.svm", "-q")
    rows = Path("back.svm").read_text().splitlines()
    assert sorted(line for part in parts for line in part) == sorted(rows)
    place = {line: number for number, line in enumerate(rows)}
    queries = [list(dict.fromkeys(line.split()[1] for line in part)) for part in parts]
    assert [len(own) for own in queries] == [96, 12, 12]
    assert len({query for own in queries for query in own}) == 120
    for part in parts:
        places = [place[line] for line in part]
        assert places == sorted(places)  # the order of the data


def test_blocks_and_ways_of_reading_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    run("convert", TRAIN, "a.svm", "--split", "0.6,0.4", "--seed", "3", "-q")
    run("convert", "-", "b.svm", "--split", "0.6,0.4", "--seed", "3", "-q", stdin=TRAIN.read_bytes())
    run("convert", TRAIN, "c.svm", "--split", "0.6,0.4", "--seed", "3", "--group-by-qid", "-q")
    monkeypatch.setattr("lmart.formats.documents.text_reader.BLOCK", 1 << 12)
    run("convert", TRAIN, "e.svm", "--split", "0.6,0.4", "--seed", "3", "-q")
    for part in "12":
        first = Path(f"a-{part}.svm").read_bytes()
        assert all(Path(f"{other}-{part}.svm").read_bytes() == first for other in "bce")
    run("convert", TRAIN, "d.svm", "--split", "0.6,0.4", "-q")
    assert Path("d-1.svm").read_bytes() != Path("a-1.svm").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["o.svm", "--split", "0.5"], 2, "'0.5' is no list of shares above 0, such as 0.8,0.1,0.1"),
        (["o.svm", "--split", "0.5,x"], 2, "'0.5,x' is no list of shares above 0"),
        (["o.svm", "--split", "0.5,0.6"], 2, "the shares '0.5,0.6' add up to 1.1; give them a sum of 1"),
        (["-", "--split", "0.5,0.5"], 2, "--split writes several files"),
        (["o.svm", "--seed", "1"], 2, "--seed is for --split"),
        (["o.svm", "--split", "0.999,0.001"], 1, "has 3 queries, of which part 2 of --split got none"),
        (["in.svm", "--split", "0.5,0.5", "--query-column", "x"], 1, "x"),
    ],
)
def test_refused(arguments: list[str], status: int, told: str) -> None:
    Path("in.svm").write_text("0 qid:1 1:1\n0 qid:2 1:1\n1 qid:3 1:2\n")
    Path("o-1.svm").write_text("old")
    result = run("convert", "in.svm", *arguments, status=status)
    assert told in result.stderr and len(result.stderr.splitlines()) == 1
    assert sorted(path.name for path in Path().iterdir()) == ["in.svm", "o-1.svm"]
    assert Path("o-1.svm").read_text() == "old"


def test_rows_without_queries_and_models_are_refused() -> None:
    Path("in.svm").write_text("0 1:1\n1 1:2\n")
    assert "qid" in run("convert", "in.svm", "o.svm", "--split", "0.5,0.5", status=1).stderr
    Path("in-1.svm").write_text("0 qid:1 1:1\n")
    assert "would overwrite the input" in run("convert", "in-1.svm", "in.svm", "--split", "0.5,0.5", status=1).stderr
    run("train", "--data", TRAIN, "--trees", "1", "-q", "-o", "m.json")
    line = run("convert", "m.json", "o.txt", "--to", "lightgbm", "--split", "0.5,0.5", status=2).stderr
    assert "--split is for data" in line
