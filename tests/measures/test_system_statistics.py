"""Statistics of an evaluation of one system or several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lmart.measures import Evaluator, parse_measures
from lmart.measures.comparison import System, compare
from lmart.measures.resampling import Resampling
from lmart.measures.summary import summarize
from lmart.measures.system_evaluation import EvaluationResult, SystemEvaluation
from lmart.measures.system_statistics import statistics_of
from lmart.threads import WorkerPool

ONE = WorkerPool(1)
FEW = Resampling(3, 0.9, 100, 200)


def evaluated(n_systems: int, weights: np.typing.NDArray[np.float64] | None = None) -> EvaluationResult:
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 241, 8)
    labels = rng.integers(0, 3, 240).astype(np.float64)
    evaluator = Evaluator(labels, offsets, parse_measures("ndcg@5,map"), weights=weights)
    reports = [evaluator.evaluate(labels + rng.normal(0, 2, 240)) for _ in range(n_systems)]
    systems = tuple(SystemEvaluation(f"s{i}", "scores", f"s{i}.txt", one) for i, one in enumerate(reports))
    return EvaluationResult([f"q{q}" for q in range(30)], systems, ("d.svm",), weights=weights)


def test_one_system_has_a_summary_and_no_comparison() -> None:
    result = evaluated(1)
    found = statistics_of(result, FEW, ONE)
    report = result.systems[0].report
    assert found.summaries == (summarize(report.per_query, report.values, None, FEW, ONE),)
    assert found.comparisons == ()
    content = result.to_json()
    found.add_to(content, result)
    assert content["resampling"] == {"seed": 3, "level": 0.9, "resamples": 100}
    assert "comparisons" not in content
    assert content["systems"][0]["summary"]["map"] == found.summaries[0]["map"].to_json()


def test_several_systems_are_compared_unless_not_asked_for() -> None:
    result = evaluated(3)
    systems = [System(one.name, one.report.per_query) for one in result.systems]
    found = statistics_of(result, FEW, ONE)
    assert found.comparisons == compare(systems, None, FEW, ONE)
    content = result.to_json()
    found.add_to(content, result)
    assert content["resampling"]["flips"] == 200
    assert [one["system"] for one in content["comparisons"]] == ["s1", "s2", "s1", "s2"]
    assert all(one["qid"].startswith("q") for one in content["comparisons"][0]["gained"])
    assert statistics_of(result, FEW, ONE, compared=False).comparisons == ()
    assert len(statistics_of(result, FEW, ONE, all_pairs=True).comparisons) == 6


def test_the_size_of_weights_does_not_count() -> None:
    weights = np.random.default_rng(1).random(30)
    result = evaluated(2, weights)
    found = statistics_of(result, FEW, ONE)
    large = statistics_of(replace(result, weights=weights * 2.0**900), FEW, ONE)
    assert large == found
    plain = statistics_of(evaluated(2), FEW, ONE)
    assert found.comparisons[0].difference != pytest.approx(plain.comparisons[0].difference, abs=1e-6)
    assert found.summaries[0]["map"].mean == result.systems[0].report.values["map"]
