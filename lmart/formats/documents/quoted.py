"""What Python's csv reads of CSV and TSV: the header, and records with fields in quotes, which may hold line ends."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from lmart.data.feature_names import has_control
from lmart.errors import DataError, quote
from lmart.formats.documents.column_names import says_columns
from lmart.formats.documents.diagnostics import INNER_RETURN
from lmart.formats.read_options import ReadOptions

DELIMITERS = {"csv": ",", "tsv": "\t"}
TITLES = {"csv": "CSV", "tsv": "TSV"}
BLANKS = " \t\r"  # the same for quoted and plain text: other white space belongs to an id
LONGEST_FIELD = 2**31 - 1  # characters: more than a block of text has
_LETOR = re.compile(r"(^|\s)qid:\S|^\S+\s+[0-9]+:\S")
LONGEST_RECORD = 1 << 20  # characters of a record of several lines: more must be a quote that was meant as a character


def csv_records(lines: Iterable[str], format: str) -> Iterator[list[str]]:
    """Return the fields of each record, of any length, as Python's csv reads them."""
    # Python's csv has a single limit for all threads of the process, so it is raised once and never set back.
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    return csv.reader(lines, delimiter=DELIMITERS[format], strict=True)


def header_names(line: bytes, format: str, options: ReadOptions, path: str, number: int) -> list[str]:
    """Return the names of the columns; DataError for what cannot be a header, or shows another format or separator."""

    def refusal(message: str) -> DataError:
        return DataError(message, path, number)

    if b"\0" in line or b"\r" in line.rstrip(b"\r\n"):
        message = "the header holds a NUL or a carriage return; convert the line ends, or copy the file again"
        raise refusal(message)
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        fields = next(csv_records([text], format))
    except UnicodeDecodeError:
        raise refusal("the header is not valid UTF-8; convert the file to UTF-8") from None
    except csv.Error as error:
        if "end of data" in str(error):
            message = "a name of the header is in quotes that are not closed in the line; close the quotes, or rename"
            raise refusal(message) from None
        raise refusal(f"the header cannot be read as {TITLES[format]}: {error}") from None
    names = [field.strip(BLANKS) for field in fields]
    names = [name if has_control(name) else name.strip() for name in names]
    if fault := _foreign_header(text.strip(), names, format, options):
        raise refusal(fault)
    return names


def _foreign_header(text: str, names: Sequence[str], format: str, options: ReadOptions) -> str | None:
    """Return the fault of a first line that shows another separator or format, None if it shows none."""
    if text.lower().startswith("sep=") and len(text) <= 5:
        return f"the line {quote(text)} is for Excel alone; take it out, so that the header comes first"
    if names[0].startswith("#") and not says_columns(names[:1], options):
        if says_columns([names[0].lstrip("# \t")], options):
            return f"the header begins with {quote(names[0])}; take out the '#'"
        if not says_columns(names[1:], options):
            return f"the line {quote(text)} is a comment, which {TITLES[format]} does not have; take it out"
    if len(names) > 1 or says_columns(names, options):
        return None
    if _LETOR.search(text):
        return "the line is LETOR text, not a header; name the file .svm, or convert it with --from letor"
    own = "','" if format == "csv" else "tabs"
    for name, sign in DELIMITERS.items():
        if sign != DELIMITERS[format] and sign in text:
            shown = "','" if name == "csv" else "tabs"
            what = f"the names are separated by {shown}, not by {own}"
            return f"{what}; name the file .{name}, or convert it with --from {name}"
    for sign in (";", "|", " "):
        if sign in text and (sign != " " or says_columns(text.split(), options)):
            shown = quote(sign) if sign != " " else "blanks"
            return f"the names are separated by {shown}, not by {own}; write the table with {own} between fields"
    return None


class QuotedRecords:
    """Line and fields of each record of a text; DataError for one that cannot be read.

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
