"""Measures of a ranking: the values that name them, and their evaluation."""

from lmart.measures.evaluation import EvaluationReport, Evaluator
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
