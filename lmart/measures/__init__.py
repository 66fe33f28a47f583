"""Measures of a ranking: the values that name them, and their evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmart.measures.values import (
    EMPTY_CHOICES,
    MEANINGS,
    NEED_CUTOFF,
    SPELLINGS,
    TIES_CHOICES,
    Conventions,
    Measure,
    parse_measure,
    parse_measures,
)

if TYPE_CHECKING:
    from lmart.measures.evaluation import EvaluationReport, Evaluator

__all__ = [
    "EMPTY_CHOICES",
    "MEANINGS",
    "NEED_CUTOFF",
    "SPELLINGS",
    "TIES_CHOICES",
    "Conventions",
    "EvaluationReport",
    "Evaluator",
    "Measure",
    "parse_measure",
    "parse_measures",
]


def __getattr__(name: str) -> Any:
    # Evaluation needs NumPy, which takes longer to import than all else that `lmart --help` does.
    if name in ("EvaluationReport", "Evaluator"):
        from lmart.measures import evaluation

        return getattr(evaluation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
