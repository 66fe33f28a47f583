"""Predictions as tab-separated text."""

from __future__ import annotations

from lmart.array_types import Int64Array
from lmart.formats.results.ranked import RankedRows, RankedWriter


class TsvWriter(RankedWriter):
    """`qid TAB document TAB score TAB rank`, in input order; ranks from 1; the qid is empty where there is none."""

    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return the lines, in input order; DataError when an id holds a tab or a line end."""
        self.refuse_blanks(ranked.query_ids, "query id", "\t\n\r", "a line of tab-separated values")
        self.refuse_blanks(ranked.document_ids or (), "document id", "\t\n\r", "a line of tab-separated values")
        names = [one or "" for one in ranked.query_ids]
        queries, scores, ranks = ranked.queries.tolist(), ranked.scores.tolist(), (ranked.ranks + 1).tolist()
        return [f"{names[queries[i]]}\t{ranked.document_id(i)}\t{scores[i]!r}\t{ranks[i]}\n" for i in kept.tolist()]
