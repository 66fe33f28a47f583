"""Scoring time beside LightGBM and compiled models, turn by turn in one run, as ratios beside what was promised.

    python tests/bench/scoring.py --data ROWS.svm [--parts first,warm,whole,memory,batch] [--models FOLDER]
        [--peers-python PATH] [--rows 100000] [--repeats 3] [--json FILE]

Models of 500 trees x 64 leaves and 300 x 31 are trained on --data by each tool, and kept in --models for the next time.
Each repeat runs every tool once, in the opposite order of the one before; a ratio is taken within a repeat. Printed are
the median and the range of the ratios, lmart over peer: below 1 lmart is faster.

first    lmart predict of 10 rows with an empty folder for machine code, whole process
warm     the same when compiled, against python -c "import lightgbm"
whole    text file to score file, whole processes. LightGBM reads the text itself (Booster.predict of a file name; the
         text is made without `qid:`, which it cannot read), and its scores are written as lmart writes its own.
memory   peak memory of lmart predict with ten times the rows over that with all rows, and with all rows for LightGBM
batch    ns for each document and tree, the first --rows rows in memory as a dense array: lmart.Model.predict,
         Booster.predict, and LightGBM's model compiled by tl2cgen and by lleaves, where the Python of --peers-python
         has them (`pip install lightgbm tl2cgen treelite lleaves 'llvmlite<0.45'`). Compiling takes minutes the first
         time, is not counted, and is kept in --models.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fair import LIGHTGBM, LIGHTGBM_RUN, LIGHTGBM_SCORES
from plain_text import plain_for_lightgbm
from turns import Helper, Report, Turns, machine, take_turns, whole_run

MODELS = {"500x64": (500, 64), "300x31": (300, 31)}
COMPILERS = {"tl2cgen": "import tl2cgen, treelite", "lleaves": "import lleaves"}
# Made in a process of its own, so that this one stays small.
TO_ARRAY = """
import sys
import numpy as np
from judged import load
text, rows, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
np.save(out, load([text]).cells[:rows])
"""


class Bench:
    """The data, the models and the command lines."""

    def __init__(self, args: argparse.Namespace, folder: Path, report: Report) -> None:
        self.args = args
        self.report = report
        self.folder = folder
        self.models = Path(args.models) if args.models else folder
        self.plain = plain_for_lightgbm(args.data, folder)
        self.few = str(folder / "few.txt")
        with open(args.data, "rb") as rows:
            Path(self.few).write_bytes(b"".join([next(rows) for _ in range(10)]))
        self.models.mkdir(exist_ok=True)
        for name in MODELS:
            self._train(name)

    def model(self, tool: str, name: str) -> str:
        return str(self.models / f"{tool}-{name}.{'json' if tool == 'lmart' else 'txt'}")

    def _train(self, name: str) -> None:
        trees, leaves = MODELS[name]
        ours, theirs = self.model("lmart", name), self.model("lightgbm", name)
        if not os.path.exists(ours):
            command = [sys.executable, "-m", "lmart", "train", "-q", "--data", self.args.data, "--out", ours]
            whole_run([*command, "--trees", str(trees), "--leaves", str(leaves)])
        if not os.path.exists(theirs):
            params = json.dumps(LIGHTGBM | {"num_leaves": leaves, "num_threads": 1})
            whole_run([sys.executable, "-c", LIGHTGBM_RUN, self.plain, theirs, str(trees), params])

    def compilers(self) -> dict[str, str]:
        """Return the Python of each compiling tool that is installed there."""
        python = self.args.peers_python
        return {
            tool: python
            for tool, code in COMPILERS.items()
            if not subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode
        }

    def scored_with(self, tool: str, name: str, helper: Helper) -> str:
        """Return the model for scorers.py, compiled when it is not there yet."""
        if tool not in COMPILERS:
            return self.model(tool, name)
        theirs = self.model("lightgbm", name)
        compiled = self.models / f"{tool}-{name}.{'so' if tool == 'tl2cgen' else 'o'}"
        if not compiled.exists():
            done = helper.ask(do="compile", model=theirs, out=str(compiled), threads=self.args.threads)
            self.report.figure(f"compiling {name}", {tool: [done["seconds"]]}, "s")
        return str(compiled) if tool == "tl2cgen" else f"{theirs}|{compiled}"

    def lmart(self, name: str, data: str) -> list[str]:
        command = [sys.executable, "-m", "lmart", "predict", "-q", "-m", self.model("lmart", name), "--data", data]
        return [*command, "--out", str(self.folder / "lmart.scores"), "--threads", str(self.args.threads)]

    def lightgbm(self, name: str, data: str) -> list[str]:
        command = [sys.executable, "-c", LIGHTGBM_SCORES, self.model("lightgbm", name), data]
        return [*command, str(self.folder / "lightgbm.scores"), str(self.args.threads)]


def part_first(bench: Bench) -> None:
    """Seconds of a run that has to compile."""

    def first() -> float:
        with tempfile.TemporaryDirectory() as empty:
            return whole_run(bench.lmart("300x31", bench.few), env={**os.environ, "NUMBA_CACHE_DIR": empty}).seconds

    figures = take_turns({"lmart": first}, bench.args.repeats)
    bench.report.figure("first run, 10 rows", figures, "s")
    bench.report.promise("first run, 10 rows, seconds", figures["lmart"], 6)


def part_warm(bench: Bench) -> None:
    """Seconds to start."""
    whole_run(bench.lmart("300x31", bench.few))  # compile
    turns: Turns = {
        "lmart": lambda: whole_run(bench.lmart("300x31", bench.few)).seconds,
        "import lightgbm": lambda: whole_run([sys.executable, "-c", "import lightgbm"]).seconds,
    }
    figures = take_turns(turns, max(5, bench.args.repeats))
    bench.report.ratios("warm start, 10 rows", figures, "s", {"import lightgbm": 1.0})


def part_whole(bench: Bench) -> None:
    """Seconds from text to scores."""
    for name in MODELS:
        turns: Turns = {
            "lmart": lambda name=name: whole_run(bench.lmart(name, bench.args.data)).seconds,  # type: ignore[misc]
            "lightgbm": lambda name=name: whole_run(bench.lightgbm(name, bench.plain)).seconds,  # type: ignore[misc]
        }
        figures = take_turns(turns, bench.args.repeats)
        bench.report.ratios(f"text to scores, {name}", figures, "s", {"lightgbm": 0.3})


def part_memory(bench: Bench) -> None:
    """Peak megabytes; ten times the rows are ten copies with queries of their own."""
    tenfold = bench.folder / "tenfold.txt"
    with tenfold.open("wb") as out:
        for copy in range(10):
            with open(bench.args.data, "rb") as rows:
                out.writelines(row.replace(b" qid:", b" qid:%d_" % copy) for row in rows)
    turns: Turns = {
        "10 x rows": lambda: whole_run(bench.lmart("300x31", str(tenfold))).megabytes,
        "1 x rows": lambda: whole_run(bench.lmart("300x31", bench.args.data)).megabytes,
        "lightgbm, 1 x rows": lambda: whole_run(bench.lightgbm("300x31", bench.plain)).megabytes,
    }
    figures = take_turns(turns, min(2, bench.args.repeats))
    bench.report.ratios("peak memory of predict", figures, "MB", {"1 x rows": 1.1, "lightgbm, 1 x rows": None})
    tenfold.unlink()


def part_batch(bench: Bench) -> None:
    """Nanoseconds for each document and tree."""
    rows = str(bench.folder / "rows.npy")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", TO_ARRAY, bench.args.data, str(bench.args.rows), rows]
    subprocess.run(command, env=environment, check=True)
    with open(bench.args.data, "rb") as text:
        n_rows = min(bench.args.rows, sum(1 for _ in text))
    pythons = {"lmart": sys.executable, "lightgbm": sys.executable} | bench.compilers()
    with ExitStack() as stack:
        helpers = {
            tool: stack.enter_context(Helper("scorers.py", tool, rows, python=python))
            for tool, python in pythons.items()
        }
        for name in MODELS:
            _batch(bench, helpers, name, n_rows)


def _batch(bench: Bench, helpers: dict[str, Helper], name: str, n_rows: int) -> None:
    threads, (trees, _) = bench.args.threads, MODELS[name]
    paths = {tool: bench.scored_with(tool, name, helper) for tool, helper in helpers.items()}
    means: dict[str, float] = {}

    def turn(tool: str) -> Callable[[], float]:
        def run() -> float:
            done = helpers[tool].ask(do="score", model=paths[tool], threads=threads)
            means[tool] = done["mean"]
            return float(done["seconds"]) * 1e9 / n_rows / trees

        return run

    for tool in helpers:
        turn(tool)()  # load, and touch what is touched first
    figures = take_turns({tool: turn(tool) for tool in helpers}, bench.args.repeats)
    for tool in set(means) - {"lmart", "lightgbm"}:
        if abs(means[tool] - means["lightgbm"]) > 1e-6 * max(1.0, abs(means["lightgbm"])):
            raise RuntimeError(f"{tool} scores LightGBM's model {name} otherwise: {means}")
    title = f"a document and tree, {name}, {threads} threads"
    compiled = [tool for tool in figures if tool in COMPILERS]
    bench.report.ratios(title, figures, "ns", {"lightgbm": 0.15} | dict.fromkeys(compiled))
    if compiled:
        best = [min(pair) for pair in zip(*(figures[tool] for tool in compiled), strict=True)]
        ratios = [a / b for a, b in zip(figures["lmart"], best, strict=True)]
        bench.report.promise(f"{title}: lmart / better of {' and '.join(compiled)}", ratios, 1.0)


def main() -> None:
    """Run the parts asked for."""
    parts = {"first": part_first, "warm": part_warm, "whole": part_whole, "memory": part_memory, "batch": part_batch}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(parts))
    parser.add_argument("--models", help="folder where trained models are kept")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has tl2cgen and lleaves")
    parser.add_argument("--rows", type=int, default=100_000, help="rows scored in part batch")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    args = parser.parse_args()
    facts: dict[str, Any] = machine("lightgbm")
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(args, Path(name), report)
        for part, measure in parts.items():
            if part in args.parts:
                measure(bench)
    report.table()
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": facts} | report.to_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
