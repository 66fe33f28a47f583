"""A fault at a given moment in a worker: `dask worker --preload` loads this, so that nothing of lmart knows of it.

The environment variable PLANTED names a JSON file of `Moment`, which may be written after the worker has started. At
the moment the worker writes the file `reached` beside it, and then does what the moment says.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "PLANTED"
READING = "lmart.distributed.reading:PartsReader"
SHARD = "lmart.distributed.shard:Shard"
HOLD, FILL = -1, -2
HELD = 600.0  # seconds that a worker waits to be told to go on
FILLED = 1 << 30  # bytes that a worker takes at most


class Moment(NamedTuple):
    """When something happens in a worker, and what.

    place   : MODULE:NAME of a function or method
    call    : of it by this worker, from 1
    address : of the worker; empty: the first of all workers that gets there
    after   : when it has done its work; else before
    delay   : seconds after that, while the worker goes on
    target  : process that gets SIGKILL; 0: the worker itself; HOLD: none, the worker waits until the file `go` is
              there; FILL: none, the worker takes ever more memory, up to a limit
    """

    place: str
    call: int
    address: str
    after: bool = False
    delay: float = 0.0
    target: int = 0

    def write(self, folder: Path) -> None:
        """Write the moment for workers to read."""
        path = folder / "moment.json"
        path.with_suffix(".new").write_text(json.dumps(self._asdict()))
        path.with_suffix(".new").replace(path)


def variables(folder: Path) -> Mapping[str, str]:
    """Return the environment of workers that read moments from a folder."""
    return {VARIABLE: str(folder / "moment.json")}


def dask_setup(worker: Any) -> None:
    """Watch all calls of the places below; called by `dask worker`."""
    path = Path(os.environ[VARIABLE])
    for place in PLACES:
        owner, name = _found(place)
        setattr(owner, name, _watched(getattr(owner, name), place, path, worker))


PLACES = [
    "lmart.distributed.reading:find_files",
    f"{READING}.found",
    *(f"{SHARD}.{name}" for name in ("__init__", "_check", "first_pass", "sample", "counts", "code", "lay_out")),
    *(f"{SHARD}.{name}" for name in ("read_valid", "read_metadata", "prepare", "_compute_gradients", "draw", "pack")),
    *(f"{SHARD}.{name}" for name in ("split", "finish_tree", "add", "keep", "squares", "close")),
    *(f"lmart.distributed.scoring:{name}" for name in ("score_part", "ScoringJob.check")),
    "lmart.distributed.evaluation:measure_part",
    "lmart.streams.outputs:put_in_place",
]


def _found(place: str) -> tuple[Any, str]:
    module, _, names = place.partition(":")
    owner: Any = importlib.import_module(module)
    *path, name = names.split(".")
    for part in path:
        owner = getattr(owner, part)
    return owner, name


def _watched(function: Callable[..., Any], place: str, path: Path, worker: Any) -> Callable[..., Any]:
    calls = 0

    @functools.wraps(function)
    def watched(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        moment = _moment(path, place, worker.address)
        calls += moment is not None
        if moment is None or calls != moment.call:
            return function(*arguments, **named)
        if not moment.after:
            _happen(moment, path.parent)
        result = function(*arguments, **named)
        if moment.after:
            _happen(moment, path.parent)
        return result

    return watched


def _moment(path: Path, place: str, address: str) -> Moment | None:
    """Return the moment that is planted in a place of this worker."""
    if not path.exists():
        return None
    moment = Moment(**json.loads(path.read_text()))
    return moment if moment.place == place and moment.address in ("", address) else None


def _happen(moment: Moment, folder: Path) -> None:
    if moment.delay:
        threading.Thread(target=_act, args=(moment, folder), daemon=True).start()
    else:
        _act(moment, folder)


def _act(moment: Moment, folder: Path) -> None:
    time.sleep(moment.delay)
    try:
        (folder / "reached").touch(exist_ok=bool(moment.address))
    except FileExistsError:  # another worker was first
        return
    if moment.target == FILL:
        taken = bytearray()
        while len(taken) < FILLED:
            taken += b"1" * (1 << 23)
            time.sleep(0.02)
    if moment.target >= 0:
        os.kill(moment.target or os.getpid(), signal.SIGKILL)
        return
    until = time.monotonic() + HELD
    while not (folder / "go").exists() and time.monotonic() < until:
        time.sleep(0.01)
