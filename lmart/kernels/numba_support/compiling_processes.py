"""Processes that compile side by side for one command: this one and forks of it, each kernel in one of them.

Whoever compiles a kernel has claimed it by a lock on one byte of a file without a name, which ends with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable
from io import FileIO

from lmart.kernels.numba_support.code_files import held_signals

POLL = 0.005  # seconds between looks whether a claim has ended
LONGEST_WAIT = 60.0  # seconds for one kernel: whoever compiles it may have been stopped
STANDARD_STREAMS = 3
SIGNAL_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
MOST_FILES = 1 << 16  # open at once, where the system has no limit


class CompilingProcesses:
    """The forks of this process that compile, and the claims of all of them."""

    def __init__(self) -> None:
        self._claims = -1
        self._forks: list[int] = []
        self._parent = 0  # of this fork; 0 in the process that was started by the user

    def start(self, count: int, lock: FileIO, work: Callable[[int], None]) -> bool:
        """Start forks; return whether any runs. Only while this process has one thread.

        lock : an open file that is locked for as long as a fork has it open; closed here
        work : called with the number of the fork, from 0; ends early when `is_orphan`
        """
        import tempfile

        with lock, contextlib.suppress(OSError):  # no process, no space: this one compiles by itself
            if self._claims < 0:
                with tempfile.TemporaryFile() as file:
                    self._claims = os.dup(file.fileno())
            for number in range(count):
                parent = os.getpid()
                with held_signals():  # no fork is forgotten, and none unwinds the stack of this process
                    fork = os.fork()
                    if not fork:
                        self._parent = parent
                        self._run(work, number, lock.fileno())
                    self._forks.append(fork)
        return bool(self._forks)

    def _run(self, work: Callable[[int], None], number: int, lock: int) -> None:
        """Do the work of a fork and end it: silent, and without the files of the process that it comes from."""
        status = 1
        try:
            _end_with_parent()
            for stopping in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(stopping, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {stopping})
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(STANDARD_STREAMS):
                os.dup2(nowhere, stream)
            first = STANDARD_STREAMS
            for kept in sorted((self._claims, lock)):
                os.closerange(first, kept)
                first = kept + 1
            limit = os.sysconf("SC_OPEN_MAX")
            os.closerange(first, limit if 0 < limit < MOST_FILES else MOST_FILES)
            work(number)
            status = 0
        finally:
            os._exit(status)

    @property
    def is_orphan(self) -> bool:
        """Whether this is a fork and the process that it comes from has ended."""
        return self._parent > 0 and os.getppid() != self._parent

    def are_there(self) -> bool:
        """Return whether others compile beside this process."""
        for fork in tuple(self._forks):
            try:
                ended = os.waitpid(fork, os.WNOHANG)[0]
            except ChildProcessError:
                ended = fork
            if ended:
                self._forks.remove(fork)
        return bool(self._forks or self._parent)

    def claim(self, name: str, wait: bool = True) -> bool:
        """Claim the kernel and signature of a file of machine code; return whether it is this process's now.

        wait : until the process that has claimed it has compiled it, or has ended
        """
        start = time.monotonic()
        while True:
            try:
                fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(name))
                return True
            except (BlockingIOError, PermissionError):
                if not wait or time.monotonic() - start > LONGEST_WAIT:
                    return False
            except OSError:  # a file system without locks
                return wait
            time.sleep(POLL)  # not a blocking call, which a signal could not end

    def release(self, name: str) -> None:
        """Give a claim back."""
        with contextlib.suppress(OSError):
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(name))

    def stop(self) -> None:
        """End the forks, without waiting for them."""
        for fork in self._forks:
            with contextlib.suppress(OSError):
                os.kill(fork, signal.SIGTERM)
        self._forks.clear()

    def wait(self, tell: Callable[[], None], pause: float) -> None:
        """Wait until the forks have ended."""
        while self.are_there():
            tell()
            time.sleep(pause)


def _end_with_parent() -> None:
    """Ask the system to end this fork with the process that it comes from, however that ends, where it can do so.

    Elsewhere a fork looks at `is_orphan` after each kernel, and keeps the next command waiting until then.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SIGNAL_WITH_PARENT, signal.SIGTERM)


def _place(name: str) -> int:
    """Return the byte that stands for a file: its name holds a digest."""
    return int(name.rpartition("-")[2][:12], 16)


processes = CompilingProcesses()
