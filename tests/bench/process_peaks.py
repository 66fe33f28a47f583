"""Whole runs of several processes: how long they took, and the peak memory of the driver and of each worker.

Only the standard library is loaded here. Peaks are what Linux writes as VmHWM in /proc/PID/status: of one process, from
when it began to run its program. They are looked at every so often while the processes live, for all tools alike; what
a process takes on in the last moment before it ends is missed.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

OFTEN = 0.05  # seconds between looks
ENDING = 60.0  # seconds that a run has to end its workers when it is told to end
WORKERS = ("distributed.cli.dask_worker", "from multiprocessing.spawn import spawn_main")


class Failed(RuntimeError):
    """A run that failed or took too long: how it ended, and the last lines that it wrote."""


class WatchedRun(NamedTuple):
    """What a run took.

    seconds : from its start to its end
    driver  : peak resident megabytes of the process that was started
    workers : of each worker process below it, in the order in which they appeared
    output  : what it printed
    """

    seconds: float
    driver: float
    workers: list[float]
    output: str


class Peaks:
    """The peak memory of a process and of those that it starts, in kilobytes.

    pid : of the first process

    driver  : its peak
    workers : of each process below it that is a worker, by number of the process
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.driver = 0
        self.workers: dict[int, int] = {}

    def look(self) -> None:
        """Note the peaks as they are now."""
        self.driver = max(self.driver, _peak(self._pid))
        self._look_below(self._pid)

    def _look_below(self, parent: int) -> None:
        for pid in _children(parent):
            if pid in self.workers or _is_worker(pid):
                self.workers[pid] = max(self.workers.get(pid, 0), _peak(pid))
            else:  # what a worker starts is no worker, but looks like one until it runs its own program
                self._look_below(pid)


def watched_run(command: list[str], most_seconds: float, env: dict[str, str] | None = None) -> WatchedRun:
    """Run a program and watch it and its workers; Failed when it fails or takes too long.

    command      : of the driver
    most_seconds : that it may take
    env          : its environment; None: that of this process
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        peaks = Peaks(process.pid)
        try:
            while not _ended_within(process.pid, OFTEN):
                peaks.look()
                if time.perf_counter() - began > most_seconds:
                    raise Failed(f"took more than {most_seconds:g} s")
        finally:
            seconds = time.perf_counter() - began
            _end(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if process.returncode:
        raise Failed(f"ended with status {process.returncode}: {last_lines(texts[1])}")
    return WatchedRun(seconds, peaks.driver / 1024, [peak / 1024 for peak in peaks.workers.values()], texts[0])


def last_lines(text: str, most: int = 12) -> str:
    """Return the end of what a program wrote on standard error.

    text : all of it
    most : lines
    """
    return "\n    ".join(["", *text.rstrip().splitlines()[-most:]])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()  # workers end with their driver
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ended_within(pid: int, seconds: float) -> bool:
    """Return whether a child has ended, after at most so many seconds; it is not collected."""
    handle = os.pidfd_open(pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        pass
    return found


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(mark in command for mark in WORKERS)


def _peak(pid: int) -> int:
    """Return the peak kilobytes of a process; 0 when it has ended."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) if found else 0
