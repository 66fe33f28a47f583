"""lmart convert: each data format to each, exactly; models; and its refusals."""

from __future__ import annotations

import gzip
import itertools
import math
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE
from helpers.reading import read
from hypothesis import given
from hypothesis import strategies as st

from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions

FORMATS = {"letor": "svm", "csv": "csv", "tsv": "tsv", "parquet": "parquet"}
HARD = b"""2 qid:a 1:0.1 3:1e-320 10:nan #docid = D,"1
0 qid:a 1:123456789.123456789 3:-0.30000000000000004 10:1e300
1.5 qid:\xc3\xa9,b 1:0 10:9007199254740993
"""


def contents(path: Path, absent: float = 0.0) -> tuple[object, ...]:
    data = read_dataset([str(path)], ReadOptions(keep_document_ids=True))
    dense = repr(data.features.dense(data.n_features, absent).tolist())
    return data.feature_ids.tolist(), dense, data.labels.tolist(), list(data.query_ids), list(data.document_ids or ())


@pytest.mark.parametrize(("first", "second"), list(itertools.product(FORMATS, FORMATS)))
def test_each_format_converts_to_each_and_back(first: str, second: str, tmp_path: Path) -> None:
    if "parquet" in (first, second):
        pytest.importorskip("pyarrow")
    source = tmp_path / "hard.svm"
    source.write_bytes(HARD)
    a, b, back = (tmp_path / f"{name}.{FORMATS[kind]}" for name, kind in (("a", first), ("b", second), ("c", "letor")))
    run("convert", source, a)
    run("convert", a, b)
    run("convert", b, back)
    assert contents(a) == contents(b) == contents(source)
    assert back.read_bytes() == (
        b'2 qid:a 1:0.1 3:1e-320 10:nan #docid = D,"1\n'
        b"0 qid:a 1:123456789.12345679 3:-0.30000000000000004 10:1e+300\n"
        b"1.5 qid:\xc3\xa9,b 1:0 3:0 10:9007199254740992\n"
        if (first, second) != ("letor", "letor")
        else back.read_bytes()
    )


def test_absent_cells_become_zero_or_empty(tmp_path: Path) -> None:
    source, table = tmp_path / "a.svm", tmp_path / "a.csv"
    source.write_text("1 qid:1 1:5\n0 qid:1 2:0\n")
    run("convert", source, table)
    assert table.read_text() == "label,qid,1,2\n1,1,5,0\n0,1,0,0\n"
    run("convert", source, table, "--absent", "missing")
    assert table.read_text() == "label,qid,1,2\n1,1,5,\n0,1,,0\n"
    assert run("convert", table, "-").stdout == "1 qid:1 1:5 2:nan\n0 qid:1 1:nan 2:0\n"


def test_rows_without_label_or_query_stay_so(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    for text, table in (("1:5\n", "1\n5\n"), ("qid:q 1:5\n", "qid,1\nq,5\n"), ("3 1:5\n", "label,1\n3,5\n")):
        source.write_text(text)
        run("convert", source, tmp_path / "a.csv")
        assert (tmp_path / "a.csv").read_text() == table
        assert run("convert", tmp_path / "a.csv", "-").stdout == text


def test_names_are_kept_between_tables_and_numbered_in_letor(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text('label,qid,"a ""b""",c\n1,q,1,2\n')
    assert run("convert", table, "-", "--to", "tsv").stdout == 'label\tqid\t"a ""b"""\tc\n1\tq\t1\t2\n'
    result = run("convert", table, "-")
    assert result.stdout == "1 qid:q 1:1 2:2\n"
    assert "columns are numbered: 1 is 'a \"b\"', 2 is 'c'" in result.stderr
    assert run("convert", "-q", table, "-").stderr == ""


def test_a_returning_query_is_collected_when_asked(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text("1 qid:a 2:1 #x\n2 qid:b 1:2 #y\n3 qid:a 2:3 #z\n")
    run("convert", source, "-", status=1)
    out = run("convert", source, "-", "--group-by-qid").stdout
    assert out == "1 qid:a 2:1 #docid = x\n3 qid:a 2:3 #docid = z\n2 qid:b 1:2 #docid = y\n"
    assert run("convert", source, "-", "--group-by-qid", "--to", "csv").stdout.startswith(
        "label,qid,docid,1,2\n1,a,x,0,1\n"
    )


def test_the_sample_goes_through_gzip_and_standard_streams(tmp_path: Path) -> None:
    run("convert", SAMPLE / "test.svm", tmp_path / "a.csv.gz")
    table = gzip.decompress((tmp_path / "a.csv.gz").read_bytes())
    assert run("convert", "-", "-", "--to", "csv", stdin=(SAMPLE / "test.svm").read_bytes()).stdout.encode() == table
    run("convert", tmp_path / "a.csv.gz", tmp_path / "a.svm")
    assert contents(tmp_path / "a.svm") == contents(SAMPLE / "test.svm")
    again = (tmp_path / "a.csv.gz").read_bytes()
    run("convert", SAMPLE / "test.svm", tmp_path / "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == again


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=5))
def test_every_number_survives_a_table(numbers: list[float]) -> None:
    text = "label,qid,1\n" + "".join(f"1,q,{'' if math.isnan(x) else repr(x)}\n" for x in numbers)
    out = run("convert", "-", "-", stdin=text).stdout.encode()
    expected = [x or 0.0 for x in numbers]
    assert repr(read(out).features.values.tolist()) == repr(expected)


def test_models_are_checked_and_normalised(tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    run("train", "--data", SAMPLE / "train.svm", "--trees", "2", "--out", model)
    run("convert", model, tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == model.read_bytes()
    (tmp_path / "no-suffix").write_bytes(model.read_bytes())
    assert run("convert", tmp_path / "no-suffix", "-").stdout.encode() == model.read_bytes()
    (tmp_path / "cut.json").write_bytes(model.read_bytes()[:100])
    result = run("convert", tmp_path / "cut.json", tmp_path / "o.json", status=1)
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "o.json").exists()


def test_usage_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text("1 qid:1 1:1\n")
    for arguments, what in (
        ((source, "b.txt", "--to", "ranklib"), "letor holds data and ranklib a model"),
        (("m.onnx", "b.json"), "the format 'onnx' is only written; those read are: letor, csv, tsv, parquet; or lmart"),
        ((source, "b.json"), "letor holds data and lmart a model"),
        (("m.json", "b.csv"), "lmart holds a model and csv data"),
        ((source, "b.csv", "--to", "word"), "'word' is not one of"),
    ):
        result = run("convert", *arguments, status=2)
        assert what in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_json_of_a_name_without_a_format_is_not_taken_for_a_model(tmp_path: Path) -> None:
    source = tmp_path / "d.jsonl"
    source.write_text('{"label": 1, "qid": 2, "a": 3}\n')
    for more in (("b.csv",), ("-", "--to", "letor")):
        assert "d.jsonl: JSON is not read as data; give LETOR" in run("convert", source, *more, status=1).stderr


def test_data_is_refused_in_one_line_and_leaves_no_output(tmp_path: Path) -> None:
    source, out = tmp_path / "a.svm", tmp_path / "b.csv"
    out.write_text("old")
    for text, what in (
        ("1 qid:1 1:x\n", "a.svm:1: value 'x' is not a number"),
        ("", "there are no rows"),
        ("# x\n", "no rows"),
        ('{"label": 1, "qid": 2}\n', "a.svm: JSON is not read as data"),
    ):
        source.write_text(text)
        result = run("convert", source, out, status=1)
        assert what in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svm", "b.csv"]
    for text, what in (
        ("label,qid,x\n1,a b,1\n", "t.csv:2: query id 'a b' holds a blank and cannot stand in LETOR text"),
        ("label,qid,docid,x\n1,a,b c,1\n", "document id 'b c'"),
    ):
        source = tmp_path / "t.csv"
        source.write_text(text)
        assert what in run("convert", source, "-", status=1).stderr
    source.write_text("grade,qid,label\n1,a,1\n")
    assert (
        "a feature is named 'label'"
        in run("convert", source, "-", "--to", "csv", "--label-column", "grade", status=1).stderr
    )


@pytest.mark.parametrize("name", ["out.xml", "out.txt"])
def test_a_model_is_not_written_under_a_name_that_says_another_format(name: str, tmp_path: Path) -> None:
    run("train", "--data", SAMPLE / "vali.svm", "--trees", "1", "--quiet", "--out", tmp_path / "m.json")
    result = run("convert", tmp_path / "m.json", tmp_path / name, status=2)
    assert "does not say which model format" in result.stderr and not (tmp_path / name).exists()
    run("convert", tmp_path / "m.json", tmp_path / name, "--to", "lmart")
    assert (tmp_path / name).read_bytes() == (tmp_path / "m.json").read_bytes()
