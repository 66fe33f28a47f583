"""Measures of the data sets of a run by name: the first decides on early stopping, others are shown and reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Measures: TypeAlias = Mapping[str, float | None]
"""Measures of one data set by name, the deciding one first; None when no query counts."""


def deciding(measures: Measures) -> float | None:
    """Return the measure that decides on early stopping."""
    return next(iter(measures.values()))


@dataclass(frozen=True)
class OnValidation:
    """Measures of each validation set, the first set first."""

    validation_measures: tuple[Measures, ...]

    @property
    def validation(self) -> tuple[float | None, ...]:
        """The first measure of each validation set."""
        return tuple(map(deciding, self.validation_measures))


@dataclass(frozen=True)
class OnAllSets(OnValidation):
    """Measures of the training set too."""

    training_measures: Measures

    @property
    def training(self) -> float | None:
        """The first measure of the training set."""
        return deciding(self.training_measures)
