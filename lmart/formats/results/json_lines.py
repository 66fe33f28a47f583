"""Predictions as JSON lines, with or without the contributions of features."""

from __future__ import annotations

import json
from collections.abc import Iterator

from lmart.array_types import Int64Array
from lmart.data.dataset import join_rows, take_rows
from lmart.formats.results.explanations import ROWS
from lmart.formats.results.ranked import RankedRows, RankedWriter


class JsonLinesWriter(RankedWriter):
    """One object a row, in input order; row in the input and rank from 1; an id is null where there is none.

    With explanations each row also has the base and the contributions of the features.
    """

    @property
    def keeps_features(self) -> bool:
        """Whether the features of the rows are held too."""
        return self.layout.explanations is not None

    def texts(self, ranked: RankedRows, kept: Int64Array) -> Iterator[str]:
        """Yield the lines, with explanations in pieces of few rows."""
        if self.layout.explanations is None:
            yield from super().texts(ranked, kept)
            return
        features = join_rows(ranked.features)
        for start in range(0, len(kept), ROWS):  # their contributions are large
            rows = kept[start : start + ROWS]
            members = self.layout.explanations.members(take_rows(features, rows))
            lines = zip(self.lines(ranked, rows), members, strict=True)
            yield "".join([f"{line[:-2]}, {more}}}\n" for line, more in lines])

    def shown_document(self, ranked: RankedRows, i: int) -> str | None:
        """Return the document's id, None where there is none."""
        return (ranked.document_ids[i] if ranked.document_ids is not None else "") or None

    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return one JSON object a row, in input order."""
        names = [json.dumps(one) for one in ranked.query_ids]
        queries, scores = ranked.queries[kept].tolist(), ranked.scores[kept].tolist()
        ranks, rows = (ranked.ranks[kept] + 1).tolist(), (ranked.rows[kept] + 1).tolist()
        return [
            f'{{"row": {row}, "qid": {names[query]}, '
            f'"docid": {json.dumps(self.shown_document(ranked, i))}, '
            f'"score": {score!r}, "rank": {rank}}}\n'
            for i, row, query, score, rank in zip(kept.tolist(), rows, queries, scores, ranks, strict=True)
        ]
