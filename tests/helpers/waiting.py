"""Waiting in tests: for something to happen, never for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 300.0  # seconds after which a test that would wait forever fails, however slow or busy the machine is


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
