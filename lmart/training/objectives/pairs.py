"""Objectives whose cost is a weighted sum over pairs of documents.

The cost of a pair is weight x log(1 + exp(-sigma (s_i - s_j))), i the better document. The weight may depend on the
order of the documents, but is treated as a constant in the derivatives (Burges 2010, section 4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lmart.array_types import Float64Array
from lmart.kernels import measures, ordering, pair_gradients
from lmart.kernels.gradient_arrays import NdcgTables, PairBlock, PairSettings, PairSums, RankedQueries
from lmart.training.objectives.base import Gradients, Objective, Task

WEIGHTS = 1 << 18  # number of pair weights in memory at a time


class PairObjective(Objective):
    """A weighted sum over pairs of which the upper document is above the truncation.

    task : the training set, with the settings of the ranker

    The gradients of a query sum to exactly 0 unless rows have weights of their own.

    LARGEST_WEIGHT : bound of the absolute weight of a pair
    weigh_pairs    : the kernel that weighs pairs by the relevance of their documents (kernels.pair_weights)
    """

    LARGEST_WEIGHT = 1.0
    weigh_pairs: Callable[[Float64Array, RankedQueries, PairBlock, Float64Array], None]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._settings = pair_settings(task, min(task.settings.truncation, task.longest))
        self._order = np.arange(len(task.gains), dtype=np.int32)

    def _weigh(self, queries: RankedQueries, block: PairBlock, out: Float64Array) -> None:
        """Write the weights of a block of pairs, in size at most LARGEST_WEIGHT.

        queries : ranked by score; queries of weight 0 may be left out
        block   : which pairs
        out     : float64, overwritten, laid out as `PairBlock` says
        """
        self.weigh_pairs(self.relevance, queries, block, out)

    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        self.task.pool.run(self._write_range, [(scores, *queries, out) for queries in self.task.ranges])

    def _write_range(self, scores: Float64Array, first_query: int, last_query: int, out: Gradients) -> None:
        """Write the derivatives of the queries first_query..last_query - 1, one block of pairs at a time."""
        offsets, settings = self.task.query_offsets, self._settings
        queries = RankedQueries(scores, self.task.query_weights, offsets, self._order)
        ordering.order_documents(scores, offsets, first_query, last_query, self._order)
        n = int(offsets[last_query] - offsets[first_query])
        longest = int(np.diff(offsets[first_query : last_query + 1]).max(initial=0))
        n_ranks = min(settings.truncation, longest - 1)
        step = max(1, min(n_ranks, WEIGHTS // max(1, n)))
        weights = np.empty(n * step)
        sums = PairSums(np.zeros(n), np.zeros(n), np.zeros(last_query - first_query))
        for rank in range(0, n_ranks, step):
            block = PairBlock(first_query, last_query, rank, min(rank + step, n_ranks))
            self._weigh(queries, block, weights)
            pair_gradients.add_weighted_pairs(queries, weights, self.LARGEST_WEIGHT, settings, block, sums)
        pair_gradients.write_weighted(sums, queries, settings, first_query, last_query, out)


def pair_settings(task: Task, truncation: int) -> PairSettings:
    """Return the settings of a pair's cost, each of the type that kernels are compiled for.

    task       : with the settings
    truncation : ranks that an upper document may have
    """
    return PairSettings(int(truncation), float(task.settings.sigma), bool(task.settings.normalize))


def ndcg_tables(task: Task, discount: Float64Array, truncation: int) -> NdcgTables:
    """Return the gains, 1 / ideal DCG of each query, 0 where nothing has a gain, and the discounts.

    task       : the training set
    discount   : float64[>= documents of the longest query], 1/log2(rank + 2)
    truncation : ranks that count in the ideal DCG
    """
    ideal = np.empty(len(task.query_offsets) - 1)
    order = np.arange(len(task.gains), dtype=np.int32)
    gains, offsets = task.gains, task.query_offsets
    task.pool.run(ordering.order_documents, [(gains, offsets, *queries, order) for queries in task.ranges])
    best = measures.RankedDocuments(order, gains, gains, offsets)
    cutoff = max(1, truncation)
    task.pool.run(
        measures.discounted_sums, [(best, discount, *queries, cutoff, False, ideal) for queries in task.ranges]
    )
    inverse: Float64Array = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    return NdcgTables(task.gains, inverse, discount)


def binary_relevance(task: Task) -> Float64Array:
    """Return 1 for each relevant document, else 0, float64[n]: relevant is a label above 0, as in the measures.

    task : with the labels
    """
    return np.asarray(task.labels > 0, np.float64)
