"""gzip and zstd inputs, decompressed by a thread of their own."""

from __future__ import annotations

import os
import queue
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from lmart.errors import DataError
from lmart.streams.common import zstandard
from lmart.threads import start_thread

if TYPE_CHECKING:
    from lmart.streams.inputs import RawInput

PieceOrEnd: TypeAlias = tuple[bytes, float] | BaseException | None  # with the share read by then; None: the end

_PIECE = 1 << 18  # compressed bytes taken at a time
_LARGEST_PIECE = 1 << 20  # decompressed bytes handed on at a time
# The longest slice of a zstd frame decompressed at once: four bytes can stand for 128 KiB.
_SHORT_SLICE, _LONG_SLICE = 1 << 6, 1 << 12


class DecompressedInput:
    """A gzip or zstd input, decompressed by a thread that works ahead by a few megabytes; an `InputStream`."""

    can_read_ahead = False

    def __init__(self, raw: RawInput, kind: str) -> None:
        """Start to decompress `raw`, which holds what `kind` says: 'gzip' or 'zstd'."""
        self.path = raw.path
        self._raw = raw
        self._pieces: queue.Queue[PieceOrEnd] = queue.Queue(maxsize=8)
        self._progress = 0.0
        self._piece = memoryview(b"")
        self._ended = False
        self._closed = False
        if kind == "zstd":
            zstandard(DataError, self.path)
        self._decompressed = gunzip(raw) if kind == "gzip" else unzstd(raw)
        self._has_thread = start_thread(self._work)

    @property
    def progress(self) -> float:
        """The fraction of the compressed data that was read for what was handed out so far."""
        return self._progress

    @property
    def taken(self) -> int:
        """The compressed bytes read so far."""
        return self._raw.taken

    def refuse_changed(self) -> None:
        """Raise DataError when it is a plain file that changed since it was opened."""
        self._raw.refuse_changed()

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether this is the very file that has the status."""
        return self._raw.is_file(status)

    def _work(self) -> None:
        more = True
        while more and not self._closed:
            piece = self._decompress_next()
            more = isinstance(piece, tuple)
            if not self._closed:
                self._pieces.put(piece)
            del piece  # a fault is to be forgotten with its reader
        self._raw.close()

    def _decompress_next(self) -> PieceOrEnd:
        """Return the next piece and the share read by then, None at the end, or the fault to raise in `read_block`."""
        try:
            for piece in self._decompressed:
                return piece, self._raw.progress
        except BaseException as error:
            try:
                self._raw.refuse_changed()
            except DataError as changed:  # which explains damage better
                return changed
            finally:
                self._raw.close()
            return error
        self._raw.close()
        return None

    def read_block(self, view: memoryview) -> int:
        """Hand out what is decompressed, as `InputStream` says; DataError after what came before damage."""
        filled = 0
        while filled < len(view):
            if not self._piece and not self._next_piece(wait=not filled):
                break
            count = min(len(self._piece), len(view) - filled)
            view[filled : filled + count] = self._piece[:count]
            self._piece = self._piece[count:]
            filled += count
        return filled

    def _next_piece(self, wait: bool) -> bool:
        """Take the next piece, without `wait` only one that is there; return whether there is one. Its fault is raised.

        Without `wait` something is to be handed out first, so that a fault stays in the queue.
        """
        if self._ended or (not wait and self._pieces.empty()):
            return False
        piece = self._pieces.get() if self._has_thread else self._decompress_next()
        if isinstance(piece, tuple):
            self._piece, self._progress = memoryview(piece[0]), piece[1]
            return True
        if piece is not None and not wait:
            self._pieces = queue.Queue()
            self._pieces.put(piece)
            return False
        self._ended = True
        if piece is not None:
            try:
                raise piece
            finally:
                del piece  # else the fault holds this frame, and this frame the fault
        return False

    def close(self) -> None:
        """Close the input, and let the thread end."""
        self._closed = True
        if not self._has_thread:
            self._raw.close()
        with suppress(queue.Empty):
            while True:  # wakes a thread that waits for room
                self._pieces.get_nowait()


def _pieces_of(raw: RawInput, size: int) -> Iterator[bytes]:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while count := raw.read_block(view):
        yield bytes(view[:count])


def gunzip(raw: RawInput) -> Iterator[bytes]:
    """Yield what the members of a gzip stream hold, one after the other; zero bytes after the last are padding."""
    member = zlib.decompressobj(wbits=31)
    started = inside = False
    for compressed in _pieces_of(raw, _PIECE):
        piece = compressed if inside or not started else compressed.lstrip(b"\0")
        while piece:
            started = inside = True
            try:
                out = member.decompress(piece, _LARGEST_PIECE)
            except zlib.error as error:
                what = str(error).rsplit(": ", 1)[-1]
                raise DataError(f"the gzip data is damaged ({what}); copy the file again", raw.path) from None
            if out:
                yield out
            piece = member.unconsumed_tail
            if member.eof:
                piece = member.unused_data.lstrip(b"\0")
                member = zlib.decompressobj(wbits=31)
                inside = False
    if inside:
        raise DataError("the gzip data is cut off before its end; copy the file again", raw.path)


def unzstd(raw: RawInput) -> Iterator[bytes]:
    """Yield what the frames of a zstd stream hold, one after the other."""
    package = zstandard(DataError, raw.path)
    frame: Any = None
    length = _LONG_SLICE
    parts: list[bytes] = []
    held = 0
    for compressed in _pieces_of(raw, 1 << 15):
        at = 0
        while at < len(compressed):
            if frame is None:
                frame = package.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            piece = compressed[at : at + length]
            at += len(piece)
            try:
                out = frame.decompress(piece)
            except package.ZstdError as error:
                what = str(error).rsplit(": ", 1)[-1]
                raise DataError(f"the zstd data is damaged ({what}); copy the file again", raw.path) from None
            length = _SHORT_SLICE if len(out) > _LARGEST_PIECE else min(2 * length, _LONG_SLICE)
            if frame.eof:
                at -= len(frame.unused_data)
                frame = None
            parts.append(out)
            held += len(out)
            if held >= _LARGEST_PIECE:
                yield b"".join(parts)
                parts, held = [], 0
        if held:
            yield b"".join(parts)
            parts, held = [], 0
    if frame is not None:
        raise DataError("the zstd data is cut off before its end; copy the file again", raw.path)
