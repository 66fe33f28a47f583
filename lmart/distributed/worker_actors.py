"""WorkerActors: objects on the workers of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from lmart.distributed.actors import FAN_IN, Actors, add_all, below

if TYPE_CHECKING:
    from lmart.distributed.cluster import Cluster

Result = TypeVar("Result")

EARLIER = 20.0  # seconds that those before a call that failed have, as one process would tell of their faults


class WorkerActors(Actors):
    """Objects on the workers of a cluster, worked on side by side.

    cluster : they are on
    held    : futures of the objects, which live as long as these
    """

    def __init__(self, cluster: Cluster, held: Sequence[Any]) -> None:
        self._cluster, self.held = cluster, held
        self._objects = [cluster.wait(one) for one in held]
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
        """Call a method of every object with the same arguments, at the same time; return the sum of what they return.

        method    : its name; it returns an `Addend`, or None everywhere
        arguments : of the call
        """
        (total,) = self.add_each(method, [arguments])
        return total

    def add_each(self, method: str, calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a method several times, as `add` does; yield each sum, while the next calls are worked on."""
        begun: list[asyncio.Task[list[Any]]] = []

        async def first() -> list[Any]:
            begun.extend(asyncio.ensure_future(_in_order(self._begin_adding(method, one))) for one in calls)
            return await begun[0]

        if calls:
            yield add_all(self._cluster.wait_for(first))
        for one in begun[1:]:
            yield add_all(self._cluster.wait(one))

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns."""
        return self._cluster.wait_for(lambda: getattr(self._objects[number], method)(*arguments))

    def _begin(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Awaitable[Any]]:
        return [getattr(one, method)(*own) for one, own in zip(self._objects, arguments, strict=True)]

    def _begin_adding(self, method: str, arguments: tuple[Any, ...]) -> list[Awaitable[Any]]:
        if self._is_tree:
            return [self._objects[0].add_up(method, arguments)]
        return self._begin(method, [arguments] * len(self))


async def _in_order(begun: Sequence[Awaitable[Result]]) -> list[Result]:
    """Return the answers to calls that were begun, and that do not fail as long as their workers are there."""
    return [await one for one in begun]


async def _all(begun: Sequence[Awaitable[Result]]) -> list[Result]:
    """Return the answers to calls that were begun; raise the first error of all, as far as it is known in time."""
    answers = [asyncio.ensure_future(one) for one in begun]
    _, pending = await asyncio.wait(answers, return_when=asyncio.FIRST_EXCEPTION)
    if pending:
        failed = next(number for number, one in enumerate(answers) if one.done() and one.exception() is not None)
        if before := [one for one in answers[:failed] if not one.done()]:
            await asyncio.wait(before, timeout=EARLIER, return_when=asyncio.FIRST_EXCEPTION)
        for one in answers:
            one.cancel()  # nobody waits for what is not there yet
    return [one.result() for one in answers if one.done() and not one.cancelled()]
