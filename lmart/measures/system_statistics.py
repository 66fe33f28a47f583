"""What chance says about an evaluation: summaries of each system, and comparisons of systems, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lmart.measures.comparison import Comparison, System, compare
from lmart.measures.resampling import Resampling
from lmart.measures.summary import Summary, summarize
from lmart.measures.system_evaluation import EvaluationResult
from lmart.threads import WorkerPool


@dataclass(frozen=True)
class SystemStatistics:
    """Summaries and comparisons of an evaluation.

    resampling  : how they were drawn
    resamples   : of the bootstrap, as many as were drawn of all queries
    summaries   : one a system, by measure
    comparisons : those of a measure together; empty for one system, or when none were asked for
    all_pairs   : whether each system is compared with each one before it, not with the first only
    """

    resampling: Resampling
    resamples: int
    summaries: tuple[dict[str, Summary], ...]
    comparisons: tuple[Comparison, ...] = ()
    all_pairs: bool = False

    def add_to(self, content: dict[str, Any], result: EvaluationResult) -> None:
        """Add the statistics to an evaluation as plain JSON values.

        content : what `EvaluationResult.to_json` gave, in and out
        result  : the evaluation
        """
        drawn = {"seed": self.resampling.seed, "level": self.resampling.level, "resamples": self.resamples}
        content["resampling"] = drawn | ({"flips": self.resampling.flips} if self.comparisons else {})
        for system, summary in zip(content["systems"], self.summaries, strict=True):
            system["summary"] = {name: one.to_json() for name, one in summary.items()}
        if self.comparisons:
            content["comparisons"] = [one.to_json(result.query_ids) for one in self.comparisons]


def statistics_of(
    result: EvaluationResult, resampling: Resampling, pool: WorkerPool, compared: bool = True, all_pairs: bool = False
) -> SystemStatistics:
    """Return the summaries of each system, and the comparisons of several.

    result     : the evaluation
    resampling : how intervals and tests are drawn
    pool       : its threads draw in parallel; no value depends on it
    compared   : whether systems are compared at all
    all_pairs  : compare each system with each one before it, not with the first only
    """
    weights = result.weights
    if weights is not None:  # squares of large ones would be beyond the numbers; a power of two changes no mean
        weights = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    reports = [system.report for system in result.systems]
    summaries = [summarize(one.per_query, one.values, weights, resampling, pool) for one in reports]
    comparisons: tuple[Comparison, ...] = ()
    if compared and len(result.systems) > 1:
        systems = [System(one.name, one.report.per_query) for one in result.systems]
        comparisons = compare(systems, weights, resampling, pool, all_pairs)
    resamples = resampling.resamples_of(len(result.query_ids))
    return SystemStatistics(resampling, resamples, tuple(summaries), comparisons, all_pairs)
