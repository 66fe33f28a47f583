"""A Dask cluster: running work on its workers, and reporting which part of it is lost.

Scheduling, transport, encryption and the detection of failures are those of the package `distributed`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from lmart import __version__
from lmart.distributed import Address
from lmart.distributed.actors import FAN_IN, Actors, add_all, below, give_up
from lmart.distributed.connecting import (
    ANSWER,
    LocalCluster,
    begin,
    code_digest,
    connect,
    load_distributed,
    local_cluster,
)
from lmart.errors import LmartError, counted
from lmart.threads import chunks

Result = TypeVar("Result")

SAME_VERSIONS = ("lmart", "numba", "numpy")
WAITED = 1.0  # seconds between looks at whether all workers are still there
NOTICED = 10.0  # seconds in which a scheduler knows that a worker is gone
STARTING = 55  # seconds that worker processes of this machine have to start
ENDING = 5.0  # seconds to tell workers that a run is over
LEAST_AT_ONCE, AHEAD = 256, 8  # tasks handed in together: in all, and for each thread of workers
LOOK = 5.0  # seconds between looks at when workers last reported to their scheduler
SILENT = 6  # looks without news of a worker after which it counts as stopped
# After a failure, wait this many seconds for earlier parts, so that the error reported is the first in file order.
EARLIER = 20.0
LOST_ACTOR = "Worker holding Actor was lost"  # message of an error without a type of its own
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
ANY = (Exception, asyncio.CancelledError)


class WorkerLost(LmartError):
    """A worker is gone, or no longer responds.

    what   : which worker, and how it was lost
    advice : what to do
    silent : the address of a worker that the scheduler still lists; '': it is gone
    """

    def __init__(self, what: str, advice: str, silent: str = "") -> None:
        self.what, self.silent = what, silent
        super().__init__(f"{what}; {advice}")


def lost_worker(address: str, has_log: bool) -> WorkerLost:
    """Return the error to raise when a worker is gone."""
    what = f"the worker {address} is lost: it ended, ran out of memory, or cannot be reached"
    return WorkerLost(what, f"{'see its log, then run' if has_log else 'run'} this command again")


class SignsOfLife:
    """When workers last reported: finds a worker that is stopped or hangs, which closes no connection."""

    def __init__(self) -> None:
        self._last: dict[str, object] = {}
        self._looks: dict[str, int] = {}
        self._next = 0.0

    def are_due(self) -> bool:
        """Return whether it is time to look again."""
        return time.monotonic() >= self._next

    def look(self, workers: Mapping[str, Mapping[str, Any]], addresses: Sequence[str]) -> None:
        """Note when workers last reported; WorkerLost when a worker was silent for many looks.

        Looks count, not seconds: while this process itself is stopped, it hears nothing.
        """
        self._next = time.monotonic() + LOOK
        for address in addresses:
            last = workers.get(address, {}).get("last_seen")
            self._looks[address] = self._looks.get(address, 0) + 1 if last == self._last.get(address) else 0
            self._last[address] = last
            if self._looks[address] >= SILENT:
                what = f"the worker {address} no longer responds: it was stopped, or its machine hangs"
                raise WorkerLost(what, "end or resume it, then run this command again", address)


class WorkerActors(Actors):
    """Objects on the workers of a cluster, worked on side by side.

    held    : futures of the objects, which live as long as these
    """

    def __init__(self, cluster: Cluster, held: Sequence[Any]) -> None:
        self._cluster, self.held = cluster, held
        self._objects = [cluster.wait(future) for future in held]
        n = len(self._objects)
        self._is_tree = n > 1 + FAN_IN
        if self._is_tree:
            self.each("link", [([self._objects[other] for other in below(number, n)],) for number in range(n)])

    def __len__(self) -> int:
        return len(self._objects)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object, at the same time; return what they return."""
        answers: list[Any] = self._cluster.wait_for(lambda: _all(self._begin(method, arguments)))
        return answers

    def add(self, method: str, *arguments: Any) -> Any:
        """Call a method of every object with the same arguments; return the sum of what they return."""
        (total,) = self.add_each(method, [arguments])
        return total

    def add_each(self, method: str, calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a method several times, as `add` does; yield each sum, while the next calls are worked on."""
        begun: list[asyncio.Task[list[Any]]] = []

        async def first() -> list[Any]:
            begun.extend(asyncio.ensure_future(_in_order(self._begin_adding(method, call))) for call in calls)
            return await begun[0]

        if calls:
            yield add_all(self._cluster.wait_for(first))
        for sums in begun[1:]:
            yield add_all(self._cluster.wait(sums))

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns."""
        return self._cluster.wait_for(lambda: getattr(self._objects[number], method)(*arguments))

    def _begin(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Awaitable[Any]]:
        return [getattr(actor, method)(*own) for actor, own in zip(self._objects, arguments, strict=True)]

    def _begin_adding(self, method: str, arguments: tuple[Any, ...]) -> list[Awaitable[Any]]:
        if self._is_tree:
            return [self._objects[0].add_up(method, arguments)]
        return self._begin(method, [arguments] * len(self))


async def _in_order(begun: Sequence[Awaitable[Result]]) -> list[Result]:
    """Return the answers to pending calls, which do not fail while their workers are alive."""
    return [await answer for answer in begun]


async def _all(begun: Sequence[Awaitable[Result]]) -> list[Result]:
    """Return the answers to pending calls; raise the error of the earliest call, as far as it comes in time."""
    answers = [asyncio.ensure_future(call) for call in begun]
    _, pending = await asyncio.wait(answers, return_when=asyncio.FIRST_EXCEPTION)
    if pending:
        failed = next(
            number for number, answer in enumerate(answers) if answer.done() and answer.exception() is not None
        )
        if earlier := [answer for answer in answers[:failed] if not answer.done()]:
            await asyncio.wait(earlier, timeout=EARLIER, return_when=asyncio.FIRST_EXCEPTION)
        for answer in answers:
            answer.cancel()  # nobody waits for what is not there yet
    return [answer.result() for answer in answers if answer.done() and not answer.cancelled()]


def _wait_for_workers(client: Any, local: LocalCluster) -> None:
    """Wait for the workers that were just started; LmartError when one ends or is too slow."""
    n, until = len(local.workers), time.monotonic() + STARTING
    while time.monotonic() < until and all(worker.poll() is None for worker in local.workers):
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(n, timeout=WAITED)
            return
    what = f"the {counted(n, 'worker process', 'worker processes')} on this machine did not start"
    raise LmartError(f"{what}; use fewer, or run 'dask worker' to see why")


class Cluster:
    """A cluster with a connection to its scheduler.

    on_this_machine : its workers were started by this process, and have the same current folder
    """

    def __init__(self, client: Any, where: str, on_this_machine: bool = False, without: Collection[str] = ()) -> None:
        """Find the workers; LmartError when there is none, or one has another version.

        without : addresses of workers that are left out
        """
        self._client, self._where, self.on_this_machine = client, where, on_this_machine
        self._signs = SignsOfLife()
        workers = self._asked(client.scheduler.identity)["workers"]
        self._threads = {
            address: int(worker["nthreads"])
            for address, worker in workers.items()
            if worker["status"] == "running" and address not in without
        }
        self.run = uuid.uuid4().hex
        self.addresses: list[str] = sorted(self._threads)
        self._actors: WorkerActors | None = None
        if not self.addresses:
            all_paused = ": all are short of memory" if workers else ""
            what = f"{where} has no workers that accept work{all_paused}"
            raise LmartError(f"{what}; start some, with: dask worker ADDRESS")
        self._refuse_other_versions()
        self._refuse_other_code()

    def running_workers(self) -> dict[str, int]:
        """Return the threads of each worker by address; LmartError when the scheduler does not answer."""
        return dict(self._asked(self._client.scheduler.ncores, workers=None))

    def _asked(self, function: Any, **named: Any) -> Any:
        """Return the scheduler's answer; LmartError when it gives none."""
        try:
            if self._client.status != "running":
                raise OSError
            return self._client.sync(function, callback_timeout=ANSWER, **named)
        except ANY:
            raise LmartError(
                f"{self._where} is lost; restart it and its workers, then run this command again"
            ) from None

    def _refuse_other_versions(self) -> None:
        """Raise LmartError when a worker or the scheduler has other versions of lmart, numba or numpy."""
        get_versions, packages = load_distributed().versions.get_versions, list(SAME_VERSIONS)
        own = get_versions(packages)["packages"]
        # Not `get_versions` of the client, which waits for all workers, also for those that are left out.
        of_workers = begin(self._client.run, get_versions, packages, workers=self.addresses, on_error="return")
        of_scheduler = begin(self._client.sync, self._client.scheduler.versions, packages=packages)
        found = self.wait(of_workers)
        there = [(self._where, self.wait(of_scheduler))]  # which loads what it hands on
        for address in self.addresses:
            if not isinstance(found.get(address), dict):
                raise lost_worker(address, not self.on_this_machine)
            there.append((f"the worker {address}", found[address]))
        for who, versions in there:
            for name in SAME_VERSIONS:
                theirs = versions.get("packages", {}).get(name)
                if theirs != own[name]:
                    has = f"has {name} {theirs}" if theirs else f"cannot load {name}"
                    raise LmartError(
                        f"{who} {has}, but this command has {own[name]}; install the same versions everywhere"
                    )

    def _refuse_other_code(self) -> None:
        """Raise LmartError when a worker runs other code of the same version, as in development."""
        found = self.wait(begin(self._client.run, code_digest, workers=self.addresses, on_error="return"))
        for address in self.addresses:
            theirs = found.get(address)
            if theirs is None or isinstance(theirs, OSError):
                raise lost_worker(address, not self.on_this_machine)
            if theirs != code_digest():  # a fault included, of code that has no such function
                what = f"the worker {address} runs other code of lmart {__version__} than this command"
                raise LmartError(f"{what}; install the same everywhere, then restart the worker")

    def run_tasks(self, function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> Iterator[Result]:
        """Call a function of a module that workers can import with each of these arguments; yield results in order."""
        at_once = max(LEAST_AT_ONCE, AHEAD * sum(self._threads.values()))
        futures: deque[Any] = deque()
        for first, last in chunks(len(calls), at_once):
            while len(futures) > at_once:
                yield self._first_of(futures)
            # One message for all: a message for each would cost more than short tasks.
            with self._naming_what_is_lost():
                futures += self._client.map(
                    function,
                    *zip(*calls[first:last], strict=True),
                    pure=False,
                    retries=0,
                    workers=self.addresses,  # not those that join later, whose versions nobody knows
                    allow_other_workers=False,
                )
        while futures:
            yield self._first_of(futures)
        self.check()  # the tasks of a worker that was lost may have been done again by others

    def _first_of(self, futures: deque[Any]) -> Any:
        """Remove the first task and return its result; raise the error of a later task after a while."""
        seen: list[float] = []

        def look() -> None:
            failed = next((future for future in futures if future.status == "error"), None)
            if failed is not None:
                seen.append(time.monotonic())
                if seen[-1] - seen[0] > EARLIER:
                    self.wait(failed)

        result = self.wait_for(lambda: futures[0], look)
        futures.popleft()
        return result

    def share(self, value: Any) -> Any:
        """Copy a value to all workers; return a handle that tasks take as an argument."""
        # In a list, as each entry of a list would be copied by itself.
        scatter = begin(self._client.scatter, [value], workers=self.addresses, broadcast=True, hash=False)
        (copied,) = self.wait(scatter)
        return copied

    def start_actors(self, kind: type[Any], most: int) -> Actors:
        """Start an object on each worker, made of the run's name and its threads; later workers do not count."""
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
        """Wait for a future and return its result; LmartError when its worker or the scheduler is lost."""
        if isinstance(future, concurrent.futures.Future):
            return self.wait_for(functools.partial(asyncio.wrap_future, future))
        return self.wait_for(lambda: future)

    def wait_for(self, work: Callable[[], Awaitable[Result]], look: Callable[[], None] | None = None) -> Result:
        """Run work in the connection's thread and return its result; LmartError when a part of the cluster is lost.

        work : called there; what it returns is awaited, once: so a large result is transferred once
        """
        tasks: list[asyncio.Future[Result]] = []

        async def begin_or_go_on() -> bool:
            if not tasks:
                tasks.append(asyncio.ensure_future(work()))
            return bool((await asyncio.wait(tasks, timeout=WAITED))[0])

        with self._naming_what_is_lost():
            while not self._client.sync(begin_or_go_on):
                self.check()
                if look is not None:
                    look()
            return tasks[0].result()

    @contextmanager
    def _naming_what_is_lost(self) -> Iterator[None]:
        try:
            yield
        except LmartError:
            raise
        except MemoryError as fault:
            what = f"a worker ran out of memory{f' ({fault})' if str(fault) else ''}"
            raise LmartError(f"{what}; use less data, more workers, or larger ones") from None
        except ANY as fault:
            raise self.failure(fault) from None

    def failure(self, fault: BaseException) -> BaseException:
        """Return what to raise for a call that failed: LmartError when the cluster is the cause."""
        if isinstance(fault, OSError) and fault.filename is not None:  # of a file
            return fault
        until = time.monotonic() + NOTICED
        while time.monotonic() < until:  # the scheduler may hear of it later than this process
            self.check()
            time.sleep(WAITED / 4)
        if isinstance(fault, OSError):
            of_work = fault.errno is not None and not isinstance(fault, ConnectionError)
        else:
            of_work = not isinstance(fault, CANCELLED) and not str(fault).startswith(LOST_ACTOR)
            of_work = of_work and type(fault).__name__ != "KilledWorker"  # of `distributed`: a task ended its workers
        if of_work:
            return fault
        what = f"{self._where}: a worker cannot be reached ({fault or type(fault).__name__})"
        return LmartError(f"{what}; this process needs connections to the workers, not only to the scheduler")

    def check(self) -> None:
        """Raise LmartError when the scheduler or a worker of this run is lost."""
        there = self.running_workers()
        held = [] if self._actors is None else self._actors.held
        for place, address in enumerate(self.addresses):
            started_anew = place < len(held) and held[place].status not in ("pending", "finished")
            if address not in there or started_anew:
                raise lost_worker(address, not self.on_this_machine)
        if self._signs.are_due():
            self._signs.look(self._asked(self._client.scheduler.identity)["workers"], self.addresses)

    def close(self, finished: bool) -> None:
        """Leave the cluster as it was; unless the run is `finished`, tell workers to give up their work."""
        if not finished:
            self.tell(give_up, self.run)
        elif self._actors is not None:
            with contextlib.suppress(Exception):
                begin(self._actors.call, "close").result(ENDING)
        self._actors = None
        with contextlib.suppress(Exception, asyncio.CancelledError):
            self._client.close(timeout=2)

    def tell(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on every live worker at once, whatever else it does; ignore faults."""
        with contextlib.suppress(Exception):
            begin(self._tell, function, *arguments).result(ENDING)

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        self._client.run(function, *arguments, workers=list(self.running_workers()), on_error="ignore")


@contextmanager
def connected(address: Address, security: str | None, threads: int, without: Collection[str] = ()) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine until the end; LmartError when that fails.

    threads : of this process, which the workers that it starts share
    without : addresses of workers that are left out
    """
    distributed = load_distributed()
    with contextlib.ExitStack() as stack:
        local, scheduler, where = None, address.scheduler, f"the Dask scheduler {address.scheduler}"
        if address.processes:
            own = max(1, threads // address.processes)
            local = stack.enter_context(local_cluster(distributed, address.processes, own))
            scheduler, where = local.address, "the Dask cluster of this machine"
        client = connect(distributed, scheduler, security, where)
        cluster, finished = None, False
        try:
            if local is not None:
                _wait_for_workers(client, local)
            cluster = Cluster(client, where, local is not None, without)
            yield cluster
            finished = True
        finally:
            if cluster is not None:
                cluster.close(finished)
            else:
                with contextlib.suppress(Exception):
                    client.close(timeout=2)
