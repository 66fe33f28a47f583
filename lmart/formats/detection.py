"""Which format a file has, from its name and its first bytes."""

from __future__ import annotations

import csv
import re

from lmart.errors import DataError
from lmart.formats.documents.column_names import LABEL_NAMES, QUERY_NAMES
from lmart.formats.documents.delimited_header import csv_records
from lmart.formats.documents.delimited_writer import DELIMITERS
from lmart.formats.format_records import BLANKS
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, OWN, format_of_name, model_format_of
from lmart.streams import InputStream, open_input

_HEAD = 1 << 16
_JSON = re.compile(rb"\s*(\{\s*(\"|\}|$)|\[\s*([\[{\"]|$))")
_FOREIGN = {
    b"ARROW1": "Arrow (Feather)",
    b"Obj\x01": "Avro",
    b"SQLite format 3\0": "an SQLite database",
    b"\x89HDF": "HDF5",
    b"\x93NUMPY": "a NumPy array",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
}
_READ = "give LETOR, CSV, TSV or Parquet"
_LETOR_CELL = re.compile(rb"(^|[ \t])(qid|\d+):")


def detect_format(path: str, kind: str | None = None) -> str:
    """Return the name of the format of a file, by its name, else by its content. DataError when it cannot be read.

    path : the file; not standard input or a pipe, whose content can be read only once
    kind : "data" when the file is to be read as data, so that other JSON than a model is refused as such
    """
    if (named := format_of_name(path)) is not None:
        return named.name
    stream = open_input(path)
    try:
        head = read_head(stream)
    finally:
        stream.close()
    if kind == "data":
        refuse_foreign(path, head, "")
    if (model := model_format_of(head)) is not None:
        return model
    return OWN if head.lstrip(BLANKS).startswith(b"{") else data_format(path, head, ReadOptions())


def read_head(stream: InputStream) -> bytes:
    """Return the first bytes, up to a whole line that is neither blank nor a comment where there is one."""
    head = b""
    buffer = memoryview(bytearray(_HEAD))
    while len(head) < _HEAD and _first_line(head, False) is None:
        count = stream.read_block(buffer[: _HEAD - len(head)])
        if not count:
            break
        head += bytes(buffer[:count])
    return head


def refuse_foreign(path: str, head: bytes, format: str) -> None:
    """Raise DataError when data begins like something that is not read as data.

    path   : the input, for messages
    head   : its first bytes
    format : the format that it is to be read in; '': not known
    """
    if _JSON.match(head) and model_format_of(head) is None and format != "parquet":
        raise DataError(f"JSON is not read as data; {_READ}", path)
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"is {what}, which is not read as data; {_READ}", path)


def data_format(path: str, head: bytes, options: ReadOptions) -> str:
    """Return the format of data: Parquet by content; else by name; else CSV or TSV when there is a header for it.

    path    : the input
    head    : its first bytes
    options : names of columns that a header may have
    The name of a model format is returned for what is a model by its content, or else by its name.
    """
    if head.startswith(DATA_FORMATS["parquet"].starts):
        return "parquet"
    named = format_of_name(path)
    if named is not None and named.kind == "data":
        return named.name
    if (model := model_format_of(head)) is not None:
        return model
    line = (_first_line(head, True) or b"").removeprefix(b"\xef\xbb\xbf").strip(b"\r\n")
    if _LETOR_CELL.search(line):
        return "letor"
    chosen = (options.label_column, options.query_column, options.document_column)
    features = (name.lower() for name in options.known_features or () if not name.isdigit())
    wanted = {*LABEL_NAMES, *QUERY_NAMES, *(name.lower() for name in chosen if name), *features}
    for name in DELIMITERS:
        try:
            fields = next(csv_records([line.decode("utf-8")], name), [])
        except (UnicodeDecodeError, csv.Error):
            continue
        if len(fields) > 1 and wanted & {field.strip().lower() for field in fields}:
            return name
    if named is not None:
        return named.name
    return OWN if head.lstrip(BLANKS).startswith(b"{") else "letor"


def _first_line(head: bytes, may_be_cut: bool) -> bytes | None:
    lines = head.split(b"\n")
    for line in lines if may_be_cut else lines[:-1]:
        if (text := line.strip(BLANKS)) and not text.startswith(b"#"):
            return line
    return None
