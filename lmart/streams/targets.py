"""The target of an output: resolves its name, and checks before any work whether it can be written."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress

from lmart.errors import OutputError, quote, visible
from lmart.streams import temporaries
from lmart.streams.common import reason

MOST_LINKS = 40  # as the kernel
_asking = threading.Lock()


def standard_descriptor(path: str) -> int | None:
    """Return the number of the open descriptor that a name such as /dev/stdout or /dev/fd/5 stands for; -1 for none."""
    if path in ("/dev/stdout", "/dev/stderr"):
        return 1 if path == "/dev/stdout" else 2
    folder, number = os.path.split(path)
    if folder in ("/dev/fd", "/proc/self/fd"):
        return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
    return None


def resolve(path: str) -> str:
    """Return the absolute name of the file that `path` leads to over links.

    OutputError for a link made by another user in a folder like /tmp: it could point to any file of this user.
    """
    name = path
    for _ in range(MOST_LINKS):
        try:
            link = os.lstat(name)
            if not stat.S_ISLNK(link.st_mode):
                break
            if is_of_another(link, os.stat(os.path.dirname(name) or ".")):
                what = "is a link that another user made in a folder where all may write"
                raise OutputError(f"{what}; give the name of the file itself", path)
            name = os.path.join(os.path.dirname(name), os.readlink(name))
        except OSError:
            break
    return os.path.realpath(path)


def is_of_another(there: os.stat_result, folder: os.stat_result) -> bool:
    """Return whether a file in a sticky folder like /tmp belongs neither to this user nor to the folder's owner."""
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    return bool(shared) and there.st_uid not in (os.geteuid(), folder.st_uid)


def umask() -> int:
    """Return the umask, which can only be read by setting it: one thread at a time."""
    with _asking:
        mask = os.umask(0)
        os.umask(mask)
    return mask


def sync_folder(folder: str) -> None:
    """Wait until the names in a folder are on the disk, as far as the system can tell."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_target(path: str, inputs: Sequence[str], appended: bool) -> None:
    """Raise OutputError when nothing can be written, or appended, to `path`, or it is one of the inputs."""
    descriptor = 1 if path == "-" else standard_descriptor(path)
    if descriptor is not None:
        _check_descriptor(path, descriptor, inputs)
        return
    if not path:
        raise OutputError("the name of the output is empty; give a file name or '-'")
    if "\0" in path:
        raise OutputError("cannot be written: the name holds a NUL character; choose another name", path)
    target = resolve(path)
    try:
        there: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        there = None
    except OSError as error:
        raise _refusal(path, reason(error)) from None
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise OutputError("is a folder; give a file name", path)
    if there is not None:
        refuse_an_input(path, there, inputs)
    if there is not None and (appended or not stat.S_ISREG(there.st_mode)):
        if not os.access(target, os.W_OK):
            raise _refusal(path, "permission denied")
        return
    if path.endswith("/"):
        raise OutputError("ends in '/' but is no folder; give a file name", path)
    _check_folder(path, os.path.dirname(target))
    if there is not None:
        refuse_what_cannot_be_replaced(path, target, there)
    try:
        descriptor, name = temporaries.create_named(target)
    except OSError as error:
        raise _refusal(path, reason(error)) from None
    temporaries.remove(name)
    os.close(descriptor)


def _refusal(path: str, why: str) -> OutputError:
    return OutputError(f"cannot be written: {why}; choose another place", path)


def _check_folder(path: str, folder: str) -> None:
    if not os.path.isdir(folder):
        raise OutputError(f"cannot be written: there is no folder {quote(folder)}; make it first", path)
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        raise _refusal(path, f"{quote(folder)} is on a file system that is mounted read-only")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refusal(path, f"no permission to write in {quote(folder)}")


def refuse_what_cannot_be_replaced(path: str, target: str, there: os.stat_result) -> None:
    """Refuse a file which the rename at the end would fail on, though its folder can be written."""
    folder = os.stat(os.path.dirname(target))
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, there.st_uid, folder.st_uid):
        what = "cannot be replaced: it belongs to another user, and its folder protects such files"
        raise OutputError(f"{what}; choose another name", path)
    if target in _mount_points():
        what = "cannot be replaced: it is mounted there by itself, as by `docker run -v`"
        raise OutputError(f"{what}; mount its folder, or choose another name", path)


def _mount_points() -> set[str]:
    """Return where something is mounted; nothing when the system does not tell."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            fields = [line.split(b" ", 5) for line in file]
    except OSError:
        return set()
    points = (parts[4] for parts in fields if len(parts) == 6)
    return {os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), point)) for point in points}


def _check_descriptor(path: str, descriptor: int, inputs: Sequence[str]) -> None:
    try:
        closed = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except (OSError, ValueError):
        closed = True
    called = "standard output" if path == "-" else path
    if closed:
        raise OutputError("is not open for writing; choose another place", called)
    refuse_an_input(called, os.fstat(descriptor), inputs)


def refuse_an_input(path: str, there: os.stat_result, inputs: Sequence[str]) -> None:
    """Raise OutputError when an output with the status `there` is one of the inputs."""
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
