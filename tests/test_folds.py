"""Cross-validation: `lmart train --folds`, and the parts it is made of."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from commands import run
from hypothesis import given
from hypothesis import strategies as st
from training import SMALL, Run, evaluated, fit, learnable, refused, scores

from lmart.cli import tables
from lmart.crossvalidation import deal_queries, student_quantile
from lmart.dataset import RankingDataset, SparseRows, select_queries

DATA = learnable(5, n_queries=23)
FOLDS = ("--folds", "3", "--oof", "oof")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def out_of_fold() -> list[float]:
    return [float(line) for line in Path("oof").read_text().split()]


def rows_by_query(text: str) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines(keepends=True):
        found.setdefault(line.split()[1], []).append(line)
    return list(found.values())


def dataset(labels: list[list[int]], ids: list[str] | None = None) -> RankingDataset:
    sizes = [len(one) for one in labels]
    n = sum(sizes)
    rows = SparseRows(np.arange(n + 1), np.zeros(n, np.int32), np.arange(n, dtype=np.float64))
    flat = np.array([y for one in labels for y in one], np.float64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return RankingDataset(rows, np.array([1]), flat, offsets, ids or [f"q{i}" for i in range(len(labels))])


# The whole


@pytest.mark.parametrize("more", [(), ("--early-stop", "3")])
def test_every_row_is_scored_by_the_model_that_did_not_see_its_query(more: tuple[str, ...]) -> None:
    """Held by training each fold by hand, from files."""
    done = fit(DATA, *SMALL, "--trees", "25", *FOLDS, *more)
    found, crossed = out_of_fold(), done.report["cross_validation"]
    assert len(found) == 230
    queries, fold_of_query, trees = rows_by_query(DATA), crossed["fold_of_query"], crossed["trees"]
    place = 0
    places = []
    for rows in queries:
        places.append(slice(place, place := place + len(rows)))
    for fold in (1, 2, 3):
        seen, held = (
            [q for q, other in enumerate(fold_of_query) if (other == fold) == is_held] for is_held in (False, True)
        )
        held_text = "".join(row for q in held for row in queries[q])
        fit("".join(row for q in seen for row in queries[q]), *SMALL, "--trees", str(trees))
        assert scores(held_text) == [score for q in held for score in found[places[q]]]
        one = crossed["folds"][fold - 1]
        assert one["measure"] == pytest.approx(evaluated("scored.svm", "--metric", "ndcg@10"), abs=1e-12)
        assert (one["queries"], one["documents"]) == (len(held), 10 * len(held))


@pytest.mark.parametrize("more", [(), ("--early-stop", "3")])
def test_the_report_and_the_final_model(more: tuple[str, ...]) -> None:
    done = fit(DATA, *SMALL, "--trees", "25", *FOLDS, *more)
    crossed = done.report["cross_validation"]
    folds, curve, trees = crossed["folds"], crossed["curve"], crossed["trees"]
    assert trees == curve.index(max(curve)) + 1
    measures = [one["measure"] for one in folds]
    assert crossed["mean"] == curve[trees - 1] == pytest.approx(sum(measures) / 3)
    spread = math.sqrt(sum((one - crossed["mean"]) ** 2 for one in measures) / 2 / 3)
    margin = 4.302652729749458 * spread
    assert crossed["interval"] == pytest.approx([crossed["mean"] - margin, crossed["mean"] + margin])
    assert all(one["best"] >= one["measure"] and one["best_round"] <= one["rounds"] for one in folds)
    shown = run("eval", "--data", "d.svm", "--scores", "oof", "--metric", "ndcg@10", "--per-query", "-").stdout
    values = [float(line.split()[1]) for line in shown.splitlines()[1:]]
    assert crossed["standard_error_over_queries"] == pytest.approx(float(np.std(values, ddof=1)) / math.sqrt(23))
    if not more:
        assert len(curve) == 25 == folds[0]["rounds"]
    assert done.report["settings"]["trees"] == trees and done.report["settings"]["early_stop"] == 0
    assert done.data == fit(DATA, *SMALL, "--trees", str(trees)).data


def test_nothing_depends_on_threads_or_the_run() -> None:
    made = []
    for threads in ("1", "2"):
        Path("d.svm").write_text(DATA)
        printed = run("train", "--data", "d.svm", *SMALL, *FOLDS, "--threads", threads, "--sample", "0.7")
        made.append((printed.stdout, Path("oof").read_bytes(), Path("model.json").read_bytes()))
    assert made[0] == made[1]
    assert [line.split()[0] for line in made[0][0].splitlines() if line] == [
        *("fold", "1", "2", "3", "mean", "interval", "std.")
    ]


def test_rows_that_were_collected_by_query_keep_their_place() -> None:
    rows = [row for parts in zip(*rows_by_query(DATA), strict=True) for row in parts]
    fit(DATA, *SMALL, *FOLDS)
    at_home = dict(zip(DATA.splitlines(keepends=True), out_of_fold(), strict=True))
    fit("".join(rows), *SMALL, *FOLDS, "--group-by-qid")
    assert out_of_fold() == [at_home[row] for row in rows]


def test_weights_go_with_their_queries() -> None:
    Path("w").write_text("".join(f"{1 + q % 4}\n" for q in range(23)))
    by_query = fit(DATA, *SMALL, *FOLDS, "--weights", "w")
    Path("w").write_text("".join(f"{1 + row // 10 % 4}\n" for row in range(230)))
    by_row = fit(DATA, *SMALL, *FOLDS, "--weights", "w")
    plain = fit(DATA, *SMALL, *FOLDS)
    assert by_query.report["cross_validation"] == by_row.report["cross_validation"] != plain.report["cross_validation"]


def test_a_validation_file_is_measured_and_decides_nothing() -> None:
    Path("v").write_text(learnable(9))
    with_file: Run = fit(DATA, *SMALL, *FOLDS, "--early-stop", "2", "--valid", "v")
    assert with_file.report["validation"] == [evaluated("v", "--metric", "ndcg@10")]
    assert with_file.data == fit(DATA, *SMALL, *FOLDS, "--early-stop", "2").data


def test_results_go_beside_an_output_on_standard_output() -> None:
    Path("d.svm").write_text(DATA)
    done = run("train", "--data", "d.svm", *SMALL, "--folds", "2", "--oof", "-")
    assert len([float(line) for line in done.stdout.split()]) == 230
    assert "lmart: mean " in done.stderr
    assert (
        "lmart: std. error " in done.stderr and "lmart: error" not in done.stderr
    )  # looked for by those who watch logs
    assert run("train", "--data", "d.svm", *SMALL, "--folds", "2", "--oof", "-", "-q").stderr == ""


def test_a_narrow_terminal_cuts_no_number(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    tables.print_table(["measure"] * 5, [["0.123456789"] * 5])
    assert capsys.readouterr().out.count("0.123456789") == 5


def test_refusals() -> None:
    Path("d.svm").write_text(DATA)
    assert "d.svm: has 23 queries, too few for 24 folds" in refused("--folds", "24")
    for options, said in (
        (("--oof", "x"), "--oof needs --folds"),
        (("--folds", "1"), "'1' is not a whole number from 2 up"),
        (("--early-stop", "3"), "--early-stop needs a --valid file or --folds"),
        (("--folds", "2", "--oof", "./m.json"), "--oof and --out are the same file"),
        (("--folds", "2", "--out", "-", "--oof", "-"), "--oof and --out are the same file"),
    ):
        assert said in refused(*options, status=2)
    assert "would overwrite the input" in refused("--folds", "2", "--oof", "d.svm")


def test_data_that_teaches_nothing() -> None:
    done = fit("0 qid:1 1:1\n0 qid:2 1:2\n0 qid:3 1:2\n", "--folds", "3", "--early-stop", "2")
    assert done.report["cross_validation"]["mean"] == 0.0 and done.model["trees"] == []
    assert any("fold 1: " in line and "no query has a relevant document" in line for line in done.warnings)


# The parts


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=2, max_size=30), st.data())
def test_queries_are_dealt_evenly(labels: list[list[int]], data: st.DataObject) -> None:
    n_folds = data.draw(st.integers(2, len(labels)))
    folds = deal_queries(dataset(labels), n_folds, data.draw(st.integers(0, 2**63 - 1)))
    relevant = np.array([max(one) > 0 for one in labels])
    for chosen in (relevant, np.ones(len(labels), bool)):
        counts = np.bincount(folds[chosen], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


def test_the_fold_of_a_query_depends_on_its_id_and_the_seed() -> None:
    ids = [f"q{i}" for i in range(40)]
    one = deal_queries(dataset([[1]] * 40, ids), 4, 0)
    back = deal_queries(dataset([[1]] * 40, ids[::-1]), 4, 0)
    assert one.tolist() == back[::-1].tolist() != deal_queries(dataset([[1]] * 40, ids), 4, 1).tolist()
    assert one[:8].tolist() == [2, 3, 1, 0, 2, 3, 0, 3]  # the same on every machine


def test_selected_queries() -> None:
    part = select_queries(dataset([[0, 1], [2], [3, 4, 5]]), np.array([2, 0]))
    assert part.labels.tolist() == [3, 4, 5, 0, 1] == [*part.features.values.tolist()[:3], 0, 1]
    assert (part.query_offsets.tolist(), list(part.query_ids)) == ([0, 3, 5], ["q2", "q0"])
    assert part.input_rows is not None and part.input_rows.tolist() == [3, 4, 5, 0, 1]


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062047), (2, 4.3026527), (4, 2.7764451), (9, 2.2621572), (100, 1.9839715)]
)
def test_quantiles_of_student(freedom: int, quantile: float) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(quantile, abs=1e-7)
