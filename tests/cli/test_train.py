"""lmart train: its options, its report, its refusals."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import random
import re
from pathlib import Path

import pytest
from helpers.commands import run, shell, start
from helpers.evaluation import strict
from helpers.reading_runs import FEW, GOOD, trained
from helpers.training_runs import PLAIN, SMALL, Run, evaluated, features_used, fit, learnable, refused, scores

from lmart.settings import TrainSettings

DATA = learnable()
BY_HAND = "0 qid:1 1:0\n1 qid:1 1:1\n2 qid:1 1:2\n"
OTHER = learnable(2, n_queries=8)


pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of DATA with SMALL settings that others are compared with."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("usual"))
    try:
        return fit(DATA, *SMALL)
    finally:
        os.chdir(before)


# Files


@pytest.mark.parametrize(
    "options",
    [["--data", "a", "b", "c"], ["--data", "a", "--data", "b", "--data", "c"], ["--data=a", "b", "--data=c"]],
)
def test_several_data_files_are_one_data_set(usual: Run, options: list[str]) -> None:
    rows = DATA.splitlines(keepends=True)
    for name, part in (("a", rows[:50]), ("b", rows[50:120]), ("c", rows[120:])):
        Path(name).write_text("".join(part))
    run("train", *options, *SMALL)
    assert Path("model.json").read_bytes() == usual.data


def test_a_file_given_twice_is_refused() -> None:
    Path("d.svm").write_text(DATA)
    assert "d.svm:1: rows of query '0' are not adjacent (first seen at line 1)" in refused(
        "--data", "d.svm", "--max-errors", "1"
    )
    for many in ("1000001", "9" * 30):
        said = run("train", "--data", "d.svm", "--max-errors", many, status=2).stderr
        assert "is not a whole number from 1 to 1000000" in said


def test_data_from_standard_input(usual: Run) -> None:
    run("train", "--data", "-", *SMALL, "--out", "m", stdin=DATA)
    assert Path("m").read_bytes() == usual.data
    printed = run("train", "--data", "-", *SMALL, "--out", "-", "-q", stdin=DATA)
    assert printed.stdout_bytes == usual.data


@pytest.mark.parametrize("options", [["--valid", "v", "w"], ["--valid", "v", "--valid", "w"]])
def test_the_first_validation_set_decides_the_others_are_measured(options: list[str]) -> None:
    Path("v").write_text(OTHER)
    Path("w").write_text(learnable(3))
    stop = ("--trees", "60", "--min-docs", "5", "--early-stop", "4", "--metric", "map", "--rankers", "1")
    both = fit(DATA, *stop, *options)
    best = both.report["rounds"][both.report["best_round"] - 1]
    assert both.report["validation"] == best["validation"]
    assert [evaluated(name, "--metric", "map") for name in "vw"] == best["validation"]
    assert fit(DATA, *stop, "--valid", "v").data == both.data


def test_validation_data_with_other_features_and_labels() -> None:
    narrow = OTHER.replace(" 7:1", "")
    wide = OTHER.replace("\n", " 99:1\n").replace("\n1 ", "\n1000.5 ")
    gaps = OTHER.replace(" 2:", " 2:nan 88:")
    for text in (narrow, wide, gaps):
        Path("v").write_text(text)
        assert fit(DATA, *SMALL, "--valid", "v").report["validation"] == [evaluated("v", "--metric", "ndcg@10")]
    Path("v").write_text("1 qid:1 99:1\n0 qid:1 99:2\n")
    assert "v: no feature of the data is in the model" in refused("--valid", "v")
    Path("v").write_text("9 qid:1 1:1\n0 qid:1 1:2\n")
    assert "v:1: label 9 has no entry in the gain table" in refused("--valid", "v", "--gain", "0,1,3")


def test_infinite_values_of_a_validation_set_go_where_scoring_sends_them() -> None:
    rng = random.Random(1)

    def gaps(share: float) -> str:
        lines = []
        for row in range(200):
            label = rng.randrange(3)
            value = "nan" if rng.random() < label / 3 else "inf" if rng.random() < share else f"{rng.random():.2f}"
            lines.append(f"{label} qid:{row // 8} 1:{value} 2:{rng.random():.2f}\n")
        return "".join(lines)

    Path("v").write_text(gaps(0.4))
    report = fit(gaps(0), *SMALL, "--valid", "v", "--allow-inf").report
    assert report["validation"] == [evaluated("v", "--metric", "ndcg@10", "--allow-inf")]


def test_validation_without_a_relevant_document_keeps_the_first_tree() -> None:
    Path("v").write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    stopped = fit(DATA, *SMALL, "--valid", "v", "--early-stop", "3")
    assert (stopped.report["best_round"], len(stopped.report["rounds"]), stopped.report["validation"]) == (1, 4, [0.0])


def test_outputs_are_checked_before_training(in_folder: Path) -> None:
    Path("d.svm").write_text(DATA)
    Path("v").write_text(OTHER)
    Path("m.json").write_text("old")
    Path("link").symlink_to("d.svm")
    os.link("v", "hard")
    assert "no folder" in refused("--out", "none/m.json")
    assert "no folder" in refused("--report", "none/r.json")
    assert "is a folder" in refused("--out", ".")
    for name in ("d.svm", "./d.svm", "link", str(in_folder / "d.svm"), "hard"):
        for option in ("--out", "--report"):
            assert "would overwrite the input" in refused("--valid", "v", option, name)
    assert "w: there is no such file" in refused("--weights", "w")
    Path("v").write_text("x")
    assert refused("--valid", "v").startswith("lmart: error: v:1: ")


def test_the_model_may_be_compressed(usual: Run) -> None:
    fit(DATA, *SMALL)
    run("train", "--data", "d.svm", *SMALL, "--out", "m.json.gz")
    assert gzip.decompress(Path("m.json.gz").read_bytes()) == usual.data
    assert [float(s) for s in run("predict", "-m", "m.json.gz", "--data", "d.svm").stdout.split()] == scores()


# Settings


def test_defaults_are_those_of_the_settings(usual: Run) -> None:
    plain = {"rankers": 1, "objective": "lambdamart", "tree": "leafwise", "features": 1.0}
    assert usual.model["settings"] == TrainSettings(trees=10, leaves=8, min_docs=2).to_json() | plain
    assert usual.report["settings"] == usual.model["settings"]


def test_options_that_say_the_default_change_nothing(usual: Run) -> None:
    said = ("--absent", "zero", "--seed", "0", "--max-depth", "0", "--max-bins", "255", "--sigma", "1", "--normalize")
    assert fit(DATA, *SMALL, *said, "--gain", "exp2", "--l2", "0", "--learning-rate", "1e-1").data == usual.data
    longest = ("--truncation", "10")
    assert fit(DATA, *SMALL, *longest).model["trees"] == fit(DATA, *SMALL, "--truncation", "0").model["trees"]
    assert fit(DATA, *SMALL, "--truncation", str(2**31 - 1)).model["trees"] == usual.model["trees"]


@pytest.mark.parametrize(
    "options",
    [
        ["--learning-rate", "0.2"],
        ["--min-docs", "30"],
        ["--min-hessian", "3"],
        ["--l2", "2"],
        ["--max-bins", "7"],
        ["--truncation", "1"],
        ["--sigma", "2"],
        ["--no-normalize"],
        ["--gain", "linear"],
        ["--max-depth", "2"],
        ["--sample", "0.5"],
    ],
)
def test_every_setting_has_an_effect(usual: Run, options: list[str]) -> None:
    changed = fit(DATA, *SMALL, *options)
    assert changed.model["trees"] != usual.model["trees"]
    assert changed.report["training"] == evaluated("d.svm", "--metric", "ndcg@10")


def test_limits_hold() -> None:
    two = fit(DATA, "--trees", "1", "--leaves", "2").model["trees"]
    assert [len(tree["leaf_values"]) for tree in two] == [2]
    stumps = fit(DATA, *SMALL, "--max-depth", "1").model["trees"]
    assert {len(tree["leaf_values"]) for tree in stumps} == {2}
    halves = fit(DATA, *SMALL, "--max-bins", "2").model["trees"]
    cuts = {(f, t) for tree in halves for f, t in zip(tree["split_features"], tree["thresholds"], strict=True)}
    assert len(cuts) <= 3
    full = fit(DATA, "--trees", "2", "--leaves", "1000000", "--min-docs", "1", "--min-hessian", "0").model["trees"]
    assert len(full[0]["leaf_values"]) > 60
    for tree in fit(DATA, *SMALL, "--min-docs", "9").model["trees"]:
        assert min(tree["leaf_documents"]) >= 9 and sum(tree["leaf_documents"]) == 200


def test_a_gain_table_is_one_of_the_gains(usual: Run) -> None:
    table = fit(DATA, *SMALL, "--gain", "0,1,3").model
    assert table["gain"] == "0,1,3" and table["trees"] == usual.model["trees"]
    ranks = fit(DATA, *SMALL, "--gain", "0,1,2").model
    assert ranks["trees"] == fit(DATA, *SMALL, "--gain", "linear").model["trees"] != usual.model["trees"]
    Path("d.svm").write_text("0 qid:1 1:0\n1.5 qid:1 1:1\n")
    assert "label 1.5 has no entry in the gain table, which covers 0 to 2" in refused("--gain", "0,1,3")


def test_absent_and_missing_values() -> None:
    written = "2 qid:1 1:0 2:1\n0 qid:1 1:3 2:1\n1 qid:1 1:-1 2:1\n" * 2
    dropped, unknown = written.replace(" 1:0", ""), written.replace(" 1:0", " 1:nan")
    plain = (*PLAIN, "--leaves", "3")
    trees = {text: fit(text, *plain).model["trees"] for text in (written, dropped, unknown)}
    assert trees[written] == trees[dropped] != trees[unknown]
    missing = {text: fit(text, *plain, "--absent", "missing").model["trees"] for text in (written, dropped, unknown)}
    assert missing[dropped] == missing[unknown] == trees[unknown]
    assert missing[written] == trees[written]
    fit(dropped, *plain, "--absent", "missing")
    assert scores() == scores(unknown)
    assert scores("0 qid:1 2:1\n") == scores("0 qid:1 1:nan 2:1\n") != scores("0 qid:1 1:0 2:1\n")


@pytest.mark.parametrize("text", ["1 qid:1 1:nan 2:0\n0 qid:1 1:nan 2:1\n", "1 qid:1 2:0\n0 qid:1 1:0 2:1\n"])
def test_columns_without_a_number_are_left_out(text: str) -> None:
    assert features_used(fit(text, *PLAIN).model) == {2}


def test_the_seed_matters_only_to_a_sample(usual: Run) -> None:
    assert fit(DATA, *SMALL, "--seed", "5").model["trees"] == usual.model["trees"]
    assert usual.report["sample"] == 1.0
    assert fit(DATA, *SMALL, "--sample", "auto").data == usual.data
    drawn = [fit(DATA, *SMALL, "--sample", "0.5", "--seed", seed) for seed in ("1", "2", "1")]
    assert drawn[0].data == drawn[2].data and drawn[0].model["trees"] != drawn[1].model["trees"]
    assert drawn[0].report["sample"] == 0.5


# Weights


def test_a_query_of_weight_zero_teaches_nothing() -> None:
    first, second = learnable(4, n_queries=6), learnable(4, n_queries=6).replace("qid:", "qid:x")
    alone = fit(first, *PLAIN, "--leaves", "6").model["trees"]
    Path("w").write_text("1\n" * 6 + "0\n" * 6)
    both = fit(first + second, *PLAIN, "--leaves", "6", "--weights", "w").model["trees"]
    assert [tree["leaf_values"] for tree in both] == [tree["leaf_values"] for tree in alone]


def test_weights_of_rows() -> None:
    Path("w").write_text("2\n" * 200)
    rows = fit(DATA, *SMALL, "--weights", "w", "--min-hessian", "0.002")
    Path("w").write_text("2\n" * 20)
    queries = fit(DATA, *SMALL, "--weights", "w", "--min-hessian", "0.002")
    assert rows.data == queries.data
    Path("w").write_text("".join(f"{1 + row % 3}\n" for row in range(200)))
    assert fit(DATA, *SMALL, "--weights", "w", "--min-hessian", "0.002").data != rows.data


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("1\n-1\n", "w:2: weight '-1' is not a number from 0 to 1e+100"),
        ("1\n\nnan\n", "w:3: weight 'nan'"),
        ("1e308\n" * 20, "w:1: weight '1e308'"),
        ("0\n" * 20, "w: all weights are zero"),
        ("1\n" * 21, "w: there are 21 weights, but the data has 20 queries and 200 rows"),
        ("", "w: holds no number"),
    ],
)
def test_weights_that_are_refused(weights: str, said: str) -> None:
    Path("d.svm").write_text(DATA)
    Path("w").write_text(weights)
    assert said in refused("--weights", "w")


def test_huge_weights_change_nothing_but_their_share() -> None:
    Path("w").write_text("1e100\n" * 20)
    for sample in ("1", "0.5"):
        fit(DATA, *SMALL, "--weights", "w", "--sample", sample, "--sigma", "3")
        assert all(map(math.isfinite, scores())) and len(set(scores())) > 2


# The report and what is said


def test_the_report(usual: Run) -> None:
    report = usual.report
    assert report["data"] == {"documents": 200, "queries": 20, "features": 4, "idle_queries": 0, "split_features": 3}
    assert [one["round"] for one in report["rounds"]] == list(range(1, 11))
    assert report["stopped"] == "trees" and report["best_round"] == 10
    assert report["rounds"][-1]["training"] == report["training"] > report["rounds"][0]["training"]
    assert report["files"] == {"data": ["d.svm"], "validation": []}
    assert all(seconds >= 0 for seconds in report["seconds"].values())
    shares = report["importance"]
    assert set(shares) <= {str(index) for index in usual.model["feature_ids"]} and len(shares) <= 3
    assert sum(one["splits"] for one in shares.values()) == sum(len(t["thresholds"]) for t in usual.model["trees"])
    assert sum(one["gain_share"] for one in shares.values()) == pytest.approx(1.0)
    again = fit(DATA, *SMALL).report
    timed = {"seconds": None, "run": None}
    assert {**again, **timed} == {**report, **timed}


def test_the_report_has_the_warnings_also_of_a_run_that_does_not_say_them(usual: Run) -> None:
    assert usual.report["warnings"] == []
    said = fit(DATA, "--min-docs", "101")
    assert ["lmart: warning: " + text for text in said.report["warnings"]] == said.warnings
    silent = fit(DATA, "--min-docs", "101", "-qq")
    assert silent.warnings == [] and silent.report["warnings"] == said.report["warnings"]


def test_data_without_features_is_not_said_to_have_constant_ones() -> None:
    (warning,) = fit("1 qid:1\n0 qid:1\n", *PLAIN).warnings
    assert "nothing to split on: the data has no features; every score will be 0" in warning


def test_the_last_round_is_shown_when_no_split_is_left_for_another() -> None:
    Path("d.svm").write_text(DATA)
    options = ("--trees", "50", "--rankers", "1", "--learning-rate", "0.5", "--min-docs", "2", "--min-hessian", "2")
    said = run("train", "--data", "d.svm", *options, "--out", "m.json").stderr.splitlines()
    *_, last, warning, _ = said
    n = len(json.loads(Path("m.json").read_text())["trees"])
    assert last.startswith(f"lmart: {n}/50 trees, training ndcg@10 ") and f"stopped after {n} trees of 50" in warning


def test_one_warning_says_why_it_stopped() -> None:
    few = fit(DATA, "--min-docs", "101")
    assert few.model["trees"] == [] and set(scores()) == {0.0}
    assert len(few.warnings) == 1
    assert "stopped after 0 trees of 300" in few.warnings[0] and "101 documents (--min-docs)" in few.warnings[0]
    steep = fit(DATA, "--min-docs", "1", "--min-hessian", "1e300")
    assert len(steep.warnings) == 1 and "1 document (--min-docs)" in steep.warnings[0]
    assert "hessian of 1e+300 (--min-hessian)" in steep.warnings[0]


# Odd values


@pytest.mark.parametrize(
    "options",
    [
        ["--learning-rate", "1e299", "--trees", "3"],
        ["--learning-rate", "5e-324", "--trees", "3"],
        ["--sigma", "1000000", "--trees", "3"],
        ["--sigma", "1e-300", "--min-hessian", "0", "--trees", "3"],
        ["--l2", "1e100", "--trees", "3"],
        ["--sample", "1e-300", "--trees", "3"],
        ["--no-normalize", "--min-hessian", "0", "--min-docs", "1", "--trees", "40", "--learning-rate", "9"],
    ],
)
def test_extreme_settings_give_finite_models(options: list[str]) -> None:
    odd = fit(DATA, *options)
    assert all(map(math.isfinite, scores()))
    assert odd.report["training"] == evaluated("d.svm", "--metric", "ndcg@10")


@pytest.mark.parametrize("more", [[], ["--no-normalize"], ["--sample", "0.5"], ["--valid", "d.svm"]])
def test_scores_beyond_all_numbers_are_refused(more: list[str]) -> None:
    Path("d.svm").write_text(DATA)
    line = refused("--learning-rate", "1e300", *more)
    assert "the scores may grow beyond 1e+300 in round 1; use a smaller --learning-rate" in line


@pytest.mark.parametrize(
    ("values", "distinct"),
    [
        (["1.7e308", "-1.7e308", "1e308"], 3),
        (["1.7976931348623157e308", "nan", "-1.7976931348623157e308"], 3),
        (["9007199254740992", "9007199254740994", "9007199254740996"], 3),
        (["9007199254740992", "9007199254740993", "9007199254740994"], 2),  # the second is the first as a number
        (["5e-324", "0", "-5e-324"], 3),
        (["-0", "0", "0.0"], 1),
        (["inf", "-inf", "0.5"], 3),
        (["inf", "1.7976931348623157e308", "-inf"], 3),
        (["0.1", "0.10000000000000002", "0.10000000000000003"], 3),
    ],
)
def test_values_that_are_hard_to_part(values: list[str], distinct: int) -> None:
    text = "".join(f"{y} qid:1 1:{value}\n" for y, value in enumerate(values))
    odd = fit(text, *PLAIN, "--leaves", "3", "--allow-inf")
    found = scores(None, "--allow-inf")
    assert len(set(found)) == distinct
    if distinct == 3:
        assert found == sorted(found)
    assert odd.report["training"] == evaluated("d.svm", "--metric", "ndcg@10", "--allow-inf")


@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("labels", [(0, 1e308, 1.7e308), (0, 31, 1024), (0.25, 0.5, 1e15)])
def test_labels_of_any_size(gain: str, labels: tuple[float, ...]) -> None:
    fit(learnable(6, labels=labels), *SMALL, "--gain", gain)
    assert all(map(math.isfinite, scores()))
    assert evaluated("d.svm", "--metric", "ndcg") > 0.9


def test_a_measure_too_large_for_a_number_is_refused() -> None:
    Path("d.svm").write_text(learnable(6, labels=(0, 1, 2000)))
    assert "dcg@3 is too large for a number" in refused("--metric", "dcg@3")


def test_equal_rows_get_equal_scores() -> None:
    fit("1 qid:1 1:1\n2 qid:1 1:1\n0 qid:1 1:1\n2 qid:1 1:0\n0 qid:1 1:0\n", *SMALL, "--min-docs", "1")
    found = scores()
    assert len(set(found[:3])) == 1 and len(set(found[3:])) == 1


def test_a_validation_set_that_measures_nothing_is_told() -> None:
    Path("v").write_text("0 qid:1 1:1\n0 qid:1 1:0\n")
    (warning,) = fit("1 qid:1 1:1\n0 qid:1 1:0\n", *PLAIN, "--valid", "v").warnings
    assert warning == "lmart: warning: v: no query has a relevant document, so every measure of it is 0"


def test_the_first_of_several_measures_decides_and_all_are_reported() -> None:
    Path("v.svm").write_text(OTHER)
    stopping = ("--valid", "v.svm", "--trees", "60", "--early-stop", "4", "--rankers", "2", "--ignore-columns", "1")
    models, reports = {}, {}
    for metric in ("p@1", "map", "map,p@1", "p@1,map"):
        run_ = fit(DATA, *stopping, "--metric", metric)
        models[metric], reports[metric] = run_.model, run_.report
    assert models["p@1"]["trees"] == models["p@1,map"]["trees"] != models["map"]["trees"] == models["map,p@1"]["trees"]
    assert models["p@1,map"]["settings"]["metric"] == "p@1,map"
    report, alone = reports["p@1,map"], reports["p@1"]
    further = report.pop("further")["map"]
    for entry in (*report["rounds"], *report["rankers"]):
        assert entry.pop("further").keys() == {"map"}
    for name in ("rounds", "rankers", "training", "validation", "metric", "importance"):
        assert report[name] == alone[name]
    for path, value in (("d.svm", further["training"]), ("v.svm", further["validation"][0])):
        assert value == evaluated(path, "--metric", "map")
    assert "nothing can be trained for 'judged@3'" in refused("--metric", "map,judged@3", status=2)


def test_each_line_of_the_log_has_all_measures() -> None:
    Path("v.svm").write_text(OTHER)
    *_, last, wrote = fit(DATA, "--valid", "v.svm", "--trees", "2", "--rankers", "1", "--metric", "map,mrr").said
    number = r"\d\.\d{6}"
    assert re.search(rf"2/2 trees, map {number}, mrr {number} on v.svm$", last)
    assert re.search(rf"; map {number}, mrr {number} on training; map {number}, mrr {number} on v.svm$", wrote)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_report_that_cannot_be_written_leaves_no_model() -> None:
    Path("d.svm").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    Path("m.json").write_text("older")
    result = run("train", "--data", "d.svm", "--quiet", *PLAIN, "--out", "m.json", "--report", "/dev/full", status=1)
    assert "/dev/full: cannot be written: No space left" in result.stderr
    assert Path("m.json").read_text() == "older"


@pytest.mark.parametrize("failing", [1, 2])
def test_model_and_report_are_replaced_together(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == failing:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    Path("d.svm").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    for name in ("m.json", "r.json"):
        Path(name).write_text("older")
    monkeypatch.setattr(os, "fsync", fsync)
    assert "cannot be written: Disk quota exceeded" in refused(*PLAIN)
    assert len(calls) == failing


def test_a_name_that_is_no_utf_8_stands_escaped_in_the_report() -> None:
    name = os.fsdecode(b"d\xff.svm")
    Path(name).write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    run("train", "--data", name, "--valid", name, *PLAIN, "--report", "r.json")
    files = strict(Path("r.json").read_text())["files"]
    assert files == {"data": ["d\\udcff.svm"], "validation": ["d\\udcff.svm"]}
    json.dumps(files, ensure_ascii=False).encode("utf-8")  # no lone surrogates


def test_a_validation_set_with_unknown_features_is_told() -> None:
    Path("v").write_text("1 qid:1 1:1 99:1\n0 qid:1 1:0\n")
    (warning,) = fit("1 qid:1 1:1\n0 qid:1 1:0\n", *PLAIN, "--valid", "v").warnings
    assert warning.startswith("lmart: warning: v: 1 of 2 features is not in the model: '99'")


class TestOptionsWithoutEffect:
    """An option that stood on the command line is obeyed, refused, or told to change nothing."""

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--objective", "xendcg", "--truncation", "5"), "--truncation has no effect on --objective xendcg"),
            (("--objective", "xendcg", "--no-normalize"), "--normalize has no effect on --objective xendcg"),
            (
                ("--objective", "map", "--metric", "map", "--gain", "linear"),
                "--gain has no effect on --objective map and",
            ),
            (
                ("--objective", "ranknet", "--metric", "err", "--gain", "linear"),
                "--gain has no effect on --objective ran",
            ),
        ],
    )
    def test_it_is_told(self, options: tuple[str, ...], said: str) -> None:
        text = learnable(2)
        done = fit(text, *SMALL, *options)
        (warning,) = done.warnings
        assert said in warning
        without = list(options)
        place = next(i for i, one in enumerate(options) if one[2:] in ("truncation", "no-normalize", "gain"))
        del without[place : place + (1 if options[place] == "--no-normalize" else 2)]
        assert fit(text, *SMALL, *without).model["trees"] == done.model["trees"]

    @pytest.mark.parametrize(
        "options",
        [
            ("--objective", "map", "--gain", "linear"),  # in ndcg@10
            ("--objective", "ranknet", "--metric", "map", "--gain", "0,1,1"),  # its order
            ("--objective", "xendcg+err", "--truncation", "5"),
            ("--objective", "yetirank", "--truncation", "5", "--no-normalize", "--sigma", "2"),
            ("--metric", "map", "--gain", "linear"),
        ],
    )
    def test_what_is_obeyed_is_not_told(self, options: tuple[str, ...]) -> None:
        assert fit(learnable(2), *SMALL, *options).warnings == []


def test_what_the_number_of_queries_decides_is_told() -> None:
    text, by_map = learnable(2), ("--trees", "2", "--objective", "map")
    assert "lmart: lambdamart with 8 leaves (auto: 20 queries, 2 trees)" in fit(text, "--trees", "2").said
    assert "lmart: map with 8 leaves (auto: 20 queries, 2 trees)" in fit(text, *by_map).said
    assert not any("auto" in line for line in fit(text, *by_map, "--leaves", "5").said)


def test_a_run_that_used_up_its_trees_says_whether_it_was_still_getting_better() -> None:
    Path("v.svm").write_text(learnable(4))

    def told(*options: str) -> list[str]:
        done = fit(learnable(3, n_queries=60), *SMALL, "--valid", "v.svm", "--objective", "lambdamart", *options)
        best = done.report["best_round"]
        kept = [line for line in done.said if "try more --trees" in line or "did not end the run" in line]
        assert len(kept) == (done.report["stopped"] == "trees" and "--early-stop" in options and best > 0)
        assert all(("still getting better" in line) == (best > 0.9 * done.report["settings"]["trees"]) for line in kept)
        return kept

    (line,) = told("--early-stop", "50", "--learning-rate", "2", "--trees", "60")
    assert "--early-stop 50 did not end the run: ndcg@10 is best at " in line
    assert told() == [] == told("--early-stop", "2", "--learning-rate", "2")
    (line,) = told("--early-stop", "50", "--learning-rate", "2")
    assert line.startswith("lmart: ndcg@10 was still getting better after 10 trees")


def test_plain_and_packed_files_are_one_data_set(tmp_path: Path) -> None:
    rows = GOOD.splitlines(keepends=True)
    (tmp_path / "a").write_text("".join(rows[:20]))
    (tmp_path / "b").write_bytes(gzip.compress("".join(rows[20:]).encode()))
    run("train", "--data", tmp_path / "a", "--data", tmp_path / "b", "--out", tmp_path / "m", *FEW)
    assert (tmp_path / "m").read_bytes() == trained(tmp_path, GOOD)


@pytest.mark.parametrize("rankers", ["1", "auto"])
def test_the_log_eval_and_predict_agree_to_the_last_digit(rankers: str) -> None:
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


def test_model_and_report_are_strict_json_whatever_happened() -> None:
    Path("v.svm").write_text("0 qid:1 1:0\n0 qid:1 1:1\n")
    for text in ("0 qid:1 1:0\n0 qid:1 1:nan\n", "1 qid:1 1:1.7e308\n0 qid:1 1:-1.7e308\n2 qid:1\n", BY_HAND):
        for options in (PLAIN, ("--valid", "v.svm", "--early-stop", "2"), ("--absent", "missing", *PLAIN)):
            fit(text, *options)  # which reads both files strictly
    assert shell("jq . m.json r.json || test $? = 127", Path()).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("out", ["m.json", "/dev/full"])
def test_a_full_disk_leaves_the_older_model(out: str, in_folder: Path) -> None:
    Path("d.svm").write_text(DATA)
    Path("m.json").write_text("old")
    command = f"ulimit -f 8; lmart train --data d.svm -q --min-docs 1 --trees 60 --out {out}"
    done = shell(command, in_folder)
    assert done.returncode == 1 and done.stdout == b""
    assert re.fullmatch(rf"lmart: error: {out}: cannot be written: [^\n]+\n", done.stderr.decode())
    assert sorted(os.listdir()) == ["d.svm", "m.json"] and Path("m.json").read_text() == "old"


@pytest.mark.slow
def test_the_log_of_a_file_is_short_and_plain_and_threads_have_limits() -> None:
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
        (["--trees", "-5"], ["'--trees'", "'-5'", "from 1 to 2147483647"]),
        (["--max-bins", "256"], ["'--max-bins'", "from 2 to 255"]),
        (["--max-bins", "1"], ["'--max-bins'", "from 2 to 255"]),
        (["--sample", "0"], ["'--sample'", "'auto'", "above 0, up to 1"]),
        (["--sigma", "1e300"], ["'--sigma'", "above 0, up to 1000000"]),
        (["--l2", "-0.1"], ["'--l2'", "from 0 to 1e+100"]),
        (["--gain", "0,x"], ["'--gain'", "'0,x'", "linear"]),
        (["--gain", "0,-1"], ["'--gain'", "'-1'"]),
        (["--absent", "nan"], ["'--absent'", "'nan'", "missing"]),
        (["--metric", "ndcg@0"], ["'ndcg@0'"]),
        (["--metric"], ["'--metric'", "requires an argument"]),
        (["--early-stop", "3"], ["--early-stop", "--valid"]),
        (["--valid", "-", "--weights", "-"], ["only one input can be '-'"]),
        (["--report", "./m.json"], ["--report and --out are the same file"]),
        (["stray"], ["stray"]),
    ],
)
def test_typing_errors_are_found_before_data_is_read(arguments: list[str], names: list[str]) -> None:
    # There is no d.svm.
    line = refused(*(["--out=m.json"] if arguments == ["stray"] else []), *arguments, status=2)
    assert line.endswith("; see 'lmart train --help'")
    for name in names:
        assert name in line


def test_a_column_of_labels_beside_the_chosen_one_is_told() -> None:
    Path("d.csv").write_text("qid,label,rel\n1,0,1\n1,1,0\n")
    said = run("train", "--data", "d.csv", "--label-column", "rel", *FEW, "-o", "m.json").stderr
    assert "warning: the feature 'label' is named as labels usually are; leave it out if it holds them\n" in said
