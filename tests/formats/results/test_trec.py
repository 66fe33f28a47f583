"""TREC qrels and runs: read alike whatever stands between the fields, and refused with line and token."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.data.named_documents import JudgedDocuments, Run
from lmart.errors import DataError
from lmart.formats import line_reader
from lmart.formats.results import trec
from lmart.formats.results.trec import read_qrels, read_run

QRELS = b"q1 0 d1 3\nq1 0 d2 0\nq2 0 d1 -1\nq2 0 d3 2\n"
RUN = b"q1 Q0 d2 1 2.5 tag\nq1 Q0 d9 2 -1e-3 tag\nq2 Q0 d1 1 7 tag\n"
Plain = dict[str, dict[str, float]]


def plain(lists: JudgedDocuments | Run) -> Plain:
    """The documents of each query with their label or score, in order."""
    numbers = lists.labels if isinstance(lists, JudgedDocuments) else lists.scores
    ids, bounds = [one.decode() for one in lists.document_ids], lists.query_offsets.tolist()
    return {
        query: dict(zip(ids[bounds[i] : bounds[i + 1]], numbers[bounds[i] : bounds[i + 1]].tolist(), strict=True))
        for i, query in enumerate(lists.query_ids)
    }


def slowly(text: str, number: int) -> Plain:
    """What the lines of a file say, one by one."""
    found: Plain = {}
    for line in text.splitlines():
        fields = line.split()
        if fields and not fields[0].startswith("#"):
            found.setdefault(fields[0], {})[fields[2]] = float(fields[number])
    return found


def put(folder: Path, content: bytes, name: str = "t.txt") -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def fault(folder: Path, content: bytes, is_run: bool = False) -> DataError:
    with pytest.raises(DataError) as caught:
        (read_run if is_run else read_qrels)(put(folder, content))
    return caught.value


def test_the_fields_of_both_forms(tmp_path: Path) -> None:
    qrels, run = read_qrels(put(tmp_path, QRELS)), read_run(put(tmp_path, RUN))
    assert plain(qrels) == {"q1": {"d1": 3.0, "d2": 0.0}, "q2": {"d1": -1.0, "d3": 2.0}}
    assert plain(run) == {"q1": {"d2": 2.5, "d9": -0.001}, "q2": {"d1": 7.0}}
    assert qrels.rows.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b" ", b"\t"),
        lambda text: text.replace(b" ", b" \t  "),
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b"  \n\n \t\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: b"# made by hand\n" + text.replace(b"q2", b"  #q2 x\nq2"),
        lambda text: text.rstrip(b"\n"),
        lambda text: b"  " + text.replace(b"\nq", b"\n\tq"),
        gzip.compress,
    ],
)
@pytest.mark.parametrize("is_run", [False, True])
def test_blanks_line_ends_comments_and_compression_do_not_count(
    change: Callable[[bytes], bytes], is_run: bool, tmp_path: Path
) -> None:
    read, text = (read_run, RUN) if is_run else (read_qrels, QRELS)
    assert plain(read(put(tmp_path, change(text)))) == plain(read(put(tmp_path, text)))


def test_zstd(tmp_path: Path) -> None:
    packed = pytest.importorskip("zstandard").ZstdCompressor().compress(RUN)
    assert plain(read_run(put(tmp_path, packed, "run.zst"))) == slowly(RUN.decode(), 4)


def test_ranks_and_what_follows_the_tag_are_not_looked_at(tmp_path: Path) -> None:
    text = b"q Q0 a x 1 tag\nq Q0 b 1 2 a tag of four words\n"
    assert plain(read_run(put(tmp_path, text))) == {"q": {"a": 1.0, "b": 2.0}}


def test_queries_may_be_anywhere(tmp_path: Path) -> None:
    text = b"b 0 x 1\na 0 x 2\n# between\nb 0 w 3\nc 0 x 0\na 0 y 4\n"
    qrels = read_qrels(put(tmp_path, text))
    assert plain(qrels) == {"b": {"x": 1.0, "w": 3.0}, "a": {"x": 2.0, "y": 4.0}, "c": {"x": 0.0}}
    assert list(qrels.query_ids) == ["b", "a", "c"]
    assert qrels.rows.tolist() == [0, 3, 1, 5, 4]


def test_ids_are_text_of_any_language(tmp_path: Path) -> None:
    text = "ж1 Q0 dokument-ü#1 1 0.5 t\n".encode()
    run = read_run(put(tmp_path, text))
    assert plain(run) == {"ж1": {"dokument-ü#1": 0.5}}


words = st.text(st.sampled_from("abz019-_#:é"), min_size=1, max_size=4).filter(lambda one: one[0] != "#")
blanks = st.text(st.sampled_from(" \t"), min_size=1, max_size=3)


@given(
    rows=st.lists(
        st.tuples(words, words, st.floats(-1e9, 1e9), blanks),
        min_size=1,
        max_size=30,
        unique_by=lambda row: (row[0], row[1]),
    ),
    block=st.integers(1, 200),
)
def test_parts_of_any_size_read_as_line_by_line(
    rows: list[tuple[str, str, float, str]], block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(f"{query}{gap}Q0 {document}{gap}1 {score!r} t\n" for query, document, score, gap in rows)
    path = put(tmp_path_factory.mktemp("t"), text.encode())
    whole = read_run(path)
    assert plain(whole) == slowly(text, 4)
    content = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        pieces = [content[i : i + block] for i in range(0, len(content), block)]
        patch.setattr(line_reader, "read_pieces", lambda path: iter(pieces))
        assert plain(read_run(path)) == plain(whole)


def test_lines_read_together_and_one_by_one_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = plain(read_qrels(put(tmp_path, QRELS)))
    monkeypatch.setattr(trec, "_at_once", lambda found, kind: None)
    assert plain(read_qrels(put(tmp_path, QRELS))) == together


@pytest.mark.parametrize(
    ("content", "line", "part"),
    [
        (b"q 0\n", 1, "'q 0' has 2 fields; a line of qrels is 'qid iter docno label'"),
        (b"q 0 d 1\nq\n", 2, "'q' has 1 field;"),
        (b"q 0 d 1\nq 0 e 1 9\n", 2, "has 5 fields"),
        (b"q 0 d 1 q 0\ne 1\n", 1, "has 6 fields"),  # as many fields as two good lines have
        (b"\n# c\nq 0 d 1.5\n", 3, "label '1.5' is not a whole number, as labels of qrels are; give a table with"),
        (b"q 0 d 1_0\n", 1, "label '1_0'"),
        (b"q 0 d nan\n", 1, "label 'nan'"),
        (b"q 0 d 3000000000\n", 1, "label '3000000000'"),
        (b"q 0 d 1\nq 0 d\x00 1\n", 2, "document id 'd\\x00' holds a control character"),
        (b"q 0 d 1\nq\xc2\x85 0 d 1\n", 2, "query id 'q\\x85' holds a control character"),
        (b"q 0 \xff 1\n", 1, "is not valid UTF-8"),
    ],
)
def test_faults_of_qrels_name_line_and_token(content: bytes, line: int, part: str, tmp_path: Path) -> None:
    caught = fault(tmp_path, content)
    assert (caught.line, part in caught.message) == (line, True), caught.message


@pytest.mark.parametrize(
    ("content", "line", "part"),
    [
        (b"q Q0 d 1 0.5\n", 1, "has 5 fields; a line of a run is 'qid Q0 docno rank score tag'"),
        (b"q Q0 d 1 x tag\n", 1, "score 'x' is not a finite number"),
        (b"q Q0 d 1 nan tag\n", 1, "score 'nan'"),
        (b"q Q0 d 1 1e999 tag\n", 1, "score '1e999'"),
        (b"q Q0 d 1 1_0 tag\n", 1, "score '1_0'"),
        (b"q Q0 d 1 0x1 tag\n", 1, "score '0x1'"),
    ],
)
def test_faults_of_runs_name_line_and_token(content: bytes, line: int, part: str, tmp_path: Path) -> None:
    caught = fault(tmp_path, content, is_run=True)
    assert (caught.line, part in caught.message) == (line, True), caught.message


@pytest.mark.parametrize(
    ("content", "is_run", "part"),
    [
        (RUN, False, "the line is of a TREC run; give the run to --run, and the qrels to --qrels"),
        (QRELS, True, "the line is of TREC qrels; give the qrels to --qrels, and the run to --run"),
        (b"q1,0,d1,3\n", False, "the fields are separated by ','; write a blank or a tab between them"),
        (b"q1;Q0;d1;1;.5;t\n", True, "the fields are separated by ';'"),
        (b'{"q1": {"d1": 3, "d2": 0}}\n', False, "the file is JSON, as ranx and pytrec_eval have it; write lines"),
        (b'{\n "q1": {\n  "d1": 0.5\n }\n}\n', True, "the file is JSON, as ranx and pytrec_eval have it; write lines"),
        (b'{"q1": {"d1": 1}' + b" " * line_reader.LONGEST_LINE + b"}\n", False, "the file is JSON, which is not read"),
        (b'[["q1", "d1", 1]]\n', False, "the file is JSON"),
        (b"q1\td1\t1\n", False, "the line lacks the second field, 'iter', as in MS MARCO; add it: awk"),
        (b"q1\td1\t1\n", True, "the line is 'qid docno rank', as in MS MARCO; give scores: awk"),
        (b"q1\td1\t0.5\t1\n", True, "the line is of 'lmart predict --format tsv'; write the run with --format trec"),
        (b"0.25\n", True, "the line is a number alone; give scores of the rows of --data to --scores"),
        (b"1 qid:3 1:0.5 2:7\n", False, "the line is LETOR text; give the file to --data"),
        (b"qid\titer\tdocno\tlabel\n", False, "the line is a header; take it out"),
        (b"qid Q0 docno rank score tag\n", True, "the line is a header; take it out"),
    ],
)
def test_other_layouts_are_named(content: bytes, is_run: bool, part: str, tmp_path: Path) -> None:
    caught = fault(tmp_path, content, is_run)
    assert (caught.line, caught.message.startswith(part)) == (1, True), caught.message


def test_whole_labels_may_be_written_as_decimals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"q1 0 d1 3.0\nq1 0 d2 0.0\nq2 0 d1 -1.\nq2 0 d3 2e0\n"
    assert plain(read_qrels(put(tmp_path, text))) == plain(read_qrels(put(tmp_path, QRELS)))
    monkeypatch.setattr(trec, "_at_once", lambda found, kind: None)
    assert plain(read_qrels(put(tmp_path, text))) == plain(read_qrels(put(tmp_path, QRELS)))


def test_labels_of_subtopics_are_no_repetition_by_mistake(tmp_path: Path) -> None:
    caught = fault(tmp_path, b"q 1 d 1\nq 2 e 0\nq 2 d 0\n")
    assert caught.line == 3 and "it is judged for several subtopics, the second field; join them" in caught.message
    assert fault(tmp_path, b"q 0 d 1\nq 0 d 0\n").message.endswith("after line 1; leave one of them")


@pytest.mark.parametrize(
    ("scores", "rises"),
    [("1 2 3 4", True), ("4 3 2 1", False), ("1 1 1 1", False), ("1 3 2 4", False)],
)
def test_scores_that_rise_with_the_ranks_are_noted(scores: str, rises: bool, tmp_path: Path) -> None:
    rows = [f"{query} Q0 d{rank} {rank} {score} t\n" for query in "ab" for rank, score in enumerate(scores.split(), 1)]
    assert read_run(put(tmp_path, "".join(rows).encode())).rises is rises
    without_ranks = "".join(rows).replace(" Q0 d", " Q0 e").replace(" 2 2 ", " x 2 ")
    assert not read_run(put(tmp_path, without_ranks.encode())).rises or rises


def test_a_document_named_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    text = b"p Q0 x 1 1 t\nq Q0 x 1 1 t\np Q0 y 1 1 t\n\nq Q0 w 1 1 t\nq Q0 x 1 0 t\np Q0 x 1 1 t\n"
    caught = fault(tmp_path, text, is_run=True)
    assert (caught.line, caught.path) == (6, str(tmp_path / "t.txt"))
    assert "query 'q' names document 'x' a second time, after line 2" in caught.message


def test_nothing_in_a_file(tmp_path: Path) -> None:
    for content in (b"", b"\n\n", b"# only\n"):
        assert "holds no line of qrels; give 'qid iter docno label'" in fault(tmp_path, content).message


def test_many_lines_are_not_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which would take several times as long."""
    rows = [f"q{i // 100} 0 doc-{i} {i % 4 - 1}\n" for i in range(50_000)]
    monkeypatch.setattr(trec, "_one_by_one", None)
    qrels = read_qrels(put(tmp_path, "".join(rows).encode()))
    assert len(qrels.query_ids) == 500
    assert np.array_equal(qrels.labels, np.arange(50_000) % 4 - 1.0)
