"""The page of an evaluation: means, differences, NDCG at each cutoff, distributions, groups, and the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmart.errors import counted
from lmart.gains import GAIN_MEANINGS
from lmart.measures.conventions import CHOICES
from lmart.measures.results import best_places, distinct_names, logarithms_note
from lmart.reports.html_parts import Cell, facts, folded, interval, note, number, table, text, verdict_paragraph
from lmart.reports.pages.charts import MOST_BANDS, Difference, cutoff_chart, difference_chart, distribution_chart
from lmart.reports.pages.evaluation_content import Distribution, PageContent
from lmart.reports.pages.frame import Figures, render, side_by_side
from lmart.reports.pages.run import run_sections
from lmart.reports.pages.verdict import is_best_beyond_chance, is_beyond_chance, main_measure, verdict

MOST_COLUMNS = 4  # systems that stand beside each other, not below
MOST_NAMED = 3  # systems that the title names
MOST_ROWS = 12  # systems that a chart of distributions has rows for; comparisons in a table that is shown at once
MOST_DIFFERENCES = 28  # of all pairs of eight systems, in a chart


def render_page(content: PageContent) -> str:
    """Return the page as HTML; the same content gives the same bytes.

    Tables hold every digit of their numbers, as the values of `data` elements.
    """
    several = len(content.systems) > MOST_NAMED
    title = (
        content.title or f"Evaluation of {f'{len(content.systems)} systems' if several else ', '.join(content.systems)}"
    )
    head = verdict_paragraph(verdict(content.evaluation)) + _facts(content)
    return render(title, head, _sections(content, Figures()), content.to_json())


def _sections(content: PageContent, figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the title and the content of each section."""
    evaluation = content.evaluation
    yield "measures", "Measures", _measures(content)
    if evaluation.get("comparisons"):
        yield "comparison", "Comparison", _comparisons(content, figures)
    yield "cutoffs", "NDCG at each cutoff", _cutoffs(content, figures)
    if content.distributions:
        yield "queries", "Queries by value", _distributions(content, figures)
    if evaluation.get("groups"):
        yield "groups", "Groups of queries", _groups(content)
    if content.run is not None:
        yield from run_sections(content.run, content.run_path, figures)
    yield "conventions", "Conventions", _conventions(content)


def _facts(content: PageContent) -> str:
    evaluation = content.evaluation
    entries = [("data", ", ".join(distinct_names(evaluation["data"])))]
    files = distinct_names([system["path"] for system in evaluation["systems"]])
    for system, file in zip(evaluation["systems"], files, strict=True):
        entries.append((system["kind"], file if system["name"] == file else f"{system['name']} ({file})"))
    size = f"{counted(evaluation['queries'], 'query')}, {counted(evaluation['documents'], 'document')}"
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


def _cutoffs(content: PageContent, figures: Figures) -> str:
    chart = cutoff_chart(content.curves, figures.next())
    rows = []
    for points in zip(*(curve.points for curve in content.curves), strict=True):
        cells = [cell for point in points for cell in (number(point.mean), interval(point.interval))]
        rows.append([str(points[0].cutoff), *cells])
    header = ["k", *(word for curve in content.curves for word in (curve.system, "interval"))]
    below = folded("The numbers of this chart", table("NDCG@k", header, rows, "ndcg-by-cutoff"))
    words = _interval_words(content.evaluation)
    bands = "Bands" if len(content.systems) <= MOST_BANDS else "Intervals, in the table"
    remark = note(f"NDCG@k looks at the first k documents of each query. {bands}: {text(words)}.")
    return Figures.figure(chart, below) + remark


def _distributions(content: PageContent, figures: Figures) -> str:
    """Return the distribution in the main measure, and on demand those in the others."""
    name = main_measure([distribution.measure for distribution in content.distributions])
    main = next(distribution for distribution in content.distributions if distribution.measure == name)
    others = [distribution for distribution in content.distributions if distribution is not main]
    drawn = _distribution(main, "queries-1", figures)
    if not others:
        return drawn
    more = "".join(
        _distribution(distribution, f"queries-{place}", figures) for place, distribution in enumerate(others, 2)
    )
    return drawn + folded("Other measures", side_by_side(more))


def _distribution(distribution: Distribution, name: str, figures: Figures) -> str:
    """Return how queries are distributed in one measure: as a chart, and as a table."""
    caption = f"Queries by their {distribution.measure}"
    numbers = table(caption, ["from", "to", *distribution.counts], _distribution_rows(distribution), name)
    if len(distribution.counts) > MOST_ROWS:
        return folded(caption, numbers)
    return Figures.figure(
        distribution_chart(distribution, figures.next()), folded("The numbers of this chart", numbers)
    )


def _distribution_rows(distribution: Distribution) -> Iterator[list[str]]:
    every = list(distribution.counts.values())
    step = (distribution.high - distribution.low) / len(every[0])
    for place, counts in enumerate(zip(*every, strict=True)):
        ends = (distribution.low + step * k for k in (place, place + 1))
        yield [*(f"{end:.4g}" for end in ends), *(number(count, ",d") for count in counts)]


def _comparisons(content: PageContent, figures: Figures) -> str:
    """Return the differences as charts, as matrices of all pairs, and as a table; on demand, queries that moved."""
    main = main_measure(content.measures)
    others = [name for name in content.measures if name != main]
    made = _differences(content, main, figures)
    if others:
        more = "".join(_differences(content, name, figures) for name in others)
        made += folded("Differences in other measures", side_by_side(more))
    compared = content.evaluation["comparisons"]
    numbers = _comparison_table(content, compared)
    made += folded("All differences as numbers", numbers) if len(compared) > MOST_ROWS else numbers
    made += note(
        "p (random): of a two-sided randomization test (Fisher), the share of random exchanges of both systems with a "
        "difference at least as large; Holm: adjusted for the number of comparisons in the measure. A small p says "
        f"that a difference is hardly chance, not that it is large.{text(logarithms_note(content.measures))}"
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


def _differences(content: PageContent, measure: str, figures: Figures) -> str:
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
        chart = difference_chart(measure, differences, figures.next())
        against = "" if _all_pairs(content) else note(f"Against {text(own[0]['baseline'])}.")
        made = figures.figure(chart, against)
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
