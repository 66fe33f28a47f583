"""Time a tree with more threads than there are processors, foretold from the pieces of work that training hands out.

    python tests/bench/scaling.py --data M.txt [--leaves 64] [--rounds 30] [--repeats 3] [--threads 4,8,16,32]
        [--json FILE]

Training with 1 and with 2 threads is measured first: for each kind of work (the kernel or method that is handed out) a
tree's dispatches, the seconds in them, and the seconds that threads wait for each other; and the seconds in kernels
that the grower calls itself, within such work or between dispatches. For more threads the work is cut as that many
threads would have it, done by one thread, and each piece is timed; the pieces are then given to that many workers in
order, each to the first that is free. What runs between dispatches counts in full, and so does what a dispatch costs by
itself. The figure for 2 threads, foretold in this way, stands beside the measured one. Memory that all processors share
is not part of the model: where it is the limit, more threads take longer. Of small leaves, which workers take from a
queue in one dispatch, each is a piece, and the Python around it counts in full; that one leaf has to be split before
its children is not part of the model either.

LightGBM is measured with 1 and 2 threads; for more its time follows from these by Amdahl's law.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from trainers import LightGBM
from turns import machine, take_turns

from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.grower import expander

WARM_UP = 3  # rounds that are not counted
QUEUE = "_expand_small"  # the method in which workers take small leaves from a queue


class Dispatch(NamedTuple):
    """Calls of one function that were handed out together: when it began and ended, and the seconds of each call."""

    kind: str
    began: float
    ended: float
    pieces: list[float]


def kind_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, kernel or method, or of what it hands on to."""
    function = getattr(function, "func", function)
    return getattr(function, "__name__", type(function).__name__)


class TimedPool(WorkerPool):
    """A pool that times what it runs.

    With `alone`, the calling thread does the work of all threads, and its processor time counts, so that other programs
    do not disturb.
    """

    def __init__(self, threads: int, alone: bool = False) -> None:
        super().__init__(1 if alone else threads)
        self.threads = threads
        self._by_caller = alone
        self.clock = time.thread_time if alone else time.perf_counter
        self.dispatches: list[Dispatch] = []

    def run(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], own: Sequence[Any] | None = None
    ) -> list[Any]:
        pieces: list[float] = []

        def timed(*call: Any) -> Any:
            began = self.clock()
            result = function(*call)
            pieces.append(self.clock() - began)
            return result

        began = self.clock()
        if self._by_caller:
            mine = () if own is None else (own[0],)
            results = [timed(*mine, *call) for call in arguments]
        else:
            results = super().run(timed, arguments, own)
        if pieces:
            self.dispatches.append(Dispatch(kind_of(function), began, self.clock(), pieces))
        return results

    def close(self) -> None:
        if not self._by_caller:
            super().close()


@contextmanager
def timed_kernels(clock: Callable[[], float]) -> Iterator[list[Dispatch]]:
    """Note the calls of the kernels that the grower calls itself, on whatever thread it runs."""
    calls: list[Dispatch] = []

    def timed(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            began = clock()
            result = kernel(*arguments)
            ended = clock()
            calls.append(Dispatch(kind_of(kernel), began, ended, [ended - began]))
            return result

        return run

    with ExitStack() as stack:
        for name in ("expand_leaf", "choose_split"):
            stack.enter_context(patch.object(expander, name, timed(getattr(expander, name))))
        yield calls


class Training(NamedTuple):
    """Rounds of a training: when the first that counts began and the last ended, how many, and what was handed out.

    called : the calls of kernels that the grower calls itself
    """

    began: float
    ended: float
    rounds: int
    dispatches: list[Dispatch]
    called: list[Dispatch]

    @property
    def milliseconds(self) -> float:
        """Of a tree."""
        return 1e3 * (self.ended - self.began) / self.rounds


def train_timed(data: Any, leaves: int, rounds: int, pool: TimedPool) -> Training:
    """Train, and return what the rounds after the first few took."""
    settings = TrainSettings(trees=rounds + WARM_UP, leaves=leaves, sample=1.0, rankers=1, objective="lambdamart")
    stamps: list[float] = []
    with pool, timed_kernels(pool.clock) as calls:
        train(data, [], settings, pool, lambda _: stamps.append(pool.clock()))
    began = stamps[WARM_UP - 1]
    dispatches, calls = (
        [one for one in noted if one.began > began and one.ended < stamps[-1]] for noted in (pool.dispatches, calls)
    )
    expanded = [one for one in calls if one.kind == "expand_leaf"]
    for place, one in enumerate(dispatches):
        if one.kind == QUEUE:
            inside = [call.pieces[0] for call in expanded if one.began < call.began and call.ended < one.ended]
            dispatches[place] = one._replace(pieces=inside)
    return Training(began, stamps[-1], rounds, dispatches, calls)


def makespan(pieces: Sequence[float], workers: int) -> float:
    """Return when the last piece ends, if each is taken in order by the worker that is free first."""
    free = [0.0] * workers
    for seconds in pieces:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def foretell(training: Training, workers: int, cost: float) -> float:
    """Return milliseconds a tree with as many workers as the pieces of work were cut for.

    cost : seconds that a dispatch to several workers takes by itself
    """
    total = training.ended - training.began
    for one in training.dispatches:
        total += makespan(one.pieces, workers) - sum(one.pieces) + (cost if len(one.pieces) > 1 else 0.0)
    return 1e3 * total / training.rounds


def dispatch_cost() -> float:
    """Return the seconds of a dispatch of no work to two workers."""
    with WorkerPool(2) as pool:
        times = []
        for _ in range(2000):
            began = time.perf_counter()
            pool.run(int, [(1,), (2,)])
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def print_kinds(training: Training, threads: int) -> dict[str, dict[str, float]]:
    """Print and return, by kind, dispatches a tree, milliseconds in them, and milliseconds of waiting threads."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in training.dispatches:
        of_kind, rounds = found[one.kind], training.rounds
        of_kind["dispatches"] += 1 / rounds
        of_kind["work"] += 1e3 * sum(one.pieces) / rounds
        taking_part = min(threads, len(one.pieces))
        of_kind["waiting"] += 1e3 * (taking_part * (one.ended - one.began) - sum(one.pieces)) / rounds
    outside = training.milliseconds - 1e3 * sum(one.ended - one.began for one in training.dispatches) / training.rounds
    print(f"threads {threads}: {training.milliseconds:.2f} ms a tree, {outside:.2f} of them between dispatches")
    for kind, of_kind in sorted(found.items(), key=lambda item: -item[1]["work"]):
        figures = f"{of_kind['work']:8.2f} ms of work {of_kind['waiting']:7.2f} ms of waiting"
        print(f"  {kind:32} {of_kind['dispatches']:6.1f} dispatches {figures}")
    for kind in sorted({one.kind for one in training.called}):
        pieces = [one.pieces[0] for one in training.called if one.kind == kind]
        calls, work = len(pieces) / training.rounds, 1e3 * sum(pieces) / training.rounds
        found[kind] = {"calls": calls, "work": work}
        print(f"  {kind:32} {calls:6.1f} calls      {work:8.2f} ms, of those above or between dispatches")
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
    kinds = {threads: print_kinds(training, threads) for threads, training in sorted(trainings.items())}
    cost = dispatch_cost()
    best = {name: min(values) for name, values in figures.items()}
    # Amdahl's share that stays with one thread.
    serial = min(max(2 * best["lightgbm 2"] / best["lightgbm 1"] - 1, 0.0), 1.0)
    foretold = {}
    print(f"foretold, with {1e6 * cost:.0f} microseconds a dispatch; LightGBM by Amdahl's law, {serial:.0%} serial")
    for threads in [2, *args.threads]:
        alone = train_timed(data, args.leaves, args.rounds, TimedPool(threads, alone=True))
        milliseconds, of_peer = foretell(alone, threads, cost), best["lightgbm 1"] * (serial + (1 - serial) / threads)
        foretold[threads] = {"lmart": milliseconds, "lightgbm": of_peer}
        check = f"; measured {best['lmart 2']:.2f}" if threads == 2 else ""
        ratio = milliseconds / of_peer
        print(f"  {threads:2} threads: lmart {milliseconds:.2f}{check}; LightGBM {of_peer:.2f}; ratio {ratio:.2f}")
    if args.json:
        found = {"machine": facts, "milliseconds": figures, "kinds": kinds, "foretold": foretold}
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
