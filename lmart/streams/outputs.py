"""Outputs: files that appear whole or not at all, devices, pipes and standard output."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from lmart.errors import OutputError, quote, visible
from lmart.streams.common import reason, zstandard


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
    """Return the number of the open descriptor that a name such as /dev/stdout or /dev/fd/5 stands for; -1 for none."""
    if path in ("/dev/stdout", "/dev/stderr"):
        return 1 if path == "/dev/stdout" else 2
    folder, number = os.path.split(path)
    if folder in ("/dev/fd", "/proc/self/fd"):
        return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
    return None


def _compressor(path: str) -> Any:
    if path.endswith(".gz"):
        return zlib.compressobj(6, zlib.DEFLATED, 31)  # its header has neither time nor name
    if path.endswith(".zst"):
        return zstandard(OutputError, path).ZstdCompressor(level=3, write_checksum=True).compressobj()
    return None


def check_output(path: str, inputs: Sequence[str] = ()) -> None:
    """Refuse, before any work, an output that cannot be written or would overwrite one of the inputs: OutputError."""
    _compressor(path)
    descriptor = 1 if path == "-" else _standard_descriptor(path)
    if descriptor is not None:
        _check_descriptor(path, descriptor, inputs)
        return
    if not path:
        raise OutputError("the name of the output is empty; give a file name or '-'")
    if "\0" in path:
        raise OutputError("cannot be written: the name holds a NUL character; choose another name", path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        there: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        there = None
    except OSError as error:
        raise OutputError(f"cannot be written: {reason(error)}; choose another place", path) from None
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise OutputError("is a folder; give a file name", path)
    if there is not None and not stat.S_ISREG(there.st_mode):
        if not os.access(target, os.W_OK):
            raise OutputError("cannot be written: permission denied; choose another place", path)
        _refuse_an_input(path, there, inputs)
        return
    if path.endswith("/"):
        raise OutputError("ends in '/' but is no folder; give a file name", path)
    if not os.path.isdir(folder):
        raise OutputError(f"cannot be written: there is no folder {quote(folder)}; make it first", path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"cannot be written: no permission to write in {quote(folder)}; choose another place", path)
    if there is not None:
        _refuse_an_input(path, there, inputs)


def _check_descriptor(path: str, descriptor: int, inputs: Sequence[str]) -> None:
    try:
        closed = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except (OSError, ValueError):
        closed = True
    called = "standard output" if path == "-" else path
    if closed:
        raise OutputError("is not open for writing; choose another place", called)
    _refuse_an_input(called, os.fstat(descriptor), inputs)


def _refuse_an_input(path: str, there: os.stat_result, inputs: Sequence[str]) -> None:
    if stat.S_ISREG(there.st_mode):
        mistake = "would overwrite the input"
    elif stat.S_ISFIFO(there.st_mode):
        mistake = "would wait for ever, being the input"
    else:  # a terminal or a socket is read and written
        return
    for other in inputs:
        if _same_file(other, there):
            raise OutputError(f"{mistake} {visible(other)}; choose another name", path)


def _same_file(path: str, there: os.stat_result) -> bool:
    try:
        other = os.fstat(0) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return False
    return (other.st_dev, other.st_ino) == (there.st_dev, there.st_ino)
