"""Outputs: files that appear whole or not at all, devices, pipes and standard output."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import BinaryIO, NamedTuple, Protocol, Self

from lmart.descriptors import remember, write_some
from lmart.errors import OutputError, counted, visible
from lmart.streams import temporaries
from lmart.streams.common import cannot_be_replaced, cannot_write, without_compression, zstandard
from lmart.streams.locks import folders_locked
from lmart.streams.targets import (
    check_target,
    is_of_another,
    refuse_an_input,
    refuse_what_cannot_be_replaced,
    resolve,
    standard_descriptor,
    sync_folder,
    umask,
)


class _Compressor(Protocol):
    """Compresses what is written piece by piece."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class AtomicOutput:
    """An output that appears whole or not at all: `with AtomicOutput(path) as out: out.write(text_or_bytes)`.

    A file is written under another name in the same folder, and renamed at the end. It keeps the mode and owner of the
    file it replaces, except for another user's file in a folder like /tmp, and a link is followed to its target. When
    only the renaming fails, the finished file is kept, and the error names it. '-' is standard output; it, devices and
    pipes are written directly. Names that end in .gz or .zst are compressed, without time or name inside. OutputError
    with path and reason on failure; a closed pipe stays BrokenPipeError.

    is_result : False: the finished file is not kept when it cannot be renamed
    """

    def __init__(self, path: str, is_result: bool = True) -> None:
        self.path, self._is_result = path, is_result
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
        self._target = resolve(self.path)  # renaming over a link would replace the link, not what it leads to
        try:
            replaced: os.stat_result | None = os.stat(self._target)
        except FileNotFoundError:
            replaced = None
        if replaced is not None and not stat.S_ISREG(replaced.st_mode):  # a pipe or device keeps its readers
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
            os.fchmod(self._descriptor, stat.S_IMODE(replaced.st_mode))  # after fchown, which may clear bits

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

    def _keep(self) -> str | None:
        """Let the finished file stay under a name of its own, which is returned; None when it has none."""
        if not self._is_result:
            return None
        with suppress(OSError):
            self._name()
        name, self._temporary = self._temporary, None
        return None if name is None else temporaries.keep(name)

    def _name(self) -> None:
        if not self._direct and self._own and self._temporary is None:
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
        output = AtomicOutput(path)
        self._outputs.append(output)
        return output.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                # What goes to a pipe or standard output cannot be taken back, so files come first.
                for output in sorted(self._outputs, key=lambda output: output._direct):
                    output._finish()
                _put_in_place(self._outputs)
        finally:
            for output in self._outputs:
                output._discard()


def _put_in_place(outputs: Sequence[AtomicOutput]) -> None:
    """Rename finished files; when one cannot be, keep it and those that follow: they are the result of the work."""
    folders = [os.path.dirname(output._target) for output in outputs if not output._direct]
    with ExitStack() as stack:
        if len(folders) > 1:
            stack.enter_context(folders_locked(folders))
        _rename_all(outputs)
    for folder in set(folders):  # not between two renames, where a kill leaves outputs of two runs
        sync_folder(folder)


def _rename_all(outputs: Sequence[AtomicOutput]) -> None:
    """Rename finished files, once all have temporary names, for which a disk may have no room.

    Interrupts wait meanwhile, by the name of this function: see `lmart.interrupts`.
    """
    for step in (AtomicOutput._name, AtomicOutput._rename):
        for output in outputs:
            try:
                step(output)
            except OSError as error:
                kept = [name for other in outputs if (name := other._keep()) is not None]  # none of those renamed
                if not kept:
                    raise output._failure(error) from None
                raise cannot_be_replaced(output.path, error, " and ".join(map(visible, kept))) from None


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

    Creates and removes a temporary file in the same folder, since permissions alone do not show whether that works.
    """
    _compressor(path)
    check_target(path, inputs, appended)


class StagedFile(NamedTuple):
    """A finished output that waits for its name.

    path      : the output, as it was asked for
    temporary : where it is
    target    : where it belongs, links followed
    known_by  : its number in the file system and its size, by which it is known under either name
    """

    path: str
    temporary: str
    target: str
    known_by: tuple[int, int]


class StagedOutput(AtomicOutput):
    """An output that stays under a temporary name when it is finished, for `put_in_place`, also of another process.

    path  : the output, a file as `check_staged` takes it
    mark  : letters and digits, at most 32, in the temporary name, by which `remove_marked` finds it
    check : called now and then while it is written; what it raises ends the writing

    staged : where it waits, once it is finished
    """

    def __init__(self, path: str, mark: str, check: Callable[[], None]) -> None:
        super().__init__(path)
        self._mark, self._check = mark, check
        self.staged: StagedFile | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._check()  # whoever ended the work may have swept the folder just before
        except BaseException:
            self._discard()
            temporaries.let_go(os.path.dirname(self._target), self._mark)
            raise
        return self

    def write(self, data: str | bytes) -> None:
        """Check, then write."""
        self._check()
        super().write(data)

    def commit(self) -> None:
        """Write the rest, and let the file wait under its temporary name."""
        self._check()
        self._finish()
        try:
            self._name()
            status = os.fstat(self._descriptor)
        except OSError as error:
            raise self._failure(error) from None
        self._check()  # whoever ended the work may have swept the folder just before the name appeared there
        name, self._temporary = self._temporary, None
        assert name is not None
        temporaries.forget(name)
        self.staged = StagedFile(self.path, name, self._target, (status.st_ino, status.st_size))


def check_staged(outputs: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Refuse, before any work, outputs that cannot be written or are inputs: OutputError. Return their folders.

    What killed runs left in them of outputs that waited for their names is deleted.
    """
    inputs_by_inode: dict[tuple[int, int], str] = {}
    for path in inputs:
        if (status := _status(path)) is not None:
            inputs_by_inode.setdefault((status.st_dev, status.st_ino), path)
    folders: set[str] = set()
    by_target: dict[str, str] = {}
    for path in outputs:
        target = resolve(path)
        if (other := by_target.setdefault(target, path)) != path:
            raise OutputError(f"is the same file as {visible(other)}, over a link; remove the link", path)
        there, folder = _status(target), os.path.dirname(target)
        if there is not None and stat.S_ISREG(there.st_mode):
            same = inputs_by_inode.get((there.st_dev, there.st_ino))
            refuse_an_input(path, there, [] if same is None else [same])
            if folder in folders:
                refuse_what_cannot_be_replaced(path, target, there)
                continue
        elif there is None and folder in folders and _may_be_named(target):
            continue
        check_output(path)  # makes a file in the folder for a moment, once
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise OutputError("is no plain file, as a worker sees it; choose another name", path)
        folders.add(folder)
        temporaries.remove_left_marked(folder)
    return sorted(folders)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _may_be_named(target: str) -> bool:
    """Return whether a file that is not there could have the name, which may be too long."""
    try:
        os.lstat(target)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def put_in_place(files: Sequence[StagedFile]) -> None:
    """Give finished outputs their names; a file that has it already is passed over.

    OutputError when one cannot get its name, or is gone; it and those that follow are kept: they are the result of the
    work.
    """
    folders = {os.path.dirname(file.target) for file in files}
    with folders_locked(folders):
        _replace_all(files)
    for folder in folders:
        sync_folder(folder)


def _replace_all(files: Sequence[StagedFile]) -> None:
    """Rename finished files; interrupts wait meanwhile, as in `_rename_all`."""
    for place, file in enumerate(files):
        try:
            os.replace(file.temporary, file.target)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and _has_its_name(file):
                continue
            raise _not_put(file, files[place + 1 :], error) from None
        temporaries.forget(file.temporary)


def _has_its_name(file: StagedFile) -> bool:
    there = _status(file.target)
    return there is not None and (there.st_ino, there.st_size) == file.known_by


def _not_put(file: StagedFile, others: Sequence[StagedFile], error: OSError) -> OutputError:
    """Return what is raised for an output that cannot get its name; it names what is kept only if it is there."""
    kept = [other.temporary for other in others if os.path.lexists(other.temporary)]
    is_there = os.path.lexists(file.temporary)
    if is_there:
        kept.insert(0, file.temporary)
    more = f" (and {counted(len(kept) - 1, 'more file')} likewise)" if kept[1:] else ""
    if is_there:
        return cannot_be_replaced(file.path, error, f"{visible(kept[0])}{more}")
    rest = f"; of the outputs that follow, what was made is kept as {visible(kept[0])}{more}" if kept else ""
    what = f"cannot be written: the finished file {visible(file.temporary)} is gone{rest}"
    return OutputError(f"{what}; start this command again", file.path)


def are_seen(files: Sequence[StagedFile]) -> bool:
    """Return whether this process sees all of these outputs, under their temporary names or in place."""
    return all(os.path.lexists(file.temporary) or _has_its_name(file) for file in files)
