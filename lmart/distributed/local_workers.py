"""A cluster of processes of this machine, which ends with the command."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

HOST = "127.0.0.1"  # so that nobody else reaches what runs here
ENDING = 5.0  # seconds that a worker has to end


class LocalCluster(NamedTuple):
    """A cluster of this machine.

    address : of its scheduler
    workers : the processes of its workers
    """

    address: str
    workers: Sequence[subprocess.Popen[bytes]]


@contextmanager
def local_cluster(distributed: Any, processes: int, threads: int) -> Iterator[LocalCluster]:
    """Start a scheduler in this process and workers as processes of their own; yield what was started.

    Workers end with their scheduler, even when this process is killed. They are started as a program, not by
    multiprocessing, which would run the main module of this process again; with -P, as modules in the current folder
    are not meant.
    """
    import dask

    workers: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="lmart-dask-", ignore_cleanup_errors=True) as folder:
        with dask.config.set({"temporary-directory": folder}):  # else the scheduler leaves a folder of its own
            cluster = distributed.LocalCluster(
                n_workers=0,
                host=HOST,
                protocol="tcp://",
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": f"{HOST}:0"},  # any free port in place of 8787
                silence_logs=logging.CRITICAL,
            )
        try:
            for _ in range(processes):
                workers.append(_start_worker(cluster.scheduler_address, threads, folder))
            yield LocalCluster(cluster.scheduler_address, workers)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                try:
                    worker.wait(ENDING)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()
            cluster.close(timeout=2)


def _start_worker(address: str, threads: int, folder: str) -> subprocess.Popen[bytes]:
    """Start a worker process of the scheduler at an address."""
    command = [sys.executable, "-P", "-m", "distributed.cli.dask_worker", address, "--nthreads", str(threads)]
    command += ["--host", HOST, "--no-dashboard", "--dashboard-address", f"{HOST}:0", "--no-nanny"]
    command += ["--memory-limit", "0", "--death-timeout", "60", "--local-directory", folder]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt is for the command, which ends them
    )
