"""Connecting to a scheduler, or starting a cluster on this machine; calls that another machine may never answer."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import lmart
from lmart.errors import DataError, LmartError, quote, visible
from lmart.kernels.numba_support.code_files import sources_digest
from lmart.streams import reason
from lmart.streams.temporaries import temporary_folder
from lmart.strict_json import strict_json

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

ANSWER = 15.0  # seconds in which a scheduler answers
GREETING = 5.0  # seconds more, for what listens but is no scheduler
HOST = "127.0.0.1"  # so that nobody else reaches what runs here
ENDING = 5.0  # seconds that a worker has to end
FOLDERS = "lmart-dask-"  # what names of temporary folders begin with
SECURITY_FIELDS = ("tls_ca_file", "tls_client_cert", "tls_client_key")


def load_distributed() -> Any:
    """Return the package `distributed`, silenced; LmartError when it is not installed."""
    try:
        import distributed
    except ImportError as fault:
        what = f"--dask needs the package distributed ({fault})"
        raise LmartError(f"{what}; install it with: pip install distributed") from None
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return distributed


def read_security(path: str) -> dict[str, str]:
    """Read the files of certificates that a scheduler with TLS wants; DataError when there is something else.

    path : a JSON object of `tls_ca_file`, `tls_client_cert` and `tls_client_key`, names of PEM files
    """
    what = f"give a JSON object with {', '.join(SECURITY_FIELDS)}"
    try:
        with open(path, "rb") as file:
            content = strict_json(file.read())
    except OSError as fault:
        raise DataError(reason(fault), path) from None
    except ValueError as fault:
        raise DataError(f"is not JSON ({fault}); {what}", path) from None
    if not isinstance(content, dict) or set(content) != set(SECURITY_FIELDS):
        raise DataError(f"does not describe certificates; {what}", path)
    for name, file_name in content.items():
        if not isinstance(file_name, str) or not os.path.isfile(file_name):
            raise DataError(f"{name} is not a file: {quote(str(file_name))}; {what}", path)
    return dict(content)


def code_digest() -> str:
    """Return a digest of the code of lmart that this process runs; empty when its source files cannot be read.

    It is that of the first call, as a process goes on with the code that it has loaded.
    """
    try:
        return sources_digest(Path(lmart.__file__).parent)
    except OSError:
        return ""


def begin(
    function: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Future[Result]:
    """Call a function in a thread of its own; return what stands for its result."""
    future: Future[Result] = Future()

    def call() -> None:
        try:
            future.set_result(function(*arguments, **named))
        except BaseException as fault:
            future.set_exception(fault)

    threading.Thread(target=call, daemon=True).start()
    return future


def connect(distributed: Any, scheduler: str, security: str | None, where: str) -> Any:
    """Return a client of a scheduler; LmartError when there is none."""
    options: dict[str, Any] = {}
    if security is not None:
        options["security"] = distributed.Security(require_encryption=True, **read_security(security))
    try:
        client = begin(distributed.Client, scheduler, timeout=ANSWER, direct_to_workers=True, **options)
        return client.result(ANSWER + GREETING)
    except Exception as fault:  # of any kind, when something else listens there
        said = next(iter(str(fault).splitlines()), "") if isinstance(fault, (OSError, ValueError, RuntimeError)) else ""
        what = f"{where} cannot be reached ({said or 'no scheduler answers there'})"
        if security is None and scheduler.startswith(("tls://", "wss://")):
            raise LmartError(f"{what}; give its certificates with --dask-security, and check the address") from None
        certificates = "" if security is None else f", the certificates that {visible(security)} names"
        raise LmartError(f"{what}; check the address{certificates}, and that it runs") from None


class LocalCluster(NamedTuple):
    """A cluster of this machine."""

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
    with temporary_folder(FOLDERS) as folder:
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
