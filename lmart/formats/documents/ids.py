"""What query ids, document ids and names of columns may hold, in every format."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmart.data.feature_names import has_control
from lmart.errors import quote
from lmart.formats.read_options import ReadOptions

__all__ = ["decode_documents", "encoding_fault", "has_control", "id_fault"]

_FOREIGN_TO_LETOR = {"query id": re.compile(r"[\s#]"), "document id": re.compile(r"\s")}


def id_fault(text: str, what: str, options: ReadOptions) -> str | None:
    """Return what is wrong with an id, None if nothing is.

    text    : the id
    what    : 'query id' or 'document id'
    options : say whether it must be valid in LETOR text
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
    """Return document ids as text, and what is wrong with some of them: (place in the list, message).

    raw_ids : one a row, empty where there is none
    options : say whether they must be valid in LETOR text
    """
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
        message = id_fault(text, "document id", options)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            message = encoding_fault(bytes(raw), "document id")
        if message is not None:
            faults.append((place, message))
    return texts, faults
