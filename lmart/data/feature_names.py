"""What names of features may hold, wherever they come from, and which names columns of labels and ids usually have."""

from __future__ import annotations

import re
from collections.abc import Iterable

LARGEST_INDEX = 2**63 - 1
_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")

LABEL_NAMES = ("label", "relevance", "rel", "target", "y")
QUERY_NAMES = ("qid", "query_id", "query", "group", "srch_id")
DOCUMENT_NAMES = ("docid", "doc_id", "document_id", "docno")

USUAL = {
    **dict.fromkeys(LABEL_NAMES, "labels"),
    **dict.fromkeys(QUERY_NAMES, "query ids"),
    **dict.fromkeys(DOCUMENT_NAMES, "document ids"),
}
"""By usual name of a column that is no feature, in small letters, what it holds."""


def has_control(text: str) -> bool:
    """Return whether there is a control character in the text, which a terminal or another program could obey."""
    return _CONTROL.search(text) is not None


def is_index(name: str) -> bool:
    """Return whether a name is a feature index: a whole number without leading zeros."""
    plain = name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
    return plain and len(name) < 20 and int(name) <= LARGEST_INDEX


def are_indices(names: Iterable[str]) -> bool:
    """Return whether names are all feature indices, so that features go by number and have no names."""
    return all(map(is_index, names))
