"""lmart eval of several models and files of scores, and of groups of queries."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import click
import pytest
from helpers.commands import run
from helpers.evaluation import call, close, measured, refused, strict, write

from lmart.cli.terminal import layout

pytestmark = pytest.mark.usefixtures("in_folder")


def systems(*arguments: str) -> list[dict[str, Any]]:
    found = strict(call(*arguments, "--json").stdout)["systems"]
    assert isinstance(found, list)
    return found


def two() -> list[str]:
    """Data, and two files of scores of which the second ranks worse."""
    given = write("2 0 1 / 1 0", [3.0, 2.0, 1.0, 2.0, 1.0])
    Path("worse.txt").write_text("1\n3\n2\n1\n2\n")
    return [*given, "--scores", "worse.txt"]


def train(data: str, model: str, *arguments: str) -> None:
    run("train", "--data", data, "--trees", "3", "--min-docs", "1", "--rankers", "1", "-q", "--out", model, *arguments)


def graded(columns: tuple[int, ...] = (1, 2, 3), name: str = "g.svm", largest: int = 4) -> str:
    """Rows of six queries whose labels follow the first of the columns."""
    rows = []
    for q in range(1, 7):
        for i in range(8):
            features = " ".join(f"{column}:{(i * column + q) % 8}" for column in columns)
            rows.append(f"{min((i * columns[0] + q) % 8 // 2 + 1, largest)} qid:{q} {features}\n")
    Path(name).write_text("".join(rows))
    return name


def test_a_system_has_the_name_that_it_is_given() -> None:
    given = two()
    Path("a=b.txt").write_text("1\n3\n2\n1\n2\n")
    found = systems(*given[:2], "--scores", "old=worse.txt", "worse.txt", "a=b.txt", "./a=b.txt", "new one=a=b.txt")
    assert [(one["name"], one["path"]) for one in found] == [
        ("old", "worse.txt"),
        ("worse.txt", "worse.txt"),
        ("a=b.txt", "a=b.txt"),
        ("./a=b.txt", "./a=b.txt"),
        ("new one", "a=b.txt"),
    ]
    assert "two systems are named 'x'" in refused(*given[:2], "--scores", "x=worse.txt", "x=worse.txt", status=2)
    assert "nowhere.txt: there is no such file" in refused(*given[:2], "--scores", "x=nowhere.txt")


def test_the_facts_say_which_file_has_which_name() -> None:
    given = two()
    shown = call(*given[:2], "--scores", "old=worse.txt", "worse.txt", "worse.txt").stdout.splitlines()
    files = [line.split()[1] for line in shown if line.startswith("scores ")]
    assert files == ["old=worse.txt", "worse.txt", "worse.txt#2=worse.txt"]


def test_systems_stand_in_the_order_of_the_command_line() -> None:
    data = graded()
    train(data, "model.json")
    run("predict", "-m", "model.json", "--data", data, "-o", "same.txt")
    Path("other.txt").write_text("".join(f"{i}\n" for i in range(48)))
    found = systems("--scores", "other.txt", "--data", data, "-m", "model.json", "--scores", "same.txt")
    assert [(one["kind"], one["path"]) for one in found] == [
        ("scores", "other.txt"),
        ("model", "model.json"),
        ("scores", "same.txt"),
    ]
    assert found[1]["metrics"] == found[2]["metrics"] != found[0]["metrics"]
    several = systems("--data", data, "--scores", "other.txt", "same.txt", "-m", "model.json")
    assert [one["name"] for one in several] == ["other.txt", "same.txt", "model.json"]
    for one in several:
        assert one["metrics"] == measured("--data", data, f"--{one['kind']}", one["path"])


def test_the_json_of_several_systems() -> None:
    content = strict(call(*two(), "--json").stdout)
    assert "metrics" not in content
    assert (content["queries"], content["documents"], content["data"]) == (2, 5, ["d.svm"])
    assert [one["name"] for one in content["systems"]] == ["d.txt", "worse.txt"]
    assert content["systems"][1]["metrics"]["mrr"] == 0.5


def test_a_pipe_gets_a_column_a_system_whatever_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a name that is not short at all").mkdir()
    long = "a name that is not short at all/scores of a system with a long name.txt"
    given = two()
    Path(long).write_text(Path("d.txt").read_text())
    outputs = set()
    for columns in ("20", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        outputs.add(call(*given, "--scores", long, "--metric", "map,mrr").stdout)
    (shown,) = outputs
    facts, table = shown.split("\n\n")[:2]
    assert facts.startswith(
        f"data           d.svm\nscores         d.txt\nscores         worse.txt\nscores         {long}\n"
    )
    assert table.splitlines()[:3] == [
        "                  d.txt  worse.txt  scores of a system with a long name.txt",
        f"map            0.916667   0.541667  {'0.916667':>39}",
        f"mrr            1.000000   0.500000  {'1.000000':>39}",
    ]


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_terminal_gets_a_table_that_fits_and_whole_numbers(
    n: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    given = write("2 0 1 / 1 0", [3.0, 2.0, 1.0, 2.0, 1.0])[:2]
    for i in range(n):
        name = f"scores-of-a-system-{i}-with-a-long-name.txt"
        Path(name).write_text("3\n2\n1\n2\n1\n")
        given += ["--scores", name]
    shown = call(*given, "--metric", "ndcg@10,map,mrr,p@5").stdout
    table = shown.split("\n\n", 1)[1].split("\n\nDifferences")[0]
    assert table.count("0.981970") == table.count("0.916667") == table.count("1.000000") == n
    assert max(map(len, click.unstyle(shown).splitlines())) <= width
    assert ("the systems as listed above" in shown) == ("#1" in table)


def test_a_file_given_twice_and_files_of_one_name_are_told_apart() -> None:
    given = two()
    Path("a").mkdir()
    Path("a/d.txt").write_text(Path("worse.txt").read_text())
    names = [one["name"] for one in systems(*given, "--scores", "a/d.txt", "--scores", "worse.txt")]
    assert names == ["d.txt", "worse.txt", "a/d.txt", "worse.txt#2"]


def test_only_one_system_may_be_standard_input() -> None:
    given = two()
    scores = Path("worse.txt").read_text()
    wanted = systems(*given)[1]["metrics"]
    content = strict(call("--data", "d.svm", "--scores", "d.txt", "-", "--json", stdin=scores).stdout)
    assert content["systems"][1].pop("summary")
    assert content["systems"][1] == {"name": "-", "kind": "scores", "path": "-", "metrics": wanted}
    assert "only one input" in refused("--data", "d.svm", "--scores", "-", "-", status=2)


# Several models


def test_each_model_finds_its_own_features_in_data_read_once() -> None:
    first, second = graded((1, 2), "first.svm"), graded((3, 2), "second.svm")
    train(first, "first.json")
    train(second, "second.json")
    both = graded((1, 2, 3), "both.svm")
    result = call("--data", both, "-m", "first.json", "second.json", "--json")
    told = result.stderr
    assert "'3'" in told and "(model first.json)" in told
    assert "'1'" in told and "(model second.json)" in told
    for one in strict(result.stdout)["systems"]:
        assert one["metrics"] == measured("--data", both, "-m", one["path"])
    assert "do without --strict" in refused("--data", both, "-m", "first.json", "second.json", "--strict")


def test_models_of_different_columns_of_a_table() -> None:
    data = graded((1, 2, 3))
    run("convert", data, "g.csv")
    for model, ignored in (("a.json", "3"), ("b.json", "1")):
        run(
            "train",
            "--data",
            "g.csv",
            "--ignore-columns",
            ignored,
            "--trees",
            "2",
            "--min-docs",
            "1",
            "-q",
            "--out",
            model,
        )
    found = systems("--data", "g.csv", "-m", "a.json", "b.json", "-q")
    for one in found:
        assert one["metrics"] == measured("--data", "g.csv", "-m", one["path"], "-q")


def test_names_of_a_later_table_decide_what_those_of_the_first_stand_for() -> None:
    """A number among all names makes names count as numbers: 'u', the first column, is not feature 1 then."""
    train(graded(), "numbers.json")
    head, *rows = "label,qid,u,v,w,3", *(f"{i % 4},{i // 8},{i * 5 % 8},{i % 3},{i % 5}" for i in range(32))
    Path("both.csv").write_text("\n".join([head, *(f"{row},{i // 16 * 7}" for i, row in enumerate(rows))]))
    Path("first.csv").write_text("\n".join(["label,qid,u,v,w", *rows[:16]]))
    Path("later.csv").write_text("\n".join([head, *(f"{row},7" for row in rows[16:])]))
    train("both.csv", "names.json")
    models = ("-m", "numbers.json", "names.json")
    found = systems("--data", "first.csv", "later.csv", *models, "-q")
    whole = systems("--data", "both.csv", *models, "-q")
    assert [one["metrics"] for one in found] == [one["metrics"] for one in whole]


def test_damaged_data_is_told_before_a_damaged_model() -> None:
    data = graded()
    train(data, "m.json")
    model = json.loads(Path("m.json").read_text())
    for tree in model["trees"]:
        tree["leaf_values"] = [1.7e308] * len(tree["leaf_values"])
    Path("m.json").write_text(json.dumps(model))
    assert "the model is damaged" in refused("--data", data, "-m", "m.json")
    Path("bad.svm").write_text("1 qid:9 1:x\n")
    assert "bad.svm:1: value 'x'" in refused("--data", data, "bad.svm", "-m", "m.json")


def test_models_of_different_gains_need_a_gain() -> None:
    data = graded()
    train(data, "exp2.json")
    train(data, "linear.json", "--gain", "linear")
    both = ["--data", data, "-m", "exp2.json", "linear.json"]
    line = refused(*both)
    assert "linear.json: was trained with the gain linear, and exp2.json with exp2; say with --gain" in line
    content = call(*both, "--gain", "linear", "--json")
    assert strict(content.stdout)["conventions"]["gain"] == "linear"
    assert "exp2.json was trained with exp2" in content.stderr
    call(*both, "--metric", "map")
    assert len(systems("--data", data, "-m", "exp2.json", "exp2.json")) == 2


def test_models_of_different_scales_of_err_need_one() -> None:
    rows = Path(graded()).read_text()
    for largest in ("5", "6"):
        Path("top.svm").write_text(rows.replace("4 qid:1 ", f"{largest} qid:1 "))
        train("top.svm", f"{largest}.json", "--objective", "err", "--metric", "err")
    train("g.svm", "4.json", "--objective", "err", "--metric", "err")
    line = refused("--data", "g.svm", "-m", "5.json", "6.json", "--metric", "err@5,map")
    assert "6.json: was trained with labels up to 6, and 5.json with labels up to 5" in line
    assert "err@10(max=6)" in line
    call("--data", "g.svm", "-m", "5.json", "6.json", "--metric", "err@5(max=6),map")
    call("--data", "g.svm", "-m", "5.json", "6.json", "--metric", "map")
    content = strict(call("--data", "g.svm", "-m", "4.json", "5.json", "--metric", "err", "--json").stdout)
    assert content["conventions"]["err"] == "(2^label - 1) / 2^5"


# Queries one by one


def test_queries_of_several_systems_carry_their_names() -> None:
    given = [*two(), "--metric", "mrr"]
    call(*given, "--per-query", "q.tsv")
    assert Path("q.tsv").read_text().splitlines() == [
        "system\tqid\tmrr",
        "d.txt\t1\t1.0",
        "d.txt\t2\t1.0",
        "worse.txt\t1\t0.5",
        "worse.txt\t2\t0.5",
    ]


@pytest.mark.parametrize("name", ["q.jsonl", "q.ndjson", "q.JSONL.gz"])
def test_queries_as_json_lines_by_the_name_of_the_file(name: str) -> None:
    given = write("0 1 / 0 0", [2.0, 1.0, 2.0, 1.0])
    call(*given, "--metric", "mrr,dcg", "--empty", "skip", "--per-query", name)
    content = Path(name).read_bytes()
    lines = (gzip.decompress(content) if name.endswith("gz") else content).decode().splitlines()
    assert list(map(json.loads, lines)) == [
        {"qid": "1", "mrr": 0.5, "dcg": close(0.63093)},
        {"qid": "2", "mrr": None, "dcg": 0.0},
    ]
    call(*given, "--scores", "d.txt", "--metric", "mrr", "--per-query", "two.jsonl")
    assert json.loads(Path("two.jsonl").read_text().splitlines()[0]) == {"system": "d.txt", "qid": "1", "mrr": 0.5}


# Groups of queries


def test_groups_are_measured_alone() -> None:
    given = [*write("0 1 / 1 0 / 0 0 1 / 1"), "--metric", "mrr"]
    Path("g.tsv").write_text("qid\tgroup\n2\thead\n1\ttail\n3\ttail\n9\thead\n")
    result = call(*given, "--by", "g.tsv", "--json")
    assert "g.tsv: 1 query not in d.svm" in result.stderr
    assert "g.tsv: 1 query of d.svm without a group, (none): '4'" in result.stderr
    groups = strict(result.stdout)["groups"]
    assert [(one["group"], one["queries"]) for one in groups] == [("tail", 2), ("head", 1), ("(none)", 1)]
    assert [one["systems"][0]["metrics"]["mrr"] for one in groups] == [close(5 / 12), 1.0, 1.0]
    assert strict(result.stdout)["metrics"] == measured(*given)
    table = call(*given, "--by", "g.tsv").stdout.split("\n\n")
    assert table[2].splitlines()[:2] == ["group   queries       mrr", "tail          2  0.416667"]
    assert "groups" not in strict(call(*given, "--json").stdout)


def test_groups_count_weights_and_conventions() -> None:
    given = [*write("0 1 / 1 0 / 0 0"), "--metric", "mrr,err", "--empty", "skip"]
    Path("g.tsv").write_text("1\ta\n2\ta\n3\tb\n")
    Path("w.txt").write_text("3\n1\n5\n")
    groups = strict(call(*given, "--weights", "w.txt", "--by", "g.tsv", "--json").stdout)["groups"]
    assert groups[0]["systems"][0]["metrics"]["mrr"] == close((3 * 0.5 + 1) / 4)
    assert groups[1]["empty_queries"] == 1
    assert groups[1]["systems"][0]["metrics"] == {"mrr": None, "err": None}


def test_groups_of_several_systems() -> None:
    given = [*two(), "--metric", "map,mrr"]
    Path("g.tsv").write_text("1\ta\n2\tb\n")
    groups = strict(call(*given, "--by", "g.tsv", "--json").stdout)["groups"]
    assert [[one["metrics"]["mrr"] for one in group["systems"]] for group in groups] == [[1.0, 0.5], [1.0, 0.5]]
    shown = call(*given, "--by", "g.tsv").stdout
    assert "\n\ngroup b (1 query)\n        d.txt  worse.txt\nmap  1.000000   0.500000\n" in shown


def test_groups_that_name_no_query() -> None:
    given = write("0 1")
    Path("g.tsv").write_text("q1\ta\n")
    line = refused(*given, "--by", "g.tsv")
    assert "g.tsv: no query of the data has a group: it has 'q1', d.svm has '1'" in line


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--data", "d", "--qrels", "q", "--run", "r"], "--data and --qrels both"),
        (["--run", "r"], "give --data with judged documents, or --qrels"),
        (["--qrels", "q"], "give what is to be measured: --run"),
        (["--data", "d"], "one of --model, --scores and --run"),
        (["--qrels", "q", "--scores", "s"], "--qrels goes with --run"),
        (["--data", "d", "--run", "r", "-m", "m"], "not measured next to"),
        (["--data", "d", "--scores", "s", "--missing", "skip"], "--missing needs --run"),
        (["--qrels", "q", "--run", "r", "--weights", "w"], "--weights needs --data"),
        (["--qrels", "q", "--run", "r", "--strict"], "--strict needs --model"),
        (["--qrels", "q", "--run", "r", "--group-by-qid"], "--group-by-qid is for --data"),
        (["--qrels", "q", "--run", "r", "--label-column", "l"], "--label-column is for --data"),
        (["--qrels", "-", "--run", "-"], "only one input"),
    ],
)
def test_inputs_that_do_not_go_together(arguments: list[str], part: str) -> None:
    line = refused(*arguments, status=2)
    assert part in line
    assert line.endswith("see 'lmart eval --help'")
