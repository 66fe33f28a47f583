"""The header of CSV and TSV: the names in it, and what shows that the line is none."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

from lmart.data.feature_names import has_control
from lmart.errors import DataError, quote
from lmart.formats.documents.column_names import says_columns
from lmart.formats.documents.delimited_writer import DELIMITERS
from lmart.formats.read_options import ReadOptions

TITLES = {"csv": "CSV", "tsv": "TSV"}
BLANKS = " \t\r"  # the same for quoted and plain text: other white space belongs to an id
LONGEST_FIELD = 2**31 - 1  # characters: more than a block of text has
_LETOR = re.compile(r"(^|\s)qid:\S|^\S+\s+[0-9]+:\S")


def csv_records(lines: Iterable[str], format: str) -> Iterator[list[str]]:
    """Return the fields of each record, of any length, as Python's csv reads them.

    lines  : of the text
    format : 'csv' or 'tsv'
    """
    # The limit of Python's csv is one for all threads of the process, so it is raised once and never set back.
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    return csv.reader(lines, delimiter=DELIMITERS[format], strict=True)


def header_names(line: bytes, format: str, options: ReadOptions, path: str, number: int) -> list[str]:
    """Return the names of the columns.

    line    : the header, with its line end
    format  : 'csv' or 'tsv'
    options : name columns, by which a header is known
    path    : the input, for messages
    number  : number of the line, from 1
    DataError when it cannot be a header, or shows another format or separator.
    """

    def refusal(message: str) -> DataError:
        """Return a refusal of the header."""
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
