"""Columns of tables whose texts are categories: the number that rows hold in place of each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lmart.array_types import Float64Array
from lmart.formats.documents.diagnostics import NO_VALUE

CATEGORY = 5  # of ColumnPlan.kinds: a feature whose texts are categories; kernels pass it over
MISSING = frozenset({*(word.decode() for word in NO_VALUE), "nan"})


class CategoryTexts:
    """The texts of one column, numbered in the order of first appearance.

    known : the number of each text that a model has, -1 for all others; None: those that appear are numbered
    """

    def __init__(self, known: Mapping[str, int] | None) -> None:
        self._known = known
        self._numbers: dict[str, int] = {}

    def number(self, texts: Sequence[str | None]) -> Float64Array:
        """Return the number of each text, float64[n], nan where there is none: as in a column of numbers."""
        there = [None if text is None or text.lower() in MISSING else text for text in texts]
        if self._known is not None:
            known = self._known
            return np.array([np.nan if text is None else known.get(text, -1) for text in there], np.float64)
        own = self._numbers
        return np.array([np.nan if text is None else own.setdefault(text, len(own)) for text in there], np.float64)

    @property
    def found(self) -> tuple[str, ...]:
        """The texts that were numbered, by their numbers."""
        return tuple(self._numbers)
