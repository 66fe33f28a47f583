"""Dask clusters of processes of this machine for the tests, started as a user starts them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers import planted

SCHEDULER = (sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard")
WORKER = (sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard")
STARTING = 60.0  # seconds


class Worker(NamedTuple):
    """A worker process, its address, and the file that its log goes to."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path


class RunningCluster(NamedTuple):
    """A cluster: the scheduler's address and process, its workers by address, and where they write."""

    address: str
    scheduler: subprocess.Popen[bytes]
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
        processes: list[subprocess.Popen[bytes]] = []
        environment = planted.variables(folder) if moments else None
        preload = ["--preload", planted.__file__] if moments else []
        try:
            tls = ["--protocol", "tls", *security] if security else []
            scheduler = _started([*SCHEDULER, "--host", "127.0.0.1", "--port", "0", *tls], folder / "scheduler.log")
            processes.append(scheduler)
            address = wait_in(folder / "scheduler.log", r"Scheduler at: +(\S+)", scheduler)
            workers = []
            for k in range(n_workers):
                where = folder / f"worker-{k}"
                where.mkdir()
                command = [
                    *WORKER,
                    address,
                    "--nthreads",
                    str(threads[k % len(threads)]),
                    "--local-directory",
                    str(where),
                ]
                nanny = [] if "--nanny" in options else ["--no-nanny"]
                log = folder / f"worker-{k}.log"
                processes.append(_started([*command, *nanny, *preload, *options, *security], log, environment))
                workers.append((processes[-1], log))
            known = [
                Worker(process, wait_in(log, r"Start worker at: +(\S+)", process), log) for process, log in workers
            ]
            for one in known:
                joined = rf"Starting worker compute stream, {re.escape(one.address)}\b"
                wait_in(folder / "scheduler.log", joined, scheduler)
            yield RunningCluster(address, scheduler, sorted(known, key=lambda one: one.address), folder)
        finally:
            for process in processes:
                if "--nanny" in options:  # which ends its worker
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(5)
                process.kill()
                process.wait()


def _started(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to a file: a pipe that nobody reads would stop it."""
    with log.open("wb") as file:
        own = {**os.environ, **(environment or {})}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=own)


def wait_in(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """Wait until a line of a log matches; return its first group, or all of the match."""
    until = time.monotonic() + STARTING
    while True:
        ended = process.poll() is not None
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1] if found.re.groups else found[0]
        assert not ended and time.monotonic() < until, f"{pattern} is not in:\n{log.read_text(errors='replace')}"
        time.sleep(0.05)


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


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
