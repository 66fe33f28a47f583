"""The folders and files in which machine code is kept between runs, and digests of the source that it is made from.

Loading machine code means to run it (and it is stored as a pickle), so it is only loaded from files that nobody but
root and this user can have written. Processes that start together compile in turn: they lock a file in the folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import signal
import stat
import time
from collections.abc import Iterator
from functools import cache
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from lmart.kernels import messages

DIGEST_SIZE = hashlib.sha256().digest_size
LARGEST_FILE = 1 << 26  # bytes; the machine code of a kernel takes about 1 << 16
NEW = ".new"  # ending of the name of a file while it is written
LOCK_NAME = "lmart-compiling.lock"
LONGEST_WAIT = 60.0  # seconds that a process waits for others to compile, all its kernels together
QUIET_WAIT = 2.0  # seconds of waiting before it is said
OWN_FOLDER = "set NUMBA_CACHE_DIR to a folder that only you can write to"


class NotTrusted(Exception):
    """A file or folder that somebody else may have written; the message is a clause that says why."""


def candidate_folders(package: Path, named: str) -> Iterator[tuple[Path, int]]:
    """Yield the folders that may hold machine code, best first, and the mode to make each with.

    package : the folder of the kernels' source      named : the value of NUMBA_CACHE_DIR, may be empty
    """
    if named:
        yield Path(named, "lmart"), 0o755
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if user.is_absolute() and user.parent.is_dir():  # a home that does not exist is not made
        yield user / "lmart", 0o700  # before the next, as it serves all copies of the same source
    yield package / "__pycache__", 0o755
    import tempfile

    with contextlib.suppress(OSError):  # no folder for temporary files
        yield Path(tempfile.gettempdir(), f"lmart-kernels-{os.getuid()}"), 0o700


@cache
def writable_folder(package: Path, named: str) -> Path | None:
    """Return the folder to keep machine code in, made if need be; None without a writable folder.

    It belongs to this user: root leaves no files in the home of somebody else. Arguments as in `candidate_folders`.
    """
    for folder, mode in candidate_folders(package, named):
        with contextlib.suppress(OSError, NotTrusted):
            resolved = trusted(folder)
            if not resolved.is_dir():
                _make(resolved, mode)
                resolved = trusted(folder)
            if resolved.stat().st_uid == os.geteuid() and os.access(resolved, os.W_OK | os.X_OK):
                return resolved
    return None


@cache
def readable_folders(package: Path, named: str) -> tuple[Path, ...]:
    """Return the folders to look for machine code in, best first, which may hold what an administrator compiled.

    Only the one of NUMBA_CACHE_DIR when it can be written to. Arguments as in `candidate_folders`.
    """
    first = writable_folder(package, named)
    folders = []
    for place, (folder, _) in enumerate(candidate_folders(package, named)):
        try:
            resolved = trusted(folder)
        except NotTrusted as objection:
            if named and place == 0:  # of the others, users need not know
                messages.warning(f"machine code in '{folder}' is not used: {objection}; {OWN_FOLDER}")
            continue
        except OSError:
            continue
        if named and place == 0 and resolved == first:
            return (resolved,)
        folders.append(resolved)
    return tuple(folders)


def trusted(folder: Path) -> Path:
    """Return the path of a folder with the links above it resolved; it need not exist yet.

    NotTrusted unless it belongs to root or this user and nobody else can write to it, nor replace it through one of
    the folders above it: those belong to root, to this user or to the owner of '/', and have the sticky bit if others
    can write to them.
    """
    resolved = Path(os.path.realpath(folder.parent), folder.name)
    # Root of a user namespace may be shown as nobody.
    owners = {0, os.geteuid(), os.stat("/").st_uid}
    for above in resolved.parents:
        try:
            status = above.stat()
        except FileNotFoundError:
            continue
        if status.st_uid not in owners:
            raise NotTrusted(f"'{above}' belongs to another user")
        if _others_can_write(status) and not status.st_mode & stat.S_ISVTX:
            raise NotTrusted(f"others can write to '{above}'")
    with contextlib.suppress(FileNotFoundError):
        status = resolved.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotTrusted("it is no folder")
        _check_owner(status)
    return resolved


def _check_owner(status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise NotTrusted("it belongs to another user")
    if _others_can_write(status):
        raise NotTrusted("others can write to it")


def _others_can_write(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid)


@cache
def _is_private_group(group: int) -> bool:
    """Return whether a group holds this user alone, as on systems that give each user a group and set umask to 002."""
    import grp
    import pwd

    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    private = user.pw_uid != 0 and user.pw_gid == group and user.pw_name == members.gr_name
    return private and set(members.gr_mem) <= {user.pw_name}


def _make(folder: Path, mode: int) -> None:
    """Make a folder and those above it that are missing, all with this mode."""
    if not folder.parent.is_dir():
        _make(folder.parent, mode)
    with contextlib.suppress(FileExistsError):  # by another process
        folder.mkdir(mode)


def read_code(path: Path) -> bytes | None:
    """Return what `write_code` wrote to a file; None when the file is damaged, cut off, or was that of another name.

    FileNotFoundError without a file; NotTrusted when it is no regular file, or others may have written it.
    """
    # A FIFO in its place must not be waited for, nor a link be followed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            raise NotTrusted("it is no file that lmart wrote")
        _check_owner(status)
        content = file.read()
    payload = content[DIGEST_SIZE:]
    return payload if content[:DIGEST_SIZE] == _digest(path.name, payload) else None


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Let no signal of this thread end or interrupt what must be done as a whole; they are answered afterwards."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:  # already here: the call itself raises for a signal that came before it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def write_code(path: Path, payload: bytes) -> None:
    """Write a file as a whole, in place of an older file, for `read_code`; OSError when that fails.

    A file that another process is writing is left to that one; what a killed process left of it is written over.
    """
    temporary = path.with_name(path.name + NEW)
    flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    # A signal that ends the process would leave a part of a file.
    with held_signals(), open(temporary, "r+b", opener=lambda name, _: os.open(name, flags, 0o600)) as file:
        if not _is_ours(file, temporary):
            return
        try:
            file.truncate()
            file.write(_digest(path.name, payload) + payload)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


def _is_ours(file: BinaryIO, name: Path) -> bool:
    """Lock a file; return whether no other process writes it, nor has given it another name by now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(name.stat(), os.fstat(file.fileno()))
    return False


def _digest(name: str, payload: bytes) -> bytes:
    # The name stands for the kernel and its signature: a file copied over another must not be taken for it.
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


class LockFile(FileIO):
    """The open file that is locked, which is closed with the last variable that holds it, as at an interrupt."""

    __del__ = FileIO.close


class Turn:
    """The turn to compile into a folder: the lock of a file there, which ends with this object, or with the process."""

    _locked: LockFile | None = None

    def take(self, folder: Path) -> bool:
        """Wait until no other process compiles into the folder, and return True; it stays so until `end`.

        False when the turn is taken already, when the file cannot be locked, or when this process has waited for
        LONGEST_WAIT, in all its turns: whoever holds the lock may have been stopped.
        """
        if self._locked is not None:
            return False
        with contextlib.suppress(OSError):  # a file system without locks
            file = _open_lock(folder)
            if _wait_for(file, folder):
                self._locked = file
        return self._locked is not None

    def end(self) -> None:
        """Let other processes compile."""
        if self._locked is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self._locked, fcntl.LOCK_UN)  # closing is not enough if a fork has a copy
            self._locked = None  # which closes it


class _Waited:
    """How long this process has waited for others, in all."""

    seconds = 0.0


def _wait_for(file: LockFile, folder: Path) -> bool:
    """Lock the file of a folder as soon as no other process does; False, with a warning, after LONGEST_WAIT."""
    start = time.monotonic()
    earlier = _Waited.seconds
    while not _lock(file):
        if _Waited.seconds >= LONGEST_WAIT:
            messages.warning(
                f"another lmart has been compiling into '{folder}' for {LONGEST_WAIT:.0f} s, so this one compiles by "
                "itself; end the other if it hangs"
            )
            return False
        time.sleep(0.02)  # not a blocking call, which a signal could not end
        _Waited.seconds = earlier + time.monotonic() - start
        if _Waited.seconds >= QUIET_WAIT:
            messages.notice("waiting for another lmart that is compiling")
    return True


def _lock(file: LockFile) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_lock(folder: Path) -> LockFile:
    """Open the file to lock, which nobody but this user can open: whoever can read a file can also lock it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    file = LockFile(folder / LOCK_NAME, "r+", opener=lambda path, _: os.open(path, flags, 0o600))
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError
    if stat.S_IMODE(status.st_mode) != 0o600:
        os.fchmod(file.fileno(), 0o600)
    return file


def lock_at_once(folder: Path) -> LockFile | None:
    """Return an open file that keeps other processes from compiling into the folder; None when one does so already."""
    with contextlib.suppress(OSError):
        file = _open_lock(folder)
        if _lock(file):
            return file
    return None


@cache
def source_digest(source: Path) -> str:
    """Return the digest of a file, which may be in a zip archive that Python runs; OSError when it cannot be read."""
    try:
        content = source.read_bytes()
    except NotADirectoryError:
        archive = _archive_above(source)
        name = source.relative_to(archive).as_posix() if archive else ""
        if archive is None or name not in _members(archive):
            raise
        content = _members(archive)[name]
    return hashlib.sha256(content).hexdigest()


@cache
def sources_digest(folder: Path) -> str:
    """Return a digest of all Python files below a folder, names included; OSError when there is none to read."""
    sources = sorted(folder.rglob("*.py"))
    if not sources and (archive := _archive_above(folder)) is not None:
        below = folder.relative_to(archive).as_posix() + "/"
        sources = [archive / name for name in sorted(_members(archive)) if name.startswith(below)]
    if not sources:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    named = [(source.relative_to(folder).as_posix(), source_digest(source)) for source in sources]
    return hashlib.sha256(repr(named).encode()).hexdigest()


def _archive_above(path: Path) -> Path | None:
    return next((above for above in path.parents if above.is_file()), None)


@cache
def _members(archive: Path) -> dict[str, bytes]:
    """Return the Python files of an archive by name; none when it is no archive."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(archive) as opened:
            return {name: opened.read(name) for name in opened.namelist() if name.endswith(".py")}
    except (BadZipFile, NotImplementedError):
        return {}
