"""Judgments: the judged documents of queries, which of them are ranked, and in what order equal scores stand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array


class Judgments:
    """Labels of the documents of queries, and the documents that are ranked.

    labels        : float64[n_documents], finite, >= 0; those of unjudged documents do not matter, and become 0
    query_offsets : int64[n_queries + 1]
    judged        : bool[n_documents]; an unjudged document is not relevant, has no gain, and does not count in bpref
                    and kendall; None: all are judged
    retrieved     : bool[n_documents]; a document that is not retrieved stands in no ranking, and counts only among the
                    judged and relevant documents of its query and in the best order; None: all are retrieved
    tie_order     : int64[n_documents], place of a document among those of its query with the same score, the lowest
                    first, such as `docid_order` gives; None: in the order of the data
    """

    def __init__(
        self,
        labels: Float64Array,
        query_offsets: Int64Array,
        judged: BoolArray | None = None,
        retrieved: BoolArray | None = None,
        tie_order: Int64Array | None = None,
    ) -> None:
        for name, values in dict(judged=judged, retrieved=retrieved, tie_order=tie_order).items():  # noqa: C408
            if values is not None and len(values) != len(labels):
                raise ValueError(f"{name} has {len(values)} entries for {len(labels)} documents")
        self.judged, self.retrieved, self.tie_order = judged, retrieved, tie_order
        self.labels = labels if judged is None else np.where(judged, labels, 0.0)
        self.query_offsets = np.ascontiguousarray(query_offsets, np.int64)
        self.rows = self._ranked_rows()
        self.ranked_offsets = self.query_offsets
        if retrieved is not None:
            n_above = np.concatenate([np.zeros(1, np.int64), np.cumsum(retrieved, dtype=np.int64)])
            self.ranked_offsets = n_above[self.query_offsets]
        self.n_ranked = np.diff(self.ranked_offsets)

    def reversed(self) -> Judgments:
        """Return the same judgments with documents of equal score in the reverse order."""
        places = np.arange(len(self.labels)) if self.tie_order is None else self.tie_order
        return Judgments(self.labels, self.query_offsets, self.judged, self.retrieved, -places)

    def without_unjudged(self) -> Judgments:
        """Return the same judgments without unjudged documents in the rankings."""
        retrieved = self.judged if self.retrieved is None or self.judged is None else self.retrieved & self.judged
        return Judgments(self.labels, self.query_offsets, self.judged, retrieved, self.tie_order)

    def _ranked_rows(self) -> Int64Array | None:
        """Return the rows that are ranked, in the order of equal scores; None: all rows in the order of the data."""
        rows = np.arange(len(self.labels))
        if self.tie_order is not None:
            queries = np.repeat(np.arange(len(self.query_offsets) - 1), np.diff(self.query_offsets))
            rows = np.lexsort((self.tie_order, queries))
        elif self.retrieved is None:
            return None
        return rows if self.retrieved is None else rows[self.retrieved[rows]]

    def ranked(self, values: Float64Array) -> Float64Array:
        """Return what the ranked documents have of values, float64[n_documents], in the order of equal scores."""
        return values if self.rows is None else values[self.rows]

    def only_judged(self, values: Float64Array, otherwise: float = 0.0) -> Float64Array:
        """Return values, float64[n_documents], with another number for documents that are not judged."""
        return values if self.judged is None else np.where(self.judged, values, otherwise)

    def relevant(self, level: float | None) -> Float64Array:
        """Return 1 for judged documents whose label reaches a level, None: above 0; else 0: float64[n_documents]."""
        return np.asarray(self.labels > 0 if level is None else self.labels >= level, np.float64)


def docid_order(document_ids: Sequence[str], query_offsets: Int64Array) -> Int64Array:
    """Return the place of each document in its query by document id, the last in the order of bytes first.

    That is how trec_eval orders documents of equal score. Of one id named twice the earlier document comes first.
    """
    places = np.empty(len(document_ids), np.int64)
    for start, stop in pairwise(query_offsets.tolist()):
        # the order of code points is that of the bytes of UTF-8
        rows = sorted(range(start, stop), key=document_ids.__getitem__, reverse=True)
        places[rows] = np.arange(stop - start)
    return places


def query_sums(values: Float64Array, query_offsets: Int64Array) -> Float64Array:
    """Return each query's sum of float64[n_documents], on its own, so that neighbours cannot change its rounding."""
    sums = np.zeros(len(query_offsets) - 1)
    filled = np.flatnonzero(np.diff(query_offsets))
    if len(filled):
        sums[filled] = np.add.reduceat(values, query_offsets[:-1][filled])
    return sums
