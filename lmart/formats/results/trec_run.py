"""Predictions as a TREC run, for trec_eval."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Int64Array
from lmart.errors import DataError, quote
from lmart.formats.results.predictions import called_query
from lmart.formats.results.ranked import WAYS_TO_QUERIES, RankedRows, RankedWriter
from lmart.formats.results.trec import id_misfit

FLOAT32_SAFE = 1e38  # below it, a float32 is neither infinite nor about to become so


class TrecWriter(RankedWriter):
    """`qid Q0 document rank score tag`, best first in each query; ranks from 1.

    trec_eval sorts by score, and tied documents by name; old versions keep scores in float32. So a score that would not
    be below the one before it, as float32, is written as the next float32 below that one; all others are exact.
    """

    def without_queries(self) -> None:
        """Refuse rows without query ids."""
        raise DataError(f"a TREC run needs query ids, and no row has one; {WAYS_TO_QUERIES}", self.layout.source)

    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return the lines of the run, best first in each query; DataError for ids missing, repeated or with blanks."""
        self._refuse_misfits([one for one in ranked.query_ids if one is not None], "query id")
        self._refuse_misfits([one for one in ranked.document_ids or () if one], "document id")
        if self.repeated is not None:
            query_id, document = self.repeated
            what = f"{called_query(query_id)} names document {quote(document)} twice, which a TREC run cannot hold"
            raise DataError(f"{what}; keep one of its rows, or use another --format", self.layout.source)
        order = kept[np.lexsort((ranked.ranks[kept], ranked.queries[kept]))]
        queries, ranks = ranked.queries[order].tolist(), ranked.ranks[order].tolist()
        shown = falling(ranked.scores[order].tolist(), ranks)
        return [
            f"{ranked.query_ids[query]} Q0 {ranked.document_id(i)} {rank + 1} {score!r} {self.layout.tag}\n"
            for i, query, rank, score in zip(order.tolist(), queries, ranks, shown, strict=True)
        ]

    def _refuse_misfits(self, ids: list[str], what: str) -> None:
        """Raise DataError when an id cannot stand in a run."""
        if what == "document id" and id_misfit("-".join(ids) or "-", what) is None:
            return
        for one in ids:
            if fault := id_misfit(one, what):
                message = f"the {what} {quote(one)} {fault}, which a TREC run cannot hold; use --format jsonl"
                raise DataError(message, self.layout.source)


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
