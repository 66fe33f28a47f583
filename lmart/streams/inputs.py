"""Inputs: files, pipes and standard input; gzip and zstd are recognised by content."""

from __future__ import annotations

import io
import os
import queue
import select
import stat
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from lmart.errors import DataError
from lmart.streams.common import reason, zstandard
from lmart.streams.spool import Spool
from lmart.threads import start_thread

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x1f\x9d": "compress",
    b"\x04\x22\x4d\x18": "lz4",
}
_MAGICS = {GZIP_MAGIC: "gzip", ZSTD_MAGIC: "zstd", **_FOREIGN}
_PIECE = 1 << 18  # compressed bytes taken at a time
_LARGEST_PIECE = 1 << 20  # decompressed bytes handed on at a time
# The longest slice of a zstd frame decompressed at once: four bytes can stand for 128 KiB.
_SHORT_SLICE, _LONG_SLICE = 1 << 6, 1 << 12

LARGEST_WHOLE = 1 << 30  # largest decompressed size of an input that is held in memory as a whole
HARMLESS = 1 << 26  # decompressed size up to which any compression ratio is accepted
LARGEST_RATIO = 200  # largest compression ratio above that size; numbers written as text compress far less


def changed_while_read(path: str) -> DataError:
    """Return the error for a file that changed after reading began."""
    return DataError("the file changed while it was read; start again once it is complete", path)


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


class _Raw:
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


class _Prefixed:
    """A raw input of which some first bytes were read already, to see what it is."""

    def __init__(self, raw: _Raw, prefix: bytes) -> None:
        self.path = raw.path
        self._raw = raw
        self._prefix = prefix

    @property
    def progress(self) -> float:
        return min(self._raw.taken / self._raw.size, 1.0) if self._raw.size else 0.0

    @property
    def can_read_ahead(self) -> bool:
        return self._raw.regular

    @property
    def taken(self) -> int:
        return self._raw.taken

    def refuse_changed(self) -> None:
        self._raw.refuse_changed()

    def is_file(self, status: os.stat_result) -> bool:
        return self._raw.is_file(status)

    def read_block(self, view: memoryview) -> int:
        if not self._prefix:
            return self._raw.read_block(view)
        count = min(len(self._prefix), len(view))
        view[:count] = self._prefix[:count]
        self._prefix = self._prefix[count:]
        if count < len(view) and self._raw.more_is_there():
            count += self._raw.read_block(view[count:])
        return count

    def close(self) -> None:
        self._raw.close()


class _PiecesOnDemand(queue.Queue["tuple[bytes, float] | BaseException | None"]):
    """In place of a queue that a thread fills: decompresses in the thread that asks, where no other can be started."""

    def __init__(self, raw: _Prefixed, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._raw = raw
        self._iterator = pieces

    def get(self, block: bool = True, timeout: float | None = None) -> tuple[bytes, float] | BaseException | None:
        """Return the next piece and the share that was read by then, None at the end, or why there is no more."""
        try:
            for piece in self._iterator:
                return piece, self._raw.progress
            self._raw.close()
        except Exception as error:  # raised in read_block, after what came before it
            try:
                self._raw.refuse_changed()  # which explains damage better
            except DataError as changed:
                return changed
            return error
        return None


class _Decompressed:
    """A gzip or zstd input, decompressed by a thread that works ahead by a few megabytes."""

    can_read_ahead = False

    def __init__(self, raw: _Prefixed, kind: str) -> None:
        self.path = raw.path
        self._raw = raw
        self._pieces: queue.Queue[tuple[bytes, float] | BaseException | None] = queue.Queue(maxsize=8)
        self._progress = 0.0
        self._piece = memoryview(b"")
        self._ended = False
        self._closed = False
        work = _gunzip if kind == "gzip" else _unzstd
        if kind == "zstd":
            zstandard(DataError, self.path)
        self._on_demand = False
        if not start_thread(self._work, "lmart-decompress", work):
            self._on_demand = True
            self._pieces = _PiecesOnDemand(raw, work(raw))

    @property
    def progress(self) -> float:
        return self._progress

    @property
    def taken(self) -> int:
        return self._raw.taken

    def refuse_changed(self) -> None:
        self._raw.refuse_changed()

    def is_file(self, status: os.stat_result) -> bool:
        return self._raw.is_file(status)

    def _work(self, decompress: Any) -> None:
        last: BaseException | None = None
        try:
            self._decompress(decompress)
        except BaseException as error:  # raised in read_block, in the thread that reads
            last = error
        finally:  # without an end the reader would wait for ever
            if not self._closed:
                self._pieces.put(last)
            del last  # else the fault holds this frame, and this frame the fault

    def _decompress(self, decompress: Any) -> None:
        try:
            for piece in decompress(self._raw):
                if self._closed:
                    break
                self._pieces.put((piece, self._raw.progress))
        except DataError:
            self._raw.refuse_changed()  # of which the damage comes
            raise
        finally:
            self._raw.close()

    def read_block(self, view: memoryview) -> int:
        filled = 0
        while filled < len(view):
            if not self._piece:
                if self._ended or (filled and self._pieces.empty()):
                    break
                piece = self._pieces.get()
                if piece is None or isinstance(piece, BaseException):
                    if piece is not None and filled:
                        self._pieces = queue.Queue()  # first hand out what came before the failure
                        self._pieces.put(piece)
                        break
                    self._ended = True
                    if piece is not None:
                        try:
                            raise piece
                        finally:
                            del piece  # else the fault holds this frame, and this frame the fault
                    break
                self._piece = memoryview(piece[0])
                self._progress = piece[1]
            count = min(len(self._piece), len(view) - filled)
            view[filled : filled + count] = self._piece[:count]
            self._piece = self._piece[count:]
            filled += count
        return filled

    def close(self) -> None:
        self._closed = True
        if self._on_demand:
            self._raw.close()
            return
        with suppress(queue.Empty):
            while True:  # wakes a thread that waits for room
                self._pieces.get_nowait()


def _pieces_of(raw: _Prefixed, size: int) -> Iterator[bytes]:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while count := raw.read_block(view):
        yield bytes(view[:count])


def _gunzip(raw: _Prefixed) -> Iterator[bytes]:
    """Yield what the members of a gzip stream hold, one after the other; zero bytes after the last are padding."""
    member: Any = None
    started = False
    for compressed in _pieces_of(raw, _PIECE):
        piece = compressed
        while piece:
            if member is None:
                if started:
                    piece = piece.lstrip(b"\0")
                    if not piece:
                        break
                member = zlib.decompressobj(wbits=31)
                started = True
            try:
                out = member.decompress(piece, _LARGEST_PIECE)
            except zlib.error as error:
                what = str(error).rsplit(": ", 1)[-1]
                raise DataError(f"the gzip data is damaged ({what}); copy the file again", raw.path) from None
            if out:
                yield out
            piece = member.unconsumed_tail
            if member.eof:
                piece = member.unused_data
                member = None
    if member is not None:
        raise DataError("the gzip data is cut off before its end; copy the file again", raw.path)


def _unzstd(raw: _Prefixed) -> Iterator[bytes]:
    """Yield what the frames of a zstd stream hold, one after the other."""
    package = zstandard(DataError, raw.path)
    frame: Any = None
    length = _LONG_SLICE
    parts: list[bytes] = []
    held = 0
    for compressed in _pieces_of(raw, 1 << 15):
        at = 0
        while at < len(compressed):
            if frame is None:
                frame = package.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            piece = compressed[at : at + length]
            at += len(piece)
            try:
                out = frame.decompress(piece)
            except package.ZstdError as error:
                what = str(error).rsplit(": ", 1)[-1]
                raise DataError(f"the zstd data is damaged ({what}); copy the file again", raw.path) from None
            length = _SHORT_SLICE if len(out) > _LARGEST_PIECE else min(2 * length, _LONG_SLICE)
            if frame.eof:
                at -= len(frame.unused_data)
                frame = None
            parts.append(out)
            held += len(out)
            if held >= _LARGEST_PIECE:
                yield b"".join(parts)
                parts, held = [], 0
        if held:
            yield b"".join(parts)
            parts, held = [], 0
    if frame is not None:
        raise DataError("the zstd data is cut off before its end; copy the file again", raw.path)


def open_input(path: str, spool: Spool | None = None) -> InputStream:
    """Open a file, pipe or device, or standard input for '-'; gzip and zstd are recognised by content.

    spool : keeps a copy of what is read, or replays it in place of the input
    DataError when it cannot be read, or holds some other compression.
    """
    raw = _Raw(path, spool)
    try:
        prefix = b""
        # No longer than it takes: a pipe may hold back its next bytes for long.
        while any(len(prefix) < len(magic) and magic.startswith(prefix) for magic in _MAGICS):
            one = bytearray(max(map(len, _MAGICS)) - len(prefix))
            count = raw.read_some(memoryview(one))
            if not count:
                break
            prefix += one[:count]
        if fault := _fault_of_prefix(prefix):
            raise DataError(fault, path)
        plain = _Prefixed(raw, prefix)
        if prefix.startswith(GZIP_MAGIC):
            return _Decompressed(plain, "gzip")
        if prefix.startswith(ZSTD_MAGIC):
            return _Decompressed(plain, "zstd")
        return plain
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

    limit : of what the caller keeps whole in memory; DataError above it, and for a small file that holds very much
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
