"""lmart eval --html: what the page says is what --json prints; one file that needs nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import run, start
from helpers.pages import Page, check_page
from helpers.paths import SAMPLE

from lmart.errors import visible
from lmart.reports.pages import charts

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")
DATA = SAMPLE / "test.svm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, the report of its run, and the scores of another."""
    folder = tmp_path_factory.mktemp("page")
    data: list[str | Path] = ["--data", SAMPLE / "train.svm", "--valid", SAMPLE / "vali.svm"]
    some = ["--trees", "20", "--rankers", "2", "--early-stop", "5"]
    run("train", "-q", *data, *some, "--report", folder / "run.json", "-o", folder / "model.json")
    scores = [line.split(" 2:")[0].split("1:")[-1] for line in DATA.read_text().splitlines()]
    (folder / "scores.txt").write_text("\n".join(scores) + "\n")
    return folder


@pytest.fixture(scope="module")
def both(folder: Path) -> tuple[str, dict[str, Any]]:
    """The page of two systems with the run of one, and the object that --json prints beside it."""
    systems: list[str | Path] = ["--model", folder / "model.json", "--scores", folder / "scores.txt"]
    more: list[str | Path] = ["--html", folder / "page.html", "--train-report", folder / "run.json", "--json"]
    printed = run("eval", "-q", "--data", DATA, *systems, *more).stdout
    return (folder / "page.html").read_text(), json.loads(printed)


def test_the_page_holds_what_json_prints(both: tuple[str, dict[str, Any]]) -> None:
    page, printed = both
    assert Page(page).content["evaluation"] == printed


def test_the_tables_have_the_numbers_of_the_json(both: tuple[str, dict[str, Any]]) -> None:
    page, printed = Page(both[0]), both[1]
    first, second = printed["systems"]
    header, *rows = page.tables["means"]
    assert header == ["measure", first["name"], second["name"]]
    assert rows == [[name, first["metrics"][name], second["metrics"][name]] for name in first["metrics"]]
    assert [row[1] for row in page.shown["means"][1:]] == [
        f"{value:.6f} {low:.4f} to {high:.4f}"
        for name, value in first["metrics"].items()
        for low, high in [first["summary"][name]["interval"]]
    ]
    for number, system in enumerate(printed["systems"], 1):
        _, *rows = page.tables[f"summary-{number}"]
        assert rows == [
            [name, one["mean"], one["interval"], one["median"], one["std"], one["count"]]
            for name, one in system["summary"].items()
        ]
    _, *rows = page.tables["comparisons"]
    keys = ["measure", "system", "difference", "interval", "wins", "ties", "losses", "p_randomization", "p_t"]
    assert rows == [[one[key] for key in keys] for one in printed["comparisons"]]
    for number, one in enumerate(printed["comparisons"], 1):
        if one["gained"] or one["lost"]:
            _, *rows = page.tables[f"moved-{number}"]
            moved = [("gained", query) for query in one["gained"]] + [("lost", query) for query in one["lost"]]
            assert rows == [[query["qid"], way, query["difference"]] for way, query in moved]


def test_the_page_says_what_the_numbers_say(both: tuple[str, dict[str, Any]]) -> None:
    page, printed = both
    (one,) = [one for one in printed["comparisons"] if one["measure"] == "ndcg@10"]
    (said,) = re.findall(r'<p class="verdict">(.*?)</p>', page)
    assert f"scores.txt loses {-one['difference']:.4f} ndcg@10 against model.json" in said
    assert said.endswith("worse, by more than chance explains.") and one["p_holm"] < 0.05
    charts_of_differences = re.findall(r'aria-label="(Differences in [^ ]*)', page)
    assert len(charts_of_differences) == len(printed["systems"][0]["metrics"])
    assert charts_of_differences[0] == "Differences in ndcg@10"


def test_all_pairs_are_a_matrix_and_the_page_has_a_title(folder: Path, tmp_path: Path) -> None:
    scores = (folder / "scores.txt").read_text()
    (tmp_path / "turned.txt").write_text("\n".join(str(-float(score)) for score in scores.split()))
    systems = ["--scores", f"a={folder / 'scores.txt'}", f"b={tmp_path / 'turned.txt'}", f"c={folder / 'scores.txt'}"]
    more: list[str | Path] = [
        "--all-pairs",
        "--metric",
        "map",
        "--title",
        "Old <and> new",
        "--html",
        tmp_path / "page.html",
        "--json",
    ]
    printed = json.loads(run("eval", "-q", "--data", DATA, *systems, *more).stdout)
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert page.texts[0] == page.content["title"] == "Old <and> new" and "<title>Old &lt;and&gt; new</title>" in text
    header, *rows = page.tables["matrix-1"]
    assert header == ["system", "a", "b", "c"]
    found = {(one["system"], one["baseline"]): one["difference"] for one in printed["comparisons"]}
    for row in rows:
        for other, cell in zip(header[1:], row[1:], strict=True):
            if (row[0], other) in found:
                assert cell == found[row[0], other]
            elif (other, row[0]) in found:
                assert cell == -found[other, row[0]]
            else:
                assert cell == "" and other == row[0]
    assert "against" in page.tables["comparisons"][0] and "p (Holm)" in page.tables["comparisons"][0]
    assert str(tmp_path) not in re.sub(r"(?s)<script.*?</script>", "", text)  # names of files, not where they are
    said = run("eval", "--data", DATA, *systems, "--title", "x", status=2).stderr
    assert "--title is that of the page; give --html too" in said


def test_the_curve_goes_through_the_measures(both: tuple[str, dict[str, Any]]) -> None:
    page, printed = Page(both[0]), both[1]
    _, *rows = page.tables["ndcg-by-cutoff"]
    curves = page.content["ndcg_by_cutoff"]
    assert rows == [
        [str(points[0]["cutoff"]), *(cell for point in points for cell in (point["mean"], point["interval"]))]
        for points in zip(*(curve["points"] for curve in curves), strict=True)
    ]
    for curve, system in zip(curves, printed["systems"], strict=True):
        by_cutoff = {point["cutoff"]: point for point in curve["points"]}
        assert sorted(by_cutoff) == list(range(1, 21))
        for cutoff in (1, 3, 5, 10):
            summary = system["summary"][f"ndcg@{cutoff}"]
            assert by_cutoff[cutoff] == {"cutoff": cutoff, "mean": summary["mean"], "interval": summary["interval"]}


def test_every_query_is_in_the_distribution(both: tuple[str, dict[str, Any]]) -> None:
    page, printed = Page(both[0]), both[1]
    found = {one["measure"]: one for one in page.content["distributions"]}
    assert list(found) == list(printed["systems"][0]["metrics"])
    for one in found.values():
        assert [sum(counts) for counts in one["counts"].values()] == [printed["queries"]] * 2
    _, *rows = page.tables["queries-1"]  # of ndcg@10, which is shown at once
    assert [row[2:] for row in rows] == [list(pair) for pair in zip(*found["ndcg@10"]["counts"].values(), strict=True)]


def test_the_run_is_that_of_the_report(folder: Path, both: tuple[str, dict[str, Any]]) -> None:
    page, report = Page(both[0]), json.loads((folder / "run.json").read_text())
    for number in (1, 2):
        _, *rows = page.tables[f"curve-{number}"]
        assert rows == [
            [str(one["round"]), one["training"], *one["validation"]]
            for one in report["rounds"]
            if one["ranker"] == number
        ]
    _, *rows = page.tables["features"]
    assert [row[:3] for row in rows] == [
        [name, one["gain_share"], one["splits"]] for name, one in report["importance"].items()
    ][: len(rows)]
    shown = json.loads(run("show", folder / "run.json", "--json").stdout)
    del shown["kind"]
    assert page.content["train_report"] == shown


def test_the_page_needs_nothing_else_and_is_well_formed(both: tuple[str, dict[str, Any]]) -> None:
    check_page(both[0])


def test_charts_take_their_colours_from_the_style_sheet(both: tuple[str, dict[str, Any]]) -> None:
    drawings = "".join(re.findall(r"<svg.*?</svg>", both[0], re.DOTALL))
    assert "var(--s1)" in drawings and "currentColor" in drawings
    assert not re.search(r"#[0-9a-f]{6}", re.sub(r'(id|href)="[^"]*"', "", drawings))


def test_one_system_and_no_run(folder: Path) -> None:
    page = Page(run("eval", "-q", "--data", DATA, "-m", folder / "model.json", "--html", "-").stdout)
    (system,) = page.content["evaluation"]["systems"]
    _, *rows = page.tables["means"]
    assert [row[1] for row in rows] == list(system["metrics"].values())
    assert "comparisons" not in page.tables and "features" not in page.tables


def test_many_systems_stand_below_each_other(folder: Path, tmp_path: Path) -> None:
    scores = (folder / "scores.txt").read_text()
    paths = [tmp_path / f"s{k}.txt" for k in range(14)]
    for k, path in enumerate(paths):
        path.write_text("\n".join(str(float(score) * (-1) ** k) for score in scores.split()))
    measured: list[str | Path] = ["eval", "-q", "--data", DATA, "--scores", *paths, "--no-compare"]
    page = Page(run(*measured, "--html", "-").stdout)
    systems = page.content["evaluation"]["systems"]
    header, *rows = page.tables["means"]
    assert header == ["system", *systems[0]["metrics"]]
    assert rows == [[one["name"], *one["metrics"].values()] for one in systems]
    marked = [
        place for name, given in page.elements if name == "td" for place in [given.get("class")] if place == "best"
    ]
    assert len(marked) == 7 * 6  # all that are equally good, in each measure
    assert "Evaluation of 14 systems" in page.texts and "comparisons" not in page.tables
    assert not page.unclosed


def test_the_report_is_as_without_a_page(folder: Path, tmp_path: Path) -> None:
    measured: list[str | Path] = ["eval", "-q", "--data", DATA, "-m", folder / "model.json", "--metric", "map,ndcg@7"]
    page = tmp_path / "page.html"
    assert run(*measured, "--html", page).stdout == run(*measured).stdout
    assert run(*measured, "--html", page, "--json").stdout == run(*measured, "--json").stdout
    like = [*measured, "--like", "lightgbm", "--json"]
    assert run(*like, "--html", page).stdout == run(*like).stdout
    by_query = run(*measured, "--per-query", "-").stdout
    assert run(*measured, "--html", page, "--per-query", "-").stdout == by_query
    assert list(Page(page.read_text()).content["evaluation"]["metrics"]) == ["map", "ndcg@7"]


def test_the_page_never_changes_a_measure(tmp_path: Path) -> None:
    data, scores = tmp_path / "d.svm", tmp_path / "scores"
    data.write_text("2 qid:1 1:0\n1 qid:1 1:0\n0 qid:1 1:0\n1 qid:2 1:0\n0 qid:2 1:0\n")
    scores.write_text(".1\n.9\n.5\n.3\n.7\n")
    measured: list[str | Path] = ["eval", "-q", "--data", data, "--scores", scores, "--like", "lightgbm", "--json"]
    measured += ["--gain", "0,1,0", "--metric", "ndcg@5"]
    printed = run(*measured).stdout
    assert json.loads(printed)["metrics"]["ndcg@5"] == pytest.approx(1.107946127)
    assert run(*measured, "--html", tmp_path / "page.html").stdout == printed


def test_the_gain_of_the_curve_can_be_given(folder: Path, tmp_path: Path) -> None:
    linear: list[str | Path] = ["--trees", "2", "--rankers", "1", "--gain", "linear", "-o", tmp_path / "linear.json"]
    run("train", "-q", "--data", SAMPLE / "train.svm", *linear)
    measured: list[str | Path] = ["eval", "-q", "--data", DATA, "-m", folder / "model.json", tmp_path / "linear.json"]
    measured += ["--metric", "map"]
    page: list[str | Path] = ["--html", tmp_path / "page.html"]
    assert "say with --gain" in run(*measured, *page, status=1).stderr
    printed = run(*measured, *page, "--gain", "linear", "--json").stdout
    assert json.loads(printed)["systems"] == json.loads(run(*measured, "--json").stdout)["systems"]
    assert "--gain counts in ndcg" in run(*measured, "--gain", "linear", status=2).stderr


def test_names_that_look_like_html_or_mathematics(tmp_path: Path) -> None:
    data, scores = tmp_path / "d<b>&.svm", tmp_path / "_$x^2$ <i>\u6587.txt"
    data.write_text("2 qid:</script> 1:1\n0 qid:</script> 1:2\n1 qid:b 1:1\n0 qid:b 1:3\n")
    scores.write_text("1\n2\n3\n4\n")
    other = tmp_path / "other.txt"
    other.write_text("4\n3\n2\n1\n")
    page = run("eval", "-q", "--data", data, "--scores", scores, "--scores", other, "--html", "-").stdout
    read = Page(page)
    assert read.content["evaluation"]["systems"][0]["name"] == scores.name
    assert read.tables["means"][0][1] == scores.name
    assert "<i>" not in page and "</script> " not in page
    assert "_$x^2$" in "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))


def test_names_that_cannot_be_printed_are_escaped_in_charts_too(tmp_path: Path) -> None:
    data, scores = tmp_path / "d.svm", tmp_path / "bad\udcff\x01.txt"
    data.write_text("2 qid:a 1:1\n0 qid:a 1:2\n")
    try:
        scores.write_text("1\n2\n")
    except OSError:
        pytest.skip("the file system holds no such name")
    other = tmp_path / "other.txt"
    other.write_text("2\n1\n")
    page = run("eval", "-q", "--data", data, "--scores", scores, other, "--html", "-").stdout
    assert r"bad\udcff\x01.txt" in "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert Page(page).tables["means"][0][1] == r"bad\udcff\x01.txt"


@pytest.mark.parametrize("hostile", ["bell\x07", "escape\x1b[31m", "half\ud800"])
def test_what_a_report_holds_cannot_reach_the_page_unescaped(folder: Path, tmp_path: Path, hostile: str) -> None:
    report = json.loads((folder / "run.json").read_text())
    for ranker in report["rankers"]:
        ranker["objective"] = ranker["tree"] = hostile
    (tmp_path / "run.json").write_text(json.dumps(report).replace("ndcg@10", json.dumps(hostile)[1:-1]))
    measured = ("eval", "-q", "--data", DATA, "--model", folder / "model.json", "--metric", "map", "--html", "-")
    page = run(*measured, "--train-report", tmp_path / "run.json").stdout
    assert hostile not in page
    assert all(one.isprintable() or one == "\n" for one in page)
    assert len(re.findall(f'aria-label="Learning curves[^"]*{re.escape(visible(hostile))}', page)) == 2


@pytest.mark.slow
def test_the_same_bytes_whatever_the_user_has_set(folder: Path, tmp_path: Path) -> None:
    settings = tmp_path / "matplotlibrc"
    settings.write_text("svg.fonttype: path\nlines.linewidth: 9\nfont.size: 30\ntext.usetex: True\n")
    pages = set()
    for seed, more in (("1", {}), ("2", {"MATPLOTLIBRC": str(settings), "LC_ALL": "C", "MPLBACKEND": "agg"})):
        command: list[str | Path] = ["eval", "-q", "--data", DATA, "-m", folder / "model.json", "--html", "-"]
        with start(*command, environment={"PYTHONHASHSEED": seed, **more}) as process:
            page, said = process.communicate()
        assert process.returncode == 0 and said == b""
        pages.add(page)
    assert len(pages) == 1 and len(pages.pop()) > 10_000


def test_without_matplotlib(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none_found(path: str) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        real(path)

    real = charts.require_matplotlib
    monkeypatch.setattr("lmart.cli.eval_output.require_matplotlib", none_found)
    command: list[str | Path] = [
        "eval",
        "-q",
        "--data",
        tmp_path / "none.svm",
        "-m",
        folder / "model.json",
        "--html",
        tmp_path / "p.html",
    ]
    said = run(*command, status=1).stderr
    assert said == (
        f"lmart: error: {tmp_path / 'p.html'}: a page needs the package matplotlib: pip install matplotlib\n"
    )


@pytest.mark.parametrize("option", ["--html", "--per-query"])
def test_an_empty_name_is_refused_before_any_work(option: str) -> None:
    said = run("eval", "--data", "none.svm", "-m", "none.json", option, "", status=1).stderr
    assert said == "lmart: error: the name of the output is empty; give a file name or '-'\n"


def test_nothing_is_left_behind(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("older")
    measured: list[str | Path] = ["eval", "-q", "--data", DATA, "-m", folder / "model.json", "--html", page]
    run(*measured, "--train-report", folder / "model.json", status=1)
    run(*measured, "--per-query", tmp_path / "none" / "q.tsv", status=1)
    assert page.read_text() == "older" and [one.name for one in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--html", "-", "--json"], "--html - and --json both write to standard output"),
        (["--html", "-", "--per-query", "-"], "--html - and --per-query - both write to standard output"),
        (["--html", "x", "--per-query", "x"], "--html and --per-query both write to x"),
        (["--html", "x", "--per-query", "./x"], "--html and --per-query both write to x"),
        (["--train-report", "r"], "--train-report is shown on the page; give --html too"),
        (["--html", "x", "--train-report", "-", "--scores", "-"], "only one input can be '-'"),
    ],
)
def test_wrong_usage(options: list[str], words: str) -> None:
    systems: list[str | Path] = [] if "--scores" in options else ["-m", "m"]
    assert words in run("eval", "--data", "d", *systems, *options, status=2).stderr


def test_a_report_that_is_none(folder: Path, tmp_path: Path) -> None:
    measured: list[str | Path] = [
        "eval",
        "-q",
        "--data",
        DATA,
        "-m",
        folder / "model.json",
        "--html",
        tmp_path / "p.html",
    ]
    said = run(*measured, "--train-report", folder / "model.json", status=1).stderr
    assert said.endswith("model.json: this is not a training report; give a file that lmart train --report wrote\n")
