"""Training on wide, sparse data beside LightGBM: processor time and memory of whole runs, text to model.

    python tests/bench/wide.py [--rows 20000] [--features 100000,1000000] [--cells 40] [--trees 10] [--repeats 3]
                               [--json FILE]
    python tests/bench/wide.py --large 1000000        rows and ids of one large set, of 50 cells a row: lmart alone
    python tests/bench/wide.py --bundles              what bundles of exclusive features could save: lmart alone
    python tests/bench/wide.py --leaves 10000         of a tree on 20,000 rows of 2,000 numbers each: lmart alone

The data is made up: queries of 10 rows, each row with cells of 1 at ids that are the rarer, the higher they are, of
which a fifth matters; most ids stand in fewer rows than a leaf must have. Both tools read text, grow one LambdaMART
ranker with equal settings from all rows and features, and write the model. Memory is the peak of the process, less that
of the same run on few rows of few features: what the size of the data costs. The large set may take 12 bytes a cell,
times 1.2, and 500 MB; its trees are two. Of bundles, the least is measured that any could take: features of which a row
has one of 200 are given as one feature of 200 values, which has as many bins and as many cells.
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
LARGE_CELLS = 50  # of a row of the large set
MANY_LEAVES = """
import sys
import numpy, lmart
rng = numpy.random.default_rng(5)
X = rng.random((20_000, 2_000), numpy.float32)
y = rng.integers(0, 5, 20_000).astype(float)  # noise, so that all leaves are grown
settings = dict(trees=1, rankers=1, tree="leafwise", min_docs=1, min_hessian=0, sample=1, objective="lambdamart")
lmart.train(X, y, group=[20] * 1_000, leaves=int(sys.argv[1]), threads=int(sys.argv[2]), **settings)
"""
BUNDLES = """
import json, sys, time
import numpy, lmart
from scipy import sparse
rng = numpy.random.default_rng(5)
n, groups, values = 100_000, 10, 200
codes = (values ** rng.random((n, groups))).astype(int)
weight = rng.normal(size=(groups, values + 1))
score = weight[numpy.arange(groups), codes].sum(axis=1) + rng.normal(size=n)
y = (score > 1.0).astype(float) + (score > 4.0)
cells = (numpy.arange(groups) * values + codes - 1).ravel()
hot = sparse.csr_matrix((numpy.ones(len(cells)), cells, numpy.arange(0, len(cells) + 1, groups)), (n, groups * values))
settings = dict(trees=20, rankers=1, tree="leafwise", sample=1, objective="lambdamart", threads=int(sys.argv[1]))
sets = {"one by one": hot, "bundled": codes}
least = dict.fromkeys(sets, 1e9)
for repeat in range(4):
    for name, X in sets.items():
        seconds = []
        for trees in (1, 21):
            began = time.process_time()
            lmart.train(X, y, group=[20] * (n // 20), **settings | {"trees": trees})
            seconds.append(time.process_time() - began)
        least[name] = min(least[name], (seconds[1] - seconds[0]) / 20)
print(json.dumps(least))
"""
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
    params = LIGHTGBM | {"num_leaves": 31, "num_threads": args.threads, "feature_pre_filter": True}
    peer = [sys.executable, "-c", LIGHTGBM_RUN, plain, f"{plain}.model", str(args.trees), json.dumps(params)]
    return {"lmart": _lmart(letor, args), "LightGBM": peer}


def _lmart(letor: Path, args: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-m", "lmart", "train", "-q", "--data", str(letor), "-o", f"{letor}.json"]
    command += ["--trees", str(args.trees), "--leaves", "31", "--rankers", "1", "--tree", "leafwise", "--sample", "1"]
    return [*command, "--features", "1", "--objective", "lambdamart", "--threads", str(args.threads)]


def write_large(size: int, path: Path) -> int:
    """Write as many rows as ids, piece by piece, and return the number of cells."""
    rng = np.random.default_rng(6)
    weight, n_cells = rng.normal(size=size) * (rng.random(size) < 0.2), 0
    with path.open("w") as out:
        for first in range(0, size, 10_000):
            n = min(10_000, size - first)
            ids = np.minimum((size ** rng.random((n, LARGE_CELLS))).astype(np.int64) - 1, size - 1)
            score = weight[ids].sum(1) + rng.normal(size=n)
            place = score.reshape(-1, PER_QUERY).argsort(1).argsort(1).ravel()
            labels = np.where(place >= PER_QUERY - 2, 2, np.where(place >= PER_QUERY - 6, 1, 0)).tolist()
            for row, (label, own) in enumerate(zip(labels, ids, strict=True), first):
                listed = (np.unique(own) + 1).tolist()
                n_cells += len(listed)
                out.write(f"{label} qid:{row // PER_QUERY + 1} {' '.join(f'{one}:1' for one in listed)}\n")
    return n_cells


def measure_large(size: int, args: argparse.Namespace, folder: Path, report: Report) -> None:
    """Measure the memory of training on as many rows as ids."""
    letor = folder / "large.svm"
    writer = [sys.executable, __file__, "--large", str(size), "--write", str(letor)]
    n_cells = int(whole_run(writer).output)  # in a process of its own, whose memory does not count
    args.trees = 2
    began = _child_seconds()
    peak = whole_run(_lmart(letor, args), discard=True).megabytes
    title = f"{size:,} rows, {size:,} ids, {n_cells:,} cells"
    report.figure(f"{title}: processor time", {"lmart": [_child_seconds() - began]}, "s")
    report.figure(f"{title}: peak memory", {"lmart": [peak]}, "MB")
    report.promise(f"{title}: bytes over 1.2 x 12 a cell + 500 MB", [peak / (1.2 * 12e-6 * n_cells + 500)], 1.0)


def measure_leaves(leaves: int, args: argparse.Namespace, report: Report) -> None:
    """Measure the memory of a tree of many leaves on dense data, and with few leaves."""
    peaks = {}
    for number in (8, leaves):
        command = [sys.executable, "-c", MANY_LEAVES, str(number), str(args.threads)]
        began = _child_seconds()
        peaks[number] = whole_run(command, discard=True).megabytes
        title = f"20,000 rows, 2,000 features, a tree of {number:,} leaves"
        report.figure(f"{title}: processor time", {"lmart": [_child_seconds() - began]}, "s")
        report.figure(f"{title}: peak memory", {"lmart": [peaks[number]]}, "MB")
    name = f"{leaves:,} leaves take more than 8 by, over 512 MB of histograms"
    report.promise(name, [(peaks[leaves] - peaks[8]) / 512], 1.0)


def measure_bundles(args: argparse.Namespace, report: Report) -> None:
    """Measure the time of a tree on 2,000 features of which a row has 10, and on as many bins in 10 features."""
    found = json.loads(whole_run([sys.executable, "-c", BUNDLES, str(args.threads)]).output)
    title = "100,000 rows, 10 of 2,000 exclusive features a row: processor time a tree"
    report.figure(title, {name: [seconds * 1000] for name, seconds in found.items()}, "ms")
    report.promise(f"{title}: one by one over bundled", [found["one by one"] / found["bundled"]], None)


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
    parser.add_argument("--large", type=int, help="rows and ids of a large set, a multiple of 10")
    parser.add_argument("--bundles", action="store_true")
    parser.add_argument("--leaves", type=int, help="of a tree on dense data")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help="of the files; default: a temporary one")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.write:
        print(write_large(args.large, Path(args.write)))
        return
    facts: dict[str, Any] = machine("lightgbm")
    print(", ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
    report = Report()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        if args.large:
            measure_large(args.large, args, Path(name), report)
        if args.leaves:
            measure_leaves(args.leaves, args, report)
        if args.bundles:
            measure_bundles(args, report)
        for features in [] if args.large or args.leaves or args.bundles else args.features:
            measure(features, args, Path(name), report)
    report.table()
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": facts} | report.to_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
