"""The process around a command: standard streams that always exist, signals that unwind, and the way out."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from lmart.errors import ExitStatus

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
SAME_REQUEST_SECONDS = 1.0
# What calls back while machine code is loaded: an exception there leaves half of it, and the next step crashes.
LOADING = "llvmlite.binding.executionengine"


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end. Unwinds the stack, so that temporary files are removed on the way."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal_number)


def status_of(interrupt: KeyboardInterrupt) -> int:
    """Return the exit status that an interrupt ends with: 128 + signal, as the shell counts."""
    return 128 + getattr(interrupt, "signal_number", signal.SIGINT)


def prepare() -> None:
    """Make the standard streams usable and install the signal handlers; called once, before anything is imported."""
    _open_closed_streams()
    # What a terminal or PYTHONIOENCODING cannot show goes out escaped; a result is never lost to an encoding error.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for name in STOPPING:
        number = getattr(signal, name, None)
        # A signal that our parent chose to ignore (nohup, a job in the background) stays ignored.
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _Stopper.stop)
    signal.signal(signal.SIGALRM, _Stopper.again)
    sys.unraisablehook = _raise_again


def leave(status: int) -> NoReturn:
    """End the process with this status, after flushing; nothing is written about a stream that cannot be flushed."""
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or ExitStatus.FAILED
            # The interpreter flushes once more on its way out: let that succeed.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if status >= 128:
        # A worker may still be inside a kernel, where the interpreter's orderly shutdown could abort it.
        os._exit(status)
    sys.exit(status)


def _open_closed_streams() -> None:
    """Occupy closed descriptors 0 to 2, so that no file opened later takes their place and gets our messages."""
    for number, name, flags, mode in (
        (0, "stdin", os.O_WRONLY, "r"),  # opened the wrong way round: using it fails, as with a closed one
        (1, "stdout", os.O_RDONLY, "w"),
        (2, "stderr", os.O_WRONLY, "w"),
    ):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


class _Stopper:
    """When the last signal was answered: `timeout` and terminals send the same request twice in a row."""

    answered = -SAME_REQUEST_SECONDS
    lost = 0  # a request that arrived where nothing can be raised

    @classmethod
    def again(cls, signal_number: int, frame: FrameType | None) -> None:
        cls._raise(cls.lost, frame)

    @classmethod
    def stop(cls, signal_number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - cls.answered >= SAME_REQUEST_SECONDS:
            cls.answered = now
            cls._raise(signal_number, frame)

    @classmethod
    def later(cls, signal_number: int) -> None:
        """Send a signal again a little later, when this place has been left."""
        cls.lost = signal_number
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    @classmethod
    def _raise(cls, signal_number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_globals.get("__name__") == LOADING:
                return cls.later(signal_number)
            frame = frame.f_back
        raise Stopped(signal_number)


def _raise_again(unraisable: Any) -> None:
    """Send a signal again that arrived where no exception can be raised, such as in a callback of the compiler."""
    if isinstance(unraisable.exc_value, Stopped):
        _Stopper.later(unraisable.exc_value.signal_number)
    else:
        sys.__unraisablehook__(unraisable)


def keep_memory_constant() -> None:
    """Have the C library give large arrays back when they are freed: else blocks of many sizes leave ever more holes.

    glibc raises the size from which it does so to that of the largest array freed, unless it is set.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(-3, 1 << 20)  # M_MMAP_THRESHOLD
