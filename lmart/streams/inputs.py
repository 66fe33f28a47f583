"""Inputs: files, pipes and standard input; gzip and zstd are recognised by content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol

from lmart.errors import DataError
from lmart.streams.decompression import DecompressedInput
from lmart.streams.raw_input import PrefixedInput, RawInput
from lmart.streams.spool import Spool

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip (as .npz and .xlsx files are)",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x1f\x9d": "compress",
    b"\x04\x22\x4d\x18": "lz4",
}
_MAGICS = {GZIP_MAGIC: "gzip", ZSTD_MAGIC: "zstd", **_FOREIGN}

LARGEST_WHOLE = 1 << 30  # largest decompressed size of an input that is held in memory as a whole
HARMLESS = 1 << 26  # decompressed size up to which any compression ratio is accepted
LARGEST_RATIO = 200  # largest compression ratio above that size; numbers written as text compress far less


class InputStream(Protocol):
    """The bytes of one input, decompressed."""

    path: str

    @property
    def progress(self) -> float:
        """The fraction read so far, 0 if unknown."""

    @property
    def can_read_ahead(self) -> bool:
        """True for plain regular files, which a worker may read while the previous block is parsed.

        False for pipes, which may wait for another program, and for compressed input.
        """

    @property
    def taken(self) -> int:
        """The bytes read so far from the file or pipe itself, before decompression."""

    def read_block(self, view: memoryview) -> int:
        """Read into `view` what is available without waiting, at least one byte, and return how many; 0 at the end.

        DataError when it cannot be read; at the end also when a plain file changed since it was opened.
        """

    def refuse_changed(self) -> None:
        """Raise DataError when it is a plain file that changed since it was opened, or before its end was read."""

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether it is the very file that has the status."""

    def close(self) -> None:
        """Close the input; may be called twice."""


def open_input(path: str, spool: Spool | None = None) -> InputStream:
    """Open a file, pipe or device, or standard input for '-'; gzip and zstd are recognised by content.

    path  : the file; '-': standard input
    spool : keeps a copy of what is read, or replays it in place of the input
    DataError when it cannot be read, or holds some other compression.
    """
    raw = RawInput(path, spool)
    try:
        prefix = b""
        # No longer than it takes: a pipe may hold back its next bytes for long.
        while any(len(prefix) < len(magic) and magic.startswith(prefix) for magic in _MAGICS):
            one = bytearray(max(map(len, _MAGICS)) - len(prefix))
            count = raw.read_some(memoryview(one))
            if not count:
                break
            prefix += one[:count]
        if fault := _fault_of_prefix(prefix):
            raise DataError(fault, path)
        plain = PrefixedInput(raw, prefix)
        if prefix.startswith(GZIP_MAGIC):
            return DecompressedInput(plain, "gzip")
        if prefix.startswith(ZSTD_MAGIC):
            return DecompressedInput(plain, "zstd")
        return plain
    except BaseException:
        raw.close()
        raise


def _fault_of_prefix(prefix: bytes) -> str | None:
    """Return what is wrong with an input that begins so, None if nothing is; it is shorter only if that is all."""
    for magic, kind in _FOREIGN.items():
        if prefix.startswith(magic):
            return f"is compressed with {kind}; decompress it first, or use gzip or zstd"
    if prefix.startswith(GZIP_MAGIC[:1]) and not prefix.startswith(GZIP_MAGIC) and len(prefix) > 1:
        return "looks like gzip data whose beginning is damaged; copy the file again"
    kind = next((kind for magic, kind in _MAGICS.items() if magic.startswith(prefix) and magic != prefix), "")
    if kind and prefix and not (prefix.isascii() and prefix.decode().isprintable()):
        return f"holds only the first bytes of {kind} data; copy the file again"
    return None


def read_pieces(path: str, limit: int | None = None) -> Iterator[bytes]:
    """Yield the content of an input, decompressed, in pieces of up to 1 MiB; DataError as `open_input`.

    path  : the file; '-': standard input
    limit : the most bytes, of what the caller keeps whole in memory; DataError above it, and for a small file that
            holds very much; None: no limit
    """
    stream = open_input(path)
    try:
        size = 0
        buffer = memoryview(bytearray(1 << 20))
        while count := stream.read_block(buffer):
            size += count
            if limit is not None and size > limit:
                raise DataError(f"is larger than {limit} bytes; is it the right file?", path)
            if limit is not None and size > max(HARMLESS, LARGEST_RATIO * stream.taken):
                what = f"is more than {LARGEST_RATIO} times as large as its compressed data"
                raise DataError(f"{what}; is it the right file?", path)
            yield bytes(buffer[:count])
    finally:
        stream.close()


def read_all(path: str, limit: int = LARGEST_WHOLE) -> bytes:
    """Return the whole content, decompressed, of a small input; DataError as `read_pieces`."""
    return b"".join(read_pieces(path, limit))
