"""Actors: an object on each worker, whose methods the driver calls."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from lmart.errors import LmartError

FAN_IN = 4  # results that one process adds to its own; with more workers they are added along a tree


class Actors(Protocol):
    """Objects of one class, numbered from 0. Errors of their methods are raised as they are, the first one's."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object, at the same time; return what they return."""
        ...

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every object with the same arguments; return what they return."""
        return self.each(method, [arguments] * len(self))

    def add(self, method: str, *arguments: Any) -> Any:
        """Call a method of every object with the same arguments; return the sum of what they return."""
        return add_all(self.call(method, *arguments))

    def add_each(self, method: str, calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a method several times, as `add` does; yield each sum, perhaps while the next calls are worked on."""
        for arguments in calls:
            yield self.add(method, *arguments)

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns."""
        ...


def add_all(results: Sequence[Any]) -> Any:
    """Return the sum of results by their method `plus`, which may overwrite arrays; None if they are None."""
    return None if results[0] is None else functools.reduce(lambda total, other: total.plus(other), results)


def below(number: int, n: int) -> range:
    """Return the numbers of the objects whose sums an object adds to its own, so that object 0 has the total."""
    first = FAN_IN * number + 1
    return range(min(first, n), min(first + FAN_IN, n))


class LinkedActor:
    """Base of objects that add their results along a tree of workers."""

    def __init__(self) -> None:
        self._below: Sequence[Any] = ()

    def link(self, below: Sequence[Any]) -> None:
        """Note whose sums this object adds to its own results."""
        self._below = below

    def add_up(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a method of this object and of all that are linked to it, at the same time; return the sum."""
        begun = [linked.add_up(method, arguments) for linked in self._below]
        own = getattr(self, method)(*arguments)
        return add_all([own, *(answer.result() for answer in begun)])


_given_up: set[str] = set()


def give_up(run: str) -> None:
    """Let all that works for a run end. Runs on workers."""
    _given_up.add(run)


def check_run(run: str) -> None:
    """Raise LmartError when a run was given up. Called on workers from time to time."""
    if run in _given_up:
        raise LmartError("the run was given up")
