"""Files that are being written: without a name where the system can give one later, else under a temporary name.

A file without a name is gone with its process, however that ends. It gets the temporary name only for the moment
before it is renamed, as a link cannot replace a file. NFS, FAT and others know no files without a name: there a process
that is killed outright leaves its temporary file behind. A mark, at most 32 letters and digits, becomes part of names.
"""

from __future__ import annotations

import os
from contextlib import suppress

_names: set[str] = set()  # of temporary files that there are, or may be


def create(target: str, mark: str = "") -> tuple[int, str | None]:
    """Open a new file for writing in the folder of `target`; return the descriptor, and the name if it has one."""
    if _can_be_named_later(target):
        return _without_name(target), None
    return create_named(target, mark)


def create_named(target: str, mark: str = "") -> tuple[int, str]:
    """Open a new file for writing in the folder of `target`; return the descriptor and the temporary name."""
    while True:
        # On the list before it exists: a signal may end the process at any moment.
        name = _new_name(target, mark)
        try:
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), name
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


def _new_name(target: str, mark: str) -> str:
    folder, name = os.path.split(os.fsencode(target))
    # Bytes: a name is limited to 255 bytes, and may be no valid UTF-8.
    ending = f".{mark}{os.urandom(8).hex()}.tmp".encode()
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
