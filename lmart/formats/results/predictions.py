"""Writers of what predict gives: plain scores, and formats that name the rank of a row in its query."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import SparseRows, join_rows, take_rows
from lmart.errors import DataError, counted, input_name, quote
from lmart.formats.results.scores import write_scores

if TYPE_CHECKING:
    from lmart.formats.documents.blocks import RowBlock
    from lmart.scoring.explain import Explainer
    from lmart.scoring.feature_matching import FeatureMatcher
    from lmart.streams import AtomicOutput
    from lmart.threads import WorkerPool

WAYS_TO_QUERIES = "name their column with --query-column, or give --query-sizes"
EXPLAINED_ROWS = 256  # at a time: their contributions are large


@dataclass(frozen=True)
class PredictionLayout:
    """What is to be written of the rows that are scored.

    top          : rows to write of each query, the best ones; None: all
    scattered    : rows of a query need not be adjacent; everything is held until the end
    explanations : gives the contributions of features, for formats that have a place for them; None: without
    """

    source: str
    top: int | None = None
    scattered: bool = False
    tag: str = "lmart"
    explanations: RowExplanations | None = None
    warn: Callable[[str], None] | None = None


class Repetition(NamedTuple):
    """Queries that name a document twice.

    query_id : of the first of them; None: the rows have no query ids
    document : that it names twice
    n_rows   : that name the document of a row before them, in all queries
    """

    query_id: str | None
    document: str
    n_rows: int

    def warning(self, source: str) -> str:
        """Return the warning for the user."""
        what = f"{called_query(self.query_id)} names document {quote(self.document)} twice"
        others = self.n_rows - 1
        more = f", and {counted(others, 'more row')} a document of their query" if others else ""
        return f"{input_name(source)}: {what}{more}; is the document id right?"


def called_query(query_id: str | None) -> str:
    """Return what messages call a query; None: the rows have no query ids."""
    return "the data" if query_id is None else f"query {quote(query_id)}"


class PredictionWriter(abc.ABC):
    """Takes blocks of rows with their scores, in input order; `finish` after the last one."""

    @property
    def repetition(self) -> Repetition | None:
        """What the user should know of documents that a query names twice; None: there are none."""
        return None

    @abc.abstractmethod
    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write what can be written now."""

    def finish(self) -> None:
        """Write what was held back for the last query."""
        return


def write_scored(
    scored_blocks: Iterable[tuple[RowBlock, Float64Array]], writer: PredictionWriter, out: AtomicOutput
) -> int:
    """Write the scores of each block as soon as it is scored; return the number of rows."""
    n_rows = 0
    for block, scores in scored_blocks:
        writer.write(block, scores)
        out.flush()
        n_rows += len(block)
        del block, scores  # before the next ones are made
    writer.finish()
    return n_rows


class ScoresWriter(PredictionWriter):
    """One score a line, the shortest form that reads back equal."""

    def __init__(self, out: AtomicOutput, layout: PredictionLayout) -> None:
        """Write to `out`; there is nothing in `layout` that plain scores have a place for."""
        self._out = out

    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write the scores, one a line."""
        write_scores(scores, self._out)


@dataclass(frozen=True, eq=False)
class RankedRows:
    """n rows of whole queries, in input order.

    queries      : int64[n], number of the query, ascending in order of first appearance
    positions    : int64[n], position in the query, from 0, in input order
    ranks        : int64[n], rank in the query, from 0
    rows         : int64[n], row of the input, from 0
    scores       : float64[n]
    query_ids    : one a query, None where there is none
    document_ids : n texts, '' where there is none; None: there are no document ids
    features     : parts that make up the n rows, when they are to be explained
    """

    queries: Int64Array
    positions: Int64Array
    ranks: Int64Array
    rows: Int64Array
    scores: Float64Array
    query_ids: list[str | None]
    document_ids: list[str] | None
    features: list[SparseRows]

    def document_id(self, i: int) -> str:
        """Return the document's id, else its number in the query, from 1."""
        own_id = self.document_ids[i] if self.document_ids is not None else ""
        return own_id or str(self.positions[i] + 1)


class RankedWriter(PredictionWriter):
    """Holds the rows of a query until it is whole, ranks them, and writes those with a rank below `layout.top`."""

    def __init__(self, out: AtomicOutput, layout: PredictionLayout) -> None:
        self._out = out
        self.layout = layout
        self._numbers: dict[str, int] = {}  # of the queries met, only when rows are scattered
        self._n_queries = 0
        self._n_rows = 0
        self._query_ids: list[str | None] = []  # of the queries held
        self._first_query = 0  # number of the first of them
        self._held: list[tuple[Int64Array, Float64Array, list[str] | None, SparseRows | None]] = []
        self.repeated: tuple[str | None, str] | None = None  # the first query that names a document twice, and it
        self._n_repeated = 0  # rows that name a document of a row before them

    @property
    def repetition(self) -> Repetition | None:
        """The queries that name a document twice."""
        return None if self.repeated is None else Repetition(*self.repeated, self._n_repeated)

    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Take the rows; write the queries that are whole by now."""
        if not len(block):
            return
        if block.query_ids is None and not self._n_queries:
            self.without_queries()
        queries = np.repeat(self._number_runs(block), np.diff(block.query_offsets))
        if self.layout.scattered:
            self._hold(block, queries, scores, 0, len(block))
            return
        last = self._n_queries - 1  # may go on in the next block
        n_complete = int(np.searchsorted(queries, last))
        self._hold(block, queries, scores, 0, n_complete)
        if self._held and self._held[-1][0][-1] < last:
            self._release(last)
        self._hold(block, queries, scores, n_complete, len(block))

    def without_queries(self) -> None:
        """Warn that no row has a query id."""
        if self.layout.warn is not None:
            what = "no row has a query id, so all rows of the file are ranked as one query"
            self.layout.warn(f"{input_name(self.layout.source)}: {what}; {WAYS_TO_QUERIES}")

    def _number_runs(self, block: RowBlock) -> Int64Array:
        ids: Sequence[str | None] = block.query_ids if block.query_ids is not None else [None]
        runs = np.empty(len(ids), np.int64)
        for i, query_id in enumerate(ids):
            if self.layout.scattered and query_id is not None:
                number = self._numbers.setdefault(query_id, self._n_queries)
            else:
                goes_on = i == 0 and self._n_queries > 0 and (block.continues or query_id is None)
                number = self._n_queries - 1 if goes_on else self._n_queries
            if number == self._n_queries:
                self._n_queries += 1
                self._query_ids.append(query_id)
            runs[i] = number
        return runs

    def _hold(self, block: RowBlock, queries: Int64Array, scores: Float64Array, start: int, stop: int) -> None:
        if start < stop:
            documents = None if block.document_ids is None else block.document_ids[start:stop]
            features = block.features.between(start, stop) if self.layout.explanations is not None else None
            self._held.append((queries[start:stop], scores[start:stop], documents, features))

    def finish(self) -> None:
        """Write all that is held."""
        self._release(self._n_queries)

    def _release(self, stop: int) -> None:
        """Write all rows held; they are the queries below `stop`."""
        if not self._held:
            return
        queries = np.concatenate([part[0] for part in self._held]) - self._first_query
        scores = np.concatenate([part[1] for part in self._held])
        lists = [part[2] for part in self._held]
        document_ids = None if lists[0] is None else [text for part in lists for text in part or ()]
        n = len(queries)
        ranked = RankedRows(
            queries,
            _places(queries, np.argsort(queries, kind="stable")),
            _places(queries, np.lexsort((-scores, queries))),
            np.arange(self._n_rows, self._n_rows + n),
            scores,
            self._query_ids[: stop - self._first_query],
            document_ids,
            [part[3] for part in self._held if part[3] is not None],
        )
        kept = np.arange(n) if self.layout.top is None else np.flatnonzero(ranked.ranks < self.layout.top)
        self._note_repeated(ranked, kept)
        for text in self.texts(ranked, kept):
            self._out.write(text)
        self._query_ids = self._query_ids[stop - self._first_query :]
        self._first_query = stop
        self._n_rows += n
        self._held = []

    def _note_repeated(self, ranked: RankedRows, kept: Int64Array) -> None:
        """Note rows to be written that name the document of another row of their query."""
        if ranked.document_ids is None:
            return
        queries = ranked.queries[kept].tolist()
        named = [(query, self.shown_document(ranked, i)) for query, i in zip(queries, kept.tolist(), strict=True)]
        if len(set(named)) == len(named):
            return
        seen: set[tuple[int, str]] = set()
        for query, document in named:
            if document is None:
                continue
            if (query, document) in seen:
                self._n_repeated += 1
                self.repeated = self.repeated or (ranked.query_ids[query], document)
            seen.add((query, document))

    def shown_document(self, ranked: RankedRows, i: int) -> str | None:
        """Return what the line calls the document, None when it does not name it."""
        return ranked.document_id(i)

    def texts(self, ranked: RankedRows, kept: Int64Array) -> Iterator[str]:
        """Yield the text to write for the rows `kept`, in pieces."""
        yield "".join(self.lines(ranked, kept))

    @abc.abstractmethod
    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return the lines of the rows `kept`, in the order to write them."""


def _places(queries: Int64Array, order: Int64Array) -> Int64Array:
    """Return each row's place, from 0, in its query, when rows are taken in this order (queries ascending in it)."""
    ordered = queries[order]
    starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(order)))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return places


class JsonLinesWriter(RankedWriter):
    """One object a row, in input order; row in the input and rank from 1; an id is null where there is none.

    With explanations each row also has the base and the contributions of the features.
    """

    def texts(self, ranked: RankedRows, kept: Int64Array) -> Iterator[str]:
        """Yield the lines, with explanations in pieces of few rows."""
        if self.layout.explanations is None:
            yield from super().texts(ranked, kept)
            return
        features = join_rows(ranked.features)
        for start in range(0, len(kept), EXPLAINED_ROWS):
            rows = kept[start : start + EXPLAINED_ROWS]
            members = self.layout.explanations.members(take_rows(features, rows))
            lines = zip(self.lines(ranked, rows), members, strict=True)
            yield "".join([f"{line[:-2]}, {more}}}\n" for line, more in lines])

    def shown_document(self, ranked: RankedRows, i: int) -> str | None:
        """Return the document's id, None where there is none."""
        return (ranked.document_ids[i] if ranked.document_ids is not None else "") or None

    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return one JSON object a row, in input order."""
        names = [json.dumps(query_id) for query_id in ranked.query_ids]
        queries, scores = ranked.queries[kept].tolist(), ranked.scores[kept].tolist()
        ranks, rows = (ranked.ranks[kept] + 1).tolist(), (ranked.rows[kept] + 1).tolist()
        return [
            f'{{"row": {row}, "qid": {names[query]}, '
            f'"docid": {json.dumps(self.shown_document(ranked, i))}, '
            f'"score": {score!r}, "rank": {rank}}}\n'
            for i, row, query, score, rank in zip(kept.tolist(), rows, queries, scores, ranks, strict=True)
        ]


class RowExplanations:
    """Explains rows as members of a JSON object: "base", and "contributions" by feature, those of 0 left out.

    Its matcher knows the model's feature of each column met so far.
    """

    def __init__(self, explainer: Explainer, matcher: FeatureMatcher, pool: WorkerPool) -> None:
        self._explainer = explainer
        self._matcher = matcher
        self._pool = pool
        ensemble = explainer.ensemble
        self._keys = [json.dumps(ensemble.feature_name(column)) for column in range(ensemble.n_features)]

    def members(self, rows: SparseRows) -> list[str]:
        """Return `"base": B, "contributions": {"FEATURE": C, ...}` for each row."""
        contributions = self._explainer.explain(rows, self._matcher.known_columns, self._pool)
        keys, base = self._keys, self._explainer.base
        found = []
        for row in contributions:
            used = np.flatnonzero(row)
            pairs = zip(used.tolist(), row[used].tolist(), strict=True)
            cells = ", ".join([f"{keys[column]}: {value!r}" for column, value in pairs])
            found.append(f'"base": {base!r}, "contributions": {{{cells}}}')
        return found


class TsvWriter(RankedWriter):
    """`qid TAB document TAB score TAB rank`, in input order; ranks from 1; the qid is empty where there is none."""

    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return the lines, in input order; DataError when an id holds a tab or a line end."""
        for what, ids in (("query id", ranked.query_ids), ("document id", ranked.document_ids or ())):
            for text in ids:
                if text is not None and any(blank in text for blank in "\t\n\r"):
                    fault = f"the {what} {quote(text)} holds a blank, which a line of tab-separated values cannot"
                    raise DataError(f"{fault} hold; use --format jsonl", self.layout.source)
        names = [query_id or "" for query_id in ranked.query_ids]
        queries, scores, ranks = ranked.queries.tolist(), ranked.scores.tolist(), (ranked.ranks + 1).tolist()
        return [f"{names[queries[i]]}\t{ranked.document_id(i)}\t{scores[i]!r}\t{ranks[i]}\n" for i in kept.tolist()]
