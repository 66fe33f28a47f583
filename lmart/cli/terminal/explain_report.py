"""What predict --why prints: which features put one document of a query above another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import click
import numpy as np

from lmart.cli.terminal import eval_report
from lmart.data.dataset import SparseRows, join_rows, take_rows
from lmart.errors import DataError, quote, visible
from lmart.formats.documents.row_blocks import RowReader
from lmart.scoring.explain import Explainer
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

NAMED = 3  # documents named in a message
SHORTEST_NAME = 12  # to which a feature's name is cut on a narrow terminal; numbers are never cut
BETWEEN = 3  # blanks between columns on a terminal
HEADER = ("feature", "value of A", "value of B", "adds to A", "adds to B", "A - B")


@dataclass(frozen=True, eq=False)
class _Query:
    rows: SparseRows
    document_ids: list[str]


def print_why(
    asked: tuple[str, str, str],
    scorer: Scorer,
    explainer: Explainer,
    matcher: FeatureMatcher,
    reader: RowReader,
    pool: WorkerPool,
    scattered: bool,
    strict: bool,
) -> None:
    """Print what each feature adds to the scores of two documents of a query, the largest difference first.

    asked : query id, and two documents by id or by number in the query, from 1
    scattered : rows of the query need not be adjacent
    DataError when the query or a document is not found, or the features are not those of the model.
    """
    query_id, *names = asked
    query = _read_query(reader, query_id, scattered)
    both = np.array([_find(query, name, query_id, reader.path) for name in names])
    if both[0] == both[1]:
        raise DataError(f"{quote(names[0])} and {quote(names[1])} are the same document; name two", reader.path)
    column_map = matcher.column_map(reader.feature_ids, reader.feature_names)
    matcher.tables = reader.table.of_tables
    matcher.refuse(reader.path, strict)
    scores = scorer.score(query.rows, column_map, pool)
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    two = take_rows(query.rows, both)
    contributions = explainer.explain(two, column_map)
    adds_a, adds_b = contributions
    differences = adds_a - adds_b
    order = np.argsort(-np.abs(differences), kind="stable")
    order = order[differences[order] != 0.0]
    ensemble = scorer.ensemble
    values = _values(two, column_map.tolist(), ensemble.n_features, ensemble.absent)
    rows = [
        (
            visible(ensemble.feature_name(column)),
            _shown_value(values[0][column]),
            _shown_value(values[1][column]),
            *map(_shown, (adds_a[column], adds_b[column], differences[column])),
        )
        for column in order.tolist()
    ]
    score_a, score_b = scores[both].tolist()
    closing = [
        ("all features", "", "", *map(_shown, (adds_a.sum(), adds_b.sum(), differences.sum()))),
        ("base", "", "", _shown(explainer.base), _shown(explainer.base), _shown(0.0)),
        ("score", "", "", _shown(score_a), _shown(score_b), _shown(score_a - score_b)),
    ]
    facts = [("query", visible(query_id))]
    for letter, place in zip("AB", both.tolist(), strict=True):
        name = visible(query.document_ids[place]) or f"number {place + 1}"
        facts.append((f"document {letter}", f"{name} (rank {ranks[place]} of {len(scores)})"))
    if alike := ensemble.n_features - len(rows):
        facts.append(
            (
                "not shown",
                f"{alike} feature{'' if alike == 1 else 's'} that add{'s' * (alike == 1)} as much to A as to B",
            )
        )
    _print(facts, rows, closing)


def _read_query(reader: RowReader, query_id: str, scattered: bool) -> _Query:
    """Return the rows of a query; what comes after them is not read, unless they are scattered."""
    parts: list[SparseRows] = []
    document_ids: list[str] = []
    met = passed = False
    for block in reader:
        if block.query_ids is None:
            raise DataError("has no query ids, by which --why finds its documents; add them", reader.path)
        for i, one in enumerate(block.query_ids):
            start, stop = int(block.query_offsets[i]), int(block.query_offsets[i + 1])
            if one == query_id:
                met = True
                parts.append(block.features.between(start, stop))
                document_ids += [""] * (stop - start) if block.document_ids is None else block.document_ids[start:stop]
            else:
                passed = met
        if passed and not scattered:
            break
    if not met:
        raise DataError(f"holds no query {quote(query_id)}; give the id of one that it holds", reader.path)
    return _Query(join_rows(parts), document_ids)


def _find(query: _Query, name: str, query_id: str, source: str) -> int:
    """Return the place of a document, from 0: by its id, else by its number in the query, from 1."""
    found = [place for place, one in enumerate(query.document_ids) if one == name]
    if len(found) > 1:
        raise DataError(
            f"query {quote(query_id)} holds {len(found)} documents {quote(name)}; name the document by its number in "
            "the query, from 1",
            source,
        )
    if found:
        return found[0]
    n = len(query.document_ids)
    if name.isascii() and name.isdigit() and len(name) < 18 and 1 <= int(name) <= n:
        return int(name) - 1
    ids = [one for one in query.document_ids if one]
    known = ", ".join(map(quote, ids[:NAMED])) + (", ..." if len(ids) > NAMED else "")
    raise DataError(
        f"query {quote(query_id)} holds no document {quote(name)}; name one by its "
        + (f"id ({known}) or " if ids else "")
        + f"number in the query, 1 to {n}",
        source,
    )


def _values(rows: SparseRows, column_map: list[int], n_features: int, absent: str) -> list[list[float]]:
    """Return the value of each of the model's features in each row."""
    found = []
    for row in range(len(rows)):
        one = rows.between(row, row + 1)
        values = [0.0 if absent == "zero" else math.nan] * (n_features + 1)
        for column, value in zip(one.columns.tolist(), one.values.tolist(), strict=True):
            values[column_map[column]] = value  # an unknown feature is at -1, past all others
        found.append(values)
    return found


def _shown_value(value: float) -> str:
    return "missing" if math.isnan(value) else f"{value:.6g}"


def _shown(value: float) -> str:
    text = f"{value:.6f}" if abs(value) < 1e9 else f"{value:.9g}"
    return text.lstrip("-") if float(text) == 0.0 else text


def _print(
    facts: Sequence[tuple[str, str]], rows: Sequence[tuple[str, ...]], closing: Sequence[tuple[str, ...]]
) -> None:
    if eval_report.is_terminal():
        _print_on_terminal(facts, rows, closing)
    else:
        click.echo(format_why(facts, rows, closing), nl=False)


def format_why(
    facts: Sequence[tuple[str, str]], rows: Sequence[tuple[str, ...]], closing: Sequence[tuple[str, ...]]
) -> str:
    """Return aligned lines, never wrapped: the facts, the features, and the sums, with empty lines between."""
    table = (HEADER, *rows, *closing)
    widths = [max(len(row[i]) for row in table) for i in range(len(HEADER))]

    def line(row: tuple[str, ...]) -> str:
        others = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([f"{row[0]:<{widths[0]}}", *others])

    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    return "\n".join([*lines, "", line(HEADER), *map(line, rows), "", *map(line, closing)]) + "\n"


def shortened(name: str, room: int) -> str:
    """Return the name in at most `room` columns of a terminal: its beginning and its end, where it is longer."""
    from rich.cells import cell_len

    first, last = name, ""
    while cell_len(first) + cell_len(last) + (3 if len(first) + len(last) < len(name) else 0) > room:
        kept = len(first) + len(last) - 1
        first, last = name[: (kept + 1) // 2], name[len(name) - kept // 2 :]
    return name if first == name else f"{first}...{last}"


def _print_on_terminal(
    facts: Sequence[tuple[str, str]], rows: Sequence[tuple[str, ...]], closing: Sequence[tuple[str, ...]]
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    numbers = list(zip(*((HEADER, *rows, *closing)), strict=True))[1:]
    room = console.width - 2 - sum(max(map(len, cells)) + BETWEEN for cells in numbers)
    table.add_column(HEADER[0], no_wrap=True)
    for name in HEADER[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        style = "green" if float(row[-1]) > 0 else "red"
        feature = shortened(row[0], max(room, SHORTEST_NAME))
        table.add_row(Text(feature), *map(Text, row[1:-1]), Text(row[-1], style=style))
    table.add_section()
    for row in closing:
        table.add_row(*(Text(cell, style="bold") for cell in row))
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        console.print(Text.assemble((f"{name:<{width}}  ", "dim"), value), soft_wrap=True)
    # As wide as it needs: a terminal that is narrower still breaks lines, rich would cut numbers.
    Console(highlight=False, width=10_000).print(table, soft_wrap=True)
