"""Monotone constraints: features that may only raise the score, or only lower it.

Light: the command line imports it.
"""

from __future__ import annotations

import re

from lmart.errors import SettingsError, quote

SIGNS = {"+1": 1, "1": 1, "+": 1, "-1": -1, "-": -1}
_ENTRY = re.compile(r"(?P<feature>.+?):(?P<sign>[+-]?1|[+-])(?:,|\Z)", re.DOTALL)


def is_list(text: str) -> bool:
    """Return whether the text is a list of constraints rather than the name of a file."""
    return bool(_entries(text))


def parse_monotone(text: str) -> dict[str, int]:
    """Return feature -> 1 or -1 from `FEATURE:+1,FEATURE:-1,...`; SettingsError when it is none, or names one twice."""
    found: dict[str, int] = {}
    if not text:
        return found
    entries = _entries(text)
    if not entries:
        raise SettingsError(f"monotone is {quote(text)}; use FEATURE:+1 or FEATURE:-1, with commas between")
    for entry in entries:
        feature = entry["feature"].strip()
        if feature in found:
            raise SettingsError(f"monotone names feature {quote(feature)} twice")
        found[feature] = SIGNS[entry["sign"]]
    return found


def _entries(text: str) -> list[re.Match[str]]:
    """Return the entries of a list, end to end; none when it is no list. Each ends where it first can."""
    entries, at = [], 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            return []
        entries.append(entry)
        at = entry.end()
    return entries


def format_monotone(constraints: dict[str, int]) -> str:
    """Return the text that `parse_monotone` reads back."""
    return ",".join(f"{feature}:{sign:+d}" for feature, sign in constraints.items())
