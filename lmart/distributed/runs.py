"""Which runs a worker was told to give up."""

from __future__ import annotations

from lmart.errors import LmartError

_given_up: set[str] = set()


def give_up(run: str) -> None:
    """Let all that works for a run end. Runs on workers."""
    _given_up.add(run)


def check_run(run: str) -> None:
    """Raise LmartError when a run was given up. Called on workers from time to time."""
    if run in _given_up:
        raise LmartError("the run was given up")
