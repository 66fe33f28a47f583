"""lmart predict, from the command line: what it writes, in which order, and what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from helpers.paths import SAMPLE
from helpers.training_runs import SMALL, fit, learnable, scores
from helpers.trees import grow, plain_scores, sparse
from helpers.waiting import LIMIT, wait_until
from hypothesis import given
from hypothesis import strategies as st

from lmart.cli.main import main
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, OutputError
from lmart.formats.documents.blocks import RowBlock
from lmart.formats.models.model_files import write_model
from lmart.formats.registry import RESULT_FORMATS
from lmart.formats.results.predictions import PredictionLayout, PredictionWriter
from lmart.formats.results.trec import falling
from lmart.scoring.ensemble import Ensemble, Tree

TEST_FILE = SAMPLE / "test.svm"


def steps(feature: int = 1, n: int = 8, features: Sequence[int] = (1, 2, 3)) -> Ensemble:
    """A model whose score is the number of 0.5, 1.5, ... below the feature, at most n."""
    tree = Tree(
        np.array([0], np.int32),
        np.array([0.5]),
        np.array([True]),
        np.array([-1], np.int32),
        np.array([-2], np.int32),
        np.array([0.0, 1.0]),
    )
    column = list(features).index(feature)
    trees = tuple(
        Tree(
            np.array([column], np.int32),
            np.array([i + 0.5]),
            tree.missing_left,
            tree.left,
            tree.right,
            tree.leaf_values,
        )
        for i in range(n)
    )
    return Ensemble(trees, np.array(features))


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = str(tmp_path / "m.json")
    write_model(steps(), path)
    return path


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["predict", *arguments], input=stdin)


WAITING = "lmart: waiting for another lmart that is compiling\n"


def said(result: Result) -> str:
    """Standard error, without what only a first run says."""
    return result.stderr.removeprefix(WAITING)


def predict(model: str, data: str, *arguments: str) -> list[str]:
    """The lines that come out for data on standard input."""
    result = run("-m", model, "--data", "-", *arguments, stdin=data)
    assert (result.exit_code, said(result)) == (0, ""), result.output
    return result.stdout.splitlines()


def refusal(result: Result, status: int = 1) -> str:
    """The one line of a refusal; nothing else may be written."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"lmart: error: [^\n]+\n", said(result)), result.stderr
    return said(result)[len("lmart: error: ") : -1]


TWO_QUERIES = """\
1 qid:a 1:3 # docid = x
0 qid:a 1:1 # docid = y
0 qid:a 1:3 # docid = z
2 qid:b 1:2
0 qid:b 1:7 # docid = w
"""


def test_scores_are_one_line_a_row_in_input_order(model: str) -> None:
    assert predict(model, TWO_QUERIES) == ["3.0", "1.0", "3.0", "2.0", "7.0"]


def test_tsv(model: str) -> None:
    assert predict(model, TWO_QUERIES, "--format", "tsv") == [
        "a\tx\t3.0\t1",
        "a\ty\t1.0\t3",
        "a\tz\t3.0\t2",
        "b\t1\t2.0\t2",
        "b\tw\t7.0\t1",
    ]


def test_trec_is_best_first_and_has_no_ties(model: str) -> None:
    below = float(np.nextafter(np.float32(3.0), np.float32(0)))
    assert predict(model, TWO_QUERIES, "--format", "trec", "--tag", "run1") == [
        "a Q0 x 1 3.0 run1",
        f"a Q0 z 2 {below!r} run1",
        "a Q0 y 3 1.0 run1",
        "b Q0 w 1 7.0 run1",
        "b Q0 1 2 2.0 run1",
    ]


def test_jsonl(model: str) -> None:
    rows = [json.loads(line) for line in predict(model, TWO_QUERIES, "--format", "jsonl")]
    assert rows[2] == {"row": 3, "qid": "a", "docid": "z", "score": 3.0, "rank": 2}
    assert rows[3] == {"row": 4, "qid": "b", "docid": None, "score": 2.0, "rank": 2}
    assert [row["row"] for row in rows] == [1, 2, 3, 4, 5]


def test_top_keeps_the_best_of_each_query(model: str) -> None:
    assert predict(model, TWO_QUERIES, "--format", "tsv", "--top", "1") == ["a\tx\t3.0\t1", "b\tw\t7.0\t1"]
    assert predict(model, TWO_QUERIES, "--format", "tsv", "--top", "2") == [
        "a\tx\t3.0\t1",
        "a\tz\t3.0\t2",
        "b\t1\t2.0\t2",
        "b\tw\t7.0\t1",
    ]
    assert len(predict(model, TWO_QUERIES, "--format", "trec", "--top", "9")) == 5


def test_a_query_that_comes_back(model: str) -> None:
    data = "0 qid:a 1:1\n0 qid:b 1:2\n0 qid:a 1:3\n"
    assert "--group-by-qid" in refusal(run("-m", model, "--data", "-", "--format", "tsv", stdin=data))
    assert predict(model, data, "--group-by-qid") == ["1.0", "2.0", "3.0"]
    assert predict(model, data, "--group-by-qid", "--format", "tsv") == ["a\t1\t1.0\t2", "b\t1\t2.0\t1", "a\t2\t3.0\t1"]
    assert predict(model, data, "--group-by-qid", "--format", "trec", "--top", "1") == [
        "a Q0 2 1 3.0 lmart",
        "b Q0 1 1 2.0 lmart",
    ]


def test_labels_and_queries_may_be_missing(model: str) -> None:
    assert predict(model, "qid:4 1:1\nqid:4 1:2\n", "--format", "tsv") == ["4\t1\t1.0\t2", "4\t2\t2.0\t1"]
    assert predict(model, "1:1\n1:2\n", "--format", "tsv", "-qq") == ["\t1\t1.0\t2", "\t2\t2.0\t1"]
    assert json.loads(predict(model, "1:1\n1:2\n", "--format", "jsonl", "-qq")[0])["qid"] is None
    assert "needs query ids" in refusal(run("-m", model, "--data", "-", "--format", "trec", stdin="1:1\n"))


def test_rows_without_query_ids_are_ranked_as_one_query_with_a_warning(model: str, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("label,1,2,3\n0,1,2,3\n1,0,0,0\n")
    for data, stdin in ((str(table), None), ("-", "1:1\n1:2\n")):
        for form in ("tsv", "jsonl"):
            said = run("-m", model, "--data", data, "--format", form, "--top", "1", "-q", stdin=stdin).stderr
            assert (
                said.count("all rows of the file are ranked as one query; name their column with --query-column") == 1
            )
        assert run("-m", model, "--data", data, stdin=stdin).stderr == ""
    assert predict(model, "qid:1 1:1\n", "--format", "tsv") == ["1\t1\t1.0\t1"]


@pytest.mark.parametrize("form", ["scores", "tsv", "trec", "jsonl"])
@pytest.mark.parametrize(
    "nothing",
    [b"", b"# nothing\n\n", b"\n\r\n \t", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"],
    ids=["empty", "comment", "blanks", "gzip", "byte-order-mark"],
)
def test_no_rows_are_refused_as_by_every_command(model: str, form: str, nothing: bytes, tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(nothing)
    (tmp_path / "header.csv").write_text("label,qid,a\n\n")
    for data in ("d", "header.csv"):
        said = refusal(run("-m", model, "--data", str(tmp_path / data), "--format", form, "-o", str(tmp_path / "o")))
        assert said == f"{tmp_path / data}: there are no rows in it; check the step that made it"
        assert not (tmp_path / "o").exists()


def test_rows_without_features_are_rows(model: str) -> None:
    assert predict(model, "1 qid:1 1:2\n0 qid:1\n0 qid:1 1:1\n") == ["2.0", "0.0", "1.0"]
    assert predict(model, "1 qid:1\n0 qid:1\n") == ["0.0", "0.0"]


# ---- features -------------------------------------------------------------------------------------------------------


def test_a_row_scores_the_same_whatever_else_is_in_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "m.json")
    write_model(steps(feature=1, features=(0, 1)), path)
    assert predict(path, "0 qid:1 1:5\n") == ["5.0"]
    assert predict(path, "0 qid:1 1:5\n0 qid:1 0:3\n") == ["5.0", "0.0"]


def test_wider_data_scores_with_one_warning(model: str, tmp_path: Path) -> None:
    data = "0 qid:1 1:5 8:1\n0 qid:1 9:3\n"
    result = run("-m", model, "--data", "-", stdin=data)
    assert (result.exit_code, result.stdout) == (0, "5.0\n0.0\n")
    warning = "lmart: warning: standard input: 2 of 3 features are not in the model: '8', '9'; scored without\n"
    assert said(result) == warning
    assert run("-q", "-m", model, "--data", "-", stdin=data).stderr == warning
    assert run("-qq", "-m", model, "--data", "-", stdin=data).stderr == ""
    line = refusal(run("-m", model, "--data", "-", "--strict", stdin=data))
    assert line.startswith("standard input: 2 of 3 features are not in the model: '8', '9'; ")
    assert "--strict" in line


def test_data_without_a_feature_of_the_model_is_refused(model: str, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    line = refusal(run("-m", model, "--data", "-", "-o", str(out), stdin="0 qid:1 8:1\n0 qid:1 9:3\n"))
    assert "no feature of the data is in the model: the data has '8', the model has '1'" in line
    assert not out.exists()


def test_features_that_only_one_side_names_match_by_number_with_a_warning(model: str) -> None:
    result = run("-m", model, "--data", "-", stdin="label,qid,a,b,c\n0,q,3,9,1\n")
    assert (result.exit_code, result.stdout) == (0, "3.0\n")
    assert said(result) == "lmart: warning: features are matched by number, not by name: only the data has names\n"
    numbered = run("-m", model, "--data", "-", stdin="label,qid,2,1,3\n0,q,9,3,0\n")
    assert (numbered.exit_code, numbered.stdout, said(numbered)) == (0, "3.0\n", "")


def test_rows_wait_for_the_first_feature_of_the_model(model: str) -> None:
    data = "0 qid:1 8:1\n" * 9 + "0 qid:1 1:2\n"
    assert run("-m", model, "--data", "-", stdin=data).stdout == "0.0\n" * 9 + "2.0\n"


# ---- any order of blocks --------------------------------------------------------------------------------------------


class Lines:
    """An output that remembers."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def writer_of(form: str, out: Any, top: int | None, scattered: bool) -> PredictionWriter:
    layout = PredictionLayout("d", top, scattered, "t")
    return RESULT_FORMATS[form].load_writer("d", OutputError)(out, layout)


@pytest.mark.parametrize("form", ["tsv", "trec", "jsonl"])
@pytest.mark.parametrize("scattered", [False, True])
def test_blocks_of_any_size_give_the_same_lines(form: str, scattered: bool) -> None:
    rng = random.Random(1)
    sizes = [1, 1, 5, 2, 30, 1, 3]
    queries = [f"q{number}" for number, size in enumerate(sizes) for _ in range(size)]
    scores = [float(rng.randrange(4)) for _ in queries]
    documents = [f"d{row}" for row in range(len(queries))]

    def block(start: int, stop: int) -> RowBlock:
        starts = [row for row in range(start, stop) if row == start or queries[row] != queries[row - 1]]
        return RowBlock(
            SparseRows(np.zeros(stop - start + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)),
            None,
            [queries[row] for row in starts],
            np.array([row - start for row in starts] + [stop - start]),
            start > 0 and queries[start] == queries[start - 1],
            documents[start:stop],
            1,
        )

    def written(size: int) -> str:
        out = Lines()
        writer = writer_of(form, out, 3, scattered)
        for start in range(0, len(queries), size):
            stop = min(start + size, len(queries))
            writer.write(block(start, stop), np.array(scores[start:stop]))
        writer.finish()
        return out.text

    whole = written(1000)
    assert len(whole.splitlines()) == sum(min(size, 3) for size in sizes)
    for size in range(1, 12):
        assert written(size) == whole


@given(
    st.lists(
        st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-40, 1.0 - 2**-30, -2.5, 1e-45, 5e-324, 1e300, -1e300]), min_size=1
    )
)
def test_trec_scores_fall_strictly(scores: list[float]) -> None:
    ordered = sorted(scores, reverse=True)
    shown = falling(ordered, list(range(len(ordered))))
    assert all(after < before for before, after in pairwise(shown))
    if max(map(abs, scores)) < 1e38:
        single = np.array(shown, np.float32)
        assert (single[1:] < single[:-1]).all()
    assert shown[0] == ordered[0]
    np.testing.assert_allclose(shown, ordered, rtol=1e-4, atol=1e-30)


def test_trec_scores_that_need_no_help_are_exact() -> None:
    assert falling([0.1, -0.2, 0.3], [0, 1, 0]) == [0.1, -0.2, 0.3]


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--top", "3"], "--top needs --format tsv, trec or jsonl"),
        (["--format", "tsv", "--top", "0"], "--top"),
        (["--format", "csv"], "--format"),
        (["--tag", "a b"], "--tag"),
        (["--tag", ""], "--tag"),
        (["--data", "d2"], "--data"),
        (["-m", "m2"], "--model"),
        (["--threads", "0"], "--threads"),
        (["--formt", "tsv"], "--formt"),
        (["-m"], "-m"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    line = refusal(run("-m", "m", "--data", "d", *arguments), 2)
    assert words in line
    assert line.endswith("; see 'lmart predict --help'")


def test_two_standard_inputs_are_wrong_usage() -> None:
    assert "'-'" in refusal(run("-m", "-", "--data", "-", stdin=""), 2)


def test_model_and_data_are_both_needed() -> None:
    assert "--model" in refusal(run("--data", "d"), 2)
    assert "--data" in refusal(run("-m", "m"), 2)


def test_a_bad_model_is_refused_before_any_score(tmp_path: Path) -> None:
    bad = tmp_path / "m.json"
    bad.write_text("1 qid:1 1:0.5\n")
    old = tmp_path / "out.txt"
    old.write_text("old\n")
    line = refusal(run("-m", str(bad), "--data", str(TEST_FILE), "-o", str(old)))
    assert line.startswith(f"{bad}: this is no lmart model")
    assert old.read_text() == "old\n"
    assert "no such file" in refusal(run("-m", str(tmp_path / "none"), "--data", str(TEST_FILE)))


def test_bad_data_leaves_no_output(model: str, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    assert "standard input:2: " in refusal(
        run("-m", model, "--data", "-", "-o", str(out), stdin="0 qid:1 1:1\n0 qid:1 1:x\n")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_an_input_is_not_overwritten(model: str) -> None:
    before = Path(model).read_bytes()
    assert "overwrite" in refusal(run("-m", model, "--data", str(TEST_FILE), "-o", model))
    assert Path(model).read_bytes() == before


@pytest.mark.parametrize(("form", "blank"), [("tsv", "\t"), ("trec", " ")])
def test_ids_that_a_line_cannot_hold_are_refused(form: str, blank: str) -> None:
    block = RowBlock(sparse([{}]), None, [f"a{blank}b"], np.array([0, 1]), False, None, 1)
    writer = writer_of(form, Lines(), None, False)
    writer.write(block, np.zeros(1))
    with pytest.raises(DataError, match="holds a blank"):
        writer.finish()


# ---- the process ----------------------------------------------------------------------------------------------------


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    pipes: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    } | options
    return subprocess.Popen([sys.executable, "-m", "lmart", "predict", *arguments], **pipes)


def test_scores_of_the_sample_are_those_of_the_plain_walk(tmp_path: Path) -> None:
    rng = random.Random(4)
    rows = []
    for line in TEST_FILE.read_text().splitlines():
        cells = [cell.split(":") for cell in line.split("#")[0].split()[2:]]
        rows.append({int(index) - 1: float(value) for index, value in cells})
    values = sorted({value for row in rows for value in row.values()})
    trees = tuple(grow(rng, 31, range(20), values) for _ in range(20))
    ensemble = Ensemble(trees, np.arange(1, 21), base_score=0.5)
    path = str(tmp_path / "m.json")
    write_model(ensemble, path)
    expected = [repr(score) for score in plain_scores(ensemble, rows)]
    for threads in ("1", "2"):
        result = run("-q", "-m", path, "--data", str(TEST_FILE), "--threads", threads)
        assert result.stdout.splitlines() == expected


@pytest.mark.slow
def test_a_pipe_that_stays_open_gets_its_scores(model: str) -> None:
    with process("-q", "-m", model, "--data", "-", stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for value in (3, 5):
            running.stdin.write(f"0 qid:1 1:{value}\n".encode())
            running.stdin.flush()
            assert running.stdout.readline() == f"{value}.0\n".encode()
        running.stdin.close()
        assert running.stdout.read() == b""
    assert running.returncode == 0


@pytest.mark.slow
def test_a_reader_that_leaves(model: str, tmp_path: Path) -> None:
    data = tmp_path / "big.svm"
    data.write_text("0 qid:1 1:3 2:5\n" * 200_000)
    with process("-m", model, "--data", str(data)) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b"3.0\n"
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk(model: str) -> None:
    for arguments, place in (([], "standard output"), (["-o", "/dev/full"], "/dev/full")):
        with open("/dev/full", "wb") as full:
            running = process("-q", "-m", model, "--data", str(TEST_FILE), *arguments, stdout=full)
            _, said = running.communicate()
        assert running.returncode == 1
        assert re.fullmatch(rf"lmart: error: {place}: cannot be written: No space left[^\n]*\n".encode(), said), said


def has_temporary_file(pid: int, folder: Path) -> bool:
    opened = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
    return any(name.startswith(str(folder)) and not name.endswith("m.json") for name in opened)


@pytest.mark.slow
def test_a_terminated_run_leaves_nothing(model: str, tmp_path: Path) -> None:
    with process("-q", "-m", model, "--data", "-", "-o", str(tmp_path / "out"), stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b"0 qid:1 1:3\n")
        running.stdin.flush()
        wait_until(lambda: has_temporary_file(running.pid, tmp_path))
        running.send_signal(signal.SIGTERM)
        running.wait(LIMIT)
        assert running.stderr.read() == b"lmart: terminated during predict; nothing was written\n"
    assert running.returncode == 143
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_help_is_quick_and_says_what_scores_are() -> None:
    code = (
        "import sys; from lmart.cli.predict import command; print([m for m in ('numba', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    text = " ".join(run("--help").stdout.split())
    assert "unbounded" in text
    assert "comparable only within a query" in text


def test_a_run_cannot_hold_a_document_twice(model: str, tmp_path: Path) -> None:
    data, out = tmp_path / "d.csv", tmp_path / "run"
    out.write_text("older")
    data.write_text("qid,docid,1\n6,D1,1\n7,D1,0.9\n7,D1,2\n8,D1,1\n")
    result = run("-m", model, "--data", str(data), "--format", "trec", "-o", str(out))
    assert "d.csv: query '7' names document 'D1' twice, which a TREC run cannot hold" in refusal(result)
    assert out.read_text() == "older"
    once = run("-m", model, "--data", str(data), "--format", "trec", "--top", "1")
    assert [line.split()[:3] for line in once.stdout.splitlines()] == [[q, "Q0", "D1"] for q in "678"]


@pytest.mark.parametrize(("form", "rows"), [("tsv", 2), ("jsonl", 1)])
def test_a_document_named_twice_is_told(model: str, form: str, rows: int) -> None:
    data = "1 qid:7 1:1 # docid = A\n0 qid:7 1:2 #A\n1 qid:8 1:1 # docid = 2\n0 qid:8 1:1\n"  # the last one is number 2
    result = run("-m", model, "--data", "-", "--format", form, stdin=data)
    assert result.exit_code == 0
    assert "standard input: query '7' names document 'A' twice" in said(result)
    assert (", and 1 more row a document of their query;" in said(result)) == (rows == 2)
    assert len(result.stdout.splitlines()) == 4


def test_columns_of_the_model_that_a_table_lacks(model: str, tmp_path: Path) -> None:
    data = "qid,1,2\n1,3,0\n"
    result = run("-m", model, "--data", "-", stdin=data)
    assert (result.exit_code, result.stdout) == (0, "3.0\n")
    assert "standard input: 1 of 3 features of the model has no column: '3'; counted as 0" in said(result)
    for form in ("scores", "tsv"):
        line = refusal(run("-m", model, "--data", "-", "--strict", "--format", form, stdin=data))
        assert "no column: '3'; add it, or do without --strict" in line
    predict(model, "1 qid:1 1:3\n", "--strict")  # LETOR text names only what is not zero


def test_features_off_by_one_give_no_scores(tmp_path: Path) -> None:
    path = str(tmp_path / "m.json")
    write_model(steps(features=(0, 1, 2)), path)
    assert "numbers its features 1 to 3" in refusal(run("-m", path, "--data", "-", stdin="1:2 2:3\n3:1\n"))
    assert "by the order of its names" in refusal(run("-m", path, "--data", "-", stdin="qid,a,b\n1,2,3\n"))
    rows = "1:2 2:3 3:1\n" * 20_000
    late = run("-m", path, "--data", "-", stdin=rows + "0:1\n")  # a new feature 3, and feature 0 at last
    assert (late.exit_code, late.stdout.count("\n")) == (0, 20_001)
    assert "1 of 4 features is not in the model: '3'" in said(late)


def test_a_tag_needs_a_run(model: str) -> None:
    assert "--tag needs --format trec" in refusal(run("-m", model, "--data", "-", "--tag", "a", stdin=""), 2)


def test_features_of_letor_text_are_ignored_by_index(model: str) -> None:
    assert predict(model, "1 qid:1 1:3 9:1\n0 qid:1 1:2\n", "--ignore-columns", "9") == ["3.0", "2.0"]
    result = run("-m", model, "--data", "-", "--ignore-columns", "8", "--format", "tsv", stdin="1 qid:1 1:3\n")
    assert result.exit_code == 0 and "no row has the feature to ignore '8'; check --ignore-columns" in said(result)
    result = run("-m", model, "--data", "-", "--query-column", "1", stdin="1 qid:1 1:3\n")
    assert "leave out --query-column" in refusal(result)


def test_ignoring_a_feature_of_the_model_is_reported(model: str) -> None:
    options = ("-m", model, "--data", "-", "--ignore-columns", "1")
    result = run(*options, stdin="1 qid:1 1:3 2:1\n")
    assert result.exit_code == 0 and "--ignore-columns leaves out feature '1' of the model" in said(result)
    assert "leaves out feature '1'" in refusal(run(*options, "--strict", stdin="1 qid:1 1:3 2:1\n"))


@pytest.mark.usefixtures("in_folder")
def test_features_that_the_data_lacks_are_absent_ones() -> None:
    fit(learnable(), *SMALL)
    assert scores("1 qid:1 1:2\n") == scores("1 qid:1 1:2 2:0 3:0 7:1\n")
