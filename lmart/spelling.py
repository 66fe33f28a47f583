"""Names of settings that are not known, and which ones may be meant. Light: the command line imports it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from lmart.errors import quote
from lmart.foreign_names import option_for


def perhaps(unknown: str, known: Sequence[str]) -> str:
    """Return "; perhaps 'trees'" for a name that nobody knows, such as n_estimators; empty when none is like it.

    unknown : the name
    known   : all names there are
    """
    by_option = {"--" + name.replace("_", "-"): name for name in known}
    ours = option_for(unknown, by_option)
    if ours is not None:
        meant = [by_option[ours]]
    else:
        meant = get_close_matches(unknown.lower().replace("-", "_"), [*dict.fromkeys(known)], 2, 0.7)
    return f"; perhaps {' or '.join(map(quote, meant))}" if meant else ""
