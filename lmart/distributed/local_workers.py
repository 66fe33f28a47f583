"""A cluster of processes of this machine, which ends with the command."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

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

    distributed : the package
    processes   : how many workers
    threads     : of each

    Workers end with their scheduler, even when this process is killed. They are started as a program, not by
    multiprocessing, which would run the main module of this process again.
    """
    folder = tempfile.mkdtemp(prefix="lmart-dask-")
    workers: list[subprocess.Popen[bytes]] = []
    cluster = distributed.LocalCluster(
        n_workers=0,
        host="127.0.0.1",
        protocol="tcp://",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # the usual port may be taken, which is warned of
        silence_logs=logging.CRITICAL,
    )
    try:
        address = cluster.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", str(threads)]
        command += ["--no-nanny", "--no-dashboard", "--memory-limit", "0", "--death-timeout", "60"]
        command += ["--local-directory", folder]
        for _ in range(processes):
            workers.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # an interrupt is for the command, which ends them
                )
            )
        yield LocalCluster(address, workers)
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
        shutil.rmtree(folder, ignore_errors=True)
