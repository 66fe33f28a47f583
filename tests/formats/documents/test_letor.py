"""Reading LETOR text: the same rows as the slow twin, or the same refusal; and what each refusal says."""

from __future__ import annotations

import math
import random
import time
import tracemalloc
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference.letor
from helpers.paths import SAMPLE
from helpers.reading import SERIAL, Pieces, faults_of, listed, read, rows_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmart.errors import DataError
from lmart.formats.documents import text_reader as text_module
from lmart.formats.documents.blocks import FeatureColumns, RowSource, SeenQueries
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.letor import LetorReader
from lmart.formats.documents.reading import open_rows, read_dataset
from lmart.formats.documents.text_writer import LetorWriter
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

SMALL = b"""\xef\xbb\xbf# a comment: with colons
2 qid:q1 3:0.25 1:-1e-3 2:nan # docid = D-1 inc:1 3:9

1\tqid:q1\t1:0.5  2:1   #D-2
0 qid:q1#x
\t  # nothing
0 qid:\xc3\xa9 9223372036854775807:1 0:12345678901234567890 #docid=D-4\r
1 qid:\xc3\xa9 0:0.1\r\r
3.5 qid:z 2:1"""

SMALL_ROWS = [
    (2.0, "q1", [(1, -0.001), (2, math.nan), (3, 0.25)], "D-1"),
    (1.0, "q1", [(1, 0.5), (2, 1.0)], "D-2"),
    (0.0, "q1", [], "x"),
    (0.0, "é", [(0, 12345678901234567890.0), (2**63 - 1, 1.0)], "D-4"),
    (1.0, "é", [(0, 0.1)], ""),
    (3.5, "z", [(2, 1.0)], ""),
]


def same(rows: list[Any], others: list[Any]) -> bool:
    return repr(rows) == repr(others)


def stream_rows(pieces: bytes | list[bytes], **options: Any) -> list[Any]:
    reader = rows_of(pieces, keep_document_ids=True, **options)
    return listed(reader, reader)


def test_all_that_is_allowed_is_read() -> None:
    assert same(stream_rows(SMALL), SMALL_ROWS)
    data = read(SMALL, keep_document_ids=True)
    assert data.feature_ids.tolist() == [0, 1, 2, 3, 2**63 - 1]
    assert data.query_ids == ["q1", "é", "z"]
    assert data.query_offsets.tolist() == [0, 3, 5, 6]
    assert data.labels.tolist() == [2, 1, 0, 0, 1, 3.5]
    assert data.features.columns.tolist() == [1, 2, 3, 1, 2, 0, 4, 0, 2]
    assert list(data.document_ids or ()) == ["D-1", "D-2", "x", "D-4", "", ""]


@pytest.mark.parametrize(
    ("comment", "document"),
    [
        ("#docid = GX000-00-0000000 inc = 1 prob = 0.0246906", "GX000-00-0000000"),
        ("#docno: 17", "17"),
        ("# docid:851", "851"),
        ("#docid: X", "X"),
        ("#docno = X", "X"),
        ("# doc_id = X", "X"),
        ("# Document_ID=X", "X"),
        ("# inc = 1 docid = X", "X"),
        ("# rank=1,docno=X, inc=0", "X"),
        ("## DOCID :\tX y", "X"),
        ("# docid = docid:5", "docid:5"),
        ("# docid = a,b; c", "a,b"),
        ("# docid = X,", "X,"),
        ("# mydocid = X", ""),
        ("# inc = 1", ""),
        ("# docids X", "docids"),
        ("# http://host/?docid=5", "http://host/?docid=5"),
        ("# docid = ", ""),
        ("#X y", "X"),
        ("#", ""),
    ],
)
def test_a_key_in_a_comment_names_the_document(comment: str, document: str) -> None:
    assert stream_rows(f"1 qid:1 1:2 {comment}\n".encode())[0][3] == document


@pytest.mark.parametrize("comment", ["{blanks}", "docid{blanks}x", "docid ={blanks}", "docid = a;{blanks}b", "{words}"])
def test_a_long_comment_is_read_in_linear_time(comment: str) -> None:
    long = comment.format(blanks=" \t" * 100_000, words="docid " * 30_000)
    started = time.process_time()
    assert len(stream_rows(f"1 qid:1 1:2 #{long}\n".encode())) == 1
    assert time.process_time() - started < 20.0  # a minute or more in quadratic time


@pytest.mark.slow
def test_a_piece_may_end_at_every_byte() -> None:
    for cut in range(len(SMALL) + 1):
        assert same(stream_rows([SMALL[:cut], SMALL[cut:]]), SMALL_ROWS), cut
    assert same(stream_rows([SMALL[i : i + 1] for i in range(len(SMALL))]), SMALL_ROWS)


def test_a_chunk_may_end_at_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 30, 60, 100):
        monkeypatch.setattr(text_module, "CHUNK", size)
        assert same(stream_rows(SMALL), SMALL_ROWS)
        with WorkerPool(2) as pool:
            reader = rows_of(SMALL, keep_document_ids=True)
            reader.pool = pool
            assert same(listed(chain.from_iterable(reader.volatile_batches()), reader), SMALL_ROWS)


def test_head_and_small_buffers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "FIRST_BLOCK", 5)
    monkeypatch.setattr(text_module, "BLOCK", 16)
    for cut in (0, 1, 3, 40, len(SMALL)):
        reader = rows_of(SMALL[cut:], head=SMALL[:cut], keep_document_ids=True)
        assert same(listed(reader, reader), SMALL_ROWS)


def expected_rows(
    data: bytes, last_wins: bool, infinite: bool, layout: tuple[bool, bool]
) -> tuple[list[Any], list[int]]:
    rows, wrong = reference.letor.letor_rows(data.removeprefix(b"\xef\xbb\xbf"), *layout, infinite, last_wins)
    return [
        (label if layout[0] else None, query.decode("utf-8"), cells, document.decode("utf-8", "backslashreplace"))
        for label, query, cells, document in rows
    ], wrong


def agrees_with_twin(data: bytes, last_wins: bool, infinite: bool) -> None:
    """The reader and the twin give the same rows, or name the same lines."""
    options: dict[str, Any] = {
        "duplicates": "last" if last_wins else "error",
        "allow_inf": infinite,
        "group_by_qid": True,
        "max_errors": 1000,
        "keep_document_ids": True,
    }
    reader = rows_of(data, **options)
    try:
        found, faults = listed(chain.from_iterable(reader.volatile_batches()), reader), []
    except DataError as fault:
        found, faults = [], [fault, *fault.more]
    rows, wrong = expected_rows(data, last_wins, infinite, (True, True))
    if faults:
        assert [fault.line for fault in faults][: len(wrong)] == wrong[: len(faults)]
        assert wrong
        assert not any("cannot be read" in fault.message for fault in faults), faults
    else:
        assert not wrong
        assert same(found, rows)


@pytest.mark.parametrize("limit", [0, 1, 8, 10**9])
def test_ids_are_found_whether_the_kernel_looks_them_up_or_the_table(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmart.formats.documents.feature_table.DIRECT_IDS", limit)
    monkeypatch.setattr(text_module, "FIRST_BLOCK", 32)
    ids = (0, 7, 8, 9, 1_048_575, 1_048_576, 9_999_999, 10_000_000, 2**63 - 1)
    draw = random.Random(limit)
    lines = []
    for row in range(40):
        some = [i for i in ids if draw.random() < 0.6] if row else list(ids[:4])
        if draw.random() < 0.3:
            draw.shuffle(some)
        lines.append(b"1 qid:1" + b"".join(b" %d:%d" % (i, draw.randrange(9)) for i in some))
    agrees_with_twin(b"\n".join(lines), False, False)


TOKENS = st.sampled_from(
    [
        b"1",
        b"0",
        b"2.5",
        b"-1",
        b"nan",
        b"1e400",
        b"qid:1",
        b"qid:1",
        b"qid:1",
        b"qid:2",
        b"qid:",
        b"qid:a:b",
        b"1:0.5",
        b"2:1",
        b"3:-7e-2",
        b"2:nan",
        b"1:inf",
        b"4:1e400",
        b"5:-1e999",
        b"3:0,5",
        b"1:1_000",
        b"7:0x10",
        b"1:",
        b":1",
        b"12",
        b":",
        b"1:2:3",
        b"-3:1",
        b"99999999999999999999:1",
        b"9223372036854775807:2",
        b"9223372036854775808:2",
        b"007:1",
        b"#",
        b"#docid = X y",
        b"# Z",
        b"#docid",
        b"# inc = 1 DocNo: A,",
        b"doc_id",
        b"document_id = 7;",
        b"=",
        b"docno:",
        b"\r",
        b"\r\r",
        b"\0",
        b"1:\xc2\xb2",
        b"1:12345678901234567890123456789",
        b"2:0.1#c",
        b"QID:1",
        b"1:+.5",
        b"1:.",
        b"+1:2",
        b"1:-0",
        b"1:9007199254740993",
        b"6:1e",
        b"x",
    ]
)
BLANKS = st.sampled_from([b" ", b" ", b" ", b"\t", b"  ", b" \t "])
GOOD = st.sampled_from([b"1 qid:1 ", b"0 qid:2\t", b"3.5 qid:x "])
LINES = st.builds(
    lambda start, words, blanks: start + b"".join(a + b for a, b in zip(words, blanks, strict=False)),
    GOOD | st.just(b""),
    st.lists(TOKENS, max_size=6),
    st.lists(BLANKS, min_size=6, max_size=6),
)
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"])
TEXTS = st.lists(st.tuples(LINES, ENDS), min_size=1, max_size=6).map(
    lambda lines: b"1 qid:1 1:1\n" + b"".join(a + b for a, b in lines)
)


@pytest.mark.slow
@settings(max_examples=250)
@given(TEXTS, st.booleans(), st.booleans(), st.booleans())
@example(b"1 qid:1 1:1\n1 qid:1 2:1 1:3 2:4 1:99999999999999999999.5\n", False, True, True)
def test_any_text_reads_as_the_twin_reads_it(text: bytes, cut: bool, last_wins: bool, infinite: bool) -> None:
    agrees_with_twin(text.rstrip(b"\n") if cut else text, last_wins, infinite)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.binary(max_size=40), st.integers(0, 60))
def test_foreign_bytes_anywhere_are_read_as_the_twin_reads_them(junk: bytes, place: int) -> None:
    good = b"1 qid:1 1:0.5 2:-3e2 # docid = A\n0 qid:1 2:7\n"
    data = b"1 qid:1 1:1\n" + good[:place] + junk + good[place:]
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        faults_of(data)  # ids that are no UTF-8 are refused; here it must only end well
        return
    agrees_with_twin(data, False, False)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 30) | st.integers(0, 2**63 - 1), st.floats(allow_nan=False)), max_size=8)
    )
)
def test_what_is_written_reads_back_equal(rows: list[list[tuple[int, float]]]) -> None:
    cells = [sorted(dict(row).items()) for row in rows]
    text = "".join(f"1 qid:7 {' '.join(f'{i}:{x!r}' for i, x in row)}\n" for row in cells).encode()
    data = rows_of(text, allow_inf=True)
    found = [row[2] for row in listed(data, data)]
    assert found == [[(i, x or 0.0) for i, x in row] for row in cells]


REFUSALS = [
    # text, line, what the message must hold
    (b"1 qid:1 1:1_000\n", 1, "'1_000' is not a number"),
    (b"1 qid:1 1:0,5\n", 1, "'0,5' has a comma"),
    (b"1 qid:1 1:0x10\n", 1, "'0x10' is not a number"),
    (b"1 qid:1 1:1\n1 qid:1 1:\xd9\xa1\n", 2, "is not a number"),
    (b"1 qid:1 1:1\n1 qid:1 1:NA\n", 2, "'NA' is not a number"),
    (b"1 qid:1 1:\n", 1, "no value after the colon in '1:'"),
    (b"1 qid:1 1 : 0.5\n", 1, "blank before the colon in '1 :'"),
    (b"1 qid:1 1: 0.5\n", 1, "no value after the colon in '1: 0.5'"),
    (b"1 qid:1 1 :0.5\n", 1, "blank before the colon in '1 :0.5'"),
    (b"1 qid:1 3:1 3:2\n", 1, "index 3 occurs twice in the row, again in '3:2'"),
    (b"1 qid:1 3:1 2:0 3:2\n", 1, "again in '3:2'; take one out, or use --duplicates last"),
    (b"1 qid:1 -3:1\n", 1, "index '-3' is negative"),
    (b"1 qid:1 9223372036854775808:1\n", 1, "'9223372036854775808' is above 9223372036854775807"),
    (b"1 1:1\n0 1:0\n", 1, "no query id: 'qid:ID' must follow the label, but '1:1' does"),
    (b"1\n", 1, "no query id: 'qid:ID' must follow the label, but the line ends"),
    (b"1 qid:1 1:1\n0 1:0\n", 2, "no query id"),
    (b"1 1:1 qid:1\n", 1, "query id 'qid:1' comes after '1:1'"),
    (b"1 qid:1 1:1 qid:1\n", 1, "query id 'qid:1' at a wrong place"),
    (b"1 qid: 1:1\n", 1, "the query id is empty"),
    (b"1 QID:1 1:1\n", 1, "'QID:1' is not 'qid:ID'"),
    (b"1 qid:a 1:1\n1 qid:b 1:1\n1 qid:a 1:1\n", 3, "rows of query 'a' are not adjacent (first seen at line 1)"),
    (b"-1 qid:1 1:1\n", 1, "label '-1' is negative"),
    (b"nan qid:1 1:1\n", 1, "label 'nan' is missing"),
    (b"inf qid:1 1:1\n", 1, "label 'inf' is infinite"),
    (b"1 qid:1 1:1\n1e400 qid:1 1:1\n", 2, "label '1e400' is beyond the largest number"),
    (b"1 qid:1 1:1\n1:1 qid:1 1:1\n", 2, "label '1:1' is not a number"),
    (b"1 qid:1 1:1\nqid:1 1:1\n", 2, "label 'qid:1' is not a number"),
    (b"1:1 2:2\n", 1, "no label: a row starts with one, not with '1:1'"),
    (b"1 qid:1 1:inf\n", 1, "'inf' is infinite, in '1:inf'"),
    (b"1 qid:1 1:-1e400\n", 1, "'-1e400' is beyond the largest number"),
    (b"1 qid:1 1:0.5\0\n", 1, r"NUL byte in '1 qid:1 1:0.5\x00'"),
    (b"1 qid:1 1:0.5 # \0\n", 1, "NUL byte"),
    (b"\0 qid:1 1:1\n", 1, r"NUL byte in '\x00'"),
    (b"\0\n1 qid:1 1:1\n", 1, r"NUL byte in '\x00'"),
    (b"1 \0qid:1 1:1\n", 1, r"NUL byte in '1 \x00'"),
    ("1 qid:1 1:1\n".encode("utf-16"), 1, "UTF-16"),
    (b"label;qid;f1\n1;1;0.5\n", 1, "a table with ';' between fields is not read: write it with ',' and a header"),
    (b"label,qid,f1\n1,1,0.5\n", 1, "the line is not 'label qid:ID index:value ...': it starts with 'label,qid,f1'"),
    (b"hello world\n", 1, "the line is not 'label qid:ID index:value ...'"),
    (b"1 qid:1 1:1\n1 qid:1 12", 2, "'12' is not 'index:value'; the value is missing, or the line is cut off"),
    (b"1 qid:1 1:1\n1 qid:1 12:", 2, "no value after the colon in '12:'"),
    (b"1 qid:1 1:1\r0 qid:1 1:2\r", 1, "carriage return inside the line"),
    (b"1 qid:\xff 1:1\n", 1, r"query id '\xff' is not valid UTF-8"),
    (b"1 qid:a\x1bb 1:1\n", 1, r"query id 'a\x1bb' holds a control character"),
    (b"1 qid:1 x:1\n", 1, "index 'x' is not a whole number, in 'x:1'"),
    (b"1 qid:1 :1\n", 1, "no index before the colon in ':1'"),
    (b"0 qid:1\n1 qid:1 1:" + b"9" * 400 + b"\n", 2, "is beyond the largest number"),
]


@pytest.mark.parametrize(("text", "line", "what"), REFUSALS, ids=range(len(REFUSALS)))
def test_what_would_mislead_is_refused_with_line_and_token(text: bytes, line: int, what: str) -> None:
    first = faults_of(text)[0]
    assert (first.path, first.line) == ("data", line)
    assert what in first.message
    assert "\n" not in first.message
    assert ";" in first.message  # it says what to do


def test_queries_that_come_back_are_one_fault() -> None:
    rows = [b"1 qid:%d 1:%s\n" % (i % 5, b"x" if i == 12 else b"1") for i in range(30)]
    told = [(fault.line, fault.message) for fault in faults_of(b"".join(rows))]
    assert [line for line, _ in told] == [6, 13]
    assert told[0][1].startswith("rows of query '0' are not adjacent (first seen at line 1); put")
    assert told[0][1].endswith("(24 more such lines so far)")
    (alone,) = faults_of(b"".join(rows[:6]))
    assert alone.message.endswith("or use --group-by-qid")


def test_labels_without_a_gain_are_named_by_line_among_other_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"# c\n\n2 qid:1 1:1\n\t3 qid:1 1:2 # x\n-1 qid:1\n0.5 qid:1 1:3\n9 qid:1 1:q\n1 qid:1\n4#\n"
    for chunk in (1, 1 << 20):
        monkeypatch.setattr(text_module, "CHUNK", chunk)
        faults = faults_of(text, gain=Gain.parse("0,1,3"))
        assert [fault.line for fault in faults] == [4, 5, 6, 7, 9]
        assert faults[0].message.startswith("label 3 has no entry in the gain table, which covers 0 to 2")
        assert "'q' is not a number" in faults[3].message
    assert read(b"2 qid:1 1:1\n", gain=Gain.parse("0,1,3")).labels.tolist() == [2.0]


def test_faults_are_listed_in_order_up_to_the_limit_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "CHUNK", 40)
    lines = [b"1 qid:1 1:1"] + [b"1 qid:1 1:x" if i % 3 == 0 else b"1 qid:1 1:1" for i in range(60)]
    lines[10:10] = [b"1 qid:2 1:1", b"1 qid:1 1:1"]
    text = b"\n".join(lines)
    wrong = [i for i, line in enumerate(lines, 1) if b"x" in line or i == 12]
    assert [fault.line for fault in faults_of(text)] == wrong[:10]
    assert [fault.line for fault in faults_of(text, max_errors=3)] == wrong[:3]
    assert [fault.line for fault in faults_of(text, max_errors=100)] == wrong


def test_a_first_row_that_is_not_letor_ends_the_list() -> None:
    assert len(faults_of(b"label,qid,f1\n1,1,0.5\n2,1,0.5\n")) == 1
    assert len(faults_of(b"1 1:1\n0 1:0\n0 1:0\n")) == 1


def test_rows_without_label_or_query_are_read_when_they_may() -> None:
    free: dict[str, Any] = {"require_labels": False, "require_queries": False}
    for text, rows in (
        (b"qid:1 1:0.5\nqid:2\n", [(None, "1", [(1, 0.5)], ""), (None, "2", [], "")]),
        (b"1:0.5\n\n2:0.5 # x\n", [(None, "", [(1, 0.5)], ""), (None, "", [(2, 0.5)], "x")]),
        (b"1 1:0.5\n2\n", [(1.0, "", [(1, 0.5)], ""), (2.0, "", [], "")]),
    ):
        assert stream_rows(text, **free) == rows
    for mixed in (b"1:1\n1 1:1\n", b"1:1\nqid:1 1:1\n", b"1 1:1\n1 qid:1 1:1\n", b"qid:1 1:1\n1:1\n"):
        line = faults_of(mixed, **free)[0].line
        assert line in (1, 2)


def test_the_last_of_equal_indices_counts_when_asked() -> None:
    text = b"1 qid:1 3:1 2:5 3:9007199254740993000001 2:7 3:4\n"
    assert stream_rows(text, duplicates="last") == [(1.0, "1", [(2, 7.0), (3, 4.0)], "")]


def test_rows_that_are_not_adjacent_are_collected_when_asked() -> None:
    text = b"1 qid:a 1:1\n2 qid:b 1:2\n3 qid:a 1:3 2:1\n4 qid:b 1:4\n"
    data = read(text, group_by_qid=True)
    assert data.query_ids == ["a", "b"]
    assert data.labels.tolist() == [1, 3, 2, 4]
    assert data.features.dense(2, 0.0).tolist() == [[1, 0], [3, 1], [2, 0], [4, 0]]
    assert data.input_rows is not None
    assert data.input_rows.tolist() == [0, 2, 1, 3]


def test_memory_follows_the_number_of_features_not_their_size() -> None:
    data = read(b"1 qid:1 2147483647:1\n0 qid:1 4000000000000000001:2 5:1\n")
    assert data.feature_ids.tolist() == [5, 2147483647, 4000000000000000001]
    assert data.features.dense(3, 0.0).tolist() == [[0, 1, 0], [1, 0, 2]]


def test_a_growing_feature_table_keeps_its_columns() -> None:
    lines = [f"1 qid:1 {i}:1 {i + 5000}:2" for i in range(0, 4000, 3)]
    data = read("\n".join(lines).encode())
    assert data.feature_ids.tolist() == sorted({int(cell.split(":")[0]) for line in lines for cell in line.split()[2:]})
    assert data.features.values.tolist() == [1.0, 2.0] * len(lines)
    ids = data.feature_ids[data.features.columns].tolist()
    assert ids == [int(cell.split(":")[0]) for line in lines for cell in line.split()[2:]]


def test_several_files_are_one_data_set(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1 qid:1 5:1\n")
    (tmp_path / "b").write_bytes(b"2 qid:2 2:7\n")
    (tmp_path / "c").write_bytes(b"0 qid:1 1:1\n")
    a, b, c = (str(tmp_path / name) for name in "abc")
    data = read_dataset([a, b], ReadOptions())
    assert (data.query_ids, data.feature_ids.tolist()) == (["1", "2"], [2, 5])
    assert data.features.dense(2, 0.0).tolist() == [[0, 1], [7, 0]]
    with pytest.raises(DataError, match=rf"c:1: rows of query '1' are not adjacent \(first seen at {a}:1\)"):
        read_dataset([a, b, c], ReadOptions())
    with pytest.raises(DataError, match="are not adjacent"):
        read_dataset([a, c], ReadOptions())


def test_query_sizes_make_the_queries(tmp_path: Path) -> None:
    rows, sizes = tmp_path / "rows", tmp_path / "sizes"
    rows.write_bytes(b"1 1:1\n2 1:2\n3 1:3\n")
    sizes.write_bytes(b"2\n1\n")
    options = ReadOptions(query_sizes=str(sizes))
    data = read_dataset([str(rows)], options)
    assert (data.query_ids, data.query_offsets.tolist()) == (["1", "2"], [0, 2, 3])
    with open_rows(str(rows), options) as reader:
        assert [(block.query_ids, block.query_offsets.tolist()) for block in reader] == [(["1", "2"], [0, 2, 3])]
    for wrong, what in (
        (b"2\n2\n", f"sum to 4, but {rows} has 3 rows; .* 'lmart convert DATA OUT --query-sizes FILE'"),
        (b"2\n", f"sum to 2, but {rows} has more than 2 rows"),
        (b"3\n0\n", "sizes:2: query size '0'"),
        (b"3 4\n", "'3 4' is not a whole number"),
        (b"", "holds no number"),
    ):
        sizes.write_bytes(wrong)
        with pytest.raises(DataError, match=what):
            read_dataset([str(rows)], options)
    rows.write_bytes(b"1 qid:1 1:1\n")
    sizes.write_bytes(b"1\n")
    with pytest.raises(DataError, match="have query ids already"):
        read_dataset([str(rows)], options)


def test_sizes_are_read_no_further_than_the_rows_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows").write_bytes(b"1 1:1\n2 1:2\n3 1:3\n")
    monkeypatch.setattr("lmart.formats.documents.dataset_builder.MANY_MORE", 5)
    taken = []

    def endless(path: str) -> Iterator[npt.NDArray[np.int64]]:
        for i in range(100):
            taken.append(i)
            yield np.array([2], np.int64)

    monkeypatch.setattr("lmart.formats.documents.reading.read_query_sizes", endless)
    with pytest.raises(DataError, match=r"sum to more than 14, but .*rows has 3 rows"):
        read_dataset([str(tmp_path / "rows")], ReadOptions(query_sizes="sizes"))
    assert len(taken) == 7


def test_a_long_line_is_not_copied_for_each_piece_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "FIRST_BLOCK", 50)
    line = b"1 qid:1" + b"".join(b" %d:1" % i for i in range(1, 2000)) + b"\n"
    buffers: list[object] = []

    class Recorded(Pieces):
        def read_block(self, view: memoryview) -> int:
            buffers.append(view.obj)
            return super().read_block(view)

    for step in (1, 7):
        stream = Recorded(line[i : i + step] for i in range(0, len(line), step))
        options = ReadOptions()
        reader = LetorReader(RowSource(stream, b"", options, SERIAL, FeatureTable(), SeenQueries(False)))
        assert sum(len(block) for block in reader) == 1
        assert sum(a is not b for a, b in pairwise(buffers)) < 20
    monkeypatch.setattr(text_module, "LONGEST_LINE", 3 << 20)
    text = b"1 qid:1 1:1\n" + b"1 qid:1 1:" + b"1" * (4 << 20)
    assert faults_of(text)[0].message.startswith("the line is longer than 3 MiB; is it the right file")
    assert faults_of(text)[0].line == 2


def test_many_blank_lines_and_comments_may_stand_before_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    blank = b"\n \t\r\n# 1 qid:1 1:1\n\t#\r\n\r\n"
    for block in (20, 1 << 16):
        monkeypatch.setattr(text_module, "FIRST_BLOCK", block)
        monkeypatch.setattr(text_module, "BLOCK", block)
        (fault,) = faults_of(blank * 50 + b"x qid:1 1:1\n")
        assert (fault.line, "starts with 'x'" in fault.message) == (251, True)
        assert read(blank * 50 + b"1 qid:1 1:1\n").n_documents == 1


def test_room_is_made_for_the_faults_there_can_be() -> None:
    text = b"1 qid:1 1:x\n" * 5
    assert len(faults_of(text, max_errors=10**30)) == 5
    assert len(faults_of(b"label,qid,a\n" + b"1,1,x\n1,1,2\n" * 5, "csv", max_errors=10**30)) == 5


def test_a_small_file_takes_little_room(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"1 qid:1 1:1\n" * 10)
    with open_rows(str(tmp_path / "rows"), ReadOptions()) as reader:
        tracemalloc.start()
        try:
            assert sum(map(len, reader)) == 10
            assert tracemalloc.get_traced_memory()[1] < text_module.BLOCK // 4
        finally:
            tracemalloc.stop()


def test_the_sizes_follow_blocks_and_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(text_module, "FIRST_BLOCK", 20)
    monkeypatch.setattr(text_module, "BLOCK", 20)
    (tmp_path / "a").write_text("".join(f"1 1:{i}\n" for i in range(9)))
    (tmp_path / "b").write_text("".join(f"1 1:{i}\n" for i in range(3)))
    (tmp_path / "sizes").write_text("1\n5\n3\n3\n")
    options = ReadOptions(query_sizes=str(tmp_path / "sizes"))
    data = read_dataset([str(tmp_path / "a"), str(tmp_path / "b")], options)
    assert (data.query_ids, data.query_offsets.tolist()) == (["1", "2", "3", "4"], [0, 1, 6, 9, 12])


def test_rows_are_written_so_that_they_read_back(tmp_path: Path) -> None:
    path = tmp_path / "out.svm"
    reader = rows_of(SMALL, keep_document_ids=True)
    with AtomicOutput(str(path)) as out:
        writer = LetorWriter(out, 0.0, WorkerPool(1))
        for block in reader:
            writer.write(block, FeatureColumns(reader.feature_ids))
    assert same(stream_rows(path.read_bytes()), SMALL_ROWS)
    assert path.read_text().splitlines()[0] == "2 qid:q1 1:-0.001 2:nan 3:0.25 #docid = D-1"


def test_minus_zero_is_zero() -> None:
    data = read(b"-0 qid:1 1:-0 2:-0.0 3:-1e-400 4:-0e5\n")
    assert np.signbit(data.features.values).tolist() == [False] * 4
    assert np.signbit(data.labels).tolist() == [False]


@pytest.mark.peers
def test_scikit_learn_reads_the_same(tmp_path: Path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    sample = SAMPLE / "train.svm"
    x, y, qid = datasets.load_svmlight_file(str(sample), query_id=True, zero_based=False, n_features=20)
    data = read_dataset([str(sample)], ReadOptions())
    assert np.array_equal(data.features.dense(20, 0.0), x.toarray())
    assert np.array_equal(data.labels, y)
    assert np.repeat([int(q) for q in data.query_ids], np.diff(data.query_offsets)).tolist() == qid.tolist()


IGNORING = b"1 qid:1 1:1 2:2 3:3 # docid = a\n0 qid:1 2:x 7:5\n0 qid:2 3:1 2:inf 1:4 2:1\n0 qid:2\n2 qid:2 2:1 2:2\n"


def test_ignored_features_are_left_out_as_if_they_were_not_there() -> None:
    wanted = stream_rows(b"1 qid:1 1:1 3:3 # docid = a\n0 qid:1 7:5\n0 qid:2 3:1 1:4\n0 qid:2\n2 qid:2\n")
    for name in ("2", "02"):
        assert stream_rows(IGNORING, ignore_columns=(name,)) == wanted
    data = read(IGNORING, ignore_columns=("2", "7"))
    assert (data.feature_ids.tolist(), len(data.features.values)) == ([1, 3], 4)
    with pytest.raises(DataError, match="value 'y' is not a number"):
        read(IGNORING + b"0 qid:3 2:x 1:y\n", ignore_columns=("2",))


def test_a_feature_to_ignore_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no feature 'nosuch' to ignore"):
        read(SMALL, ignore_columns=("nosuch",))
    warned: list[str] = []
    tell = ReadOptions().telling(lambda text: None, warned.append).tell
    stream = rows_of(SMALL, ignore_columns=("1", "5"), tell=tell)
    stream.alone = True
    list(stream)
    assert len(warned) == 1 and warned[0].endswith("no row has the feature to ignore '5'; check --ignore-columns")
    paths = [str(tmp_path / name) for name in "ab"]
    Path(paths[0]).write_bytes(b"1 qid:1 1:1 2:1\n")
    Path(paths[1]).write_bytes(b"1 qid:2 1:1 5:1\n")
    with WorkerPool(1) as pool:  # one of several inputs is enough
        assert read_dataset(paths, ReadOptions(ignore_columns=("5",)), pool).feature_ids.tolist() == [1, 2]
        assert read_dataset(paths[:1], ReadOptions(ignore_columns=("5", "x"), beside_others=True), pool).n_features == 2


@pytest.mark.parametrize("option", ["label_column", "query_column"])
def test_letor_text_has_no_columns_to_choose(option: str) -> None:
    with pytest.raises(DataError, match=f"LETOR text has no columns: .*; leave out --{option.replace('_', '-')}"):
        read(SMALL, **{option: "1"})
    assert read(SMALL, **{option: "1"}, beside_others=True).n_documents == 6


@pytest.mark.parametrize("comment", ["d\x01x", "docid = d\x01x", "docno:d\x1fx inc = 1"])
def test_a_control_character_in_a_document_id_is_refused(comment: str) -> None:
    (fault,) = faults_of(f"1 qid:1 1:1 # {comment}\n".encode(), keep_document_ids=True)
    assert "holds a control character" in str(fault)
