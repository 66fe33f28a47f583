"""Processes that start at once: forks of a process that has loaded what they need."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

SCHEDULER, WORKER = "distributed.cli.dask_scheduler", "distributed.cli.dask_worker"
_FORKSERVER = get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["__main__", __name__, SCHEDULER, WORKER, "lmart.distributed.shard"])


class Fork:
    """A program of Dask, with those methods of `subprocess.Popen` that tests use.

    module      : SCHEDULER or WORKER
    arguments   : of its command line
    log         : file for its output: a pipe that nobody reads would stop it
    environment : on top of this process's
    """

    def __init__(
        self, module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        variables = {**os.environ, **(environment or {})}
        self._process = _FORKSERVER.Process(target=_run, args=(module, list(arguments), log, variables))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the status of the process, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)

    def send_signal(self, number: int) -> None:
        """Send a signal to it."""
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()


def _run(module: str, arguments: list[str], log: Path, variables: dict[str, str]) -> None:
    """Do what `python -m module` does."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = [module, *arguments]
    importlib.import_module(module).main()
