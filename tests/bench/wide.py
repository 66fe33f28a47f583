"""Training on wide, sparse data beside LightGBM: processor time and memory of whole runs, text to model.

    python tests/bench/wide.py [--rows 20000] [--features 100000,1000000] [--cells 40] [--trees 10] [--repeats 3]
                               [--json FILE]

The data is made up: queries of 10 rows, each row with cells of 1 at ids that are the rarer, the higher they are, of
which a fifth matters; most ids stand in fewer rows than a leaf must have. Both tools read text, grow one LambdaMART
ranker with equal settings from all rows and features, and write the model. Memory is the peak of the process, less that
of the same run on few rows of few features: what the size of the data costs.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fair import LIGHTGBM, LIGHTGBM_RUN
from plain_text import plain_for_lightgbm
from turns import Report, machine, take_turns, whole_run

PER_QUERY = 10
FEW, FEW_IDS = 1_000, 100  # rows and ids of the run that memory is compared with


def make(rows: int, features: int, cells: int, seed: int = 7) -> list[tuple[int, list[int]]]:
    """Return the label and the ids of each row."""
    rng = np.random.default_rng(seed)
    ids = np.minimum((features ** rng.random((rows, cells))).astype(np.int64) - 1, features - 1)
    weight = rng.normal(size=features) * (rng.random(features) < 0.2)
    score = weight[ids].sum(1) + rng.normal(size=rows)
    place = score.reshape(-1, PER_QUERY).argsort(1).argsort(1).ravel()
    labels = np.where(place >= PER_QUERY - 2, 2, np.where(place >= PER_QUERY - 6, 1, 0))
    return [(int(label), (np.unique(own) + 1).tolist()) for label, own in zip(labels, ids, strict=True)]


def write(data: list[tuple[int, list[int]]], path: Path) -> None:
    """Write rows as LETOR text."""
    with path.open("w") as out:
        for row, (label, ids) in enumerate(data):
            out.write(f"{label} qid:{row // PER_QUERY + 1} {' '.join(f'{one}:1' for one in ids)}\n")


def commands(letor: Path, args: argparse.Namespace) -> dict[str, list[str]]:
    """Return the command by which each tool trains."""
    plain = plain_for_lightgbm(str(letor), letor.parent)
    lmart = [sys.executable, "-m", "lmart", "train", "-q", "--data", str(letor), "-o", f"{letor}.json"]
    lmart += ["--trees", str(args.trees), "--leaves", "31", "--rankers", "1", "--tree", "leafwise", "--sample", "1"]
    lmart += ["--features", "1", "--objective", "lambdamart", "--threads", str(args.threads)]
    params = LIGHTGBM | {"num_leaves": 31, "num_threads": args.threads, "feature_pre_filter": True}
    peer = [sys.executable, "-c", LIGHTGBM_RUN, plain, f"{plain}.model", str(args.trees), json.dumps(params)]
    return {"lmart": lmart, "LightGBM": peer}


def measure(features: int, args: argparse.Namespace, folder: Path, report: Report) -> None:
    """Measure both tools on data of so many ids."""
    data = make(args.rows, features, args.cells)
    sizes: dict[str, dict[str, list[str]]] = {}
    for name, rows in (("all", data), ("few", make(FEW, FEW_IDS, args.cells))):
        letor = folder / f"{name}{features}" / "rows.svm"
        letor.parent.mkdir()
        write(rows, letor)
        sizes[name] = commands(letor, args)
    n_ids = len({one for _, ids in data for one in ids})
    del data
    memory: dict[str, list[float]] = {}

    def turn(tool: str) -> Callable[[], float]:
        def run() -> float:
            base = whole_run(sizes["few"][tool], discard=True).megabytes
            began = _child_seconds()
            peak = whole_run(sizes["all"][tool], discard=True).megabytes
            memory.setdefault(tool, []).append(peak - base)
            return _child_seconds() - began

        return run

    title = f"{args.rows:,} rows, {n_ids:,} features, {args.trees} trees"
    seconds = take_turns({tool: turn(tool) for tool in sizes["all"]}, args.repeats)
    report.ratios(f"{title}: processor time", seconds, "s", {"LightGBM": 0.4})
    report.ratios(f"{title}: memory", {tool: memory[tool] for tool in seconds}, "MB", {"LightGBM": 0.6})


def _child_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure each number of ids."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=lambda text: list(map(int, text.split(","))), default=[100_000, 1_000_000])
    parser.add_argument("--cells", type=int, default=40)
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="of the files; default: a temporary one")
    parser.add_argument("--json")
    args = parser.parse_args()
    facts: dict[str, Any] = machine("lightgbm")
    print(", ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
    report = Report()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        for features in args.features:
            measure(features, args, Path(name), report)
    report.table()
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": facts} | report.to_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
