"""How the driver talks to the shards of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from lmart.training.distributed.shard import Shard


class Shards(Protocol):
    """The shards of a run, in the order of their rows. Errors of a shard are raised as they are, the first one's."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every shard, at the same time; return what they return.

        method    : its name
        arguments : of each shard
        """
        ...

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every shard with the same arguments, at the same time; return what they return.

        method    : its name
        arguments : of the call
        """
        return self.each(method, [arguments] * len(self))

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one shard and return what it returns.

        number    : of the shard, from 0
        method    : its name
        arguments : of the call
        """
        ...


class LocalShards(Shards):
    """Shards in this process, one worked on after the other.

    run     : name of the run
    n       : how many
    threads : of each
    """

    def __init__(self, run: str, n: int, threads: int = 1) -> None:
        self._shards = [Shard(run, threads) for _ in range(n)]

    def __len__(self) -> int:
        return len(self._shards)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every shard; return what they return.

        method    : its name
        arguments : of each shard
        """
        return [getattr(shard, method)(*own) for shard, own in zip(self._shards, arguments, strict=True)]

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one shard and return what it returns.

        number    : of the shard, from 0
        method    : its name
        arguments : of the call
        """
        return getattr(self._shards[number], method)(*arguments)
