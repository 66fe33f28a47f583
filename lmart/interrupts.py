"""Interrupts while lmart works for a Python program, such as Ctrl-C or the stop button of a notebook."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# What calls back while machine code is loaded: an exception there leaves half of it, and the next step crashes.
LOADING = "llvmlite.binding.executionengine"
LATER = 0.01  # seconds


@contextmanager
def safe_interrupts() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt wherever that is safe, and a little later where it is not.

    What handles interrupts otherwise is called as before, and handles them again afterwards. Outside the main thread,
    where Python raises none, nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        inner = frame
        while inner is not None:
            if inner.f_globals.get("__name__") == LOADING:
                threading.Timer(LATER, os.kill, (os.getpid(), number)).start()  # which ends waiting too
                return
            inner = inner.f_back
        before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
