"""The manual pages as tests read them."""

from __future__ import annotations

import re

from helpers.paths import ROOT

MAN = ROOT / "man"


def plain(page: str) -> str:
    """The text of a page without fonts and escapes."""
    text = re.sub(r"\\f.", "", (MAN / page).read_text("ascii"))
    for escape, shown in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\e", "\\")):
        text = text.replace(escape, shown)
    return text


def section(page: str, title: str) -> str:
    """The text of one section of a page."""
    return plain(page).partition(f"\n.SH {title}\n")[2].partition("\n.SH ")[0]


def keys(page: str, title: str) -> dict[str, dict[str, str]]:
    """The terms and texts in each subsection of a section of a page."""
    found = {}
    for part in re.split(r"^\.SS ", section(page, title), flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        found[heading] = dict(entry.strip().split("\n", 1) for entry in rest.split(".TP\n")[1:])
    return found
