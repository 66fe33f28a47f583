"""Scoring time beside LightGBM, turn by turn in one run, as ratios.

    python tests/bench/scoring.py --data ROWS.svm [--parts first,warm,whole,memory,batch] [--models FOLDER]
                                  [--repeats 3] [--json FILE]

Models of 500 trees x 64 leaves and 300 x 31 are trained on --data by each tool, and kept in --models for the next time.
Each repeat runs every tool once, in the opposite order of the one before; a ratio is taken within a repeat. Printed are
the median and the range of the ratios, lmart over peer: below 1 lmart is faster.

first    lmart predict of 10 rows with an empty folder for machine code, whole process
warm     the same when compiled, against python -c "import lightgbm"
whole    text file to score file, whole processes. LightGBM reads the text itself (Booster.predict of a file name; the
         text is made without `qid:`, which it cannot read), and its scores are written as lmart writes its own.
memory   peak memory of lmart predict with ten times the rows over that with all rows, and with all rows for LightGBM
batch    ns for each document and tree, rows in memory as a dense array: lmart.Model.predict, Booster.predict
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from training import LIGHTGBM, LIGHTGBM_RUN, plain_for_lightgbm
from turns import Turns, machine, show, take_turns, whole_run

MODELS = {"500x64": (500, 64), "300x31": (300, 31)}

LIGHTGBM_SCORES = """
import sys
import lightgbm
model, text, scores, threads = sys.argv[1:]
found = lightgbm.Booster(model_file=model).predict(text, num_threads=int(threads)).tolist()
with open(scores, "w") as out:
    out.write("".join([f"{score!r}\\n" for score in found]))
"""


class Bench:
    """The data, the models and the command lines."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args = args
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

    def lmart(self, name: str, data: str) -> list[str]:
        command = [sys.executable, "-m", "lmart", "predict", "-q", "-m", self.model("lmart", name), "--data", data]
        return [*command, "--out", str(self.folder / "lmart.scores"), "--threads", str(self.args.threads)]

    def lightgbm(self, name: str, data: str) -> list[str]:
        command = [sys.executable, "-c", LIGHTGBM_SCORES, self.model("lightgbm", name), data]
        return [*command, str(self.folder / "lightgbm.scores"), str(self.args.threads)]


def part_first(bench: Bench) -> dict[str, Any]:
    """Seconds of a run that has to compile."""
    before = os.environ.get("NUMBA_CACHE_DIR")

    def first() -> float:
        with tempfile.TemporaryDirectory() as empty:
            os.environ["NUMBA_CACHE_DIR"] = empty
            try:
                return whole_run(bench.lmart("300x31", bench.few)).seconds
            finally:
                if before is None:
                    del os.environ["NUMBA_CACHE_DIR"]
                else:
                    os.environ["NUMBA_CACHE_DIR"] = before

    return show("first run, 10 rows", take_turns({"lmart": first}, bench.args.repeats), "s")


def part_warm(bench: Bench) -> dict[str, Any]:
    """Seconds to start."""
    whole_run(bench.lmart("300x31", bench.few))  # compile
    turns: Turns = {
        "lmart": lambda: whole_run(bench.lmart("300x31", bench.few)).seconds,
        "import lightgbm": lambda: whole_run([sys.executable, "-c", "import lightgbm"]).seconds,
    }
    return show("warm start, 10 rows", take_turns(turns, max(5, bench.args.repeats)), "s")


def part_whole(bench: Bench) -> dict[str, Any]:
    """Seconds from text to scores."""
    results = {}
    for name in MODELS:
        turns: Turns = {
            "lmart": lambda name=name: whole_run(bench.lmart(name, bench.args.data)).seconds,  # type: ignore[misc]
            "lightgbm": lambda name=name: whole_run(bench.lightgbm(name, bench.plain)).seconds,  # type: ignore[misc]
        }
        results[name] = show(f"text to scores, {name}", take_turns(turns, bench.args.repeats), "s")
    return results


def part_memory(bench: Bench) -> dict[str, Any]:
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
    result = show("peak memory", take_turns(turns, min(2, bench.args.repeats)), "MB")
    tenfold.unlink()
    return result


def part_batch(bench: Bench) -> dict[str, Any]:
    """Nanoseconds for each document and tree."""
    import lightgbm

    import lmart
    from lmart.formats.options import ReadOptions
    from lmart.formats.registry import read_dataset

    data = read_dataset([bench.args.data], ReadOptions())
    cells = data.features.dense(data.n_features, 0.0)
    threads = bench.args.threads
    results = {}
    for name, (trees, _) in MODELS.items():
        ours, theirs = (
            lmart.load(bench.model("lmart", name)),
            lightgbm.Booster(model_file=bench.model("lightgbm", name)),
        )
        wide = _at_index(data, theirs.num_feature())  # LightGBM counts columns from index 0
        ours.predict(cells[:10], data.feature_ids.tolist())

        def lmart_turn(model: Any = ours, trees: int = trees) -> float:
            began = time.perf_counter()
            model.predict(cells, data.feature_ids.tolist(), threads=threads)
            return (time.perf_counter() - began) * 1e9 / data.n_documents / trees

        def lightgbm_turn(model: Any = theirs, rows: Any = wide, trees: int = trees) -> float:
            began = time.perf_counter()
            model.predict(rows, num_threads=threads)
            return (time.perf_counter() - began) * 1e9 / data.n_documents / trees

        turns: Turns = {"lmart": lmart_turn, "lightgbm": lightgbm_turn}
        results[name] = show(f"batch, {name}, {threads} threads", take_turns(turns, bench.args.repeats), "ns")
    return results


def _at_index(data: Any, n_columns: int) -> Any:
    """Return the rows with each feature in the column of its index."""
    import numpy as np

    cells = np.zeros((data.n_documents, max(n_columns, int(data.feature_ids[-1]) + 1)))
    cells[:, data.feature_ids] = data.features.dense(data.n_features, 0.0)
    return cells[:, :n_columns]


def main() -> None:
    """Run the parts asked for."""
    # A child's peak memory is never counted below its parent's, so the whole runs come before anything is loaded.
    parts = {"first": part_first, "warm": part_warm, "whole": part_whole, "memory": part_memory, "batch": part_batch}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(parts))
    parser.add_argument("--models", help="folder where trained models are kept")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    args = parser.parse_args()
    results: dict[str, Any] = {"machine": machine("lightgbm")}
    print(", ".join(f"{key} {value}" for key, value in results["machine"].items()))
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(args, Path(name))
        for part in sorted(args.parts, key=list(parts).index):
            results[part] = parts[part](bench)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
