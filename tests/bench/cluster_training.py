"""Training on a cluster of this machine beside LightGBM's and XGBoost's own Dask trainers, turn by turn, as ratios.

    python tests/bench/cluster_training.py --data FILE.txt --peers-python PYTHON [--test FILE.txt] [--parts 8]
        [--workers 2] [--trees 10,60] [--turns 3] [--tools cluster,single,lightgbm,xgboost] [--json FILE]

FILE.txt is LETOR text; this program splits it into part files of whole queries, which every tool reads. Each turn runs
every tool once, in the opposite order of the one before; a ratio is taken within a turn. Printed are the median and the
range of the ratios, lmart on the cluster over the other: below 1 it is faster, or smaller. All get the same settings
(fair.py), as many workers of one thread on one machine, and all documents; every run is a process of its own and starts
its workers, and code is compiled beforehand. A tool that fails is left out, and its reason is printed.

cluster    lmart train --dask local:N: N workers of one thread
single     lmart train --threads N: one process; its model must have the same bytes
lightgbm   lightgbm.dask.DaskLGBMRanker on a distributed.LocalCluster; see cluster_peers.py
xgboost    xgboost.dask.train, rank:ndcg, the same

--peers-python has the peers (cluster_peers.py tells what it needs); it may be another one than that of lmart.

a tree     seconds a tree: the time between the ends of two rounds, --trees N1,N2, over the trees between them
in all     seconds from the part files to the model file of N2 trees, with the starting of all processes
memory     peak resident memory of the largest worker, and of the driver, from start to end
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import fair
from plain_text import Parts, split
from process_peaks import Failed, WatchedRun, last_lines, watched_run
from turns import Report, machine, take_turns

TOOLS = ("cluster", "single", "lightgbm", "xgboost")
HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "data/sample"
WORKER_SHARE = 0.65  # most that a worker of two may need of the memory of one process
DRIVER_MEGABYTES = 300.0
PLAIN = ["--rankers", "1", "--objective", "lambdamart", "--tree", "leafwise", "--sample", "1", "--features", "1"]
LMART = ["train", "-q", *PLAIN, "--learning-rate", "0.1", "--max-bins", "255"]


class Figures(NamedTuple):
    """What a run of a tool gave: seconds a tree, seconds in all, and megabytes of the largest worker and the driver."""

    tree: float
    whole: float
    worker: float
    driver: float


class Runs:
    """Runs the tools, and keeps what they gave.

    args   : of the command line
    folder : for models
    parts  : of the data

    figures : of each tool, a turn each
    failed  : tools that failed, and why
    """

    def __init__(self, args: argparse.Namespace, folder: Path, parts: Parts) -> None:
        self.args, self.folder, self.parts = args, folder, parts
        self.figures: dict[str, list[Figures]] = {name: [] for name in args.tools}
        self.answers: dict[str, list[dict[str, Any]]] = {name: [] for name in args.tools}
        self.failed: dict[str, str] = {}

    def model(self, tool: str) -> Path:
        """Return where a tool writes its model."""
        return self.folder / f"{tool}{'.txt' if tool == 'lightgbm' else '.json'}"

    def turn(self, tool: str) -> Callable[[], float]:
        """Return a call that runs a tool once and returns the seconds in all, nan when it failed."""

        def run() -> float:
            if tool not in self.failed:
                try:
                    figures = self.run(tool, self.parts, self.args.trees)
                except Failed as fault:
                    self.failed[tool] = str(fault)
                    print(f"{tool}: failed, and is left out: {fault}", flush=True)
                else:
                    self.figures[tool].append(figures)
                    words = (f"{name} {value:.4g}" for name, value in figures._asdict().items())
                    print(f"  {tool}: {', '.join(words)}", flush=True)
                    return figures.whole
            return float("nan")

        return run

    def run(self, tool: str, parts: Parts, trees: tuple[int, int]) -> Figures:
        """Train with a tool; return what it took. Failed when it fails.

        tool  : its name
        parts : of the data
        trees : the rounds that seconds a tree are taken between; the second one is the last
        """
        few, many = trees
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            written = Path(folder) / "stamps"
            if tool in ("cluster", "single"):
                done = self._lmart(tool, parts, many, written)
                stamps = [float(line) for line in written.read_text().split()]
            else:
                done = self._peer(tool, parts, many, written)
                answer = json.loads(done.output.splitlines()[-1])
                stamps = answer.pop("stamps")
                self.answers[tool].append(answer)
        if len(stamps) < many:
            raise Failed(f"{many} rounds were asked for, but there were {len(stamps)}")
        tree = (stamps[many - 1] - stamps[few - 1]) / (many - few)
        if tool == "single":
            return Figures(tree, done.seconds, done.driver, done.driver)
        if len(done.workers) != self.args.workers:
            raise Failed(f"{self.args.workers} workers were asked for, but {len(done.workers)} were seen")
        return Figures(tree, done.seconds, max(done.workers), done.driver)

    def _lmart(self, tool: str, parts: Parts, trees: int, stamps: Path) -> WatchedRun:
        args = self.args
        command = [sys.executable, str(HERE / "stamped_lmart.py"), str(stamps), *LMART, "--data", *parts.paths]
        command += ["--out", str(self.model(tool))]
        command += ["--trees", str(trees), "--leaves", str(args.leaves), "--threads", str(args.workers)]
        if tool == "cluster":
            command += ["--dask", f"local:{args.workers}"]
        return watched_run(command, args.most_seconds)

    def _peer(self, tool: str, parts: Parts, trees: int, stamps: Path) -> WatchedRun:
        args = self.args
        leaves = {"lightgbm": "num_leaves", "xgboost": "max_leaves"}[tool]
        settings = {"lightgbm": fair.LIGHTGBM, "xgboost": fair.XGBOOST}[tool] | {leaves: args.leaves}
        job = parts._asdict() | {"parts": parts.paths, "tool": tool, "workers": args.workers, "trees": trees}
        job |= {"settings": settings, "model": str(self.model(tool)), "stamps": str(stamps)}
        del job["paths"]
        command = [args.peers_python, str(HERE / "cluster_peers.py"), json.dumps(job)]
        return watched_run(command, args.most_seconds)

    def try_out(self) -> None:
        """Run every tool on a few rows, to compile, and to leave out those that fail."""
        few = self.folder / "few"
        few.mkdir()
        parts = split(SAMPLE / "train.svm", 2 * self.args.workers, few)
        for tool in self.args.tools:
            try:
                self.run(tool, parts, (1, 3))
            except Failed as fault:
                self.failed[tool] = str(fault)
                print(f"{tool}: failed on a few rows, and is left out: {fault}", flush=True)

    def ndcg(self, tool: str) -> float | None:
        """Return NDCG@10 of a tool's model on the test set; None when there is none, or the model cannot be read."""
        if self.args.test is None:
            return None
        command = [sys.executable, "-m", "lmart", "eval", "-q", "--data", str(self.args.test), "--json"]
        command += ["-m", str(self.model(tool)), "--metric", "ndcg@10", "--empty", "skip", "--gain", "exp2"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{tool}: NDCG is not known:{last_lines(done.stderr)}", flush=True)
            return None
        return float(json.loads(done.stdout)["metrics"]["ndcg@10"])


def report_runs(runs: Runs, report: Report) -> None:
    """Add all rows of the table.

    runs   : all turns are done
    report : that gets them
    """
    args = runs.args
    done = {tool: figures for tool, figures in runs.figures.items() if figures and tool not in runs.failed}
    if "cluster" not in done:
        print("lmart on the cluster has no figures, so there are no ratios")
        return
    quality = {tool: runs.ndcg(tool) for tool in done}
    remarks = {tool: f"NDCG@10 {quality['cluster']:.4f}, {value:.4f}" for tool, value in quality.items() if value}
    done = {"cluster": done.pop("cluster")} | done
    few, many = args.trees
    titles = {
        "tree": (f"a tree, trees {few + 1} to {many} of {args.leaves} leaves", "s"),
        "whole": (f"parts to model, {many} trees", "s"),
        "worker": ("peak memory of a worker", "MB"),
        "driver": ("peak memory of the driver", "MB"),
    }
    for name, (title, unit) in titles.items():
        figures = {tool: [getattr(one, name) for one in figures] for tool, figures in done.items()}
        if name == "driver":
            figures.pop("single", None)
        limits: dict[str, float | None] = dict.fromkeys(list(figures)[1:])
        if name == "worker" and "single" in figures and args.workers == 2:
            limits["single"] = WORKER_SHARE
        report.ratios(title, figures, unit, limits, remarks if name == "tree" else None)
    driver = [one.driver for one in done["cluster"]]
    report.promise("peak memory of lmart's driver, MB", driver, DRIVER_MEGABYTES)


def compare_models(runs: Runs) -> bool | None:
    """Print and return whether lmart's models on the cluster and in one process have the same bytes; None: not known.

    runs : all turns are done
    """
    if not runs.figures.get("cluster") or not runs.figures.get("single"):
        return None
    sums = [hashlib.sha256(runs.model(tool).read_bytes()).hexdigest() for tool in ("cluster", "single")]
    same = sums[0] == sums[1]
    print(f"SHA-256 of the models of cluster and single: {'the same' if same else 'DIFFERENT'}, {sums[0]}, {sums[1]}")
    return same


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--test", type=Path, help="LETOR text for NDCG@10")
    parser.add_argument("--peers-python", default=sys.executable, help="Python that has the peers")
    parser.add_argument("--tools", type=lambda text: text.split(","), default=list(TOOLS), help=",".join(TOOLS))
    parser.add_argument("--trees", type=lambda text: tuple(map(int, text.split(","))), default=(10, 60), help="N1,N2")
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--parts", type=int, default=8, help="part files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--most-seconds", type=float, default=1800.0, help="of a run; then it is ended and left out")
    parser.add_argument("--work", type=Path, help="folder for the part files")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if unknown := [tool for tool in args.tools if tool not in TOOLS]:
        parser.error(f"{unknown[0]} is not a tool; there are {', '.join(TOOLS)}")
    if len(args.trees) != 2 or not 0 < args.trees[0] < args.trees[1]:
        parser.error("--trees is N1,N2, two numbers, the second one larger")
    if args.parts < args.workers:
        parser.error("--parts must be at least --workers: each worker has at least one")
    return args


def main() -> None:
    """Run all turns, and print the table."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended
    facts: dict[str, Any] = machine("distributed")
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    report = Report()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        parts = split(args.data, args.parts, Path(folder))
        print(f"{sum(parts.rows)} rows of {sum(parts.queries)} queries in {len(parts.paths)} parts", flush=True)
        runs = Runs(args, Path(folder), parts)
        runs.try_out()
        take_turns({tool: runs.turn(tool) for tool in args.tools}, args.turns)
        report_runs(runs, report)
        same = compare_models(runs)
    report.table()
    for tool, answers in runs.answers.items():
        if answers:
            print(f"{tool}, last run: {json.dumps(answers[-1])}")
    for tool, reason in runs.failed.items():
        print(f"{tool} was left out: {reason}")
    if args.json:
        content = {"machine": facts} | report.to_json() | {"same_bytes": same, "failed": runs.failed}
        args.json.write_text(json.dumps(content | {"peers": runs.answers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
