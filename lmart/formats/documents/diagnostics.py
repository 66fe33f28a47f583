"""What is wrong with ids, labels, values and lines: the text is read again slowly, to name the token and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmart.data.categories import NO_WORDS
from lmart.data.feature_names import LARGEST_INDEX, has_control
from lmart.decimals import is_decimal
from lmart.errors import quote
from lmart.formats.read_options import ReadOptions

_FOREIGN_TO_LETOR = {"query id": re.compile(r"[\s#]"), "document id": re.compile(r"\s")}
FORM = "rows are 'label qid:ID index:value ...'"
NUMBER_OR_NAN = "write a number as 0.5, or nan where it is missing"
INNER_RETURN = 'a carriage return inside the line; convert the line ends, as with \'tr "\\r" "\\n"\''

_INFINITE = re.compile(rb"[+-]?inf(inity)?\Z", re.IGNORECASE)
_MISSING = re.compile(rb"[+-]?nan\Z", re.IGNORECASE)
_COMMA = re.compile(rb"[+-]?\d+,\d+")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f]")
NO_VALUE = tuple(word.encode() for word in NO_WORDS)
TRUTH = {b"true": 1.0, b"false": 0.0}


def id_fault(text: str, what: str, options: ReadOptions) -> str | None:
    """Return what is wrong with an id, None if nothing is.

    what : it is, in messages: 'query id', 'document id', or what else is kept of rows
    """
    if has_control(text):
        return f"{what} {quote(text)} holds a control character; ids are printable text"
    if options.ids_for_letor and (found := _FOREIGN_TO_LETOR[what].search(text)):
        held = "a blank" if found[0].isspace() else quote(found[0])
        what = f"{what} {quote(text)} holds {held} and cannot stand in LETOR text"
        return f"{what}; rename it, or write CSV, TSV or Parquet"
    return None


def encoding_fault(raw: bytes, what: str) -> str:
    """Return the fault of an id that is not UTF-8."""
    return f"{what} {quote(raw)} is not valid UTF-8; convert the file to UTF-8"


def decode_documents(
    raw_ids: Sequence[bytes | bytearray], options: ReadOptions
) -> tuple[list[str], list[tuple[int, str]]]:
    """Return document ids as text, empty where there is none, and (place in the list, message) of those at fault."""
    try:
        texts = [raw.decode("utf-8") for raw in raw_ids]
        # One search for all of them; blanks between ids would be found when LETOR is asked for.
        if not has_control("-".join(texts)) and not options.ids_for_letor:
            return texts, []
    except UnicodeDecodeError:
        pass
    texts = [raw.decode("utf-8", "backslashreplace") for raw in raw_ids]
    faults = []
    for place, (raw, text) in enumerate(zip(raw_ids, texts, strict=True)):
        message = id_fault(text, options.row_text, options)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            message = encoding_fault(bytes(raw), options.row_text)
        if message is not None:
            faults.append((place, message))
    return texts, faults


@dataclass(frozen=True)
class Layout:
    """Whether the rows of a file begin with a label, and with a query id."""

    has_label: bool
    has_query: bool


def ignored_index(name: str) -> int | None:
    """Return the index of a feature named in --ignore-columns, None when it is no index."""
    return int(name) if name.isascii() and name.isdigit() and _integer(name.encode()) <= LARGEST_INDEX else None


def words_of(text: bytes) -> list[bytes]:
    """Return the fields between blanks and tabs; carriage returns at the end belong to the line end."""
    return [word for word in re.split(rb"[ \t]+", text.rstrip(b"\r")) if word]


def explain(line: bytes, layout: Layout, options: ReadOptions) -> str | None:
    """Return what is wrong with a line (without its newline), the token quoted, and what to do; None if nothing is."""
    if b"\0" in line:
        return nul_fault(line)
    line = line.rstrip(b"\r")
    if b"\r" in line:
        return INNER_RETURN
    body = line.split(b"#", 1)[0]
    words = words_of(body)
    if not words:
        return None
    if layout.has_label:
        if (options.use_labels or not is_placeholder(words[0])) and (fault := label_fault(words[0])):
            return fault
        words = words[1:]
    if layout.has_query:
        if not words or not words[0].startswith(b"qid:"):
            return no_query_fault(words)
        if words[0] == b"qid:":
            return "the query id is empty: 'qid:'; write 'qid:ID' without a blank"
        if _CONTROL.search(words[0]):
            return f"query id {quote(words[0][4:])} holds a control character; ids are printable text without blanks"
        words = words[1:]
    seen: set[int] = set()
    for i, word in enumerate(words):
        fault = _pair_fault(word, words[i + 1] if i + 1 < len(words) else b"", options)
        if fault is None:
            index = _integer(word.split(b":", 1)[0])
            if index in seen and options.duplicates != "last" and not _is_ignored(index, options):
                fault = f"index {index} occurs twice in the row, again in {quote(word)}"
                fault += "; take one out, or use --duplicates last"
            seen.add(index)
        if fault is not None:
            return fault
    return None


def nul_fault(line: bytes) -> str:
    """Return the fault of a line with a NUL byte."""
    at = line.index(b"\0")
    return f"NUL byte in {quote(line[max(at - 20, 0) : at + 1])}; the file is damaged, or no text"


def no_query_fault(rest: Sequence[bytes]) -> str:
    """Return the fault of a row without a query id after the label; rest : the words from there on."""
    if any(word.startswith(b"qid:") for word in rest):
        word = next(word for word in rest if word.startswith(b"qid:"))
        return f"query id {quote(word)} comes after {quote(rest[0])}; it must come right after the label"
    here = f"but {quote(rest[0])} does" if rest else "but the line ends"
    if rest and re.match(rb"qid\b", rest[0], re.IGNORECASE):
        what = f"no query id: {quote(rest[0])} is not 'qid:ID'"
        return f"{what}; write 'qid' in small letters, a colon and the id, without blanks"
    return f"no query id: 'qid:ID' must follow the label, {here}; add it, or give the queries' sizes with --query-sizes"


def label_fault(word: bytes, hint: str = FORM) -> str | None:
    """Return what is wrong with a label, None if nothing is; `hint` is for what is not a number."""
    label = quote(word)
    if _MISSING.match(word):
        return f"label {label} is missing; a label is a number from 0 up"
    if not is_decimal(word):
        if _INFINITE.match(word):
            return f"label {label} is infinite; a label is a number from 0 up"
        return f"label {label} is not a number; {hint}"
    value = float(word)
    if value < 0:
        return f"label {label} is negative; a label is a number from 0 up"
    return f"label {label} is beyond the largest number; a label is a number from 0 up" if np.isinf(value) else None


def is_placeholder(word: bytes) -> bool:
    """Return whether the word is accepted as a label that is not used: any number, or a placeholder such as `?`."""
    if word.lower() in (b"?", b"-", b"na", b"n/a", b"null", b"none"):
        return True
    return is_decimal(word) or bool(_MISSING.match(word) or _INFINITE.match(word))


def _pair_fault(word: bytes, following: bytes, options: ReadOptions) -> str | None:
    shown = quote(word)
    index, colon, value = word.partition(b":")
    if not colon:
        if following.startswith(b":"):
            return f"blank before the colon in {quote(word + b' ' + following)}; write 'index:value' without blanks"
        return f"{shown} is not 'index:value'; the value is missing, or the line is cut off"
    if not index:
        return f"no index before the colon in {shown}; write 'index:value' without blanks"
    if index == b"qid":
        return f"query id {shown} at a wrong place; it must come right after the label, in every row or in none"
    if index[:1] == b"-" and index[1:].isdigit():
        return f"index {quote(index)} is negative, in {shown}; indices are whole numbers from 0 up"
    if not index.isdigit():
        return f"index {quote(index)} is not a whole number, in {shown}; {FORM}"
    if _integer(index) > LARGEST_INDEX:
        return f"index {quote(index)} is above {LARGEST_INDEX}, in {shown}; number the features lower"
    if not value:
        if following:
            return f"no value after the colon in {quote(word + b' ' + following)}; write 'index:value' without blanks"
        return f"no value after the colon in {shown}; the value is missing, or the line is cut off"
    if _is_ignored(_integer(index), options):
        return None
    return value_fault(value, shown, options)


def _is_ignored(index: int, options: ReadOptions) -> bool:
    return any(ignored_index(name) == index for name in options.ignore_columns)


def _integer(digits: bytes) -> int:
    significant = digits.lstrip(b"0")
    return int(significant or b"0") if len(significant) < 20 else LARGEST_INDEX + 1


def value_fault(value: bytes, shown: str, options: ReadOptions, hint: str = NUMBER_OR_NAN) -> str | None:
    """Return what is wrong with a value, None if nothing is; `shown` says where, `hint` is for what is not a number."""
    if _MISSING.match(value):
        return None
    if is_decimal(value):
        if np.isinf(float(value)) and not options.allow_inf:
            return f"value {quote(value)} is beyond the largest number, in {shown}; use --allow-inf for infinite ones"
        return None
    if _INFINITE.match(value):
        what = f"value {quote(value)} is infinite, in {shown}"
        return None if options.allow_inf else f"{what}; use --allow-inf to take it"
    if _COMMA.fullmatch(value):
        return f"value {quote(value)} has a comma, in {shown}; write a decimal point"
    return f"value {quote(value)} is not a number, in {shown}; {hint}"


def not_letor_fault(line: bytes, words: Sequence[bytes]) -> str:
    """Return the fault of a file whose first row does not start with a label."""
    what = f"the line is not 'label qid:ID index:value ...': it starts with {quote(words[0])}"
    if _MISSING.match(words[0]) or _INFINITE.match(words[0]) or is_decimal(words[0]):
        return label_fault(words[0]) or what
    if b"," in line or b"\t" in line:
        return f"{what}; CSV and TSV need a header with a label and a query column, and a name that does not say LETOR"
    if separator := next((shown for shown in (";", "|") if shown.encode() in words[0]), ""):
        return f"{what}; a table with {quote(separator)} between fields is not read: write it with ',' and a header"
    return f"{what}; is it the right file?"


def is_text(field: bytes) -> bool:
    """Return whether the field of a feature can be neither a number nor a missing value, however it is written."""
    forms = (_MISSING.match(field), _INFINITE.match(field), _COMMA.fullmatch(field))
    return not (is_decimal(field) or any(forms) or field.lower() in (*NO_VALUE, *TRUTH))
