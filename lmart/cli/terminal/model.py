"""The output of `lmart show`: a model with its rankers and features, a tree as conditions, a run with its curves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lmart.cli.terminal.layout import (
    GAP,
    LONGEST_CURVE,
    SHORTEST_CURVE,
    SHORTEST_NAME,
    Sheet,
    Table,
    cells,
    curve,
    facts,
    padded,
    paragraph,
    shortened,
    spans,
)
from lmart.decimals import shortest
from lmart.errors import counted, input_name, visible
from lmart.reports.html_parts import NOT_DEFINED, shown
from lmart.reports.model_summary import (
    FeatureImportance,
    ModelSummary,
    RankerFacts,
    Step,
    depths,
    left_values,
    node_bounds,
    node_documents,
    ranges_text,
    ranker_of_tree,
    steps,
)
from lmart.reports.run_report import Curve, RankerRun, RunReport
from lmart.reports.words import Explained, model_facts, run_facts, span
from lmart.scoring.ensemble import Ensemble, Tree

INDENT = 2  # blanks for each level
DEEPEST = 24  # levels that are indented further; below that the level is written in front
STOPPED = {
    "trees": "all of its trees grown",
    "early": "stopped early",
    "interrupted": "interrupted",
    "split": "stopped, as no split was left",
}


def model_lines(
    summary: ModelSummary, path: str, top: int | None, sheet: Sheet, explained: Explained | None = None
) -> list[str]:
    """Return the lines on a model: facts, rankers, features."""
    lines = facts(model_facts(summary, path, explained), sheet)
    if len(summary.rankers) > 1:
        lines += ["", *_ranker_table(summary.rankers, sheet)]
    return [*lines, *importance_lines(summary.importance, top, sheet, len(summary.rankers))]


def _ranker_table(rankers: Sequence[RankerFacts], sheet: Sheet) -> list[str]:
    """Return the table of the rankers, or, where that is too wide, a paragraph for each."""
    header = ["ranker", "trees", "numbers", "leaves", "depth", "features"]
    rows = []
    for number, ranker in enumerate(rankers, 1):
        share = "" if ranker.features in (None, 1.0) else f", {ranker.features:g} of the features a tree"
        kind = f"{number}  {visible(ranker.objective or NOT_DEFINED)}, {visible(ranker.tree or NOT_DEFINED)}{share}"
        start = ranker.first_tree
        numbers = "none" if start is None else f"{start:,}-{start + ranker.trees - 1:,}"
        rows.append(
            [
                kind,
                f"{ranker.trees:,}",
                numbers,
                span(ranker.fewest, ranker.most),
                f"{ranker.depth:,}",
                f"{ranker.split_features:,}",
            ]
        )
    table = Table(header, rows)
    lines = table.lines(sheet)
    if sheet.width is None or max(map(cells, table.lines(Sheet()))) <= sheet.width:
        return lines
    entries = []
    for row in rows:
        first, what = row[0].split("  ", 1)
        entries.append(
            (first, f"{what}: {row[1]} trees ({row[2]}), leaves {row[3]}, depth {row[4]}, {row[5]} features")
        )
    return [sheet.bold("rankers"), *facts(entries, sheet)]


def importance_lines(features: Sequence[FeatureImportance], top: int | None, sheet: Sheet, n_rankers: int) -> list[str]:
    """Return an empty line and the table of features, the most important first; nothing when there is none."""
    used = [feature for feature in features if feature.splits]
    if not used:
        return []
    has_gain, has_contribution = used[0].gain_share is not None, used[0].contribution is not None
    header = ["feature", *["adds"] * has_contribution, *["gain"] * has_gain, "splits"]
    listed = used[:top]
    rows = []
    for feature in listed:
        adds = [] if feature.contribution is None else [shown(feature.contribution)]
        share = [] if feature.gain_share is None else [f"{feature.gain_share:.2%}"]
        rows.append([visible(feature.feature), *adds, *share, f"{feature.splits:,}"])
    values = [feature.decisive for feature in listed]
    largest = max(values)
    lines = ["", *Table(header, rows).lines(sheet, [value / largest if largest > 0 else 0.0 for value in values])]
    notes = []
    if len(listed) < len(used):
        rest = used[len(listed) :]
        share_left = sum(feature.gain_share or 0.0 for feature in rest)
        gain = f" with {share_left:.2%} of the gain" if has_gain else ""
        notes.append(f"{counted(len(rest), 'more feature')}{gain}: --top {len(used)} shows all.")
    if has_contribution:
        notes.append("adds: mean absolute contribution to a score.")
    if has_gain:
        mean = ", the mean over rankers" if n_rankers > 1 else ""
        notes.append(f"gain: share of the split gain{mean}. splits: nodes that split on it.")
    else:
        notes.append("The file does not say what splits gained: splits are the nodes that split on it.")
    return [*lines, *[sheet.faint(line) for text in notes for line in paragraph(text, sheet)]]


def importance_table(features: Sequence[FeatureImportance]) -> Iterator[str]:
    """Yield the lines of a table of all features, tab-separated, every digit, for other programs."""
    has_gain = any(feature.gain_share is not None for feature in features)
    has_contribution = any(feature.contribution is not None for feature in features)
    columns = ["feature", *["contribution"] * has_contribution, *["gain_share"] * has_gain, "splits"]
    yield "\t".join(columns) + "\n"
    for feature in features:
        numbers = [repr(value) for value in (feature.contribution, feature.gain_share) if value is not None]
        yield "\t".join([visible(feature.feature), *numbers, str(feature.splits)]) + "\n"


def tree_lines(ensemble: Ensemble, number: int, sheet: Sheet) -> Iterator[str]:
    """Yield the lines of one tree: thresholds and leaf values in the shortest form that reads back equal."""
    tree = ensemble.trees[number - 1]
    title = f"tree {number:,} of {len(ensemble.trees):,}"
    if ensemble.rankers:
        ranker = ranker_of_tree(ensemble, number)
        part = ensemble.rankers[ranker - 1]
        title += f", of ranker {ranker} ({visible(part.objective)}, {visible(part.tree)})"
    size = f"{counted(tree.n_leaves, 'leaf', 'leaves')}, depth {int(depths([tree])[0])}"
    yield from (sheet.bold(line) for line in paragraph(f"{title}: {size}", sheet))
    yield ""
    documents = node_documents(tree)
    for step in steps(tree):
        indent = " " * (INDENT * min(step.depth, DEEPEST)) + (f"[{step.depth}] " if step.depth > DEEPEST else "")
        if step.kind == "if":
            room = None if sheet.width is None else sheet.width - len(indent)
            text = _condition(ensemble, tree, step.number, room)
        elif step.kind == "else":
            text = "else:" if tree.missing_left[step.number] else "else (or missing):"
        else:
            value = shortest(float(tree.leaf_values[step.number]))
            text = f"score {value}" if value.startswith("-") else f"score +{value}"
        yield from _line(indent, text, _remark(tree, documents, step), sheet)


def _remark(tree: Tree, documents: Sequence[int] | None, step: Step) -> str:
    """Return the training documents of a node or leaf, and the gain of its split, where the model has them."""
    k = step.number
    remarks = []
    if step.kind == "if" and documents is not None:
        remarks.append(counted(documents[k], "document"))
    if step.kind == "if" and tree.split_gains is not None:
        remarks.append(f"gain {float(tree.split_gains[k]):.6g}")
    if step.kind == "leaf" and tree.leaf_documents is not None:
        remarks.append(counted(int(tree.leaf_documents[k]), "document"))
    return "# " + ", ".join(remarks) if remarks else ""


def _condition(ensemble: Ensemble, tree: Tree, node: int, room: int | None) -> str:
    """Return the condition under which a document goes left, with the name of the feature shortened to fit."""
    column = int(tree.split_columns[node])
    name = visible(ensemble.feature_name(column))
    bounds, missing_left = node_bounds(tree, node), bool(tree.missing_left[node])
    if (left := left_values(ensemble, column, bounds)) is not None:
        called = f"feature {name}" if ensemble.feature_names is None else name
        return f"if {left.text(called)}{' or missing' * missing_left}:"
    if ensemble.feature_names is None:  # a bare index would look like a number, and is not to be shortened
        return _written(f"feature {name}", bounds, missing_left)
    text = _written(name, bounds, missing_left)
    over = 0 if room is None else cells(text) - room
    return (
        text if over <= 0 else _written(shortened(name, max(SHORTEST_NAME, cells(name) - over)), bounds, missing_left)
    )


def _written(name: str, bounds: Sequence[float], missing_left: bool) -> str:
    return f"if {ranges_text(name, bounds)}{' or missing' if missing_left else ''}:"


def _line(indent: str, text: str, remark: str, sheet: Sheet) -> Iterator[str]:
    """Yield a line that ends in its remark, or has it below where there is no space; conditions too long go on."""
    width = sheet.width
    if width is None or len(indent) + cells(text) + (GAP + len(remark) if remark else 0) <= width:
        yield indent + text + (" " * GAP + sheet.faint(remark) if remark else "")
        return
    further = " " * (len(indent) + 2 * INDENT)
    yield from textwrap.wrap(
        text,
        max(width, len(further) + SHORTEST_NAME),
        initial_indent=indent,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if remark:
        yield further[INDENT:] + sheet.faint(remark)


def run_lines(report: RunReport, path: str, top: int | None, sheet: Sheet) -> list[str]:
    """Return the lines on a run: facts, curves, features."""
    lines = facts(run_facts(report, path), sheet)
    for number, ranker in enumerate(report.rankers, 1):
        lines += ["", *_ranker_lines(number, ranker, report, sheet)]
    if any(each.best is not None and len(each.values) > 1 for ranker in report.rankers for each in ranker.curves):
        what = "Each curve has its highest value at the top; a steep rise at its beginning is cut. ^: last round kept."
        lines += ["", *(sheet.faint(line) for line in paragraph(what, sheet))]
    if report.importance is None:
        return lines
    return [*lines, *importance_lines(report.importance, top, sheet, len(report.rankers))]


def _ranker_lines(number: int, run: RankerRun, report: RunReport, sheet: Sheet) -> Iterator[str]:
    """Yield the title and the curves of a ranker."""
    share = "" if run.features == 1 else f", {run.features:g} of the features"
    ranker = f"ranker {number} of {len(report.rankers)}: " if len(report.rankers) > 1 else ""
    grown = len(run.rounds)
    kept = f"{run.trees:,} of {counted(grown, 'round')} kept" if run.trees < grown else counted(grown, "round")
    ending = STOPPED.get(run.stopped, visible(run.stopped))
    title = (
        f"{ranker}{visible(run.objective)}, {visible(run.tree)} trees of {run.leaves:,} leaves{share}; {kept}, {ending}"
    )
    yield from (sheet.bold(line) for line in paragraph(title, sheet))
    for metric in report.metrics:
        yield from _curve_lines(metric if report.further else "", run.curves_of(metric), run, sheet)


def _curve_lines(title: str, curves: Sequence[Curve], run: RankerRun, sheet: Sheet) -> Iterator[str]:
    """Yield the curves of a measure, each with its first and best value; nothing where none has a value."""
    grown = len(run.rounds)
    defined = [each for each in curves if any(value is not None for value in each.values)]
    if not defined:
        return
    rows = [_CurveRow.of(each, run.rounds) for each in defined]
    header = HEADER._replace(name=title)
    columns = _CurveColumns.of([header, *rows], min(grown, LONGEST_CURVE), sheet)
    yield columns.line(header, "")
    for row, each in zip(rows, defined, strict=True):
        yield columns.line(row, curve(each.values, columns.length, sheet))
    if run.trees:
        place = next(k for k, (_, stop) in enumerate(spans(grown, columns.length)) if stop >= run.trees)
        yield columns.mark(place, f"{run.rounds[run.trees - 1]:,}")


class _CurveRow(NamedTuple):
    """The cells beside a curve: the data set, the first value, the best one, and its round."""

    name: str
    first: str
    best: str
    round: str

    @classmethod
    def of(cls, curve: Curve, rounds: Sequence[int]) -> _CurveRow:
        """Return the cells of a curve with a value."""
        first = next((value for value in curve.values if value is not None), None)
        best = curve.best or 0
        return cls(visible(input_name(curve.name)), shown(first), shown(curve.values[best]), f"{rounds[best]:,}")


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
        """Return columns that fit."""
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
        """Return a line of the table."""
        first = [f"{row.first:>{self.first}}"] if self.first else []
        ends = [f"{row.best:>{self.best}}", f"{row.round:>{self.round}}"]
        parts = [padded(shortened(row.name, self.name), self.name), *first, drawn.ljust(self.length), *ends]
        return (" " * GAP).join(parts).rstrip()

    def mark(self, place: int, text: str) -> str:
        """Return the line below the curves that marks a place."""
        indent = self.name + GAP + (self.first + GAP if self.first else 0)
        if place + GAP + len(text) <= self.length + GAP:
            return " " * (indent + place) + f"^ {text}"
        return f"{text} ^".rjust(indent + place + 1)


def curve_table(report: RunReport) -> Iterator[str]:
    """Yield the lines of the table of all curves, tab-separated, every digit, for other programs."""
    header, rows = report.table()
    yield "\t".join(map(visible, header)) + "\n"
    for row in rows:
        yield "\t".join(NOT_DEFINED if cell is None else repr(cell) for cell in row) + "\n"
