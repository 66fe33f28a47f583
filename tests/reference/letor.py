"""LETOR text, line by line."""

from __future__ import annotations

import re
from math import inf

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

WORD = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def number(token: bytes) -> float | None:
    """The number that a token says, None if it says none; minus zero is zero."""
    if not NUMBER.fullmatch(token) and not WORD.fullmatch(token):
        return None
    return float(token) or 0.0


DOCUMENT_KEY = re.compile(
    rb"(?:^|(?<=[\x00-\x20#,;]))(?:docid|docno|doc_id|document_id)[ \t]*[:=][ \t]*([^ \t\n\r]*)[ \t]*", re.IGNORECASE
)


def letor_document(comment: bytes) -> bytes:
    """The document id in a comment (without its '#'): the word behind a key such as `docid =`, else the first word."""
    if named := DOCUMENT_KEY.search(comment):
        word = named[1]
        follows = comment[named.end() : named.end() + 1] > b" "
        return word[:-1] if len(word) > 1 and word[-1:] in (b",", b";") and follows else word
    first = re.match(rb"[ \t]*([^ \t\n\r]*)([ \t]*=)?", comment)
    return b"" if first is None or first[2] else first[1]


def letor_rows(
    text: bytes, has_label: bool = True, has_query: bool = True, allow_infinite: bool = False, last_wins: bool = False
) -> tuple[list[tuple[float, bytes, list[tuple[int, float]], bytes]], list[int]]:
    """The rows of LETOR text (label, query id, cells by ascending id, document id), and the numbers of wrong lines."""
    rows, wrong = [], []
    for line_number, line in enumerate(text.split(b"\n"), 1):
        body, sign, comment = line.partition(b"#")
        body = body.strip(b" \t") if sign else re.sub(rb"[\r]*\Z", b"", line).strip(b" \t")
        words = re.split(rb"[ \t]+", body) if body else []
        row = _letor_row(list(words), has_label, has_query, allow_infinite, last_wins)
        document = letor_document(comment)
        damaged = b"\0" in line or b"\r" in line.rstrip(b"\r")
        if damaged or (row is None and words) or (row is not None and not printable(document)):
            wrong.append(line_number)
        elif row is not None:
            rows.append((*row, document))
    return rows, wrong


def printable(text: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters."""
    try:
        return not re.search("[\x00-\x1f\x7f-\x9f]", text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _letor_row(
    words: list[bytes], has_label: bool, has_query: bool, allow_infinite: bool, last_wins: bool
) -> tuple[float, bytes, list[tuple[int, float]]] | None:
    if not words:
        return None
    label, query = 0.0, b""
    if has_label:
        said = number(words.pop(0))
        if said is None or not 0 <= said < inf:
            return None
        label = said
    if has_query:
        query = words.pop(0) if words else b""
        if query[:4] != b"qid:" or query == b"qid:" or any(c < 32 for c in query):
            return None
        query = query[4:]
    cells = {}
    for word in words:
        index, colon, token = word.partition(b":")
        value = number(token)
        if not colon or not index.isdigit() or int(index) >= 2**63 or value is None:
            return None
        if (value in (inf, -inf) and not allow_infinite) or (int(index) in cells and not last_wins):
            return None
        cells[int(index)] = value
    return label, query, sorted(cells.items())
