"""A Dask cluster: connecting, running work on its workers, and what is said when something of it is lost.

Scheduling, transport, encryption and the detection of failures are those of the package `distributed`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from lmart.distributed.actors import Actors
from lmart.distributed.addresses import Address
from lmart.distributed.local_workers import LocalCluster, local_cluster
from lmart.distributed.runs import give_up
from lmart.errors import DataError, LmartError, counted, quote
from lmart.streams import reason

Result = TypeVar("Result")

SAME_VERSIONS = ("lmart", "numba", "numpy")
WAITED = 1.0  # seconds between looks at whether all workers are still there
NOTICED = 10.0  # seconds in which a scheduler knows that a worker is gone
STARTING = 55  # seconds that worker processes of this machine have to start
ANSWER = 15.0  # seconds in which a scheduler answers
LOST = (OSError, RuntimeError, asyncio.CancelledError, concurrent.futures.CancelledError)
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


def _lost_worker(address: str) -> LmartError:
    what = f"the worker {address} is lost: it ended, ran out of memory, or cannot be reached"
    return LmartError(f"{what}; see its log, and then start this command again")


async def _outcome(future: Any) -> tuple[Any, BaseException | None]:
    """Return the result of a future, or what it raised."""
    try:
        return await future, None
    except (Exception, asyncio.CancelledError) as fault:
        return None, fault


def _wait_for_workers(client: Any, local: LocalCluster) -> None:
    """Wait until all workers are there, whose processes were just started; LmartError when one ends or takes long."""
    n, until = len(local.workers), time.monotonic() + STARTING
    while time.monotonic() < until and all(worker.poll() is None for worker in local.workers):
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(n, timeout=WAITED)
            return
    what = f"the {counted(n, 'worker process', 'worker processes')} of this machine did not start"
    raise LmartError(f"{what}; use fewer, or try 'dask worker' to see why")


class Cluster:
    """A cluster with a connection to its scheduler.

    client          : of `distributed`
    where           : what messages call it
    on_this_machine : its workers were started by this process, and have the same current folder

    run       : name of what this process does with it
    addresses : of its workers
    """

    def __init__(self, client: Any, where: str, on_this_machine: bool = False) -> None:
        self._client, self._where, self.on_this_machine = client, where, on_this_machine
        self._threads: Mapping[str, int] = self.running_workers()
        self.run = uuid.uuid4().hex
        self.addresses: list[str] = sorted(self._threads)
        self._actors: WorkerActors | None = None
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
            raise self.failure(fault) from None
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

    def run_tasks(self, function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> Iterator[Result]:
        """Yield what a function returns for each of several arguments, in their order, from workers with a free thread.

        function : of a module that workers can import
        calls    : arguments of each call
        """
        futures = [self._client.submit(function, *call, pure=False, retries=0) for call in calls]
        for place, future in enumerate(futures):
            yield self.wait(future)
            futures[place] = None  # so that the cluster forgets it

    def share(self, value: Any) -> Any:
        """Copy a value to all workers; return what stands for it in arguments of tasks.

        value : to be copied
        """
        try:
            (copied,) = self._client.scatter([value], broadcast=True, hash=False)  # else each entry of a list
        except LOST as fault:
            raise self.failure(fault) from None
        return copied

    def start_actors(self, kind: type[Any], most: int) -> Actors:
        """Start an object on each worker; return them. Other workers no longer matter.

        kind : class of the objects; gets the name of the run and the threads of its worker
        most : objects that are needed
        """
        self.addresses = self.addresses[:most]
        held = [
            self._client.submit(
                kind,
                self.run,
                self._threads[address],
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            for address in self.addresses
        ]
        self._actors = WorkerActors(self, held)
        return self._actors

    def wait(self, future: Any) -> Any:
        """Return the result of a future as soon as it is there; LmartError when its worker or the scheduler is lost."""
        answer = asyncio.run_coroutine_threadsafe(_outcome(future), self._client.loop.asyncio_loop)
        try:
            while True:
                try:
                    value, fault = answer.result(WAITED)
                    break
                except TimeoutError:  # what is under way goes on, such as the transfer of a large result
                    self._refuse_lost()
        finally:
            answer.cancel()
        if fault is None:
            return value
        if isinstance(fault, LmartError) or not isinstance(fault, LOST):
            raise fault
        raise self.failure(fault) from None

    def failure(self, fault: BaseException) -> BaseException:
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

        finished : the run is done; else workers are told to give up what they do
        """
        with contextlib.suppress(Exception):
            if not finished:
                there = self.running_workers()
                self._client.run(give_up, self.run, workers=[one for one in self.addresses if one in there])
            elif self._actors is not None:
                self._actors.call("close")
        self._actors = None
        with contextlib.suppress(Exception, asyncio.CancelledError):
            self._client.close(timeout=2)


class WorkerActors(Actors):
    """Objects on the workers of a cluster, worked on side by side.

    cluster : they are on
    held    : futures of the objects, which live as long as these
    """

    def __init__(self, cluster: Cluster, held: Sequence[Any]) -> None:
        self._cluster, self._held = cluster, held
        self._objects = [cluster.wait(one) for one in held]

    def __len__(self) -> int:
        return len(self._objects)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object, at the same time; return what they return.

        method    : its name
        arguments : of each object
        """
        begun = [self._begin(one, method, own) for one, own in zip(self._objects, arguments, strict=True)]
        return [self._cluster.wait(one) for one in begun]

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns.

        number    : of the object, from 0
        method    : its name
        arguments : of the call
        """
        return self._cluster.wait(self._begin(self._objects[number], method, arguments))

    def _begin(self, actor: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return getattr(actor, method)(*arguments)
        except LOST as fault:
            raise self._cluster.failure(fault) from None


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
            cluster = Cluster(client, where, local is not None)
            yield cluster
            finished = True
        finally:
            if cluster is not None:
                cluster.close(finished)
            else:
                with contextlib.suppress(Exception):
                    client.close(timeout=2)
