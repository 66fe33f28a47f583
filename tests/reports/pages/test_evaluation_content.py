"""What is measured for a page, and what it holds."""

from __future__ import annotations

import json

import numpy as np

from lmart.measures import Evaluator, parse_measures
from lmart.measures.comparing import statistics_of
from lmart.measures.judgments import Judgments
from lmart.measures.resampling import Resampling
from lmart.measures.results import EvaluationResult, QueryGroup, SystemEvaluation
from lmart.reports.pages.evaluation_content import BINS, CUTOFFS, cutoff_names, narrowed, page_content, with_cutoffs
from lmart.threads import WorkerPool


def test_cutoffs_come_after_the_measures_and_none_twice() -> None:
    measures = parse_measures("map,ndcg@10,dcg@3")
    computed = with_cutoffs(measures)
    assert computed[:3] == measures
    assert len(set(computed)) == len(computed) == 3 + len(CUTOFFS) - 1
    assert set(cutoff_names()) <= set(map(str, computed))
    assert {one.conventions for one in computed} == {measures[0].conventions}


def evaluation(measures: str) -> EvaluationResult:
    labels, offsets = np.array([0.0, 1.0, 2.0, 0.0, 0.0]), np.array([0, 2, 4, 5])
    evaluator = Evaluator(Judgments(labels, offsets), with_cutoffs(parse_measures(measures)))
    reports = [evaluator.evaluate(np.array(scores)) for scores in ([1.0, 2, 2, 1, 1], [2.0, 1, 2, 1, 1])]
    systems = tuple(
        SystemEvaluation(name, "scores", f"{name}.txt", report) for name, report in zip("ab", reports, strict=True)
    )
    groups = (QueryGroup("g", np.array([0, 1]), tuple(reports)),)
    return EvaluationResult(["1", "2", "3"], systems, ("d.svm",), groups=groups)


def test_narrowed_keeps_the_measures_that_are_named() -> None:
    whole = evaluation("err@3,map")
    kept = narrowed(whole, ["map"])
    assert kept.measures == ("map",)
    report = kept.systems[0].report
    assert list(report.per_query) == list(report.values) == ["map"] and report.grade_scales == {}
    assert [list(one.values) for one in kept.groups[0].reports] == [["map"]] * 2
    assert list(narrowed(whole, ["map", "err@3"]).systems[1].report.grade_scales) == ["err@3"]


def test_the_content_of_a_page() -> None:
    whole = evaluation("map,dcg@3")
    result, curve = narrowed(whole, ["map", "dcg@3"]), narrowed(whole, cutoff_names())
    with WorkerPool(1) as pool:
        statistics = statistics_of(result, Resampling(resamples=100, flips=100), pool)
        drawn = statistics_of(curve, Resampling(resamples=100), pool, compared=False)
    content = page_content(result, statistics, curve, drawn)
    assert (content.systems, content.measures) == (("a", "b"), ("map", "dcg@3"))
    of_map, of_dcg = content.distributions
    assert of_map.counts == {"a": (1, *[0] * (BINS - 2), 2), "b": (1, *[0] * 9, 1, *[0] * (BINS - 12), 1)}
    assert (of_dcg.low, of_dcg.high) == (0.0, 3.0)  # 2^2 - 1, of the second query
    assert [point.mean for point in content.curves[0].points] == [2 / 3] * len(CUTOFFS)
    made = content.to_json()
    assert json.loads(json.dumps(made, allow_nan=False)).keys() == made.keys()
    assert made["evaluation"] == result.to_json() | {
        key: made["evaluation"][key] for key in ("resampling", "systems", "comparisons")
    }
