"""SHA-256 of inputs, computed while they are read: what a run read can be told from its report."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

PIECE = 1 << 20


class Digest(NamedTuple):
    """What was read of an input: its bytes, before decompression, and their SHA-256 in hexadecimal digits."""

    size: int
    sha256: str


class _Hash(Protocol):
    """A hash that is being computed."""

    def update(self, data: memoryview, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """Return the hash of all bytes so far."""


@dataclass
class InputDigests:
    """The digests of inputs that were read to their ends, by path; of an input that is read again, the first."""

    found: dict[str, Digest] = field(default_factory=dict)

    def of(self, paths: Iterable[str]) -> dict[str, Digest | None]:
        """Return the digest of each of these inputs.

        A file that was not read from its beginning to its end here, as those that workers read, is read for it; None:
        it is not here, or can be read only once.
        """
        return {path: self.found.get(path) or _of_file(path) for path in paths}


class Recorder:
    """Computes the digest of one input while its bytes pass."""

    def __init__(self, path: str, digests: InputDigests) -> None:
        self._path = path
        self._digests = digests
        self._hash: _Hash = hashlib.sha256()
        self._size = 0

    def add(self, piece: memoryview) -> None:
        """Add the next bytes."""
        self._hash.update(piece)
        self._size += len(piece)

    def end(self) -> None:
        """Keep the digest: the input was read to its end."""
        self._digests.found.setdefault(self._path, Digest(self._size, self._hash.hexdigest()))


_active: list[InputDigests] = []  # of the process: inputs are opened in many places, and read by several threads


@contextmanager
def recording_digests(digests: InputDigests) -> Iterator[None]:
    """Add the digests of all inputs that are read meanwhile."""
    _active.append(digests)
    try:
        yield
    finally:
        _active.remove(digests)


def recorder_of(path: str) -> Recorder | None:
    """Return what computes the digest of an input that is opened; None when none is wanted, or it is known."""
    if not _active or path in _active[-1].found:
        return None
    return Recorder(path, _active[-1])


def _of_file(path: str) -> Digest | None:
    """Return the digest of a file; None when it is none, or cannot be read."""
    try:
        if path == "-" or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            found, size = hashlib.sha256(), 0
            while piece := file.read(PIECE):
                found.update(piece)
                size += len(piece)
    except (OSError, ValueError):
        return None
    return Digest(size, found.hexdigest())
