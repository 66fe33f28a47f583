"""lmart eval through the command line: forms of output, inputs, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from helpers.evaluation import call, close, measured, refused, strict, write
from helpers.paths import ROOT, SAMPLE, TESTS

from lmart.cli.main import main
from lmart.cli.terminal import layout

GOLDEN = TESTS / "golden"


pytestmark = pytest.mark.usefixtures("in_folder")


def sample() -> list[str]:
    """The sample's test file ranked by its third feature, in wide steps: ties on purpose."""
    text = (SAMPLE / "test.svm").read_text()
    Path("sample.svm").write_text(text)  # so that what is printed does not tell where this is run
    values = [line.split(" 3:")[1].split()[0] for line in text.splitlines()]
    Path("sample.txt").write_text("".join(f"{int(float(value) * 10)}\n" for value in values))
    return ["--data", "sample.svm", "--scores", "sample.txt"]


EVERYTHING = "ndcg@1,ndcg@10,ndcg,dcg@10,map,mrr@10,p@5,recall@10,err@20,rbp,rbp(0.95)"
EVERYTHING += ",gmap,success@3,rprec,f1@5,recall_cap@5,auc"


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("eval_default.txt", []),
        ("eval_average.txt", ["--metric", EVERYTHING, "--ties", "average", "--empty", "skip", "--gain", "linear"]),
        ("eval_everything.json", ["--metric", f"{EVERYTHING},iprec@0.5", "--json"]),
        ("eval_queries.tsv", ["--metric", "ndcg@10,map", "--empty", "skip", "--per-query", "-"]),
    ],
)
def test_golden_output(file: str, arguments: list[str]) -> None:
    """Written with LMART_WRITE_GOLDEN=1, then read by eye."""
    result = call(*sample(), *arguments, "-q")
    assert result.stderr == ""
    if os.environ.get("LMART_WRITE_GOLDEN"):
        (GOLDEN / file).write_text(result.stdout)
    assert result.stdout == (GOLDEN / file).read_text()


def test_output_is_the_same_for_any_width_and_thread_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ([], ["--json"], ["--per-query", "-"], ["--ties", "average", "--metric", EVERYTHING]):
        outputs = set()
        for columns, threads in (("20", "1"), ("200", "2"), ("20", "3")):
            monkeypatch.setenv("COLUMNS", columns)
            outputs.add(call(*sample(), *arguments, "--threads", threads).stdout)
        assert len(outputs) == 1


def test_json_is_one_strict_line_with_every_digit() -> None:
    result = call(*sample(), "--json")
    assert result.stdout.count("\n") == 1
    content = strict(result.stdout)
    of_one = ["queries", "documents", "empty_queries", "conventions", "metrics"]
    assert list(content) == [*of_one, "data", "systems", "resampling"]
    assert content["data"] == ["sample.svm"]
    (system,) = content["systems"]
    assert list(system.pop("summary")) == list(content["metrics"])
    assert system == {"name": "sample.txt", "kind": "scores", "path": "sample.txt", "metrics": content["metrics"]}
    assert {"gain", "empty", "ties"} <= set(content["conventions"])
    assert list(content["metrics"]) == ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr"]
    assert "\x1b" not in result.stdout


def test_per_query_values_average_to_the_report() -> None:
    result = call(*sample(), "--per-query", "q.tsv", "--metric", "ndcg@10,map", "--json")
    header, *lines = Path("q.tsv").read_text().splitlines()
    assert header == "qid\tndcg@10\tmap"
    rows = [line.split("\t") for line in lines]
    assert len(rows) == strict(result.stdout)["queries"] == 40
    for i, name in enumerate(("ndcg@10", "map"), 1):
        assert sum(float(row[i]) for row in rows) / 40 == pytest.approx(strict(result.stdout)["metrics"][name])
    first_row = (SAMPLE / "test.svm").read_text().split()[1]
    assert rows[0][0] == first_row.removeprefix("qid:")


def test_per_query_marks_skipped_queries_and_leaves_out_nothing() -> None:
    given = [*write("0 1 / 0 0"), "--metric", "mrr,dcg", "--empty", "skip", "--per-query"]
    assert "mrr" in call(*given, "q.tsv").stdout
    wanted = "qid\tmrr\tdcg\n1\t0.5\t0.6309297535714574\n2\tn/a\t0.0\n"
    assert Path("q.tsv").read_text() == wanted
    assert call(*given, "-").stdout == wanted


def test_per_query_output_is_checked_first_and_appears_whole() -> None:
    given = write("0 1")
    assert "no folder" in refused(*given, "--per-query", "none/q.tsv")
    assert "would overwrite" in refused(*given, "--per-query", "d.svm")
    Path("q.tsv").write_text("old\n")
    refused("--data", "d.svm", "--scores", "none.txt", "--per-query", "q.tsv")
    assert Path("q.tsv").read_text() == "old\n"
    call(*given, "--per-query", "q.tsv.gz")
    assert Path("q.tsv.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("columns", [30, 40, 80])
def test_a_terminal_gets_lines_that_fit(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(layout, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = click.unstyle(call(*write("0 1 / 0 0"), "--metric", "ndcg@10,mrr").stdout)
    assert {"queries", "measure", "mean", "interval", "ndcg@10", "0.315465", "0.0000..0.6309"} <= set(shown.split())
    assert "input (documents of equal score in the order of the data)" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")])
def test_a_terminal_that_wants_no_colour_gets_plain_lines(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert layout.is_terminal()
    monkeypatch.setenv(name, value)
    assert not layout.is_terminal()


# ---- inputs


def test_standard_input_for_data_or_scores() -> None:
    given = write("0 1 / 1 0")
    wanted = measured(*given)
    data, scores = Path("d.svm").read_text(), Path("d.txt").read_text()
    for arguments, stdin in (
        (["--data", "d.svm", "--scores", "-"], scores),
        (["--data", "-", "--scores", "d.txt"], data),
    ):
        assert strict(call(*arguments, "--json", stdin=stdin).stdout)["metrics"] == wanted
    assert "only one input" in refused("--data", "-", "--scores", "-", status=2, stdin=scores)


def test_several_files_are_one_data_set() -> None:
    given = write("0 1 / 1 0 / 0 2 1")
    lines = Path("d.svm").read_text().splitlines(keepends=True)
    Path("a.svm").write_text("".join(lines[:4]))
    Path("b.svm").write_text("".join(lines[4:]))
    for files in (["--data", "a.svm", "b.svm"], ["--data", "a.svm", "--data", "b.svm"]):
        assert measured(*files, "--scores", "d.txt") == measured(*given)


def test_collected_queries_keep_their_scores_and_weights() -> None:
    wanted = measured(*write("0 1 2 / 3 0", [1.0, 3.0, 2.0, 5.0, 4.0]), "--metric", "ndcg,map")
    Path("w.txt").write_text("1\n2\n3\n4\n5\n")
    weighted = measured("--data", "d.svm", "--scores", "d.txt", "--weights", "w.txt", "--metric", "ndcg,map")
    rows = Path("d.svm").read_text().splitlines(keepends=True)
    for name, parts in (("m.svm", rows), ("m.txt", ["1\n", "3\n", "2\n", "5\n", "4\n"]), ("mw.txt", list("12345"))):
        Path(name).write_text("\n".join(parts[i].strip() for i in (0, 3, 1, 4, 2)) + "\n")
    mixed = ["--data", "m.svm", "--scores", "m.txt", "--metric", "ndcg,map"]
    assert "--group-by-qid" in call(*mixed, status=1).stderr
    assert measured(*mixed, "--group-by-qid") == wanted
    assert measured(*mixed, "--group-by-qid", "--weights", "mw.txt") == weighted
    assert weighted != wanted


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("1\nnan\n", ["s.txt:2:", "'nan'", "finite"]),
        ("1\nx y\n", ["s.txt:2:", "'x y'"]),
        ("1\n", ["s.txt:", "1 score,", "d.svm has 2 rows"]),
        ("1\n2\n3\n", ["3 scores", "2 rows"]),
    ],
)
def test_bad_scores(content: str, parts: list[str]) -> None:
    write("0 1")
    Path("s.txt").write_text(content)
    line = refused("--data", "d.svm", "--scores", "s.txt")
    assert all(part in line for part in parts)


def test_bad_weights() -> None:
    given = write("0 1 / 1 0 0")
    for content, part in (("1\n2\n3\n", "3 weights"), ("1\n-1\n", "'-1'"), ("1\nnan\n", "w.txt:2")):
        Path("w.txt").write_text(content)
        assert part in refused(*given, "--weights", "w.txt")


def test_a_gain_table_that_is_too_short_names_the_data() -> None:
    line = refused(*write("0 3"), "--gain", "0,1,3", "--metric", "ndcg")
    assert "d.svm:2: label 3 has no entry" in line


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "one of --model, --scores and --run"),
        (["--scores", "no.txt", "--gain", "exp3"], "'exp3'"),
        (["--scores", "no.txt", "--empty", "two"], "two"),
        (["--scores", "no.txt", "--ties", "best"], "best"),
        (["--scores", "no.txt", "--threads", "0"], "0"),
        (["--scores", "no.txt", "--metrik", "map"], "--metrik"),
        (["--scores", "no.txt", "--json", "--per-query", "-"], "standard output"),
        (["extra", "--scores", "no.txt"], "extra"),
        (["--scores", "no.txt", "--strict"], "--strict needs --model"),
        (["--scores", "no.txt", "--metric", "map,err@3", "--gain", "linear"], "--gain counts in ndcg and dcg only"),
        (["--scores", "no.txt", "--metric", "dcg@3", "--empty", "one"], "--empty counts in all measures but dcg"),
    ],
)
def test_wrong_usage_is_found_before_data_is_read(arguments: list[str], part: str) -> None:
    line = refused(*arguments, "--data", "no.svm", status=2)
    assert part in line
    assert line.endswith("see 'lmart eval --help'")


def test_data_is_required() -> None:
    assert "--data" in refused("--scores", "s.txt", status=2)


def test_missing_files_are_named() -> None:
    given = write("0 1")
    assert "no.svm" in refused("--data", "no.svm", "--scores", "d.txt")
    assert "no.txt" in refused("--data", "d.svm", "--scores", "no.txt")
    assert "no.json" in refused("--data", "d.svm", "-m", "no.json")
    assert "no.w" in refused(*given, "--weights", "no.w")


def test_help_and_usage_errors_load_no_compiler() -> None:
    for arguments in (["eval", "--help"], ["eval", "--data", "x", "--scores", "y", "--metric", "ndcg@0"]):
        code = (
            "import sys\nfrom lmart.cli.main import main\n"
            f"try:\n    main.main({arguments!r})\nexcept SystemExit:\n    pass\n"
            "print({'numba', 'rich'} & set(sys.modules), file=sys.stderr)"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
        assert ran.stderr.splitlines()[-1] == "set()"


def test_features_that_the_model_does_not_have(in_folder: Path) -> None:
    ranks = CliRunner().invoke(main, ["train", "--data", str(SAMPLE / "train.svm"), "--trees", "2", "-q"])
    assert ranks.exit_code == 0
    rows = (SAMPLE / "test.svm").read_text().splitlines()
    Path("wide.svm").write_text("".join(row.split(" #")[0] + " 99:1\n" for row in rows))
    Path("narrow.svm").write_text("".join(" ".join(row.split()[:5]) + "\n" for row in rows))
    Path("foreign.svm").write_text("".join(" ".join(row.split()[:2]) + " 99:1\n" for row in rows))
    wanted = call("--data", str(SAMPLE / "test.svm"), "-m", "model.json")
    wide = call("--data", "wide.svm", "-m", "model.json")
    assert wide.stdout.splitlines()[1:] == wanted.stdout.splitlines()[1:]  # but for the name of the data
    assert "'99'" in wide.stderr
    assert "warning" not in wanted.stderr + call("--data", "narrow.svm", "-m", "model.json").stderr
    assert "no feature of the data is in the model" in refused("--data", "foreign.svm", "-m", "model.json")
    assert "s.json" in refused("--data", "wide.svm", "-m", "s.json")
    assert "wide.svm" in refused("--data", "wide.svm", "-m", "wide.svm")


def test_several_lists_of_measures_are_one() -> None:
    given = write("0 1 / 1 0 0")
    assert list(measured(*given, "--metric", "map", "--metric", "ndcg@2,map")) == ["map", "ndcg@2"]


def test_columns_of_the_model_that_a_table_lacks_are_told_and_refused_by_strict() -> None:
    Path("ab.csv").write_text("label,qid,a,b\n2,1,5,9\n0,1,5,4\n0,2,5,1\n1,2,5,7\n")
    Path("a.csv").write_text("label,qid,a\n2,3,5\n0,3,4\n")
    assert CliRunner().invoke(main, ["train", "--data", "ab.csv", "--min-docs", "1", "-q"]).exit_code == 0
    told = call("--data", "ab.csv", "a.csv", "-m", "model.json").stderr
    assert "lmart: warning: a.csv: 1 of 2 features of the model has no column: 'b'; counted as 0\n" in told
    assert "ab.csv: " not in told
    line = refused("--data", "ab.csv", "a.csv", "-m", "model.json", "--strict")
    assert "a.csv: 1 of 2 features of the model has no column: 'b'; add it, or do without --strict" in line
    assert "warning" not in call("--data", "ab.csv", "-m", "model.json", "--strict").stderr


# Conventions, by worked values


@pytest.mark.parametrize(("empty", "value"), [("skip", 0.815465), ("one", 0.876977), ("zero", 0.543643)])
def test_queries_with_nothing_relevant_count_as_asked(empty: str, value: float) -> None:
    given = write("0 1 / 1 0 / 0 0")
    content = strict(call(*given, "--metric", "ndcg", "--empty", empty, "--json").stdout)
    assert content["metrics"] == {"ndcg": close(value)}
    assert (content["queries"], content["documents"], content["empty_queries"]) == (3, 6, 1)
    assert content["conventions"]["empty"] == empty
    table = call(*given, "--metric", "ndcg", "--empty", empty).stdout
    assert f"{value:.6f}" in table
    assert f"empty          {empty}" in table
    assert "empty queries  1" in table


def test_data_with_nothing_relevant_at_all() -> None:
    given = write("0 0 / 0")
    assert set(measured(*given).values()) == {0.0}
    assert set(measured(*given, "--empty", "one").values()) == {1.0}
    assert set(measured(*given, "--empty", "skip").values()) == {None}
    assert call(*given, "--empty", "skip").stdout.count("n/a") == 6


def test_ties_are_in_file_order_or_averaged() -> None:
    for labels, scores, in_file_order, average in (
        ("0 0 1", [0.0, 0.0, 0.0], 0.5, 0.710310),
        ("2 0 1", [5.0, 5.0, 1.0], 0.963940, 0.811471),
    ):
        given = write(labels, scores)
        assert measured(*given, "--metric", "ndcg") == {"ndcg": close(in_file_order)}
        assert measured(*given, "--metric", "ndcg", "--ties", "average") == {"ndcg": close(average)}


def test_a_cutoff_beyond_the_list_takes_the_whole_list() -> None:
    assert measured(*write("0 1"), "--metric", "ndcg@10") == {"ndcg@10": close(0.630930)}
    assert measured(*write("1"), "--metric", "ndcg@5") == {"ndcg@5": 1.0}


def test_several_cutoffs_in_any_order_do_not_disturb_each_other() -> None:
    given = write("1 0 0 2")
    for metric in ("ndcg@4,ndcg@1,ndcg@2", "ndcg@1,ndcg@2,ndcg@4", "ndcg@4,NDCG@1,ndcg@2,ndcg@4"):
        values = measured(*given, "--metric", metric)
        assert values == {"ndcg@1": close(0.333333), "ndcg@2": close(0.275412), "ndcg@4": close(0.631251)}
    assert list(measured(*given, "--metric", "ndcg@4,ndcg@1")) == ["ndcg@4", "ndcg@1"]


@pytest.mark.parametrize("name", ["ndcg@0", "ndcg@-1", "ndcg@x", "", "gini"])
def test_bad_measures_are_usage_errors_before_data_is_read(name: str) -> None:
    line = refused("--data", "no.svm", "--scores", "no.txt", "--metric", f"map,{name}", status=2)
    assert f"'{name}'" in line
    assert line.endswith("see 'lmart eval --help'")


def test_gains() -> None:
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


def test_the_gain_is_that_of_the_model_unless_another_is_given() -> None:
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
    for form, gain in (("lightgbm", "linear"), ("xgboost", "linear"), ("xgboost-dump", "exp2"), ("ranklib", "exp2")):
        convert = ["convert", "model.json", "other", "--to", form, "-qq"]
        assert CliRunner().invoke(main, convert, catch_exceptions=False).exit_code == 0
        converted = call("--data", "d.svm", "-m", "other", "--json")
        assert strict(converted.stdout)["conventions"]["gain"] == gain
        said = "lmart: other does not say with which gain it was trained; measuring with exp2 (--gain says another)"
        assert (said in converted.stderr) == (gain == "exp2")
        assert said not in call("--data", "d.svm", "-m", "other", "--metric", "map").stderr
    table = ",".join(map(str, range(51)))
    assert "trained with" not in call("--data", "d.svm", "-m", "model.json", "--gain", table).stderr
    both = call("--data", "d.svm", "-m", "other", "model.json", "--json")  # the gain of the model that says it
    assert "measuring with linear" in both.stderr


def test_means_are_over_queries_unless_weights_are_given() -> None:
    given = [*write("0 1 / " + "1 " * 50 + "0 " * 50), "--metric", "ndcg"]
    assert measured(*given) == {"ndcg": close(0.815465)}
    assert "queries        2\n" in call(*given).stdout
    Path("queries.w").write_text("3\n1\n")
    Path("rows.w").write_text("2\n4\n" + "1\n" * 100)
    for file, kind in (("queries.w", "query"), ("rows.w", "row")):
        assert measured(*given, "--weights", file) == {"ndcg": close(0.723197)}
        assert strict(call(*given, "--weights", file, "--json").stdout)["conventions"]["weights"] == kind
        assert f"weights        one a {kind}\n" in call(*given, "--weights", file).stdout


def test_the_ideal_of_a_query_is_that_of_its_own_file() -> None:
    write("2 0", name="a")
    values = [measured(*write(labels), "--metric", "ndcg")["ndcg"] for labels in ("2 0", "1 0", "0 1")]
    assert values == [1.0, 1.0, close(0.630930)]


def test_log_model_and_scores_agree_on_the_sample() -> None:
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
