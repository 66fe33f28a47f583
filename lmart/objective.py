"""LambdaRank: the gradients and hessians that each tree is fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.dataset import Judged, query_ranges
from lmart.gains import discount_table
from lmart.kernels import ranking as kernels
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


class Gradients(NamedTuple):
    """First and second derivatives of the cost by each document's score, float64[n_documents]; hessians >= 0."""

    gradients: Floats
    hessians: Floats


@dataclass(frozen=True)
class LambdaRank:
    """The LambdaRank objective of one training set (Burges 2010).

    gains             : float64[n], scaled in each query
    inverse_ideal_dcg : float64[n_queries], 0 for a query that teaches nothing
    query_weights     : float64[n_queries]; row_weights : float64[n] or None
    """

    settings: TrainSettings
    query_offsets: Longs
    gains: Floats
    inverse_ideal_dcg: Floats
    discount: Floats
    query_weights: Floats
    row_weights: Floats | None
    order: npt.NDArray[np.int32]
    pool: WorkerPool

    @classmethod
    def prepare(
        cls, dataset: Judged, settings: TrainSettings, pool: WorkerPool, weights: Floats | None = None
    ) -> LambdaRank:
        """Work out all that does not change from round to round.

        weights : one number >= 0 a query, or one a document, or None. DataError when a label has no gain.
        """
        offsets = dataset.query_offsets
        n_queries = len(offsets) - 1
        gains = settings.gain.scaled(dataset.labels, offsets)
        discount = discount_table(int(np.diff(offsets).max(initial=0)))
        ideal = np.empty(n_queries)
        ranges = query_ranges(offsets)
        order = np.arange(len(dataset.labels), dtype=np.int32)
        pool.run(kernels.order_documents, [(gains, offsets, *queries, order) for queries in ranges])
        fixed = (gains, offsets, discount, order, min(settings.truncation, len(discount)))
        pool.run(kernels.ideal_dcg, [(*fixed, *queries, ideal) for queries in ranges])
        inverse = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        by_query = weights is not None and len(weights) == n_queries
        query_weights = weights if weights is not None and by_query else np.ones(n_queries)
        row_weights = None if by_query else weights
        return cls(settings, offsets, gains, inverse, discount, query_weights, row_weights, order, pool)

    def n_idle_queries(self) -> int:
        """Return how many queries cannot teach anything: one document, or all documents worth the same."""
        starts = self.query_offsets[:-1]
        filled = np.diff(self.query_offsets) > 0
        highest = np.maximum.reduceat(self.gains, starts[filled]) if filled.any() else np.zeros(0)
        lowest = np.minimum.reduceat(self.gains, starts[filled]) if filled.any() else np.zeros(0)
        return int(len(starts) - np.count_nonzero(highest > lowest))

    def compute_gradients(self, scores: Floats) -> Gradients:
        """Return the gradients and hessians at the given scores, float64[n_documents].

        The gradients of a query sum to exactly 0 unless rows have weights of their own.
        """
        out = Gradients(np.empty(len(scores)), np.empty(len(scores)))
        offsets, settings = self.query_offsets, self.settings
        ranges = query_ranges(offsets)
        self.pool.run(kernels.order_documents, [(scores, offsets, *queries, self.order) for queries in ranges])
        fixed = (scores, self.gains, self.inverse_ideal_dcg, self.query_weights, self.discount, offsets, self.order)
        chosen = (min(settings.truncation, len(self.discount)), settings.sigma, settings.normalize)
        self.pool.run(kernels.lambda_gradients, [(*fixed, *chosen, *queries, *out) for queries in ranges])
        if self.row_weights is not None:
            np.multiply(out.gradients, self.row_weights, out=out.gradients)
            np.multiply(out.hessians, self.row_weights, out=out.hessians)
        return out
