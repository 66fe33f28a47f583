"""Document ids in the comments of LETOR text.

Characters are compared by their code: 9 tab, 10 newline, 13 carriage return, 32 space, 35 '#', 44 ',', 58 ':', 59 ';',
61 '='; letters as lower case.
"""

from __future__ import annotations

from lmart.array_types import Int64Array, UInt8Array
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.text.parsed_text import skip_blanks


@inner_kernel
def _document_key(text: UInt8Array, start: int) -> int:
    """Return the length of the key of a document id at text[start], in any letter case; 0 without a key.

    The keys: docid, docno, doc_id, document_id.
    """
    low = 0x20  # makes a letter lower case
    p = start
    if int(text[p]) | low != 100 or int(text[p + 1]) | low != 111 or int(text[p + 2]) | low != 99:  # doc
        return 0
    p += 3
    if int(text[p]) | low == 110 and int(text[p + 1]) | low == 111:  # no
        return p + 2 - start
    if int(text[p]) | low == 117 and int(text[p + 1]) | low == 109 and int(text[p + 2]) | low == 101:  # ume
        if int(text[p + 3]) | low != 110 or int(text[p + 4]) | low != 116 or text[p + 5] != 95:  # nt_
            return 0
        p += 5
    if text[p] == 95:
        p += 1
    if int(text[p]) | low == 105 and int(text[p + 1]) | low == 100:  # id
        return p + 2 - start
    return 0


@inner_kernel
def _end_of_word(text: UInt8Array, start: int) -> int:
    """Return where the first blank, tab or line end of `text` from `start` on stands."""
    p = start
    while text[p] != 32 and text[p] != 9 and text[p] != 10 and text[p] != 13:
        p += 1
    return p


@inner_kernel
def _id_after_key(text: UInt8Array, start: int) -> tuple[int, int]:
    """Return the first index and the end of the id whose key is at text[start]; 0 and 0 without a key."""
    length = _document_key(text, start)
    if length == 0:
        return 0, 0
    sign = skip_blanks(text, start + length, 0)
    if text[sign] != 61 and text[sign] != 58:
        return 0, 0
    first = skip_blanks(text, sign + 1, 0)
    stop = _end_of_word(text, first)
    has_separator = stop > first + 1 and (text[stop - 1] == 44 or text[stop - 1] == 59)
    if has_separator and text[skip_blanks(text, stop, 0)] > 32:
        stop -= 1
    return first, stop


@inner_kernel
def _find_document(text: UInt8Array, start: int) -> tuple[int, int]:
    """Return where the document id of the comment in `text` starts and stops; `start` is behind its '#'.

    It is the word behind the first `docid =`, or another key of `_document_key`, with '=' or ':', with blanks or
    without, at any place of the comment; a ',' or ';' between it and further text is left out. In a comment without
    such a key it is the first word, unless '=' follows it.
    """
    p = start
    may_start = True
    while text[p] != 10:
        if may_start:
            first, stop = _id_after_key(text, p)
            if stop > 0:
                return first, stop
        may_start = text[p] <= 32 or text[p] == 35 or text[p] == 44 or text[p] == 59
        p += 1
    first = skip_blanks(text, start, 0)
    stop = _end_of_word(text, first)
    if text[skip_blanks(text, stop, 0)] == 61:
        return first, first
    return first, stop


@kernel
def find_documents(text: UInt8Array, documents: Int64Array) -> None:
    """Find the document ids in the comments of LETOR text.

    text      : uint8, in; behind each comment is a newline and MARGIN bytes of `parsed_text`
    documents : int64[n, 2], in and out; documents[row, 0] is the index behind the '#' of the row's comment, 0 without
                one; it becomes the start of the id, and documents[row, 1] the stop, equal where there is no id
    Parallel: each call writes only its own `documents`. Cost: O(bytes of the comments).
    """
    for row in range(len(documents)):
        if documents[row, 0] > 0:
            documents[row, 0], documents[row, 1] = _find_document(text, documents[row, 0])
