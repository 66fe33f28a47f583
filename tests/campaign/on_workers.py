"""Commands on a Dask cluster: calls that fail in its workers, inputs that change, stopped workers, two runs at once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from helpers.clusters import Worker, cluster

from campaign.changing_inputs import CHANGES, wrong_of_changed
from campaign.commands import OLD, SMALL, Attacked, clear, wanted
from campaign.failing_calls import ERRORS, judged
from campaign.harness import Ended, Planned, SharedPlan, Tally, attempt, outputs_wrong, shim

N_WORKERS, N_PARTS = 2, 4
PARTS = tuple(f"part-{number}.svm" for number in range(N_PARTS))
SCORES = tuple(f"scores-part-{number}.txt" for number in range(N_PARTS))
LOOK = 2.0  # seconds between looks at workers; the program looks more rarely
GRACE = 3.0  # seconds in which workers delete what they wrote
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
Undisturbed = tuple[bytes, dict[str, bytes]]


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Try it on one cluster, until the time is over."""
    tallies = [Tally("calls that fail on workers"), Tally("inputs that change on workers")]
    tallies += [Tally("workers that are stopped"), Tally("two runs on one cluster")]
    if not shim.there:
        tallies[0].notes.append("left out: there is no C compiler")
        return tallies
    from lmart.distributed import cluster as of_program
    from lmart.distributed import driver, evaluation, scoring  # noqa: F401  which forks do not load again
    from lmart.distributed.connecting import load_distributed

    load_distributed()
    for name, part in zip(PARTS, _by_query(Path("d.svm").read_text().splitlines(keepends=True)), strict=True):
        Path(name).write_text(part)
    with _cluster_with_plan() as (address, workers, plan):
        tries = Tries(_commands(address), workers, plan, chance)
        of_program.LOOK = LOOK  # only now, as workers that load and compile may be silent for long
        now = time.monotonic()
        kinds = (tries.fail, 0.35), (tries.change, 0.65), (tries.stop, 0.85), (tries.pair, 1.0)
        for tally, (attempted, share) in zip(tallies, kinds, strict=True):
            tries.statuses.clear()
            while time.monotonic() < now + (until - now) * share:
                tally.add(*attempted())
            tally.notes.append(", ".join(f"{n} with status {status}" for status, n in sorted(tries.statuses.items())))
    for name in PARTS:
        Path(name).unlink()
    return tallies


def _by_query(lines: list[str]) -> list[str]:
    """Return the rows in parts of whole queries."""
    queries = list(dict.fromkeys(line.split()[1] for line in lines))
    part_of = {query: place * N_PARTS // len(queries) for place, query in enumerate(queries)}
    return ["".join(line for line in lines if part_of[line.split()[1]] == part) for part in range(N_PARTS)]


def _commands(address: str) -> dict[str, Attacked]:
    at = ("--dask", address)
    return {
        "train --dask": Attacked(("train", "--data", "part-*.svm", *SMALL, "-o", "d.json", *at), ("d.json",)),
        "predict --dask": Attacked(
            ("predict", "-q", "-m", "in.json", "--data", "part-*.svm", "-o", "scores-*.txt", *at), SCORES
        ),
        "eval --dask": Attacked(("eval", "-q", "-m", "in.json", "--data", "part-*.svm", "--json", *at)),
    }


@contextmanager
def _cluster_with_plan() -> Iterator[tuple[str, list[Worker], SharedPlan]]:
    """Start a cluster whose processes have the shim, with a plan that they share."""
    plan = SharedPlan(Path("../plan").resolve())
    before = dict(os.environ)
    os.environ.update(plan.variables)
    try:
        started = cluster(N_WORKERS)
        running = started.__enter__()
    finally:
        os.environ.clear()
        os.environ.update(before)
    try:
        yield running.address, running.workers, plan
    finally:
        plan.plan(Planned())
        started.__exit__(None, None, None)


class Tries:
    """Tries one thing on the cluster, and returns what is wrong and how to see it again."""

    def __init__(
        self, commands: dict[str, Attacked], workers: list[Worker], plan: SharedPlan, chance: random.Random
    ) -> None:
        self._commands, self._workers, self._plan, self._chance = commands, workers, plan, chance
        self._undisturbed = {name: wanted(attacked) for name, attacked in commands.items()}
        self._calls = {}
        self.statuses: Counter[int] = Counter()  # of the commands that were tried
        for name, attacked in commands.items():
            plan.plan(Planned())
            attempt(attacked.words)
            self._calls[name] = plan.counts()

    def fail(self) -> tuple[list[str], str]:
        """Let a call fail in a worker."""
        name, planned = self._planned(tuple(ERRORS))
        planned = planned._replace(error=self._chance.choice(ERRORS[planned.kind]))
        ended, left = _tried(self._commands[name], planned, self._plan)
        self.statuses[ended.status or 0] += 1
        return judged(name, ended, planned, self._undisturbed[name], left)

    def change(self) -> tuple[list[str], str]:
        """Stop a worker in a call, change a part, and let the worker go on."""
        name, planned = self._planned(("read", "open", "stat"))
        part, change = self._chance.choice(PARTS), self._chance.choice(list(CHANGES))
        kept = Path(part).read_bytes()

        def after(process: int) -> None:
            if _is_any_stopped(self._workers, process):
                CHANGES[change](Path(part))
            _resume(self._workers)

        ended, left = _tried(self._commands[name], planned._replace(signal=signal.SIGSTOP), self._plan, after)
        self.statuses[ended.status or 0] += 1
        wrong = wrong_of_changed(ended, self._commands[name], self._undisturbed[name])
        Path(part).write_bytes(kept)
        return [*wrong, *_left(left)], f"{name}: {part} {change} at {planned}: {ended.said[-300:]!r} {left}"

    def stop(self) -> tuple[list[str], str]:
        """Stop a worker in a call, and let it go on when the run has ended."""
        name, planned = self._planned(("read", "open", "stat", "write", "close"))
        ended, left = _tried(self._commands[name], planned._replace(signal=signal.SIGSTOP), self._plan)
        _resume(self._workers)
        self.statuses[ended.status or 0] += 1
        outputs = self._undisturbed[name][1]
        wrong = ended.wrong((0, 1)) + outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD)) + _left(left)
        return wrong, f"{name}: {planned}: {ended.seconds:.0f} s {ended.said[-300:]!r} {left}"

    def pair(self) -> tuple[list[str], str]:
        """Start a run while another one runs, which is ended in some cases."""
        name, other = (self._chance.choice(list(self._commands)) for _ in range(2))
        number = self._chance.choice((0, 0, *ENDINGS))
        beside: list[Ended] = []

        def after(process: int) -> None:
            time.sleep(self._chance.uniform(0, 0.5))
            if number:
                os.kill(process, number)
            beside.append(attempt(self._commands[other].words))

        clear([self._commands[name], self._commands[other]])
        before = set(os.listdir())
        ended = attempt(self._commands[name].words, after=after)
        self.statuses[ended.status or 0] += 1
        statuses = (0, 128 + number, -number) if number else (0,)
        wrong = [f"the first: {what}" for what in _wrong(ended, statuses, self._undisturbed[name], name != other)]
        wrong += [f"the second: {what}" for what in _wrong(beside[0], (0,), self._undisturbed[other], True)]
        left = _left_after(before)
        wrong += [what for what in _left(left) if number != signal.SIGKILL]
        return wrong, f"{name} and {other}, {number}: {ended.said[-200:]!r} {beside[0].said[-200:]!r} {left}"

    def _planned(self, kinds: tuple[str, ...]) -> tuple[str, Planned]:
        """Return a command, and one of the calls of these kinds that workers make for it."""
        name = self._chance.choice(list(self._commands))
        kind = self._chance.choice([kind for kind in kinds if self._calls[name][kind]])
        return name, Planned(kind, self._chance.randrange(1, self._calls[name][kind] + 1))


def _tried(
    attacked: Attacked, planned: Planned, plan: SharedPlan, after: Callable[[int], None] = lambda process: None
) -> tuple[Ended, set[str]]:
    """Run a command while something happens in workers; return how it ended, and the files that it left."""
    clear([attacked])
    before = set(os.listdir())
    plan.plan(planned)
    ended = attempt(attacked.words, after=after)
    plan.plan(Planned())
    return ended, _left_after(before)


def _left_after(before: set[str]) -> set[str]:
    """Return the files that are new, once workers had time to delete theirs; delete them."""
    until = time.monotonic() + GRACE
    while (left := set(os.listdir()) - before) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _left(left: set[str]) -> list[str]:
    """Return what is wrong when files are left; delete them."""
    for path in left:
        Path(path).unlink(missing_ok=True)
    return ["leaves files"] if left else []


def _wrong(ended: Ended, statuses: tuple[int, ...], undisturbed: Undisturbed, alone: bool) -> list[str]:
    """Return what is wrong with one of two runs; `alone`: nobody else wrote its outputs after it."""
    printed, outputs = undisturbed
    wrong = ended.wrong(statuses)
    wrong += outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD)) if alone else []
    if ended.status == 0 and ended.out != printed:
        wrong.append("other standard output")
    return wrong


def _is_any_stopped(workers: list[Worker], process: int) -> bool:
    """Wait until a worker is stopped, or this process has ended; return whether a worker is."""
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if any(_state(worker) == "T" for worker in workers):
            return True
        time.sleep(0.005)
    return False


def _state(worker: Worker) -> str:
    with suppress(OSError):
        return Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _resume(workers: list[Worker]) -> None:
    for worker in workers:
        worker.process.send_signal(signal.SIGCONT)
