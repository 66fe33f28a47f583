"""Cross-validation: `lmart train --folds`, and the parts it is made of."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run
from helpers.evaluation import measured, strict
from helpers.training_runs import SMALL, Run, evaluated, fit, learnable, refused, scores
from hypothesis import given
from hypothesis import strategies as st

from lmart.cli.terminal.layout import Sheet
from lmart.cli.terminal.training import table_lines
from lmart.data.dataset import RankingDataset, SparseRows, select_queries
from lmart.training.folds import assign_folds

DATA = learnable(5, n_queries=23)
FOLDS = ("--folds", "3", "--oof", "oof")


pytestmark = pytest.mark.usefixtures("in_folder")


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
    assert crossed["interval"] == pytest.approx([crossed["mean"] - margin, min(crossed["mean"] + margin, 1.0)])
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


def test_a_narrow_terminal_cuts_no_number() -> None:
    numbers = [f"0.12345678{digit}" for digit in range(5)]
    lines = table_lines(["fold", *["measure"] * 5], [["1", *numbers]], Sheet(20))
    assert all(number in "\n".join(lines) for number in numbers)
    assert max(map(len, lines)) <= 20


def test_a_table_that_is_too_wide_stands_in_blocks() -> None:
    names = ["trial", "ndcg@10", "learning-rate", "leaves", "truncation", "l2"]
    rows = [["1", "0.123456", "0.05", "31", "30", "0.0"], ["* 2", "0.223456", "0.15", "8", "10", "86.3"]]
    lines = table_lines(names, rows, Sheet(40))
    assert max(map(len, lines)) <= 40
    words = " ".join(lines).split()
    assert all(word in words for word in (*names, *rows[0], "0.223456", "86.3"))
    assert words.count("trial") == 2 and words.count("ndcg@10") == 1


def test_refusals() -> None:
    Path("d.svm").write_text(DATA)
    assert "d.svm: has 23 queries, too few for 24 folds" in refused("--folds", "24")
    for options, said in (
        (("--oof", "x"), "--oof needs --folds"),
        (("--folds", "1"), "'1' is not a whole number from 2 to 2147483647"),
        (("--early-stop", "3"), "--early-stop needs a --valid file or --folds"),
        (("--folds", "2", "--oof", "./m.json"), "--oof and --out are the same file"),
        (("--folds", "2", "--out", "-", "--oof", "-"), "--oof and --out are the same file"),
        (("--folds", "2", "--out", "/dev/stdout", "--oof", "-"), "--oof and --out are the same file"),
    ):
        assert said in refused(*options, status=2)
    assert "would overwrite the input" in refused("--folds", "2", "--oof", "d.svm")


def test_data_that_teaches_nothing() -> None:
    done = fit("0 qid:1 1:1\n0 qid:2 1:2\n0 qid:3 1:2\n", "--folds", "3", "--early-stop", "2")
    assert done.report["cross_validation"]["mean"] == 0.0 and done.model["trees"] == []
    assert any("fold 1: " in line and "no query has a relevant document" in line for line in done.warnings)


# The number of trees by the mean


NOISY = ("--min-docs", "1", "--leaves", "3", "--learning-rate", "0.3", "--rankers", "1")


LATE = "".join(
    f"{label} qid:{1 + row // 3} 1:{x} 2:{y}\n"
    for row, (label, x, y) in enumerate(
        zip(
            [1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1],
            [2, 3, 3, 0, 2, 2, 3, 2, 3, 3, 0, 0],
            [2, 0, 3, 0, 2, 0, 0, 0, 1, 1, 0, 3],
            strict=True,
        )
    )
)  # two folds, of which one is best after 1 tree and the other after 3, but their mean after 6


def noisy(seed: int, n_queries: int = 8) -> str:
    rng = random.Random(seed)
    rows = [(q, rng.randrange(2), rng.randrange(4), rng.randrange(4)) for q in range(n_queries) for _ in range(3)]
    return "".join(f"{label} qid:{q} 1:{x} 2:{y}\n" for q, label, x, y in rows)


def slow_curves(text: str, fold_of_query: list[int], trees: int, *options: str) -> list[list[float]]:
    """Measure the queries of each fold after every round of the model of the others, from files."""
    curves = []
    queries = rows_by_query(text)
    for fold in sorted(set(fold_of_query)):
        seen, held = (
            "".join(
                row
                for rows, other in zip(queries, fold_of_query, strict=True)
                if (other == fold) == own
                for row in rows
            )
            for own in (False, True)
        )
        Path("held").write_text(held)
        report = fit(seen, "--trees", str(trees), "--valid", "held", "--objective", "lambdamart", *options).report
        curves.append([one["validation"][0] for one in report["rounds"]])
    return curves


@pytest.mark.slow
@pytest.mark.parametrize("patience", [3, 8])
def test_folds_stop_when_the_best_mean_is_old(patience: int) -> None:
    """Held by the curves of models that were trained alone, and a plain search for the best of their mean."""
    for seed in range(6):
        text = noisy(seed)
        crossed = fit(text, *NOISY, "--trees", "30", "--folds", "2", "--early-stop", str(patience)).report
        crossed = crossed["cross_validation"]
        curves = slow_curves(text, crossed["fold_of_query"], 30, *NOISY)
        full = [one + one[-1:] * (30 - len(one)) for one in curves]  # without a split a model stays as it is
        mean = [sum(values) / 2 for values in zip(*full, strict=True)]
        best, last = 1, 30
        for number, value in enumerate(mean, 1):
            if value > mean[best - 1]:
                best = number
            if number - best >= patience:
                last = number
                break
        assert crossed["trees"] == best and crossed["mean"] == pytest.approx(mean[best - 1], abs=1e-12)
        assert crossed["curve"] == pytest.approx(mean[: len(crossed["curve"])], abs=1e-12)
        assert len(crossed["curve"]) == min(last, max(map(len, curves)))
        assert [one["rounds"] for one in crossed["folds"]] == [min(last, len(one)) for one in curves]


def test_the_best_of_the_mean_may_be_behind_the_best_of_every_fold() -> None:
    done = fit(LATE, *NOISY, "--trees", "40", "--folds", "2", "--early-stop", "8").report["cross_validation"]
    assert done["trees"] == 6 > max(one["best_round"] for one in done["folds"])
    assert done["mean"] == pytest.approx(0.8876625, abs=5e-7)
    assert done["mean"] == fit(LATE, *NOISY, "--trees", "8", "--folds", "2").report["cross_validation"]["mean"]


@pytest.mark.slow
def test_stopping_folds_early_finds_what_all_rounds_would() -> None:
    for seed in range(4):
        short, long = (
            fit(noisy(seed), *NOISY, "--trees", "25", "--folds", "2", *more).report["cross_validation"]
            for more in (("--early-stop", "25"), ())
        )
        assert short["folds"] == long["folds"] and short["curve"] == long["curve"] and short["trees"] == long["trees"]


def test_folds_that_used_up_their_trees_say_so() -> None:
    rising = learnable(6, n_queries=30)

    def told(*options: str) -> list[str]:
        return [line for line in fit(rising, *SMALL, "--folds", "2", *options).said if "try more --trees" in line]

    (line,) = told("--early-stop", "3")
    assert line == "lmart: mean ndcg@10 over folds was still getting better after 10 trees: try more --trees"
    assert told() == [line] and told("--early-stop", "3", "--trees", "200") == []


# Weights


JUNK = "".join(
    f"{label} qid:{q} 1:{-x if q % 2 else x} 2:{x * 7 % 5}\n"
    for q in range(12)
    for label, x in ((0, 0), (1, 1), (0, 2), (2, 3))
)


def test_queries_without_weight_decide_nothing_in_folds() -> None:
    Path("w").write_text("1\n0\n" * 6)
    crossed = fit(JUNK, "--min-docs", "1", "--trees", "20", *FOLDS, "--weights", "w").report["cross_validation"]
    assert crossed["mean"] == 1.0 and crossed["standard_error_over_queries"] == 0.0
    scored = ("--data", "d.svm", "--scores", "oof", "--metric", "ndcg@10")
    assert measured(*scored, "--weights", "w") == {"ndcg@10": 1.0} != measured(*scored)


@pytest.mark.parametrize("by_row", [False, True])
def test_measures_of_folds_are_those_that_eval_gives_with_the_same_weights(by_row: bool) -> None:
    rng = random.Random(7)
    weights = [rng.random() * 3 for _ in range(230 if by_row else 23)]
    Path("w").write_text("".join(f"{one!r}\n" for one in weights))
    done = fit(DATA, *SMALL, *FOLDS, "--weights", "w")
    crossed, found, rows = done.report["cross_validation"], out_of_fold(), rows_by_query(DATA)
    assert done.report["training"] == evaluated("d.svm", "--metric", "ndcg@10", "--weights", "w")
    for fold, one in enumerate(crossed["folds"], 1):
        held = [q for q, other in enumerate(crossed["fold_of_query"]) if other == fold]
        Path("h.svm").write_text("".join("".join(rows[q]) for q in held))
        Path("h.txt").write_text("".join(f"{found[10 * q + i]!r}\n" for q in held for i in range(10)))
        own = [weights[10 * q + i] for q in held for i in range(10)] if by_row else [weights[q] for q in held]
        Path("h.w").write_text("".join(f"{weight!r}\n" for weight in own))
        value = measured("--data", "h.svm", "--scores", "h.txt", "--metric", "ndcg@10", "--weights", "h.w")["ndcg@10"]
        assert one["measure"] == pytest.approx(value, abs=1e-15)
    shown = run("eval", "--data", "d.svm", "--scores", "oof", "--metric", "ndcg@10", "--per-query", "-").stdout
    values = np.array([float(line.split()[1]) for line in shown.splitlines()[1:]])
    counts = np.reshape(weights, (23, -1)).mean(axis=1)
    squares = counts**2 * (values - np.average(values, weights=counts)) ** 2
    error = math.sqrt(squares.sum() * 23 / 22) / counts.sum()
    assert crossed["standard_error_over_queries"] == pytest.approx(error)


def test_equal_weights_are_as_none() -> None:
    Path("w").write_text("2\n" * 23)
    weighted, plain = (fit(DATA, *SMALL, *FOLDS, *more).report["cross_validation"] for more in (("--weights", "w"), ()))
    assert weighted["fold_of_query"] == plain["fold_of_query"]
    assert weighted["standard_error_over_queries"] == pytest.approx(plain["standard_error_over_queries"])


def test_a_fold_with_nothing_to_learn_from_or_to_measure_is_told() -> None:
    Path("w").write_text("1\n" + "0\n" * 11)
    done = fit(JUNK, "--min-docs", "1", "--trees", "3", "--folds", "2", "--weights", "w")
    crossed = done.report["cross_validation"]
    (measure,) = (one["measure"] for one in crossed["folds"] if one["measure"] is not None)
    assert crossed["mean"] == measure and crossed["interval"] is None
    assert any("nothing to learn from the other folds: no query with a weight above 0" in one for one in done.warnings)


def test_an_interval_stays_in_the_range_of_the_measure() -> None:
    fixed = (*NOISY, "--trees", "8", "--folds", "2")
    assert fit(LATE, *fixed).report["cross_validation"]["interval"] == [0.0, 1.0]
    assert "too few folds to tell more" in run("train", "--data", "d.svm", *fixed).stdout
    low, high = fit(LATE, *fixed, "--metric", "dcg").report["cross_validation"]["interval"]
    assert low == 0.0 and high > 1.0


# Folds of one's own


def test_queries_of_a_column_stay_together() -> None:
    users = [f"u{query // 3}" for query in range(23)]
    Path("u.tsv").write_text("qid\tvalue\n" + "".join(f"{query}\t{user}\n" for query, user in enumerate(users)))
    by_file = fit(DATA, *SMALL, "--folds", "3", "--fold-by", "u.tsv").report
    run("convert", "d.svm", "d.csv")
    header, *rows = Path("d.csv").read_text().splitlines()
    of_row = [users[int(row.split(",")[1])] for row in rows]
    assert header.startswith("label,qid,")
    table = [f"{header},user", *(f"{row},{user}" for row, user in zip(rows, of_row, strict=True))]
    Path("u.csv").write_text("\n".join(table) + "\n")
    arguments = ("--data", "u.csv", "--valid", "u.csv", *SMALL, "-q", "--report", "t.json", "-o", "t")
    run("train", *arguments, "--folds", "3", "--fold-by", "user")
    by_column = strict(Path("t.json").read_text())
    found = by_column["cross_validation"]
    assert found == by_file["cross_validation"]
    assert len(set(zip(users, found["fold_of_query"], strict=True))) == len(set(users))
    assert by_column["data"]["features"] == by_file["data"]["features"]  # the column is none
    last_differs = [*table, table[-1].replace(",u7", ",u8")]
    without = [table[0], *(row.replace(",u7", ",") for row in table[1:])]
    for lines, told in (
        (last_differs, "w.csv: rows of query '22' differ in value in column 'user': 'u7' and 'u8'; give them one"),
        (without, "w.csv: query '21' has no value in column 'user'; give it one"),
    ):
        Path("w.csv").write_text("\n".join(lines) + "\n")
        refusal = run("train", "--data", "w.csv", "--folds", "3", "--fold-by", "user", "-q", status=1).stderr
        assert refusal == f"lmart: error: {told}\n"


def test_refused_folds() -> None:
    Path("d.svm").write_text(DATA)
    Path("f").write_text("".join(f"{query}\ta\n" for query in range(23)))
    Path("g").write_text("".join(f"{query}\t{query % 2}\n" for query in range(22)))
    for options, status, told in (
        (["--folds", "h"], 2, "'h' is neither a whole number from 2 to 2147483647 nor a file"),
        (["--folds", "1"], 2, "'1' is not a whole number from 2"),
        (["--folds", "f"], 1, "f: all queries of the data are in fold 'a'"),
        (["--folds", "g"], 1, "g: 1 query of d.svm without a fold: '22'; give each query a line"),
        (["--folds", "f", "--fold-by", "g"], 2, "--fold-by needs --folds K, and a file says already"),
        (["--fold-by", "g"], 2, "--fold-by needs --folds K, which is not given"),
        (["--folds", "3", "--fold-by", "h"], 1, "the columns have no names, and --fold-by 'h' is no file"),
        (["--folds", "3", "--fold-by", "f"], 1, "f: the queries have 1 different value, too few for 3 folds"),
        (["--folds", "f", "--dask", "local:2"], 2, "--folds does not go with --dask"),
        (["--fold-by", "f", "--dask", "local:2"], 2, "--fold-by does not go with --dask"),
        (["--folds", "g", "--oof", "g"], 1, "g: "),
    ):
        assert told in refused(*options, status=status), options


def test_a_search_by_other_folds_is_another_search() -> None:
    pytest.importorskip("optuna")
    for name, step in (("f", 1), ("g", 2)):
        Path(name).write_text("".join(f"{query}\t{query // step % 2}\n" for query in range(23)))
    options = ("--data", "d.svm", "-q", "--trees", "3", "--tune-trials", "1", "--tune-file", "t")
    Path("d.svm").write_text(DATA)
    run("train", *options, "--folds", "f")
    assert "data" in run("train", *options, "--folds", "g", status=1).stderr


# The parts


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=2, max_size=30), st.data())
def test_queries_with_weight_are_dealt_evenly(labels: list[list[int]], data: st.DataObject) -> None:
    n, n_folds = len(labels), data.draw(st.integers(2, len(labels)))
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=n, max_size=n)))
    folds = assign_folds(dataset(labels), n_folds, 0, weights)
    relevant = np.array([max(one) > 0 for one in labels])
    for chosen in (relevant & (weights > 0), weights > 0, np.ones(n, bool)):
        counts = np.bincount(folds[chosen], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=2, max_size=30), st.data())
def test_queries_are_dealt_evenly(labels: list[list[int]], data: st.DataObject) -> None:
    n_folds = data.draw(st.integers(2, len(labels)))
    folds = assign_folds(dataset(labels), n_folds, data.draw(st.integers(0, 2**63 - 1)))
    relevant = np.array([max(one) > 0 for one in labels])
    for chosen in (relevant, np.ones(len(labels), bool)):
        counts = np.bincount(folds[chosen], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


def test_the_fold_of_a_query_depends_on_its_id_and_the_seed() -> None:
    ids = [f"q{i}" for i in range(40)]
    one = assign_folds(dataset([[1]] * 40, ids), 4, 0)
    back = assign_folds(dataset([[1]] * 40, ids[::-1]), 4, 0)
    assert one.tolist() == back[::-1].tolist() != assign_folds(dataset([[1]] * 40, ids), 4, 1).tolist()
    assert one[:8].tolist() == [2, 3, 1, 0, 2, 3, 0, 3]  # the same on every machine


def test_selected_queries() -> None:
    part = select_queries(dataset([[0, 1], [2], [3, 4, 5]]), np.array([2, 0]))
    assert part.labels.tolist() == [3, 4, 5, 0, 1] == [*part.features.values.tolist()[:3], 0, 1]
    assert (part.query_offsets.tolist(), list(part.query_ids)) == ([0, 3, 5], ["q2", "q0"])
    assert part.input_rows is not None and part.input_rows.tolist() == [3, 4, 5, 0, 1]
