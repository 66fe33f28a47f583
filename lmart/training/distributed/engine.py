"""The Dask cluster that holds the shards: connecting, its workers, and what is said when something of it is lost.

Scheduling, transport, encryption and the detection of failures are those of the package `distributed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lmart.errors import DataError, LmartError, counted, quote
from lmart.streams import reason
from lmart.training.distributed import shard as shard_module
from lmart.training.distributed.addresses import Address
from lmart.training.distributed.local_workers import LocalCluster, local_cluster
from lmart.training.distributed.shard import Shard
from lmart.training.distributed.shards import Shards

SAME_VERSIONS = ("lmart", "numba", "numpy")
WAITED = 1.0  # seconds between looks at whether all workers are still there
NOTICED = 10.0  # seconds in which a scheduler knows that a worker is gone
STARTING = 55  # seconds that worker processes of this machine have to start
ANSWER = 15.0  # seconds in which a scheduler answers
LOST = (OSError, RuntimeError, asyncio.CancelledError)
SECURITY_FIELDS = ("tls_ca_file", "tls_client_cert", "tls_client_key")


def load_distributed() -> Any:
    """Return the package `distributed`, silenced; LmartError when it is not installed."""
    try:
        import distributed
    except ImportError as fault:
        what = f"--dask needs the package distributed ({fault})"
        raise LmartError(f"{what}; install it with: pip install 'lmart[dask]'") from None
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
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as fault:
        raise DataError(reason(fault), path) from None
    except ValueError as fault:
        raise DataError(f"is no JSON ({fault}); {what}", path) from None
    if not isinstance(content, dict) or set(content) != set(SECURITY_FIELDS):
        raise DataError(f"is no description of certificates; {what}", path)
    for name, file_name in content.items():
        if not isinstance(file_name, str) or not os.path.isfile(file_name):
            raise DataError(f"{name} is no file: {quote(str(file_name))}; {what}", path)
    return dict(content)


def find_files(patterns: Sequence[str]) -> list[list[tuple[str, int]]]:
    """Return the files of each pattern, by name, with their bytes. Runs on a worker, whose storage has the data.

    patterns : names of files, or patterns with *, ? and [...]
    DataError when a file is not there, or none matches.
    """
    found = []
    for pattern in patterns:
        paths = [pattern]
        if not os.path.exists(pattern) and glob.has_magic(pattern):
            paths = sorted(path for path in glob.glob(pattern) if os.path.isfile(path))
            if not paths:
                raise DataError("no file of the workers matches it; check the pattern", pattern)
        try:
            found.append([(path, os.stat(path).st_size) for path in paths])
        except OSError as fault:
            raise DataError(f"{reason(fault)}, as a worker sees it", fault.filename or pattern) from None
    return found


def give_up(run: str) -> None:
    """Let shards of a run end what they do. Runs on workers.

    run : its name
    """
    shard_module.given_up.add(run)


def _lost_worker(address: str) -> LmartError:
    what = f"the worker {address} is lost: it ended, ran out of memory, or cannot be reached"
    return LmartError(f"{what}; see its log, and then start this command again")


def _wait_for_workers(client: Any, local: LocalCluster) -> None:
    """Wait until all workers are there, whose processes were just started; LmartError when one ends or takes long."""
    n, until = len(local.workers), time.monotonic() + STARTING
    while time.monotonic() < until and all(worker.poll() is None for worker in local.workers):
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(n, timeout=WAITED)
            return
    what = f"the {counted(n, 'worker process', 'worker processes')} of this machine did not start"
    raise LmartError(f"{what}; use fewer, or try 'dask worker' to see why")


class Cluster(Shards):
    """A cluster with a connection to its scheduler.

    client : of `distributed`
    where  : what messages call it

    n_workers : that it has
    """

    def __init__(self, client: Any, where: str) -> None:
        self._client, self._where = client, where
        self._threads: Mapping[str, int] = self.running_workers()
        self.n_workers = len(self._threads)
        self._run = uuid.uuid4().hex
        self._actors: list[Any] = []
        self._held: list[Any] = []
        self.addresses: list[str] = sorted(self._threads)
        if not self.addresses:
            raise LmartError(f"{where} has no workers; start some, with: dask worker ADDRESS")
        self._refuse_other_versions()

    def running_workers(self) -> dict[str, int]:
        """Return the threads of each worker by address; LmartError when the scheduler does not answer."""
        try:
            if self._client.status != "running":
                raise OSError
            return dict(self._client.sync(self._client.scheduler.ncores, workers=None, callback_timeout=ANSWER))
        except (OSError, RuntimeError, TimeoutError, asyncio.CancelledError):
            raise LmartError(f"{self._where} is lost; start it and its workers again, and then this command") from None

    def _refuse_other_versions(self) -> None:
        """Raise LmartError when a worker has other versions of what the result depends on."""
        try:
            found = self._client.get_versions(packages=list(SAME_VERSIONS))
        except LOST as fault:
            raise self._failure(fault) from None
        own = found["client"]["packages"]
        for address in self.addresses:
            if address not in found["workers"]:
                raise _lost_worker(address)
            theirs = found["workers"].get(address, {}).get("packages", {})
            for name in SAME_VERSIONS:
                if theirs.get(name) != own[name]:
                    has = f"has {name} {theirs[name]}" if theirs.get(name) else f"cannot load {name}"
                    what = f"the worker {address} {has}, but this command {own[name]}"
                    raise LmartError(f"{what}; install the same versions everywhere")

    def find(self, patterns: Sequence[str]) -> list[list[tuple[str, int]]]:
        """Return the files of each pattern, as a worker sees them: see `find_files`.

        patterns : names of files, or patterns with *, ? and [...]
        """
        future = self._client.submit(find_files, list(patterns), workers=self.addresses[:1], pure=False)
        found: list[list[tuple[str, int]]] = self._wait(future)
        return found

    def start_shards(self, most: int) -> None:
        """Place an empty shard on each worker.

        most : shards that are needed
        """
        self.addresses = self.addresses[:most]
        for address in self.addresses:
            one = self._client.submit(
                Shard,
                self._run,
                self._threads[address],
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            self._held.append(one)
        self._actors = [self._wait(one) for one in self._held]

    def __len__(self) -> int:
        return len(self._actors)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every shard, at the same time; return what they return.

        method    : its name
        arguments : of each shard
        """
        return [self._wait(one) for one in [*map(self._begin(method), self._actors, arguments)]]

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one shard and return what it returns.

        number    : of the shard, from 0
        method    : its name
        arguments : of the call
        """
        return self._wait(self._begin(method)(self._actors[number], arguments))

    def _begin(self, method: str) -> Callable[[Any, tuple[Any, ...]], Any]:
        def begin(actor: Any, arguments: tuple[Any, ...]) -> Any:
            try:
                return getattr(actor, method)(*arguments)
            except LOST as fault:
                raise self._failure(fault) from None

        return begin

    def _wait(self, future: Any) -> Any:
        """Return the result of a future as soon as it is there; LmartError when its worker or the scheduler is lost."""
        while True:
            try:
                return future.result(timeout=WAITED)
            except TimeoutError:
                if future.done():
                    raise
                self._refuse_lost()
            except LmartError:
                raise
            except LOST as fault:
                raise self._failure(fault) from None

    def _failure(self, fault: BaseException) -> BaseException:
        """Return what is to be raised for a call that did not come back; LmartError when the cluster is the cause.

        fault : what `distributed` or the shard raised
        """
        if isinstance(fault, RuntimeError) and "lost" not in str(fault):
            return fault
        until = time.monotonic() + NOTICED
        while time.monotonic() < until:  # the scheduler may hear of it later than this process
            self._refuse_lost()
            time.sleep(WAITED / 4)
        if isinstance(fault, OSError) and fault.errno is not None and not isinstance(fault, ConnectionError):
            return fault
        what = f"{self._where}: a worker cannot be reached ({fault or type(fault).__name__})"
        return LmartError(f"{what}; this process needs connections to the workers, not only to the scheduler")

    def _refuse_lost(self) -> None:
        """Raise LmartError when the scheduler or a worker of this run is lost."""
        there = self.running_workers()
        for address in self.addresses:
            if address not in there:
                raise _lost_worker(address)

    def close(self, finished: bool) -> None:
        """Leave the cluster as it was.

        finished : the run is done; else shards are told to give up what they do
        """
        with contextlib.suppress(Exception):
            if finished:
                self.call("close")
            else:
                there = self.running_workers()
                self._client.run(give_up, self._run, workers=[one for one in self.addresses if one in there])
        self._actors, self._held = [], []
        with contextlib.suppress(Exception, asyncio.CancelledError):
            self._client.close(timeout=2)


@contextmanager
def connected(address: Address, security: str | None, threads: int) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine for the time being; LmartError when that fails.

    address  : of the cluster
    security : file of certificates; None: there is no TLS
    threads  : of this process, which the workers that it starts share
    """
    distributed = load_distributed()
    with contextlib.ExitStack() as stack:
        local, scheduler, where = None, address.scheduler, f"the Dask scheduler {address.scheduler}"
        if address.processes:
            own = max(1, threads // address.processes)
            local = stack.enter_context(local_cluster(distributed, address.processes, own))
            scheduler, where = local.address, "the Dask cluster of this machine"
        options: dict[str, Any] = {}
        if security is not None:
            options["security"] = distributed.Security(require_encryption=True, **read_security(security))
        try:
            client = distributed.Client(scheduler, timeout=ANSWER, direct_to_workers=True, **options)
        except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as fault:
            first = next(iter(str(fault).splitlines()), "") or type(fault).__name__
            raise LmartError(f"{where} cannot be reached ({first}); check the address, and that it runs") from None
        cluster, finished = None, False
        try:
            if local is not None:
                _wait_for_workers(client, local)
            cluster = Cluster(client, where)
            yield cluster
            finished = True
        finally:
            if cluster is not None:
                cluster.close(finished)
            else:
                with contextlib.suppress(Exception):
                    client.close(timeout=2)
