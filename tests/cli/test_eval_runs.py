"""lmart eval of TREC runs: with qrels, with data, several at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.commands import run, shell
from helpers.evaluation import call, close, measured, refused, strict
from helpers.paths import SAMPLE

QRELS = "q1 0 d1 3\nq1 0 d2 0\nq1 0 d3 2\nq1 0 d4 1\nq1 0 d9 2\nq2 0 d1 1\nq2 0 d2 -1\n"
RUN = "q1 Q0 d4 1 .9 t\nq1 Q0 d1 2 .5 t\nq1 Q0 d2 3 .5 t\nq1 Q0 d3 4 .5 t\nq1 Q0 d5 5 .1 t\n"


@pytest.fixture(autouse=True)
def files(in_folder: Path) -> None:
    Path("q.qrels").write_text(QRELS)
    Path("a.run").write_text(RUN)
    Path("b.run").write_text("q2 Q0 d2 1 2 t\nq2 Q0 d1 1 1 t\nq9 Q0 d1 1 1 t\nq1 Q0 d3 1 1 t\n")


GIVEN = ["--qrels", "q.qrels", "--run", "a.run"]


def queries(*arguments: str) -> dict[str, list[str]]:
    lines = call(*arguments, "--per-query", "-", "-q").stdout.splitlines()[1:]
    return {line.split("\t")[0]: line.split("\t")[1:] for line in lines}


def test_like_trec_eval_by_its_own_numbers() -> None:
    """Printed by trec_eval 10.0."""
    values = measured(*GIVEN, "--like", "trec_eval", "--metric", "map,p@3,recall@5,ndcg,ndcg@1,ndcg@3,mrr")
    assert [round(one, 4) for one in values.values()] == [0.6875, 0.6667, 0.75, 0.6243, 0.3333, 0.4299, 1.0]


def test_the_report_tells_what_holds() -> None:
    result = call(*GIVEN, "--metric", "map")
    assert result.stdout.startswith(
        "qrels          q.qrels\n"
        "run            a.run (5 documents, 1 of them unjudged; 1 of 2 queries)\n"
        "queries        2\n"
        "documents      6\n"
        "empty queries  0 (no label above 0)\n"
        "gain           exp2 (2^label - 1)\n"
    )
    assert "\nties           docid (" in result.stdout
    assert "\nmissing        zero (a query " in result.stdout
    assert "a.run: 1 judged query not in the run, counted as if nothing were found: 'q2'" in result.stderr
    assert "\nmap            0.343750  0.0000..0.6875\n" in result.stdout


def test_the_json_tells_what_a_run_has() -> None:
    content = strict(call(*GIVEN, "--metric", "map", "--json").stdout)
    assert content["data"] == ["q.qrels"]
    assert content["systems"][0].pop("summary")["map"]["count"] == 2
    assert content["systems"] == [
        {
            "name": "a.run",
            "kind": "run",
            "path": "a.run",
            "retrieved": 5,
            "unjudged": 1,
            "missing_queries": 1,
            "unknown_queries": 0,
            "metrics": {"map": close(0.34375)},
        }
    ]
    assert content["metrics"] == content["systems"][0]["metrics"]
    assert (content["conventions"]["ties"], content["conventions"]["missing"]) == ("docid", "zero")


def test_queries_that_a_run_lacks_count_zero_or_are_left_out() -> None:
    assert measured(*GIVEN, "--metric", "map") == {"map": close(0.34375)}
    assert measured(*GIVEN, "--metric", "map", "--missing", "skip") == {"map": close(0.6875)}
    assert measured(*GIVEN, "--metric", "map", "--like", "trec_eval") == {"map": close(0.6875)}
    assert measured(*GIVEN, "--metric", "map", "--like", "trec_eval", "--missing", "zero") == {"map": close(0.34375)}
    assert queries(*GIVEN, "--metric", "mrr", "--missing", "skip") == {"q1": ["1.0"], "q2": ["n/a"]}
    assert "left out of its means: 'q2'" in call(*GIVEN, "--missing", "skip").stderr


def test_queries_are_those_that_count() -> None:
    """As num_q of trec_eval: of two judged queries the run has one; another run has both."""
    counts = ("queries", "documents", "empty_queries")
    Path("q.qrels").write_text(QRELS.replace("q2 0 d1 1", "q2 0 d1 0"))

    def found(*arguments: str) -> list[int]:
        content = strict(call(*GIVEN, "--metric", "map", "--json", *arguments).stdout)
        return [content[one] for one in counts]

    assert found() == [2, 6, 1]
    assert found("--missing", "skip") == found("--like", "trec_eval") == [1, 5, 0]
    assert found("--like", "trec_eval", "--run", "b.run") == [2, 6, 1]
    shown = call(*GIVEN, "--metric", "map", "--like", "trec_eval").stdout
    assert "(5 documents, 1 of them unjudged; 1 of 2 queries)\n" in shown and "\nqueries        1\n" in shown
    Path("g.tsv").write_text("q1\thead\nq2\ttail\n")
    given = [*GIVEN, "--metric", "map", "--like", "trec_eval", "--by", "g.tsv"]
    assert [one["queries"] for one in strict(call(*given, "--json").stdout)["groups"]] == [1, 0]
    assert call(*given).stdout.splitlines()[-2:] == ["head         1  0.687500", "tail         0       n/a"]


def test_a_run_whose_scores_rise_with_its_ranks_is_told_of() -> None:
    Path("b.run").write_text("q1 Q0 d1 1 0.1 t\nq1 Q0 d3 2 0.3 t\nq1 Q0 d4 3 0.7 t\n")
    said = call("--qrels", "q.qrels", "--run", "b.run", "a.run").stderr.splitlines()
    assert [line for line in said if "rise" in line] == [
        "lmart: b.run: scores rise with the ranks, as distances do, but higher scores rank first; "
        "change their sign if low ones are better"
    ]


def test_ties_by_document_in_the_order_of_the_run_or_averaged() -> None:
    """The ties d1, d2, d3 have the labels 3, 0, 2."""
    gained = {}
    for ties in ("docid", "input", "reverse", "average"):
        given = [*GIVEN, "--ties", ties, "--metric", "dcg@2", "--missing", "skip", "--gain", "linear"]
        gained[ties] = measured(*given)["dcg@2"]
    second = 0.6309297535714574
    wanted = {
        "docid": 1 + 2 * second,
        "input": 1 + 3 * second,
        "reverse": 1 + 2 * second,
        "average": 1 + 5 / 3 * second,
    }
    assert gained == {ties: close(value) for ties, value in wanted.items()}
    Path("a.run").write_text("".join(reversed(RUN.splitlines(keepends=True))))
    given = [*GIVEN, "--metric", "dcg@2", "--missing", "skip", "--gain", "linear"]
    assert measured(*given) == {"dcg@2": close(wanted["docid"])}
    assert "in the order of the run" in call(*given, "--ties", "input").stdout
    assert measured(*given, "--like", "lightgbm") == {"dcg@2": close(1 + 2 * second)}  # in the order of the run


def test_several_runs_are_measured_over_the_same_queries() -> None:
    given = ["--qrels", "q.qrels", "--run", "a.run", "b.run", "--metric", "mrr", "--missing", "skip"]
    result = call(*given, "--json", "--per-query", "q.tsv")
    assert "b.run: 1 query of the run not judged in q.qrels and left out: 'q9'" in result.stderr
    assert [one["metrics"]["mrr"] for one in strict(result.stdout)["systems"]] == [1.0, 0.75]
    assert Path("q.tsv").read_text() == (
        "system\tqid\tmrr\na.run\tq1\t1.0\na.run\tq2\tn/a\nb.run\tq1\t1.0\nb.run\tq2\t0.5\n"
    )
    assert call(*given, "-q").stderr == ""


def test_groups_of_the_queries_of_runs() -> None:
    Path("g.tsv").write_text("q1\thead\nq2\ttail\n")
    content = strict(call(*GIVEN, "--run", "b.run", "--metric", "mrr", "--by", "g.tsv", "--json").stdout)
    found = {one["group"]: [system["metrics"]["mrr"] for system in one["systems"]] for one in content["groups"]}
    assert found == {"head": [1.0, 1.0], "tail": [0.0, 0.5]}


@pytest.mark.slow
def test_standard_input_and_compression() -> None:
    wanted = measured(*GIVEN)
    assert strict(call("--qrels", "q.qrels", "--run", "-", "--json", stdin=RUN).stdout)["metrics"] == wanted
    assert strict(call("--qrels", "-", "--run", "a.run", "--json", stdin=QRELS).stdout)["metrics"] == wanted
    done = shell("gzip -k a.run; lmart eval --qrels q.qrels --run <(cat a.run) a.run.gz --metric map --json -q", Path())
    assert [one["metrics"]["map"] for one in strict(done.stdout.decode())["systems"]] == [wanted["map"]] * 2


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.run", "q1 Q0 d4 1 x t\n", "a.run:1: score 'x'"),
        ("a.run", RUN + "q1 Q0 d1 9 .1 t\n", "a.run:6: query 'q1' names document 'd1' a second time, after line 2"),
        ("a.run", "Q1 Q0 d1 1 1 t\n", "a.run: no query of the run is judged: it has 'Q1', q.qrels has 'q1'"),
        ("q.qrels", "q1 0 d1 1\nq1 0 d1 0\n", "q.qrels:2: query 'q1' names document 'd1' a second time, after line 1"),
        ("q.qrels", "q1 0 d1\n", "q.qrels:1: 'q1 0 d1' has 3 fields"),
        ("q.qrels", "# c\nq1 0 d1 7\nq1 0 d2 4\n", "row 2 has the label 7"),
    ],
)
def test_faults_of_files(name: str, content: str, part: str) -> None:
    Path(name).write_text(content)
    assert part in refused(*GIVEN, "--metric", "map,err(max=4)")


def test_a_gain_table_that_is_too_short_names_the_qrels() -> None:
    assert "q.qrels: label 3 has no entry" in refused(*GIVEN, "--gain", "0,1", "--metric", "ndcg")


def test_labels_that_are_no_grades_are_warned_of() -> None:
    Path("q.qrels").write_text(QRELS.replace("d1 3", "d1 40"))
    words = "labels go up to 40, and with the gain exp2 each level counts twice the level below it"
    assert words in call(*GIVEN, "-q").stderr
    assert call(*GIVEN, "-q", "--metric", "map").stderr == call(*GIVEN, "-q", "--gain", "linear").stderr == ""
    Path("d.svm").write_text("40 qid:1 1:1\n0 qid:1 1:2\n")
    Path("s").write_text("1\n2\n")
    assert words in call("--data", "d.svm", "--scores", "s", "-q").stderr
    assert call("--data", "d.svm", "--scores", "s", "-q", "--metric", "mrr").stderr == ""


def test_a_run_of_other_documents_is_warned_of() -> None:
    Path("a.run").write_text("q1 Q0 D1 1 1 t\n")
    assert "warning: a.run: no document of the run is judged in q.qrels" in call(*GIVEN).stderr


# Runs and data


def trained() -> list[str]:
    data = str(SAMPLE / "test.svm")
    run("train", "--data", str(SAMPLE / "train.svm"), "--trees", "4", "--rankers", "1", "-q")
    run("predict", "-m", "model.json", "--data", data, "--format", "trec", "-o", "model.run")
    return ["--data", data, "-m", "model.json"]


def test_a_model_its_run_with_its_qrels_and_its_run_with_the_data_agree() -> None:
    model = trained()
    wanted = measured(*model)
    assert measured(*model[:2], "--run", "model.run") == wanted
    run("convert", model[1], "test.qrels")
    assert measured("--qrels", "test.qrels", "--run", "model.run") == wanted
    run("convert", model[1], "test.csv")
    assert measured("--data", "test.csv", "--run", "model.run") == wanted


@pytest.mark.peers
def test_pytrec_eval_checks_a_model_by_the_files_that_are_written() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    model = trained()
    run("convert", model[1], "test.qrels")
    with open("test.qrels") as qrels, open("model.run") as ranking:
        judged, ranked = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(ranking)
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"map", "ndcg_cut.10", "P.5"}).evaluate(ranked)
    wanted = {
        ours: pytest.approx(sum(one[name] for one in theirs.values()) / len(theirs), rel=1e-12)
        for ours, name in (("map", "map"), ("ndcg@10", "ndcg_cut_10"), ("p@5", "P_5"))
    }
    metric = ["--like", "trec_eval", "--metric", ",".join(wanted)]
    assert measured("--qrels", "test.qrels", "--run", "model.run", *metric) == wanted
    assert measured(*model[:2], "--run", "model.run", *metric) == wanted


def test_weights_of_data_count_for_runs_too() -> None:
    model = trained()
    Path("w.txt").write_text("".join(f"{i}\n" for i in range(1, 41)))
    wanted = measured(*model, "--weights", "w.txt")
    assert measured(*model[:2], "--run", "model.run", "--weights", "w.txt") == wanted
    assert wanted != measured(*model)


def test_data_of_runs_needs_document_ids_that_differ() -> None:
    Path("d.svm").write_text("1 qid:1 1:1 # docid = a\n0 qid:1 1:2\n")
    Path("d.run").write_text("1 Q0 a 1 1 t\n")
    line = refused("--data", "d.svm", "--run", "d.run")
    assert "d.svm: row 2 has no document id, by which a run would name it" in line
    Path("d.svm").write_text("1 qid:1 1:1 # docid = a\n0 qid:1 1:2 #docid = b\n0 qid:1 1:2 #docid = a\n")
    line = refused("--data", "d.svm", "--run", "d.run")
    assert "query '1' names document 'a' twice, in rows 1 and 3" in line


def test_help_names_every_way() -> None:
    shown: Any = call("--help").stdout
    assert all(option in shown for option in ("--qrels", "--run", "--missing", "--by", "--scores"))
