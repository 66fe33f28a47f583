"""Work on the workers of a Dask cluster, with the bytes of one machine: training, scoring, measuring.

The process of the command, which is called the driver, never holds rows.
"""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """What --dask names.

    scheduler : address of a scheduler; '': worker processes are started on this machine
    """

    scheduler: str
    processes: int = 0
