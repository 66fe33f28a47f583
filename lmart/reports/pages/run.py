"""The parts of a page on a training run: facts, learning curves, and the importance of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lmart.errors import counted, input_name
from lmart.measures.results import distinct_names
from lmart.reports.html_parts import Cell, bar, facts, folded, note, number, table, text
from lmart.reports.model_summary import FeatureImportance
from lmart.reports.pages.charts import learning_chart
from lmart.reports.pages.frame import Figures, render, side_by_side
from lmart.reports.run_report import Curve, RankerRun, RunReport
from lmart.reports.words import run_facts

LISTED = 20  # features that are shown at once
MOST_ROWS = 1000  # further features that unfold


def render_run_page(run: RunReport, path: str, listed: int | None, title: str | None = None) -> str:
    """Return the page of a run as HTML; the same content gives the same bytes.

    path   : of its report
    listed : features that are shown at once; None: all
    """
    name = distinct_names([input_name(path)])[0]
    content: dict[str, Any] = {"train_report": {"file": path, **run.to_json()}}
    if title is not None:
        content["title"] = title
    sections = run_sections(run, path, Figures(), listed)
    return render(title or f"Training run {name}", "", sections, content)


def run_sections(
    run: RunReport, path: str, figures: Figures, listed: int | None = LISTED
) -> Iterator[tuple[str, str, str]]:
    """Yield the name, title and content of each section on a run, whose report is the file `path`."""
    yield "training", "Training", training(run, path, figures)
    if run.importance:
        yield "importance", "Importance of features", importance_table(run.importance, len(run.rankers), listed)


def training(run: RunReport, path: str, figures: Figures) -> str:
    """Return how a run went: its facts and learning curves."""
    files = run.content.get("files")
    lists = [paths for paths in files.values() if isinstance(paths, list)] if isinstance(files, dict) else []
    paths = list(dict.fromkeys([path, *(str(entry) for entries in lists for entry in entries)]))
    names = dict(zip(paths, distinct_names(paths), strict=True))
    entries = run_facts(run, names[path], lambda measured: input_name(names.get(measured, measured)))
    return facts(entries) + _curves(run, figures)


def _curves(run: RunReport, figures: Figures) -> str:
    made = []
    for place, ranker in enumerate(run.rankers, 1):
        if not ranker.rounds:
            continue
        several = f" {place} of {len(run.rankers)}" if len(run.rankers) > 1 else ""
        title = f"Learning curves of ranker{several}: {ranker.objective}, {ranker.tree} trees"
        for number_of_measure, metric in enumerate(run.metrics, 1):
            curves = ranker.curves_of(metric)
            chart = learning_chart(ranker, curves, metric, figures.next(), title)
            key = f"curve-{place}" + (f"-{number_of_measure}" if number_of_measure > 1 else "")
            numbers = _curve_table(ranker, curves, metric, key)
            made.append(figures.figure(chart, folded("The numbers of this chart", numbers)))
    return side_by_side(made)


def _curve_table(ranker: RankerRun, curves: Sequence[Curve], metric: str, key: str) -> str:
    rows = [
        [f"{ranker.rounds[k]:,}", *(number(curve.values[k]) for curve in curves)] for k in range(len(ranker.rounds))
    ]
    caption = f"{metric} after each round; {ranker.trees:,} kept"
    return table(caption, ["round", *(curve.name for curve in curves)], rows, key)


def importance_table(features: Sequence[FeatureImportance], n_rankers: int, listed: int | None = LISTED) -> str:
    """Return the features that matter, the first `listed` at once (None: all), the others on demand."""
    used = [feature for feature in features if feature.splits]
    if not used:
        return note("No tree splits on a feature.")
    has_gain, has_contribution = used[0].gain_share is not None, used[0].contribution is not None
    largest = max(feature.decisive for feature in used)

    def rows(some: Sequence[FeatureImportance]) -> Iterator[list[str | Cell]]:
        """Yield a row for each feature."""
        for feature in some:
            yield [
                text(feature.feature),
                *([number(feature.contribution)] if has_contribution else []),
                *([number(feature.gain_share, ".2%")] if has_gain else []),
                number(feature.splits, ",d"),
                bar(100 * feature.decisive / largest if largest > 0 else 0.0),
            ]

    header = ["feature", *["adds"] * has_contribution, *["gain"] * has_gain, "splits", "relative to the first"]
    adds = "Adds: mean absolute contribution to a score. " if has_contribution else ""
    mean = ", the mean over rankers" if n_rankers > 1 else ""
    gain = f"Gain: share of the split gain{mean}. " if has_gain else ""
    caption = f"{adds}{gain}Splits: nodes that split on the feature"
    made = table(caption, header, rows(used[:listed]), "features")
    rest = used[len(used[:listed]) :]
    if rest:
        more = table(caption, header, rows(rest[:MOST_ROWS]), "more-features")
        if len(rest) > MOST_ROWS:
            more += note(f"The other {len(rest) - MOST_ROWS:,} are left out.")
        made += folded(counted(len(rest), "more feature"), more)
    return made
