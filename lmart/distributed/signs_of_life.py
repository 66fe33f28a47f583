"""Workers that are gone, and workers that say nothing any more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from lmart.errors import LmartError

LOOK = 5.0  # seconds between looks at when workers last told their scheduler that they are alive
SILENT = 6  # looks without news of a worker after which it is taken for stopped


def lost_worker(address: str, has_log: bool) -> LmartError:
    """Return what is raised when a worker is gone."""
    what = f"the worker {address} is lost: it ended, ran out of memory, or cannot be reached"
    return LmartError(f"{what}; {'see its log, and then start' if has_log else 'start'} this command again")


class SignsOfLife:
    """The last signs of life of workers, so that one is found that is stopped or hangs, which ends no connection."""

    def __init__(self) -> None:
        self._last: dict[str, object] = {}
        self._looks: dict[str, int] = {}
        self._next = 0.0

    def are_due(self) -> bool:
        """Return whether it is time for another look."""
        return time.monotonic() >= self._next

    def look(self, workers: Mapping[str, Mapping[str, Any]], addresses: Sequence[str]) -> None:
        """Take what a scheduler knows of its workers; LmartError when there was no news of one in many looks.

        Looks count rather than seconds: while this process is stopped it hears nothing either.
        """
        self._next = time.monotonic() + LOOK
        for address in addresses:
            last = workers.get(address, {}).get("last_seen")
            self._looks[address] = self._looks.get(address, 0) + 1 if last == self._last.get(address) else 0
            self._last[address] = last
            if self._looks[address] >= SILENT:
                what = f"the worker {address} says nothing any more: it is stopped, or its machine hangs"
                raise LmartError(f"{what}; end it or let it go on, and then start this command again")
