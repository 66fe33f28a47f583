"""Monotone constraints: features that may only raise the score, or only lower it.

Light: the command line imports it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lmart.errors import SettingsError, quote

SIGNS = {"+1": 1, "1": 1, "+": 1, "-1": -1, "-": -1}
_ENTRY = re.compile(r"(?P<feature>.+?):(?P<sign>[+-]?1|[+-])(?:,|\Z)", re.DOTALL)


def is_list(text: str) -> bool:
    """Return whether the text is a list of constraints rather than the name of a file."""
    return bool(_entries(text))


@dataclass(frozen=True)
class MonotoneConstraints:
    """Which way the score may go with features; prints and parses back, and is false without any constraint.

    directions : feature, by index or column name -> 1 where the score may only rise with it, -1 where it may only fall
    """

    directions: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> MonotoneConstraints:
        """Parse `FEATURE:+1,FEATURE:-1,...`, or nothing; SettingsError when it is neither, or names one twice."""
        found: dict[str, int] = {}
        entries = _entries(text)
        if text and not entries:
            raise SettingsError(f"monotone is {quote(text)}; use FEATURE:+1 or FEATURE:-1, with commas between")
        for entry in entries:
            feature = entry["feature"].strip()
            if feature in found:
                raise SettingsError(f"monotone names feature {quote(feature)} twice")
            found[feature] = SIGNS[entry["sign"]]
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self.directions)

    def __str__(self) -> str:
        return ",".join(f"{feature}:{sign:+d}" for feature, sign in self.directions.items())


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
