"""lmart convert to TREC qrels."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commands import run

from lmart.errors import ExitStatus
from lmart.formats.documents.blocks import FeatureColumns, RowBlock
from lmart.formats.results.trec import QrelsWriter

pytestmark = pytest.mark.usefixtures("in_folder")


def converted(text: str, *arguments: str, name: str = "d.svm") -> str:
    Path(name).write_text(text)
    run("convert", name, "d.qrels", *arguments)
    return Path("d.qrels").read_text()


def refused(text: str, *arguments: str) -> str:
    Path("d.svm").write_text(text)
    result = run("convert", "d.svm", "d.qrels", *arguments, status=ExitStatus.FAILED)
    assert not Path("d.qrels").exists()
    return result.stderr


def test_ids_of_comments_and_columns_else_numbers_in_the_query() -> None:
    text = "2 qid:b 1:1 # docid = x\n0 qid:b 1:1\n1.0 qid:a 1:1\n0 qid:a 1:2\n"
    assert converted(text) == "b 0 x 2\nb 0 2 0\na 0 1 1\na 0 2 0\n"
    table = "label,qid,docid,f\n1,q,d1,0\n0,q,d2,0\n"
    assert converted(table, name="d.csv") == "q 0 d1 1\nq 0 d2 0\n"
    run("convert", "d.csv", "other.txt", "--to", "qrels")
    assert Path("other.txt").read_text() == "q 0 d1 1\nq 0 d2 0\n"


def test_documents_without_ids_are_called_as_predict_calls_them() -> None:
    text = "".join(f"{i % 3} qid:{q} 1:{i}\n" for q in (1, 2) for i in range(4))
    qrels = converted(text)
    run("train", "--data", "d.svm", "--trees", "1", "--min-docs", "1", "-q")
    shown = run("predict", "-m", "model.json", "--data", "d.svm", "--format", "trec").stdout
    named = sorted((line.split()[0], line.split()[2]) for line in shown.splitlines())
    assert named == sorted((line.split()[0], line.split()[2]) for line in qrels.splitlines())


def test_a_query_may_go_over_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    n, of_query = 20_000, 7_000
    names = [f"d{i}" if i % 3 else "" for i in range(n)]
    rows = [f"{i % 2} qid:{1 + i // of_query} 1:{i} # {name}\n" for i, name in enumerate(names)]
    blocks: list[int] = []
    write = QrelsWriter.write

    def counting(self: QrelsWriter, block: RowBlock, features: FeatureColumns) -> None:
        blocks.append(len(block))
        write(self, block, features)

    monkeypatch.setattr(QrelsWriter, "write", counting)
    wanted = [f"{1 + i // of_query} 0 {name or i % of_query + 1} {i % 2}\n" for i, name in enumerate(names)]
    assert converted("".join(rows)) == "".join(wanted)
    assert len(blocks) > 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("0.5 qid:1 1:1\n", "label 0.5 of row 1 is not a whole number"),
        ("1 qid:1 1:1\n2147483648 qid:1 1:1\n", "label 2147483648 of row 2 is above 2147483647"),
        ("1 qid:1 1:1 #docid = a\n1 qid:1 1:1 #docid = a\n", "query '1' names document 'a' twice, in rows 1 and 2"),
        ("1 qid:1 1:1\n1 qid:1 1:1 #docid = 1\n", "query '1' names document '1' twice"),
        ("1 1:1\n", "qid"),
    ],
)
def test_what_qrels_cannot_hold(text: str, part: str) -> None:
    assert part in refused(text)


def test_the_largest_label_is_one_that_eval_reads() -> None:
    assert converted("2147483647 qid:1 1:1\n") == "1 0 1 2147483647\n"
    Path("d.run").write_text("1 Q0 1 1 1 t\n")
    run("eval", "--qrels", "d.qrels", "--run", "d.run", "--metric", "mrr")


def test_a_fault_of_standard_output_names_it() -> None:
    Path("d.svm").write_text("0.5 qid:1 1:1\n")
    told = run("convert", "d.svm", "-", "--to", "qrels", status=ExitStatus.FAILED).stderr
    assert told.startswith("lmart: error: standard output: label 0.5 of row 1")


def test_ids_with_blanks_are_refused() -> None:
    Path("d.csv").write_text("label,qid,docid,f\n1,q,d 1,0\n")
    told = run("convert", "d.csv", "d.qrels", status=ExitStatus.FAILED).stderr
    assert "document id 'd 1' of row 1 cannot stand in qrels" in told


def test_qrels_are_read_by_eval_only() -> None:
    Path("d.qrels").write_text("1 0 a 1\n")
    told = run("convert", "d.qrels", "d.svm", status=ExitStatus.USAGE).stderr
    assert "'qrels' is only written" in told
    Path("s.txt").write_text("1\n")
    told = run("eval", "--data", "d.qrels", "--scores", "s.txt", status=ExitStatus.FAILED).stderr
    assert "d.qrels: this is TREC qrels; lmart eval reads them as --qrels" in told
