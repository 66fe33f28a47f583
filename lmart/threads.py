"""Threads: how many this process may use, and a pool that runs compiled kernels side by side.

Kernels release the interpreter lock, so plain threads are enough. Chunks are handed out on demand and waiting threads
sleep: a processor that another program keeps busy slows one chunk, not the whole loop.
"""

from __future__ import annotations

import _thread
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from operator import index
from pathlib import Path
from typing import Generic, TypeVar, TypeVarTuple, Unpack, cast, overload

Ts = TypeVarTuple("Ts")
Own = TypeVar("Own")
R = TypeVar("R")

# When callers mostly wait for workers that another program keeps from running, they do without them for a while.
WAITING = 0.5  # share of the time, averaged over the last few calls
ALONE = 100  # calls
LONGEST_BEGINNING = 10.0  # seconds in which a thread begins to run


def available_processors() -> int:
    """Return how many processors this process may use: its affinity, cut by the limits of its control groups."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = _cgroup_limit(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    return max(1, count if limit is None else min(count, limit))


def threads_to_use(wanted: int | None) -> int:
    """Return how many threads to use, None: as many as this process may, never more. ValueError below 1."""
    if wanted is not None and (not hasattr(wanted, "__index__") or index(wanted) < 1):
        raise ValueError(f"threads is {wanted!r}; give a number from 1 up, or None for all that this process may use")
    if wanted is not None and index(wanted) == 1:  # no need to look, which takes longer than to score a few rows
        return 1
    return available_processors() if wanted is None else min(index(wanted), available_processors())


def _cgroup_limit(membership: Path, root: Path) -> int | None:
    """Return the processors that the quotas of control groups v1 or v2 allow, rounded up; None without a quota."""
    limits = []
    for folder in _cgroup_folders(membership, root):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            try:
                quota = (folder / "cpu.cfs_quota_us").read_text().strip()
                period = (folder / "cpu.cfs_period_us").read_text().strip()
            except OSError:
                continue
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            limits.append(-(-int(quota) // int(period)))
    return max(1, min(limits)) if limits else None


def _cgroup_folders(membership: Path, root: Path) -> Iterable[Path]:
    try:
        lines = os.fsdecode(membership.read_bytes()).splitlines()  # names of groups have no encoding
    except OSError:
        return
    for line in lines:
        if line.count(":") < 2:
            continue
        number, controllers, own = line.split(":", 2)
        if number == "0" and not controllers:
            base = root
        elif "cpu" in controllers.split(","):
            base = root / "cpu"
        else:
            continue
        folder = base / own.lstrip("/")
        while True:  # a limit may stand at any level above us
            yield folder
            if folder in (base, folder.parent):
                break
            folder = folder.parent


def start_thread(target: Callable[[Unpack[Ts]], object], *arguments: *Ts) -> bool:
    """Start a daemon thread that calls `target(*arguments)`; return False when the system allows no further thread.

    Not by threading.Thread, which waits for ever for a thread that ends at once because no memory is left for it.
    """
    begun, is_decided = threading.Event(), threading.Lock()

    def begin() -> None:
        begun.set()
        if is_decided.acquire(blocking=False):
            target(*arguments)

    try:
        _thread.start_new_thread(begin, ())
    except (RuntimeError, MemoryError):  # "can't start new thread"; no memory for its stack
        return False
    return begun.wait(LONGEST_BEGINNING) or not is_decided.acquire(blocking=False)


def threads_can_start() -> bool:
    """Return whether the system allows a further thread, for packages that would fail without one."""
    return start_thread(int)


class _Batch(Generic[R]):
    """Calls of one function, taken one by one by whoever is free."""

    def __init__(
        self, function: Callable[..., R], arguments: Sequence[tuple[object, ...]], own: Sequence[object] | None
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.own = own
        self._workers = itertools.count()
        self.results: list[R] = [cast(R, None)] * len(arguments)  # filled by `work`
        self.failure: BaseException | None = None
        self._next = itertools.count()  # next() on it is atomic
        self._left = len(arguments)
        self._lock = threading.Lock()
        self.finished = threading.Event()

    def work(self) -> None:
        """Make calls until none is left; the last one to finish says so."""
        mine = () if self.own is None else (self.own[next(self._workers)],)
        while (i := next(self._next)) < len(self.arguments):
            try:
                if self.failure is None:
                    self.results[i] = self.function(*mine, *self.arguments[i])
            except Exception as failure:  # handed to the caller of run; an interrupt leaves at once
                self.failure = self.failure or failure
            finally:
                with self._lock:
                    self._left -= 1
                    if not self._left:
                        self.finished.set()


class WorkerPool:
    """A pool of threads, the calling thread among them. `run` is for one caller at a time.

    threads : how many there should be. Where the system allows fewer (ulimit -u, the pids limit of a control group),
        the attribute `threads` is the number that there are, at least 1; results do not depend on it.
    """

    def __init__(self, threads: int) -> None:
        self.threads = 1
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waited = 0.0
        self._alone = 0
        while self.threads < threads and start_thread(self._serve):
            self.threads += 1

    def _serve(self) -> None:
        while (work := self._waiting.get()) is not None:
            work()

    @overload
    def run(
        self, function: Callable[[Unpack[Ts]], R], arguments: Sequence[tuple[*Ts]], own: None = None
    ) -> list[R]: ...

    @overload
    def run(
        self, function: Callable[[Own, Unpack[Ts]], R], arguments: Sequence[tuple[*Ts]], own: Sequence[Own]
    ) -> list[R]: ...

    def run(
        self, function: Callable[..., R], arguments: Sequence[tuple[object, ...]], own: Sequence[object] | None = None
    ) -> list[R]:
        """Call a function once for each tuple of arguments, in any order, on several threads where that pays.

        function  : called as function(*arguments[i]), or as function(own[w], *arguments[i]) by worker w
        arguments : one tuple a call; mypy checks them against the function's parameters
        own       : min(threads, len(arguments)) objects, one for each worker, such as its buffers; None: there are none
        Return the results in the order of `arguments`. The first exception is raised here, after the calls under way
        have ended.
        """
        if self.threads == 1 or len(arguments) < 2 or self._alone:
            self._alone = max(0, self._alone - 1)
            mine = () if own is None else (own[0],)
            return [function(*mine, *a) for a in arguments]
        batch = _Batch(function, arguments, own)
        for _ in range(min(self.threads, len(arguments)) - 1):
            self._waiting.put(batch.work)
        start = time.perf_counter()
        try:
            batch.work()
            own_end = time.perf_counter()
            batch.finished.wait()
        except BaseException as interrupt:  # the workers start nothing more
            batch.failure = interrupt
            raise
        if batch.failure is not None:
            raise batch.failure
        ended = time.perf_counter()
        self._waited += ((ended - own_end) / max(ended - start, 1e-9) - self._waited) / 4
        if self._waited > WAITING:
            self._waited, self._alone = 0.0, ALONE
        return batch.results

    def close(self) -> None:
        """End the workers."""
        for _ in range(self.threads - 1):
            self._waiting.put(None)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def chunks(n: int, size: int) -> list[tuple[int, int]]:
    """Return (start, stop) pairs that cover range(n) in order, each `size` long but the last."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]
