"""What stands beside a bar: several ways to say it, of which the longest is taken that fits the terminal."""

from __future__ import annotations

from typing import NamedTuple


class Label(NamedTuple):
    """How good a result is by now.

    plain : as a line of its own says it
    forms : as it stands beside a bar, the longest first
    """

    plain: str
    forms: tuple[str, ...]
