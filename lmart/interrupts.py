"""Interrupts while lmart works for a Python program, such as Ctrl-C or the stop button of a notebook."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LOADING = "llvmlite.binding.executionengine"  # what calls back while machine code is loaded
IMPORTING = "<frozen importlib._bootstrap>"
OUTPUTS = "lmart.streams.outputs"
NAMING = ("_rename_all", "_replace_all")  # functions there, which give several files their names
LATER = 0.01  # seconds


def must_wait(frame: FrameType | None) -> bool:
    """Return whether an interrupt must not raise here: the rest would be left half done, and crash or mislead.

    So it is while machine code is loaded, and while another package is imported: its C code may not expect an
    exception, and what it makes of it looks like a damaged installation. So it is too while the outputs of a run get
    their names: some would be of this run, and others of an older one.
    """
    importing: bool | None = None  # until a frame tells
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name == LOADING or (name == OUTPUTS and frame.f_code.co_name in NAMING):
            return True
        if importing is None and (frame.f_code.co_filename == IMPORTING or name.partition(".")[0] == "lmart"):
            importing = frame.f_code.co_filename == IMPORTING
        frame = frame.f_back
    return bool(importing)


@contextmanager
def safe_interrupts() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt wherever that is safe, and a little later where it is not.

    What handles interrupts otherwise is called as before, and handles them again afterwards. Outside the main thread,
    where Python raises none, nothing is changed.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if must_wait(frame):
            threading.Timer(LATER, os.kill, (os.getpid(), number)).start()  # which ends waiting too
            return
        handler(number, frame)

    try:  # already here: an interrupt may come at once
        signal.signal(signal.SIGINT, handle)
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
