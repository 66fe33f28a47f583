"""Files that say something of each query, such as its group or fold: `qid TAB group` on each line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from lmart.array_types import Int64Array
from lmart.data.feature_names import has_control
from lmart.errors import DataError, quote
from lmart.formats.documents.diagnostics import encoding_fault
from lmart.formats.line_reader import read_lines

NO_GROUP = "(none)"
"""The group of queries that the file has no line for."""
_NO_COMMENT = re.compile(rb"(?!)")


def read_query_groups(path: str, what: str = "group") -> dict[str, str]:
    """Return the group of each query of a file, by query id; blank lines and a header `qid TAB group` do not count.

    what : that stands behind the tab, in the header and in messages
    DataError names the line that has another form, is not text, or names a query again.
    """
    groups: dict[str, str] = {}
    lines: dict[str, int] = {}
    is_first = True
    for found in read_lines(path, _NO_COMMENT):
        for raw, line in zip(*found, strict=True):
            query_id, group = _fields(raw, path, line, what)
            is_header = is_first and (query_id, group) == ("qid", what)
            is_first = False
            if is_header:
                continue
            if query_id in groups:
                twice = f"query {quote(query_id)} has a {what} already, in line {lines[query_id]}"
                raise DataError(f"{twice}; leave one of them", path, line)
            groups[query_id], lines[query_id] = group, line
    if not groups:
        raise DataError(f"holds no {what}; {_form(what)}", path)
    return groups


def _form(what: str) -> str:
    return f"give 'qid TAB {what}' on each line"


def _fields(raw: bytes, path: str, line: int, what: str) -> tuple[str, str]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(encoding_fault(raw, "line"), path, line) from None
    fields = [field.strip(" ") for field in text.split("\t")]
    if len(fields) != 2 or not all(fields):
        wrong = f"no {what}, which stands behind a tab" if len(fields) < 2 else "more or fewer than two fields"
        raise DataError(f"{quote(text)} has {wrong}; {_form(what)}", path, line)
    for field, is_called in zip(fields, ("query id", what), strict=True):
        if has_control(field):
            raise DataError(f"{is_called} {quote(field)} holds a control character; use printable text", path, line)
    return fields[0], fields[1]


def grouped_queries(groups: dict[str, str], query_ids: Sequence[str]) -> dict[str, Int64Array]:
    """Return the places of the queries of each group, in order of first appearance; NO_GROUP is the last."""
    places: dict[str, list[int]] = {}
    without: list[int] = []
    for place, query_id in enumerate(query_ids):
        group = groups.get(query_id)
        (without if group is None else places.setdefault(group, [])).append(place)
    if without:
        places[NO_GROUP] = sorted([*places.pop(NO_GROUP, []), *without])
    return {name: np.array(own, np.int64) for name, own in places.items()}
