"""The page of an evaluation: one HTML file that needs nothing else, for screens of any width, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmart.errors import counted
from lmart.gains import GAIN_MEANINGS
from lmart.measures.conventions import CHOICES
from lmart.measures.results import best_places
from lmart.reports.charts import MOST_BANDS, Chart, cutoff_chart, distribution_chart
from lmart.reports.html_parts import embedded, facts, folded, interval, number, section, table, text
from lmart.reports.page_content import Distribution, PageContent
from lmart.reports.page_run import run_sections
from lmart.reports.page_style import STYLE

MAIN = "ndcg@10"  # the measure whose distribution is shown at once
MOST_COLUMNS = 4  # systems that stand beside each other, not below
MOST_NAMED = 3  # systems that the title names
MOST_ROWS = 12  # systems that a chart of distributions has rows for


def render_page(content: PageContent) -> str:
    """Return the page as HTML; the same content gives the same bytes.

    content : what it shows

    Tables hold every digit of their numbers, as the values of `data` elements, and all content stands in the page as
    JSON, in the script element `content`.
    """
    sections = (section(*one) for one in _sections(content, _Charts()))
    several = len(content.systems) > MOST_NAMED
    title = f"Evaluation of {f'{len(content.systems)} systems' if several else ', '.join(content.systems)}"
    footer = (
        f"Made by lmart {text(content.version)}. Every number of this page, with all its digits, is in its element "
        "<code>script#content</code>, as JSON."
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{text(title)}</h1>\n{_facts(content)}{''.join(sections)}</main>\n<footer>{footer}</footer>\n"
        f'<script type="application/json" id="content">{embedded(content.to_json())}</script>\n</body>\n</html>\n'
    )


def _sections(content: PageContent, charts: _Charts) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the title and the content of each section."""
    evaluation = content.evaluation
    yield "measures", "Measures", _measures(content)
    yield "cutoffs", "NDCG at each cutoff", _cutoffs(content, charts)
    if content.distributions:
        yield "queries", "Queries by value", _distributions(content, charts)
    if evaluation.get("comparisons"):
        yield "comparison", "Comparison", _comparisons(content)
    if evaluation.get("groups"):
        yield "groups", "Groups of queries", _groups(content)
    yield from run_sections(content, charts)
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
        """Return a chart with its title.

        chart : the chart
        below : HTML below it
        """
        return f"<figure><figcaption>{text(chart.title)}</figcaption>\n{chart.svg}\n{below}</figure>\n"


def _facts(content: PageContent) -> str:
    evaluation = content.evaluation
    files = ", ".join(evaluation["data"])
    entries = [("data", files)]
    entries += [(one["kind"], one["path"]) for one in evaluation["systems"]]
    size = f"{counted(evaluation['queries'], 'query', 'queries')}, {counted(evaluation['documents'], 'document')}"
    empty = evaluation["empty_queries"]
    entries.append(("size", f"{size}; {empty:,} of the queries without a relevant document"))
    return facts(entries)


def _interval_words(evaluation: Mapping[str, Any]) -> str:
    drawn = evaluation["resampling"]
    resamples, seed = drawn["resamples"], drawn["seed"]
    return f"{100 * drawn['level']:.6g}% bootstrap interval, {resamples:,} resamples of the queries, seed {seed}"


def _measures(content: PageContent) -> str:
    """Return the table of the means of all systems, and that of what else is known of each."""
    systems, measures = content.evaluation["systems"], content.measures
    words = _interval_words(content.evaluation)
    header = ["measure", "mean", "interval", "median", "std. deviation", "queries"]
    if len(systems) == 1:
        return table(f"Means over the queries; {words}", header, _summary_rows(systems[0], measures), "means")
    more = [
        table(f"{one['name']}: {words}", header, _summary_rows(one, measures), f"summary-{k}")
        for k, one in enumerate(systems, 1)
    ]
    return _means(systems, measures) + folded("Intervals, medians and deviations of each system", "".join(more))


def _means(systems: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> str:
    """Return the table of means: a few systems stand beside each other, more of them below each other.

    systems  : their objects in the JSON of the evaluation
    measures : their names
    """
    corner, rows, columns = "measure", list(measures), [str(one["name"]) for one in systems]
    values = [[one["metrics"][name] for one in systems] for name in measures]
    best = {(place, k) for place, row in enumerate(values) for k in best_places(row)}
    if len(systems) > MOST_COLUMNS:
        corner, rows, columns = "system", columns, rows
        values = [list(column) for column in zip(*values, strict=True)]
        best = {(k, place) for place, k in best}
    body = [[text(name), *map(number, row)] for name, row in zip(rows, values, strict=True)]
    marked = {(row, column + 1) for row, column in best}
    return table("Means over the queries; the best in bold", [corner, *columns], body, "means", marked)


def _summary_rows(system: Mapping[str, Any], measures: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each measure of a system.

    system   : its object in the JSON of the evaluation
    measures : their names
    """
    for name in measures:
        one = system["summary"][name]
        spread = (number(one["median"]), number(one["std"]), number(one["count"], ",d"))
        yield [text(name), number(system["metrics"][name]), interval(one["interval"]), *spread]


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
    main = next((one for one in content.distributions if one.measure == MAIN), content.distributions[0])
    others = [one for one in content.distributions if one is not main]
    drawn = _distribution(main, "queries-1", charts)
    if not others:
        return drawn
    more = "".join(_distribution(one, f"queries-{place}", charts) for place, one in enumerate(others, 2))
    return drawn + folded("Other measures", f'<div class="charts">\n{more}</div>\n')


def _distribution(one: Distribution, name: str, charts: _Charts) -> str:
    """Return how queries are distributed in one measure: as a chart, and as a table.

    one    : the distribution
    name   : of the table in the page
    charts : of the page
    """
    caption = f"Queries by their {one.measure}"
    numbers = table(caption, ["from", "to", *one.counts], _distribution_rows(one), name)
    if len(one.counts) > MOST_ROWS:
        return folded(caption, numbers)
    return _Charts.figure(distribution_chart(one, charts.next()), folded("The numbers of this chart", numbers))


def _distribution_rows(one: Distribution) -> Iterator[list[str]]:
    every = list(one.counts.values())
    step = (one.high - one.low) / len(every[0])
    for place, counts in enumerate(zip(*every, strict=True)):
        ends = (one.low + step * k for k in (place, place + 1))
        yield [*(f"{end:.4g}" for end in ends), *(number(count, ",d") for count in counts)]


def _comparisons(content: PageContent) -> str:
    """Return the table of all comparisons, and the queries that gained and lost most in each."""
    compared = content.evaluation["comparisons"]
    header = ["measure", "system", "against", "difference", "interval", "better", "equal", "worse"]
    header += ["p (random)", "p (Holm)", "p (paired t)"]
    rows = []
    for one in compared:
        counts = (number(one[name], ",d") for name in ("wins", "ties", "losses"))
        tests = (number(one[name], ".4g") for name in ("p_randomization", "p_holm", "p_t"))
        difference = (number(one["difference"], "+.6f"), interval(one["interval"], "+.4f"))
        names = (f'<td class="text">{text(one[name])}</td>' for name in ("system", "baseline"))
        rows.append([text(one["measure"]), *names, *difference, *counts, *tests])
    made = table("Differences of the means, query by query", header, rows, "comparisons")
    made += (
        '<p class="faint">p (random): of a two-sided randomization test (Fisher), the share of random exchanges of '
        "both systems with a difference at least as large; Holm: adjusted for the number of comparisons in the "
        "measure. A small p says that a difference is hardly chance, not that it is large.</p>\n"
    )
    moved = ""
    for place, one in enumerate(compared, 1):
        listed = [
            [text(query["qid"]), f'<td class="text">{way}</td>', number(query["difference"], "+.6f")]
            for way in ("gained", "lost")
            for query in one[way]
        ]
        if not listed:
            continue
        caption = f"{one['measure']}: where {one['system']} gained and lost most against {one['baseline']}"
        moved += table(caption, ["query", "moved", "difference"], listed, f"moved-{place}")
    return made + (folded("Queries that gained and lost most", moved) if moved else "")


def _groups(content: PageContent) -> str:
    made = []
    for place, measure in enumerate(content.measures, 1):
        rows = []
        for group in content.evaluation["groups"]:
            values = (number(one["metrics"][measure]) for one in group["systems"])
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
