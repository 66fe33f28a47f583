"""What users ran into with input files, through the command line; the numbers are those of the collected reports."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import resource
import sys
from pathlib import Path

import pytest
from helpers.commands import SAMPLE, run, start

PLAIN = ("--trees", "3", "--leaves", "4", "--min-docs", "1", "--min-hessian", "0", "-q")
GOOD = "".join(f"{(i * 7) % 3} qid:{i // 4} 1:{i % 5}.5 2:{(i * 3) % 7} 3:{i}e-1\n" for i in range(40))


@pytest.fixture
def train(tmp_path: Path):
    """A function that trains on text or bytes, and returns the model's bytes."""
    numbers = itertools.count()

    def call(data: str | bytes, *options: str, name: str = "") -> bytes:
        folder = tmp_path / f"train{next(numbers)}"
        folder.mkdir()
        source = folder / (name or "d.svm")
        source.write_bytes(data.encode() if isinstance(data, str) else data)
        run("train", "--data", source, "--out", folder / "m.json", *PLAIN, *options)
        return (folder / "m.json").read_bytes()

    return call


def refused(data: str | bytes, tmp_path: Path, *options: str) -> str:
    """Train on the data; assert one line for each fault, no model; return standard error."""
    source, model = tmp_path / "d.svm", tmp_path / "m.json"
    source.write_bytes(data.encode() if isinstance(data, str) else data)
    model.write_text("an older model")
    result = run("train", "--data", source, "--out", model, *PLAIN, *options, status=1)
    assert result.stdout == ""
    assert all(line.startswith(f"lmart: error: {source}:") for line in result.stderr.splitlines())
    assert model.read_text() == "an older model"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["d.svm", "m.json"]
    return result.stderr.replace(str(source), "d.svm")


def features(model: bytes) -> list[object]:
    document = json.loads(model)
    return document.get("feature_names") or document["feature_ids"]


def test_01_a_trailing_comment_with_colons(train, tmp_path: Path) -> None:
    model = train("1 qid:1 1:0.5 # docid = GX-1 inc:1 3:9\n0 qid:1 1:0.1#x\n")
    assert model == train("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    result = run("train", "--data", "-", "--out", tmp_path / "m", stdin="1 qid:1 1:0.5 # 3:9\n0 qid:1 1:0.1#x\n")
    assert "2 documents" in result.stderr


@pytest.mark.parametrize("text", ["1 1:1\n0 1:0\n", "1 qid:1 1:1\n0 1:0\n"])
def test_03_no_query_id(text: str, tmp_path: Path) -> None:
    line = 1 if text.startswith("1 1") else 2
    error = refused(text, tmp_path)
    assert error.startswith(f"lmart: error: d.svm:{line}: no query id")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("72057594037927937", "72057594037927938"),
        ("99999999999999999999", "99999999999999999998"),
        ("a" * 500, "a" * 499 + "b"),
    ],
)
def test_05_long_query_ids(a: str, b: str, tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text(f"0 qid:{a} 1:1\n1 qid:{a} 1:1\n0 qid:{b} 1:1\n1 qid:{b} 1:1\n")
    (tmp_path / "s").write_text("4\n3\n2\n1\n")
    result = run("eval", "--data", tmp_path / "d.svm", "--scores", tmp_path / "s", "--metric", "ndcg@10", "--json")
    report = json.loads(result.stdout)
    assert report["queries"] == 2
    assert report["metrics"]["ndcg@10"] == pytest.approx(0.630930, abs=1e-6)


def test_07_indices_from_zero_or_one(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3} qid:{i // 4} 0:{i % 4} 1:{i % 3}\n" for i in range(40))
    (tmp_path / "d.svm").write_text(rows)
    run("train", "--data", tmp_path / "d.svm", "--out", tmp_path / "m", *PLAIN)
    one = run("predict", "-m", tmp_path / "m", "--data", "-", stdin="0 qid:1 1:2\n").stdout
    two = run("predict", "-m", tmp_path / "m", "--data", "-", stdin="0 qid:1 1:2\n0 qid:1 0:3\n").stdout
    assert two.splitlines()[0] == one.strip()
    assert features((tmp_path / "m").read_bytes()) == [0, 1]


def test_09_indices_out_of_order(train) -> None:
    rows = [line.split() for line in GOOD.splitlines()]
    turned = "".join(" ".join(row[:2] + row[:1:-1]) + "\n" for row in rows)
    assert train(turned) == train(GOOD)


def test_10_absent_zero_and_nan(train) -> None:
    def rows(cell: str) -> str:
        return "".join(f"{i % 3} qid:{i // 4} 1:{i % 5}{cell if i % 3 else f' 2:{i}'}\n" for i in range(40))

    explicit, dropped, nan = rows(" 2:0"), rows(""), rows(" 2:nan")
    assert train(explicit) == train(dropped)
    assert train(dropped, "--absent", "missing") == train(nan, "--absent", "missing")
    first_dropped = dropped.splitlines(keepends=True)
    assert train("".join(first_dropped[4:] + first_dropped[:4])) == train(
        "".join(explicit.splitlines(keepends=True)[4:] + explicit.splitlines(keepends=True)[:4])
    )


def test_12_infinities_and_values_beyond_double(train, tmp_path: Path) -> None:
    for token in ("inf", "-inf", "1e400", "-1e400", "Infinity"):
        error = refused(f"1 qid:1 1:1\n0 qid:1 1:{token}\n", tmp_path)
        assert error.startswith(f"lmart: error: d.svm:2: value '{token}' is ")
        assert "--allow-inf" in error
    rows = "".join(f"{i % 2} qid:{i // 4} 1:{'-' if i % 2 else ''}1.7e308\n" for i in range(40))
    text = train(rows).decode()
    assert not any(word in text.lower() for word in ("inf", "nan"))
    assert train("".join(f"{i % 2} qid:{i // 4} 1:{i % 2}\n" for i in range(40))) != train(rows)
    (tmp_path / "i.svm").write_text(rows.replace("-1.7e308", "-inf"))
    run("train", "--data", tmp_path / "i.svm", "--out", tmp_path / "i.json", "--allow-inf", *PLAIN)
    scores = run("predict", "-m", tmp_path / "i.json", "--data", tmp_path / "i.svm", "--allow-inf").stdout.split()
    assert len(set(scores)) == 2
    assert all(math.isfinite(float(score)) for score in scores)


def test_14_windows_line_ends(train) -> None:
    assert train(GOOD.replace("\n", "\r\n")) == train(GOOD)
    assert train(GOOD.replace("\n", " # x\r\n")) == train(GOOD)
    assert train("\ufeff" + GOOD.replace("\n", "\r\n")) == train(GOOD)


def test_16_rubbish_and_a_cut_off_last_line(train, tmp_path: Path) -> None:
    assert refused(GOOD + "1 qid:99 12:", tmp_path).startswith(
        "lmart: error: d.svm:41: no value after the colon in '12:'"
    )
    assert refused(GOOD + "1 qid:99 1", tmp_path).startswith("lmart: error: d.svm:41: '1' is not 'index:value'")
    assert refused(GOOD + "1 qi", tmp_path).startswith("lmart: error: d.svm:41: no query id")
    error = refused(b"1 qid:1 1:0.5\0\n", tmp_path)
    assert r"d.svm:1: NUL byte in '1 qid:1 1:0.5\x00'" in error
    assert "\0" not in error
    assert refused(GOOD.encode("utf-16"), tmp_path).startswith("lmart: error: d.svm:1: the text is UTF-16")
    assert r"\x1b[31m" in refused("1 qid:1 1:\x1b[31m\n", tmp_path)
    assert train(GOOD.rstrip("\n")) == train(GOOD)
    assert (
        run("predict", "-m", _model(tmp_path), "--data", "-", stdin="1 qid:1 1:1\n0 qid:1 1:1").stdout.count("\n") == 2
    )


def _model(folder: Path) -> Path:
    path = folder / "model.json"
    if not path.exists():
        source = folder / "good.svm"
        source.write_text(GOOD)
        run("train", "--data", source, "--out", path, *PLAIN)
    return path


def test_17_compressed_input(train, tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode())
    expected = train(GOOD)
    assert train(packed, name="good.svm.gz") == expected
    assert train(packed, name="good.svm") == expected
    (tmp_path / "cut.gz").write_bytes(packed[:-9])
    result = run("train", "--data", tmp_path / "cut.gz", "--out", tmp_path / "m", status=1)
    assert result.stderr.endswith("cut.gz: the gzip data is cut off before its end; copy the file again\n")
    assert not (tmp_path / "m").exists()


def test_19_a_row_with_no_features(tmp_path: Path) -> None:
    out = run("predict", "-m", _model(tmp_path), "--data", "-", stdin="1 qid:1 1:2\n0 qid:1\n0 qid:1 1:1\n").stdout
    assert len(out.splitlines()) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_20_an_enormous_feature_index(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("1 qid:1 2147483647:1\n0 qid:1 4000000000000000001:5 5:1\n")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2_000_000 * 1024, before[1]))
    try:
        process = start("train", "--data", tmp_path / "d.svm", "--out", tmp_path / "m", *PLAIN, "--threads", "1")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert features((tmp_path / "m").read_bytes()) == [5, 2147483647, 4000000000000000001]
    (tmp_path / "m").unlink()
    assert "d.svm:1: index '-5' is negative" in refused("1 qid:1 -5:1\n", tmp_path)


def test_22_csv_or_a_header_line(tmp_path: Path) -> None:
    error = refused("label,qid,f1\n1,1,0.5\n", tmp_path)
    assert error.startswith("lmart: error: d.svm:1: the line is not 'label qid:ID index:value ...'")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("command", ["train", "eval", "predict"])
def test_23_nothing_to_read(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "comments").write_text("# a\n\n  # b\r\n")
    (tmp_path / "s").write_text("1\n")
    (tmp_path / "closed").touch(0o000)
    more = {
        "train": ("--out", tmp_path / "m"),
        "eval": ("--scores", tmp_path / "s"),
        "predict": ("-m", _model(tmp_path), "--out", tmp_path / "o"),
    }[command]
    for name, what in (
        ("empty", "no rows"),
        ("comments", "no rows"),
        ("missing", "there is no such file"),
        (".", "is a folder"),
        *([("closed", "Permission denied")] if os.geteuid() else []),
    ):
        result = run(command, "--data", tmp_path / name, *more, status=1)
        assert what in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert not (tmp_path / "m").exists() and not (tmp_path / "o").exists()


def test_25_blanks(train, tmp_path: Path) -> None:
    assert train("1\tqid:1\t1:0.5  2:1   \n0 qid:1 1:0.1\n") == train("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.1\n")
    error = refused("1\tqid:1\t1:0.5  2:1   \n0 qid:1 1 : 0.5\n", tmp_path)
    assert error.startswith("lmart: error: d.svm:2: blank before the colon in '1 :'")


def test_26_side_files_are_ignored_unless_named(train, tmp_path: Path) -> None:
    expected = train(GOOD)
    folder = tmp_path / "side"
    folder.mkdir()
    for name, text in (("d.svm", GOOD), ("d.svm.query", "7\n0\n"), ("d.svm.weight", "-1\n")):
        (folder / name).write_text(text)
    run("train", "--data", folder / "d.svm", "--out", folder / "m", *PLAIN)
    assert (folder / "m").read_bytes() == expected
    no_queries = "".join(f"{line.split()[0]} {' '.join(line.split()[2:])}\n" for line in GOOD.splitlines())
    (folder / "d.svm").write_text(no_queries)
    for sizes, what in (
        ("7\n0\n", "query:2: query size '0'"),
        ("7\n8\n", f"sum to 15, but {folder / 'd.svm'} has more than 15 rows"),
    ):
        (folder / "d.svm.query").write_text(sizes)
        result = run("train", "--data", folder / "d.svm", "--query-sizes", folder / "d.svm.query", status=1)
        assert what in result.stderr
    (folder / "d.svm.query").write_text("4\n" * 10)
    run("train", "--data", folder / "d.svm", "--query-sizes", folder / "d.svm.query", "--out", folder / "m", *PLAIN)
    assert (folder / "m").read_bytes() == expected
    for weights, what in (
        ("1\n2\n", "there are 2 weights, but the data has 10 queries and 40 rows"),
        ("-1\n", "weight '-1'"),
    ):
        (folder / "w").write_text(weights)
        (folder / "d.svm").write_text(GOOD)
        assert what in run("train", "--data", folder / "d.svm", "--weights", folder / "w", status=1).stderr


# The neighbours of these reports


def test_up_to_ten_faults_are_listed(tmp_path: Path) -> None:
    text = "1 qid:1 1:1\n" + "1 qid:1 1:x\n" * 30
    lines = refused(text, tmp_path).splitlines()
    assert [line.split(":")[3] for line in lines] == [str(i) for i in range(2, 12)]
    assert len(refused(text, tmp_path, "--max-errors", "2").splitlines()) == 2


def test_the_last_of_repeated_indices_counts_only_when_asked(train, tmp_path: Path) -> None:
    assert "again in '1:9'; take one out, or use --duplicates last" in refused(
        "1 qid:1 1:8 1:9\n0 qid:1 1:1\n", tmp_path
    )
    rows = GOOD.replace(" 1:", " 1:77 1:")
    assert train(rows, "--duplicates", "last") == train(GOOD)


def test_scattered_queries_are_collected_only_when_asked(train, tmp_path: Path) -> None:
    rows = GOOD.splitlines(keepends=True)
    scattered = "".join(rows[i] for start in range(4) for i in range(start, 40, 4))
    assert "query '0' comes back: it first stood at line 1" in refused(scattered, tmp_path)
    assert train(scattered, "--group-by-qid") == train(GOOD)


def test_a_csv_of_the_same_data_gives_the_same_trees(train) -> None:
    table = "label,qid,1,2,3\n" + "".join(
        ",".join([row.split()[0], row.split()[1][4:], *(cell.split(":")[1] for cell in row.split()[2:])]) + "\n"
        for row in GOOD.splitlines()
    )
    assert train(table, name="d.csv") == train(GOOD)
    assert train(table, name="no-suffix") == train(GOOD)
    named = train(table.replace("1,2,3", "a,b,c", 1), name="d.csv")
    assert json.loads(named)["trees"] == json.loads(train(GOOD))["trees"]
    assert features(named) == ["a", "b", "c"]


def test_several_files_are_one_data_set(train, tmp_path: Path) -> None:
    rows = GOOD.splitlines(keepends=True)
    (tmp_path / "a").write_text("".join(rows[:20]))
    (tmp_path / "b").write_bytes(gzip.compress("".join(rows[20:]).encode()))
    run("train", "--data", tmp_path / "a", "--data", tmp_path / "b", "--out", tmp_path / "m", *PLAIN)
    assert (tmp_path / "m").read_bytes() == train(GOOD)


def test_process_substitution_and_pipes_work(tmp_path: Path) -> None:
    from helpers.commands import shell

    model = tmp_path / "m.json"
    line = f"lmart train -q --trees 2 --data <(cat {SAMPLE}/train.svm) --out m.json"
    done = shell(line, tmp_path)
    assert done.returncode == 0, done.stderr
    done = shell(f"cat {SAMPLE}/test.svm | lmart predict -m {model} --data - | wc -l", tmp_path)
    assert done.stdout.strip() == str(len((SAMPLE / "test.svm").read_text().splitlines())).encode()


def test_rows_that_end_in_carriage_returns_alone_do_not_vanish_in_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "old.svm"
    path.write_bytes(b"1 qid:1 1:1 # a\r0 qid:1 1:0 # b\r")
    result = run("train", "--data", path, "--out", tmp_path / "m.json", status=1)
    assert f"{path}:1: a carriage return inside the line" in result.stderr
