"""What predict --why prints: which features put one document of a query above another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.cli.terminal import eval_report, layout
from lmart.cli.terminal.layout import shortened
from lmart.data.dataset import SparseRows, join_rows, take_rows
from lmart.errors import DataError, quote, visible
from lmart.formats.documents.row_blocks import RowReader
from lmart.scoring.ensemble import Ensemble
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

    asked     : query id, and two documents by id or by number in the query, from 1
    scorer    : of the model
    explainer : of the model
    matcher   : finds the features of the model in the data
    reader    : the data
    pool      : the workers
    scattered : rows of the query need not be adjacent
    strict    : whether to refuse features that only the data or only the model has
    DataError when the query or a document is not found, or the features are not those of the model.
    """
    query_id, *names = asked
    query = _read_query(reader, query_id, scattered)
    pair = np.array([_find(query, name, query_id, reader.path) for name in names])
    if pair[0] == pair[1]:
        raise DataError(f"{quote(names[0])} and {quote(names[1])} are the same document; name two", reader.path)
    column_map = matcher.column_map(reader.feature_ids, reader.feature_names)
    matcher.tables = reader.table.of_tables
    matcher.refuse(reader.path, strict)
    scores = scorer.score(query.rows, column_map, pool)
    rows = take_rows(query.rows, pair)
    contributions = explainer.explain(rows, column_map)
    table = _feature_rows(contributions, rows, column_map, scorer.ensemble)
    facts = _facts(query_id, query, pair.tolist(), scores, scorer.ensemble.n_features - len(table))
    _print(facts, table, _sums(contributions, explainer.base, scores[pair].tolist()))


def _feature_rows(
    contributions: Float64Array, rows: SparseRows, column_map: Int32Array, ensemble: Ensemble
) -> list[tuple[str, ...]]:
    """Return the lines of the table for the features whose contributions differ, the largest difference first.

    contributions : float64[2, n_features], of both documents
    rows          : of both documents
    column_map    : int32[n_columns], the model's feature of each column of the rows
    ensemble      : the model, which knows what features are called
    """
    adds_a, adds_b = contributions
    differences = adds_a - adds_b
    order = np.argsort(-np.abs(differences), kind="stable")
    order = order[differences[order] != 0.0]
    values = _values(rows, column_map.tolist(), ensemble.n_features, ensemble.absent)
    return [
        (
            visible(ensemble.feature_name(column)),
            _shown_value(values[0][column]),
            _shown_value(values[1][column]),
            *map(_shown, (adds_a[column], adds_b[column], differences[column])),
        )
        for column in order.tolist()
    ]


def _sums(contributions: Float64Array, base: float, scores: Sequence[float]) -> list[tuple[str, ...]]:
    """Return the last lines of the table: the sums of all contributions, the base, and the scores."""
    adds_a, adds_b = contributions
    score_a, score_b = scores
    return [
        ("all features", "", "", *map(_shown, (adds_a.sum(), adds_b.sum(), (adds_a - adds_b).sum()))),
        ("base", "", "", _shown(base), _shown(base), _shown(0.0)),
        ("score", "", "", _shown(score_a), _shown(score_b), _shown(score_a - score_b)),
    ]


def _facts(
    query_id: str, query: _Query, pair: Sequence[int], scores: Float64Array, n_not_shown: int
) -> list[tuple[str, str]]:
    """Return what is printed above the table: the query, the documents with their ranks, features not shown.

    query_id    : of the query
    query       : its documents
    pair        : the indices of both documents in the query
    scores      : float64[n], of all documents of the query
    n_not_shown : features whose contributions do not differ
    """
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    facts = [("query", visible(query_id))]
    for letter, index in zip("AB", pair, strict=True):
        name = visible(query.document_ids[index]) or f"number {index + 1}"
        facts.append((f"document {letter}", f"{name} (rank {ranks[index]} of {len(scores)})"))
    if n_not_shown:
        one = n_not_shown == 1
        features = f"{n_not_shown} feature{'' if one else 's'} that add{'s' if one else ''}"
        facts.append(("not shown", f"{features} as much to A as to B"))
    return facts


def _read_query(reader: RowReader, query_id: str, scattered: bool) -> _Query:
    """Return the rows of a query; what comes after them is not read, unless they are scattered."""
    runs: list[SparseRows] = []
    document_ids: list[str] = []
    is_found = is_passed = False
    for block in reader:
        if block.query_ids is None:
            raise DataError("has no query ids, by which --why finds its documents; add them", reader.path)
        for i, one in enumerate(block.query_ids):
            start, stop = int(block.query_offsets[i]), int(block.query_offsets[i + 1])
            if one == query_id:
                is_found = True
                runs.append(block.features.between(start, stop))
                document_ids += [""] * (stop - start) if block.document_ids is None else block.document_ids[start:stop]
            else:
                is_passed = is_found
        if is_passed and not scattered:
            break
    if not is_found:
        raise DataError(f"holds no query {quote(query_id)}; give the id of one that it holds", reader.path)
    return _Query(join_rows(runs), document_ids)


def _find(query: _Query, name: str, query_id: str, source: str) -> int:
    """Return the index of a document: by its id, else by its number in the query, from 1."""
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
        """Return one row of the table, aligned."""
        others = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([f"{row[0]:<{widths[0]}}", *others])

    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    return "\n".join([*lines, "", line(HEADER), *map(line, rows), "", *map(line, closing)]) + "\n"


def _folded(rows: Sequence[tuple[str, ...]], closing: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    """Yield the table for a narrow terminal: a column for each document, and three lines for each feature.

    rows    : of the features
    closing : the sums
    width   : of the terminal
    """
    numbers = max(len(cell) for row in (*rows, *closing) for cell in row[1:])
    room = max(width - 2 * (numbers + layout.GAP), SHORTEST_NAME)

    def line(name: str, a: str, b: str) -> str:
        """Return a line."""
        first = layout.padded(shortened(name, room), room)
        return f"{first}{' ' * layout.GAP}{a:>{numbers}}{' ' * layout.GAP}{b:>{numbers}}".rstrip()

    yield line("", "A", "B")
    for name, value_a, value_b, adds_a, adds_b, difference in (*rows, *closing):
        if value_a:
            yield line(name, value_a, value_b)
        yield line("  adds" if value_a else name, adds_a, adds_b)
        yield line("  A - B", difference, "")


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
    if room < SHORTEST_NAME:
        told = layout.facts(facts, layout.Sheet(console.width, styled=True))
        click.echo("\n".join([*told, "", *_folded(rows, closing, console.width)]))
        return
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
    # As wide as it needs: rich would cut numbers.
    Console(highlight=False, width=10_000).print(table, soft_wrap=True)
