"""The table of predict --why: the features that put one document of a query above another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import click
import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.cli.terminal.layout import GAP, SHORTEST_NAME, Sheet, Table, facts, standard_output
from lmart.data.categories import Categories, unwritten
from lmart.data.dataset import SparseRows, join_rows, take_rows
from lmart.decimals import shortest
from lmart.errors import DataError, listed, quote, visible
from lmart.formats.documents.blocks import RowReader
from lmart.reports.html_parts import shown
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.explain import Explainer
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

NAMED = 3  # documents named in a message
HEADER = ("feature", "value of A", "value of B", "adds to A", "adds to B", "A - B")


@dataclass(frozen=True, eq=False)
class _Query:
    rows: SparseRows
    document_ids: list[str]


def print_why(
    names: tuple[str, str, str],
    scorer: Scorer,
    explainer: Explainer,
    matcher: FeatureMatcher,
    reader: RowReader,
    pool: WorkerPool,
    scattered: bool,
    strict: bool,
) -> None:
    """Print what each feature adds to the scores of two documents of a query, the largest difference first.

    DataError when the query or a document is not found, or the features are not those of the model.
    """
    query_id, *documents = names
    query = _read_query(reader, query_id, scattered)
    pair = np.array([_find(query, name, query_id, reader.path) for name in documents])
    if pair[0] == pair[1]:
        raise DataError(f"{quote(documents[0])} and {quote(documents[1])} are the same document; name two", reader.path)
    column_map = reader.match(matcher)
    matcher.refuse(reader.path, strict)
    scores = scorer.score(query.rows, column_map, pool)
    rows = take_rows(query.rows, pair)
    contributions = explainer.explain(rows, column_map)
    table = _feature_rows(contributions, rows, column_map, scorer.ensemble)
    entries = _facts(query_id, query, pair.tolist(), scores, scorer.ensemble.n_features - len(table))
    sums = _sums(contributions, explainer.base, scores[pair].tolist())
    click.echo("\n".join(why_lines(entries, table, sums, standard_output())))


def _feature_rows(
    contributions: Float64Array, rows: SparseRows, column_map: Int32Array, ensemble: Ensemble
) -> list[tuple[str, ...]]:
    """Return the lines of the table for the features whose contributions differ, the largest difference first."""
    adds_a, adds_b = contributions
    differences = adds_a - adds_b
    order = np.argsort(-np.abs(differences), kind="stable")
    order = order[differences[order] != 0.0]
    values = _values(rows, column_map.tolist(), ensemble)
    categories = {of_feature.column: of_feature for of_feature in ensemble.categories}
    return [
        (
            visible(ensemble.feature_name(column)),
            *(_shown_value(of_row[column], categories.get(column)) for of_row in values),
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
    """Return the facts above the table: the query, the documents with their ranks, features not shown."""
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    entries = [("query", visible(query_id))]
    for letter, index in zip("AB", pair, strict=True):
        name = visible(query.document_ids[index]) or f"number {index + 1}"
        entries.append((f"document {letter}", f"{name} (rank {ranks[index]} of {len(scores)})"))
    if n_not_shown:
        is_single = n_not_shown == 1
        features = f"{n_not_shown} feature{'' if is_single else 's'} that add{'s' if is_single else ''}"
        entries.append(("not shown", f"{features} as much to A as to B"))
    return entries


def _read_query(reader: RowReader, query_id: str, scattered: bool) -> _Query:
    """Return the rows of a query; reading stops after them, unless they are scattered."""
    runs: list[SparseRows] = []
    document_ids: list[str] = []
    is_found = is_passed = False
    for block in reader:
        if block.query_ids is None:
            raise DataError("has no query ids, by which --why finds its documents; add them", reader.path)
        for i, own_id in enumerate(block.query_ids):
            start, stop = int(block.query_offsets[i]), int(block.query_offsets[i + 1])
            if own_id == query_id:
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
    found = [place for place, document_id in enumerate(query.document_ids) if document_id == name]
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
    ids = [document_id for document_id in query.document_ids if document_id]
    raise DataError(
        f"query {quote(query_id)} holds no document {quote(name)}; name one by its "
        + (f"id ({listed(ids, NAMED)}) or " if ids else "")
        + f"number in the query, 1 to {n}",
        source,
    )


def _values(rows: SparseRows, column_map: list[int], ensemble: Ensemble) -> list[list[float]]:
    """Return what each row holds of each of the model's features."""
    absent = [0.0 if ensemble.absent == "zero" else math.nan] * (ensemble.n_features + 1)
    for of_feature in ensemble.categories:
        absent[of_feature.column] = unwritten(ensemble.absent, of_feature.of_texts)
    found = []
    for row in range(len(rows)):
        cells = rows.between(row, row + 1)
        values = absent.copy()
        for column, value in zip(cells.columns.tolist(), cells.values.tolist(), strict=True):
            values[column_map[column]] = value  # an unknown feature is at -1, past all others
        found.append(values)
    return found


def _shown_value(value: float, categories: Categories | None) -> str:
    if math.isnan(value):
        return "missing"
    if categories is None:
        return f"{value:.6g}"
    if not categories.of_texts:
        return shortest(value)  # of a number that is a name, every digit counts
    is_known = value in range(len(categories.values))
    return visible(str(categories.values[int(value)])) if is_known else "not seen in training"


def _shown(value: float) -> str:
    text = shown(value)
    return text.lstrip("-") if float(text) == 0.0 else text


def why_lines(
    entries: Sequence[tuple[str, str]],
    rows: Sequence[tuple[str, ...]],
    closing: Sequence[tuple[str, ...]],
    sheet: Sheet,
) -> list[str]:
    """Return the facts, the features and the sums, with empty lines between."""
    signs = {(i, len(HEADER) - 1): "green" if float(row[-1]) > 0 else "red" for i, row in enumerate(rows)}
    sums = {(i, j): "bold" for i in range(len(rows), len(rows) + len(closing)) for j in range(len(HEADER))}
    table = Table(HEADER, [*rows, *closing], signs | sums)
    _, *widths = table.widths()
    lines = [*facts(entries, sheet), ""]
    if sheet.width is not None and sheet.width - sum(widths) - GAP * len(widths) < SHORTEST_NAME:
        return [*lines, *_folded(rows, closing).lines(sheet)]
    head, *others = table.lines(sheet)
    return [*lines, head, *others[: len(rows)], "", *others[len(rows) :]]


def _folded(rows: Sequence[tuple[str, ...]], closing: Sequence[tuple[str, ...]]) -> Table:
    """Return the table for a narrow terminal: a column for each document, and three lines for each feature."""
    lines = []
    for name, value_a, value_b, adds_a, adds_b, difference in (*rows, *closing):
        if value_a:
            lines.append((name, value_a, value_b))
        lines += [("  adds" if value_a else name, adds_a, adds_b), ("  A - B", difference, "")]
    return Table(("", "A", "B"), lines)
