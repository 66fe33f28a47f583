"""yetirank: pairs of neighbours in random orders (Gulin, Kuralenok and Pavlov 2011); see kernels.neighbour_pairs."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array
from lmart.kernels.ranking import listwise, neighbour_pairs
from lmart.kernels.ranking.gradient_arrays import RankedQueries
from lmart.training.objectives.base import Gradients, Objective, Task, round_key
from lmart.training.objectives.pairs import pair_settings

ORDERS = 10  # drawn a query and round
FADING = 0.85  # factor of a pair's weight for each rank
MOST_RANKS = 200  # 0.85^200 rounds to 0 in the fixed-point sums of pairs


class YetiRank(Objective):
    """Pairs of neighbours in random orders by score plus noise, so that documents of similar score form pairs.

    Each round draws ORDERS orders of every query by sigma s + ln(r / (1 - r)), r uniform in (0, 1). The pair at ranks
    k and k + 1 of one of them has the weight FADING^k |y_i - y_j| / ORDERS, y the labels divided by the highest label
    of the query, and the cost weight x log(1 + exp(-sigma (s_i - s_j))), i the better document, s the scores without
    noise. Truncation T leaves out pairs with k >= T; normalising multiplies the derivatives of a query by
    log2(1 + S) / S, S = 2 sum |lambda|, without the division by distances that other objectives have. The gradients of
    a query sum to exactly 0 unless rows have weights of their own.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        offsets = task.query_offsets
        sizes = np.diff(offsets)
        filled = np.flatnonzero(sizes)
        highest = np.zeros(len(sizes))
        highest[filled] = np.maximum.reduceat(task.labels, offsets[:-1][filled]) if len(filled) else 0.0
        self.relevance = task.labels / np.repeat(np.where(highest > 0, highest, 1.0), sizes)
        n_ranks = min(task.settings.truncation, MOST_RANKS, task.longest)
        fading = np.full(max(0, n_ranks - 1), FADING)
        self._rank_weights = np.multiply.accumulate(np.concatenate([[1.0 / ORDERS], fading]))
        self._settings = pair_settings(task, n_ranks)
        self._rows = np.arange(len(task.labels), dtype=np.int32)
        self._exponentials = np.empty(len(task.labels))

    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        task, settings, exponentials = self.task, self._settings, self._exponentials
        offsets = task.query_offsets
        task.pool.run(
            listwise.write_softmax_numerators,
            [(scores, offsets, settings.sigma, *queries, exponentials) for queries in task.ranges],
        )
        by_row = RankedQueries(scores, task.query_weights, offsets, self._rows)
        key = round_key(task.settings.seed, round_number)
        orders = neighbour_pairs.RandomOrders(key, ORDERS, self._rank_weights, task.first_row)
        task.pool.run(
            neighbour_pairs.neighbour_gradients,
            [(by_row, exponentials, self.relevance, orders, settings, *queries, out) for queries in task.ranges],
        )


OBJECTIVE = YetiRank
