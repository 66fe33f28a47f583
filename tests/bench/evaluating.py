"""Time of `lmart eval` beside reading its files, and of its measures beside other tools, as ratios.

    python tests/bench/evaluating.py [--queries 31531] [--documents 3800000] [--parts whole,memory,chance]
        [--folder FOLDER] [--peers-python PATH] [--repeats 3] [--threads N] [--json FILE]

The data is made up: as many queries and documents as MSLR-WEB30K has, labels 0 to 4 in about its shares, each query
with a relevant document, one feature, and scores without ties, on which all tools agree. It is kept in --folder.
Each repeat runs all once, in the opposite order of the one before; ratios are taken within a repeat.

whole    lmart eval with its default measures and intervals, as a process, over a process that only reads the two files
memory   the default measures of documents in memory over those of ranx and ir_measures, where the Python of
         --peers-python has them (`pip install ranx ir_measures`); the forms that each tool takes are made before
chance   seconds of the intervals of six measures, of comparing two systems in them, and of a randomization test of
         1,000,000 queries with 1,000 choices of signs
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

from turns import Helper, Report, Turns, machine, take_turns, whole_run

PEERS = ("ranx", "ir_measures")
# In processes of their own, so that this one stays small.
MAKE = """
import sys
import numpy as np
n_queries, n_documents, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
shares = rng.gamma(3.0, 1.0, n_queries)
bounds = np.round(np.cumsum(shares) / shares.sum() * (n_documents - n_queries)).astype(np.int64)
offsets = np.concatenate([[0], bounds + np.arange(1, n_queries + 1)])
labels = rng.choice(5, n_documents, p=[0.52, 0.32, 0.13, 0.02, 0.01])
labels[offsets[:-1]] = np.maximum(labels[offsets[:-1]], 1)
query = np.repeat(np.arange(n_queries), np.diff(offsets))
place = np.arange(n_documents) - offsets[query]
# The last digits are those of the place, so that there are no ties.
scores = np.round(labels + rng.normal(0.0, 2.0, n_documents), 5) + place * 1e-10
feature = np.round(rng.random(n_documents), 4)
with open(folder + "/data.svm", "w") as out:
    out.writelines(f"{l} qid:{q + 1} 1:{x}\\n" for l, q, x in zip(labels.tolist(), query.tolist(), feature.tolist()))
with open(folder + "/scores.txt", "w") as out:
    out.writelines(f"{score:.10f}\\n" for score in scores.tolist())
np.savez(folder + "/data.npz", labels=labels.astype(float), offsets=offsets, scores=scores)
"""
READ = """
import sys
from lmart.formats.documents.reading import for_models, read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.formats.results.scores import read_scores
from lmart.threads import WorkerPool
data, scores, threads = sys.argv[1:]
with WorkerPool(int(threads)) as pool:
    dataset = read_dataset([data], for_models(ReadOptions(), []), pool)
    read_scores(scores, dataset.n_documents, data)
"""


def version_of(package: str, python: str) -> str:
    """Return the version of a package that a Python has, or 'absent'."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return "absent" if done.returncode else done.stdout.strip()


class Bench:
    """The data, and where figures go."""

    def __init__(self, args: argparse.Namespace, folder: Path, report: Report) -> None:
        self.args = args
        self.report = report
        self.data, self.scores, self.arrays = (str(folder / name) for name in ("data.svm", "scores.txt", "data.npz"))
        self.size = f"{args.queries} queries, {args.documents} documents, {args.threads} threads"
        made = folder / f"made-{args.queries}-{args.documents}"
        if not made.exists():
            folder.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-c", MAKE, str(args.queries), str(args.documents), str(folder)]
            subprocess.run(command, check=True)
            made.touch()

    def helper(self, tool: str, python: str = sys.executable) -> Helper:
        return Helper("evaluators.py", tool, self.arrays, python=python)


def part_whole(bench: Bench) -> None:
    """Seconds of whole processes."""
    threads = str(bench.args.threads)
    ours = [sys.executable, "-m", "lmart", "eval", "-q", "--data", bench.data, "--scores", bench.scores]
    reading = [sys.executable, "-c", READ, bench.data, bench.scores, threads]
    turns: Turns = {
        "lmart eval": lambda: whole_run([*ours, "--threads", threads]).seconds,
        "reading": lambda: whole_run(reading).seconds,
    }
    take_turns(turns, 1)  # compile, and have the files at hand
    figures = take_turns(turns, bench.args.repeats)
    bench.report.ratios(f"text to measures, {bench.size}", figures, "s", {"reading": 3.0})


def part_memory(bench: Bench) -> None:
    """Seconds of measures in memory."""
    pythons = {"lmart": sys.executable}
    for tool in PEERS:
        if version_of(tool, bench.args.peers_python) != "absent":
            pythons[tool] = bench.args.peers_python
    means: dict[str, list[float]] = {}
    with ExitStack() as stack:
        helpers = {tool: stack.enter_context(bench.helper(tool, python)) for tool, python in pythons.items()}

        def turn(tool: str) -> Callable[[], float]:
            def run() -> float:
                done = helpers[tool].ask(do="evaluate", threads=bench.args.threads)
                means[tool] = done["means"]
                return float(done["seconds"])

            return run

        turns: Turns = {tool: turn(tool) for tool in helpers}
        take_turns(turns, 1)  # compile, and touch what is touched first
        figures = take_turns(turns, bench.args.repeats)
    for tool, values in means.items():
        # ir_measures compares scores in 32 bits, in which some of millions are equal.
        if any(abs(a - b) > 1e-5 for a, b in zip(values, means["lmart"], strict=True)):
            raise RuntimeError(f"{tool} measures otherwise: {means}")
    title = f"measures in memory, {bench.size}"
    bench.report.ratios(title, figures, "s", dict.fromkeys([tool for tool in figures if tool != "lmart"]))


def part_chance(bench: Bench) -> None:
    """Seconds of intervals and tests."""
    requests: dict[str, dict[str, Any]] = {
        "intervals": {"do": "intervals"},
        "comparison": {"do": "compare"},
        "test of 1,000,000 queries x 1,000 flips": {"do": "flips", "queries": 1_000_000, "flips": 1_000},
    }
    with bench.helper("lmart") as helper:
        for name, request in requests.items():
            helper.ask(**request, threads=bench.args.threads)  # compile
            done = [helper.ask(**request, threads=bench.args.threads) for _ in range(bench.args.repeats)]
            figures = {kind: [float(one[kind]) for one in done] for kind in ("seconds", "cpu")}
            bench.report.figure(f"{name}, {bench.size}", figures, "s")


def main() -> None:
    """Run the parts asked for."""
    parts = {"whole": part_whole, "memory": part_memory, "chance": part_chance}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=31_531)
    parser.add_argument("--documents", type=int, default=3_800_000)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(parts))
    parser.add_argument("--folder", help="where the data is kept")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has ranx and ir_measures")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    args = parser.parse_args()
    facts: dict[str, Any] = machine() | {tool: version_of(tool, args.peers_python) for tool in PEERS}
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(args, Path(args.folder or name), report)
        for part, measure in parts.items():
            if part in args.parts:
                measure(bench)
    report.table()
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": facts} | report.to_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
