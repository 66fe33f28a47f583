"""CSV, TSV and Parquet: which column is what, values and refusals; the fast way and the quoted way agree."""

from __future__ import annotations

import csv
import io
import json
import math
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from helpers.reading import faults_of, listed, read, rows_of
from helpers.reading_runs import GOOD, features, trained
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.errors import DataError
from lmart.formats.detection import detect_format
from lmart.formats.documents import text_reader as text_module
from lmart.formats.documents.reading import open_rows, read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain

TABLE = b"""\xef\xbb\xbfqid, rel ,price,docid,stars\r
q 1, 2 ,0.5,A,3\r
q 1,0,,"",1e-3\r
\r
7,1, NA ,B "b", nan \r
7,1,-0,C,12345678901234567890.5"""

ROWS = [
    (2.0, "q 1", [(1, 0.5), (2, 3.0)], "A"),
    (0.0, "q 1", [(1, math.nan), (2, 0.001)], ""),
    (1.0, "7", [(1, math.nan), (2, math.nan)], 'B "b"'),
    (1.0, "7", [(1, 0.0), (2, 12345678901234567890.5)], "C"),
]


def rows(data: bytes | list[bytes], format: str = "csv", **options: Any) -> list[Any]:
    reader = rows_of(data, format, keep_document_ids=True, **options)
    return listed(reader, reader)


PLAIN = TABLE.replace(b'B "b"', b"B b").replace(b'""', b"")
PLAIN_ROWS = [*ROWS[:2], (*ROWS[2][:3], "B b"), ROWS[3]]
QUOTED = TABLE.replace(b'B "b"', b'"B ""b"""')


@pytest.mark.slow
@pytest.mark.parametrize(("table", "expected"), [(PLAIN, PLAIN_ROWS), (QUOTED, ROWS)])
def test_all_that_is_allowed_is_read(table: bytes, expected: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert repr(rows(table)) == repr(expected)
    assert repr(rows(table.replace(b",", b"\t"), "tsv")) == repr(expected)
    for cut in range(len(table)):
        assert repr(rows([table[:cut], table[cut:]])) == repr(expected), cut
    monkeypatch.setattr(text_module, "CHUNK", 1)
    assert repr(rows(table)) == repr(expected)
    data = read(table, "csv")
    assert data.feature_names == ("price", "stars")
    assert data.query_ids == ["q 1", "7"]


FIELDS = st.sampled_from(
    [
        "1",
        "0.5",
        "-3e2",
        "",
        "nan",
        "NA",
        "null",
        "inf",
        "1e400",
        "x",
        "1_0",
        " 2 ",
        "0,5",
        "12345678901234567890123",
        "1e",
        "n",
    ]
)
TEXTS = st.sampled_from(["a", "a", "b", "a b", "é", "", " c", "\x01", "\x1f a", "\u00a0a", "b\x0b"])


@pytest.mark.slow
@settings(max_examples=120)
@given(st.lists(st.tuples(FIELDS, TEXTS, FIELDS, TEXTS), min_size=1, max_size=5), st.booleans())
def test_quoted_and_plain_text_give_the_same(table: list[tuple[str, ...]], infinite: bool) -> None:
    plain = "label\tqid\t5\tdocid\n" + "".join("\t".join(row) + "\n" for row in table)
    quoted = io.StringIO()
    csv.writer(quoted, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    options: dict[str, Any] = {"group_by_qid": True, "max_errors": 100, "allow_inf": infinite}
    results = []
    for text in (plain, "label\tqid\t5\tdocid\n" + quoted.getvalue()):
        try:
            reader = rows_of(text.encode(), "tsv", keep_document_ids=True, **options)
            results.append(repr(listed(chain.from_iterable(reader.volatile_batches()), reader)))
        except DataError as fault:
            results.append(repr([(one.line, one.message) for one in (fault, *fault.more)]))
            assert not any("cannot be read" in one.message for one in (fault, *fault.more))
    assert results[0] == results[1]


def test_numbered_columns_are_the_indices() -> None:
    data = read(b"label,qid,7,0,3\n1,a,70,1,30\n", "csv")
    assert (data.feature_ids.tolist(), data.feature_names) == ([0, 3, 7], None)
    assert data.features.values.tolist() == [1, 30, 70]
    assert read(b"label,qid,07,3\n1,a,1,2\n", "csv").feature_names == ("07", "3")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (b"qid,x\na,1\n", 1, "no column for the label: none of label, relevance, rel, target, y among 'qid', 'x'"),
        (b"label,x\n1,1\n", 1, "no column for the query"),
        (
            b"label,rel,qid\n1,1,1\n",
            1,
            "several columns could be the label, 'label', 'rel'; choose one with --label-column",
        ),
        (b",label,qid,x\n0,1,a,1\n", 1, "column 1 of the header has no name"),
        (b"label,qid,x,x\n1,a,1,2\n", 1, "two columns are named 'x'"),
        (b"label,qid,x\n1,a,zero\n", 2, "value 'zero' is not a number, in column 'x'"),
        (b"label,qid,x\n1,a\n", 2, "the row has 2 fields but the header 3"),
        (b"label,qid,x\n1,a,0,5\n", 2, "the row has 4 fields but the header 3"),
        (b"label,qid,x\n,a,1\n", 2, "no label in column 'label': ''"),
        (b"label,qid,x\n-1,a,1\n", 2, "label '-1' is negative"),
        (b"label,qid,x\ny,a,1\n", 2, "label 'y' is not a number; check column 'label'"),
        (b"label,qid,x\n1,,1\n", 2, "no query id in column 'qid'"),
        (b"label,qid,x\n1,a,inf\n", 2, "value 'inf' is infinite"),
        (b"label,qid,x\n1,a,1\n1,b,1\n1,a,1\n", 4, "rows of query 'a' are not adjacent (first seen at line 2)"),
        (b"label,qid,x\n1,a\0,1\n", 2, r"NUL byte in 'a\x00'"),
        (b'label,qid,x\n1,"a,1\n', 2, "a quoted field is not closed"),
        (b'label,qid,x\n1,"a"b,1\n', 2, "cannot be read as CSV"),
        (b"label,qid,x\n1,\xff,1\n", 2, "not valid UTF-8"),
        (b"label,qid,\xff\n1,1,1\n", 1, "the header is not valid UTF-8"),
        (b"label,qid,x\r1,a,1\r", 1, "carriage return"),
        (b"label,qid,x\n1,a\rb,1\n", 2, "carriage return inside the line"),
        (b"label,qid,x\n1,a \r,1\n", 2, "carriage return inside the line"),
        (b"label,x,qid\r\n1,2,a\r\n0,3,a\r1,2,b\r\n", 3, "carriage return inside the line"),
    ],
)
def test_what_would_mislead_is_refused(text: bytes, line: int, what: str) -> None:
    first = faults_of(text, "csv")[0]
    assert first.line == line
    assert what in first.message


def test_an_empty_field_in_quotes_is_a_row_of_one_column() -> None:
    data = b'price\n""\n\n  \n1\n"2"\n'
    values = [cells for *_, cells, _ in rows(data, require_labels=False, require_queries=False)]
    assert repr(values) == repr([[(1, math.nan)], [(1, 1.0)], [(1, 2.0)]])


@pytest.mark.parametrize("quoted", [False, True])
def test_labels_without_a_gain_are_named_by_line(quoted: bool) -> None:
    row = b'2,"a",1\n' if quoted else b"2,a,1\n"
    text = b"label,qid,x\n\n" + row + b"\n 3 ,a,1\n0.5,a,\n9,a,q\n"
    faults = faults_of(text, "csv", gain=Gain.parse("0,1,3"))
    assert [fault.line for fault in faults] == [5, 6, 7]
    assert faults[0].message.startswith("label 3 has no entry in the gain table, which covers 0 to 2")
    assert "'q' is not a number" in faults[2].message


def test_columns_can_be_chosen_and_left_out() -> None:
    text = b"clicks,who,label,note,x\n3,a,9,hm,1\n"
    data = read(text, "csv", label_column="clicks", query_column="who", ignore_columns=("note", "label"))
    assert (data.labels.tolist(), data.query_ids, data.feature_names) == ([3.0], ["a"], ("x",))
    for options, what in (
        ({"label_column": "no"}, "there is no column 'no' for the label; the columns are 'clicks', 'who', 'label', "),
        ({"label_column": "click"}, "; perhaps 'clicks'"),
        ({"label_column": "no"}, "; perhaps 'label'"),  # which such a column is usually called
        ({"query_column": "WHO"}, "; perhaps 'who'"),
        ({"ignore_columns": ("no",)}, "there is no column 'no' to ignore"),
        ({"ignore_columns": ("notes",)}, "; perhaps 'note'"),
        ({"label_column": "who", "query_column": "who"}, "cannot be both"),
    ):
        assert what in faults_of(text, "csv", **options)[0].message


def test_columns_of_several_files_meet_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,qid,x,y1\n1,a,1,2\n")
    (tmp_path / "b.csv").write_text("qid,y1,label,z,x\nb,20,1,30,10\n")
    (tmp_path / "c.svm").write_text("1 qid:c 1:1\n")
    a, b, c = (str(tmp_path / name) for name in ("a.csv", "b.csv", "c.svm"))
    data = read_dataset([a, b], ReadOptions())
    assert data.feature_names == ("x", "y1", "z")
    assert data.features.dense(3, math.nan).tolist()[1] == [10, 20, 30]
    for pair in ((a, c), (c, a)):
        with pytest.raises(DataError, match="names"):
            read_dataset(pair, ReadOptions())


def test_content_tells_the_format(tmp_path: Path) -> None:
    for name, text, kind in (
        ("a", "label,qid,x\n1,a,2\n", "csv"),
        ("b", "label\tqid\tx\n1\ta\t2\n", "tsv"),
        ("c", "# note\n1 qid:1 1:2\n", "letor"),
        ("d.txt", "1 qid:a,b 1:2\n", "letor"),
        ("e.csv", "label,qid,x\n1,a,2\n", "csv"),
        ("f", '{"format": "lmart"}', "lmart"),
        ("g.svm", "label,qid,x\n", "letor"),
        ("h", "1,2,3\n", "csv"),  # whose header is missing
        ("i", "1 2 3\n", "letor"),
    ):
        (tmp_path / name).write_text(text)
        assert detect_format(str(tmp_path / name)) == kind, name
    with pytest.raises(DataError, match="is a model"):
        open_rows(str(tmp_path / "f"), ReadOptions())


def parquet(path: Path, **columns: object) -> str:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    return str(path)


def test_parquet_is_read(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "a", label=[1, 0, 2], qid=["a", "a", "b"], x=[1.5, None, -0.0], n=[1, 2, 3], ok=[True, False, True]
    )
    data = read_dataset([path], ReadOptions())
    assert data.feature_names == ("x", "n", "ok")
    assert repr(data.features.dense(3, 9.0).tolist()) == "[[1.5, 1.0, 1.0], [nan, 2.0, 0.0], [0.0, 3.0, 1.0]]"
    assert (data.labels.tolist(), data.query_ids) == ([1, 0, 2], ["a", "b"])
    assert read_dataset([parquet(tmp_path / "b", label=[1.0], qid=[7.0])], ReadOptions()).query_ids == ["7"]


def test_parquet_is_refused_where_it_would_mislead(tmp_path: Path) -> None:
    good = {"label": [1, 1], "qid": ["a", "a"]}
    for i, (columns, what) in enumerate(
        (
            (good | {"x": ["u", "v"]}, "column 'x' holds string, no numbers"),
            (good | {"x": [1.0, math.inf]}, ":2: value 'inf' is infinite"),
            (good | {"label": [1, None]}, ":2: label 'nan'"),
            (good | {"label": [-1, 1]}, ":1: label '-1.0'"),
            (good | {"qid": [1.5, 2.0]}, "column 'qid' holds double, no query ids"),
            (good | {"qid": [None, "a"]}, ":1: no query id"),
            ({"label": [1, 1, 1], "qid": ["a", "b", "a"]}, ":3: rows of query 'a' are not adjacent"),
        )
    ):
        with pytest.raises(DataError) as caught:
            read_dataset([parquet(tmp_path / str(i), **columns)], ReadOptions())
        assert what in str(caught.value)
    whole = Path(parquet(tmp_path / "w", **good)).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-20])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_dataset([str(tmp_path / "cut.parquet")], ReadOptions())


def test_parquet_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"PAR1....")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match="needs the package pyarrow: pip install pyarrow"):
        read_dataset([str(tmp_path / "a")], ReadOptions())


def test_a_csv_of_the_same_data_gives_the_same_trees(tmp_path: Path) -> None:
    table = "label,qid,1,2,3\n" + "".join(
        ",".join([row.split()[0], row.split()[1][4:], *(cell.split(":")[1] for cell in row.split()[2:])]) + "\n"
        for row in GOOD.splitlines()
    )
    assert trained(tmp_path, table, name="d.csv") == trained(tmp_path, GOOD)
    assert trained(tmp_path, table, name="no-suffix") == trained(tmp_path, GOOD)
    named = trained(tmp_path, table.replace("1,2,3", "a,b,c", 1), name="d.csv")
    assert json.loads(named)["trees"] == json.loads(trained(tmp_path, GOOD))["trees"]
    assert features(named) == ["a", "b", "c"]
