"""What users of ranking tools ran into with training, models and reproducibility, tried with lmart train."""

from __future__ import annotations

import json
import os
import re
from itertools import permutations
from pathlib import Path

import pytest
from helpers.commands import run, shell, start
from helpers.evaluation import close
from helpers.training_runs import PLAIN, SMALL, evaluated, features_used, fit, learnable, refused, scores

DATA = learnable()
BY_HAND = "0 qid:1 1:0\n1 qid:1 1:1\n2 qid:1 1:2\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("order", "expected"),
    [("012", [-0.2, 0.033985, 0.2]), ("210", [0.2, -0.139738, -0.2])],  # no mirror image: ties are in file order
)
def test_27_29_the_first_tree_by_hand(order: str, expected: list[float]) -> None:
    fit("".join(f"{y} qid:1 1:{y}\n" for y in order), *PLAIN, "--leaves", "3")
    assert scores() == [close(s) for s in expected]


def test_30_all_labels_equal() -> None:
    for text in ("1 qid:1 1:0\n1 qid:1 1:1\n1 qid:1 1:2\n", "0 qid:1 1:0\n0 qid:1 1:1\n3 qid:2 1:0\n3 qid:2 1:1\n"):
        idle = fit(text, *PLAIN)
        assert idle.model["trees"] == [] and set(scores()) == {0.0}
        assert len(idle.warnings) == 1 and "nothing to learn" in idle.warnings[0]
    alone = fit(BY_HAND, *PLAIN, "--leaves", "3")
    mixed = fit("1 qid:0 1:0\n1 qid:0 1:9\n" + BY_HAND + "0 qid:2 1:4\n0 qid:2 1:1\n", *PLAIN, "--leaves", "3")
    assert [tree["leaf_values"] for tree in mixed.model["trees"]] == [t["leaf_values"] for t in alone.model["trees"]]
    assert mixed.warnings == []
    assert "lmart: 2 of 3 queries have no pair of documents with different labels" in mixed.said


def test_31_one_document_a_query() -> None:
    single = fit("0 qid:1 1:0\n1 qid:2 1:1\n2 qid:3 1:2\n", *PLAIN)
    assert set(scores()) == {0.0}
    assert len(single.warnings) == 1 and "no query has two documents, so check the qid column" in single.warnings[0]
    assert evaluated("d.svm", "--metric", "ndcg", "--empty", "skip") == 1.0


def test_33_labels_of_31_and_above() -> None:
    text = "".join(f"{y} qid:1 1:{place}\n" for place, y in enumerate((30, 0, 72, 31)))
    for gain in ("exp2", "linear"):
        fit(text, *PLAIN, "--leaves", "4", "--gain", gain)
        by_label = dict(zip((30, 0, 72, 31), scores(), strict=True))
        assert max(by_label, key=by_label.__getitem__) == 72
    assert sorted(by_label.values()) == [by_label[y] for y in (0, 30, 31, 72)]
    Path("d.svm").write_text("1 qid:1 1:0\n30 qid:1 1:1\n")
    assert "d.svm:2: label 30 has no entry in the gain table, which covers 0 to 2" in refused("--gain", "0,1,3")


def test_35_fractional_labels() -> None:
    fit("0.5 qid:1 1:0\n1.5 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN, "--leaves", "3")
    exponential = scores()
    fit("0.5 qid:1 1:0\n1.5 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN, "--leaves", "3", "--gain", "linear")
    linear = scores()
    fit("0 qid:1 1:0\n1 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN, "--leaves", "3")
    assert exponential != linear != scores() != exponential


def test_36_negative_labels() -> None:
    Path("d.svm").write_text("-1 qid:1 1:0\n1 qid:1 1:1\n")
    assert refused().startswith("lmart: error: d.svm:1: label '-1' is negative")


@pytest.mark.parametrize("n", [10_001, 20_000])
def test_37_more_than_ten_thousand_documents(n: int) -> None:
    label = (lambda row: row == 7) if n == 10_001 else (lambda row: row % 2)
    fit("".join(f"{int(label(row))} qid:1 1:{label(row) + row % 5}\n" for row in range(n)), "--trees", "3")
    assert evaluated("d.svm", "--metric", "ndcg@5") == 1.0 or n == 10_001


def test_39_nothing_to_split_on() -> None:
    flat = fit("1 qid:1 1:1 2:1\n0 qid:1 1:1 2:1\n", *PLAIN)
    assert set(scores()) == {0.0}
    assert len(flat.warnings) == 1 and "every feature is constant" in flat.warnings[0]
    assert features_used(fit(DATA, *SMALL).model) <= {1, 2, 3}
    one = fit(BY_HAND, *PLAIN, "--leaves", "3", "--threads", "16")
    assert len(one.model["trees"]) == 1


def test_41_weights_of_queries() -> None:
    text = "1 qid:1 1:1\n0 qid:1 1:0\n1 qid:2 1:0\n0 qid:2 1:1\n"
    assert fit(text, *PLAIN).model["trees"] == []
    for weights in ("3\n1\n", "3\n3\n1\n1\n", "\ufeff3\r\n# none\r\n1"):
        Path("w").write_text(weights, newline="")
        fit(text, *PLAIN, "--weights", "w")
        assert scores() == [close(0.1), close(-0.1), close(-0.1), close(0.1)]
    Path("w").write_text("3\n1\n1\n")
    assert "w: there are 3 weights, but the data has 2 queries and 4 rows" in refused("--weights", "w")


def test_43_early_stopping() -> None:
    Path("v.svm").write_text(learnable(2))
    slow = ("--trees", "200", "--leaves", "8", "--learning-rate", "0.05", "--min-docs", "9", "--rankers", "1")
    run_ = fit(DATA, "--valid", "v.svm", *slow, "--early-stop", "5", "--metric", "NDCG")
    seen = [one["validation"][0] for one in run_.report["rounds"]]
    best = seen.index(max(seen)) + 1
    assert len(run_.model["trees"]) == run_.report["best_round"] == best == len(seen) - 5 < 200
    assert run_.report["stopped"] == "early" and run_.report["metric"] == "ndcg"
    assert run_.report["files"] == {"data": ["d.svm"], "validation": ["v.svm"]}
    assert evaluated("v.svm", "--metric", "ndcg") == max(seen) == run_.report["validation"][0]
    assert evaluated("d.svm", "--metric", "ndcg") == run_.report["training"] != run_.report["rounds"][-1]["training"]
    assert f"best of {len(seen)} rounds" in run_.said[-1] and "on v.svm" in run_.said[-1]


def test_51_55_one_gain_everywhere_and_ideals_by_file() -> None:
    Path("v.svm").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")  # the same query id, other labels
    run_ = fit("50 qid:1 1:2\n0 qid:1 1:0\n20 qid:1 1:1\n", *PLAIN, "--gain", "linear", "--valid", "v.svm")
    assert run_.report["validation"] == [1.0]
    assert run_.model["gain"] == "linear"
    assert evaluated("d.svm", "--metric", "ndcg@10") == run_.report["training"]


@pytest.mark.parametrize("rankers", ["1", "auto"])
def test_56_58_the_log_eval_and_predict_agree_to_the_last_digit(rankers: str) -> None:
    run_ = fit(DATA, "--trees", "60", "--min-docs", "3", "--rankers", rankers)
    Path("s").write_text("".join(f"{score!r}\n" for score in scores()))
    run("predict", "-m", "m.json", "--data", "d.svm", "--out", "s2")
    assert Path("s").read_text() == Path("s2").read_text()
    by_scores = json.loads(run("eval", "--data", "d.svm", "--scores", "s2", "--metric", "ndcg@10", "--json").stdout)
    last = run_.report["training"]
    assert last == by_scores["metrics"]["ndcg@10"] == evaluated("d.svm", "--metric", "ndcg@10")
    assert rankers != "1" or last == run_.report["rounds"][-1]["training"]
    run("convert", "m.json", "again.json")
    assert Path("again.json").read_bytes() == run_.data


def test_59_digits_of_thresholds() -> None:
    close_by = "".join(f"{y} qid:{q} 1:0.1234567{8 + y}\n" for q in range(3) for y in (0, 1))
    model = fit(close_by, *PLAIN).model
    low, high = scores()[:2]
    assert low < high and model["trees"][0]["thresholds"] == [pytest.approx(0.123456785, abs=1e-12)]


def test_62_strict_json_of_whatever_happened() -> None:
    Path("v.svm").write_text("0 qid:1 1:0\n0 qid:1 1:1\n")
    for text in ("0 qid:1 1:0\n0 qid:1 1:nan\n", "1 qid:1 1:1.7e308\n0 qid:1 1:-1.7e308\n2 qid:1\n", BY_HAND):
        for options in (PLAIN, ("--valid", "v.svm", "--early-stop", "2"), ("--absent", "missing", *PLAIN)):
            fit(text, *options)  # which reads both files strictly
    assert shell("jq . m.json r.json || test $? = 127", Path()).returncode == 0


def test_66_narrower_data() -> None:
    fit(DATA, *SMALL)
    assert scores("1 qid:1 1:2\n") == scores("1 qid:1 1:2 2:0 3:0 7:1\n")


def test_68_a_damaged_model() -> None:
    whole = fit(DATA, *SMALL).data
    good = scores()
    for damaged in (whole[:500], b"", DATA.encode()):
        Path("m.json").write_bytes(damaged)
        result = run("predict", "-m", "m.json", "--data", "d.svm", status=1)
        assert (
            result.stdout == "" and result.stderr.startswith("lmart: error: m.json") and result.stderr.count("\n") == 1
        )
    Path("m.json").write_bytes(whole.replace(b"\n", b"\r\n"))
    assert scores() == good


@pytest.mark.parametrize("out", ["m.json", "/dev/full"])
def test_73_a_full_disk(out: str, in_folder: Path) -> None:
    Path("d.svm").write_text(DATA)
    Path("m.json").write_text("old")
    command = f"ulimit -f 8; lmart train --data d.svm -q --min-docs 1 --trees 60 --out {out}"
    done = shell(command, in_folder)
    assert done.returncode == 1 and done.stdout == b""
    assert re.fullmatch(rf"lmart: error: {out}: cannot be written: [^\n]+\n", done.stderr.decode())
    assert sorted(os.listdir()) == ["d.svm", "m.json"] and Path("m.json").read_text() == "old"


def test_77_84_logs_and_threads() -> None:
    Path("d.svm").write_text(DATA)
    with start("train", "--data", "d.svm", "--trees", "30", "--threads", "1000", folder=Path()) as process:
        stdout, stderr = process.communicate()
    assert process.returncode == 0 and stdout == b""
    assert not re.search(rb"[^\x20-\x7e\n]", stderr)
    assert stderr.count(b"\n") < 12 and b"--threads 1000 is more than this process may use" in stderr
    assert run("train", "--data", "d.svm", "--trees", "2", "--quiet").stderr == ""
    for bad in ("0", "-1", "1.5", "x"):
        assert "'--threads'" in refused("--threads", bad, status=2)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--learning-rat", "0.5"], ["--learning-rat", "perhaps '--learning-rate'"]),
        (["--learning-rate", "0"], ["'--learning-rate'", "'0'", "above 0"]),
        (["--learning-rate", "nan"], ["'--learning-rate'", "'nan'"]),
        (["--learning-rate", "1e999"], ["'--learning-rate'", "'1e999'"]),
        (["--leaves", "1"], ["'--leaves'", "'1'", "from 2 to"]),
        (["--trees", "-5"], ["'--trees'", "'-5'", "from 1 up"]),
        (["--max-bins", "256"], ["'--max-bins'", "from 2 to 255"]),
        (["--max-bins", "1"], ["'--max-bins'", "from 2 to 255"]),
        (["--sample", "0"], ["'--sample'", "'auto'", "above 0, up to 1"]),
        (["--sigma", "1e300"], ["'--sigma'", "above 0, up to 1000000"]),
        (["--l2", "-0.1"], ["'--l2'", "from 0 up"]),
        (["--gain", "0,x"], ["'--gain'", "'0,x'", "linear"]),
        (["--gain", "0,-1"], ["'--gain'", "negative"]),
        (["--absent", "nan"], ["'--absent'", "'nan'", "missing"]),
        (["--metric", "ndcg@0"], ["'ndcg@0'"]),
        (["--metric"], ["'--metric'", "requires an argument"]),
        (["--early-stop", "3"], ["--early-stop", "--valid"]),
        (["--valid", "-", "--weights", "-"], ["only one input can be '-'"]),
        (["--report", "./m.json"], ["--report and --out are the same file"]),
        (["stray"], ["stray"]),
    ],
)
def test_87_typing_errors_are_found_before_data_is_read(arguments: list[str], names: list[str]) -> None:
    # There is no d.svm.
    line = refused(*(["--out=m.json"] if arguments == ["stray"] else []), *arguments, status=2)
    assert line.endswith("; see 'lmart train --help'")
    for name in names:
        assert name in line


def test_90_91_the_same_bytes_again(in_folder: Path) -> None:
    Path("d.svm").write_text(DATA)
    Path("v.svm").write_text(learnable(2))
    options = ("--valid", "../v.svm", "--early-stop", "4", "--sample", "0.7", "--trees", "20", "--min-docs", "3")
    files, reports = set(), []
    surroundings = [("1", "0", "C"), ("2", "1", "C.UTF-8"), ("3", "2", "tr_TR.UTF-8"), ("8", "3", "C")]
    for threads, seed, locale in surroundings:
        folder = in_folder / f"folder {seed}"
        folder.mkdir()
        with start(
            *("train", "--data", "../d.svm", "--threads", threads, "--report", "r.json", *options),
            folder=folder,
            environment={"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC-{seed}", "COLUMNS": "20"},
        ) as process:
            process.communicate()
        assert process.returncode == 0
        files.add((folder / "model.json").read_bytes())
        report = json.loads((folder / "r.json").read_text())
        assert set(report.pop("seconds")) == {"reading", "binning", "growing"}
        reports.append(json.dumps(report))
    assert len(files) == 1 and len(set(reports)) == 1


def test_93_order_of_queries_and_names_of_columns() -> None:
    fit(DATA, *SMALL)
    rows, expected = DATA.splitlines(keepends=True), scores()
    before = evaluated("d.svm", "--metric", "ndcg@10")
    blocks = [range(start, start + 10) for start in range(0, len(rows), 10)]
    moved = [row for block in blocks[7:] + blocks[:7] for row in block]
    fit("".join(rows[row] for row in moved), *SMALL)
    assert scores() == [pytest.approx(expected[row], abs=1e-9) for row in moved]
    assert evaluated("d.svm", "--metric", "ndcg@10") == pytest.approx(before, abs=1e-12)
    names = {"7:": "90:", "3:": "31:", "2:": "12:", "1:": "5:"}
    renamed = [re.sub(r" (\d:)", lambda found: " " + names[found[1]], row) for row in rows]
    fit("".join(renamed), *SMALL)
    assert scores() == expected
    # equal gains: the lowest feature, whatever the order in the row
    for order in permutations(("2:{y}", "4:{y}", "9:{y}"), 3):
        text = "".join(f"{y} qid:1 {' '.join(order).format(y=y)}\n" for y in (0, 1, 2))
        assert features_used(fit(text, *PLAIN, "--leaves", "3").model) == {2}
    # and the lowest threshold, here on either side of a query that teaches nothing
    idle = fit("0 qid:1 1:1\n1 qid:1 1:2\n1 qid:2 1:1.5\n1 qid:2 1:1.5\n", *PLAIN)
    assert idle.model["trees"][0]["thresholds"] == [1.25]
