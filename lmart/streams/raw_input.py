"""The bytes of a file, pipe, device or standard input as they are, before decompression."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import threading
from contextlib import suppress
from typing import BinaryIO

from lmart.errors import DataError
from lmart.streams.common import changed_while_read, reason
from lmart.streams.spool import Spool


class RawInput:
    """The bytes as they are, of a file descriptor or of a Python stream that stands for standard input.

    A spool gets a copy of them, or, when it replays, stands for the input.
    """

    def __init__(self, path: str, spool: Spool | None = None) -> None:
        self.path = path
        self._spool = spool
        self._replays = spool is not None and spool.replays
        self._descriptor = -1
        self._own = False
        self._stream: BinaryIO | None = None
        self._ended = False
        self._closing = threading.Lock()  # a descriptor that is closed may soon be another file's
        try:
            if self._replays:
                pass
            elif path == "-":
                self._open_standard_input()
            else:
                self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
                self._own = True
        except FileNotFoundError:
            what = "there is no such file; check the name"
            raise DataError(what if path else "the name of an input is empty; give a file name or '-'", path) from None
        except OSError as error:
            raise self._failure(error) from None
        except ValueError:
            raise DataError("this name holds a NUL character; check the name", path) from None
        self.regular = False
        self.size = self.taken = self._first = 0
        if self._descriptor >= 0:
            try:
                self._look()
            except BaseException:
                self.close()
                raise

    def _open_standard_input(self) -> None:
        if sys.stdin is None or sys.stdin.closed:
            raise DataError("standard input is closed; give a file, or pipe data in", self.path)
        try:
            self._descriptor = sys.stdin.fileno()
        except (OSError, io.UnsupportedOperation):
            self._stream = sys.stdin.buffer

    def _look(self) -> None:
        """See what kind of file it is, and what a plain file is like before it is read."""
        status = self._status()
        if stat.S_ISDIR(status.st_mode):
            raise DataError("is a folder; give a file", self.path)
        self.regular = stat.S_ISREG(status.st_mode)
        if self.regular:
            self.size = status.st_size
            self._state = status.st_size, status.st_mtime_ns
            if not self._own:  # standard input may begin anywhere in a file
                with suppress(OSError):
                    self._first = os.lseek(self._descriptor, 0, os.SEEK_CUR)

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> DataError:
        return DataError(f"cannot be read: {reason(error)}", self.path)

    def read_some(self, view: memoryview) -> int:
        """Read once; 0 at the end."""
        if self._spool is not None and self._replays:
            count = self._spool.read_into(view)
            self.taken += count
            return count
        if self._ended:
            return 0
        try:
            if self._stream is not None:
                piece = self._stream.read(len(view))
                count = len(piece)
                view[:count] = piece
            else:
                count = self._read_descriptor(view)
        except OSError as error:
            raise self._failure(error) from None
        self.taken += count
        if self._spool is not None:
            self._spool.write(view[:count])
        if not count and view:
            self._end()
        return count

    def _read_descriptor(self, view: memoryview) -> int:
        while True:
            try:
                return os.readv(self._descriptor, [view])
            except BlockingIOError:  # whoever started us made the pipe non-blocking
                select.select([self._descriptor], [], [])

    def _end(self) -> None:
        """Close an input that was read to its end, so that all that can go wrong with it is known by then."""
        self.refuse_changed()
        if self.regular and self._first + self.taken < self.size:  # an end before its end
            raise changed_while_read(self.path)
        self._ended = True
        with self._closing:
            if self._own:
                self._own = False
                try:
                    os.close(self._descriptor)
                except OSError as error:
                    raise self._failure(error) from None

    def refuse_changed(self) -> None:
        """Raise DataError when a plain file, not yet read to its end, is not as it was when it was opened.

        A file that only lost or changed its name is read on as it was.
        """
        with self._closing:
            if self.regular and not self._ended:
                status = self._status()
                if (status.st_size, status.st_mtime_ns) != self._state:
                    raise changed_while_read(self.path)

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether this is the very file that has the status."""
        return self._descriptor >= 0 and os.path.samestat(status, self._status())

    def more_is_there(self) -> bool:
        """Return whether a further read would not have to wait."""
        if self.regular or self._replays or self._ended or self._stream is not None:
            return True
        try:
            return bool(select.select([self._descriptor], [], [], 0)[0])
        except (OSError, ValueError):
            return False

    def read_block(self, view: memoryview) -> int:
        """Read what is available without waiting, at least one byte, and return how many; 0 at the end."""
        filled = self.read_some(view)
        while 0 < filled < len(view) and self.more_is_there():
            count = self.read_some(view[filled:])
            if not count:
                break
            filled += count
        return filled

    def close(self) -> None:
        """Close it before its end was read: what was read is right whatever comes of it."""
        with self._closing:
            self._ended = True
            if self._own:
                self._own = False
                with suppress(OSError):
                    os.close(self._descriptor)


class PrefixedInput:
    """A raw input of which some first bytes were read already, to see what it is; an `InputStream`."""

    def __init__(self, raw: RawInput, prefix: bytes) -> None:
        self.path = raw.path
        self._raw = raw
        self._prefix = prefix

    @property
    def progress(self) -> float:
        """The fraction read so far, 0 if unknown."""
        return min(self._raw.taken / self._raw.size, 1.0) if self._raw.size else 0.0

    @property
    def can_read_ahead(self) -> bool:
        """True for plain regular files."""
        return self._raw.regular

    @property
    def taken(self) -> int:
        """The bytes read so far from the file or pipe itself."""
        return self._raw.taken

    def refuse_changed(self) -> None:
        """Raise DataError when it is a plain file that changed since it was opened."""
        self._raw.refuse_changed()

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether this is the very file that has the status."""
        return self._raw.is_file(status)

    def read_block(self, view: memoryview) -> int:
        """Read the first bytes, then the rest, as `InputStream` says."""
        if not self._prefix:
            return self._raw.read_block(view)
        count = min(len(self._prefix), len(view))
        view[:count] = self._prefix[:count]
        self._prefix = self._prefix[count:]
        if count < len(view) and self._raw.more_is_there():
            count += self._raw.read_block(view[count:])
        return count

    def close(self) -> None:
        """Close the raw input."""
        self._raw.close()
