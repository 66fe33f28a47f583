"""Which format a file has, from its name and its first bytes."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

from lmart.data.feature_names import LABEL_NAMES, QUERY_NAMES
from lmart.decimals import is_decimal
from lmart.errors import DataError
from lmart.formats.documents.quoted import DELIMITERS, csv_records
from lmart.formats.format_records import BLANKS, BYTE_ORDER_MARK, CHECKPOINT_START, FileError
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, OWN, format_of_name, model_format_of
from lmart.streams import InputStream, open_input

_HEAD = 1 << 16
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{\s*(\"|\}|$)|\[\s*([\[{\"]|$))")
_READ = "give LETOR, CSV, TSV or Parquet"
_SAVE = "save its content in a format that 'lmart convert --help' lists"
OF_CHECKPOINT = "give the command that made it again to go on, then the model that it writes"
_WORD = rb"[^\s:#,]+[ \t]+"
_LETOR_CELL = re.compile(rb"(^|[ \t])(qid|\d+):")


class KnownFile(NamedTuple):
    """A kind of files that lmart does not read, but knows.

    start  : regular expression that such a file matches from its beginning on, after a byte order mark
    what   : the kind, in words
    advice : what to do with such a file; '': give another one
    """

    start: bytes
    what: str
    advice: str = ""


_KNOWN = (
    KnownFile(rb"version https://git-lfs", "a pointer of Git LFS, not the file itself", "get it with 'git lfs pull'"),
    KnownFile(rb"outs:\s*- (md5|hash|size|path):", "a pointer of DVC, not the file itself", "get it with 'dvc pull'"),
    KnownFile(rb"\S{0,99}/annex/objects/", "a pointer of git-annex, not the file", "get it with 'git annex get'"),
    KnownFile(rb"<{7} \S", "a file with a merge conflict of Git", "resolve the conflict"),
    KnownFile(rb"(?i)\s*(<!doctype html|<html\b)", "a web page (HTML), perhaps an error message", "download it again"),
    KnownFile(rb"\s*(<\?xml[^>]*>\s*)?<Error>", "an error message of a web server (XML)", "download it again"),
    KnownFile(rb"\s*(<\?xml[^>]*>\s*)?<PMML\b", "a model in PMML"),
    KnownFile(rb"CBM1(?=.{0,3}[\0-\x08])", "a model of CatBoost"),
    KnownFile(rb'\s*\{(?=.*"(oblivious_trees|features_info)"\s*:)', "a model of CatBoost in JSON"),
    KnownFile(rb"\x08[\x03-\x1f][\x12:B]", "an ONNX model", "give the model that it was made from"),
    KnownFile(re.escape(CHECKPOINT_START), "a checkpoint of lmart train", OF_CHECKPOINT),
    KnownFile(rb"/\* A ranking model written by lmart", "a model as C source", "give the model that it was made from"),
    KnownFile(rb'\s*\{(?=.*"nbformat"\s*:)', "a Jupyter notebook"),
    KnownFile(rb'\s*\{\s*"queries"\s*:.*"metrics"\s*:', "the measures that lmart eval --json prints"),
    KnownFile(rb"\x80[\x02-\x05]|\(dp[0-9]|\(lp[0-9]|ccopy_reg\n", "a pickle (joblib)", _SAVE),
    KnownFile(rb"RD[AX][23]\n|X\n\0\0\0", "data of R", _SAVE),
    KnownFile(rb"\x93NUMPY", "a NumPy array"),
    KnownFile(rb"\x89HDF", "HDF5"),
    KnownFile(rb"ARROW1\0|FEA1\0", "Arrow (Feather)"),
    KnownFile(rb"Obj\x01", "Avro"),
    KnownFile(rb"ORC[\0-\x08\x0e-\x1f]", "ORC"),
    KnownFile(rb"SQLite format 3\0", "an SQLite database"),
    KnownFile(rb"\xd0\xcf\x11\xe0", "an Excel workbook"),
    KnownFile(rb".{257}ustar", "a tar archive", "unpack it"),
    KnownFile(rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "a picture or a PDF"),
    KnownFile(rb"\x7fELF|#!.*?/bin/", "a program"),
)
_TREC = (  # which the header of a table may look like
    KnownFile(rb"(?:" + _WORD + rb"){3}-?[0-9]+[ \t\r]*(?:\n|\Z)", "TREC qrels", "lmart eval reads them as --qrels"),
    KnownFile(_WORD + rb"Q0[ \t]+(?:" + _WORD + rb"){3}\S", "a TREC run", "lmart eval reads it as --run"),
)


def is_json(text: bytes) -> bool:
    """Return whether the first bytes of a file are those of an object or a list of JSON."""
    return _JSON.match(text) is not None


def refuse_known(head: bytes, path: str, error: FileError, give: str, trec: bool = True) -> None:
    """Raise an error when first bytes are those of a kind of files that lmart knows but does not read."""
    start = head.removeprefix(BYTE_ORDER_MARK)
    for kind in (*_KNOWN, *(_TREC if trec else ())):
        if re.match(kind.start, start, re.DOTALL):
            advice = f"; {kind.advice}" if kind.advice else f", which lmart does not read; {give}"
            raise error(f"this is {kind.what}{advice}", path)


def detect_format(path: str, kind: str | None = None) -> str:
    """Return the name of the format of a file, by its name, else by its content. DataError when it cannot be read.

    path : not standard input or a pipe, whose content can be read only once
    kind : "data" when the file is to be read as data, so that other JSON than a model is refused as such
    """
    if (named := format_of_name(path)) is not None:
        return named.name
    stream = open_input(path)
    try:
        head = read_head(stream)
    finally:
        stream.close()
    if (model := model_format_of(head)) is not None:
        return model
    found = OWN if head.lstrip(BLANKS).startswith(b"{") else data_format(path, head, ReadOptions())
    refuse_known(head, path, DataError, f"{_READ}, or a model", not _is_table(found))
    if kind == "data":
        refuse_foreign(path, head, found)
    return found


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

    format : the format that it is to be read in; '': not known
    """
    if model_format_of(head) is not None:
        return
    refuse_known(head, path, DataError, _READ, not _is_table(format))
    if is_json(head) and format != "parquet":
        raise DataError(f"JSON is not read as data; {_READ}", path)


def _is_table(format: str) -> bool:
    return format in DATA_FORMATS and DATA_FORMATS[format].is_named


def data_format(path: str, head: bytes, options: ReadOptions) -> str:
    """Return the format of data: Parquet by content; else by name; else CSV or TSV when there is a header for it.

    Cells that are numbers alone are those of a table whose header is missing, which its reader tells.

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
        cells = {field.strip().lower() for field in fields}
        if (len(fields) > 1 and wanted & cells) or (len(fields) > 2 and all(map(is_decimal, cells))):
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
