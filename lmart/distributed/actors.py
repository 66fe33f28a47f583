"""Actors: an object on each worker, whose methods the driver calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Actors(Protocol):
    """Objects of one class, numbered from 0. Errors of their methods are raised as they are, the first one's."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object, at the same time; return what they return.

        method    : its name
        arguments : of each object
        """
        ...

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every object with the same arguments, at the same time; return what they return.

        method    : its name
        arguments : of the call
        """
        return self.each(method, [arguments] * len(self))

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns.

        number    : of the object, from 0
        method    : its name
        arguments : of the call
        """
        ...


class LocalActors(Actors):
    """Objects in this process, one called after the other.

    objects : in their order
    """

    def __init__(self, objects: Sequence[Any]) -> None:
        self._objects = objects

    def __len__(self) -> int:
        return len(self._objects)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object; return what they return.

        method    : its name
        arguments : of each object
        """
        return [getattr(one, method)(*own) for one, own in zip(self._objects, arguments, strict=True)]

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns.

        number    : of the object, from 0
        method    : its name
        arguments : of the call
        """
        return getattr(self._objects[number], method)(*arguments)
