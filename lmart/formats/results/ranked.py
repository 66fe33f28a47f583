"""Holding scored rows until their query is whole, and ranking them: what all formats that name the rank share."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, input_name, quote
from lmart.formats.documents.row_blocks import RowBlock
from lmart.formats.results.predictions import PredictionLayout, PredictionWriter, Repetition
from lmart.streams import AtomicOutput

WAYS_TO_QUERIES = "name their column with --query-column, or give --query-sizes"


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
    features     : parts that make up the n rows, when the writer keeps features
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
        given = self.document_ids[i] if self.document_ids is not None else ""
        return given or str(self.positions[i] + 1)


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
    def keeps_features(self) -> bool:
        """Whether the features of the rows are held too."""
        return False

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
        whole = int(np.searchsorted(queries, last))
        self._hold(block, queries, scores, 0, whole)
        if self._held and self._held[-1][0][-1] < last:
            self._release(last)
        self._hold(block, queries, scores, whole, len(block))

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
            features = block.features.between(start, stop) if self.keeps_features else None
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
        document_ids = None if lists[0] is None else [one for part in lists for one in part or ()]
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

    def refuse_blanks(self, ids: Sequence[str | None], kind: str, blanks: str, what: str) -> None:
        """Raise DataError when an id holds one of the characters `blanks`.

        ids    : query ids or document ids
        kind   : what messages call one of them
        blanks : the characters that the format cannot hold in an id
        what   : what messages call a line of the format
        """
        for one in ids:
            if one is not None and any(blank in one for blank in blanks):
                message = f"the {kind} {quote(one)} holds a blank, which {what} cannot hold; use --format jsonl"
                raise DataError(message, self.layout.source)


def _places(queries: Int64Array, order: Int64Array) -> Int64Array:
    """Return each row's place, from 0, in its query, when rows are taken in this order (queries ascending in it)."""
    ordered = queries[order]
    starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(order)))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return places
