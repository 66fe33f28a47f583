"""The documents of queries as measures take them: judged or not, retrieved or not, and their order when scores tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.data.dataset import rows_of
from lmart.measures.evaluation import EvaluationReport, Evaluator
from lmart.measures.values import Measure
from lmart.threads import WorkerPool


@dataclass(frozen=True, eq=False)
class MeasuredDocuments:
    """The documents of queries; every array but the second has one entry a document.

    labels        : float64[n_documents], 0 where a document is not judged
    query_offsets : int64[n_queries + 1]
    judged        : bool[n_documents]; None: all are
    retrieved     : bool[n_documents], whether the ranking has the document; None: all are
    tie_order     : int64[n_documents], place among documents of the query with the same score; None: as they stand
    """

    labels: Float64Array
    query_offsets: Int64Array
    judged: BoolArray | None = None
    retrieved: BoolArray | None = None
    tie_order: Int64Array | None = None

    def taken(self, rows: Int64Array, query_offsets: Int64Array) -> MeasuredDocuments:
        """Return other documents out of these.

        rows          : int64[n], which ones, query by query
        query_offsets : of them
        """
        judged, retrieved, ties = self.judged, self.retrieved, self.tie_order
        return MeasuredDocuments(
            self.labels[rows],
            query_offsets,
            None if judged is None else judged[rows],
            None if retrieved is None else retrieved[rows],
            None if ties is None else ties[rows],
        )


@dataclass(frozen=True, eq=False)
class Measurement:
    """How documents are measured: over all queries, and over each of some groups of queries.

    measures : all with the same conventions
    pool     : the workers
    weights  : float64[n_queries], for the means; None: all 1
    scale    : the largest label of err; None: that of the data
    groups   : int64 places of the queries of each group
    """

    measures: tuple[Measure, ...]
    pool: WorkerPool
    weights: Float64Array | None
    scale: int | None
    groups: Sequence[Int64Array] = ()

    def evaluator(self, documents: MeasuredDocuments, queries: Int64Array | None = None) -> Evaluator:
        """Return the evaluator of some documents; DataError as `Evaluator`.

        documents : of all queries, or of `queries` alone
        queries   : int64, their places among all; None: all
        """
        weights = self.weights if self.weights is None or queries is None else self.weights[queries]
        return Evaluator(
            documents.labels,
            documents.query_offsets,
            self.measures,
            self.pool,
            weights,
            self.scale,
            judged=documents.judged,
            retrieved=documents.retrieved,
            tie_order=documents.tie_order,
        )

    def by_group(self, documents: MeasuredDocuments, scores: Float64Array) -> tuple[EvaluationReport, ...]:
        """Return the measures of each group of queries alone; DataError as `Evaluator`.

        documents : of all queries
        scores    : float64[n_documents]
        """
        found = []
        for queries in self.groups:
            sizes = np.diff(documents.query_offsets)[queries]
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            rows = rows_of(documents.query_offsets, queries)
            found.append(self.evaluator(documents.taken(rows, offsets), queries).evaluate(scores[rows]))
        return tuple(found)
