"""lmart eval: intervals of means, and comparisons of several systems."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.evaluation import call, refused, strict
from helpers.paths import SAMPLE, TESTS

from lmart.measures.comparing import System, compare
from lmart.measures.resampling import Resampling
from lmart.threads import WorkerPool

pytestmark = pytest.mark.usefixtures("in_folder")

GOLDEN = TESTS / "golden" / "eval_comparison.txt"
TWO = ["--metric", "ndcg@10,map"]


def sample(*features: int) -> list[str]:
    """The sample's test file ranked by each of some features."""
    text = (SAMPLE / "test.svm").read_text()
    Path("sample.svm").write_text(text)
    for feature in features:
        values = [line.split(f" {feature}:")[1].split()[0] for line in text.splitlines()]
        Path(f"by{feature}.txt").write_text("".join(f"{value}\n" for value in values))
    return ["--data", "sample.svm", "--scores", *(f"by{feature}.txt" for feature in features)]


def per_query() -> dict[str, dict[str, list[float]]]:
    """What `--per-query` wrote, by system and measure."""
    header, *lines = Path("q.tsv").read_text().splitlines()
    _, _, *measures = header.split("\t")
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        name, _, *values = line.split("\t")
        for measure, value in zip(measures, values, strict=True):
            found.setdefault(name, {}).setdefault(measure, []).append(float(value.replace("n/a", "nan")))
    return found


def test_golden_comparison() -> None:
    """Written with LMART_WRITE_GOLDEN=1, then read by eye."""
    result = call(*sample(3, 1, 2), *TWO, "-q")
    if os.environ.get("LMART_WRITE_GOLDEN"):
        GOLDEN.write_text(result.stdout)
    assert result.stdout == GOLDEN.read_text()
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_holds_the_comparisons_of_the_library() -> None:
    content = strict(call(*sample(3, 1, 2), *TWO, "--json", "--per-query", "q.tsv", "--seed", "5").stdout)
    values = per_query()
    systems = [System(name, {m: np.array(v) for m, v in one.items()}) for name, one in values.items()]
    with WorkerPool(1) as pool:
        wanted = compare(systems, None, Resampling(seed=5), pool)
    query_ids = [str(q) for q in range(161, 201)]
    assert content["comparisons"] == [one.to_json(query_ids) for one in wanted]
    assert [(one["measure"], one["system"]) for one in content["comparisons"]] == [
        (measure, name) for measure in ("ndcg@10", "map") for name in ("by1.txt", "by2.txt")
    ]
    assert content["resampling"] == {"seed": 5, "level": 0.95, "resamples": 10_000, "flips": 100_000}
    for system in content["systems"]:
        for measure, summary in system["summary"].items():
            every = np.array(values[system["name"]][measure])
            assert summary["mean"] == system["metrics"][measure]
            assert summary["median"] == pytest.approx(np.median(every))
            assert summary["std"] == pytest.approx(every.std(ddof=1))
            low, high = summary["interval"]
            assert low < summary["mean"] < high


def test_any_number_of_threads_prints_the_same() -> None:
    given = [*sample(3, 1), *TWO, "--json"]
    assert len({call(*given, "--threads", threads).stdout for threads in ("1", "2", "3", "7")}) == 1
    assert call(*given).stdout != call(*given, "--seed", "1").stdout


def test_a_planted_difference_is_found_and_its_queries_are_named() -> None:
    # The second system has the relevant document first in every query but the last.
    rows, worse, better = [], [], []
    for query in range(30):
        for label in (0, 1, 0):
            rows.append(f"{label} qid:q{query}\n")
            worse.append(0.0 if label else 1.0)
            better.append(float(label) if query < 29 else 1.0 - label)
    Path("d.svm").write_text("".join(rows))
    for name, scores in (("worse.txt", worse), ("better.txt", better)):
        Path(name).write_text("".join(f"{score}\n" for score in scores))
    given = ["--data", "d.svm", "--scores", "worse.txt", "better.txt", "--metric", "mrr"]
    (found,) = strict(call(*given, "--json").stdout)["comparisons"]
    assert (found["wins"], found["ties"], found["losses"]) == (29, 1, 0)
    assert found["difference"] == pytest.approx(29 / 30 * 2 / 3)
    assert found["p_randomization"] == 1 / 100_001
    assert found["gained"][:2] == [{"qid": f"q{q}", "difference": pytest.approx(2 / 3)} for q in (0, 1)]
    shown = call(*given).stdout
    assert "<0.001" in shown and "29/1/0" in shown and "gained  q0 +0.6667, q1 +0.6667" in shown
    assert "\n  lost" not in shown


def test_weights_count() -> None:
    given = [*sample(3, 1), "--metric", "map", "--json", "--per-query", "q.tsv"]
    Path("w.txt").write_text("".join(f"{1 + q % 4}\n" for q in range(40)))
    plain, weighted = (strict(call(*given, *more).stdout)["comparisons"][0] for more in ([], ["--weights", "w.txt"]))
    values = per_query()
    weights = np.array([1.0 + q % 4 for q in range(40)])
    d = np.array(values["by1.txt"]["map"]) - np.array(values["by3.txt"]["map"])
    assert weighted["difference"] == pytest.approx((weights * d).sum() / weights.sum())
    assert weighted["p_t"] != plain["p_t"]
    assert weighted["p_randomization"] != plain["p_randomization"]
    assert weighted["wins"] == plain["wins"]


def test_empty_queries_are_left_out_of_all_statistics() -> None:
    content = strict(call(*sample(3, 1), "--metric", "map,dcg", "--empty", "skip", "--json").stdout)
    assert {one["measure"]: one["queries"] for one in content["comparisons"]} == {"map": 38, "dcg": 40}
    assert [one["left_out"] for one in content["comparisons"]] == [0, 0]
    counts = content["systems"][0]["summary"]
    assert (counts["map"]["count"], counts["dcg"]["count"]) == (38, 40)


def test_options_of_resampling() -> None:
    def interval(*more: str) -> Any:
        return strict(call(*given, "--json", *more).stdout)["systems"][0]["summary"]["map"]["interval"]

    given = [*sample(3), "--metric", "map"]
    low, high = interval()
    narrow_low, narrow_high = interval("--level", "0.5")
    assert low < narrow_low < narrow_high < high
    assert interval("--resamples", "50") != [low, high]
    assert interval("--resamples", "auto") == [low, high]
    assert (
        "50% (99 bootstrap resamples of the queries, seed 3)"
        in call(*given, "--level", "0.5", "--resamples", "99", "--seed", "3").stdout
    )
    assert "flips" not in strict(call(*given, "--json").stdout)["resampling"]


def test_all_pairs_and_none() -> None:
    given = [*sample(3, 1, 2), "--metric", "map"]
    pairs = strict(call(*given, "--json", "--all-pairs").stdout)["comparisons"]
    assert [(one["baseline"], one["system"]) for one in pairs] == [
        ("by3.txt", "by1.txt"), ("by3.txt", "by2.txt"), ("by1.txt", "by2.txt"),
    ]  # fmt: skip
    shown = " ".join(call(*given, "--all-pairs").stdout.split())
    assert "by..t - by..t" not in shown
    assert "of each two systems" in shown and "the 3 comparisons of a measure" in shown
    without = call(*given, "--no-compare")
    assert "randomization" not in without.stdout
    assert "comparisons" not in strict(call(*given, "--no-compare", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--level", "0"], "level"),
        (["--level", "1"], "is not a number from 0.5 to 0.9999"),
        (["--seed", "-1"], "seed"),
        (["--resamples", "0"], "resamples"),
        (["--resamples", "many"], "'auto' or a whole number"),
        (["--flips", "0"], "flips"),
        (["--flips", "10"], "--flips is for comparing systems, and there is one"),
        (["--all-pairs"], "--all-pairs is for comparing systems, and there is one"),
        (["--no-compare"], "--no-compare is for comparing systems, and there is one"),
        (["--scores", "no2.txt", "--no-compare", "--flips", "9"], "--no-compare leaves out"),
        (["--scores", "no2.txt", "--no-compare", "--all-pairs"], "--no-compare leaves out"),
        (["--per-query", "-", "--level", "0.9"], "--level is for the report, which --per-query - replaces"),
        (["--per-query", "-", "--seed", "2"], "--seed is for the report"),
    ],
)
def test_usage_errors(arguments: list[str], part: str) -> None:
    assert part in refused("--data", "no.svm", "--scores", "no.txt", *arguments, status=2)


def test_queries_that_a_run_lacks_are_left_out_of_the_comparison() -> None:
    Path("q.qrels").write_text("".join(f"q{q} 0 d{d} {int(d == q % 3)}\n" for q in range(4) for d in range(3)))
    for name, queries in (("a.run", range(4)), ("b.run", range(1, 4))):
        lines = [f"q{q} Q0 d{d} {d} {-d if name == 'a.run' else d} x\n" for q in queries for d in range(3)]
        Path(name).write_text("".join(lines))
    given = ["--qrels", "q.qrels", "--run", "a.run", "b.run", "--metric", "mrr"]
    (found,) = strict(call(*given, "--missing", "skip", "--json").stdout)["comparisons"]
    assert (found["queries"], found["left_out"], found["wins"], found["ties"], found["losses"]) == (3, 1, 1, 1, 1)
    assert "  left out  1 query that counts in one of the two only" in call(*given, "--missing", "skip").stdout
    (found,) = strict(call(*given, "--json").stdout)["comparisons"]  # a query that it lacks counts 0
    assert (found["queries"], found["left_out"], found["losses"]) == (4, 0, 2)
    assert found["lost"][0] == {"qid": "q0", "difference": -1.0}


def test_a_single_query_has_neither_intervals_nor_words_about_them() -> None:
    Path("d.svm").write_text("1 qid:1\n0 qid:1\n")
    Path("a.txt").write_text("1\n2\n")
    given = ["--data", "d.svm", "--scores", "a.txt", "--metric", "mrr"]
    shown = call(*given).stdout
    assert "interval" not in shown
    assert shown.endswith("\nmrr            0.500000\n")
    Path("b.txt").write_text("2\n1\n")
    several = call(*given, "--scores", "b.txt").stdout
    assert "+0.500000       n/a         1/0/0" in several


def test_differences_of_geometric_means_are_logarithms_and_said_to_be() -> None:
    arguments = [*sample(1, 2), "--metric", "gmap,map", "--no-compare"]
    first, second = strict(call(*arguments, "--json").stdout)["systems"]
    ratio = second["metrics"]["gmap"] / first["metrics"]["gmap"]
    arguments.remove("--no-compare")
    content = strict(call(*arguments, "--json").stdout)
    assert content["comparisons"][0]["difference"] == pytest.approx(np.log(ratio))
    low, high = first["summary"]["gmap"]["interval"]
    assert 0 < low < first["metrics"]["gmap"] < high < 1
    assert "A difference in gmap is the logarithm of a ratio." in " ".join(call(*arguments).stdout.split())
