"""What is wrong with a field or a row of CSV or TSV, and the values of fields."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmart.errors import quote
from lmart.formats.documents.column_roles import ColumnPlan
from lmart.formats.documents.letor_diagnostics import label_fault, value_fault
from lmart.formats.read_options import ReadOptions
from lmart.kernels.text import delimited as delimited_text

_MISSING = (b"", b"na", b"null")
_TRUTH = {b"true": 1.0, b"false": 0.0}


def field_value(field: bytes) -> float:
    """Return the number that a sound field of a feature or label says, nan for a missing value."""
    word = field.lower()
    if word in _MISSING:
        return np.nan
    return _TRUTH[word] if word in _TRUTH else float(field)


def is_there(field: bytes) -> bool:
    """Return whether the field of a feature is not a missing value; it may be invalid."""
    return field.lower() not in (*_MISSING, b"nan")


def is_text_fault(message: str, kind: int) -> bool:
    """Return whether the message of `cell_fault` says that a feature is no number, in a column of this kind."""
    return kind == delimited_text.FEATURE and " is not a number, in " in message


def cell_fault(field: bytes, name: str, kind: int, options: ReadOptions) -> str | None:
    """Return what is wrong with the field of a feature, label or query, None if nothing is."""
    word = field.lower()
    if kind == delimited_text.LABEL and word not in _TRUTH:
        shown = f"column {quote(name)}"
        if word in _MISSING:
            return f"no label in {shown}: {quote(field)}; a label is a number from 0 up"
        if fault := label_fault(field):
            return fault.replace("rows are 'label qid:ID index:value ...'", f"check {shown}, or --label-column")
    elif kind == delimited_text.QUERY and not field:
        return f"no query id in column {quote(name)}: {quote(field)}; every row needs one"
    elif kind == delimited_text.FEATURE and word not in _MISSING and word not in _TRUTH:
        fault = value_fault(field, f"column {quote(name)}", options)
        hint = "leave it empty if missing, or use --ignore-columns"
        return None if fault is None else fault.replace("or nan where it is missing", hint)
    return None


def length_fault(fields: Sequence[bytes], plan: ColumnPlan, all_rows: bool) -> str:
    """Return what to say of a row with another number of fields than the header."""
    there = f"the row has {len(fields)} field{'s' if len(fields) != 1 else ''} but the header {len(plan.names)}"
    if not all_rows:
        return f"{there}, the last is {quote(fields[-1])}; is the line cut off, or a decimal comma used?"
    there += ", and so have all rows after it"
    if len(fields) == len(plan.names) + 1:
        return f"{there}; does the header lack a name for the first column (R: write.csv(..., row.names = FALSE))?"
    return f"{there}, the last is {quote(fields[-1])}; is another separator or a decimal comma used?"


def row_fault(fields: Sequence[bytes], plan: ColumnPlan, options: ReadOptions) -> str | None:
    """Return what is wrong with the fields of a row, None if nothing is."""
    for field in fields:
        if b"\0" in field:
            return f"NUL byte in {quote(field)}; the file is damaged, or no text"
    if len(fields) != len(plan.names):
        return length_fault(fields, plan, all_rows=False)
    for field, name, kind in zip(fields, plan.names, plan.kinds.tolist(), strict=True):
        if fault := cell_fault(field, name, kind, options):
            return fault
    return None
