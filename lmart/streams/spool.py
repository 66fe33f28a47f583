"""Spool: the bytes of an input that can be read only once, stored for a second reading."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping

from lmart.errors import DataError
from lmart.streams.common import changed_while_read, reason

KEPT = 1 << 24  # bytes up to which no file is needed


def can_be_reread(path: str) -> bool:
    """Return whether an input is a file that can be opened again; also True for one that cannot be opened."""
    if path == "-":
        return False
    try:
        return not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return True


def can_spool() -> bool:
    """Return whether there is a folder for temporary files."""
    try:
        return bool(tempfile.gettempdir())
    except OSError:
        return False


def state_of(path: str) -> tuple[int, ...] | None:
    """Return (device, inode, size, time), which differ when a file was written or replaced; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def refuse_changed_files(states: Mapping[str, tuple[int, ...] | None]) -> None:
    """Raise DataError when a file is no longer what it was when reading began.

    states : by path, as `state_of` returned them then
    """
    for path, state in states.items():
        if state_of(path) != state:
            raise changed_while_read(path)


class Spool:
    """The bytes of one input, in memory while they are few, else in an unlinked file in TMPDIR."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.replays = False
        self._file = tempfile.SpooledTemporaryFile(max_size=KEPT)  # noqa: SIM115  (closed by close)

    def write(self, piece: memoryview) -> None:
        """Store the next bytes; DataError when the disk is full."""
        try:
            self._file.write(piece)
        except OSError as error:
            raise self._failure(error) from None

    def rewind(self) -> None:
        """Replay the stored bytes from the start."""
        try:
            self._file.seek(0)
        except OSError as error:
            raise self._failure(error) from None
        self.replays = True

    def read_into(self, view: memoryview) -> int:
        """Fill `view` with the next bytes; 0 at the end."""
        try:
            return self._file.readinto(view)
        except OSError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Delete the stored bytes."""
        self._file.close()

    def _failure(self, error: OSError) -> DataError:
        what = f"cannot be kept in {tempfile.gettempdir()} to be read twice: {reason(error)}"
        return DataError(f"{what}; set TMPDIR to a folder with more room, or give a file", self.path)
