"""The promises of lmart(1) about memory: what they say of each command holds for large data, and for hostile files."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import ROOT, SAMPLE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads peaks of memory as on Linux")]
PAGE = re.sub(r"\\(f.|(?=-))", "", (ROOT / "man" / "lmart.1").read_text())
MB = 1 << 20
PEAK = """
import os, resource, sys
process = os.fork()
if not process:
    os.execv(sys.executable, [sys.executable, "-m", "lmart", *sys.argv[1:]])
_, status, used = os.wait4(process, 0)
print(used.ru_maxrss << 10, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak(*words: str, status: int = 0) -> tuple[int, str]:
    """Run a command with one thread in the current folder; return its peak of memory in bytes, and its last line."""
    done = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=False)
    *said, used = done.stderr.splitlines()
    assert done.returncode == status, said
    return int(used), (said or [""])[-1]


def write_rows(name: str, n: int, width: int) -> None:
    """Write n rows of queries of ten."""
    cells = " ".join(f"{index}:{index / 7:.3f}" for index in range(1, width + 1))
    with Path(name).open("w") as file:
        for first in range(0, n, 10):
            file.writelines(f"{row % 3} qid:{first} 1:{row % 97}.{row % 89} {cells[8:]}\n" for row in range(10))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "m.json"
    run("train", "--data", SAMPLE / "train.svm", "--trees", "3", "--rankers", "1", "--out", path)
    return str(path)


def test_scoring_and_converting_take_constant_memory(model: str, in_folder: Path) -> None:
    assert "predict and convert take the same memory for any number of rows" in PAGE.replace("\\fB", "").replace(
        "\\fR", ""
    )
    for name, n in {"few.svm": 100_000, "many.svm": 300_000}.items():
        write_rows(name, n, 30)
    for command in (["predict", "-q", "-m", model, "--data"], ["convert", "-q"]):
        out = ["-o", "out", "--threads", "1"] if command[0] == "predict" else ["out.svm", "--threads", "1"]
        few, many = (peak(*command, name, *out)[0] for name in ("few.svm", "many.svm"))
        assert os.path.getsize("many.svm") > 40 * MB
        assert many - few < 12 * MB, (command, few, many)


def test_measuring_a_model_holds_no_values(model: str, in_folder: Path) -> None:
    """A document of 20 values, of 12 bytes each if they were held, takes far less than these."""
    assert "eval holds labels, scores and ids, but no values" in PAGE.replace("\n", " ")
    few, many, width = 100_000, 300_000, 20
    write_rows("few.svm", few, width)
    write_rows("many.svm", many, width)
    used = [peak("eval", "-q", "--threads", "1", "-m", model, "--data", name)[0] for name in ("few.svm", "many.svm")]
    assert used[1] - used[0] < (many - few) * 100, used


def test_training_takes_bins_and_a_rest(in_folder: Path) -> None:
    """A byte a value, and what the page says a document takes besides."""
    assert "at most 2 bytes for each value and 100 bytes for each document" in PAGE.replace("\n", " ")
    few, many, width = 220_000, 440_000, 20
    write_rows("few.svm", few, width)
    write_rows("many.svm", many, width)
    words = ("--trees", "1", "--rankers", "1", "--threads", "1", "-q", "-o", "out.json")
    used = [peak("train", "--data", name, *words)[0] for name in ("few.svm", "many.svm")]
    assert used[1] - used[0] < (many - few) * (2 * width + 100), used


@pytest.mark.parametrize("name", ["line.svm", "query.svm", "model.json", "archive.json.gz", "zeros.svm.gz"])
def test_what_is_beyond_the_limits_is_refused_in_one_line(name: str, model: str, in_folder: Path) -> None:
    zeros = gzip.compress(bytes(1 << 24), 6) * 20
    blanks = gzip.compress(b" " * (1 << 24)) * 20
    contents = {
        "line.svm": b"1 qid:1 " + b"1:1 " * (20 << 20),
        "model.json": b'{"format": "lmart", "version": 1, "settings": ' + b"[" * (1 << 24),
        "archive.json.gz": gzip.compress(b'{"format": "lmart"') + blanks,
        "zeros.svm.gz": zeros,
        "query.svm": b"1 qid:1\n" * 1000,
    }
    Path(name).write_bytes(contents[name])
    is_model = "json" in name
    data = str(SAMPLE / "train.svm") if is_model else name
    words = ["predict", "-q", "-m", name if is_model else model, "--data", data, "-o", "out"]
    if name == "query.svm":
        sizes = Path("sizes")
        sizes.write_text("1000000000001\n")
        words += ["--query-sizes", "sizes"]
    used, line = peak(*words, "--threads", "1", status=1)
    assert line.startswith(f"lmart: error: {'sizes' if name == 'query.svm' else name}")
    assert used < 700 * MB
    assert not Path("out").exists()
