"""LETOR text through the commands: what it means for a model and its scores, and how it is refused."""

from __future__ import annotations

import json
import math
import resource
import sys
from pathlib import Path

import pytest
from helpers.commands import run, start
from helpers.reading_runs import FEW, GOOD, features, model_of_good, refusals, trained


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("72057594037927937", "72057594037927938"),
        ("99999999999999999999", "99999999999999999998"),
        ("a" * 500, "a" * 499 + "b"),
    ],
)
def test_long_query_ids_that_differ_at_the_end_are_different(a: str, b: str, tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text(f"0 qid:{a} 1:1\n1 qid:{a} 1:1\n0 qid:{b} 1:1\n1 qid:{b} 1:1\n")
    (tmp_path / "s").write_text("4\n3\n2\n1\n")
    result = run("eval", "--data", tmp_path / "d.svm", "--scores", tmp_path / "s", "--metric", "ndcg@10", "--json")
    report = json.loads(result.stdout)
    assert report["queries"] == 2
    assert report["metrics"]["ndcg@10"] == pytest.approx(0.630930, abs=1e-6)


def test_indices_from_zero_do_not_shift(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3} qid:{i // 4} 0:{i % 4} 1:{i % 3}\n" for i in range(40))
    (tmp_path / "d.svm").write_text(rows)
    run("train", "--data", tmp_path / "d.svm", "--out", tmp_path / "m", *FEW)
    one = run("predict", "-m", tmp_path / "m", "--data", "-", stdin="0 qid:1 1:2\n").stdout
    two = run("predict", "-m", tmp_path / "m", "--data", "-", stdin="0 qid:1 1:2\n0 qid:1 0:3\n").stdout
    assert two.splitlines()[0] == one.strip()
    assert features((tmp_path / "m").read_bytes()) == [0, 1]


def test_the_order_of_cells_in_a_row_does_not_matter(tmp_path: Path) -> None:
    rows = [line.split() for line in GOOD.splitlines()]
    turned = "".join(" ".join(row[:2] + row[:1:-1]) + "\n" for row in rows)
    assert trained(tmp_path, turned) == trained(tmp_path, GOOD)


def test_absent_is_zero_or_missing_as_asked_and_nan_is_missing(tmp_path: Path) -> None:
    def rows(cell: str) -> str:
        return "".join(f"{i % 3} qid:{i // 4} 1:{i % 5}{cell if i % 3 else f' 2:{i}'}\n" for i in range(40))

    explicit, dropped, nan = rows(" 2:0"), rows(""), rows(" 2:nan")
    assert trained(tmp_path, explicit) == trained(tmp_path, dropped)
    assert trained(tmp_path, dropped, "--absent", "missing") == trained(tmp_path, nan, "--absent", "missing")
    first_dropped = dropped.splitlines(keepends=True)
    assert trained(tmp_path, "".join(first_dropped[4:] + first_dropped[:4])) == trained(
        tmp_path, "".join(explicit.splitlines(keepends=True)[4:] + explicit.splitlines(keepends=True)[:4])
    )


def test_infinities_and_values_beyond_double_are_refused_unless_allowed(tmp_path: Path) -> None:
    for token in ("inf", "-inf", "1e400", "-1e400", "Infinity"):
        error = refusals(tmp_path, f"1 qid:1 1:1\n0 qid:1 1:{token}\n")
        assert error.startswith(f"lmart: error: d.svm:2: value '{token}' is ")
        assert "--allow-inf" in error
    rows = "".join(f"{i % 2} qid:{i // 4} 1:{'-' if i % 2 else ''}1.7e308\n" for i in range(40))
    text = trained(tmp_path, rows).decode()
    assert not any(word in text.lower() for word in ("inf", "nan"))
    assert trained(tmp_path, "".join(f"{i % 2} qid:{i // 4} 1:{i % 2}\n" for i in range(40))) != trained(tmp_path, rows)
    (tmp_path / "i.svm").write_text(rows.replace("-1.7e308", "-inf"))
    run("train", "--data", tmp_path / "i.svm", "--out", tmp_path / "i.json", "--allow-inf", *FEW)
    scores = run("predict", "-m", tmp_path / "i.json", "--data", tmp_path / "i.svm", "--allow-inf").stdout.split()
    assert len(set(scores)) == 2
    assert all(math.isfinite(float(score)) for score in scores)


def test_a_row_without_features_gets_a_score(tmp_path: Path) -> None:
    out = run(
        "predict", "-m", model_of_good(tmp_path), "--data", "-", stdin="1 qid:1 1:2\n0 qid:1\n0 qid:1 1:1\n"
    ).stdout
    assert len(out.splitlines()) == 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_an_enormous_feature_index_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("1 qid:1 2147483647:1\n0 qid:1 4000000000000000001:5 5:1\n")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2_000_000 * 1024, before[1]))
    try:
        process = start("train", "--data", tmp_path / "d.svm", "--out", tmp_path / "m", *FEW, "--threads", "1")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert features((tmp_path / "m").read_bytes()) == [5, 2147483647, 4000000000000000001]
    (tmp_path / "m").unlink()
    assert "d.svm:1: index '-5' is negative" in refusals(tmp_path, "1 qid:1 -5:1\n")
