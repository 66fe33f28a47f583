"""A cluster without workers for the tests: its tasks run in this process, and all they get and give is pickled."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from lmart.distributed import Address


class ClusterHere:
    """Runs tasks one after the other, in place of `lmart.distributed.cluster.Cluster`."""

    on_this_machine = True
    newest: ClassVar[ClusterHere]

    def __init__(self, run: str = "test") -> None:
        self.run = run
        self.told: list[str] = []
        ClusterHere.newest = self

    def run_tasks(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        for call in calls:
            yield pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(call)))))

    def share(self, value: Any) -> Any:
        return value

    def check(self) -> None:
        pass

    def tell(self, function: Callable[..., object], *arguments: object) -> None:
        self.told.append(function.__name__)
        function(*arguments)


_numbers = itertools.count()


@contextmanager
def connected_here(address: Address, security: str | None, threads: int) -> Iterator[ClusterHere]:
    """Stand in for `lmart.distributed.cluster.connected`."""
    yield ClusterHere(f"test{next(_numbers)}")
