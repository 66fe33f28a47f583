"""Time a tree with more threads than there are processors, foretold from the pieces of work that training hands out.

    python tests/bench/scaling.py --data M.txt [--leaves 64] [--rounds 30] [--repeats 3] [--threads 4,8,16,32]
        [--json FILE]

Training with 1 and with 2 threads is measured first: for each kind of work (the kernel or method that is handed out) a
tree's milliseconds, dispatches and pieces, and how long threads work and wait for each other. For more threads the work
is cut as that many threads would have it, but done by one, and each piece is timed; the pieces are then given to that
many workers in order, each to the first that is free. Small leaves, which workers take from a queue in one dispatch,
are expanded by as many real threads, but one at a time, that whose own clock is least; so a leaf comes before its
children, and leaves are expanded that the tree turns out not to need. By these clocks kernels run side by side, Python
does not, and a thread that is woken begins as late as after a dispatch. What runs between dispatches counts in full,
and so does what a dispatch costs by itself. The figure for 2 threads, foretold in this way, stands beside the measured
one. Memory that all processors share is not part of the model: where it is the limit, more threads take longer.

LightGBM is measured with 1 and 2 threads; for more its time follows from these by Amdahl's law.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from trainers import LightGBM
from turns import machine, take_turns

from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.kernels.trees.leaf_expansion import expand_leaf
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.grower import expander

WARM_UP = 3  # rounds that are not counted
QUEUE = "_expand_small"  # the method in which workers take small leaves from a queue


class Dispatch(NamedTuple):
    """Calls of one function that were handed out together.

    began, ended : by the clock of the pool
    pieces       : seconds of each call, or, where workers take leaves from a queue, of each leaf's kernel
    span         : seconds until the last call ended, with as many workers as the work was cut for
    """

    kind: str
    began: float
    ended: float
    pieces: list[float]
    span: float


def kind_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, kernel or method, or of what it hands on to."""
    function = getattr(function, "func", function)
    return getattr(function, "__name__", type(function).__name__)


class TimedPool(WorkerPool):
    """A pool that times what it runs."""

    clock = staticmethod(time.perf_counter)

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.dispatches: list[Dispatch] = []
        self.expansions: list[float] = []  # seconds

    def run(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], own: Sequence[Any] | None = None
    ) -> list[Any]:
        pieces: list[float] = []

        def timed(*call: Any) -> Any:
            began = self.clock()
            result = function(*call)
            pieces.append(self.clock() - began)
            return result

        began, n_expanded = self.clock(), len(self.expansions)
        results = super().run(timed, arguments, own)
        ended, kind = self.clock(), kind_of(function)
        if kind == QUEUE:
            pieces = self.expansions[n_expanded:]
        if pieces:
            self.dispatches.append(Dispatch(kind, began, ended, pieces, ended - began))
        return results

    def expand(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Call and time the kernel that expands a leaf, on whatever thread."""
        began = self.clock()
        result = kernel(*arguments)
        self.expansions.append(self.clock() - began)
        return result


class SimulatedPool(TimedPool):
    """A pool whose calls are all made by one thread; how long many would take follows from their processor times.

    cost : seconds that a dispatch to several workers takes by itself
    """

    clock = staticmethod(time.thread_time)  # other programs do not disturb

    def __init__(self, threads: int, cost: float) -> None:
        super().__init__(1)
        self.threads, self._cost = threads, cost

    def run(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], own: Sequence[Any] | None = None
    ) -> list[Any]:
        if kind_of(function) == QUEUE:
            return self._run_queue(function, len(arguments))
        n_workers, self.threads = self.threads, 1
        results = super().run(function, arguments, own)
        self.threads = n_workers
        if arguments:
            last = self.dispatches[-1]
            between = last.span - sum(last.pieces)
            self.dispatches[-1] = last._replace(span=between + makespan(last.pieces, n_workers, self._cost))
        return results

    def _run_queue(self, function: Callable[..., Any], n_workers: int) -> list[Any]:
        began, self._workers = self.clock(), SimulatedWorkers(n_workers, self._cost)
        with patch.multiple(function.__self__, _lock=self._workers, _changed=self._workers):  # type: ignore[attr-defined]
            results = self._workers.run(function)
        span = self._workers.last_end + self._cost
        self.dispatches.append(Dispatch(QUEUE, began, self.clock(), self._workers.pieces, span))
        return results

    def expand(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        return self._workers.call(kernel, *arguments)

    def close(self) -> None:
        pass


class SimulatedWorkers:
    """Threads with clocks of their own, of which that with the least runs, one at a time; their lock and condition.

    Kernels run side by side by these clocks. Python does not: it waits until no other thread is at it.

    wake : seconds from a notice until the thread that waited runs
    """

    def __init__(self, n_workers: int, wake: float) -> None:
        self.pieces: list[float] = []  # seconds of each kernel
        self._wake = wake
        self._clocks = [0.0] + [wake] * (n_workers - 1)
        self._turns = [threading.Semaphore(0) for _ in self._clocks]
        self._ready = [(clock, worker) for worker, clock in enumerate(self._clocks)]  # a heap
        self._waiting: list[int] = []
        self._running = 0
        self._since = 0.0  # processor time of the thread that runs, as far as it is on its clock
        self._python_ended = 0.0

    @property
    def last_end(self) -> float:
        """When the last of all ended."""
        return max(self._clocks)

    def run(self, function: Callable[[], Any]) -> list[Any]:
        """Call a function on each thread."""

        def work(worker: int) -> Any:
            self._await_turn(worker)
            try:
                return function()
            finally:
                self._count_python()
                self._next_turn()

        n_workers = len(self._clocks)
        with ThreadPoolExecutor(n_workers) as threads:
            results = threads.map(work, range(n_workers))
            self._next_turn()
        return list(results)

    def call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel; what follows comes when it is this thread's turn."""
        self._count_python()
        result, worker = kernel(*arguments), self._running
        self.pieces.append(self._spent())
        self._clocks[worker] += self.pieces[-1]
        heapq.heappush(self._ready, (self._clocks[worker], worker))
        self._next_turn()
        self._await_turn(worker)
        return result

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass

    def wait(self) -> None:
        """Wait for a notice."""
        self._count_python()
        worker = self._running
        self._waiting.append(worker)
        self._next_turn()
        self._await_turn(worker)

    def notify(self, n: int = 1) -> None:
        """Wake the threads that have waited longest."""
        self._count_python()
        woken, self._waiting = self._waiting[:n], self._waiting[n:]
        for worker in woken:
            self._clocks[worker] = self._clocks[self._running] + self._wake
            heapq.heappush(self._ready, (self._clocks[worker], worker))

    def notify_all(self) -> None:
        """Wake all."""
        self.notify(len(self._waiting))

    def _next_turn(self) -> None:
        if self._ready:
            self._turns[heapq.heappop(self._ready)[1]].release()

    def _await_turn(self, worker: int) -> None:
        self._turns[worker].acquire()
        self._running, self._since = worker, time.thread_time()

    def _spent(self) -> float:
        began, self._since = self._since, time.thread_time()
        return self._since - began

    def _count_python(self) -> None:
        began = max(self._clocks[self._running], self._python_ended)
        self._clocks[self._running] = self._python_ended = began + self._spent()


class Training(NamedTuple):
    """Rounds of a training: when the first that counts began and the last ended, how many, and what was handed out."""

    began: float
    ended: float
    rounds: int
    dispatches: list[Dispatch]

    @property
    def outside(self) -> float:
        """Milliseconds of a tree between dispatches."""
        inside = sum(one.ended - one.began for one in self.dispatches)
        return 1e3 * (self.ended - self.began - inside) / self.rounds

    @property
    def milliseconds(self) -> float:
        """Of a tree."""
        return self.outside + 1e3 * sum(one.span for one in self.dispatches) / self.rounds


def train_timed(data: Any, leaves: int, rounds: int, pool: TimedPool) -> Training:
    """Train, and return what the rounds after the first few took."""
    settings = TrainSettings(trees=rounds + WARM_UP, leaves=leaves, sample=1.0, rankers=1, objective="lambdamart")
    stamps: list[float] = []
    with pool, patch.object(expander, "expand_leaf", partial(pool.expand, expand_leaf)):
        train(data, [], settings, pool, lambda _: stamps.append(pool.clock()))
    began = stamps[WARM_UP - 1]
    counted = [one for one in pool.dispatches if one.began > began and one.ended < stamps[-1]]
    return Training(began, stamps[-1], rounds, counted)


def makespan(pieces: Sequence[float], workers: int, cost: float) -> float:
    """Return when the last piece ends, if each is taken in order by the worker that is free first.

    cost : seconds that a dispatch takes by itself, if there are several pieces
    """
    free = [0.0] * workers
    for seconds in pieces:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free) + (cost if len(pieces) > 1 else 0.0)


def dispatch_cost(threads: int) -> float:
    """Return the seconds of a dispatch of no work to so many workers."""
    times = []
    with WorkerPool(threads) as pool:
        for _ in range(1000):
            pool._alone = 0  # there is nothing but waiting here, which would soon leave all to the caller
            began = time.perf_counter()
            pool.run(int, [(1,)] * threads)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def print_kinds(training: Training, threads: int) -> dict[str, dict[str, float]]:
    """Print and return, by kind, dispatches and pieces a tree, milliseconds, and those of waiting threads."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in training.dispatches:
        of_kind, rounds = found[one.kind], training.rounds
        of_kind["dispatches"] += 1 / rounds
        of_kind["pieces"] += len(one.pieces) / rounds
        of_kind["span"] += 1e3 * one.span / rounds
        of_kind["work"] += 1e3 * sum(one.pieces) / rounds
        of_kind["waiting"] += 1e3 * (min(threads, len(one.pieces)) * one.span - sum(one.pieces)) / rounds
    print(
        f"threads {threads}: {training.milliseconds:.2f} ms a tree, {training.outside:.2f} of them between dispatches"
    )
    for kind, of_kind in sorted(found.items(), key=lambda item: -item[1]["span"]):
        counts = f"{of_kind['dispatches']:6.1f} dispatches {of_kind['pieces']:6.1f} pieces"
        figures = f"{of_kind['work']:8.2f} ms of work {of_kind['waiting']:8.2f} ms of waiting"
        print(f"  {kind:28} {of_kind['span']:8.2f} ms {counts} {figures}")
    return found


def main() -> None:
    """Measure, foretell, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[4, 8, 16, 32])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    facts = machine("lightgbm")
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    data, peer = read_dataset([args.data], ReadOptions()), LightGBM(args.data)
    trainings: dict[int, Training] = {}

    def ours(threads: int) -> Callable[[], float]:
        def run() -> float:
            trainings[threads] = train_timed(data, args.leaves, args.rounds, TimedPool(threads))
            return trainings[threads].milliseconds

        return run

    def theirs(threads: int) -> Callable[[], float]:
        def run() -> float:
            stamps = peer.train(args.leaves, threads, args.rounds + WARM_UP, {}).clock
            return float(1e3 * (stamps[-1] - stamps[WARM_UP - 1]) / args.rounds)

        return run

    train_timed(data, args.leaves, 1, TimedPool(2))  # compile
    turns = {f"lmart {n}": ours(n) for n in (1, 2)} | {f"lightgbm {n}": theirs(n) for n in (1, 2)}
    figures = take_turns(turns, args.repeats)
    for name, values in figures.items():
        print(f"{name} thread(s): {statistics.median(values):.2f} ms a tree, at least {min(values):.2f}")
    kinds = {f"measured {threads}": print_kinds(training, threads) for threads, training in sorted(trainings.items())}
    best = {name: min(values) for name, values in figures.items()}
    # Amdahl's share that stays with one thread.
    serial = min(max(2 * best["lightgbm 2"] / best["lightgbm 1"] - 1, 0.0), 1.0)
    foretold = {}
    print(f"foretold; LightGBM by Amdahl's law, {serial:.0%} serial")
    for threads in [2, *args.threads]:
        simulated = train_timed(data, args.leaves, args.rounds, SimulatedPool(threads, dispatch_cost(threads)))
        kinds[f"foretold {threads}"] = print_kinds(simulated, threads)
        milliseconds, of_peer = simulated.milliseconds, best["lightgbm 1"] * (serial + (1 - serial) / threads)
        foretold[threads] = {"lmart": milliseconds, "lightgbm": of_peer}
        check = f"measured {best['lmart 2']:.2f}; " if threads == 2 else ""
        print(f"  {check}LightGBM {of_peer:.2f}; ratio {milliseconds / of_peer:.2f}")
    if args.json:
        found = {"machine": facts, "milliseconds": figures, "kinds": kinds, "foretold": foretold}
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
