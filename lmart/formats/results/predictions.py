"""What predict writes: one line a row as plain scores, as tab-separated text, as a TREC run or as JSON lines.

Everything but plain scores names the rank in the query, so that the rows of a query are held until the query is whole.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import SparseRows, join_rows, take_rows
from lmart.errors import DataError, counted, input_name, quote
from lmart.formats.documents.row_blocks import RowBlock
from lmart.formats.results.explanations import ROWS, RowExplanations
from lmart.formats.results.scores import write_scores
from lmart.streams import AtomicOutput

FLOAT32_SAFE = 1e38  # below it, a float32 is neither infinite nor about to become so


class PredictionWriter(abc.ABC):
    """Takes blocks of rows with their scores, in input order; `finish` after the last one."""

    @property
    def warnings(self) -> list[str]:
        """What the user should know of what was written."""
        return []

    @abc.abstractmethod
    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write what can be written now."""

    def finish(self) -> None:
        """Write what was held back for the last query."""
        return


class ScoresWriter(PredictionWriter):
    """One score a line, the shortest form that reads back equal."""

    def __init__(self, out: AtomicOutput) -> None:
        self._out = out

    def write(self, block: RowBlock, scores: Float64Array) -> None:
        write_scores(scores, self._out)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Rows of whole queries, in input order: the query (ascending numbers in order of first appearance), the position
    in it (from 0, in input order), the rank (from 0), the row of the input (from 0), ids, and the features if kept."""

    queries: Int64Array
    positions: Int64Array
    ranks: Int64Array
    rows: Int64Array
    scores: Float64Array
    query_ids: list[str | None]
    document_ids: list[str] | None
    features: list[SparseRows]

    def document_id(self, i: int) -> str:
        """The document's id, else its number in the query, from 1."""
        given = self.document_ids[i] if self.document_ids is not None else ""
        return given or str(self.positions[i] + 1)


class RankedWriter(PredictionWriter):
    """Holds the rows of a query until it is whole, ranks them, and writes those with a rank below `top`.

    scattered : rows of a query need not be adjacent; everything is held until the end
    """

    keeps_features = False

    def __init__(self, out: AtomicOutput, source: str, top: int | None, scattered: bool) -> None:
        self._out = out
        self._source = source
        self._top = top
        self._scattered = scattered
        self._numbers: dict[str, int] = {}  # of the queries met, only when rows are scattered
        self._n_queries = 0
        self._n_rows = 0
        self._query_ids: list[str | None] = []  # of the queries held
        self._first_query = 0  # number of the first of them
        self._held: list[tuple[Int64Array, Float64Array, list[str] | None, SparseRows | None]] = []
        self._repeated: tuple[str | None, str] | None = None  # the first query that names a document twice, and it
        self._n_repeated = 0  # rows that name a document of a row before them

    @property
    def warnings(self) -> list[str]:
        if self._repeated is None:
            return []
        query_id, document = self._repeated
        called = input_name(self._source)
        what = f"{_named(query_id)} names document {quote(document)} twice"
        others = self._n_repeated - 1
        more = f", and {counted(others, 'more row')} a document of their query" if others else ""
        return [f"{called}: {what}{more}; is the document id right?"]

    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Take the rows; write the queries that are whole by now."""
        if not len(block):
            return
        queries = np.repeat(self._number_runs(block), np.diff(block.query_offsets))
        if self._scattered:
            self._hold(block, queries, scores, 0, len(block))
            return
        last = self._n_queries - 1  # may go on in the next block
        whole = int(np.searchsorted(queries, last))
        self._hold(block, queries, scores, 0, whole)
        if self._held and self._held[-1][0][-1] < last:
            self._release(last)
        self._hold(block, queries, scores, whole, len(block))

    def _number_runs(self, block: RowBlock) -> Int64Array:
        ids: Sequence[str | None] = block.query_ids if block.query_ids is not None else [None]
        runs = np.empty(len(ids), np.int64)
        for i, query_id in enumerate(ids):
            if self._scattered and query_id is not None:
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
        ranked = _Ranked(
            queries,
            _places(queries, np.argsort(queries, kind="stable")),
            _places(queries, np.lexsort((-scores, queries))),
            np.arange(self._n_rows, self._n_rows + n),
            scores,
            self._query_ids[: stop - self._first_query],
            document_ids,
            [part[3] for part in self._held if part[3] is not None],
        )
        kept = np.arange(n) if self._top is None else np.flatnonzero(ranked.ranks < self._top)
        self._note_repeated(ranked, kept)
        for text in self._texts(ranked, kept):
            self._out.write(text)
        self._query_ids = self._query_ids[stop - self._first_query :]
        self._first_query = stop
        self._n_rows += n
        self._held = []

    def _note_repeated(self, ranked: _Ranked, kept: Int64Array) -> None:
        """Note rows to be written that name the document of another row of their query."""
        if ranked.document_ids is None:
            return
        queries = ranked.queries[kept].tolist()
        named = [(query, self._shown_document(ranked, i)) for query, i in zip(queries, kept.tolist(), strict=True)]
        if len(set(named)) == len(named):
            return
        seen: set[tuple[int, str]] = set()
        for query, document in named:
            if document is None:
                continue
            if (query, document) in seen:
                self._n_repeated += 1
                self._repeated = self._repeated or (ranked.query_ids[query], document)
            seen.add((query, document))

    def _shown_document(self, ranked: _Ranked, i: int) -> str | None:
        return ranked.document_id(i)

    def _texts(self, ranked: _Ranked, kept: Int64Array) -> Iterator[str]:
        yield "".join(self._lines(ranked, kept))

    @abc.abstractmethod
    def _lines(self, ranked: _Ranked, kept: Int64Array) -> list[str]:
        """Return the lines of the rows `kept`, in the order to write them."""

    def _refuse_blanks(self, ids: Sequence[str | None], kind: str, blanks: str, what: str) -> None:
        for one in ids:
            if one is not None and any(blank in one for blank in blanks):
                raise DataError(
                    f"the {kind} {quote(one)} holds a blank, which {what} cannot hold; use --format jsonl", self._source
                )


def _named(query_id: str | None) -> str:
    return "the data" if query_id is None else f"query {quote(query_id)}"


def _places(queries: Int64Array, order: Int64Array) -> Int64Array:
    """Return each row's place, from 0, in its query, when rows are taken in this order (queries ascending in it)."""
    ordered = queries[order]
    starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(order)))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return places


class TsvWriter(RankedWriter):
    """`qid TAB document TAB score TAB rank`, in input order; ranks from 1; the qid is empty where there is none."""

    def _lines(self, ranked: _Ranked, kept: Int64Array) -> list[str]:
        self._refuse_blanks(ranked.query_ids, "query id", "\t\n\r", "a line of tab-separated values")
        self._refuse_blanks(ranked.document_ids or (), "document id", "\t\n\r", "a line of tab-separated values")
        names = [one or "" for one in ranked.query_ids]
        queries, scores, ranks = ranked.queries.tolist(), ranked.scores.tolist(), (ranked.ranks + 1).tolist()
        return [f"{names[queries[i]]}\t{ranked.document_id(i)}\t{scores[i]!r}\t{ranks[i]}\n" for i in kept.tolist()]


class TrecWriter(RankedWriter):
    """`qid Q0 document rank score tag`, best first in each query; ranks from 1.

    trec_eval sorts by score, and tied documents by name; old versions keep scores in float32. So a score that would not
    be below the one before it, as float32, is written as the next float32 below that one; all others are exact.
    """

    def __init__(self, out: AtomicOutput, source: str, top: int | None, scattered: bool, tag: str) -> None:
        super().__init__(out, source, top, scattered)
        self._tag = tag

    def _lines(self, ranked: _Ranked, kept: Int64Array) -> list[str]:
        if None in ranked.query_ids:
            raise DataError("a TREC run needs query ids, and there are none; use another --format", self._source)
        self._refuse_blanks(ranked.query_ids, "query id", " \t\n\r\v\f", "a TREC run")
        self._refuse_blanks(ranked.document_ids or (), "document id", " \t\n\r\v\f", "a TREC run")
        if self._repeated is not None:
            query_id, document = self._repeated
            what = f"{_named(query_id)} names document {quote(document)} twice, which a TREC run cannot hold"
            raise DataError(f"{what}; keep one of its rows, or use another --format", self._source)
        order = kept[np.lexsort((ranked.ranks[kept], ranked.queries[kept]))]
        queries, ranks = ranked.queries[order].tolist(), ranked.ranks[order].tolist()
        shown = falling(ranked.scores[order].tolist(), ranks)
        return [
            f"{ranked.query_ids[query]} Q0 {ranked.document_id(i)} {rank + 1} {score!r} {self._tag}\n"
            for i, query, rank, score in zip(order.tolist(), queries, ranks, shown, strict=True)
        ]


def falling(scores: list[float], ranks: list[int]) -> list[float]:
    """Return scores that fall strictly from rank to rank, in float32 too where its range allows; exact where they do.

    scores, ranks : query after query, each by rank from 0
    """
    shown: list[float] = []
    for score, rank in zip(scores, ranks, strict=True):
        if rank == 0:
            shown.append(score)
            continue
        before = shown[-1]
        kind = np.float32 if max(abs(before), abs(score)) < FLOAT32_SAFE else np.float64
        if kind(score) < kind(before):
            shown.append(score)
        else:
            shown.append(float(np.nextafter(kind(before), kind(-np.inf))))
    return shown


class JsonLinesWriter(RankedWriter):
    """One object a row, in input order; row in the input and rank from 1; an id is null where there is none.

    explanations : adds the base and the contributions of the features to each row
    """

    def __init__(
        self,
        out: AtomicOutput,
        source: str,
        top: int | None,
        scattered: bool,
        explanations: RowExplanations | None = None,
    ) -> None:
        super().__init__(out, source, top, scattered)
        self._explanations = explanations
        self.keeps_features = explanations is not None

    def _texts(self, ranked: _Ranked, kept: Int64Array) -> Iterator[str]:
        if self._explanations is None:
            yield from super()._texts(ranked, kept)
            return
        features = join_rows(ranked.features)
        for start in range(0, len(kept), ROWS):  # their contributions are large
            rows = kept[start : start + ROWS]
            members = self._explanations.members(take_rows(features, rows))
            lines = zip(self._lines(ranked, rows), members, strict=True)
            yield "".join([f"{line[:-2]}, {more}}}\n" for line, more in lines])

    def _shown_document(self, ranked: _Ranked, i: int) -> str | None:
        return (ranked.document_ids[i] if ranked.document_ids is not None else "") or None

    def _lines(self, ranked: _Ranked, kept: Int64Array) -> list[str]:
        names = [json.dumps(one) for one in ranked.query_ids]
        queries, scores = ranked.queries[kept].tolist(), ranked.scores[kept].tolist()
        ranks, rows = (ranked.ranks[kept] + 1).tolist(), (ranked.rows[kept] + 1).tolist()
        return [
            f'{{"row": {row}, "qid": {names[query]}, '
            f'"docid": {json.dumps(self._shown_document(ranked, i))}, '
            f'"score": {score!r}, "rank": {rank}}}\n'
            for i, row, query, score, rank in zip(kept.tolist(), rows, queries, scores, ranks, strict=True)
        ]
