"""Trials files: the trials of a tuning run, one JSON object a line, so that it can be interrupted and resumed.

The first line says what the trials belong to. Lines are only ever added, each at once and safe on the disk before the
next trial begins; a last line that a killed run left half written does not count.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from lmart.errors import DataError, OutputError, quote
from lmart.streams.common import cannot_write
from lmart.strict_json import check_numbers, strict_json

FORMAT = "lmart-trials"
VERSION = 1


class TrialsFile:
    """A trials file, open and locked: `with TrialsFile(path, head) as file: file.records; file.append(record)`.

    head    : what the trials belong to, by what a person calls it; a file with another one is refused
    records : attribute: those that the file held
    OutputError when it cannot be opened or written, or another run has it; DataError when it holds something else.
    """

    def __init__(self, path: str, head: Mapping[str, object]) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        self._head = head
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._open()
        except OSError as error:
            self._close()
            raise self._failure(error) from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self._close()

    def append(self, record: Mapping[str, object]) -> None:
        """Add a record; it is on the disk when this returns."""
        try:
            self._write(record)
        except OSError as error:
            raise self._failure(error) from None

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self.path, flags, 0o666)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            raise OutputError("is no plain file, which trials must be kept in; choose another name", self.path)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError("is in use by another run; wait for its end or choose another name", self.path) from None
        if os.pread(self._descriptor, 1, 0) not in (b"", b"{"):  # before a large file is read whole
            raise self._foreign()
        content = self._read()
        *lines, rest = content.split(b"\n")
        if lines:
            self._check_head(lines[0])
            self.records = [self._parsed(line, number) for number, line in enumerate(lines[1:], 2)]
        elif not self._line({"format": FORMAT}).startswith(rest[:24]):
            raise self._foreign()
        if rest:
            os.ftruncate(self._descriptor, len(content) - len(rest))
        if not lines:
            self._write({"format": FORMAT, "version": VERSION, **self._head})

    def _read(self) -> bytes:
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read()

    def _write(self, record: Mapping[str, object]) -> None:
        size = os.fstat(self._descriptor).st_size
        view = memoryview(self._line(record))
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise

    @staticmethod
    def _line(record: Mapping[str, object]) -> bytes:
        return (json.dumps(record, allow_nan=False) + "\n").encode("ascii")

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            value = strict_json(line)
            check_numbers(value)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise DataError(f"{quote(line)} is no trial; delete the line or choose another name", self.path, number)
        return value

    def _check_head(self, line: bytes) -> None:
        try:
            found = strict_json(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self._foreign()
        if found.get("version") != VERSION:
            raise DataError("holds trials of another version of lmart; choose another name", self.path, 1)
        wanted = json.loads(json.dumps(self._head))
        other = [name for name, value in wanted.items() if name not in found or found[name] != value]
        if other:
            what = " and ".join(", ".join(other).rsplit(", ", 1))
            raise DataError(
                f"holds trials with other {what}; run the command that made them, or choose another name", self.path, 1
            )

    def _foreign(self) -> DataError:
        return DataError("holds no trials; choose another name", self.path)

    def _failure(self, error: OSError) -> OutputError:
        return cannot_write(error, self.path)

    def _close(self) -> None:
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
