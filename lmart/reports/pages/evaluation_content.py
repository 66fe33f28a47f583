"""PageContent: all that the page of an evaluation shows, as plain values, which the page also holds as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lmart.array_types import Float64Array
from lmart.measures.comparing import SystemStatistics
from lmart.measures.measure import Measure, parse_measure
from lmart.measures.results import EvaluationReport, EvaluationResult, QueryGroup, SystemEvaluation
from lmart.measures.summary import counted_values, histogram, value_range
from lmart.reports.run_report import RunReport

CUTOFFS = tuple(range(1, 21))
BINS = 20


class CutoffPoint(NamedTuple):
    """NDCG at one cutoff.

    interval : of the mean; None when there is none
    """

    cutoff: int
    mean: float | None
    interval: tuple[float, float] | None


class CutoffCurve(NamedTuple):
    """NDCG of one system by cutoff."""

    system: str
    points: tuple[CutoffPoint, ...]


class Distribution(NamedTuple):
    """How many queries of each system have which value of a measure.

    low    : where the first part of the range begins
    high   : where the last part ends
    counts : by system, queries in each of BINS equal parts of the range; the last part holds `high` itself
    """

    measure: str
    low: float
    high: float
    counts: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class PageContent:
    """What the page shows.

    evaluation : the object that `lmart eval --json` prints
    """

    evaluation: Mapping[str, Any]
    curves: tuple[CutoffCurve, ...]
    distributions: tuple[Distribution, ...]
    run: RunReport | None = None
    run_path: str = ""
    title: str | None = None

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in order."""
        return tuple(system["name"] for system in self.evaluation["systems"])

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures, in order."""
        return tuple(self.evaluation["systems"][0]["metrics"])

    def to_json(self) -> dict[str, Any]:
        """Return the content as plain JSON values."""
        curves = [
            {"system": curve.system, "points": [point._asdict() for point in curve.points]} for curve in self.curves
        ]
        shares = [distribution._asdict() | {"counts": dict(distribution.counts)} for distribution in self.distributions]
        content: dict[str, Any] = {
            "evaluation": dict(self.evaluation),
            "ndcg_by_cutoff": curves,
            "distributions": shares,
        }
        if self.title is not None:
            content["title"] = self.title
        if self.run is not None:
            content["train_report"] = {"file": self.run_path, **self.run.to_json()}
        return content


def with_cutoffs(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return the measures, then NDCG at each of the CUTOFFS that is not among them."""
    conventions = measures[0].conventions
    curve = (parse_measure(name, conventions) for name in cutoff_names())
    return tuple(dict.fromkeys([*measures, *curve]))


def narrowed(result: EvaluationResult, names: Sequence[str]) -> EvaluationResult:
    """Return an evaluation with some of its measures only."""

    def only(report: EvaluationReport) -> EvaluationReport:
        """Return a report with the measures that are kept."""
        return replace(
            report,
            values={name: report.values[name] for name in names},
            per_query={name: report.per_query[name] for name in names},
            grade_scales={name: scale for name, scale in report.grade_scales.items() if name in names},
        )

    def of_group(group: QueryGroup) -> QueryGroup:
        """Return a group with the measures that are kept."""
        return replace(group, reports=tuple(map(only, group.reports)))

    def of_system(system: SystemEvaluation) -> SystemEvaluation:
        """Return a system with the measures that are kept."""
        return replace(system, report=only(system.report))

    return replace(result, systems=tuple(map(of_system, result.systems)), groups=tuple(map(of_group, result.groups)))


def cutoff_names() -> list[str]:
    """Return the names of NDCG at the CUTOFFS."""
    return [f"ndcg@{cutoff}" for cutoff in CUTOFFS]


def page_content(
    result: EvaluationResult,
    statistics: SystemStatistics,
    curve: EvaluationResult,
    curve_statistics: SystemStatistics,
    run: RunReport | None = None,
    run_path: str = "",
    title: str | None = None,
) -> PageContent:
    """Return the content of the page of an evaluation."""
    evaluation = result.to_json()
    statistics.add_to(evaluation, result)
    curves = [
        CutoffCurve(system.name, tuple(_point(cutoff, system, summary) for cutoff in CUTOFFS))
        for system, summary in zip(curve.systems, curve_statistics.summaries, strict=True)
    ]
    distributions = [_distribution(result, measure) for measure in result.measures]
    defined = tuple(distribution for distribution in distributions if distribution is not None)
    return PageContent(evaluation, tuple(curves), defined, run, run_path, title)


def _point(cutoff: int, system: SystemEvaluation, summary: Mapping[str, Any]) -> CutoffPoint:
    name = f"ndcg@{cutoff}"
    return CutoffPoint(cutoff, system.report.values[name], summary[name].interval)


def _distribution(result: EvaluationResult, measure: str) -> Distribution | None:
    """Return how the queries of each system are distributed; None when no query counts."""
    every: dict[str, Float64Array] = {
        system.name: counted_values(system.report.per_query[measure], result.weights) for system in result.systems
    }
    counted = np.concatenate(list(every.values()))
    if not len(counted):
        return None
    low, high = value_range(counted)
    counts = {name: tuple(histogram(values, low, high, BINS).tolist()) for name, values in every.items()}
    return Distribution(measure, low, high, counts)
