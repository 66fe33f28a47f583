"""Inputs: files, pipes and standard input; gzip and zstd are recognised by content."""

from __future__ import annotations

import io
import os
import queue
import select
import stat
import sys
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
_FOREIGN = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z"}
_MAGICS = (GZIP_MAGIC, ZSTD_MAGIC, *_FOREIGN)
_PIECE = 1 << 18  # compressed bytes taken at a time
_LARGEST_PIECE = 1 << 20  # decompressed bytes handed on at a time


class InputStream(Protocol):
    """The bytes of one input, decompressed."""

    path: str

    @property
    def progress(self) -> float:
        """The share that was read, as far as known, else 0."""

    @property
    def can_read_ahead(self) -> bool:
        """Whether reading never waits for another program, nor for work that is better done by the reader itself."""

    def read_block(self, view: memoryview) -> int:
        """Fill `view` with what can be had without waiting, at least one byte; 0 at the end. DataError on failure."""

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
            raise DataError(f"cannot be read: {reason(error)}", path) from None
        except ValueError:
            raise DataError("this name holds a NUL character; check the name", path) from None
        status = None if self._descriptor < 0 else os.fstat(self._descriptor)
        self.regular = status is not None and stat.S_ISREG(status.st_mode)
        self.size = status.st_size if status is not None and self.regular else 0
        self.taken = 0
        if status is not None and stat.S_ISDIR(status.st_mode):
            self.close()
            raise DataError("is a folder; give a file", path)

    def _open_standard_input(self) -> None:
        if sys.stdin is None or sys.stdin.closed:
            raise DataError("standard input is closed; give a file, or pipe data in", self.path)
        try:
            self._descriptor = sys.stdin.fileno()
        except (OSError, io.UnsupportedOperation):
            self._stream = sys.stdin.buffer

    def read_some(self, view: memoryview) -> int:
        """Read once; 0 at the end."""
        if self._spool is not None and self._replays:
            return self._spool.read_into(view)
        try:
            if self._stream is not None:
                piece = self._stream.read(len(view))
                count = len(piece)
                view[:count] = piece
            else:
                count = os.readv(self._descriptor, [view])
                self.taken += count
        except OSError as error:
            raise DataError(f"cannot be read: {reason(error)}", self.path) from None
        if self._spool is not None:
            self._spool.write(view[:count])
        return count

    def more_is_there(self) -> bool:
        """Say whether a further read would not have to wait."""
        if self.regular or self._replays or self._stream is not None:
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
        if self._own:
            self._own = False
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

    def _work(self, decompress: Any) -> None:
        last: BaseException | None = None
        try:
            for piece in decompress(self._raw):
                if self._closed:
                    break
                self._pieces.put((piece, self._raw.progress))
        except BaseException as error:  # raised in read_block, in the thread that reads
            last = error
        self._raw.close()
        if not self._closed:
            self._pieces.put(last)

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
                        raise piece
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
    for compressed in _pieces_of(raw, 1 << 15):
        piece = compressed
        while piece:
            if frame is None:
                frame = package.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            try:
                out = frame.decompress(piece)
            except package.ZstdError as error:
                what = str(error).rsplit(": ", 1)[-1]
                raise DataError(f"the zstd data is damaged ({what}); copy the file again", raw.path) from None
            if out:
                yield out
            piece = b""
            if frame.eof:
                piece = frame.unused_data
                frame = None
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
        for magic, kind in _FOREIGN.items():
            if prefix.startswith(magic):
                raise DataError(f"is compressed with {kind}; decompress it first, or use gzip or zstd", path)
        plain = _Prefixed(raw, prefix)
        if prefix.startswith(GZIP_MAGIC):
            return _Decompressed(plain, "gzip")
        if prefix.startswith(ZSTD_MAGIC):
            return _Decompressed(plain, "zstd")
        return plain
    except BaseException:
        raw.close()
        raise


def read_all(path: str, limit: int | None = None) -> bytes:
    """Return the whole content, decompressed, of a small input; DataError as open_input, or above `limit`."""
    stream = open_input(path)
    try:
        parts: list[bytes] = []
        size = 0
        buffer = memoryview(bytearray(1 << 20))
        while count := stream.read_block(buffer):
            parts.append(bytes(buffer[:count]))
            size += count
            if limit is not None and size > limit:
                raise DataError(f"is larger than {limit} bytes; is it the right file?", path)
        return b"".join(parts)
    finally:
        stream.close()
