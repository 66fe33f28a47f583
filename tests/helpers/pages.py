"""A page as a test reads it: its tables, its JSON, and what else its elements say."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Reads a page.

    tables   : by id, rows of cells; a number is read from its `data` element with all digits, other cells are texts
    shown    : by id, the same rows as people see them
    content  : the JSON that the page holds
    ids      : of all elements
    links    : what the page refers to elsewhere
    elements : (name, attributes) of all of them
    unclosed : elements without an end
    texts    : of headings
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[Any]]] = {}
        self.shown: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.unclosed: list[str] = []
        self.texts: list[str] = []
        self._table = ""
        self._script: list[str] | None = None
        self._cell: list[str] | None = None
        self._values: list[str] = []
        self.feed(page)
        self.close()
        self.content: dict[str, Any] = json.loads("".join(self._script or []))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag not in VOID:
            self.unclosed.append(tag)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [value for name in ("src", "href", "xlink:href") if (value := given.get(name))]
        if tag == "table":
            self._table = given["id"] or ""
            self.tables[self._table], self.shown[self._table] = [], []
        elif tag == "tr":
            self.tables[self._table].append([])
            self.shown[self._table].append([])
        elif tag in ("td", "th"):
            self._cell, self._values = [], []
        elif tag == "data":
            self._values.append(given["value"] or "")
        elif tag == "script" and given.get("id") == "content":
            self._script = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.unclosed.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed and self.unclosed[-1] == tag, (tag, self.unclosed[-3:])
        self.unclosed.pop()
        if tag in ("td", "th") and self._cell is not None:
            text = "".join(self._cell)
            numbers = [float(value) for value in self._values]
            value: Any = text if not numbers else numbers[0] if len(numbers) == 1 else numbers
            self.tables[self._table][-1].append(value)
            self.shown[self._table][-1].append(text)
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        elif self.unclosed and self.unclosed[-1] in ("h1", "h2"):
            self.texts.append(data)
        elif self.unclosed and self.unclosed[-1] == "script" and self._script is not None:
            self._script.append(data)


def check_page(text: str) -> Page:
    """Return the page, which needs nothing else, and is well-formed and labelled for those who cannot see it."""
    page = Page(text)
    assert not page.unclosed
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert not re.search(r"https?://(?!www\.w3\.org/)|@import|url\((?!#)", text)
    names = [name for name, _ in page.elements]
    assert ("html", {"lang": "en"}) in page.elements and names.count("h1") == 1 and "title" in names
    assert all(given.get("aria-label") and given.get("role") == "img" for name, given in page.elements if name == "svg")
    assert all(given.get("scope") in ("col", "row") for name, given in page.elements if name == "th")
    assert names.count("caption") == names.count("table")
    headings = [int(name[1]) for name in names if re.fullmatch(r"h[1-6]", name)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))
    for variable in set(re.findall(r"var\((--\w+)\)", text)):
        assert text.count(f"{variable}: #") == 2  # light and dark
    return page
