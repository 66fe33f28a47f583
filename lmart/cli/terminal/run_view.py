"""What `lmart show REPORT` prints: the facts of a run, and the learning curve of each ranker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmart.cli.terminal.layout import (
    GAP,
    LONGEST_CURVE,
    NOT_DEFINED,
    SHORTEST_CURVE,
    SHORTEST_NAME,
    Sheet,
    cells,
    curve,
    facts,
    padded,
    paragraph,
    shortened,
    shown,
    spans,
)
from lmart.cli.terminal.model_view import importance_lines, settings_text
from lmart.errors import counted, input_name, visible
from lmart.reports.run_report import Curve, RankerRun, RunReport

STOPPED = {
    "trees": "all of its trees grown",
    "early": "stopped early",
    "split": "stopped, as no split was left",
}


def run_lines(report: RunReport, path: str, top: int | None, sheet: Sheet) -> list[str]:
    """Return the lines that tell how a run went.

    report : of the run
    path   : of its file
    top    : features to list; None: all
    sheet  : what they are written on
    """
    lines = facts(_facts(report, path), sheet)
    for number, one in enumerate(report.rankers, 1):
        lines += ["", *_ranker_lines(number, one, report, sheet)]
    if any(each.best is not None and len(each.values) > 1 for one in report.rankers for each in one.curves):
        what = "Each curve has its highest value at the top; a steep rise at its beginning is cut. ^: last round kept."
        lines += ["", *(sheet.faint(line) for line in paragraph(what, sheet))]
    if report.importance is None:
        return lines
    return [*lines, *importance_lines(report.importance, top, sheet, len(report.rankers))]


def _facts(report: RunReport, path: str) -> list[tuple[str, str]]:
    content = report.content
    files = _object(content.get("files"))
    found = [("report", f"{visible(input_name(path))} (of lmart train)")]
    size = _object(content.get("data"))
    counts = [
        counted(size[key], one, many)
        for key, one, many in (
            ("documents", "document", None),
            ("queries", "query", "queries"),
            ("features", "feature", None),
        )
        if isinstance(size.get(key), int)
    ]
    found.append(("data", "; ".join(filter(None, (_files(files.get("data")), ", ".join(counts))))))
    if files.get("validation"):
        found.append(("validation", _files(files["validation"])))
    grown, kept = sum(len(one.rounds) for one in report.rankers), sum(one.trees for one in report.rankers)
    several = f" of {len(report.rankers)} rankers" if len(report.rankers) > 1 else ""
    found.append(("trees", f"{kept:,}{several}; {counted(grown, 'round')}"))
    continued = _object(content.get("continued_from"))
    if isinstance(continued.get("trees"), int):
        found.append(
            ("continued", f"from {counted(continued['trees'], 'tree')} of {visible(str(continued.get('model')))}")
        )
    found += [(report.metric if k == 0 else "", text) for k, text in enumerate(_measures(report.measures))]
    found += _selection(content, report.metric)
    found.append(("settings", settings_text(report.changed)))
    seconds = _object(content.get("seconds"))
    spent = [f"{visible(stage)} {one:.1f}" for stage, one in seconds.items() if isinstance(one, int | float)]
    found.append(("seconds", ", ".join(spent) or NOT_DEFINED))
    warnings = content.get("warnings")
    told = [visible(str(one)) for one in warnings] if isinstance(warnings, list) else []
    return [*found, *(("warning", text) for text in told)]


def _selection(content: Mapping[str, Any], metric: str) -> list[tuple[str, str]]:
    """Return what the report says of folds and of tuning."""
    found = []
    folds = _object(content.get("cross_validation"))
    if isinstance(folds.get("mean"), int | float) and isinstance(folds.get("folds"), list):
        match folds.get("interval"):
            case [int() | float() as low, int() | float() as high]:
                between = f", {low:.6f} to {high:.6f}"
            case _:
                between = ""
        found.append(("folds", f"{metric} {folds['mean']:.6f}{between} over {len(folds['folds'])} folds"))
    tuning = _object(content.get("tuning"))
    if isinstance(tuning.get("trials"), list):
        best = tuning.get("best")
        number = str(best) if isinstance(best, int) else "none"
        found.append(("tuning", f"{counted(len(tuning['trials']), 'trial')}; the best is {number}"))
    return found


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _files(names: object) -> str:
    return ", ".join(visible(input_name(str(name))) for name in names) if isinstance(names, list) else ""


def _measures(measures: Sequence[tuple[str, float | None]]) -> list[str]:
    return [f"{shown(value)} on {visible(input_name(name))}" for name, value in measures]


def _ranker_lines(number: int, one: RankerRun, report: RunReport, sheet: Sheet) -> Iterator[str]:
    """Yield the title and the curves of a ranker."""
    share = "" if one.features == 1 else f", {one.features:g} of the features"
    ranker = f"ranker {number} of {len(report.rankers)}: " if len(report.rankers) > 1 else ""
    grown = len(one.rounds)
    kept = f"{one.trees:,} of {counted(grown, 'round')} kept" if one.trees < grown else counted(grown, "round")
    ending = STOPPED.get(one.stopped, visible(one.stopped))
    title = (
        f"{ranker}{visible(one.objective)}, {visible(one.tree)} trees of {one.leaves:,} leaves{share}; {kept}, {ending}"
    )
    yield from (sheet.bold(line) for line in paragraph(title, sheet))
    defined = [each for each in one.curves if any(value is not None for value in each.values)]
    if not defined:
        return
    rows = [_CurveRow.of(each, one.rounds) for each in defined]
    columns = _CurveColumns.of(rows, min(grown, LONGEST_CURVE), sheet)
    yield columns.line(HEADER, "")
    for row, each in zip(rows, defined, strict=True):
        yield columns.line(row, curve(each.values, columns.length, sheet))
    if one.trees:
        place = next(k for k, (_, stop) in enumerate(spans(grown, columns.length)) if stop >= one.trees)
        yield columns.mark(place, f"{one.rounds[one.trees - 1]:,}")


class _CurveRow(NamedTuple):
    """The cells beside a curve: the data set, the first value, the best one, and its round."""

    name: str
    first: str
    best: str
    round: str

    @classmethod
    def of(cls, one: Curve, rounds: Sequence[int]) -> _CurveRow:
        """Return the cells of a curve with a value.

        one    : the curve
        rounds : numbers of its rounds
        """
        first = next((value for value in one.values if value is not None), None)
        best = one.best or 0
        return cls(visible(input_name(one.name)), shown(first), shown(one.values[best]), f"{rounds[best]:,}")


HEADER = _CurveRow("", "first", "best", "round")


class _CurveColumns(NamedTuple):
    """How wide the columns of a table of curves are; `first` 0: left out, as there is no room."""

    name: int
    first: int
    length: int
    best: int
    round: int

    @classmethod
    def of(cls, rows: Sequence[_CurveRow], length: int, sheet: Sheet) -> _CurveColumns:
        """Return columns that fit.

        rows   : to be written
        length : of the longest curve that is drawn
        sheet  : what they are written on
        """
        name, first, best, last = (max(map(cells, column)) for column in zip(HEADER, *rows, strict=True))
        if sheet.width is None:
            return cls(name, first, length, best, last)
        room = sheet.width - best - last - 3 * GAP
        if room - first - GAP < SHORTEST_NAME + 2 * SHORTEST_CURVE:
            first = 0
        else:
            room -= first + GAP
        name = min(name, max(SHORTEST_NAME, room - max(length, SHORTEST_CURVE), room // 2))
        return cls(name, first, min(length, max(room - name, SHORTEST_CURVE)), best, last)

    def line(self, row: _CurveRow, drawn: str) -> str:
        """Return a line of the table.

        row   : its cells
        drawn : the curve
        """
        first = [f"{row.first:>{self.first}}"] if self.first else []
        ends = [f"{row.best:>{self.best}}", f"{row.round:>{self.round}}"]
        parts = [padded(shortened(row.name, self.name), self.name), *first, drawn.ljust(self.length), *ends]
        return (" " * GAP).join(parts).rstrip()

    def mark(self, place: int, text: str) -> str:
        """Return the line below the curves that marks a place.

        place : character of the curves, from 0
        text  : beside the mark
        """
        before = self.name + GAP + (self.first + GAP if self.first else 0)
        if place + GAP + len(text) <= self.length + GAP:
            return " " * (before + place) + f"^ {text}"
        return f"{text} ^".rjust(before + place + 1)


def curve_table(report: RunReport) -> Iterator[str]:
    """Yield the lines of the table of all curves, tab-separated, every digit, for other programs.

    report : of the run
    """
    header, rows = report.table()
    yield "\t".join(map(visible, header)) + "\n"
    for row in rows:
        yield "\t".join(NOT_DEFINED if cell is None else repr(cell) for cell in row) + "\n"
