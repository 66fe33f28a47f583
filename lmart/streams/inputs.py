"""Inputs: files, pipes, devices and standard input; gzip and zstd are recognised by content."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO, Protocol

from lmart.errors import DataError
from lmart.streams.common import changed_while_read, reason
from lmart.streams.compressed import DecompressedInput
from lmart.streams.digests import recorder_of

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip (as .npz and .xlsx files are)",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x1f\x9d": "compress",
    b"\x04\x22\x4d\x18": "lz4",
}
_MAGICS = {GZIP_MAGIC: "gzip", ZSTD_MAGIC: "zstd", **_FOREIGN}

LARGEST_WHOLE = 1 << 30  # largest decompressed size of an input that is held in memory as a whole
HARMLESS = 1 << 26  # decompressed size up to which any compression ratio is accepted
LARGEST_RATIO = 200  # largest compression ratio above that size; numbers written as text compress far less
KEPT = 1 << 24  # bytes up to which no file is needed


class InputStream(Protocol):
    """The bytes of one input, decompressed."""

    path: str

    @property
    def progress(self) -> float:
        """The fraction read so far, 0 if unknown."""

    @property
    def can_read_ahead(self) -> bool:
        """True for plain regular files, which a worker may read while the previous block is parsed.

        False for pipes, which may wait for another program, and for compressed input.
        """

    @property
    def taken(self) -> int:
        """The bytes read so far from the file or pipe itself, before decompression."""

    def read_block(self, view: memoryview) -> int:
        """Read into `view` what is available without waiting, at least one byte, and return how many; 0 at the end.

        DataError when it cannot be read; at the end also when a plain file changed since it was opened.
        """

    def refuse_changed(self) -> None:
        """Raise DataError when it is a plain file that changed since it was opened, or before its end was read."""

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether it is the very file that has the status."""

    def close(self) -> None:
        """Close the input; may be called twice."""


def open_input(path: str, spool: Spool | None = None) -> InputStream:
    """Open a file, pipe or device, or standard input for '-'; gzip and zstd are recognised by content.

    A spool keeps a copy of what is read, or replays it. DataError for what cannot be read, or is otherwise compressed.
    """
    raw = RawInput(path, spool)
    try:
        prefix = b""
        # No longer than it takes: a pipe may hold back its next bytes for long.
        while any(len(prefix) < len(magic) and magic.startswith(prefix) for magic in _MAGICS):
            more = bytearray(max(map(len, _MAGICS)) - len(prefix))
            count = raw.read_some(memoryview(more))
            if not count:
                break
            prefix += more[:count]
        if fault := _fault_of_prefix(prefix):
            raise DataError(fault, path)
        raw.unread(prefix)
        kind = next((kind for magic, kind in _MAGICS.items() if prefix.startswith(magic)), "")
        return DecompressedInput(raw, kind) if kind else raw
    except BaseException:
        raw.close()
        raise


def _fault_of_prefix(prefix: bytes) -> str | None:
    """Return what is wrong with an input that begins so, None if nothing is; it is shorter only if that is all."""
    for magic, kind in _FOREIGN.items():
        if prefix.startswith(magic):
            return f"is compressed with {kind}; decompress it first, or use gzip or zstd"
    if prefix.startswith(GZIP_MAGIC[:1]) and not prefix.startswith(GZIP_MAGIC) and len(prefix) > 1:
        return "looks like gzip data whose beginning is damaged; copy the file again"
    kind = next((kind for magic, kind in _MAGICS.items() if magic.startswith(prefix) and magic != prefix), "")
    if kind and prefix and not (prefix.isascii() and prefix.decode().isprintable()):
        return f"holds only the first bytes of {kind} data; copy the file again"
    return None


def read_pieces(path: str, limit: int | None = None) -> Iterator[bytes]:
    """Yield the content of an input, decompressed, in pieces of up to 1 MiB; DataError as `open_input`.

    With a limit of bytes, for what is kept whole in memory, there is a DataError above it, and for a small file that
    holds very much.
    """
    stream = open_input(path)
    try:
        size = 0
        buffer = memoryview(bytearray(1 << 20))
        while count := stream.read_block(buffer):
            size += count
            if limit is not None and size > limit:
                raise DataError(f"is larger than {limit} bytes; is it the right file?", path)
            if limit is not None and size > max(HARMLESS, LARGEST_RATIO * stream.taken):
                what = f"is more than {LARGEST_RATIO} times as large as its compressed data"
                raise DataError(f"{what}; is it the right file?", path)
            yield bytes(buffer[:count])
    finally:
        stream.close()


def read_all(path: str, limit: int = LARGEST_WHOLE) -> bytes:
    """Return the whole content, decompressed, of a small input; DataError as `read_pieces`."""
    return b"".join(read_pieces(path, limit))


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
    """Raise DataError when a file has no longer the state, by path, that `state_of` returned when reading began."""
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


class RawInput:
    """The bytes before decompression, of a file descriptor or of a Python stream that stands for standard input.

    A spool gets a copy of them, or, when it replays, stands for the input.
    """

    def __init__(self, path: str, spool: Spool | None = None) -> None:
        self.path = path
        self._spool = spool
        self._replays = spool is not None and spool.replays
        self._descriptor = -1
        self._own = False
        self._stream: BinaryIO | None = None
        self._prefix = b""  # read already, but to be read again
        self._ended = False
        self._recorder = None if self._replays else recorder_of(path)
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
        self.can_read_ahead = False
        self.size = self.taken = self._first = 0
        if self._descriptor >= 0:
            try:
                self._look()
            except BaseException:
                self.close()
                raise

    @property
    def progress(self) -> float:
        """The fraction read so far, 0 if unknown."""
        return min(self.taken / self.size, 1.0) if self.size else 0.0

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
        self.can_read_ahead = stat.S_ISREG(status.st_mode)
        if self.can_read_ahead:
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
        if self._recorder is not None:
            self._recorder.add(view[:count])
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
        if self.can_read_ahead and self._first + self.taken < self.size:  # an end before its end
            raise changed_while_read(self.path)
        self._ended = True
        if self._recorder is not None:
            self._recorder.end()
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
            if self.can_read_ahead and not self._ended:
                status = self._status()
                if (status.st_size, status.st_mtime_ns) != self._state:
                    raise changed_while_read(self.path)

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether this is the very file that has the status."""
        return self._descriptor >= 0 and os.path.samestat(status, self._status())

    def more_is_there(self) -> bool:
        """Return whether a further read would not have to wait."""
        if self.can_read_ahead or self._replays or self._ended or self._stream is not None:
            return True
        try:
            return bool(select.select([self._descriptor], [], [], 0)[0])
        except (OSError, ValueError):
            return False

    def unread(self, prefix: bytes) -> None:
        """Let `read_block` return these first bytes again, which were read to see what the input is."""
        self._prefix = prefix

    def read_block(self, view: memoryview) -> int:
        """Read what is available without waiting, at least one byte, and return how many; 0 at the end."""
        filled = min(len(self._prefix), len(view))
        if filled:
            view[:filled] = self._prefix[:filled]
            self._prefix = self._prefix[filled:]
        else:
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
