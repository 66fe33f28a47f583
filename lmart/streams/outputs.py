"""Outputs: files that appear whole or not at all, devices, pipes and standard output."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from lmart.descriptors import remember, write_some
from lmart.errors import OutputError, visible
from lmart.streams import temporaries
from lmart.streams.common import cannot_be_replaced, cannot_write, without_compression, zstandard
from lmart.streams.targets import check_target, is_of_another, resolve, standard_descriptor, sync_folder, umask


class _Compressor(Protocol):
    """Compresses what is written piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Return what is compressed by now."""

    def flush(self) -> bytes:
        """Return the rest."""


class AtomicOutput:
    """An output that appears whole or not at all: `with AtomicOutput(path) as out: out.write(text_or_bytes)`.

    A file is written under another name in the same folder, and renamed at the end. It keeps the mode and owner of the
    file it replaces, except for another user's file in a folder like /tmp, and a link is followed to its target. When
    only the renaming fails, the finished file is kept, and the error names it. '-' is standard output; it, devices and
    pipes are written directly. Names that end in .gz or .zst are compressed, without time or name inside. OutputError
    with path and reason on failure; a closed pipe stays BrokenPipeError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._mark = ""  # in temporary names
        self._target = ""
        self._temporary: str | None = None
        self._descriptor = -1
        self._own = False
        self._direct = True
        self._stream: BinaryIO | None = None
        self._compressor: _Compressor | None = None
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._open = False

    def __enter__(self) -> Self:
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

    @property
    def _called(self) -> str:
        return "standard output" if self.path == "-" else self.path

    def _failure(self, error: OSError) -> OSError | OutputError:
        if isinstance(error, BrokenPipeError):
            return error
        return cannot_write(error, self.path)

    def _start(self) -> None:
        self._compressor = _compressor(self.path)
        if self.path == "-" or (number := standard_descriptor(self.path)) == 1:
            self._start_standard_output()
            return
        if number is not None:
            self._descriptor = os.dup(number)
            self._own = True
            return
        self._target = resolve(self.path)
        try:
            replaced: os.stat_result | None = os.stat(self._target)
        except FileNotFoundError:
            replaced = None
        if replaced is not None and not stat.S_ISREG(replaced.st_mode):
            self._descriptor = os.open(self._target, os.O_WRONLY | os.O_CLOEXEC)
            self._own = True
            return
        self._descriptor, self._temporary = temporaries.create(self._target, self._mark)
        self._own, self._direct = True, False
        if replaced is None or is_of_another(replaced, os.stat(os.path.dirname(self._target))):
            os.fchmod(self._descriptor, 0o666 & ~umask())
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
        if self._direct and piece:
            remember(self._called, complete=False)
        try:
            if self._stream is not None:
                self._stream.write(piece)
                self._stream.flush()
                return
            view = memoryview(piece)
            while view:
                view = view[write_some(self._descriptor, view) :]
        except OSError as error:
            raise self._failure(error) from None

    def commit(self) -> None:
        """Write the rest and give the file its name; nothing can be written afterwards."""
        self._finish()
        _put_in_place([self])

    def _finish(self) -> None:
        """Write the rest, and wait until it is on the disk."""
        if not self._open:
            return
        self._drain()
        if self._compressor is not None:
            self._put(self._compressor.flush())
        self._open = False
        if self._direct:
            remember(self._called, complete=True)
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._failure(error) from None

    def _rename(self) -> None:
        """Give the finished file its name."""
        if self._direct or not self._own:
            return
        self._name()
        assert self._temporary is not None
        os.replace(self._temporary, self._target)
        temporaries.forget(self._temporary)
        self._temporary = None
        remember(self._called, complete=True)
        self._close()
        sync_folder(os.path.dirname(self._target))

    def _keep(self) -> str | None:
        """Let the finished file stay under its temporary name, which is returned; None when it has none."""
        if not self._direct and self._own:
            with suppress(OSError):
                self._name()
        name, self._temporary = self._temporary, None
        if name is not None:
            temporaries.forget(name)
        return name

    def _name(self) -> None:
        if self._temporary is None:
            self._temporary = temporaries.give_name(self._descriptor, self._target, self._mark)

    def _close(self) -> None:
        if self._own:
            self._own = False
            with suppress(OSError):
                os.close(self._descriptor)

    def _discard(self) -> None:
        self._open = False
        self._close()
        if self._temporary is not None:
            temporaries.remove(self._temporary)
            self._temporary = None


class AtomicOutputs:
    """Outputs that appear together: `with AtomicOutputs() as outputs: outputs.open(path).write(text)`.

    At the end all of them are written and safe on the disk before the first one gets its name, so that after any
    failure but that of renaming itself all older files are as they were.
    """

    def __init__(self) -> None:
        self._outputs: list[AtomicOutput] = []

    def open(self, path: str) -> AtomicOutput:
        """Return one more output; OutputError when it cannot be written."""
        one = AtomicOutput(path)
        self._outputs.append(one)
        return one.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                # What goes to a pipe or standard output cannot be taken back, so files come first.
                for one in sorted(self._outputs, key=lambda one: one._direct):
                    one._finish()
                _put_in_place(self._outputs)
        finally:
            for one in self._outputs:
                one._discard()


def _put_in_place(outputs: Sequence[AtomicOutput]) -> None:
    """Rename finished files; when one cannot be, keep it and those that follow: they are the result of the work."""
    for place, one in enumerate(outputs):
        try:
            one._rename()
        except OSError as error:
            kept = [name for other in outputs[place:] if (name := other._keep()) is not None]
            if not kept:
                raise one._failure(error) from None
            raise cannot_be_replaced(one.path, error, " and ".join(map(visible, kept))) from None


def _compressor(path: str) -> _Compressor | None:
    _, suffix = without_compression(path)
    if suffix == ".gz":
        return zlib.compressobj(6, zlib.DEFLATED, 31)  # its header has neither time nor name
    if suffix == ".zst":
        made: _Compressor = zstandard(OutputError, path).ZstdCompressor(level=3, write_checksum=True).compressobj()
        return made
    return None


def check_output(path: str, inputs: Sequence[str] = (), appended: bool = False) -> None:
    """Refuse, before any work, an output that cannot be written or would overwrite one of the inputs: OutputError.

    path     : the output; '-': standard output
    inputs   : files that are read
    appended : the file is added to, not replaced
    Creates and removes a temporary file in the same folder, since permissions alone do not show whether that works.
    """
    _compressor(path)
    check_target(path, inputs, appended)
