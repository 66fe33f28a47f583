"""Tables, the same in each format: equal data or equal refusals; headers that are none; what predict need not know."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import run
from helpers.reading import faults_of, read

from lmart.errors import DataError
from lmart.formats.detection import detect_format
from lmart.formats.documents import quoted
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain

FORMATS = ("csv", "tsv", "parquet")
Table = dict[str, Sequence[object]]


def write(folder: Path, format: str, table: Table, metadata: dict[str, object] | None = None) -> Path:
    """Write a table; None is a null, or an empty field."""
    path = folder / f"table.{format}"
    if format == "parquet":
        arrow = pytest.importorskip("pyarrow")
        columns = arrow.table([arrow.array(list(values)) for values in table.values()], names=list(table))
        if metadata is not None:
            columns = columns.replace_schema_metadata({"pandas": json.dumps(metadata)})
        pytest.importorskip("pyarrow.parquet").write_table(columns, path)
        return path
    text = io.StringIO()
    writer = csv.writer(text, delimiter=quoted.DELIMITERS[format], lineterminator="\n")
    writer.writerow(table)
    writer.writerows(["" if x is None else x for x in row] for row in zip(*table.values(), strict=True))
    path.write_bytes(text.getvalue().encode("utf-8", "surrogateescape"))
    return path


GOOD: Table = {"label": [1, 0, 2], "qid": ["a", "a", "b"], "x": [0.5, None, -3.0]}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        (GOOD, {}, (("x",), "[[0.5], [nan], [-3.0]]", [1, 0, 2], None)),
        (
            GOOD | {"label": [True, False, True], "x": [True, False, None]},
            {},
            (("x",), "[[1.0], [0.0], [nan]]", [1, 0, 1], None),
        ),
        (
            GOOD | {"x": [Decimal("1.10"), Decimal("0.30"), Decimal("2.00")]},
            {},
            (("x",), "[[1.1], [0.3], [2.0]]", [1, 0, 2], None),
        ),
        (
            GOOD | {"asin": [17, 4, 9], "docid": [1, 2, 3]},
            {"document_column": "asin"},
            (("x",), "[[0.5], [nan], [-3.0]]", [1, 0, 2], ["17", "4", "9"]),
        ),
        (
            GOOD | {"docno": ["p q", None, "\u00e9"]},
            {},
            (("x",), "[[0.5], [nan], [-3.0]]", [1, 0, 2], ["p q", "", "\u00e9"]),
        ),
        (
            GOOD | {"qid": [" a", "a ", "b"], "docno": [" p q ", " ", "r"]},
            {},
            (("x",), "[[0.5], [nan], [-3.0]]", [1, 0, 2], ["p q", "", "r"]),
        ),
        (
            GOOD | {"__index_level_0__": [3, 1, 2], "__null_dask_index__": [0, 1, 2], "Unnamed: 0": [1, 2, 3]},
            {},
            (("x",), "[[0.5], [nan], [-3.0]]", [1, 0, 2], None),
        ),
        (
            GOOD | {"title": ["r", "s", "t"], "a,b": ["u", "v", "w"]},
            {"ignore_columns": ("title", "a,b")},
            (("x",), "[[0.5], [nan], [-3.0]]", [1, 0, 2], None),
        ),
        ({" label": [1], "qid ": ["a"], " x ": [2]}, {}, (("x",), "[[2.0]]", [1], None)),
        ({"label": [1], "qid": ["a"], "7": [2], "3": [5]}, {}, (None, "[[5.0, 2.0]]", [1], None)),
    ],
)
def test_the_same_table_gives_the_same_data_in_each_format(
    table: Table, options: dict[str, Any], expected: tuple[object, ...], format: str, tmp_path: Path
) -> None:
    path = write(tmp_path, format, table)
    data = read_dataset([str(path)], ReadOptions(keep_document_ids=True, **options))
    dense = repr(data.features.dense(data.n_features, 9.0).tolist())
    documents = None if data.document_ids is None else list(data.document_ids)
    assert (data.feature_names, dense, data.labels.tolist(), documents) == expected
    assert list(data.query_ids) == list(dict.fromkeys(str(one).strip(" ") for one in table.get("qid", ["a"])))


LATIN = b"caf\xe9".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        (GOOD | {"label": [-1, -1, -1]}, {}, ["is missing or no label|is negative, as in most rows"]),
        (GOOD | {"qid": [None, None, "a"]}, {}, ["no query id in column 'qid': '', as in most rows"]),
        (GOOD | {"qid": ["a\x1b", "b", "c"]}, {}, [r"query id 'a\\x1b' holds a control character"]),
        (GOOD | {"qid": ["a\x7f", "b", "c"]}, {}, [r"query id 'a\\x7f' holds a control character"]),
        (GOOD | {"qid": ["a\x9b", "b", "c"]}, {}, [r"query id 'a\\x9b' holds a control character"]),
        (GOOD | {"docid": ["a", "b\x07", "c"]}, {}, [r"document id 'b\\x07' holds a control character"]),
        (GOOD | {"x\x1b": [1, 2, 3]}, {}, [r"the name of column 4, 'x\\x1b', holds a control character"]),
        (GOOD, {"document_column": "asin"}, ["there is no column 'asin' for the document id"]),
        (
            GOOD,
            {"document_column": "x", "ignore_columns": ("x",)},
            ["column 'x' is both the document id and to be ignored; leave out one of the options"],
        ),
        (GOOD | {"y1": ["u", "v", "w"], "y2": ["u", "v", "w"]}, {}, ["column 'y1' holds ", "column 'y2' holds "]),
        (
            GOOD | {"qid": ["a b", "a#", "c"], "docid": ["d e", "f", "g"]},
            {"ids_for_letor": True},
            ["query id 'a b' holds a blank", "document id 'd e' holds a blank", "query id 'a#' holds '#'"],
        ),
        (GOOD, {"query_sizes": "sizes"}, ["the rows have query ids already, in column 'qid'"]),
    ],
)
def test_the_same_table_is_refused_alike_in_each_format(
    table: Table, options: dict[str, Any], expected: list[str], format: str, tmp_path: Path
) -> None:
    if "query_sizes" in options:
        (tmp_path / "sizes").write_text("3\n")
        options = {"query_sizes": str(tmp_path / "sizes")}
    path = write(tmp_path, format, table)
    with pytest.raises(DataError) as caught:
        read_dataset([str(path)], ReadOptions(keep_document_ids=True, **options))
    faults = [caught.value, *caught.value.more]
    assert len(faults) == len(expected), faults
    for fault, what in zip(sorted(map(str, faults)), sorted(expected), strict=True):
        assert any(one in fault for one in what.replace("\\\\", "\\").split("|")), fault


@pytest.mark.parametrize("format", FORMATS)
def test_a_column_that_the_model_does_not_know_is_not_parsed(format: str, tmp_path: Path) -> None:
    train = write(tmp_path, format, {"label": [2, 0, 0, 1], "qid": list("aabb"), "x": [9, 4, 1, 7], "z": [1, 2, 2, 1]})
    model = tmp_path / "m.json"
    run("train", "--data", train, "--min-docs", "1", "--trees", "3", "-q", "-o", model)
    plain = run("predict", "-m", model, "--data", train).stdout
    more = {"label": ["?", "", "-1", "nan"], "qid": list("aabb"), "title": ["red shoe", "b", "c", "d"]}
    table = write(tmp_path, format, {**more, "x": [9, 4, 1, 7], "z": [1, 2, 2, 1]})
    scored = run("predict", "-m", model, "--data", table)
    assert scored.stdout == plain
    notice = "column 'title' is left out: it holds text, and the model does not know it; give --document-column if it"
    assert notice in scored.stderr and "warning" not in scored.stderr
    assert run("predict", "-m", model, "--data", table, "-q").stderr == ""
    assert "'title'" not in run("predict", "-m", model, "--data", table, "--document-column", "title").stderr
    assert "'title'" in run("predict", "-m", model, "--data", table, "--strict", status=1).stderr
    judged = write(tmp_path, format, {**more, "label": [2, 0, 0, 1], "x": [9, 4, 1, 7], "z": [1, 2, 2, 1]})
    assert notice in run("eval", "-m", model, "--data", judged).stderr
    scores = tmp_path / "scores"
    scores.write_text(plain)
    run("eval", "--scores", scores, "--data", judged)
    (tmp_path / "label").mkdir()
    known = write(tmp_path / "label", format, {"label": [2, 0, 0, 1], "qid": list("aabb"), "x": [9, 4, 1, 7]})
    for folds in ((), ("--folds", "2")):
        out = run("train", "--data", known, "--valid", judged, "--min-docs", "1", *folds, "-o", tmp_path / "n.json")
        assert notice in out.stderr and "1 of 2 features is not in the model: 'z'" in out.stderr


def test_numbered_columns_of_a_model_are_known_beside_text(tmp_path: Path) -> None:
    (tmp_path / "t.svm").write_text("2 qid:1 1:5 2:9\n0 qid:1 1:5 2:4\n0 qid:2 1:5 2:1\n1 qid:2 1:5 2:7\n")
    model, table = tmp_path / "m.json", tmp_path / "t.csv"
    run("train", "--data", tmp_path / "t.svm", "--min-docs", "1", "--trees", "3", "-q", "-o", model)
    table.write_text("qid,title,2,1\n1,red,9,5\n1,blue,4,5\n2,x,1,5\n2,y,7,5\n")
    scored = run("predict", "-m", model, "--data", table)
    assert scored.stdout == run("predict", "-m", model, "--data", tmp_path / "t.svm").stdout
    assert "column 'title' is left out: it holds text" in scored.stderr
    table.write_text("qid,price,2,1\n1,3,9,5\n1,4,4,5\n2,5,1,5\n2,6,7,5\n")
    assert "1 of 3 features is not in the model: 'price'; s" in run("predict", "-m", model, "--data", table).stderr
    table.write_text("qid,title,2,1\n1,red,9,5\n1,blue,4,5\n2,x,1,5\n2,y,7,5\n")
    assert "by number" not in scored.stderr
    assert "'title'; drop them" in run("predict", "-m", model, "--data", table, "--strict", status=1).stderr


def test_labels_of_letor_text_are_not_judged_where_none_is_needed(tmp_path: Path) -> None:
    rows, model = tmp_path / "t.svm", tmp_path / "m.json"
    rows.write_text("2 qid:1 1:5 2:9\n0 qid:1 1:5 2:4\n")
    run("train", "--data", rows, "--min-docs", "1", "--trees", "2", "-q", "-o", model)
    plain = run("predict", "-m", model, "--data", rows).stdout
    for first, second in (("?", "-1"), ("-1", "nan"), ("1", "inf"), ("NA", "-"), ("1e400", "null")):
        rows.write_text(f"{first} qid:1 1:5 2:9\n{second} qid:1 1:5 2:4\n")
        assert run("predict", "-m", model, "--data", rows).stdout == plain
        run("convert", rows, "-", status=1)
    rows.write_text("? qid:1 1:5\nfoo qid:1 1:5\n-1 qid:1 1:x\n")
    shown = run("predict", "-m", model, "--data", rows, status=1).stderr
    assert ":2: label 'foo' is not a number" in shown and ":3: value 'x' is not a number" in shown
    rows.write_text("foo qid:1 1:5\n")
    run("predict", "-m", model, "--data", rows, status=1)


@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1.5,9\n3.5,4\n", "'1.5' is a number"),
        ("2,7,1.5,9\n0,7,3.5,4\n", "'1.5' is a number"),
        ("2,q1,-5,9\n0,q2,3,4\n", "'-5' is a number"),
        ("2,q1,1e5,9\n0,q2,3,4\n", "'1e5' is a number"),
        ("2,7,5,5\n0,7,3,4\n", "the number '5' occurs twice"),
        ("007,01\n008,02\n", "'007' is a number"),
        ("2,,nan\n0,1,2\n", "every field is a number"),
    ],
)
def test_a_first_line_that_is_data_is_no_header(text: str, what: str, format: str) -> None:
    text = text.replace(",", quoted.DELIMITERS[format])
    for options in ({}, {"require_labels": False, "require_queries": False}):
        (fault,) = faults_of(text.encode(), format, **options)
        assert fault.line == 1
        assert f"the first line looks like data, not a header: {what}" in fault.message
        assert "--" not in fault.message


def test_whole_numbers_may_be_names_but_are_no_labels() -> None:
    assert read(b"7,3\n1,2\n", "csv", require_labels=False, require_queries=False).feature_ids.tolist() == [3, 7]
    chosen = {"label_column": "2", "query_column": "7"}
    assert read(b"2,7,1\n1,a,5\n", "csv", **chosen).feature_ids.tolist() == [1]
    assert read(b"label,qid,0.25,0.5\n1,a,5,6\n", "csv").feature_names == ("0.25", "0.5")
    (fault,) = faults_of(b"2,7,1\n0,7,5\n", "csv")
    assert "every field is a number" in fault.message and "--" not in fault.message
    (fault,) = faults_of(b"2,red,1\n0,blue,5\n", "csv")
    assert "put a header line before it if the first line is data, else" in fault.message


@pytest.mark.parametrize(
    ("format", "text", "what"),
    [
        ("csv", "label;qid;a\n1;1;2\n", "separated by ';', not by ','"),
        ("csv", "label|qid|a\n1|1|2\n", "separated by '|', not by ','"),
        ("csv", "label qid a\n1 1 2\n", "separated by blanks, not by ','"),
        ("csv", "label\tqid\ta\n1\t1\t2\n", "separated by tabs, not by ','; name the file .tsv"),
        ("tsv", "label,qid,a\n1,1,2\n", "separated by ',', not by tabs; name the file .csv"),
        ("csv", "sep=,\nlabel,qid,a\n1,1,2\n", "the line 'sep=,' is for Excel alone"),
        ("csv", "sep=;\nlabel;qid;a\n1;1;2\n", "the line 'sep=;' is for Excel alone"),
        ("csv", "# made, today\nlabel,qid,a\n1,1,2\n", "the line '# made, today' is a comment"),
        ("csv", "# label,qid,a\n1,1,2\n", "the header begins with '# label'; take out the '#'"),
        ("csv", "2 qid:1 1:0.5\n", "the line is LETOR text, not a header"),
        ("csv", "label,qid,a\n1,1,2,3\n0,1,2,3\n", "the row has 4 fields but the header 3, and so have all rows"),
    ],
)
def test_another_separator_is_named_once(format: str, text: str, what: str) -> None:
    for options in ({}, {"require_labels": False, "require_queries": False}):
        (fault,) = faults_of(text.encode(), format, **options)
        assert what in fault.message and "-column" not in fault.message
    assert read(b"#clicks,label,qid\n1,1,a\n", "csv").feature_names == ("#clicks",)


@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize("inches", [1, 2, 3])
def test_a_quote_inside_a_field_is_a_character(inches: int, format: str) -> None:
    for rest in ("plain", '"in, ""quotes"""'):
        rows = [f'1,1,{i}" laptop,{i}' if i < inches else f"0,1,case,{i}" for i in range(5)]
        text = "\n".join(["label,qid,title,f", *rows, f"1,1,{rest},5", ""])
        if format == "tsv":
            text = "\n".join("\t".join(row) for row in csv.reader(text.split("\n"))).replace(
                'in, "quotes"', "in quotes"
            )
        data = read(text.encode(), format, ignore_columns=("title",))
        assert data.features.values.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("format", FORMATS)
def test_queries_that_come_back_are_one_fault_beside_others(format: str, tmp_path: Path) -> None:
    n = 40
    table: Table = {"label": [1] * n, "qid": [f"q{i % 7}" for i in range(n)], "x": list(range(n))}
    columns: Table = {"title": [f"t{i}" for i in range(n)], "brand": ["b"] * n}
    table |= columns if format != "parquet" else {}  # which finds columns of text by their type
    with pytest.raises(DataError) as caught:
        read_dataset([str(write(tmp_path, format, table))], ReadOptions())
    told = [(fault.line, fault.message) for fault in (caught.value, *caught.value.more)]
    first = 1 if format == "parquet" else 2
    assert [line for line, _ in told] == [*[2] * (format != "parquet") * 2, first + 7]
    assert told[-1][1].startswith("rows of query 'q0' are not adjacent")
    assert told[-1][1].endswith("put them together, or use --group-by-qid (32 more such lines so far)")


@pytest.mark.parametrize("format", FORMATS)
def test_a_label_without_a_gain_is_one_fault(format: str, tmp_path: Path) -> None:
    path = write(tmp_path, format, {"label": [1, 4, 3, 4, 4, 3], "qid": ["a"] * 6, "x": [1] * 6})
    with pytest.raises(DataError) as caught:
        read_dataset([str(path)], ReadOptions(gain=Gain.parse("0,2")))
    told = [(fault.line, fault.message) for fault in (caught.value, *caught.value.more)]
    first = 1 if format == "parquet" else 2
    advice = "which covers 0 to 1; give a longer --gain table, or use exp2 or linear"
    assert told == [
        (first + 1, f"label 4 has no entry in the gain table, {advice} (2 more such lines so far)"),
        (first + 2, f"label 3 has no entry in the gain table, {advice} (1 more such line so far)"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 1, 7])
def test_a_quote_that_is_never_closed_is_refused_at_its_own_line(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f'1,1,{i}" and "x",{i}' for i in range(before)]
    text = "\n".join(["label,qid,title,f", *rows, '1,1,"open,2', *["0,1,case,1"] * 50, ""]).encode()
    options = {"ignore_columns": ("title",)}
    (fault,) = faults_of(text, "csv", **options)
    assert fault.line == before + 2 and "is not closed before the end of the file" in fault.message
    monkeypatch.setattr(quoted, "LONGEST_RECORD", 100)
    (fault,) = faults_of(text, "csv", **options)
    assert fault.line == before + 2 and "is not closed within 100 characters" in fault.message
    for cut in range(0, len(text), 7):
        (fault,) = faults_of([text[:cut], text[cut:]], "csv", **options)
        assert fault.line == before + 2
    (fault,) = faults_of(text + b'1,1,"closed",3\n', "csv", **options)
    assert fault.line == before + 2


@pytest.mark.parametrize("quoted", [False, True])
def test_rows_of_tabs_alone_count_in_a_faulty_column(quoted: bool) -> None:
    rows = b"\t\n\t\n0\ta\n1_0\ta\n"
    text = b"label\tqid\n" + (b'""' if quoted else b"") + rows
    assert [(fault.line, fault.message.split(";")[0]) for fault in faults_of(text, "tsv")] == [
        (2, "no label in column 'label': '', as in most rows"),
        (2, "no query id in column 'qid': ''"),
        (3, "no query id in column 'qid': ''"),
    ]


def test_faults_before_a_broken_quote_are_told() -> None:
    text = b'label,qid,x\n2,a,"2"\n0,b,1\n1,a,2\n1,b,0\n"1" ,a,2\n'
    assert [fault.line for fault in faults_of(text, "csv")] == [4, 6]  # line 5 has the same fault


def test_quotes_that_the_header_leaves_open_are_named() -> None:
    (fault,) = faults_of(b'label,qid,"x\ny"\n1,a,2\n', "csv")
    assert fault.line == 1 and "quotes that are not closed" in fault.message


@pytest.mark.slow
def test_a_quoted_field_of_several_lines_is_read_however_the_input_is_cut() -> None:
    text = b'label,qid,title,f\n1,a,"x\n""y"",\n",2\n0,a,z" w,3\n1,a,"\n\n",4\n'
    for cut in range(len(text)):
        data = read([text[:cut], text[cut:]], "csv", ignore_columns=("title",))
        assert data.features.values.tolist() == [2, 3, 4], cut
    assert [f.line for f in faults_of(text + b'1,a,"t",bad\n', "csv", ignore_columns=("title",))] == [9]


def test_a_field_of_any_length_is_read_beside_quoted_ones() -> None:
    text = b"label,qid,title,f\n1,a," + b"x" * 200_000 + b',2\n0,a,"z",3\n'
    assert read(text, "csv", ignore_columns=("title",)).features.values.tolist() == [2, 3]


def test_long_fields_are_read_by_several_threads_at_once() -> None:
    texts = [b'label,qid,title,f\n1,a,"' + b"x" * size + b'",2\n0,a,"z",3\n' for size in (140_000, 5)]
    readers = [iter(quoted.QuotedRecords(text, "csv", 0, partial(DataError, "t"))) for text in texts]
    both = [[next(reader) for reader in readers] for _ in range(3)]  # the limit of csv is one for all threads
    assert [[len(fields[2]) for _, fields in pair] for pair in both] == [[5, 5], [140_000, 5], [1, 1]]
    assert [list(reader) for reader in readers] == [[], []]
    csv.field_size_limit(100)  # as a program that uses lmart may
    try:
        assert read(texts[0], "csv", ignore_columns=("title",)).features.values.tolist() == [2, 3]
    finally:
        csv.field_size_limit(1 << 17)


def test_a_name_of_a_column_may_have_any_length(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text(f"label,qid,{'x' * 140_000}\n1,a,2\n0,a,3\n")
    csv.field_size_limit(1 << 17)
    assert detect_format(str(path)) == "csv"
    csv.field_size_limit(1 << 17)
    assert read(path.read_bytes(), "csv").features.values.tolist() == [2, 3]


@pytest.mark.parametrize("quoted", [False, True])
def test_a_column_of_text_is_one_fault_and_damaged_cells_are_one_each(quoted: bool) -> None:
    sign = '"' if quoted else ""
    rows = [f"1,1,{sign}t{i}{sign},a b,1;5,{i},{'x' if i % 9 == 4 else i}" for i in range(40)]
    text = "\n".join(["label,qid,title,brand,odd,good,f", *rows, ""]).encode()
    faults = faults_of(text, "csv", max_errors=6)
    assert [fault.line for fault in faults] == [2, 2, 2, 6, 15, 24]
    advice = "give --document-column title if it names documents, or leave it out with --ignore-columns title,brand,odd"
    assert faults[0].message == f"column 'title' holds text, such as 't0'; {advice}"
    assert "column 'brand' holds text, such as 'a b'; in training, name it with --categorical" in faults[1].message
    for options in ({"document_column": "good"}, {"ignore_columns": ("good",)}):
        told = faults_of(text, "csv", max_errors=6, **options)[0].message
        assert ("--document-column" in told) == ("document_column" not in options)
    assert all("value 'x' is not a number, in column 'f'" in fault.message for fault in faults[3:])
    commas = "".join(f"1\t1\t0,{i}\n" for i in range(40))
    (fault,) = faults_of(f"label\tqid\tx\n{commas}".encode(), "tsv")
    assert fault.message == "value '0,0' has a comma, in column 'x', as in most rows; write a decimal point"


def test_true_and_false_are_one_and_zero() -> None:
    for quote in ("", '"'):
        words = ("True", "false", "TRUE", "False", " true ", "FALSE")
        text = "label,qid,x\n" + "".join(f"{quote}{word}{quote},1,{quote}{word}{quote}\n" for word in words)
        data = read(text.encode(), "csv")
        assert data.features.values.tolist() == data.labels.tolist() == [1, 0, 1, 0, 1, 0]
        for word in ("tru", "truee", "fals", "falsee", "t", "yes"):
            (fault,) = faults_of(f"label,qid,x\n1,1,{quote}{word}{quote}\n".encode(), "csv")
            assert f"value '{word}' is not a number" in fault.message


def test_the_later_of_two_equal_columns_counts_when_asked() -> None:
    text = b"label,qid,x,y1,x\n1,a,2,3,4\n"
    data = read(text, "csv", duplicates="last")
    assert (data.feature_names, data.features.values.tolist()) == (("y1", "x"), [3, 4])
    assert "two columns are named 'x'" in faults_of(text, "csv")[0].message


def test_document_ids_of_letor_text_are_utf8() -> None:
    text = b"1 qid:1 1:1 # D1\n\n0 qid:1 1:2 # caf\xe9\n"
    (fault,) = faults_of(text, "letor", keep_document_ids=True)
    assert fault.line == 3 and r"document id 'caf\xe9' is not valid UTF-8" in fault.message
    assert read(text, "letor").n_documents == 2


def test_text_of_parquet_that_is_not_utf8_is_one_line(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    latin = arrow.Array.from_buffers(
        arrow.string(), 2, [None, arrow.py_buffer(b"\0\0\0\0\4\0\0\0\5\0\0\0"), arrow.py_buffer(b"caf\xe9x")]
    )
    plain = arrow.array(["1", "1"])
    binary = arrow.array([b"p", b"q"])
    for columns, what in (
        ({"qid": latin, "docid": plain}, r":1: query id 'caf\xe9' is not valid UTF-8"),
        ({"qid": plain, "docid": latin}, r":1: document id 'caf\xe9' is not valid UTF-8"),
        ({"qid": plain, "docid": binary}, ""),
    ):
        table = arrow.table({"label": [1, 0], "x": [0.5, 0.2], **columns})
        pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "t.parquet")
        shown = run("convert", tmp_path / "t.parquet", "-", status=bool(what)).stderr
        assert what in shown and len(shown.splitlines()) == 1


def test_an_index_that_pandas_wrote_is_left_out_and_told_once(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    named = {"name": "place", "field_name": "place"}
    unnamed = {"name": None, "field_name": "__index_level_0__"}
    metadata = {"index_columns": ["__index_level_0__", "place"], "columns": [unnamed, named]}
    table = write(tmp_path, "parquet", GOOD | {"place": [1, 2, 3], "__index_level_0__": [2, 1, 0]}, metadata)
    model = tmp_path / "m.json"
    shown = run("train", "--data", table, "--valid", table, "--trees", "1", "--min-docs", "1", "-o", model).stderr
    assert shown.count("table.parquet: column '__index_level_0__' is left out: it is an index that pandas") == 1
    assert json.loads(model.read_text())["feature_names"] == ["x", "place"]
    for command in (("predict", "-m", model), ("eval", "-m", model), ("eval", "-m", model, "-q")):
        shown = run(*command, "--data", table).stderr
        assert shown.count("is left out") == ("-q" not in command) and "not in the model" not in shown
    assert run("convert", table, tmp_path / "o.csv").stderr.count("is left out") == 1
    chosen = read_dataset([str(table)], ReadOptions(document_column="__index_level_0__", keep_document_ids=True))
    assert chosen.document_ids == ["2", "1", "0"]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("d.jsonl", b'{"label": 1, "qid": 2, "a": 3}\n', "JSON is not read as data; give LETOR, CSV, TSV or Parquet"),
        ("d.json", b'{"label": 1, "qid": 2, "a": 3}\n', "JSON is not read as data"),
        ("d.csv", b'[{"label": 1, "qid": 2, "a": 3}]\n', "JSON is not read as data"),
        ("d", b'[\n {"label": 1}]\n', "JSON is not read as data"),
        ("m.json", b'{"format": "lmart", "version": 1}\n', "is a model by its name or content (lmart)"),
        ("d.feather", b"ARROW1\0\0", "this is Arrow (Feather), which lmart does not read; give LETOR"),
        ("d.h5", b"\x89HDF\r\n\x1a\n", "this is HDF5, which lmart does not read; give LETOR"),
    ],
)
def test_a_format_that_is_not_read_is_named(name: str, content: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_dataset([str(tmp_path / name)], ReadOptions())
    assert what in str(caught.value) and not caught.value.more


def test_columns_to_leave_out_may_have_commas_or_no_name(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(',label,qid,"a,b",c,"d ""e"""\nr,1,7,x,1,y\n')
    assert "column 1 of the header has no name" in run("convert", table, "-", status=1).stderr
    for given in (['"","a,b",c,"d ""e"""'], ['"a,b" , ""', 'c,"d ""e"""'], ['"",c,', '"a,b","d ""e"""']):
        options = [word for one in given for word in ("--ignore-columns", one)]
        assert run("convert", table, "-", *options).stdout == "1 qid:7\n"
    for wrong in ('"a,b', 'a"b', '"a"b'):
        run("convert", table, "-", "--ignore-columns", wrong, status=2 if wrong != 'a"b' else 1)


def test_convert_names_the_exact_line_of_an_id_and_never_guesses_a_format(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("label,qid,x\n\n1,a,1\n\n0,red shoe,2\n")
    shown = run("convert", table, "-", status=1).stderr
    assert f"{table}:5: query id 'red shoe' holds a blank and cannot stand in LETOR text; rename it, or write" in shown
    table.write_text("label,qid,x\n1,a,1\n")
    for name in ("out.foo", "out.txt", "out"):
        shown = run("convert", table, tmp_path / name, status=2).stderr
        assert "does not say which format is meant; give --to, as in --to letor" in shown
        run("convert", table, tmp_path / name, "--to", "letor")
    assert "--absent changes nothing" in run("convert", table, "-", "--absent", "missing").stderr


@pytest.mark.slow
def test_very_many_columns_take_linear_time() -> None:
    seconds = []
    for n in (20_000, 80_000):
        text = f"label,qid,{','.join(f'c{i}' for i in range(n))}\n1,a{',5' * n}\n".encode()
        began = time.process_time()
        assert read(text, "csv").n_features == n
        seconds.append(time.process_time() - began)
    assert seconds[1] < 12 * max(seconds[0], 0.05)
