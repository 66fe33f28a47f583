"""Measures of a ranking: `kinds` lists them, `values` parses them, `evaluation` computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmart.measures.kinds import KINDS, MeasureKind
from lmart.measures.values import (
    EMPTY_CHOICES,
    SYNTAX,
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
    "KINDS",
    "SYNTAX",
    "TIES_CHOICES",
    "Conventions",
    "EvaluationReport",
    "Evaluator",
    "Measure",
    "MeasureKind",
    "parse_measure",
    "parse_measures",
]


def __getattr__(name: str) -> type[Evaluator] | type[EvaluationReport]:
    # Evaluation needs NumPy, which takes longer to import than all else that `lmart --help` does.
    if name in ("EvaluationReport", "Evaluator"):
        from lmart.measures import evaluation

        return evaluation.Evaluator if name == "Evaluator" else evaluation.EvaluationReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
