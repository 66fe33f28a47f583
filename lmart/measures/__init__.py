"""Measures of a ranking: `kinds` lists them, `measure` parses them, `evaluation` computes them.

`conventions` says what tools do differently, `presets` what each of them does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmart.measures.conventions import CHOICES, Conventions
from lmart.measures.kinds import KINDS, MeasureKind
from lmart.measures.measure import SYNTAX, Measure, parse_measure, parse_measures

if TYPE_CHECKING:
    from lmart.measures.evaluation import Evaluator
    from lmart.measures.results import EvaluationReport

DEFAULT_METRICS = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr"
"""What an evaluation measures unless its caller says otherwise."""

__all__ = [
    "CHOICES",
    "DEFAULT_METRICS",
    "KINDS",
    "SYNTAX",
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
        from lmart.measures import evaluation, results

        return evaluation.Evaluator if name == "Evaluator" else results.EvaluationReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
