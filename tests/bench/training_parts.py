"""The parts of training.py."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import fair
from plain_text import plain_for_lightgbm
from turns import Helper, Report, Turns, take_turns, whole_run

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "data/sample/train.svm"
FILE_TREES, FILE_LEAVES = 100, 64
# The peers of part tree: helper, and further settings.
TREE_PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lightgbm": ("lightgbm", {}),
    "lightgbm quantized": ("lightgbm", fair.QUANTIZED),
    "xgboost": ("xgboost", {}),
}
# What was promised of a tree by size: over LightGBM with one thread and with all, and with all threads over one; and
# how many rounds are trained for each that is asked for.
TREE_LIMITS = {"L": (0.35, 0.35, 0.54), "M": (0.30, 0.38, 0.58), "S": (None, None, 0.75)}
MORE_ROUNDS = {"L": 1, "M": 2, "S": 8, "small": 8}
COMPARED_LEAVES = 64  # where one thread and all are compared, and more than there are processors
CROWDED = 16  # threads
START = {
    "train": ["--data", str(SAMPLE), "--out"],
    "predict": ["--data", str(SAMPLE), "--out", os.devnull, "--model"],
}
CANDIDATES: list[dict[str, Any]] = [
    {"sample": 0.3},
    {"sample": 0.2, "min_docs": 100, "learning_rate": 0.12},
]
SAMPLES = ("1", "auto", "0.5", "0.3")


class Bench:
    """The data, the helpers that are running, and the report."""

    def __init__(self, args: argparse.Namespace, folder: Path, report: Report) -> None:
        self.args = args
        self.folder = folder
        self.report = report
        self.data = str(args.bench / f"{args.size}.txt")
        self.test = str(args.bench / "test.txt")
        # An installed program has its byte code beside it; that of a source tree is kept here.
        bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self.env = {**os.environ, **bytecode}

    # Whole processes -------------------------------------------------------------------------------------------

    def lmart(self, data: str, leaves: int, *more: str) -> list[str]:
        command = [sys.executable, "-m", "lmart", "train", "-q", "--data", data, "--trees", str(FILE_TREES)]
        return [*command, "--leaves", str(leaves), "--threads", str(self.args.threads), *more]

    def lightgbm(self, plain: str, leaves: int, model: str) -> list[str]:
        params = json.dumps(fair.LIGHTGBM | {"num_leaves": leaves, "num_threads": self.args.threads})
        return [sys.executable, "-c", fair.LIGHTGBM_RUN, plain, model, str(FILE_TREES), params]

    def _whole(self, data: str, leaves: int) -> tuple[dict[str, list[float]], dict[str, list[float]], dict[str, str]]:
        """Return seconds and peak megabytes of whole runs, text to model, and the models."""
        plain = plain_for_lightgbm(data, self.folder)
        models = {"lmart": "own.json", "lmart --sample auto": "sampled.json", "lightgbm": "peer.txt"}
        models = {name: str(self.folder / model) for name, model in models.items()}
        one = ["--rankers", "1", "--objective", "lambdamart"]
        commands = {
            "lmart": self.lmart(data, leaves, *one, "--sample", "1", "--out", models["lmart"]),
            "lmart --sample auto": self.lmart(data, leaves, *one, "--out", models["lmart --sample auto"]),
            "lightgbm": self.lightgbm(plain, leaves, models["lightgbm"]),
        }
        whole_run(self.lmart(str(SAMPLE), 31, "--out", models["lmart"]), env=self.env)  # compile
        peaks: dict[str, list[float]] = {name: [] for name in commands}

        def turn(name: str) -> Callable[[], float]:
            def run() -> float:
                done = whole_run(commands[name], env=None if name == "lightgbm" else self.env)
                peaks[name].append(done.megabytes)
                return done.seconds

            return run

        return take_turns({name: turn(name) for name in commands}, self.args.repeats), peaks, models

    def file(self) -> None:
        seconds, peaks, models = self._whole(self.data, FILE_LEAVES)
        title = f"text to model, {self.args.size}, {FILE_TREES} trees of {FILE_LEAVES} leaves"
        remark = {"lightgbm": self._quality_of(models)}
        if "file" in self.args.parts:
            self.report.ratios(title, seconds, "s", {"lightgbm": 0.35}, remark)
            self._sampled(title, seconds, 0.28)
        if "memory" in self.args.parts:
            self.report.ratios(f"peak memory, {title}", peaks, "MB", {"lightgbm": 0.8}, remark)
            self._sampled(f"peak memory, {title}", peaks)

    def _sampled(self, title: str, figures: dict[str, list[float]], limit: float | None = None) -> None:
        self.report.ratio(title, figures, ("lmart --sample auto", "lightgbm"), limit)

    def _quality_of(self, models: dict[str, str]) -> str:
        found = {}
        for name, model in models.items():
            with Helper("trainers.py", name.split()[0], self.data, self.test) as helper:
                found[name] = helper.ask(do="ndcg", model=model)["ndcg"]
        return _ndcg_in_words(found)

    def small(self) -> None:
        small = str(self.args.bench / "small.txt")
        seconds, _, _ = self._whole(small, 31)
        self.report.ratios("whole process, small.txt, 100 trees of 31 leaves", seconds, "s", {"lightgbm": 0.5})
        with self.helpers({"lmart", "lightgbm"}, small) as running:
            turns = {name: self._turn(running[name], 31, 1, self._rounds("small"), "processor") for name in running}
            figures = take_turns(dict(sorted(turns.items(), reverse=True)), self.args.repeats)
        title = "processor time of a tree, small.txt, 31 leaves, 1 thread"
        self.report.ratios(title, figures, "s", {"lightgbm": 0.4})

    def start(self) -> None:
        model = str(self.folder / "start.json")
        for name, limits in {"train": (4.5, 2.0), "predict": (2.0, None)}.items():
            command = [sys.executable, "-m", "lmart", name, "-q", *START[name], model]
            whole_run(command, env=self.env)
            turns: Turns = {
                "empty cache": partial(_first, command, self.env),
                "full cache": partial(_seconds, command, self.env),
            }
            figures = take_turns(turns, self.args.repeats)
            self.report.figure(f"lmart {name} on data/sample", figures, "s")
            for (cache, values), limit in zip(figures.items(), limits, strict=True):
                self.report.promise(f"lmart {name} on data/sample, {cache}, seconds", values, limit)

    # Data in memory --------------------------------------------------------------------------------------------

    @contextmanager
    def helpers(self, names: set[str], data: str | None = None) -> Iterator[dict[str, Helper]]:
        running = {name: Helper("trainers.py", name, data or self.data, self.test) for name in sorted(names)}
        try:
            yield running
        finally:
            for helper in running.values():
                helper.close()

    def _rounds(self, size: str) -> int:
        return int(self.args.rounds) * MORE_ROUNDS.get(size, 1)

    def _turn(
        self, helper: Helper, leaves: int, threads: int, rounds: int, clock: str = "stamps", **settings: Any
    ) -> Callable[[], float]:
        """Return a call that trains, and returns the median seconds a round; clock : a key of the helper's answer."""

        def run() -> float:
            return _seconds_a_tree(_train(helper, leaves, threads, rounds, settings, clock))

        return run

    def tree(self) -> None:
        peers = {name: TREE_PEERS[name] for name in self.args.peers}
        for size in dict.fromkeys((self.args.size, "M", "S")):
            data = self.args.bench / f"{size}.txt"
            if not data.exists():
                print(f"no {data}, so it is left out")
                continue
            with self.helpers({"lmart", *(tool for tool, _ in peers.values())}, str(data)) as running:
                for leaves in self.args.leaves if size == self.args.size else [COMPARED_LEAVES]:
                    self._tree(running, peers, size, leaves)

    def _tree(self, running: dict[str, Helper], peers: dict[str, Any], size: str, leaves: int) -> None:
        most = _in_words(self.args.threads)
        quality: dict[str, float] = {}
        every = {
            f"{name}, {most}": (*tool, self.args.threads) for name, tool in {"lmart": ("lmart", {}), **peers}.items()
        }
        if leaves == COMPARED_LEAVES and self.args.threads > 1:
            every |= {f"{name}, 1 thread": (name, {}, 1) for name in ("lmart", "lightgbm") if name in running}
            every[f"lmart, {CROWDED} threads"] = ("lmart", {}, CROWDED)

        def turn(name: str) -> Callable[[], float]:
            tool, settings, threads = every[name]
            train = self._turn(running[tool], leaves, threads, self._rounds(size), **settings)

            def run() -> float:
                seconds = train()
                if size == self.args.size and name not in quality:
                    quality[name] = running[tool].ask(do="ndcg")["ndcg"]
                return seconds

            return run

        figures = take_turns({name: turn(name) for name in every}, self.args.repeats)
        title = f"a tree, {size}, {leaves} leaves"
        self.report.figure(title, figures, "s")
        own = f"lmart, {most}"
        single, together, speedup = TREE_LIMITS.get(size, (None, None, None))
        pairs = {
            (own, name): together if name == f"lightgbm, {most}" else None
            for name in every
            if name.endswith(f", {most}")
        }
        pairs |= {
            ("lmart, 1 thread", "lightgbm, 1 thread"): single,
            (own, "lmart, 1 thread"): speedup,
            (f"lmart, {CROWDED} threads", own): 1.15,
        }
        for (first, second), limit in pairs.items():
            if first != second and first in every and second in every:
                known = {name: quality[name] for name in (first, second) if name in quality}
                remark = _ndcg_in_words(known) if known else ""
                self.report.ratio(title, figures, (first, second), limit, remark)

    def neighbour(self) -> None:
        most, rounds = _in_words(self.args.threads), self._rounds("M")
        with self.helpers({"lmart", "lightgbm"}, str(self.args.bench / "M.txt")) as running:
            for helper in running.values():
                _train(helper, 64, 1, 2, {})  # read and compile before it gets busy
            turns = {
                f"lmart {most}": self._turn(running["lmart"], 64, self.args.threads, rounds),
                "lmart 1 thread": self._turn(running["lmart"], 64, 1, rounds),
                f"lightgbm {most}": self._turn(running["lightgbm"], 64, self.args.threads, 6),
                "lightgbm 1 thread": self._turn(running["lightgbm"], 64, 1, rounds),
            }
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.args.threads - 1)]
            try:
                figures = take_turns(turns, self.args.repeats)
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
        title = f"a tree, M, 64 leaves, {len(busy)} busy neighbour"
        self.report.ratios(title, figures, "s", {"lmart 1 thread": 1.1})
        self.report.ratio(title, figures, (f"lightgbm {most}", "lightgbm 1 thread"), None)

    def quality_time(self) -> None:
        rounds, threads, leaves = self.args.target_rounds, self.args.threads, 64
        candidates = {f"lmart {json.dumps(one)}": ("lmart", one) for one in self.args.candidate}
        every = {"lightgbm": ("lightgbm", {})} | candidates
        every |= {name: ("lightgbm", settings) for name, settings in fair.GOSS.items()}
        others = list(every)[1:]
        target = 0.0
        seconds: dict[str, list[float]] = {name: [] for name in every}
        notes: dict[str, str] = {}
        with self.helpers({"lmart", "lightgbm"}) as running:
            for repeat in range(self.args.repeats):
                # LightGBM sets the target, so it begins; the others take turns.
                for name in ["lightgbm", *(others if repeat % 2 == 0 else others[::-1])]:
                    tool, settings = every[name]
                    own = dict(settings)
                    stamps = _train(running[tool], own.pop("leaves", leaves), threads, rounds, own)
                    curve = running[tool].ask(do="curve", step=5)["ndcg"]
                    if name == "lightgbm":
                        target = curve[str(rounds)]
                    found = _first_reaching(curve, target)
                    start = stamps[0] - _seconds_a_tree(stamps)
                    seconds[name].append(stamps[found - 1] - start if found else float("inf"))
                    notes[name] = f"at round {found}" if found else f"not in {rounds} rounds, {max(curve.values()):.4f}"
                    print(f"  {name}: NDCG {target:.4f} {notes[name]}, {seconds[name][-1]:.1f} s", flush=True)
        title = f"seconds to NDCG@10 {target:.4f}, {self.args.size}"
        self.report.figure(title, seconds, "s")
        best = min(candidates, key=lambda name: statistics.median(seconds[name]))
        goss = min(fair.GOSS, key=lambda name: statistics.median(seconds[name]))
        for peer, limit in (("lightgbm", 0.25), (goss, 0.5)):
            values = [a / b for a, b in zip(seconds[best], seconds[peer], strict=True)]
            if any(map(math.isnan, values)):
                print(f"  {title}: neither {best} nor {peer} got there")
                continue
            remark = f"lmart {notes[best]}, {peer} {notes[peer]}"
            self.report.promise(f"{title}: {best} / {peer}", values, limit, remark)

    def sampling(self) -> None:
        found: dict[str, dict[str, list[float]]] = {}
        for sample in SAMPLES:
            if self.args.real:
                for name, values in self._real(sample).items():
                    found.setdefault(name, {})[sample] = values
        with self.helpers({"lmart"}) as running:
            for sample in SAMPLES:
                share = None if sample == "auto" else float(sample)
                for seed in range(self.args.seeds):
                    settings = {"sample": share, "seed": seed}
                    _train(running["lmart"], 64, self.args.threads, self.args.sample_rounds, settings)
                    value = running["lmart"].ask(do="ndcg")["ndcg"]
                    found.setdefault(self.args.size, {}).setdefault(sample, []).append(value)
        for name, by_sample in found.items():
            self.report.figure(f"NDCG@10 by --sample, {name}, {self.args.seeds} seeds", by_sample, "")
            for sample in SAMPLES[1:]:
                losses = [a - b for a, b in zip(by_sample["1"], by_sample[sample], strict=True)]
                # The mean over seeds is what counts: single seeds differ by luck.
                mean = statistics.mean(losses)
                limit = 0.002 if sample == "auto" else None
                remark = f"single seeds {min(losses):+.4f} to {max(losses):+.4f}"
                self.report.promise(f"NDCG@10 lost with --sample {sample}, {name}", [mean], limit, remark)

    def _real(self, sample: str) -> dict[str, list[float]]:
        """Return, for each real set, lmart's NDCG of each seed, as quality.py measures it."""
        result = self.folder / "quality.json"
        seeds = [str(seed) for seed in range(self.args.seeds)]
        command = [sys.executable, str(HERE / "quality.py"), "--data", str(self.args.real), "--tools", "lmart"]
        command += ["--options", f"--sample {sample}", "--seeds", ",".join(seeds), "--json", str(result)]
        whole_run(command, discard=True)
        by_set: dict[str, Any] = json.loads(result.read_text())["runs"]["lmart"]
        return {
            name: [
                statistics.mean(
                    statistics.mean(value for value in runs[seed]["ndcg"] if value is not None)
                    for runs in by_fold.values()
                )
                for seed in seeds
            ]
            for name, by_fold in by_set.items()
        }


def _train(
    helper: Helper, leaves: int, threads: int, rounds: int, settings: dict[str, Any], clock: str = "stamps"
) -> list[float]:
    """Train, and return the time at the end of each round."""
    answer = helper.ask(do="train", leaves=leaves, threads=threads, rounds=rounds, settings=settings)
    stamps: list[float] = answer[clock]
    return stamps


def _seconds(command: list[str], env: dict[str, str]) -> float:
    return whole_run(command, env=env).seconds


def _first(command: list[str], env: dict[str, str]) -> float:
    """Return the seconds of a run with an empty folder for machine code."""
    with tempfile.TemporaryDirectory() as empty:
        return whole_run(command, env={**env, "NUMBA_CACHE_DIR": empty}).seconds


def _seconds_a_tree(stamps: list[float]) -> float:
    """Return the median over the rounds, but for the first two."""
    return statistics.median(b - a for a, b in pairwise(stamps[min(2, len(stamps) - 2) :]))


def _first_reaching(curve: dict[str, float], target: float) -> int | None:
    return next((int(rounds) for rounds, value in curve.items() if value >= target), None)


def _ndcg_in_words(values: dict[str, float]) -> str:
    """Return the NDCG@10 of each tool, lmart's first and the peer's last, and a mark where lmart's is lower."""
    own, *_, peer = values.values()
    mark = " LOWER" if own < peer - 0.002 else ""
    return "NDCG@10 " + ", ".join(f"{name} {value:.4f}" for name, value in values.items()) + mark


def _in_words(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
