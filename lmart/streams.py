"""Inputs and outputs: files, pipes, standard streams, compressed or not; outputs appear whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import queue
import select
import stat
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from lmart.errors import DataError, OutputError, quote, visible

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FOREIGN = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z"}
_MAGICS = (GZIP_MAGIC, ZSTD_MAGIC, *_FOREIGN)
COMPRESSED_SUFFIXES = (".gz", ".zst")
_PIECE = 1 << 18  # compressed bytes taken at a time
_LARGEST_PIECE = 1 << 20  # decompressed bytes handed on at a time


def reason(error: OSError) -> str:
    """Return what the system says about a failed operation, without number and path."""
    return error.strerror or str(error) or type(error).__name__


# Inputs


class InputStream(Protocol):
    """The bytes of one input, decompressed."""

    path: str

    def read_block(self, view: memoryview) -> int:
        """Fill `view` with what can be had without waiting, at least one byte; 0 at the end. DataError on failure."""

    def close(self) -> None:
        """Close the input; may be called twice."""


class _Raw:
    """The bytes as they are, of a file descriptor or of a Python stream that stands for standard input."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._own = False
        self._stream: BinaryIO | None = None
        try:
            if path == "-":
                self._open_standard_input()
            else:
                self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
                self._own = True
        except FileNotFoundError:
            raise DataError("there is no such file; check the name", path) from None
        except OSError as error:
            raise DataError(f"cannot be read: {reason(error)}", path) from None
        except ValueError:
            raise DataError("this name holds a NUL character; check the name", path) from None
        mode = 0 if self._descriptor < 0 else os.fstat(self._descriptor).st_mode
        self.regular = stat.S_ISREG(mode)
        if stat.S_ISDIR(mode):
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
        try:
            if self._stream is not None:
                piece = self._stream.read(len(view))
                view[: len(piece)] = piece
                return len(piece)
            return os.readv(self._descriptor, [view])
        except OSError as error:
            raise DataError(f"cannot be read: {reason(error)}", self.path) from None

    def more_is_there(self) -> bool:
        """Say whether a further read would not have to wait."""
        if self.regular or self._stream is not None:
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


class _Decompressed:
    """A gzip or zstd input, decompressed by a thread that works ahead by a few megabytes."""

    def __init__(self, raw: _Prefixed, kind: str) -> None:
        self.path = raw.path
        self._raw = raw
        self._pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(maxsize=8)
        self._piece = memoryview(b"")
        self._ended = False
        self._closed = False
        work = _gunzip if kind == "gzip" else _unzstd
        if kind == "zstd":
            _zstandard(DataError, self.path)
        self._thread = threading.Thread(target=self._work, args=(work,), name="lmart-decompress", daemon=True)
        self._thread.start()

    def _work(self, decompress: Any) -> None:
        last: BaseException | None = None
        try:
            for piece in decompress(self._raw):
                if self._closed:
                    break
                self._pieces.put(piece)
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
                self._piece = memoryview(piece)
            count = min(len(self._piece), len(view) - filled)
            view[filled : filled + count] = self._piece[:count]
            self._piece = self._piece[count:]
            filled += count
        return filled

    def close(self) -> None:
        self._closed = True
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


def _zstandard(error: type[DataError] | type[OutputError], path: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise error("zstd needs the package zstandard: pip install 'lmart[zstd]'", path) from None
    return zstandard


def _unzstd(raw: _Prefixed) -> Iterator[bytes]:
    """Yield what the frames of a zstd stream hold, one after the other."""
    zstandard = _zstandard(DataError, raw.path)
    frame: Any = None
    for compressed in _pieces_of(raw, 1 << 15):
        piece = compressed
        while piece:
            if frame is None:
                frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            try:
                out = frame.decompress(piece)
            except zstandard.ZstdError as error:
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


def open_input(path: str) -> InputStream:
    """Open a file, pipe or device, or standard input for '-'; gzip and zstd are recognised by content.

    DataError when it cannot be read, or holds some other compression.
    """
    raw = _Raw(path)
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
    """Return the whole content, decompressed, of a small input; DataError when it cannot be read or is above `limit`."""
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


# Outputs


class AtomicOutput:
    """An output that appears whole or not at all: `with AtomicOutput(path) as out: out.write(text_or_bytes)`.

    A file is written under a temporary name in its folder and renamed at the end; it keeps the mode of the file it
    replaces, and a link is followed to its target. '-' is standard output; it, devices and pipes are written directly.
    Names that end in .gz or .zst are compressed, without time or name inside. OutputError with path and reason on
    failure; a closed pipe stays BrokenPipeError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._target = ""
        self._temporary: str | None = None
        self._descriptor = -1
        self._own = False
        self._stream: Any = None
        self._compressor: Any = None
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._open = False

    def __enter__(self) -> AtomicOutput:
        try:
            self._start()
        except OSError as error:
            self._discard()
            raise self._failure(error) from None
        except BaseException:
            self._discard()
            raise
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self._discard()

    def _failure(self, error: OSError) -> OSError | OutputError:
        if isinstance(error, BrokenPipeError):
            return error
        name = "standard output" if self.path == "-" else self.path
        return OutputError(f"cannot be written: {reason(error)}; free space or choose another place", name)

    def _start(self) -> None:
        self._compressor = _compressor(self.path)
        if self.path == "-" or (number := _standard_descriptor(self.path)) == 1:
            self._start_standard_output()
            return
        if number is not None:
            self._descriptor = os.dup(number)
            self._own = True
            return
        self._target = os.path.realpath(self.path)
        try:
            replaced: os.stat_result | None = os.stat(self._target)
        except FileNotFoundError:
            replaced = None
        if replaced is not None and not stat.S_ISREG(replaced.st_mode):
            self._descriptor = os.open(self._target, os.O_WRONLY | os.O_CLOEXEC)
            self._own = True
            return
        folder, name = os.path.split(self._target)
        # Bytes: a name is limited in bytes, and may be no valid UTF-8.
        self._descriptor, temporary = tempfile.mkstemp(
            prefix=b"." + os.fsencode(name)[:200] + b".", suffix=b".tmp", dir=os.fsencode(folder)
        )
        self._temporary = os.fsdecode(temporary)
        self._own = True
        if replaced is None:
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(self._descriptor, 0o666 & ~mask)
        else:
            with suppress(OSError):  # only root may give files away
                os.fchown(self._descriptor, replaced.st_uid, replaced.st_gid)
            os.fchmod(self._descriptor, stat.S_IMODE(replaced.st_mode))

    def _start_standard_output(self) -> None:
        if sys.stdout is None or sys.stdout.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        try:
            self._descriptor = sys.stdout.fileno()
        except (OSError, io.UnsupportedOperation):
            self._stream = sys.stdout.buffer

    def write(self, data: str | bytes) -> None:
        """Write text (as UTF-8) or bytes; collected to sensible sizes."""
        piece = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        self._pending.append(piece)
        self._pending_size += len(piece)
        if self._pending_size >= 1 << 18:
            self._drain()

    def flush(self) -> None:
        """Hand everything written so far to the system (a compressed output keeps its own buffer)."""
        self._drain()

    def _drain(self) -> None:
        piece = b"".join(self._pending)
        self._pending.clear()
        self._pending_size = 0
        if self._compressor is not None:
            piece = self._compressor.compress(piece)
        self._put(piece)

    def _put(self, piece: bytes) -> None:
        try:
            if self._stream is not None:
                self._stream.write(piece)
                self._stream.flush()
                return
            view = memoryview(piece)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise self._failure(error) from None

    def commit(self) -> None:
        """Write the rest and give the file its name; nothing can be written afterwards."""
        if not self._open:
            return
        self._drain()
        if self._compressor is not None:
            self._put(self._compressor.flush())
        self._open = False
        if self._temporary is None:
            return
        try:
            os.fsync(self._descriptor)
            self._own = False
            os.close(self._descriptor)
            os.replace(self._temporary, self._target)
        except OSError as error:
            raise self._failure(error) from None
        self._temporary = None
        with suppress(OSError):  # the name is safe once its folder is on the disk
            folder = os.open(os.path.dirname(self._target), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _discard(self) -> None:
        self._open = False
        if self._own:
            self._own = False
            with suppress(OSError):
                os.close(self._descriptor)
        if self._temporary is not None:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None


def _standard_descriptor(path: str) -> int | None:
    """Return the number of the open descriptor that a name such as /dev/stdout or /dev/fd/5 stands for."""
    if path in ("/dev/stdout", "/dev/stderr"):
        return 1 if path == "/dev/stdout" else 2
    folder, number = os.path.split(path)
    if folder in ("/dev/fd", "/proc/self/fd") and number.isdigit():
        return int(number)
    return None


def _compressor(path: str) -> Any:
    if path.endswith(".gz"):
        return zlib.compressobj(6, zlib.DEFLATED, 31)  # its header has neither time nor name
    if path.endswith(".zst"):
        return _zstandard(OutputError, path).ZstdCompressor(level=3, write_checksum=True).compressobj()
    return None


def check_output(path: str, inputs: Sequence[str] = ()) -> None:
    """Refuse, before any work, an output that could not be written or would overwrite one of the inputs: OutputError."""
    _compressor(path)
    if path == "-" or _standard_descriptor(path) is not None:
        return
    if not path:
        raise OutputError("the name of the output is empty; give a file name or '-'")
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        there: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        there = None
    except (OSError, ValueError) as error:
        what = reason(error) if isinstance(error, OSError) else str(error)
        raise OutputError(f"cannot be written: {what}; choose another place", path) from None
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise OutputError("is a folder; give a file name", path)
    if there is not None and not stat.S_ISREG(there.st_mode):
        if not os.access(target, os.W_OK):
            raise OutputError("cannot be written: permission denied; choose another place", path)
        return
    if path.endswith("/"):
        raise OutputError("ends in '/' but is no folder; give a file name", path)
    if not os.path.isdir(folder):
        raise OutputError(f"cannot be written: there is no folder {quote(folder)}; make it first", path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"cannot be written: no permission to write in {quote(folder)}; choose another place", path)
    for other in inputs:
        if there is not None and other != "-" and _same_file(other, there):
            raise OutputError(f"would overwrite the input {visible(other)}; choose another name", path)


def _same_file(path: str, there: os.stat_result) -> bool:
    try:
        other = os.stat(path)
    except (OSError, ValueError):
        return False
    return (other.st_dev, other.st_ino) == (there.st_dev, there.st_ino)
