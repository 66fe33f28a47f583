"""Locks on names of files: held by a process, and gone with it however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from lmart.errors import OutputError
from lmart.streams.common import cannot_write
from lmart.streams.targets import resolve

POLL = 0.005  # seconds
LONGEST_RENAMING = 10.0  # seconds in which several files get their names; whoever takes longer was stopped


@contextmanager
def folders_locked(folders: Iterable[str]) -> Iterator[None]:
    """Keep other runs from renaming several files in these folders meanwhile, so that all of them are of one run.

    Folders that cannot be locked are passed over, as is the lock of a process that does not give it back.
    """
    held: list[int] = []
    until = time.monotonic() + LONGEST_RENAMING
    try:
        for folder in sorted(set(folders)):  # in one order, so that no two wait for each other
            with suppress(OSError):
                held.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                _lock_until(held[-1], until)
        yield
    finally:
        for descriptor in held:
            with suppress(OSError):
                os.close(descriptor)


def _lock_until(descriptor: int, until: float) -> None:
    """Lock a file, waiting for whoever has locked it, but not for ever."""
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(POLL)


class NameLock:
    """A lock on the name of a file that is replaced while it is locked: `with NameLock(path): ...`.

    The file cannot be locked itself, as each new one under its name would be without the lock. A file beside it is
    locked; what a killed process left of it is without a lock, and the next process takes it.

    path : the file
    OutputError when another process has the lock, or there can be none.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        folder, name = os.path.split(os.fsencode(resolve(path)))
        self._beside = os.path.join(folder, b"." + name[:200] + b".lock")
        self._descriptor = -1

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            while self._descriptor < 0:
                self._descriptor = os.open(self._beside, flags, 0o666)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._is_in_place():  # its holder has deleted it after we opened it
                    self._close()
        except BlockingIOError:
            self._close()
            what = "is in use by another run; wait for its end or choose another name"
            raise OutputError(what, self._path) from None
        except OSError as error:
            self._close()
            self._remove_unlocked()
            raise cannot_write(error, self._path) from None
        except BaseException:  # an interrupt, perhaps after the file was made
            self._close()
            self._remove_unlocked()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        with suppress(OSError):
            os.unlink(self._beside)
        self._close()

    def _remove_unlocked(self) -> None:
        """Delete the file unless another process has locked it."""
        with suppress(OSError):
            self._descriptor = os.open(self._beside, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(self._beside)
        self._close()

    def _is_in_place(self) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.stat(self._beside), os.fstat(self._descriptor))
        return False

    def _close(self) -> None:
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
