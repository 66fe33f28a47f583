"""Files that are being written: without a name where the system can give one later, else under a temporary name.

A file without a name is gone with its process, however that ends. It gets the temporary name only for the moment
before it is renamed, as a link cannot replace a file. NFS, FAT and others know no files without a name: there a process
that is killed outright leaves its temporary file behind, until an output of the same name is written again. Files are
locked while they are written, by which those that were left behind are known.

A mark, at most 32 letters and digits, becomes part of names: whoever gives it removes these files, which may be
finished, and so no longer be written by anyone. Who writes one keeps a file .lmart.MARK.tmp beside it locked.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RANDOM = 8  # bytes, written as hexadecimal digits
_ENDING = re.compile(rb"\.[0-9a-f]{%d}\.tmp" % (2 * _RANDOM))
_OF_A_MARK = re.compile(r"\.lmart\.(\w{32})\.tmp")
KEPT = ".kept"  # in place of .tmp, of files that users are told of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_names: set[str] = set()  # of temporary files that there are, or may be
_held: dict[tuple[str, str], int] = {}  # descriptors of the files that are locked for a mark, by folder and mark
_holding = threading.Lock()


def create(target: str, mark: str = "") -> tuple[int, str | None]:
    """Open a new file for writing in the folder of `target`; return the descriptor, and the name if it has one.

    Without a mark, what killed processes left of this target is deleted first. With one, the files that have it are
    safe from `remove_left_marked` from now on, until `let_go` or the end of this process.
    """
    if mark:
        _hold(os.path.dirname(target), mark)
    else:
        _remove_left(target)
    if _can_be_named_later(target):
        descriptor = _without_name(target)
        _lock(descriptor)
        return descriptor, None
    return create_named(target, mark)


def create_named(target: str, mark: str = "") -> tuple[int, str]:
    """Open a new file for writing in the folder of `target`; return the descriptor and the temporary name."""
    while True:
        # On the list before it exists: a signal may end the process at any moment.
        name = _new_name(target, mark)
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if _lock(descriptor) and _is_named(descriptor, name):
                return descriptor, name
            os.close(descriptor)  # another process has just taken it for a file that was left behind
            remove(name)
        except FileExistsError:
            forget(name)
        except OSError:
            forget(name)
            raise
        except BaseException:
            remove(name)
            raise


def give_name(descriptor: int, target: str, mark: str = "") -> str:
    """Give a file without a name a temporary one in the folder of `target`, and return it."""
    name = _new_name(target, mark)
    try:
        # A descriptor of a folder makes Python call linkat, which follows the link in /proc; both names are absolute.
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=descriptor, follow_symlinks=True)
    except OSError:
        forget(name)
        raise
    return name


def keep(name: str) -> str:
    """Give a finished file a name that it stays under, and return that."""
    stays = name.removesuffix(".tmp") + KEPT
    try:
        os.rename(name, stays)
    except OSError:
        stays = name
    forget(name)
    return stays


def forget(name: str) -> None:
    """Take a name from the list: the file has its final name, or is to stay."""
    _names.discard(name)


def remove(name: str) -> None:
    """Delete a temporary file."""
    with suppress(OSError):
        os.unlink(name)
    forget(name)


def remove_all() -> None:
    """Delete the temporary files that a signal kept from being deleted; for the end of the process."""
    for name in list(_names):
        remove(name)


def remove_marked(folder: str, mark: str) -> None:
    """Delete the temporary files with a mark, whoever made them; a folder that cannot be read has none."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(".") and name.endswith(".tmp") and f".{mark}" in name:
                remove(os.path.join(folder, name))
    let_go(folder, mark)


def let_go(folder: str, mark: str) -> None:
    """Let the files with a mark in a folder stay as they are: nobody puts them in place, nor sweeps them, any more."""
    remove(_of_mark(folder, mark))
    with _holding:
        descriptor = _held.pop((folder, mark), None)
    if descriptor is not None:
        os.close(descriptor)


def let_go_all() -> None:
    """Delete the files that this process alone keeps locked for marks; for its end."""
    for (folder, mark), descriptor in list(_held.items()):  # others may still write
        with suppress(OSError):  # of a mark that another process keeps as well
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(_of_mark(folder, mark))


def remove_left_marked(folder: str) -> None:
    """Delete the temporary files with marks for which no process keeps a file of this user locked any more."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if found := _OF_A_MARK.fullmatch(name):
                with suppress(OSError), _left(os.fsencode(os.path.join(folder, name))):
                    remove_marked(folder, found[1])


def _of_mark(folder: str, mark: str) -> str:
    return os.path.join(folder, f".lmart.{mark}.tmp")


def _hold(folder: str, mark: str) -> None:
    """Keep the file of a mark locked, with other processes; where that cannot be, nobody knows what was left behind."""
    name = _of_mark(folder, mark)
    with _holding, suppress(OSError):
        while (folder, mark) not in _held:
            descriptor = os.open(name, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if _is_named(descriptor, name):
                    _held[folder, mark] = descriptor
            finally:
                if (folder, mark) not in _held:  # as when another process has just taken it for one left behind
                    os.close(descriptor)


def _remove_left(target: str) -> None:
    """Delete the temporary files of this target, of this user, that no process writes any more."""
    folder, name = os.path.split(os.fsencode(target))
    start = b"." + name[:200]
    with suppress(OSError):
        for found in os.listdir(folder):
            if found.startswith(start) and _ENDING.fullmatch(found, len(start)):
                path = os.path.join(folder, found)
                with suppress(OSError), _left(path):
                    os.unlink(path)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Make a folder for temporary files, which is deleted at the end; first delete those that killed processes left.

    prefix : of its name, and of theirs
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            _remove_unlocked_folder(left)
    folder, descriptor = _new_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _new_folder(prefix: str) -> tuple[str, int]:
    """Make a temporary folder and lock it; return its name and the descriptor that the lock belongs to."""
    while True:
        folder = tempfile.mkdtemp(prefix=prefix)
        with suppress(FileNotFoundError):  # another process has just taken it for one that was left behind
            descriptor = os.open(folder, _FOLDER)
            if _lock(descriptor) and _is_named(descriptor, folder):
                return folder, descriptor
            os.close(descriptor)


def _remove_unlocked_folder(folder: Path) -> None:
    descriptor = os.open(folder, _FOLDER)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


@contextmanager
def _left(name: bytes) -> Iterator[None]:
    """Keep a file locked that was left behind; OSError when it is another user's, no file, or still locked."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file that is to be written; return whether nobody else has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where no file is known as left behind
        pass
    return True


def _is_named(descriptor: int, name: str) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.stat(name), os.fstat(descriptor))
    return False


def _new_name(target: str, mark: str) -> str:
    folder, name = os.path.split(os.fsencode(target))
    # Bytes: a name is limited to 255 bytes, and may be no valid UTF-8.
    ending = f".{mark}{os.urandom(_RANDOM).hex()}.tmp".encode()
    made = os.fsdecode(os.path.join(folder, b"." + name[:200] + ending))
    _names.add(made)
    return made


def _without_name(target: str) -> int:
    return os.open(os.path.dirname(target), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)


def _can_be_named_later(target: str) -> bool:
    """Try it with an empty file: better now than when the work is done."""
    try:
        descriptor = _without_name(target)
    except (OSError, AttributeError):  # the latter where the system is not Linux
        return False
    try:
        remove(give_name(descriptor, target))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
