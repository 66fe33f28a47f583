"""Records of CSV and TSV with fields in quotes, which may hold line ends: read by Python's csv."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator

from lmart.errors import DataError
from lmart.formats.documents.delimited_header import BLANKS, TITLES, csv_records
from lmart.formats.documents.letor_diagnostics import INNER_RETURN

LONGEST_RECORD = 1 << 20  # characters of a record of several lines: more must be a quote that was meant as a character


class QuotedRecords:
    """Line and fields of each record of a text; DataError for one that cannot be read.

    text    : whole lines
    format  : 'csv' or 'tsv'
    line    : lines of the input before the text
    fault   : makes the error of a line and a message
    pending : attribute, once the records were iterated over: an unfinished record at the end of the text
    """

    def __init__(self, text: bytes, format: str, line: int, fault: Callable[[int, str], DataError]) -> None:
        self.pending = b""
        self._text = text
        self._format = format
        self._line = line
        self._fault = fault

    def __iter__(self) -> Iterator[tuple[int, list[bytes]]]:
        lines = _Lines(self._text.decode("utf-8", "surrogateescape").split("\n")[:-1])
        reader = csv_records(lines, self._format)
        while lines.begin_record():
            line = self._line + lines.first + 1
            try:
                fields = next(reader)
            except csv.Error as error:
                if message := self._message(error, lines):
                    raise self._fault(line, message) from None
                self.pending = lines.rest().encode("utf-8", "surrogateescape")
                return
            if len(fields) == 1 and fields[0] and not fields[0].strip(BLANKS):
                fields = []  # a line of blanks
            yield line, [field.strip(BLANKS).encode("utf-8", "surrogateescape") for field in fields]

    def _message(self, error: csv.Error, lines: _Lines) -> str | None:
        """Return what is wrong with the current record, None when the text ended within it."""
        if lines.too_long:
            what = f"a quoted field of the record that begins here is not closed within {LONGEST_RECORD}"
            return f"{what} characters; close or double the quote"
        if lines.ended:
            return None
        if "new-line character" in str(error):
            return INNER_RETURN
        return f"cannot be read as {TITLES[self._format]}: {error}; check the quotes"


class _Lines:
    """Lines for csv.reader; it remembers where the current record began, and stops in one that is never closed."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0
        self._length = 0
        self.first = 0  # line of the current record, from 0
        self.ended = False  # more lines were asked for than there are
        self.too_long = False

    def begin_record(self) -> bool:
        """Start a record at the next line; return whether there is one."""
        self.first, self._length = self._next, 0
        return self._next < len(self._lines)

    def rest(self) -> str:
        """Return the lines from the current record on."""
        return "\n".join([*self._lines[self.first :], ""])

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self.too_long = self._next > self.first and self._length > LONGEST_RECORD
        self.ended = self._next == len(self._lines)
        if self.too_long or self.ended:
            raise StopIteration
        line = self._lines[self._next]
        self._next += 1
        self._length += len(line) + 1
        return line + "\n"
