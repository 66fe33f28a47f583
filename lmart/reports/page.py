"""The page of an evaluation: one HTML file that needs nothing else, for screens of any width, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmart.errors import counted
from lmart.gains import GAIN_MEANINGS
from lmart.measures.conventions import CHOICES
from lmart.measures.results import best_places, distinct_names, logarithms_note
from lmart.reports.charts import (
    MOST_BANDS,
    Chart,
    Difference,
    cutoff_chart,
    difference_chart,
    distribution_chart,
    learning_chart,
)
from lmart.reports.html_parts import Cell, embedded, facts, folded, interval, number, section, shown, table, text
from lmart.reports.model_summary import FeatureImportance
from lmart.reports.page_content import Distribution, PageContent
from lmart.reports.run_report import Curve, RankerRun, RunReport
from lmart.reports.verdict import is_best_beyond_chance, is_beyond_chance, main_measure, verdict

MOST_COLUMNS = 4  # systems that stand beside each other, not below
MOST_NAMED = 3  # systems that the title names
MOST_ROWS = 12  # systems that a chart of distributions has rows for; comparisons in a table that is shown at once
MOST_DIFFERENCES = 28  # of all pairs of eight systems, in a chart
LISTED = 20  # features that are shown at once
# One column for telephones, two of charts where there is room; light and dark.
STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c1e21; --faint: #5c636a; --paper: #ffffff; --line: #c9ced3; --grid: #c9ced3; --raised: #f4f6f8;
  --s1: #0b62a8; --s2: #b34700; --s3: #028179; --s4: #760023; --s5: #086efb; --s6: #0000f9;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ea; --faint: #a4abb2; --paper: #15181b; --line: #434a51; --grid: #434a51; --raised: #1f2327;
    --s1: #63b3f4; --s2: #ff9f5a; --s3: #9dffc2; --s4: #f9de0a; --s5: #43ffff; --s6: #81876b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .4rem 0; max-width: 44rem; }
.verdict { padding: .5rem .9rem; background: var(--raised); border-left: 4px solid var(--s1); max-width: 48rem; }
.faint, caption, footer { color: var(--faint); }
footer { margin-top: 2.5rem; font-size: .875rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--faint); }
dd { margin: 0; min-width: 0; }
.scroll { overflow-x: auto; margin: .5rem 0; }
.scroll:focus-visible { outline: 2px solid var(--s1); outline-offset: 2px; }
.scroll + .scroll { margin-top: 1.25rem; }
table { border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: .25rem; font-size: .875rem; }
th, td { padding: .2rem .65rem .2rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; color: var(--faint); font-weight: 600; white-space: normal; min-width: 4rem; }
thead th { overflow-wrap: break-word; }
tbody th, .text { overflow-wrap: anywhere; }
th:first-child { position: sticky; left: 0; background: var(--paper); }
th:first-child, td:first-child, .text { text-align: left; }
tbody th, .text { font-weight: 400; white-space: normal; min-width: 5rem; max-width: 16rem; }
td.best { font-weight: 700; }
td span.under { display: block; font-size: .875em; font-weight: 400; color: var(--faint); }
td.bar { min-width: 5rem; width: 40%; }
td.bar span { display: block; height: .7rem; background: var(--s1); border-radius: 2px; }
details { margin: .25rem 0 .75rem; }
summary { cursor: pointer; color: var(--faint); font-size: .875rem; padding: .2rem 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 2rem; }
figure { margin: .5rem 0; max-width: 36rem; }
.charts > div { min-width: 0; }
figcaption { font-weight: 600; margin-bottom: .25rem; }
svg { display: block; width: 100%; height: auto; color: var(--ink); stroke-linejoin: round; }
svg text { font-family: inherit; }
@media screen and (max-width: 40rem) {
  dl { display: block; }
  thead { display: none; }
  table, caption, tbody, tr { display: block; }
  tr { padding: .35rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td { display: block; padding: .05rem 0; border: 0; }
  tbody th, .text { max-width: none; }
  tbody th { position: static; font-weight: 600; }
  td::before {
    content: attr(data-label); color: var(--faint); font-weight: 400; float: left; text-align: left; max-width: 55%;
  }
  td, .text { text-align: right; white-space: normal; }
  td::after { content: ""; display: block; clear: left; }
  td.bar { width: auto; }
  td.bar::before { content: none; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; }
  table, caption { font-size: 8pt; }
  th, td { white-space: normal; padding-right: .4rem; }
  th:first-child { position: static; }
  td data { white-space: nowrap; }
  h1, h2, h3, caption, figcaption, summary { break-after: avoid; }
  figure, tr, dl, .verdict { break-inside: avoid; }
  figure { max-width: 26rem; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""


def render_page(content: PageContent) -> str:
    """Return the page as HTML; the same content gives the same bytes.

    Tables hold every digit of their numbers, as the values of `data` elements, and all content stands in the page as
    JSON, in the script element `content`.
    """
    sections = (section(*parts) for parts in _sections(content, _Charts()))
    several = len(content.systems) > MOST_NAMED
    title = (
        content.title or f"Evaluation of {f'{len(content.systems)} systems' if several else ', '.join(content.systems)}"
    )
    footer = (
        f"Made by lmart {text(content.version)}. Every number of this page, with all its digits, is in its element "
        "<code>script#content</code>, as JSON."
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{text(title)}</h1>\n{_verdict(content)}{_facts(content)}{''.join(sections)}</main>\n<footer>{footer}</footer>\n"
        f'<script type="application/json" id="content">{embedded(content.to_json())}</script>\n</body>\n</html>\n'
    )


def _sections(content: PageContent, charts: _Charts) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the title and the content of each section."""
    evaluation = content.evaluation
    yield "measures", "Measures", _measures(content)
    if evaluation.get("comparisons"):
        yield "comparison", "Comparison", _comparisons(content, charts)
    yield "cutoffs", "NDCG at each cutoff", _cutoffs(content, charts)
    if content.distributions:
        yield "queries", "Queries by value", _distributions(content, charts)
    if evaluation.get("groups"):
        yield "groups", "Groups of queries", _groups(content)
    yield from _run_sections(content, charts)
    yield "conventions", "Conventions", _conventions(content)


class _Charts:
    """Numbers the charts of a page, so that their parts have names of their own."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> int:
        """Return the number of the next chart."""
        self.count += 1
        return self.count

    @staticmethod
    def figure(chart: Chart, below: str = "") -> str:
        """Return a chart with its title."""
        figure = f"<figure><figcaption>{text(chart.title)}</figcaption>\n{chart.svg}</figure>\n"
        return f"<div>\n{figure}{below}</div>\n"


def _verdict(content: PageContent) -> str:
    """Return what the numbers say."""
    return f'<p class="verdict">{" ".join(map(text, verdict(content.evaluation)))}</p>\n'


def _facts(content: PageContent) -> str:
    evaluation = content.evaluation
    entries = [("data", ", ".join(distinct_names(evaluation["data"])))]
    files = distinct_names([system["path"] for system in evaluation["systems"]])
    for system, file in zip(evaluation["systems"], files, strict=True):
        entries.append((system["kind"], file if system["name"] == file else f"{system['name']} ({file})"))
    size = f"{counted(evaluation['queries'], 'query', 'queries')}, {counted(evaluation['documents'], 'document')}"
    empty = evaluation["empty_queries"]
    entries.append(("size", f"{size}; {empty:,} of the queries without a relevant document"))
    return facts(entries)


def _interval_words(evaluation: Mapping[str, Any]) -> str:
    drawn = evaluation["resampling"]
    resamples, seed = drawn["resamples"], drawn["seed"]
    return f"{100 * drawn['level']:.6g}% bootstrap interval, {resamples:,} resamples of the queries, seed {seed}"


def _measures(content: PageContent) -> str:
    """Return the table of means of all systems, and on demand further statistics of each."""
    systems, measures = content.evaluation["systems"], content.measures
    words = _interval_words(content.evaluation)
    header = ["measure", "mean", "interval", "median", "std. deviation", "queries"]
    if len(systems) == 1:
        return table(f"Means over the queries; {words}", header, _summary_rows(systems[0], measures), "means")
    more = [
        table(f"{system['name']}: {words}", header, _summary_rows(system, measures), f"summary-{k}")
        for k, system in enumerate(systems, 1)
    ]
    return _means(content) + folded("Intervals, medians and deviations of each system", "".join(more))


def _means(content: PageContent) -> str:
    """Return the table of means: a few systems stand beside each other, more of them below each other."""
    evaluation, measures = content.evaluation, content.measures
    systems = evaluation["systems"]
    corner, rows, columns = "measure", list(measures), [str(system["name"]) for system in systems]
    beside = len(systems) <= MOST_COLUMNS
    cells: list[list[str | Cell]] = []
    for measure in measures:
        best = best_places([system["metrics"][measure] for system in systems])
        own: list[str | Cell] = []
        for place, system in enumerate(systems):
            mean, ends = number(system["metrics"][measure]), system["summary"][measure]["interval"]
            if beside and ends is not None:
                mean += f' <span class="under">{ends[0]:.4f} to {ends[1]:.4f}</span>'
            stands_out = place in best and is_best_beyond_chance(evaluation, measure, system["name"])
            own.append(Cell(mean, "best") if stands_out else mean)
        cells.append(own)
    if not beside:
        corner, rows, columns = "system", columns, rows
        cells = [list(column) for column in zip(*cells, strict=True)]
    body = [[text(name), *row] for name, row in zip(rows, cells, strict=True)]
    best_is = (
        "the best in bold where its comparisons say more than chance"
        if evaluation.get("comparisons")
        else "the best in bold"
    )
    return table(f"Means over the queries; {best_is}", [corner, *columns], body, "means")


def _summary_rows(system: Mapping[str, Any], measures: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each measure of a system."""
    for name in measures:
        summary = system["summary"][name]
        spread = (number(summary["median"]), number(summary["std"]), number(summary["count"], ",d"))
        yield [text(name), number(system["metrics"][name]), interval(summary["interval"]), *spread]


def _cutoffs(content: PageContent, charts: _Charts) -> str:
    chart = cutoff_chart(content.curves, charts.next())
    rows = []
    for points in zip(*(curve.points for curve in content.curves), strict=True):
        cells = [cell for point in points for cell in (number(point.mean), interval(point.interval))]
        rows.append([str(points[0].cutoff), *cells])
    header = ["k", *(word for curve in content.curves for word in (curve.system, "interval"))]
    below = folded("The numbers of this chart", table("NDCG@k", header, rows, "ndcg-by-cutoff"))
    words = _interval_words(content.evaluation)
    bands = "Bands" if len(content.systems) <= MOST_BANDS else "Intervals, in the table"
    note = f'<p class="faint">NDCG@k looks at the first k documents of each query. {bands}: {text(words)}.</p>\n'
    return _Charts.figure(chart, below) + note


def _distributions(content: PageContent, charts: _Charts) -> str:
    """Return the distribution in the main measure, and on demand those in the others."""
    name = main_measure([distribution.measure for distribution in content.distributions])
    main = next(distribution for distribution in content.distributions if distribution.measure == name)
    others = [distribution for distribution in content.distributions if distribution is not main]
    drawn = _distribution(main, "queries-1", charts)
    if not others:
        return drawn
    more = "".join(
        _distribution(distribution, f"queries-{place}", charts) for place, distribution in enumerate(others, 2)
    )
    return drawn + folded("Other measures", f'<div class="charts">\n{more}</div>\n')


def _distribution(distribution: Distribution, name: str, charts: _Charts) -> str:
    """Return how queries are distributed in one measure: as a chart, and as a table."""
    caption = f"Queries by their {distribution.measure}"
    numbers = table(caption, ["from", "to", *distribution.counts], _distribution_rows(distribution), name)
    if len(distribution.counts) > MOST_ROWS:
        return folded(caption, numbers)
    return _Charts.figure(distribution_chart(distribution, charts.next()), folded("The numbers of this chart", numbers))


def _distribution_rows(distribution: Distribution) -> Iterator[list[str]]:
    every = list(distribution.counts.values())
    step = (distribution.high - distribution.low) / len(every[0])
    for place, counts in enumerate(zip(*every, strict=True)):
        ends = (distribution.low + step * k for k in (place, place + 1))
        yield [*(f"{end:.4g}" for end in ends), *(number(count, ",d") for count in counts)]


def _comparisons(content: PageContent, charts: _Charts) -> str:
    """Return the differences as charts, as matrices of all pairs, and as a table; on demand, queries that moved."""
    main = main_measure(content.measures)
    others = [name for name in content.measures if name != main]
    made = _differences(content, main, charts)
    if others:
        more = "".join(_differences(content, name, charts) for name in others)
        made += folded("Differences in other measures", f'<div class="charts">\n{more}</div>\n')
    compared = content.evaluation["comparisons"]
    numbers = _comparison_table(content, compared)
    made += folded("All differences as numbers", numbers) if len(compared) > MOST_ROWS else numbers
    made += (
        '<p class="faint">p (random): of a two-sided randomization test (Fisher), the share of random exchanges of '
        "both systems with a difference at least as large; Holm: adjusted for the number of comparisons in the "
        "measure. A small p says that a difference is hardly chance, not that it is large."
        f"{text(logarithms_note(content.measures))}</p>\n"
    )
    moved = ""
    for place, comparison in enumerate(compared, 1):
        listed: list[list[str | Cell]] = [
            [text(query["qid"]), Cell(way, "text"), number(query["difference"], "+.6f")]
            for way in ("gained", "lost")
            for query in comparison[way]
        ]
        if not listed:
            continue
        system, baseline = comparison["system"], comparison["baseline"]
        caption = f"{comparison['measure']}: where {system} gained and lost most against {baseline}"
        moved += table(caption, ["query", "moved", "difference"], listed, f"moved-{place}")
    return made + (folded("Queries that gained and lost most", moved) if moved else "")


def _all_pairs(content: PageContent) -> bool:
    """Return whether systems are compared with more than the first."""
    return len({comparison["baseline"] for comparison in content.evaluation["comparisons"]}) > 1


def _differences(content: PageContent, measure: str, charts: _Charts) -> str:
    """Return the differences in a measure: as a chart, and of all pairs as a matrix."""
    own = [
        comparison
        for comparison in content.evaluation["comparisons"]
        if comparison["measure"] == measure and comparison["queries"]
    ]
    differences = [
        Difference(
            f"{comparison['system']} - {comparison['baseline']}" if _all_pairs(content) else comparison["system"],
            comparison["difference"],
            comparison["interval"],
            is_beyond_chance(comparison, content.evaluation),
        )
        for comparison in own
    ]
    made = ""
    if 0 < len(differences) <= MOST_DIFFERENCES:
        chart = difference_chart(measure, differences, charts.next())
        against = "" if _all_pairs(content) else f'<p class="faint">Against {text(own[0]["baseline"])}.</p>\n'
        made = charts.figure(chart, against)
    return made + (_matrix(content, measure, own) if own and _all_pairs(content) else "")


def _matrix(content: PageContent, measure: str, compared: Sequence[Mapping[str, Any]]) -> str:
    """Return the differences between all pairs of systems, each both ways; bold where chance does not explain it."""
    found: dict[tuple[str, str], str | Cell] = {}
    for comparison in compared:
        stands_out = is_beyond_chance(comparison, content.evaluation)
        for system, baseline, sign in (
            (comparison["system"], comparison["baseline"], 1),
            (comparison["baseline"], comparison["system"], -1),
        ):
            cell = number(sign * comparison["difference"], "+.4f")
            found[system, baseline] = Cell(cell, "best") if stands_out else cell
    rows = [[text(name), *(found.get((name, other), "") for other in content.systems)] for name in content.systems]
    caption = f"{measure}: what the system in the row has more than the system above; bold: more than chance explains"
    return table(caption, ["system", *content.systems], rows, f"matrix-{content.measures.index(measure) + 1}")


def _comparison_table(content: PageContent, compared: Sequence[Mapping[str, Any]]) -> str:
    """Return the comparisons as numbers, without a column for a single baseline or a p adjusted for one test."""
    names = ["system", "baseline"] if _all_pairs(content) else ["system"]
    tests = ["p_randomization", "p_holm", "p_t"]
    if len(compared) == len(content.measures):
        tests.remove("p_holm")
    titles = {"baseline": "against", "p_randomization": "p (random)", "p_holm": "p (Holm)", "p_t": "p (paired t)"}
    header = ["measure", *names, "difference", "interval", "better", "equal", "worse", *tests]
    rows: list[list[str | Cell]] = []
    for comparison in compared:
        difference = (number(comparison["difference"], "+.6f"), interval(comparison["interval"], "+.4f"))
        counts = (number(comparison[name], ",d") for name in ("wins", "ties", "losses"))
        values = (number(comparison[name], ".4g") for name in tests)
        rows.append(
            [
                text(comparison["measure"]),
                *(Cell(text(comparison[name]), "text") for name in names),
                *difference,
                *counts,
                *values,
            ]
        )
    against = "" if _all_pairs(content) else f", against {compared[0]['baseline']}"
    caption = f"Differences of the means, query by query{against}"
    return table(caption, [titles.get(name, name) for name in header], rows, "comparisons")


def _groups(content: PageContent) -> str:
    made = []
    for place, measure in enumerate(content.measures, 1):
        rows = []
        for group in content.evaluation["groups"]:
            values = (number(system["metrics"][measure]) for system in group["systems"])
            rows.append([text(group["group"]), number(group["queries"], ",d"), *values])
        made.append(table(f"{measure} by group", ["group", "queries", *content.systems], rows, f"groups-{place}"))
    first, *others = made
    return first + (folded("Other measures by group", "".join(others)) if others else "")


def _conventions(content: PageContent) -> str:
    """Return the conventions with their meanings: other tools choose others, and have other numbers."""
    entries = []
    conventions = content.evaluation["conventions"]
    for name in sorted(conventions, key=lambda name: name != "like"):
        value = conventions[name]
        meaning = GAIN_MEANINGS.get(value) if name == "gain" else CHOICES.get(name, {}).get(value)
        if value is not None:
            entries.append((name.replace("_", " "), value if meaning is None else f"{value}: {meaning}"))
    return "<p>Numbers of other tools agree only under the same conventions.</p>\n" + facts(entries)


def _run_sections(content: PageContent, charts: _Charts) -> Iterator[tuple[str, str, str]]:
    """Yield the name, title and content of each section on the run; nothing when no report of a run was given."""
    run = content.run
    if run is None:
        return
    yield "training", "Training", _run_facts(run, content.run_path) + _curves(run, charts)
    if run.importance:
        yield "importance", "Importance of features", _importance(run.importance, len(run.rankers))


def _run_facts(run: RunReport, path: str) -> str:
    entries = [("report", path)]
    data = run.content.get("files", {}).get("data")
    if isinstance(data, list):
        entries.append(("trained on", ", ".join(map(str, data))))
    kept, grown = sum(ranker.trees for ranker in run.rankers), sum(len(ranker.rounds) for ranker in run.rankers)
    entries.append(("trees", f"{kept:,} of {counted(grown, 'round')}, {counted(len(run.rankers), 'ranker')}"))
    for metric, measures in {run.metric: run.measures, **run.further}.items():
        entries += [(metric, f"{shown(value)} on {name}") for name, value in measures]
    changed = (f"{name.replace('_', '-')} {value}" for name, value in run.changed.items())
    entries.append(("settings", ", ".join(changed) or "the defaults"))
    seconds = run.content.get("seconds")
    if isinstance(seconds, dict):
        spent = (f"{stage} {spent_on:.1f}" for stage, spent_on in seconds.items() if isinstance(spent_on, int | float))
        entries.append(("seconds", ", ".join(spent)))
    warnings = run.content.get("warnings")
    entries += [("warning", str(warning)) for warning in warnings] if isinstance(warnings, list) else []
    return facts(entries)


def _curves(run: RunReport, charts: _Charts) -> str:
    made = []
    for place, ranker in enumerate(run.rankers, 1):
        if not ranker.rounds:
            continue
        several = f" {place} of {len(run.rankers)}" if len(run.rankers) > 1 else ""
        title = f"Learning curves of ranker{several}: {ranker.objective}, {ranker.tree} trees"
        for number_of_measure, metric in enumerate(run.metrics, 1):
            curves = ranker.curves_of(metric)
            chart = learning_chart(ranker, curves, metric, charts.next(), title)
            key = f"curve-{place}" + (f"-{number_of_measure}" if number_of_measure > 1 else "")
            numbers = _curve_table(ranker, curves, metric, key)
            made.append(charts.figure(chart, folded("The numbers of this chart", numbers)))
    return f'<div class="charts">\n{"".join(made)}</div>\n'


def _curve_table(ranker: RankerRun, curves: Sequence[Curve], metric: str, key: str) -> str:
    rows = [
        [f"{ranker.rounds[k]:,}", *(number(curve.values[k]) for curve in curves)] for k in range(len(ranker.rounds))
    ]
    caption = f"{metric} after each round; {ranker.trees:,} kept"
    return table(caption, ["round", *(curve.name for curve in curves)], rows, key)


def _importance(features: Sequence[FeatureImportance], n_rankers: int) -> str:
    has_gain = features[0].gain_share is not None
    largest = max((feature.gain_share or 0.0) if has_gain else feature.splits for feature in features)

    def rows(some: Sequence[FeatureImportance]) -> Iterator[list[str | Cell]]:
        """Yield a row for each feature."""
        for feature in some:
            value = feature.gain_share if feature.gain_share is not None else float(feature.splits)
            width = 100 * value / largest if largest > 0 else 0.0
            bar = Cell(f'<span style="width: {width:.2f}%"></span>', "bar")
            yield [
                text(feature.feature),
                *([number(feature.gain_share, ".2%")] if has_gain else []),
                number(feature.splits, ",d"),
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
