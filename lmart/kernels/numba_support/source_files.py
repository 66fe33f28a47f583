"""Digests of the source that machine code is made from, which may be in a zip archive that Python runs."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def source_digest(source: Path) -> str:
    """Return the digest of a file; OSError when it cannot be read.

    source : the file, which may be in an archive
    """
    try:
        content = source.read_bytes()
    except NotADirectoryError:
        archive = _archive_with(source)
        if archive is None:
            raise
        content = _members(archive)[source.relative_to(archive).as_posix()]
    return hashlib.sha256(content).hexdigest()


@cache
def sources_digest(folder: Path) -> str:
    """Return a digest of all Python files below a folder, their names included; OSError when a file cannot be read.

    folder : which may be in an archive
    """
    sources = sorted(folder.rglob("*.py"))
    if not sources and (archive := _archive_with(folder)) is not None:
        below = folder.relative_to(archive).as_posix() + "/"
        sources = [archive / name for name in sorted(_members(archive)) if name.startswith(below)]
    named = [(source.relative_to(folder).as_posix(), source_digest(source)) for source in sources]
    return hashlib.sha256(repr(named).encode()).hexdigest()


def _archive_with(path: Path) -> Path | None:
    """Return the archive that holds a path and its Python files; None without an archive."""
    archive = next((above for above in path.parents if above.is_file()), None)
    if archive is None:
        return None
    members, name = _members(archive), path.relative_to(archive).as_posix()
    return archive if name in members or any(member.startswith(f"{name}/") for member in members) else None


@cache
def _members(archive: Path) -> dict[str, bytes]:
    """Return the Python files of an archive by name; none when it is no archive."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(archive) as opened:
            return {name: opened.read(name) for name in opened.namelist() if name.endswith(".py")}
    except (BadZipFile, NotImplementedError):
        return {}
