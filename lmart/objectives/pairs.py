"""What objectives have in common whose cost is a weighted sum over pairs of documents.

The cost of a pair is weight x log(1 + exp(-sigma (s_i - s_j))), i the better document. The weight may depend on the
order of the documents, and counts as a constant when derivatives are taken (Burges 2010, section 4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lmart.gains import discount_table
from lmart.kernels import ordering
from lmart.kernels import ranking as kernels
from lmart.objectives.base import Floats, Gradients, Objective, Rows, Task

WEIGHTS = 1 << 18  # pairs whose weights are in memory at a time


class PairObjective(Objective):
    """A weighted sum over pairs of which the upper document is above the truncation.

    The gradients of a query sum to exactly 0 unless rows have weights of their own.
    """

    LARGEST_WEIGHT = 1.0
    weigh_pairs: Callable[..., None]  # a kernel that weighs pairs by what tells documents apart

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.discount = discount_table(task.longest)
        self.truncation = min(task.settings.truncation, task.longest) or task.longest
        self._order = np.arange(len(task.gains), dtype=np.int32)

    def _weigh(self, order: Rows, ranks: tuple[int, int], queries: tuple[int, int], out: Floats) -> None:
        """Write the weights of pairs, as `ranking.add_weighted_pairs` takes them: at most LARGEST_WEIGHT.

        order : int32[n], rows of each query by score; queries of weight 0 may be left out
        """
        task = self.task
        self.weigh_pairs(self.worths, task.query_weights, task.query_offsets, order, *ranks, *queries, out)

    def _write(self, scores: Floats, round_number: int, out: Gradients) -> None:
        self.task.pool.run(self._write_range, [(scores, queries, out) for queries in self.task.ranges])

    def _write_range(self, scores: Floats, queries: tuple[int, int], out: Gradients) -> None:
        offsets, settings, order = self.task.query_offsets, self.task.settings, self._order
        ordering.order_documents(scores, offsets, *queries, order)
        n = int(offsets[queries[1]] - offsets[queries[0]])
        longest = int(np.diff(offsets[queries[0] : queries[1] + 1]).max(initial=0))
        stop = min(self.truncation, longest - 1)
        step = max(1, min(stop, WEIGHTS // max(1, n)))
        weights = np.empty(n * step)
        sums = (np.zeros(n), np.zeros(n), np.zeros(queries[1] - queries[0]))
        fixed = (self.task.query_weights, offsets, order, settings.sigma, settings.normalize)
        for rank in range(0, stop, step):
            ranks = rank, min(rank + step, stop)
            self._weigh(order, ranks, queries, weights)
            kernels.add_weighted_pairs(scores, weights, self.LARGEST_WEIGHT, *fixed, *ranks, *queries, *sums)
        (pair_gradients, pair_hessians, totals), (first, last) = sums, queries
        kernels.write_weighted(pair_gradients, pair_hessians, totals, *fixed, first, last, *out)


def inverse_ideal_dcg(task: Task, discount: Floats, truncation: int) -> Floats:
    """Return 1 / ideal DCG of each query, float64[n_queries], 0 where nothing has a gain; truncation 0: whole query."""
    ideal = np.empty(len(task.query_offsets) - 1)
    order = np.arange(len(task.gains), dtype=np.int32)
    fixed = (task.gains, task.query_offsets)
    task.pool.run(ordering.order_documents, [(*fixed, *queries, order) for queries in task.ranges])
    task.pool.run(
        kernels.ideal_dcg, [(*fixed, discount, order, truncation, *queries, ideal) for queries in task.ranges]
    )
    inverse: Floats = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    return inverse


def relevance(task: Task) -> Floats:
    """Return 1 for each relevant document, else 0, float64[n]: relevant is a label above 0, as in the measures."""
    return np.asarray(task.labels > 0, np.float64)
