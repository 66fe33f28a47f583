"""Outputs of several processes that appear together: each is finished beside its place, then all are put in place."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lmart.errors import OutputError, counted, visible
from lmart.streams import temporaries
from lmart.streams.common import cannot_be_replaced
from lmart.streams.outputs import AtomicOutput, check_output
from lmart.streams.targets import refuse_an_input, refuse_what_cannot_be_replaced, resolve, sync_folder


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

    def write(self, data: str | bytes) -> None:
        """Write text or bytes, collected to sensible sizes.

        data : text, which is written as UTF-8, or bytes
        """
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
        name = self._keep()
        assert name is not None
        self.staged = StagedFile(self.path, name, self._target, (status.st_ino, status.st_size))


def check_staged(outputs: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Refuse, before any work, outputs that cannot be written or are inputs: OutputError. Return their folders."""
    known: dict[tuple[int, int], str] = {}
    for path in inputs:
        if (status := _status(path)) is not None:
            known.setdefault((status.st_dev, status.st_ino), path)
    folders: set[str] = set()
    by_target: dict[str, str] = {}
    for path in outputs:
        target = resolve(path)
        if (other := by_target.setdefault(target, path)) != path:
            raise OutputError(f"is the same file as {visible(other)}, over a link; remove the link", path)
        there, folder = _status(target), os.path.dirname(target)
        if there is not None and stat.S_ISREG(there.st_mode):
            same = known.get((there.st_dev, there.st_ino))
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
    for place, one in enumerate(files):
        try:
            os.replace(one.temporary, one.target)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and _has_its_name(one):
                continue
            raise _not_put(one, files[place + 1 :], error) from None
        temporaries.forget(one.temporary)
    for folder in {os.path.dirname(one.target) for one in files}:
        sync_folder(folder)


def _has_its_name(file: StagedFile) -> bool:
    there = _status(file.target)
    return there is not None and (there.st_ino, there.st_size) == file.known_by


def _not_put(file: StagedFile, others: Sequence[StagedFile], error: OSError) -> OutputError:
    """Return what is raised for an output that cannot get its name; it tells of what is kept only if it is there."""
    kept = [one.temporary for one in others if os.path.lexists(one.temporary)]
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
    return all(os.path.lexists(one.temporary) or _has_its_name(one) for one in files)
