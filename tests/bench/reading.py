"""Reading LETOR text beside other loaders, turn by turn in one run, as ratios.

    python tests/bench/reading.py --data FILE.svm [--parts text,lines,gzip,memory] [--peers xgboost,scikit-learn]
                                  [--threads 2] [--repeats 3] [--json FILE]

Each repeat runs every tool once, in the opposite order of the one before; a ratio is taken within a repeat. Printed are
the median and the range of the ratios, lmart over the other: below 1 lmart is faster. Seconds alone say little: they
change with the machine and with what else runs on it. Every load is a process of its own that times only the load,
after a load of a few rows: no start, no import, no compiling.

text    text to arrays in memory: XGBoost's text loader (as many threads), scikit-learn's load_svmlight_file (one); then
        a second time in the same process, when the system need not find it fresh memory: on virtual machines the first
        touch of memory may cost as much as all the reading
lines   the same beside `wc -l`, which is what it costs to look at every byte; in megabytes a second
gzip    the same text in gzip, beside `zcat > /dev/null`
memory  peak resident memory of a process that only reads, over the bytes of the arrays it holds at the end + 300 MB
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turns import Report, Turns, machine, take_turns, whole_run

# Each prints the seconds of a load, done as often as asked, and what it loaded: rows, and bytes or 0.
FRAME = """
import sys, time
path, few, threads, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
{prepare}
load(few)
for _ in range(times):
    data = None
    began = time.perf_counter()
    data = load(path)
    print(time.perf_counter() - began)
{report}
"""
LMART = FRAME.format(
    prepare="""
from lmart.formats.read_options import ReadOptions
from lmart.formats.documents.reading import read_dataset
from lmart.threads import WorkerPool
pool = WorkerPool(threads)
load = lambda path: read_dataset([path], ReadOptions(), pool)
""",
    report="""
rows = data.features
print(data.n_documents, sum(a.nbytes for a in (rows.offsets, rows.columns, rows.values, data.labels)))
""",
)
XGBOOST = FRAME.format(
    prepare="""
import xgboost
load = lambda path: xgboost.DMatrix(path + "?format=libsvm", nthread=threads)
""",
    report="print(data.num_row(), 0)",
)
SCIKIT_LEARN = FRAME.format(
    prepare="""
from sklearn.datasets import load_svmlight_file
load = lambda path: load_svmlight_file(path, query_id=True)
""",
    report="print(data[0].shape[0], 0)",
)
PEERS = {"xgboost": XGBOOST, "scikit-learn": SCIKIT_LEARN}
LIMITS = {"xgboost": 0.15, "scikit-learn": 0.02}


class Loads:
    """The loads of one text, ready to be timed."""

    def __init__(self, data: str, few: str, threads: int) -> None:
        self.data = data
        self.few = few
        self.threads = threads
        self.rows: dict[str, int] = {}

    def turn(
        self, name: str, code: str, data: str | None = None, again: dict[str, list[float]] | None = None
    ) -> Callable[[], float]:
        """Return a call that loads in a new process and returns the seconds; all loaders must find the same rows.

        again : gets, by name, the seconds of a second load in that process
        """
        command = self.command(code, data or self.data, 1 if again is None else 2)

        def run() -> float:
            words = whole_run(command).output.split()
            self.rows[name] = int(words[-2])
            if len(set(self.rows.values())) > 1:
                raise RuntimeError(f"the loaders differ in how many rows there are: {self.rows}")
            if again is not None:
                again.setdefault(name, []).append(float(words[1]))
            return float(words[0])

        return run

    def command(self, code: str, data: str, times: int) -> list[str]:
        """Return a command that loads so many times."""
        return [sys.executable, "-c", code, data, self.few, str(self.threads), str(times)]


def part_text(loads: Loads, args: argparse.Namespace, folder: Path, report: Report) -> None:
    """Text to memory, beside other loaders."""
    again: dict[str, list[float]] = {}
    codes = {"lmart": LMART} | {name: PEERS[name] for name in args.peers}
    turns: Turns = {name: loads.turn(name, code, again=again) for name, code in codes.items()}
    title = f"text to memory, {args.threads} threads"
    limits = {name: LIMITS.get(name) for name in args.peers}
    report.ratios(title, take_turns(turns, args.repeats), "s", limits)
    report.ratios(f"{title}, in memory used before", again, "s", limits)


def part_lines(loads: Loads, args: argparse.Namespace, folder: Path, report: Report) -> None:
    """Text to memory, beside counting its lines."""
    turns: Turns = {
        "lmart": loads.turn("lmart", LMART),
        "wc -l": lambda: whole_run(["wc", "-l", args.data], discard=True).seconds,
    }
    figures = take_turns(turns, args.repeats)
    report.ratios("text to memory", figures, "s", {"wc -l": None})
    megabytes = os.path.getsize(args.data) / 1e6
    speeds = {name: [megabytes / one for one in seconds] for name, seconds in figures.items()}
    report.figure("text to memory", speeds, "MB/s")


def part_gzip(loads: Loads, args: argparse.Namespace, folder: Path, report: Report) -> None:
    """The text in gzip, beside decompressing it."""
    packed = str(folder / "packed.svm.gz")
    with open(packed, "wb") as out:
        subprocess.run(["gzip", "-c", args.data], stdout=out, check=True)
    turns: Turns = {
        "lmart": loads.turn("lmart", LMART, packed),
        "zcat": lambda: whole_run(["zcat", packed], discard=True).seconds,
    }
    report.ratios("gzip to memory", take_turns(turns, args.repeats), "s", {"zcat": 1.3})


def part_memory(loads: Loads, args: argparse.Namespace, folder: Path, report: Report) -> None:
    """Peak memory of reading, beside what is held at the end."""
    done = whole_run(loads.command(LMART, args.data, 1))
    held = int(done.output.split()[-1]) / 2**20
    report.ratios("memory", {"peak": [done.megabytes], "arrays + 300": [held + 300]}, "MB", {"arrays + 300": 1.0})


def main() -> None:
    """Run the parts asked for."""
    parts = {"text": part_text, "lines": part_lines, "gzip": part_gzip, "memory": part_memory}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(parts))
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    for chosen, known in ((args.parts, parts), (args.peers, PEERS)):
        if unknown := sorted(set(chosen) - set(known)):
            parser.error(f"'{unknown[0]}' is none of {', '.join(known)}")
    facts: dict[str, Any] = machine("xgboost", "scikit-learn") | {"bytes": os.path.getsize(args.data)}
    print(", ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
    report = Report()
    if shutil.which("zcat") is None and "gzip" in args.parts:
        parser.error("the part gzip needs zcat")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = folder / "few.svm"
        with open(args.data, "rb") as text:
            few.write_bytes(b"".join(line for line, _ in zip(text, range(50), strict=False)))
        loads = Loads(args.data, str(few), args.threads)
        for part, measure in parts.items():
            if part in args.parts:
                measure(loads, args, folder, report)
    report.table()
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": facts} | report.to_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
