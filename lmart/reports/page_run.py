"""The sections of the page on the run that trained the model: learning curves, importance of features, the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from lmart.errors import counted
from lmart.reports.charts import Chart, learning_chart
from lmart.reports.html_parts import facts, folded, number, shown, table, text
from lmart.reports.page_content import PageContent
from lmart.reports.run_report import RankerRun, RunReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmart.reports.model_summary import FeatureImportance

LISTED = 20  # features that are shown at once


class Charts(Protocol):
    """Numbers the charts of a page, and puts them into figures."""

    def next(self) -> int:
        """Return the number of the next chart."""

    def figure(self, chart: Chart, below: str = "") -> str:
        """Return a chart with its title."""


def run_sections(content: PageContent, charts: Charts) -> Iterator[tuple[str, str, str]]:
    """Yield the name, title and content of each section on the run; nothing when none was given.

    content : of the page
    charts  : of the page
    """
    run = content.run
    if run is None:
        return
    yield "training", "Training", _facts(run, content.run_path) + _curves(run, charts)
    if run.importance:
        yield "importance", "Importance of features", _importance(run.importance, len(run.rankers))


def _facts(run: RunReport, path: str) -> str:
    entries = [("report", path)]
    data = run.content.get("files", {}).get("data")
    if isinstance(data, list):
        entries.append(("trained on", ", ".join(map(str, data))))
    kept, grown = sum(one.trees for one in run.rankers), sum(len(one.rounds) for one in run.rankers)
    entries.append(("trees", f"{kept:,} of {counted(grown, 'round')}, {counted(len(run.rankers), 'ranker')}"))
    entries += [(run.metric, f"{shown(value)} on {name}") for name, value in run.measures]
    changed = (f"{name.replace('_', '-')} {value}" for name, value in run.changed.items())
    entries.append(("settings", ", ".join(changed) or "the defaults"))
    seconds = run.content.get("seconds")
    if isinstance(seconds, dict):
        spent = (f"{stage} {one:.1f}" for stage, one in seconds.items() if isinstance(one, int | float))
        entries.append(("seconds", ", ".join(spent)))
    warnings = run.content.get("warnings")
    entries += [("warning", str(one)) for one in warnings] if isinstance(warnings, list) else []
    return facts(entries)


def _curves(run: RunReport, charts: Charts) -> str:
    made = []
    for place, one in enumerate(run.rankers, 1):
        if not one.rounds:
            continue
        several = f" {place} of {len(run.rankers)}" if len(run.rankers) > 1 else ""
        title = f"Learning curves of ranker{several}: {one.objective}, {one.tree} trees"
        chart = learning_chart(one, run.metric, charts.next(), title)
        made.append(charts.figure(chart, folded("The numbers of this chart", _curve_table(one, run.metric, place))))
    return f'<div class="charts">\n{"".join(made)}</div>\n'


def _curve_table(one: RankerRun, metric: str, place: int) -> str:
    rows = [[f"{one.rounds[k]:,}", *(number(curve.values[k]) for curve in one.curves)] for k in range(len(one.rounds))]
    caption = f"{metric} after each round; {one.trees:,} kept"
    return table(caption, ["round", *(curve.name for curve in one.curves)], rows, f"curve-{place}")


def _importance(features: Sequence[FeatureImportance], n_rankers: int) -> str:
    has_gain = features[0].gain_share is not None
    largest = max((one.gain_share or 0.0) if has_gain else one.splits for one in features)

    def rows(some: Sequence[FeatureImportance]) -> Iterator[list[str]]:
        """Yield a row for each feature."""
        for one in some:
            value = one.gain_share if one.gain_share is not None else float(one.splits)
            width = 100 * value / largest if largest > 0 else 0.0
            bar = f'<td class="bar"><span style="width: {width:.2f}%"></span></td>'
            yield [
                text(one.feature),
                *([number(one.gain_share, ".2%")] if has_gain else []),
                number(one.splits, ",d"),
                bar,
            ]

    header = ["feature", *(["gain"] if has_gain else []), "splits", "relative to the first"]
    mean = ", the mean over rankers" if n_rankers > 1 else ""
    caption = f"Gain: share of the split gain{mean}. Splits: nodes that split on the feature"
    made = table(caption, header, rows(features[:LISTED]), "features")
    if len(features) > LISTED:
        rest = table(caption, header, rows(features[LISTED:]), "more-features")
        made += folded(f"{counted(len(features) - LISTED, 'more feature')}", rest)
    return made
