"""What other processes of this machine do, for the tests of commands that start some."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("children of a process are not known here")
    return list(map(int, found.read_text().split()))


def is_running(pid: int) -> bool:
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def opens_pipe(pid: int) -> bool:
    """Return whether a thread of a process waits for somebody to open the other end of a named pipe."""
    if not Path("/proc/self/wchan").exists():
        pytest.skip("what processes wait for is not known here")
    with suppress(OSError):
        return any(path.read_text() == "wait_for_partner" for path in Path(f"/proc/{pid}/task").glob("*/wchan"))
    return False
