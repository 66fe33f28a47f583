"""Slow twins of the kernels that write rows as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def number(value: float) -> str:
    """The text of repr(), whole numbers without a point, minus zero as 0."""
    if value == 0:
        return "0"
    return repr(value).removesuffix(".0")


def letor_line(label: float | None, query: str | None, cells: Mapping[int, float], document: str) -> str:
    """One line of LETOR text, its cells in the order given."""
    words = [] if label is None else [number(label)]
    words += [] if query is None else [f"qid:{query}"]
    words += [f"{feature}:{number(value)}" for feature, value in cells.items()]
    words += [f"#docid = {document}"] if document else []
    return " ".join(words) + "\n"


def table_line(first: Sequence[str], cells: Mapping[int, float], n_columns: int, absent: float, delimiter: str) -> str:
    """One line of a table: the first fields, then one for each column, empty where missing; a blank line is nan."""
    values = [cells.get(column, absent) for column in range(n_columns)]
    line = delimiter.join([*first, *("" if math.isnan(value) else number(value) for value in values)])
    return (line or "nan") + "\n"
