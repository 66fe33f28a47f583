"""A name that is not known leads to the one that is meant."""

from __future__ import annotations

import pytest

from lmart.spelling import perhaps

KNOWN = ["trees", "tree", "learning_rate", "min_docs"]


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ("n_estimators", "; perhaps 'trees'"),
        ("ETA", "; perhaps 'learning_rate'"),
        ("learning-rat", "; perhaps 'learning_rate'"),
        ("treees", "; perhaps 'trees' or 'tree'"),
        ("num_leaves", ""),  # which would be leaves, but is not among the known
        ("zzz", ""),
    ],
)
def test_what_may_be_meant(unknown: str, said: str) -> None:
    assert perhaps(unknown, KNOWN) == said


def test_a_name_that_is_known_twice_is_told_once() -> None:
    assert perhaps("tres", [*KNOWN, *KNOWN]) == "; perhaps 'trees' or 'tree'"
