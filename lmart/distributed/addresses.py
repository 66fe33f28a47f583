"""Where a cluster is. Light: the command line imports it."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """What --dask names.

    scheduler : address of a scheduler; '': there is none yet
    processes : worker processes to be started on this machine, where there is none
    """

    scheduler: str
    processes: int = 0
