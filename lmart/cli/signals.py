"""The process around a command: standard streams that always exist, signals that unwind, and the way out."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from lmart.descriptors import remember, what_was_written, write_some
from lmart.errors import ExitStatus
from lmart.interrupts import LATER, must_wait

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
SAME_REQUEST_SECONDS = 1.0
SIGNALLED = 128  # what the shell adds to the number of the signal
STANDARD_OUTPUT = "standard output"
VERY_QUIET = {"-qq"}  # as far as it can be seen before options are read


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end. Unwinds the stack, so that temporary files are removed on the way."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal_number)


def status_of(interrupt: KeyboardInterrupt) -> int:
    """Return the exit status that an interrupt ends with: 128 + signal, as the shell counts."""
    return SIGNALLED + getattr(interrupt, "signal_number", signal.SIGINT)


def called(interrupt: KeyboardInterrupt) -> str:
    """Return what happened to the process, as a participle."""
    number = getattr(interrupt, "signal_number", signal.SIGINT)
    plain = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
    return plain.get(number) or f"terminated by {signal.Signals(number).name}"


def failed(fault: BaseException, begun: bool) -> int:
    """Say what an exception is that no command has answered, and return the exit status."""
    interrupt = interrupt_behind(fault)
    if interrupt is None:
        sys.excepthook(type(fault), fault, fault.__traceback__)
        return ExitStatus.FAILED
    if not begun and not VERY_QUIET.intersection(sys.argv):
        with suppress(OSError, ValueError):
            sys.stderr.write(f"lmart: {called(interrupt)} before the work began; nothing was written\n")
            sys.stderr.flush()
    return status_of(interrupt)


def interrupt_behind(fault: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interrupt that an exception is, or came from: Python and libraries wrap what is raised inside them."""
    met: list[BaseException] = []
    while fault is not None and fault not in met:
        if isinstance(fault, KeyboardInterrupt):
            return fault
        met.append(fault)
        fault = fault.__cause__ or fault.__context__
    return None


def prepare() -> None:
    """Make the standard streams usable and install the signal handlers; called once, before anything is imported."""
    _Process.is_ours = True
    _open_closed_streams()
    sys.stdout = _output_without_losses()
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
    sys.unraisablehook = _Stopper.unraisable


def is_process_ours() -> bool:
    """Return whether the process runs nothing but this command, so that it may be forked."""
    return _Process.is_ours


class _Process:
    """Whether `prepare` was called."""

    is_ours = False


def flush_output() -> None:
    """Write out what was printed; OSError with the name of standard output when that fails."""
    try:
        sys.stdout.flush()
    except OSError as fault:
        fault.filename = STANDARD_OUTPUT
        raise
    if STANDARD_OUTPUT in what_was_written():
        remember(STANDARD_OUTPUT, complete=True)


def finish(status: int) -> int:
    """Write out what is left of both standard streams, and from here on answer no signal; return the exit status.

    After an interrupt standard output is left alone: a part is no result, and its reader may be stopped as well. Lost
    messages fail nothing: their reader may be gone, and what could not be written to it stays in the buffer.
    """
    if status < SIGNALLED:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):  # the command has reported it, if it matters
            status = status or ExitStatus.FAILED
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    _ignore_signals()
    return status


def leave(status: int) -> NoReturn:
    """End the process at once with this status, and without the temporary files that a signal may have left.

    Standard streams are not flushed: `finish` does it. The interpreter's own shutdown is left out: signals would meet
    it without our answer, and a worker may still be inside a kernel.
    """
    _ignore_signals()
    if (temporaries := sys.modules.get("lmart.streams.temporaries")) is not None:
        temporaries.remove_all()
    if (compiling := sys.modules.get("lmart.kernels.numba_support.compiling_processes")) is not None:
        compiling.processes.stop()
    os._exit(status)


def _ignore_signals() -> None:
    for name in (*STOPPING, "SIGALRM"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


class _Descriptor(io.RawIOBase):
    """A standard stream, opened for writing anew, that waits where it is full for the moment."""

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self.name = name

    def writable(self) -> bool:
        """Return True: that is what it is for."""
        return True

    def fileno(self) -> int:
        """Return the number of the descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._number)

    def write(self, data: ReadableBuffer) -> int:
        """Write as much as the stream takes, at least one byte, and return how many bytes that were."""
        remember(STANDARD_OUTPUT, complete=False)
        try:
            return write_some(self._number, memoryview(data))
        except OSError as fault:
            fault.filename = STANDARD_OUTPUT
            raise


def _output_without_losses() -> Any:
    """Return a standard output that writes all or fails: with PYTHONUNBUFFERED Python's own drops what did not fit."""
    old = sys.stdout
    try:
        number = old.fileno()
    except (AttributeError, OSError, ValueError):  # replaced by a program that has imported us
        return old
    old.flush()
    buffer: Any = io.BufferedWriter(_Descriptor(number, "<stdout>"))
    return io.TextIOWrapper(buffer, encoding=old.encoding, errors=old.errors, line_buffering=bool(old.line_buffering))


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
    raised = False  # whether the process is being stopped

    @classmethod
    def again(cls, signal_number: int, frame: FrameType | None) -> None:
        cls._raise(cls.lost or signal_number, frame)  # the latter when somebody else sent the alarm

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
        signal.setitimer(signal.ITIMER_REAL, LATER)

    @classmethod
    def _raise(cls, signal_number: int, frame: FrameType | None) -> None:
        if must_wait(frame):  # as while machine code is loaded or a package imported
            return cls.later(signal_number)
        cls.raised = True
        raise Stopped(signal_number)

    @classmethod
    def unraisable(cls, unraisable: sys.UnraisableHookArgs) -> None:
        """Send a signal again that arrived where no exception can be raised, such as in a callback of the compiler."""
        if isinstance(unraisable.exc_value, Stopped):
            cls.later(unraisable.exc_value.signal_number)
        elif not cls.raised:  # else an object that was half made when the process was stopped
            sys.__unraisablehook__(unraisable)
