"""The documents of queries as measures take them: judged or not, retrieved or not, and their order when scores tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.measures.evaluation import Evaluator
from lmart.measures.measured_queries import EvaluationReport, MeasuredQueries, ScaledWeights, scaled_weights
from lmart.measures.values import Measure
from lmart.threads import WorkerPool


@dataclass(frozen=True, eq=False)
class MeasuredDocuments:
    """The documents of queries; every array but `query_offsets` has one entry a document.

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


@dataclass(frozen=True, eq=False)
class Measurement:
    """How documents are measured: over all queries, and over each of some groups of queries.

    measures : all with the same conventions
    pool     : the workers
    weights  : float64[n_queries], for the means; None: all 1
    scale    : L of a measure of err that names none itself
    groups   : int64 places of the queries of each group
    """

    measures: tuple[Measure, ...]
    pool: WorkerPool
    weights: Float64Array | None
    scale: int
    groups: Sequence[Int64Array] = ()

    def evaluator(self, documents: MeasuredDocuments) -> Evaluator:
        """Return what measures each query; DataError as `Evaluator`.

        documents : of all queries
        """
        return Evaluator(
            documents.labels,
            documents.query_offsets,
            self.measures,
            self.pool,
            scale=self.scale,
            judged=documents.judged,
            retrieved=documents.retrieved,
            tie_order=documents.tie_order,
        )

    def report(self, queries: MeasuredQueries) -> EvaluationReport:
        """Return the means over all queries; DataError when a DCG is too large for a number.

        queries : all of them, measured
        """
        return queries.report(self.measures, self._scaled(queries, self.weights), self.scale)

    def by_group(self, queries: MeasuredQueries) -> tuple[EvaluationReport, ...]:
        """Return the means over each group of queries alone; DataError when a DCG is too large for a number.

        queries : all of them, measured
        """
        found = []
        for places in self.groups:
            own = queries.taken(places)
            weights = None if self.weights is None else self.weights[places]
            found.append(own.report(self.measures, self._scaled(own, weights), self.scale))
        return tuple(found)

    def _scaled(self, queries: MeasuredQueries, weights: Float64Array | None) -> ScaledWeights | None:
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(queries.sizes)])
        return None if weights is None else scaled_weights(weights, offsets)
