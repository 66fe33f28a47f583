"""Dask clusters of processes of this machine for the tests, started as a user starts them."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers import planted
from helpers.forks import SCHEDULER, WORKER, Fork
from helpers.waiting import LIMIT, wait_until


class Worker(NamedTuple):
    """A worker process, its address, and the file that its log goes to."""

    process: Fork
    address: str
    log: Path


class RunningCluster(NamedTuple):
    """A cluster: the scheduler's address and process, its workers by address, and where they write."""

    address: str
    scheduler: Fork
    workers: list[Worker]
    folder: Path


@contextmanager
def cluster(
    n_workers: int,
    *options: str,
    threads: Sequence[int] = (1,),
    security: Sequence[str] = (),
    moments: bool = False,
) -> Iterator[RunningCluster]:
    """Start a scheduler and workers; end them afterwards. Workers are in the order of their addresses, as shards are.

    n_workers : how many
    options   : of workers
    threads   : of the workers, by turns
    security  : options of both, for TLS
    moments   : workers know the moments that are written to the folder of the cluster: see `helpers.planted`
    """
    with tempfile.TemporaryDirectory(prefix="cluster-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        processes: list[Fork] = []
        preload = ["--preload", planted.__file__] if moments else []
        try:
            tls = ["--protocol", "tls", *security] if security else []
            arguments = ["--no-dashboard", "--host", "127.0.0.1", "--port", "0", *tls]
            scheduler = Fork(SCHEDULER, arguments, folder / "scheduler.log")
            processes.append(scheduler)
            address = wait_in(folder / "scheduler.log", r"Scheduler at: +(\S+)", scheduler)
            running = RunningCluster(address, scheduler, [], folder)
            for k in range(n_workers):
                turn = str(threads[k % len(threads)])
                processes.append(_start_worker(running, k, "--nthreads", turn, *preload, *options, *security))
            running.workers.extend(_joined(running, k, process) for k, process in enumerate(processes[1:]))
            running.workers.sort(key=lambda one: one.address)
            yield running
        finally:
            for process in processes:
                if "--nanny" in options:  # which ends its worker
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(60)
                process.kill()
                process.wait()


@contextmanager
def one_more_worker(running: RunningCluster) -> Iterator[Worker]:
    """Start another worker of a cluster; end it afterwards."""
    process = _start_worker(running, len(running.workers), "--nthreads", "1")
    try:
        yield _joined(running, len(running.workers), process)
    finally:
        process.kill()
        process.wait()


def _start_worker(running: RunningCluster, number: int, *options: str) -> Fork:
    where = running.folder / f"worker-{number}"
    where.mkdir()
    nanny = [] if "--nanny" in options else ["--no-nanny"]
    arguments = [running.address, "--no-dashboard", "--local-directory", str(where), *nanny, *options]
    return Fork(WORKER, arguments, where.with_suffix(".log"), planted.variables(running.folder))


def _joined(running: RunningCluster, number: int, process: Fork) -> Worker:
    """Wait until a worker has joined its scheduler; return it."""
    log = running.folder / f"worker-{number}.log"
    address = wait_in(log, r"Start worker at: +(\S+)", process)
    wait_in(
        running.folder / "scheduler.log",
        rf"Starting worker compute stream, {re.escape(address)}\b",
        running.scheduler,
    )
    return Worker(process, address, log)


def wait_in(log: Path, pattern: str, process: Fork) -> str:
    """Wait until a line of a log matches; return its first group, or all of the match."""
    until = time.monotonic() + LIMIT
    while True:
        ended = process.poll() is not None
        if found := re.search(pattern, _text(log)):
            return found[1] if found.re.groups else found[0]
        assert not ended and time.monotonic() < until, f"{pattern} is not in:\n{log.read_text(errors='replace')}"
        time.sleep(0.05)


def _text(log: Path) -> str:
    """Return what a log holds; nothing before its process has made it."""
    return log.read_text(errors="replace") if log.exists() else ""


def wait_for(process: subprocess.Popen[bytes], pattern: bytes) -> bytes:
    """Read what a process says until a line matches; return its first group."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"ended with {process.wait()}")


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("children of a process are not known here")
    return list(map(int, found.read_text().split()))


def is_running(pid: int) -> bool:
    """Return whether there is a process of this number."""
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def wait_until_idle(workers: Sequence[Worker]) -> None:
    """Wait until workers do nothing but tell their scheduler that they are alive."""

    def are_idle() -> bool:
        before = list(map(_processor_seconds, pids))
        time.sleep(1.0)
        return all(_processor_seconds(pid) - began < 0.1 for pid, began in zip(pids, before, strict=True))

    pids = [worker.process.pid for worker in workers]
    wait_until(are_idle)


def _processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken, of all its threads; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
