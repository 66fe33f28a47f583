"""Locks on names of files: held by a process, and gone with it however it ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from lmart.errors import OutputError
from lmart.streams.common import cannot_write
from lmart.streams.targets import resolve


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
            raise cannot_write(error, self._path) from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        with suppress(OSError):
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
