"""Small parts of HTML: text, numbers that keep every digit, tables with headers that scroll inside themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from lmart.errors import counted, visible

NOT_DEFINED = "n/a"


def text(content: object) -> str:
    """Return text for HTML; control characters are escaped as in messages."""
    return escape(visible(str(content)))


def shown(value: float | None, form: str = ".6f") -> str:
    """Return a number as the tables of the terminal show it, large ones with nine digits; None: not defined."""
    if value is None:
        return NOT_DEFINED
    return f"{value:{form}}" if abs(value) < 1e9 else f"{value:.9g}"


def number(value: float | None, form: str = ".6f") -> str:
    """Return a number, None where it is not defined, as HTML, which also holds every digit of it."""
    if value is None:
        return NOT_DEFINED
    return f'<data value="{value!r}">{shown(value, form)}</data>'


def interval(ends: Sequence[float] | None, form: str = ".4f") -> str:
    """Return the ends of an interval, None where there is none, as HTML."""
    return NOT_DEFINED if ends is None else f"{number(ends[0], form)} to {number(ends[1], form)}"


class Cell(NamedTuple):
    """A cell of a table with a class of the style sheet."""

    html: str
    style: str


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str | Cell]], name: str) -> str:
    """Return a table that scrolls inside itself where the page is narrow.

    rows : cells as HTML; the first is the header of its row
    name : id of the table, unique in the page
    """
    rows = list(rows)
    columns = zip(header, rows[0] if rows else header, strict=True)
    head = "".join(
        f'<th scope="col"{_style(cell) if _is_text(cell) else ""}>{text(title)}</th>' for title, cell in columns
    )
    body = []
    for first, *cells in rows:
        others = "".join(_cell(cell, label) for cell, label in zip(cells, header[1:], strict=True))
        body.append(f'<tr><th scope="row">{first}</th>{others}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">\n'
        f'<table id="{name}"><caption>{text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(body)
        + "\n</tbody></table></div>\n"
    )


def _cell(cell: str | Cell, label: str) -> str:
    """Return a cell, with the header of its column for screens that are too narrow for columns."""
    return f'<td{_style(cell)} data-label="{text(label)}">{cell.html if isinstance(cell, Cell) else cell}</td>'


def _is_text(cell: str | Cell) -> bool:
    return isinstance(cell, Cell) and cell.style == "text"


def _style(cell: str | Cell) -> str:
    return f' class="{cell.style}"' if isinstance(cell, Cell) else ""


def bar(percent: float) -> Cell:
    """Return a cell with a bar of this width."""
    return Cell(f'<span style="width: {percent:.2f}%"></span>', "bar")


def table_of_features(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str | Cell]], name: str, more: str, listed: int | None
) -> str:
    """Return a table of the first `listed` rows (None: all) and, on demand, one of the others, whose id is `more`."""
    n = len(rows) if listed is None else listed
    made = table(caption, header, rows[:n], name)
    rest = rows[n:]
    return made + (folded(counted(len(rest), "more feature"), table(caption, header, rest, more)) if rest else "")


def note(content: str) -> str:
    """Return a remark, which is HTML, as a faint paragraph."""
    return f'<p class="faint">{content}</p>\n'


def verdict_paragraph(sentences: Iterable[str]) -> str:
    """Return the paragraph that says what the numbers of a page mean."""
    return f'<p class="verdict">{" ".join(map(text, sentences))}</p>\n'


def folded(summary: str, content: str) -> str:
    """Return content that unfolds on demand."""
    return f"<details><summary>{text(summary)}</summary>\n{content}</details>\n"


def facts(entries: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and values."""
    rows = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>\n" for name, value in entries)
    return f"<dl>\n{rows}</dl>\n"


def section(name: str, title: str, content: str) -> str:
    """Return a section with its heading."""
    heading = f'<h2 id="{name}">{text(title)}</h2>'
    return f'<section aria-labelledby="{name}">\n{heading}\n{content}</section>\n'


def embedded(content: Mapping[str, Any]) -> str:
    """Return JSON for a script element: no text in it can end the element."""
    plain = json.dumps(content, allow_nan=False)
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
