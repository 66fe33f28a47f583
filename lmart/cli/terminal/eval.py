"""What eval prints: the measures of one system, of several side by side, of groups of queries, and comparisons.

Names of systems are shortened where they must be, numbers never. Comparisons fit 80 columns, or a terminal of fewer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from lmart.array_types import Float64Array
from lmart.cli.terminal.layout import CUT, GAP, LEVELS, Sheet, Table, facts, paragraph, shortened, standard_output
from lmart.errors import counted, input_name, listed, visible
from lmart.gains import GAIN_MEANINGS
from lmart.measures.conventions import CHOICES, Conventions, level_text
from lmart.measures.results import best_places, logarithms_note
from lmart.measures.summary import counted_values, histogram, value_range
from lmart.reports.html_parts import NOT_DEFINED, shown

if TYPE_CHECKING:
    from lmart.measures import EvaluationReport
    from lmart.measures.comparing import Comparison, QueryDifference, SystemStatistics
    from lmart.measures.results import EvaluationResult, SystemEvaluation
    from lmart.measures.summary import Summary

FILES_NAMED = 3  # of the data, in a line of the report
SHORTEST_NAME = 8  # of a system with a line of its own
WIDTH = 80  # of comparisons
HOLM = "p holm"
HEADER = ("difference", "interval", "win/tie/loss", "p rand", HOLM, "p t")
CUT_ID = 24  # characters of a query id
BINS = 10
BLOCKS = " " + LEVELS[True]


def print_result(result: EvaluationResult, statistics: SystemStatistics | None = None) -> None:
    """Print the measures to standard output: as wide as a terminal, else the same bytes anywhere."""
    sheet, entries = standard_output(), _facts(result)
    if len(result.systems) > 1:
        lines = _systems_lines(result, entries, sheet)
    else:
        lines = _system_lines(result, entries, statistics, sheet)
    if result.groups:
        lines += _group_lines(result, sheet)
    click.echo("\n".join(lines))


def _system_lines(
    result: EvaluationResult, entries: list[tuple[str, str]], statistics: SystemStatistics | None, sheet: Sheet
) -> list[str]:
    """Return the facts and the measures of one system, on a terminal with a header and bars."""
    report = result.systems[0].report
    rows = _rows(report, None if statistics is None else statistics.summaries[0])
    has_intervals = any(interval for *_, interval in rows)
    if statistics is not None and has_intervals:
        resampled = f"{statistics.resamples} bootstrap resamples of the queries, seed {statistics.resampling.seed}"
        entries.append(("interval", f"{100 * statistics.resampling.level:.6g}% ({resampled})"))
    if not sheet.styled:
        least = max(len(name) for name, *_ in (*entries, *rows))
        return [*facts(entries, sheet, least), "", *Table((), rows).lines(sheet, least=least)]
    bars = []
    if sheet.unicode and statistics is not None:
        bars = [value_bars(values, result.weights) for values in report.per_query.values()]
    header = ["measure", "mean", *(["interval"] if has_intervals else []), *(["queries by value"] if bars else [])]
    cells = [
        [name, value, *([interval] if has_intervals else []), *bars[place : place + 1]]
        for place, (name, value, interval) in enumerate(rows)
    ]
    lines = facts(entries, sheet)
    for table in Table(header, cells, {(place, 1): "bold" for place in range(len(rows))}).in_width(sheet.width):
        lines += ["", *table.lines(sheet)]
    return lines


def _facts(result: EvaluationResult) -> list[tuple[str, str]]:
    """Return the facts that the numbers depend on, as names and values."""
    report = result.systems[0].report
    conventions = report.conventions
    lacks = any(system.counts.get("missing_queries") for system in result.systems)
    entries: list[tuple[str, str]] = [
        (result.data_kind, _shown_files(result.data)),
        *((system.kind, _named_file(system) + _coverage(system, len(result.query_ids))) for system in result.systems),
    ]
    if conventions.like is not None:
        entries.append(("like", conventions.like))
    entries += [
        ("queries", str(report.n_queries)),
        ("documents", str(report.n_documents)),
        ("empty queries", f"{report.n_empty_queries} ({_no_label(conventions)})"),
        ("gain", f"{conventions.gain} ({GAIN_MEANINGS[conventions.gain.kind]})"),
    ]
    for name, meanings in CHOICES.items():
        value = getattr(conventions, name)
        if name in ("empty", "ties") or value != next(iter(meanings)) or (name == "missing" and lacks):
            meaning = meanings[value]
            if name == "ties" and result.systems[0].kind == "run":
                meaning = meaning.replace("of the data", "of the run")
            entries.append((name.replace("_", " "), f"{value} ({meaning})"))
    if conventions.relevant is not None:
        entries.append(("relevant", conventions.relevance))
    if report.grade_scales:
        entries.append(("err", f"stops with probability {report.stopping}"))
    if result.weights_per is not None:
        entries.append(("weights", f"one a {result.weights_per}"))
    return entries


def _no_label(conventions: Conventions) -> str:
    """Return what an empty query lacks."""
    level = conventions.relevant
    return "no label above 0" if level is None else f"no label of {level_text(level)} or more"


def _coverage(system: SystemEvaluation, n_queries: int) -> str:
    """Return in brackets how many documents and queries, of those that are judged, a run has; '' for other systems."""
    if system.kind != "run":
        return ""
    counts = system.counts
    documents = counted(counts["retrieved"], "document")
    if counts["unjudged"]:
        documents += f", {counts['unjudged']:,} of them unjudged"
    if counts["missing_queries"]:
        documents += f"; {n_queries - counts['missing_queries']:,} of {counted(n_queries, 'query')}"
    return f" ({documents})"


def _shown_files(paths: Sequence[str]) -> str:
    """Return the names of files, of many the first ones and how many more there are."""
    return listed(paths, FILES_NAMED, _shown_file)


def _shown_file(path: str) -> str:
    return visible(input_name(path))


def _named_file(system: SystemEvaluation) -> str:
    """Return the file of a system, after the name that tables call it by, unless that is the end of the path."""
    file = _shown_file(system.path)
    return file if system.path.endswith(system.name) else f"{visible(system.name)}={file}"


def _rows(report: EvaluationReport, summaries: dict[str, Summary] | None) -> list[tuple[str, str, str]]:
    """Return each measure, its mean and its interval."""
    intervals = {} if summaries is None else {name: summary.interval for name, summary in summaries.items()}
    return [(name, shown(value), _interval(intervals.get(name))) for name, value in report.values.items()]


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else "..".join(f"{end:.4f}" if abs(end) < 1e6 else f"{end:.7g}" for end in interval)


def _systems_lines(result: EvaluationResult, entries: Sequence[tuple[str, str]], sheet: Sheet) -> list[str]:
    """Return the facts, then the means of several systems."""
    names = [visible(system.name) for system in result.systems]
    values = [[system.report.values[name] for system in result.systems] for name in result.measures]
    tables = system_tables(names, result.measures, values, sheet.width)
    least = 0 if sheet.styled else max(len(name) for name, _ in entries)
    lines = facts(entries, sheet)
    for table in tables:
        lines += ["", *table.lines(sheet, least=least)]
    if sheet.styled and tables[0].rows[0][0] == _numbered(1)[0]:
        lines += ["", sheet.faint("#1, #2, ...: the systems as listed above")]
    return lines


def _group_lines(result: EvaluationResult, sheet: Sheet) -> list[str]:
    """Return the measures of each group of queries: a line for each group, or of several systems a table."""
    lines: list[str] = []
    if len(result.systems) == 1:
        reports = [group.reports[0] for group in result.groups]
        cells = [
            [str(report.n_queries), *(shown(report.values[name]) for name in result.measures)] for report in reports
        ]
        names = [visible(group.name) for group in result.groups]
        for table in _by_rows("group", names, names, ["queries", *result.measures], cells, set(), sheet.width):
            lines += ["", *table.lines(sheet)]
        return lines
    names = [visible(system.name) for system in result.systems]
    for group in result.groups:
        report = group.reports[0]
        of_empty = f", {report.n_empty_queries} of them empty" if report.n_empty_queries else ""
        queries = counted(report.n_queries, "query")
        lines += ["", sheet.bold(f"group {visible(group.name)} ({queries}{of_empty})")]
        values = [[report.values[name] for report in group.reports] for name in result.measures]
        for table in system_tables(names, result.measures, values, sheet.width):
            lines += table.lines(sheet)
    return lines


def system_tables(
    names: Sequence[str], labels: Sequence[str], values: Sequence[Sequence[float | None]], width: int | None
) -> list[Table]:
    """Return tables of measures by systems, or when that is too wide, unless width is None, of systems by measures."""
    cells = [[shown(value) for value in row] for row in values]
    best = {(i, j + 1) for i, row in enumerate(values) for j in best_places(row)}
    digits = max(len(cell) for row in cells for cell in row)
    if width is None:
        fitting = list(names)
    else:
        room = (width - max(map(len, labels))) // len(names) - GAP
        fitting = distinct(names, room) if room >= digits else []
    if fitting:
        rows = [[label, *row] for label, row in zip(labels, cells, strict=True)]
        return [Table(["", *fitting], rows, dict.fromkeys(best, "bold"))]
    turned = [list(column) for column in zip(*cells, strict=True)]
    # The facts list the names, so that a number can stand for a system whose shortened name is not distinct.
    return _by_rows("", names, _numbered(len(names)), labels, turned, {(j - 1, i + 1) for i, j in best}, width)


def _by_rows(
    title: str,
    names: Sequence[str],
    otherwise: Sequence[str],
    labels: Sequence[str],
    cells: Sequence[Sequence[str]],
    best: set[tuple[int, int]],
    width: int | None,
) -> list[Table]:
    """Return tables of a line for each name, as many as the labels need at this width."""
    widths = [max(map(len, column)) for column in zip(labels, *cells, strict=True)]
    room = (width or 0) - sum(widths) - GAP * len(widths)
    if room < SHORTEST_NAME:  # there will be further tables anyway
        room = max(SHORTEST_NAME, (width or 0) // 3)
    fitting = list(names) if width is None else distinct(names, room) or list(otherwise)
    rows = [[name, *row] for name, row in zip(fitting, cells, strict=True)]
    return Table([title, *labels], rows, dict.fromkeys(best, "bold")).in_width(width)


def distinct(names: Sequence[str], room: int) -> list[str]:
    """Return the names, each shortened to `room` characters; [] where they would no longer be distinct."""
    short = [shortened(name, room) for name in names] if room > len(CUT) else []
    return short if len(set(short)) == len(names) else []


def _numbered(n: int) -> list[str]:
    """Return what stands for names that cannot be shortened: #1, #2, ..."""
    return [f"#{i}" for i in range(1, n + 1)]


def value_bars(values: Float64Array, weights: Float64Array | None = None) -> str:
    """Return a bar for each tenth of the range of a measure, between the ends of the range.

    Queries of weight 0 are left out, and values that are nan.

    The highest bar stands for most queries, the lowest for a few, and a blank for none.
    """
    values = counted_values(values, weights)
    low, high = value_range(values)
    counts = histogram(values, low, high, BINS).tolist()
    heights = [-(-count * (len(BLOCKS) - 1) // max(1, *counts)) for count in counts]
    return f"{low:g} {''.join(BLOCKS[height] for height in heights)} {high:.4g}"


def print_comparisons(result: EvaluationResult, statistics: SystemStatistics) -> None:
    """Print the systems compared and the tests, then each measure."""
    sheet = standard_output()
    lines = ["", *textwrap.wrap(explanation(result, statistics), min(sheet.width or WIDTH, WIDTH))]
    for measure, group in groupby(statistics.comparisons, key=lambda comparison: comparison.measure):
        lines += ["", *measure_lines(measure, list(group), result, statistics.all_pairs, sheet)]
    click.echo("\n".join(lines))


def explanation(result: EvaluationResult, statistics: SystemStatistics) -> str:
    """Return a sentence on the systems compared and the tests."""
    resampling, tests = statistics.resampling, [comparison.randomization for comparison in statistics.comparisons]
    if all(test is None or test.exact for test in tests):
        flips = "all choices of signs"
    else:
        drawn = f"{resampling.flips} choices of signs"
        some = any(test is not None and test.exact for test in tests)
        flips = drawn + (", all where at most 20 queries differ" if some else "")
    number = len(statistics.comparisons) // len(result.measures)
    holm = f" p holm: the same adjusted for the {number} comparisons of a measure (Holm)." if number > 1 else ""
    of_what = "of each two systems" if statistics.all_pairs else f"to {visible(result.systems[0].name)}"
    return (
        f"Differences {of_what}, query by query, with {100 * resampling.level:.6g}% intervals ({statistics.resamples} "
        f"bootstrap resamples of the queries). p rand: Fisher's randomization test, two-sided, {flips}.{holm} p t: "
        f"paired t test. Seed {resampling.seed}.{logarithms_note(result.measures)}"
    )


def measure_lines(
    measure: str, comparisons: Sequence[Comparison], result: EvaluationResult, all_pairs: bool, sheet: Sheet
) -> list[str]:
    """Return the table of one measure, and under each of its lines the queries that gained and lost most."""
    width = min(sheet.width or WIDTH, WIDTH)
    headings, *cells = [
        _without_holm(row) if len(comparisons) == 1 else row for row in (HEADER, *map(_cells, comparisons))
    ]
    digits = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    room = max(SHORTEST_NAME, width - sum(digits) - GAP * len(digits))
    names = _names(comparisons, [system.name for system in result.systems], all_pairs, room)
    header = [measure if len(measure) <= room else "", *headings]
    tables = Table(header, [[name, *row] for name, row in zip(names, cells, strict=True)]).in_width(sheet.width)
    *earlier, (first, *others) = [table.lines(sheet) for table in tables]
    lines = [] if header[0] else [measure]
    for part in earlier:
        lines += [*part, ""]
    lines.append(first)
    if sheet.unicode:
        lines += _bars_of_systems(measure, result, width)
    for comparison, line in zip(comparisons, others, strict=True):
        lines.append(line)
        lines += _queries("gained", comparison.gained, result.query_ids, width)
        lines += _queries("lost", comparison.lost, result.query_ids, width)
        if comparison.left_out:
            queries = "query that counts" if comparison.left_out == 1 else "queries that count"
            left_out = f"{comparison.left_out} {queries} in one of the two only"
            lines += ["  left out  " + part for part in paragraph(left_out, sheet, len("  left out  "))]
    return lines


def _bars_of_systems(measure: str, result: EvaluationResult, width: int) -> list[str]:
    """Return lines with the name of each system and how many queries have which value."""
    names = [visible(system.name) for system in result.systems]
    names = distinct(names, width // 4) or _numbered(len(names))
    items = [
        f"{name}  {value_bars(system.report.per_query[measure], result.weights)}"
        for name, system in zip(names, result.systems, strict=True)
    ]
    lines = [f"  values  {items[0]}"]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 3 <= width:
            lines[-1] += f"   {item}"
        else:
            lines.append(f"{'':10}{item}")
    return lines


def _names(comparisons: Sequence[Comparison], systems: Sequence[str], all_pairs: bool, room: int) -> list[str]:
    """Return what stands for each comparison: its system, and of all pairs the baseline too."""
    room = (room - len(" - ")) // 2 if all_pairs else room
    every = [visible(name) for name in systems]
    short = distinct(every, room) or _numbered(len(systems))
    called = dict(zip(systems, short, strict=True))
    if all_pairs:
        return [f"{called[comparison.system]} - {called[comparison.baseline]}" for comparison in comparisons]
    return [called[comparison.system] for comparison in comparisons]


def _cells(comparison: Comparison) -> list[str]:
    return [
        NOT_DEFINED if comparison.difference is None else _signed(comparison.difference, 6),
        NOT_DEFINED if comparison.interval is None else "..".join(_signed(end, 4) for end in comparison.interval),
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
        p_shown(None if comparison.randomization is None else comparison.randomization.p),
        p_shown(comparison.p_holm),
        p_shown(comparison.p_t),
    ]


def _without_holm(row: Sequence[str]) -> list[str]:
    """Return a row without the adjusted p, which a single comparison does not need."""
    return [cell for place, cell in enumerate(row) if HEADER[place] != HOLM]


def p_shown(p: float | None) -> str:
    """Return a p value, None where there is none, as tables show it."""
    if p is None:
        return NOT_DEFINED
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}" if abs(value) < 1e6 else f"{value:+.6g}"


def _queries(what: str, differences: Sequence[QueryDifference], query_ids: Sequence[str], width: int) -> list[str]:
    """Return a line of the queries with the largest differences, as many as fit."""
    line = f"  {what:<6} "
    for place, (query, difference) in enumerate(differences):
        name = visible(query_ids[query])
        name = name if len(name) <= CUT_ID else name[: CUT_ID - 2] + ".."
        item = f"{', ' if place else ' '}{name} {_signed(difference, 4)}"
        if place and len(line) + len(item) > width:
            break
        line += item
    return [line] if differences else []
